//! Volumes on zones, on devices of the kernel's `null_blk` and on NVMe's zoned namespaces: the library makes what
//! mkfs.f2fs makes; the kernel mounts it, fills it and changes it; the library reads and checks it, and goes on with it;
//! and so does the kernel. Then either side is cut off hard, and the other one recovers.

use std::time::Duration;

use super::judge;
use super::machine::Bus;
use super::programs::{LOADER, dynamic};
use super::{Bench, Outcome};
use crate::{Result, files};

const LIMIT: Duration = Duration::from_secs(3600);
const SCRIPT: &str = include_str!("zoned.sh");

/// A volume on devices in the guest's memory: its name; MiB of its conventional device (0: none); of its zoned device MiB
/// in all, in a zone, and that can be written in a zone; zones of that without a write pointer; zones that may be open,
/// and active (0: any number).
const IN_MEMORY: [(&str, [u32; 7]); 4] = [
    // The zones begin where the main area does.
    ("border", [37, 512, 4, 4, 0, 0, 0]),
    ("pair", [129, 512, 4, 4, 0, 0, 0]),
    ("capacity", [64, 640, 4, 3, 0, 0, 0]),
    ("limits", [64, 640, 4, 3, 0, 8, 10]),
];

/// A volume on NVMe namespaces, the second of them with zones: its name, and the bytes of their sectors.
const NVME: [(&str, u32); 2] = [("zns-512", 512), ("zns-4096", 4096)];
/// MiB of the two namespaces.
const FRONT: u64 = 64;
const ZONED: u64 = 640;

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let mut boot = bench.guest.boot("zoned");
    let files = dynamic(&["mkfs.f2fs", "fsck.f2fs", "f2fs_io"])?;
    for file in &files {
        boot = boot.program(file);
    }
    let scale = bench.scale("medium");
    let mut script = format!("LOADER='/bin/{LOADER} --library-path /bin'\nSCALE={scale}\n{SCRIPT}");
    let mut names = Vec::new();
    // One volume shows most in the quick form.
    for (name, numbers) in IN_MEMORY.iter().filter(|(name, _)| !bench.quick || *name == "limits") {
        let numbers = numbers.map(|number| number.to_string()).join(" ");
        script += &format!("nulls {name} {numbers}\nvolume\ncuts\ngone {name}\n");
        names.push(*name);
    }
    for (name, sector) in NVME.iter().filter(|_| !bench.quick) {
        let front = if *sector == 512 { Bus::Nvme } else { Bus::Nvme4096 };
        for (bus, part, mib) in [(front, "front", FRONT), (Bus::NvmeZoned(*sector), "zones", ZONED)] {
            let image = bench.image(&format!("zoned-{part}-{sector}"));
            files::make_sparse(&image, mib << 20)?;
            boot = boot.disk(&image, bus, &format!("{part}-{sector}"));
        }
        script += &format!("on {name} $(device front-{sector}) $(device zones-{sector})\nvolume\ncuts\n");
        names.push(*name);
    }
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded_but_for_read_ahead(&output)?;
    let mut paths = 0;
    for name in &names {
        for state in ["made", "changed", "ours", "both", "cut"] {
            let kernel = bench.here.guest_manifest(&output.share, &format!("{name}.{state}"))?;
            let here = fs_err::read_to_string(output.share.join(format!("{name}.{state}.here")))?;
            judge::same(name, ("the kernel", &kernel), ("this project", &here))?;
            paths += kernel.lines().count();
        }
    }
    Ok(Outcome {
        wall: output.wall,
        remark: format!("{paths} paths on {} zoned volumes, the same in the kernel and here", names.len()),
    })
}
