//! Volumes on zones, with zones of the kernel's `null_blk`: the library makes what mkfs.f2fs makes; the kernel mounts
//! it, fills it and changes it; the library reads and checks it, and goes on with it; and so does the kernel.

use std::time::Duration;

use super::judge;
use super::programs::{LOADER, dynamic};
use super::{Bench, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(900);
const SCRIPT: &str = include_str!("zoned.sh");

/// A volume: its name; MiB of its conventional device (0: none); of its zoned device MiB in all, in a zone, and that
/// can be written in a zone; zones of that without a write pointer.
const VOLUMES: [(&str, [u32; 5]); 3] = [
    // The zones begin where the main area does.
    ("border", [37, 512, 4, 4, 0]),
    ("pair", [129, 512, 4, 4, 0]),
    ("capacity", [64, 640, 4, 3, 0]),
];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let mut boot = bench.guest.boot("zoned");
    let mut files = dynamic("mkfs.f2fs")?;
    files.extend(dynamic("fsck.f2fs")?);
    files.extend(dynamic("f2fs_io")?);
    files.sort();
    files.dedup();
    for file in &files {
        boot = boot.program(file);
    }
    let scale = bench.scale("medium");
    let mut script = format!("LOADER='/bin/{LOADER} --library-path /bin'\nSCALE={scale}\n{SCRIPT}");
    // One volume shows most in the quick form.
    let volumes = || VOLUMES.iter().filter(|(name, _)| !bench.quick || *name == "capacity");
    for (name, [first, size, zone, capacity, conventional]) in volumes() {
        script += &format!("volume {name} {first} {size} {zone} {capacity} {conventional}\ncuts {name}\n");
    }
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    let mut paths = 0;
    for (name, _) in volumes() {
        for state in ["made", "changed", "ours", "both", "cut"] {
            let kernel = bench.here.guest_manifest(&output.share, &format!("{name}.{state}"))?;
            let here = std::fs::read_to_string(output.share.join(format!("{name}.{state}.here")))?;
            judge::same(name, ("the kernel", &kernel), ("this project", &here))?;
            paths += kernel.lines().count();
        }
    }
    Ok(Outcome {
        wall: output.wall,
        remark: format!("{paths} paths on {} zoned volumes, the same in the kernel and here", volumes().count()),
    })
}
