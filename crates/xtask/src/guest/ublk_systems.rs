//! File systems of Linux on devices of `f2fs ublk`: ext4, XFS, Btrfs on a plain device and on zones, F2FS on zones with
//! less capacity than size, and zonefs. Each is written and changed in two mounts, and is the same in a third.

use std::time::Duration;

use super::programs::{LOADER, dynamic};
use super::{Bench, Outcome, judge};
use crate::{Result, tools};

const LIMIT: Duration = Duration::from_secs(1800);
const SCRIPT: &str = include_str!("ublk-systems.sh");
/// The parts of the script, as each says at its end.
const PARTS: [&str; 6] = ["ext4", "XFS", "Btrfs", "Btrfs on zones", "F2FS on zones", "zonefs"];
const PROGRAMS: [&str; 5] = ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mkfs.f2fs", "blkzone"];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    tools::require(&PROGRAMS)?;
    let mut boot = bench.guest.boot("ublk-systems").processors(2).memory(4096).modules(&["xfs", "btrfs", "zonefs"]);
    for file in &dynamic(&PROGRAMS)? {
        boot = boot.program(file);
    }
    let output = boot.run(&format!("LOADER='/bin/{LOADER} --library-path /bin'\n{SCRIPT}"), LIMIT)?;
    judge::succeeded(&output)?;
    judge::happened(&output, &PARTS)?;
    Ok(Outcome { wall: output.wall, remark: format!("{} file systems", PARTS.len()) })
}
