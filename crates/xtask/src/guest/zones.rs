//! The zone state machine of `f2fs-device` beside the kernel's: the guest makes zoned `null_blk` devices with different sizes and
//! limits, and gives each and the library's the same commands and writes, through blkzone and the block layer.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use super::judge;
use super::{Bench, Outcome};
use crate::{Result, process, tools};

const LIMIT: Duration = Duration::from_secs(900);

/// Dynamic programs are started by it, since it does not lie where they look for it.
const LOADER: &str = "ld-linux-x86-64.so.2";

/// A device: MiB in all, in a zone, and that can be written in a zone; conventional zones; zones open and active at most.
const DEVICES: [(&str, [u32; 6]); 5] = [
    ("plain", [16, 1, 1, 0, 0, 0]),
    // The last zone is shorter; the kernel wants all of it to be written then.
    ("parts", [23, 2, 2, 2, 0, 0]),
    ("open", [12, 1, 1, 1, 3, 0]),
    ("active", [12, 1, 1, 0, 0, 4]),
    ("limits", [20, 2, 1, 1, 2, 3]),
];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let steps = if bench.quick { 60 } else { 400 };
    let mut boot = bench.guest.boot("zones");
    for file in dynamic("blkzone")? {
        boot = boot.program(&file);
    }
    let output = boot.run(&script(steps), LIMIT)?;
    judge::succeeded_with_refusals(&output)?;
    let commands = DEVICES.len() * steps;
    let remark = format!("{commands} commands to {} devices, the same in null_blk and here", DEVICES.len());
    Ok(Outcome { wall: output.wall, remark })
}

/// A program with its loader and libraries: the guest has none.
fn dynamic(program: &str) -> Result<Vec<PathBuf>> {
    let path = tools::find(program).with_context(|| format!("{program} is not installed"))?;
    let needed = process::output(Command::new("ldd").arg(&path))?;
    let needed = String::from_utf8_lossy(&needed);
    let files = needed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(std::iter::once(path.clone()).chain(files).collect())
}

fn script(steps: usize) -> String {
    let mut script = String::from(
        "set -e\n\
         mount -t configfs none /sys/kernel/config\n\
         # make NAME MIB ZONE CAPACITY CONVENTIONAL OPEN ACTIVE\n\
         make() {\n\
             at=/sys/kernel/config/nullb/$1\n\
             mkdir $at\n\
             echo $2 > $at/size; echo 4096 > $at/blocksize; echo 1 > $at/zoned\n\
             echo $3 > $at/zone_size; echo $4 > $at/zone_capacity; echo $5 > $at/zone_nr_conv\n\
             echo $6 > $at/zone_max_open; echo $7 > $at/zone_max_active\n\
             echo 1 > $at/power\n\
             # In sectors.\n\
             echo $((($5 + 1) * $3 * 2048)) > $at/zone_readonly\n\
             echo $((($5 + 2) * $3 * 2048)) > $at/zone_offline\n\
             test -b /dev/$1\n\
         }\n",
    );
    for (seed, (name, [size, zone, capacity, conventional, open, active])) in DEVICES.iter().enumerate() {
        let blocks = |mib: &u32| mib * 256;
        script += &format!(
            "make {name} {size} {zone} {capacity} {conventional} {open} {active}\n\
             guest-agent zones /dev/{name} --blkzone '/bin/{} --library-path /bin /bin/blkzone' --blocks {} \
             --zone-blocks {} --capacity {} --conventional {conventional} --max-open {open} --max-active {active} \
             --retired {} {} --steps {steps} --seed {seed}\n",
            LOADER,
            blocks(size),
            blocks(zone),
            blocks(capacity),
            conventional + 1,
            conventional + 2,
        );
    }
    script
}
