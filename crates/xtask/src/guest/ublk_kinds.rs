//! Every kind of device of `f2fs ublk`: memory, a file, zones with less capacity than size, conventional zones, user copy,
//! without a copy where the kernel has that (the refusal where it has not), slow ones, such with faults, recorded ones. fio writes, reads and compares on each, and the test suite of block devices
//! runs on each that takes writes anywhere.

use std::time::Duration;

use anyhow::ensure;

use super::programs::{self, LOADER, dynamic};
use super::{Bench, Outcome, judge};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(1800);
const SCRIPT: &str = include_str!("ublk-kinds.sh");
/// The parts of the script, as each says at its end.
const PARTS: [&str; 9] =
    ["memory", "file", "zones", "conventional zones", "user copy", "without a copy", "slow", "faults", "recorded"];
/// The kinds that the test suite runs on with every kernel.
const SUITES: usize = 6;
/// The ways without a copy, each of which it runs on if the kernel has it.
const WITHOUT_A_COPY: usize = 3;

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let promises = programs::test(&bench.cache, "f2fs-uring", "promises")?;
    let mut boot = bench.guest.boot("ublk-kinds").processors(2).program(&promises);
    for file in dynamic(&["fio"])? {
        boot = boot.program(&file);
    }
    let size = if bench.quick { "4m" } else { "32m" };
    let script = format!("LOADER='/bin/{LOADER} --library-path /bin'\nSIZE={size}\n{SCRIPT}");
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded_with_refusals(&output)?;
    judge::happened(&output, &PARTS)?;
    let suites: Vec<&str> = output.log.lines().filter(|line| line.starts_with("promises ")).collect();
    let copies: Vec<&str> = output.log.lines().filter(|line| line.starts_with("copies: ")).collect();
    for line in suites.iter().chain(&copies) {
        println!("    {line}");
    }
    ensure!(copies.len() == WITHOUT_A_COPY, "without a copy: {copies:?}");
    let kinds = SUITES + copies.iter().filter(|line| !line.contains("refused")).count();
    ensure!(
        suites.len() == kinds && !suites.iter().any(|line| line.ends_with(" 0 tests")),
        "the suite ran on {suites:?}"
    );
    Ok(Outcome { wall: output.wall, remark: format!("{} kinds, the device suite on {kinds}", PARTS.len()) })
}
