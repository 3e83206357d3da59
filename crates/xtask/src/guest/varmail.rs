//! A mail server's work (`f2fs bench varmail`) in one boot on ext4, on Linux's F2FS and with the library: with no
//! journal, with one on a second NVMe namespace, and with one in persistent memory. Twice: on NVMe as QEMU has it, whose
//! flushes cost next to nothing, and on a device whose flushes take 2 ms.
//!
//! The machine is emulated: what a rate is by another one in the same boot says something, a rate alone does not. The
//! library is a part of the program, and no mount: a call of it is no system call.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};

use super::machine::Bus;
use super::programs::{self, LOADER, dynamic};
use super::rounds::median;
use super::{Bench, Outcome, judge};
use crate::{Result, files};

const LIMIT: Duration = Duration::from_secs(3000);
const SCRIPT: &str = include_str!("varmail.sh");
const THREADS: u32 = 16;
/// Milliseconds that a flush of the data's device takes; 0: as it is.
const FLUSHES: [u32; 2] = [0, 2];

/// What is measured: its name in the script, and in the table.
const SYSTEMS: [(&str, &str); 12] = [
    ("ext4-internal", "ext4, its journal internal"),
    ("ext4-nvme", "ext4, its journal on a second NVMe"),
    ("ext4-pmem", "ext4, its journal in pmem"),
    ("ext4-data-internal", "ext4 data=journal, internal"),
    ("ext4-data-nvme", "ext4 data=journal, on a second NVMe"),
    ("ext4-data-pmem", "ext4 data=journal, in pmem"),
    ("f2fs", "Linux's F2FS"),
    ("library-none", "the library, no journal"),
    ("library-nvme", "the library, ordered, on a second NVMe"),
    ("library-pmem", "the library, ordered, in pmem"),
    ("library-data-nvme", "the library, mode journal, on a second NVMe"),
    ("library-data-pmem", "the library, mode journal, in pmem"),
];
/// What the others are compared with.
const BESIDE: [&str; 3] = ["ext4-pmem", "ext4-data-pmem", "f2fs"];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let program = programs::measured(&bench.cache, "f2fs-cli", "f2fs")?;
    let files = dynamic(&["mkfs.ext4", "dmsetup"])?;
    let (rounds, seconds) = if bench.quick { (1, 1) } else { (3, 5) };
    let mut wall = Duration::ZERO;
    for flush in FLUSHES {
        let mut boot = bench.guest.boot("varmail").processors(2).memory(3072).persistent_memory(384).program(&program);
        for file in &files {
            boot = boot.program(file);
        }
        for (name, mib) in [("data", 768), ("second", 256)] {
            let image = bench.image(&format!("varmail-{name}"));
            files::make_sparse(&image, mib << 20)?;
            boot = boot.disk(&image, Bus::Nvme, name);
        }
        let script = format!(
            "LOADER='/bin/{LOADER} --library-path /bin'\nTHREADS={THREADS}\nSECONDS_EACH={seconds}\nROUNDS={rounds}\n\
             FLUSH_MS={flush}\n{SCRIPT}"
        );
        let output = boot.run(&script, LIMIT)?;
        judge::succeeded(&output)?;
        println!(
            "    a flush of the data's device takes {flush} ms more than in QEMU; {THREADS} threads, operations/s"
        );
        print!("{}", table(&rates(&fs_err::read_to_string(output.share.join("varmail.csv"))?)?)?);
        wall += output.wall;
    }
    Ok(Outcome { wall, remark: format!("{} file systems, {rounds} rounds of {seconds} s each", SYSTEMS.len()) })
}

/// Operations a second of each round, by what was measured.
type Rates = BTreeMap<String, Vec<f64>>;

fn rates(csv: &str) -> Result<Rates> {
    let mut rates = Rates::new();
    for line in csv.lines() {
        // The round, the name, and a line of `f2fs bench varmail --csv`.
        let fields: Vec<&str> = line.split(',').collect();
        let (Some(name), Some(rate)) = (fields.get(1), fields.get(8)) else { bail!("not a measurement: {line}") };
        rates.entry((*name).to_owned()).or_default().push(rate.parse()?);
    }
    Ok(rates)
}

/// The medians, and the medians of the ratios of the rounds.
fn table(rates: &Rates) -> Result<String> {
    let of = |name: &str| rates.get(name).with_context(|| format!("{name} was not measured"));
    let mut table = format!("      {:44} {:>9}", "", "median");
    for name in BESIDE {
        table += &format!(" {:>18}", format!("x {name}"));
    }
    table += &format!(" {:>16}\n", "rounds");
    for (name, words) in SYSTEMS {
        let its = of(name)?;
        table += &format!("      {words:44} {:>9.0}", median(its.clone())?);
        for beside in BESIDE {
            let ratios = its.iter().zip(of(beside)?).map(|(one, other)| one / other).collect();
            table += &format!(" {:>18.2}", median(ratios)?);
        }
        let (least, most) = its.iter().fold((f64::MAX, 0.0), |(low, high), rate| (rate.min(low), rate.max(high)));
        table += &format!(" {:>16}\n", format!("{least:.0}..{most:.0}"));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_stand_beside_each_other_round_by_round() {
        let mut csv = String::new();
        for round in 1..=3 {
            for (number, (name, _)) in SYSTEMS.iter().enumerate() {
                let rate = round * (number + 1);
                csv += &format!("{round},{name},log,none,16,100,20,1.000000,{rate}.0,1.000,1.000,0\n");
            }
        }
        let table = table(&rates(&csv).unwrap()).unwrap();
        let line = table.lines().find(|line| line.contains("mode journal, in pmem")).unwrap();
        assert!(
            line.ends_with(" 24               4.00               2.00               1.71           12..36"),
            "{line}"
        );
        assert!(rates("1,ext4").is_err());
    }
}
