//! What a copy costs: rates of devices of files by each way of data, for requests of 4 to 256 KiB, at a depth of 32, beside
//! rublk's with and without a copy, in one boot, in turns. The files lie in memory, on a file system and on disks of it.
//!
//! `selective:4K` asks the driver for the pages of each request; where it overtakes `user`, there is the border of a
//! selective path.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::programs::{self, LOADER, dynamic};
use super::rounds::{median, ratio};
use super::ublk_speed::{calls, rublk};
use super::{Bench, Outcome, judge};
use crate::{Result, process};

const LIMIT: Duration = Duration::from_secs(5400);
const SCRIPT: &str = concat!(include_str!("ublk-servers.sh"), include_str!("ublk-copies.sh"));
/// Those that are measured; the first is what the others are compared with.
const WAYS: [&str; 4] = ["kernel", "user", "none", "selective:4K"];
const SIZES: &str = "4k 16k 64k 256k";

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let program = programs::measured(&bench.cache, "f2fs-cli", "f2fs")?;
    let mut files = dynamic(&["fio"])?;
    let mut boot = bench.guest.boot("ublk-copies").processors(2).memory(5120).program(&program);
    let peer = rublk(bench);
    // With a copy, and without one if it can do that.
    let mut peers = 0;
    match &peer {
        Ok(path) => {
            files.extend(programs::with_libraries(path)?);
            let help = process::output(Command::new(path).args(["add", "loop", "--help"]))?;
            peers = if String::from_utf8_lossy(&help).contains("--zero-copy") { 2 } else { 1 };
        }
        Err(error) => println!("    without rublk: {error:#}"),
    }
    for file in &files {
        boot = boot.program(file);
    }
    let (sizes, rounds, seconds) = if bench.quick { ("4k 64k 256k", 1, 1) } else { (SIZES, 3, 1) };
    let script = format!(
        "LOADER='/bin/{LOADER} --library-path /bin'\nPEERS={peers}\nWAYS='{}'\nSIZES='{sizes}'\nROUNDS={rounds}\n\
         SECONDS_EACH={seconds}\n{SCRIPT}",
        WAYS.join(" ")
    );
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    for line in output.log.lines().filter(|line| line.contains("needs Linux")) {
        println!("    {line}");
    }
    let rates = rates(&output.log)?;
    print!("{}", table(&rates)?);
    for line in output.log.lines().filter(|line| line.starts_with("calls,")) {
        println!("    {}", calls(line)?);
    }
    let measured = rates.values().flat_map(BTreeMap::values).map(Vec::len).sum::<usize>();
    Ok(Outcome { wall: output.wall, remark: format!("{measured} measurements") })
}

/// Requests a second of each side by its rounds, by bytes, work and medium.
type Rates = BTreeMap<(u64, String, String), BTreeMap<String, Vec<f64>>>;

fn rates(log: &str) -> Result<Rates> {
    let mut rates = Rates::new();
    for line in log.lines().filter(|line| line.starts_with("copy,")) {
        let fields: Vec<&str> = line.split(',').collect();
        let [_, size, work, _, side, rate] = fields[..] else { bail!("not a measurement: {line}") };
        let rate: f64 = rate.parse().with_context(|| format!("no rate: {line}"))?;
        ensure!(rate > 0.0, "nothing was transferred: {line}");
        let kibibytes: u64 = size.trim_end_matches('k').parse().with_context(|| format!("no size: {line}"))?;
        let (medium, side) = side.split_once(':').with_context(|| format!("no medium: {line}"))?;
        let sides = rates.entry((kibibytes, work.to_owned(), medium.to_owned())).or_default();
        sides.entry(side.to_owned()).or_default().push(rate);
    }
    ensure!(!rates.is_empty(), "no measurement:\n{}", log.trim());
    Ok(rates)
}

/// The rate by the first way, and the medians of the others' ratios to it in the same rounds.
fn table(rates: &Rates) -> Result<String> {
    let mut table = String::new();
    for ((size, work, medium), sides) in rates {
        let first = sides.get(WAYS[0]).with_context(|| format!("nothing to compare with at {size} KiB"))?;
        let _ = write!(table, "    {size:>4} KiB {work:<9} {medium:<5} {} {:>7.0}/s", WAYS[0], median(first.clone())?);
        for (side, rates) in sides.iter().filter(|(side, _)| *side != WAYS[0]) {
            let _ = write!(table, ", {side} {}", ratio(rates, first)?);
        }
        table.push('\n');
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_rounds() {
        let log = "copy,4k,randread,1,brd:kernel,30\ncopy,4k,randread,1,brd:none,15\ncopy,4k,randread,2,brd:kernel,10\n\
                   copy,4k,randread,2,brd:none,9\ncopy,4k,randread,3,brd:kernel,10\ncopy,4k,randread,3,brd:none,8\n";
        let table = table(&rates(log).unwrap()).unwrap();
        assert!(table.contains("brd   kernel      10/s, none 0.80 (0.50 to 0.90)"), "{table}");
        assert!(rates("copy,4k,randread,1,brd:kernel,0").is_err());
        assert!(rates("nothing").is_err());
    }
}
