//! Volumes on each kind of device, in one boot: rates, an aged volume with partial cleaning, a crash, a check,
//! fsck.f2fs and the kernel's view of each, and a table of the rates beside those of the first.
//!
//! The machine is emulated: what a rate is by another one in the same boot says something, a rate alone does not.

use std::collections::BTreeMap;
use std::fs::{self};
use std::time::Duration;

use anyhow::{Context, bail};

use super::machine::Bus;
use super::programs::{LOADER, dynamic};
use super::{Bench, Outcome, judge};
use crate::{Result, files};

const LIMIT: Duration = Duration::from_secs(3000);
const SCRIPT: &str = include_str!("devices.sh");

/// Serial number, bus, MiB, and MiB in the quick form.
const DISKS: [(&str, Bus, [u64; 2]); 11] = [
    ("small", Bus::Nvme, [192, 64]),
    ("large", Bus::Nvme4096, [192, 64]),
    ("through", Bus::Nvme, [192, 64]),
    ("exported", Bus::VirtioBlk, [192, 96]),
    ("first", Bus::Nvme, [64, 32]),
    ("second", Bus::Nvme, [64, 16]),
    ("third", Bus::Nvme, [64, 16]),
    // The beginning of a volume on zones.
    ("front-512", Bus::Nvme, [64, 64]),
    ("zones-512", Bus::NvmeZoned(512), [256, 96]),
    ("front-4096", Bus::Nvme4096, [64, 64]),
    ("zones-4096", Bus::NvmeZoned(4096), [256, 96]),
];

/// How much is done on each volume, and on how many of them.
struct Scale {
    volumes: usize,
    /// MiB of persistent memory, and of the volume in a file there.
    memory: u32,
    mapped: u32,
    /// Operations of each measurement.
    operations: u32,
    /// How full an aged volume is, and how much of it is overwritten. Partial cleaning begins when free segments are few,
    /// and section cleaning takes over when they are fewer: on a small volume little lies between the two.
    fill: f64,
    turnover: f64,
    /// Files that are synced before the process is killed.
    synced: u32,
}

const FULL: Scale =
    Scale { volumes: 9, memory: 256, mapped: 176, operations: 3000, fill: 0.9, turnover: 1.0, synced: 200 };
const QUICK: Scale = Scale { volumes: 8, memory: 96, mapped: 64, operations: 40, fill: 0.7, turnover: 1.0, synced: 10 };

/// The volumes; the first is what the others are compared with. The last is not in the quick form.
const VOLUMES: [&str; 9] = [
    "nvme-512",
    "nvme-4096",
    "pass-through",
    "pmem-block",
    "pmem-memory",
    "zns-512",
    "three-nvme",
    "nvme-tcp",
    "zns-4096",
];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let scale = if bench.quick { QUICK } else { FULL };
    let mut boot = bench.guest.boot("devices").processors(2).persistent_memory(scale.memory);
    let files = dynamic(&["fsck.f2fs", "mkfs.ext4"])?;
    for file in &files {
        boot = boot.program(file);
    }
    for (name, bus, mib) in DISKS {
        let image = bench.image(&format!("devices-{name}"));
        files::make_sparse(&image, mib[usize::from(bench.quick)] << 20)?;
        boot = boot.disk(&image, bus, name);
    }
    let Scale { volumes, mapped, operations, fill, turnover, synced, .. } = scale;
    let volumes = &VOLUMES[..volumes];
    let zones = if volumes.contains(&"zns-4096") { "512 4096" } else { "512" };
    let cleaning = if bench.quick { "--any-cleaning" } else { "" };
    let script = format!(
        "LOADER='/bin/{LOADER} --library-path /bin'\nZONES='{zones}'\nMAPPED={mapped}\nOPERATIONS={operations}\n\
         FILL={fill}\nTURNOVER={turnover}\nCLEANING={cleaning}\nSYNCED={synced}\n{SCRIPT}"
    );
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    let mut rates = Rates::new();
    let mut paths = 0;
    for name in volumes {
        if !output.log.contains(&format!("{name}: ok")) {
            bail!("{name} did not happen:\n{}", output.log.trim());
        }
        let read = |suffix: &str| fs::read_to_string(output.share.join(format!("{name}.{suffix}")));
        let made = read("made")?;
        judge::same(name, ("the library", &made), ("the kernel", &read("mounted")?))?;
        paths += made.lines().count();
        parse(&read("csv")?, &mut rates)?;
    }
    for line in output.log.lines().filter(|line| line.contains(" blocks overwritten, ")) {
        println!("    {line}");
    }
    print!("{}", table(volumes, &rates)?);
    Ok(Outcome { wall: output.wall, remark: format!("{paths} paths on {} kinds of devices", volumes.len()) })
}

/// Operations a second, by what was measured and the volume.
type Rates = BTreeMap<String, BTreeMap<String, f64>>;

fn parse(csv: &str, rates: &mut Rates) -> Result<()> {
    for line in csv.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let [name, what, rate] = fields[..] else { bail!("not a rate: {line}") };
        rates.entry(what.to_owned()).or_default().insert(name.to_owned(), rate.parse()?);
    }
    Ok(())
}

/// A column for each measurement, a line for each volume: its rate by the first volume's.
fn table(volumes: &[&str], rates: &Rates) -> Result<String> {
    let mut table = format!("  {:14}", "");
    for what in rates.keys() {
        table += &format!(" {what:>15}");
    }
    for (index, name) in volumes.iter().enumerate() {
        table += &format!("\n  {name:14}");
        for (what, by_name) in rates {
            let rate = |name: &str| by_name.get(name).with_context(|| format!("{what} on {name} was not measured"));
            let (rate, first) = (rate(name)?, rate(volumes[0])?);
            table += &if index == 0 { format!(" {rate:>13.0}/s") } else { format!(" {:>15.2}", rate / first) };
        }
    }
    Ok(table + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_stand_beside_those_of_the_first_volume() {
        let mut rates = Rates::new();
        for (number, name) in VOLUMES.iter().enumerate() {
            parse(&format!("{name},sync,{}\n", 100 * (number + 1)), &mut rates).unwrap();
        }
        let table = table(&VOLUMES, &rates).unwrap();
        assert!(table.contains("nvme-512                 100/s\n"), "{table}");
        assert!(table.contains("nvme-4096                 2.00\n"), "{table}");
        assert!(parse("a,b", &mut rates).is_err());
    }
}
