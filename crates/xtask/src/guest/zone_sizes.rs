//! How much F2FS writes for a key-value store on zones of several sizes: Linux on a device of `f2fs ublk`, and the
//! library on the same device in memory. The store is not `RocksDB` (that is [`super::rocksdb`]): it is a flow of files
//! with the sizes and lifetimes that levelled compaction gives them (`guest-agent lsm`). The device counts the writes;
//! times are not compared. A table and a picture are left in the cache of the guest tests.

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

/// A device: MiB in all, of its zones, and how much of the users' room is live data, in per cent.
type Device = (u64, &'static [u64], u32);

/// The devices, and data that is put, in multiples of the live data. The larger the zones, the more of a device is kept
/// from users, and the more of it has to be free.
fn plan(quick: bool) -> (&'static [Device], &'static str) {
    if quick { (&[(512, &[4, 8, 16], 60)], "0.3") } else { (&[(2048, &[16, 32], 60)], "0.4") }
}

/// Zones in front that need not be written in order: room for the tables of the volume.
fn conventional(zone: u64, size: u64) -> u64 {
    (size / 16).max(64).max(2 * zone).div_ceil(zone)
}

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let (devices, turnover) = plan(bench.quick);
    let mut table = String::from("zone,Linux,when needed,by cost and benefit,oldest first\n");
    let (mut wall, mut count) = (Duration::ZERO, 0);
    for device in devices {
        let (took, lines) = on_device(bench, device, turnover)?;
        (wall, count) = (wall + took, count + device.1.len());
        table += &lines;
    }
    let path = bench.cache.join("zone-sizes.csv");
    fs_err::write(&path, &table)?;
    let picture = path.with_extension("svg");
    let mut plot = Command::new(&bench.here.agent);
    plot.arg("plot").arg(&path).arg(&picture).args(["--title", "A key-value store on zones"]);
    plot.args(["--x", "zone (MiB)", "--y", "bytes given to the device for each written"]);
    process::output(&mut plot)?;
    Ok(Outcome { wall, remark: format!("{count} sizes of zones; {}, {}", path.display(), picture.display()) })
}

/// One device with zones of several sizes: the time in the guest, and lines of the table.
fn on_device(bench: &Bench, &(size, zones, share): &Device, turnover: &str) -> Result<(Duration, String)> {
    // What is written stays in the memory of the device, and for a time in the kernel's.
    let mut boot = bench.guest.boot("zone-sizes").processors(2).memory((2 * size).min(size + 2048) + 1024);
    for file in dynamic(&["mkfs.f2fs"])? {
        boot = boot.program(&file);
    }
    let mut script =
        format!("LOADER='/bin/{LOADER} --library-path /bin'\nTURNOVER={turnover}\nSHARE={share}\n{SCRIPT}");
    for zone in zones {
        script += &format!("kernel {zone} {size} {}\n", conventional(*zone, size));
    }
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    println!(
        "    zones of a device of {size} MiB; bytes that the device was given, in multiples of what the store wrote:"
    );
    println!("    {:>5} {:>10} {:>10} {:>14} {:>14}", "MiB", "Linux", CLEANINGS[0], CLEANINGS[1], CLEANINGS[2]);
    let mut table = String::new();
    for zone in zones {
        let line = output.log.lines().find(|line| line.starts_with(&format!("zone {zone}: ")));
        let line = line.with_context(|| format!("zones of {zone} MiB are missing:\n{}", output.log.trim()))?;
        println!("    Linux, {line}");
        let live = line.split_once("live ").and_then(|(_, rest)| rest.split(' ').next());
        let mut factors = vec![live.map(|_| factor(line)).transpose()?];
        for cleaning in CLEANINGS {
            let mut command = Command::new(&bench.here.agent);
            command.args(["lsm", "--zone", &zone.to_string(), "--size", &size.to_string(), "--turnover", turnover]);
            command.args(["--conventional", &conventional(*zone, size).to_string(), "--cleaning", cleaning]);
            match live {
                Some(live) => command.args(["--live-mib", live]),
                // Linux had no room for it: the library's own share.
                None => command.args(["--live", &share.to_string()]),
            };
            let said = process::output(&mut command)?;
            let said = String::from_utf8(said)?;
            println!("    the library ({cleaning}), zone {zone}: {}", said.trim());
            factors.push(Some(factor(&said)?));
        }
        if let Some(wrong) = factors.iter().flatten().find(|factor| !(1.0..100.0).contains(*factor)) {
            bail!("a device that was given {wrong} times what the store wrote: {line}");
        }
        ensure!(!bench.quick || live.is_some(), "Linux ran out of room: {line}");
        let fields: Vec<String> =
            factors.iter().map(|factor| factor.map_or(String::new(), |factor| format!("{factor:.3}"))).collect();
        table += &format!("{zone},{}\n", fields.join(","));
        println!("    {zone:>5} {:>10} {:>10} {:>14} {:>14}", fields[0], fields[1], fields[2], fields[3]);
    }
    Ok((output.wall, table))
}

/// The last number of a line of `guest-agent lsm`.
fn factor(line: &str) -> Result<f64> {
    let word = line.split_whitespace().next_back().context("an empty line")?;
    word.parse().with_context(|| format!("no number: {line}"))
}
