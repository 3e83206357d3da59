//! Block devices served by `f2fs ublk` in the guest: data through the kernel's block layer, file systems on them, zones
//! beside `null_blk`'s, a server that is killed under load and its successor, devices that are slow, that fail, and
//! that log their changes, servers that are told to stop, and devices of a user who is not root.

use std::time::Duration;

use super::judge;
use super::programs::{LOADER, dynamic};
use super::{Bench, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(3600);
const SCRIPT: &str = include_str!("ublk.sh");

/// The parts of the script, as each says at its end.
const PARTS: [&str; 9] =
    ["refusals", "unprivileged", "memory", "file system", "zones", "recovery", "laboratory", "stop", "speed"];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let mut boot = bench.guest.boot("ublk").processors(2);
    for file in &dynamic(&["fio", "blkzone", "mkfs.f2fs", "mkfs.ext4", "setpriv"])? {
        boot = boot.program(file);
    }
    // The rates are no judge: the short form takes none.
    let (steps, every, seconds, jobs) = if bench.quick { (300, 5, 1, "") } else { (1_000_000, 10_000, 3, "1 2 4") };
    let script = format!(
        "LOADER='/bin/{LOADER} --library-path /bin'\nSTEPS={steps}\nEVERY={every}\nSECONDS_EACH={seconds}\nJOBS='{jobs}'\n{SCRIPT}"
    );
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded_with_refusals(&output)?;
    judge::happened(&output, &PARTS)?;
    for line in output.log.lines().filter(|line| line.starts_with("speed ") || line.contains(" entries")) {
        println!("    {line}");
    }
    Ok(Outcome { wall: output.wall, remark: format!("{} parts, {steps} commands to zones", PARTS.len()) })
}
