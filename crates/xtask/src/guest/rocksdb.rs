//! `RocksDB` on zones: on Linux's F2FS and on a mount of the library, each on a device of `f2fs ublk` of the same kind.
//! `db_bench` writes the same keys in the same order on both. It says what it wrote to its log and its tables, and the
//! device counts what it was given; times are not compared. A table is left in the cache of the guest tests.

use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::programs::{LOADER, dynamic};
use super::{Bench, Outcome, judge};
use crate::{Result, tools};

const LIMIT: Duration = Duration::from_secs(7200);
const SCRIPT: &str = include_str!("rocksdb.sh");
/// Who is below the store.
const WHO: [&str; 2] = ["Linux", "library"];
/// Tables of 4 MiB in levels of which each is four times the one above, as small as the devices. Sixteen pairs at once go
/// into the log, which is synced then: a device is never given what is in a log that has been removed before.
const FLAGS: &str = "--compression_type=none --write_buffer_size=4194304 --target_file_size_base=4194304 \
    --max_bytes_for_level_base=16777216 --max_bytes_for_level_multiplier=4 --cache_size=8388608 --seed=7 \
    --batch_size=16 --sync=1";
/// Bytes of a value.
const VALUE: u32 = 4096;

/// MiB of a device, and of its zones.
fn plan(quick: bool) -> (u64, &'static [u64]) {
    if quick { (512, &[4]) } else { (1024, &[4, 8, 16]) }
}

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    tools::require(&["db_bench", "mkfs.f2fs"])?;
    let (size, zones) = plan(bench.quick);
    // What is written stays in the memory of the device, and for a time in the kernel's.
    let mut boot = bench.guest.boot("rocksdb").processors(2).memory(2 * size + 1536).modules(&["fuse"]);
    for file in dynamic(&["mkfs.f2fs", "db_bench"])? {
        boot = boot.program(&file);
    }
    let mut script = format!(
        "LOADER='/bin/{LOADER} --library-path /bin'\nFLAGS='{FLAGS}'\nVALUE={VALUE}\nSHARE=30\nTURNOVER=100\n{SCRIPT}"
    );
    for zone in zones {
        // Room for the tables of the volume, which need not be written in order.
        let conventional = (size / 16).max(64).max(2 * zone).div_ceil(*zone);
        for who in WHO {
            script += &format!("store {who} {zone} {size} {conventional}\n");
        }
    }
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    println!(
        "    RocksDB on {size} MiB in zones; bytes that the device was given, in multiples of what the store wrote:"
    );
    println!("    {:>5} {:>10} {:>10}", "MiB", WHO[0], WHO[1]);
    let mut table = format!("zone,{},{}\n", WHO[0], WHO[1]);
    for zone in zones {
        let mut fields = Vec::new();
        for who in WHO {
            let begin = format!("zone {zone}, {who}: ");
            let line = output.log.lines().find_map(|line| line.strip_prefix(&begin));
            let line = line.with_context(|| format!("{begin} is missing:\n{}", output.log.trim()))?;
            println!("    {begin}{line}");
            let factor = factor(line)?;
            ensure!(factor.is_some() || !bench.quick, "{begin}{line}");
            fields.push(factor.map_or(String::new(), |factor| format!("{factor:.3}")));
        }
        println!("    {zone:>5} {:>10} {:>10}", fields[0], fields[1]);
        table += &format!("{zone},{}\n", fields.join(","));
    }
    let path = bench.cache.join("rocksdb.csv");
    fs_err::write(&path, &table)?;
    Ok(Outcome { wall: output.wall, remark: format!("{} sizes of zones; {}", zones.len(), path.display()) })
}

/// What the device was given, in multiples of what the store wrote; `None`: it had no room.
fn factor(line: &str) -> Result<Option<f64>> {
    if line == "no room" {
        return Ok(None);
    }
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [_, wrote, given] = numbers[..] else { bail!("not three numbers: {line}") };
    let factor = given as f64 / wrote.max(1) as f64;
    // The store syncs all that it writes.
    ensure!((0.95..100.0).contains(&factor), "a device that was given {factor} times what the store wrote: {line}");
    Ok(Some(factor))
}
