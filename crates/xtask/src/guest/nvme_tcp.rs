//! A volume on a namespace over TCP, whose target goes away in the middle of syncs: it comes back, or does not, and the
//! kernel gives up at the time that it was told. What was synced is there afterwards; what fails says so; nobody waits
//! for longer.

use std::fs::{self};
use std::time::Duration;

use super::machine::Bus;
use super::{Bench, Outcome, judge};
use crate::{Result, files};

const LIMIT: Duration = Duration::from_secs(900);
const SCRIPT: &str = include_str!("nvme-tcp.sh");
const PARTS: [&str; 4] = ["back", "fails fast", "gone", "pass-through"];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let image = bench.image("nvme-tcp");
    files::make_sparse(&image, 256 << 20)?;
    let boot = bench.guest.boot("nvme-tcp").processors(2).disk(&image, Bus::VirtioBlk, "medium");
    let output = boot.run(SCRIPT, LIMIT)?;
    judge::succeeded_with_refusals(&output)?;
    judge::happened(&output, &PARTS)?;
    for line in output.log.lines().filter(|line| line.starts_with("failed after") || line.contains("synced")) {
        println!("    {line}");
    }
    let read = |name: &str| fs::read_to_string(output.share.join(name));
    judge::same("over TCP", ("the library", &read("made")?), ("the kernel", &read("mounted")?))?;
    judge::fsck_clean(&image)?;
    Ok(Outcome { wall: output.wall, remark: "a target that comes back, one that does not, and limits of time".into() })
}
