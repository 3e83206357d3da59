//! Rates of devices of `f2fs ublk` beside those of rublk, `null_blk` and `brd`, in one boot, in turns: random reads and
//! writes of 4 KiB and sequential ones of 256 KiB, by 1, 2 and 4 jobs of depth 32; and how many system calls each server
//! makes for a request.
//!
//! rublk is built when it is missing, which takes libclang; without it, the other devices are measured.
//!
//! The machine is emulated: a ratio in the same boot says something, a rate alone does not.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::programs::{self, LOADER, dynamic};
use super::rounds::{median, ratio};
use super::{Bench, Outcome, judge};
use crate::{Result, files, process, tools};

const LIMIT: Duration = Duration::from_secs(5400);
const SCRIPT: &str = concat!(include_str!("ublk-servers.sh"), include_str!("ublk-speed.sh"));
/// Queues of each device.
const QUEUES: u32 = 2;
/// The version that is built.
const RUBLK: &str = "0.2.15";

/// Ours, and what it is compared with.
const PAIRS: [(&str, &str); 8] = [
    ("null", "rublk-null"),
    ("memory", "rublk-null"),
    ("file", "rublk-loop"),
    ("zones", "rublk-zoned"),
    ("memory", "null_blk"),
    ("memory", "brd"),
    ("file", "null_blk"),
    ("zones", "null_blk-zoned"),
];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let program = programs::measured(&bench.cache, "f2fs-cli", "f2fs")?;
    let peer = rublk(bench);
    let mut files = dynamic(&["fio"])?;
    match &peer {
        Ok(path) => files.extend(programs::with_libraries(path)?),
        Err(error) => println!("    without rublk: {error:#}"),
    }
    let mut boot = bench.guest.boot("ublk-speed").processors(2).memory(5120).program(&program);
    for file in &files {
        boot = boot.program(file);
    }
    let (jobs, rounds, seconds) = if bench.quick { ("1", 1, 1) } else { ("1 2 4", 3, 2) };
    let script = format!(
        "LOADER='/bin/{LOADER} --library-path /bin'\nQUEUES={QUEUES}\nPEER={}\nJOBS='{jobs}'\nROUNDS={rounds}\n\
         SECONDS_EACH={seconds}\n{SCRIPT}",
        u8::from(peer.is_ok())
    );
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    let rates = rates(&output.log)?;
    print!("{}", table(&rates)?);
    for line in output.log.lines().filter(|line| line.starts_with("calls,")) {
        println!("    {}", calls(line)?);
    }
    Ok(Outcome {
        wall: output.wall,
        remark: format!("{} measurements", rates.values().map(BTreeMap::len).sum::<usize>()),
    })
}

/// The peer's program, built under the cache when it is not there.
pub(super) fn rublk(bench: &Bench) -> Result<PathBuf> {
    let home = bench.cache.join("rublk");
    let program = home.join("bin/rublk");
    if !program.is_file() {
        tools::require(&["clang"])?;
        println!("    building rublk {RUBLK}");
        let mut command =
            process::cargo(["install", "--quiet", "rublk", "--no-default-features", "--version", RUBLK, "--root"]);
        process::output(command.arg(&home).arg("--target-dir").arg(home.join("build")))?;
        files::remove_dir(home.join("build"))?;
    }
    // It has to start here, or it will not do so there.
    process::output(Command::new(&program).arg("--version"))?;
    Ok(program)
}

/// Requests a second of each side by its rounds, by jobs, work and size.
type Rates = BTreeMap<(u32, String), BTreeMap<String, Vec<f64>>>;

fn rates(log: &str) -> Result<Rates> {
    let mut rates = Rates::new();
    for line in log.lines().filter(|line| line.starts_with("speed,")) {
        let fields: Vec<&str> = line.split(',').collect();
        let [_, jobs, work, size, _, side, rate] = fields[..] else { bail!("not a measurement: {line}") };
        let rate: f64 = rate.parse().with_context(|| format!("no rate: {line}"))?;
        ensure!(rate > 0.0, "nothing was transferred: {line}");
        let sides = rates.entry((jobs.parse()?, format!("{work} {size}"))).or_default();
        sides.entry(side.to_owned()).or_default().push(rate);
    }
    ensure!(!rates.is_empty(), "no measurement:\n{}", log.trim());
    Ok(rates)
}

/// Medians of rates, and of the ratios of the rounds.
fn table(rates: &Rates) -> Result<String> {
    let mut table = String::new();
    for ((jobs, work), sides) in rates {
        let _ = writeln!(table, "    {work}, {jobs} jobs:");
        for (ours, other) in PAIRS {
            let (Some(mine), Some(theirs)) = (sides.get(ours), sides.get(other)) else { continue };
            let _ = writeln!(
                table,
                "      {ours:>6} {:>8.0}/s by {other:<14} {:>8.0}/s: {}",
                median(mine.clone())?,
                median(theirs.clone())?,
                ratio(mine, theirs)?
            );
        }
    }
    Ok(table)
}

/// A line of the script on system calls, in words.
pub(super) fn calls(line: &str) -> Result<String> {
    let fields: Vec<&str> = line.split(',').collect();
    let [_, side, work, calls, requests] = fields[..] else { bail!("not a count: {line}") };
    let (calls, requests): (f64, f64) = (calls.parse()?, requests.parse()?);
    ensure!(calls > 0.0 && requests > 0.0, "nothing was counted: {line}");
    Ok(format!("{side}, {work} 4k: {:.3} system calls for a request ({requests} requests)", calls / requests))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_rounds() {
        let log = "speed,1,randread,4k,1,memory,30\nspeed,1,randread,4k,1,brd,60\nspeed,1,randread,4k,2,memory,8\n\
                   speed,1,randread,4k,2,brd,10\nspeed,1,randread,4k,3,memory,9\nspeed,1,randread,4k,3,brd,10\n";
        let rates = rates(log).unwrap();
        let table = table(&rates).unwrap();
        assert!(table.contains("by brd                  10/s: 0.80 (0.50 to 0.90)"), "{table}");
        assert!(super::rates("speed,1,randread,4k,1,memory,0").is_err());
        assert!(super::rates("nothing").is_err());
        assert!(calls("calls,memory,randread,10,100").unwrap().contains("0.100 system calls"));
        assert!(calls("calls,memory,randread,0,100").is_err());
    }
}
