//! Mounts of the library whose requests come through `io_uring` (`-o transport=uring`, Linux 6.14 and later): trees, files
//! without a name, what fio wrote, a killed server, an unmount while programs work; and rates beside those of mounts by
//! `/dev/fuse`, in one boot, in turns.
//!
//! The machine is emulated: a ratio in the same boot says something, a rate alone does not.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::programs::{self, LOADER, dynamic};
use super::rounds::{median, ratio};
use super::{Bench, Outcome, judge};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(3600);
const SCRIPT: &str = include_str!("fuse-uring.sh");
const PARTS: [&str; 7] = ["off", "tree", "unnamed", "killed", "fio", "busy", "rates"];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let program = programs::measured(&bench.cache, "f2fs-cli", "f2fs")?;
    let processors = bench.processors.unwrap_or(4);
    let mut boot =
        bench.guest.boot("fuse-uring").processors(processors).memory(3072).modules(&["fuse"]).program(&program);
    for file in dynamic(&["fio"])? {
        boot = boot.program(&file);
    }
    let (rounds, time) = if bench.quick { (1, 300) } else { (7, 1000) };
    let script = format!(
        "LOADER='/bin/{LOADER} --library-path /bin'\nSCALE={}\nROUNDS={rounds}\nTIME={time}\n{SCRIPT}",
        bench.scale("small")
    );
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    judge::happened(&output, &PARTS)?;
    let made = fs_err::read_to_string(output.share.join("made"))?;
    let mounted = bench.here.guest_manifest(&output.share, "mounted")?;
    judge::same("by rings", ("the library", &made), ("the mount", &mounted))?;
    let rates = fs_err::read_to_string(output.share.join("rates"))?;
    print!("{}", table(&rates)?);
    Ok(Outcome { wall: output.wall, remark: format!("{} paths, the same by the mount and here", made.lines().count()) })
}

/// Medians of rates by the device and by rings, and of the ratios of the rounds.
fn table(csv: &str) -> Result<String> {
    let mut all: BTreeMap<(&str, &str), BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for line in csv.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let [name, what, threads, rate] = fields[..] else { bail!("not a measurement: {line}") };
        let rate: f64 = rate.parse().with_context(|| format!("no rate: {line}"))?;
        ensure!(rate > 0.0, "nothing was done: {line}");
        all.entry((what, threads)).or_default().entry(name).or_default().push(rate);
    }
    ensure!(!all.is_empty(), "no measurement");
    let mut table = String::new();
    for ((what, threads), mut rates) in all {
        let (Some(device), Some(rings)) = (rates.remove("device"), rates.remove("uring")) else {
            bail!("{what} was not measured on both sides");
        };
        let by = ratio(&rings, &device)?;
        let _ = writeln!(
            table,
            "    {what:<10} {threads} threads: {:>6.0}/s by rings, {:>6.0}/s by /dev/fuse: {by}",
            median(rings)?,
            median(device)?
        );
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_rounds() {
        let csv =
            "device,stat,1,100\nuring,stat,1,150\ndevice,stat,1,10\nuring,stat,1,8\ndevice,stat,1,10\nuring,stat,1,9\n";
        let table = table(csv).unwrap();
        assert!(
            table.contains("stat       1 threads:      9/s by rings,     10/s by /dev/fuse: 0.90 (0.80 to 1.50)"),
            "{table}"
        );
        assert!(super::table("device,stat,1,100\n").is_err());
        assert!(super::table("device,stat,1,0\nuring,stat,1,1\n").is_err());
        assert!(super::table("").is_err());
    }
}
