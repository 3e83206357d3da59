//! How much F2FS writes for a key-value store on zones of several sizes: Linux on a device of `f2fs ublk`, and the
//! library on the same device in memory. The store is not `RocksDB`: it is a flow of files with the sizes and lifetimes
//! that levelled compaction gives them (`guest-agent lsm`). The device counts the writes; times are not compared.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::programs::{LOADER, dynamic};
use super::{Bench, Outcome, judge};
use crate::{Result, process};

const LIMIT: Duration = Duration::from_secs(7200);
const SCRIPT: &str = include_str!("zone-sizes.sh");
/// How the library cleans.
const CLEANINGS: [&str; 3] = ["needed", "cost-benefit", "age-threshold"];

/// MiB of the device, of its zones, and data that is put, in multiples of the live data.
fn plan(quick: bool) -> (u64, &'static [u64], &'static str) {
    if quick { (512, &[4, 8, 16], "0.3") } else { (2048, &[16, 32], "0.4") }
}

/// Zones in front that need not be written in order: room for the tables of the volume.
fn conventional(zone: u64, size: u64) -> u64 {
    (size / 16).max(64).max(2 * zone) / zone
}

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let (size, zones, turnover) = plan(bench.quick);
    let mut boot = bench.guest.boot("zone-sizes").processors(2).memory(2 * size + 1024);
    for file in dynamic(&["mkfs.f2fs"])? {
        boot = boot.program(&file);
    }
    let mut script = format!("LOADER='/bin/{LOADER} --library-path /bin'\nTURNOVER={turnover}\n{SCRIPT}");
    for zone in zones {
        script += &format!("kernel {zone} {size} {}\n", conventional(*zone, size));
    }
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    println!(
        "    zones of a device of {size} MiB; bytes that the device was given, in multiples of what the store wrote:"
    );
    println!("    {:>5} {:>10} {:>10} {:>14} {:>14}", "MiB", "Linux", CLEANINGS[0], CLEANINGS[1], CLEANINGS[2]);
    let mut table = String::from("zone,linux,needed,cost_benefit,age_threshold\n");
    for zone in zones {
        let line = output.log.lines().find(|line| line.starts_with(&format!("zone {zone}: ")));
        let line = line.with_context(|| format!("zones of {zone} MiB are missing:\n{}", output.log.trim()))?;
        println!("    Linux, {line}");
        let mut factors = vec![factor(line)?];
        let live = line.split_once("live ").and_then(|(_, rest)| rest.split(' ').next());
        let live = live.with_context(|| format!("no live data: {line}"))?;
        for cleaning in CLEANINGS {
            let mut command = Command::new(&bench.here.agent);
            command.args(["lsm", "--zone", &zone.to_string(), "--size", &size.to_string(), "--turnover", turnover]);
            command.args(["--conventional", &conventional(*zone, size).to_string(), "--cleaning", cleaning]);
            command.args(["--live-mib", live]);
            let said = process::output(&mut command)?;
            let said = String::from_utf8(said)?;
            println!("    the library ({cleaning}), zone {zone}: {}", said.trim());
            factors.push(factor(&said)?);
        }
        if let Some(wrong) = factors.iter().find(|factor| !(1.0..100.0).contains(*factor)) {
            bail!("a device that was given {wrong} times what the store wrote: {line}");
        }
        let fields: Vec<String> = factors.iter().map(|factor| format!("{factor:.3}")).collect();
        table += &format!("{zone},{}\n", fields.join(","));
        println!("    {zone:>5} {:>10} {:>10} {:>14} {:>14}", fields[0], fields[1], fields[2], fields[3]);
    }
    let path = bench.cache.join("zone-sizes.csv");
    std::fs::write(&path, &table)?;
    ensure!(table.lines().count() == zones.len() + 1, "a table of {} lines", table.lines().count());
    Ok(Outcome { wall: output.wall, remark: format!("{} sizes of zones; {}", zones.len(), path.display()) })
}

/// The last number of a line of `guest-agent lsm`.
fn factor(line: &str) -> Result<f64> {
    let word = line.split_whitespace().next_back().context("an empty line")?;
    word.parse().with_context(|| format!("no number: {line}"))
}
