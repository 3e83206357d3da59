//! NVMe namespaces by their own commands, past the kernel's block layer: sectors of 512 and 4096 bytes, the device test
//! suite on each, the commands that the kernel's trace saw, a volume that the kernel mounts by its block device, and a
//! namespace with a bad sector.

use std::time::Duration;

use super::machine::Bus;
use super::programs::{self, LOADER, dynamic};
use super::{Bench, Outcome, judge};
use crate::{Result, files};

const LIMIT: Duration = Duration::from_secs(1200);
const SCRIPT: &str = include_str!("pass-through.sh");
const PARTS: [&str; 4] = ["promises", "commands", "volume", "refusals"];

/// Serial number, bus, MiB. The first two have the size that the test suite wants.
const DISKS: [(&str, Bus, u64); 4] =
    [("small", Bus::Nvme, 8), ("large", Bus::Nvme4096, 8), ("volume", Bus::Nvme4096, 256), ("bad", Bus::NvmeBad, 64)];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let promises = programs::test(&bench.cache, "f2fs-uring", "promises")?;
    let mut boot = bench.guest.boot("pass-through").processors(2).program(&promises);
    for (name, bus, mib) in DISKS {
        let image = bench.image(&format!("pass-through-{name}"));
        files::make_sparse(&image, mib << 20)?;
        boot = boot.disk(&image, bus, name);
    }
    for file in dynamic(&["fsck.f2fs"])? {
        boot = boot.program(&file);
    }
    let scale = bench.scale("small");
    let script = format!("LOADER='/bin/{LOADER} --library-path /bin'\nSCALE={scale}\n{SCRIPT}");
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded_with_refusals(&output)?;
    judge::happened(&output, &PARTS)?;
    for line in output.log.lines().filter(|line| line.starts_with("promises ")) {
        println!("    {line}");
    }
    let mut paths = 0;
    for (made, mounted) in [("made", "mounted"), ("endured.made", "endured")] {
        let made = fs_err::read_to_string(output.share.join(made))?;
        let mounted = bench.here.guest_manifest(&output.share, mounted)?;
        judge::same("by pass-through", ("the library", &made), ("the kernel", &mounted))?;
        paths += made.lines().count();
    }
    Ok(Outcome { wall: output.wall, remark: format!("{paths} paths, the same in the kernel and here") })
}
