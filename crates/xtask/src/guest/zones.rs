//! The zone state machine of `f2fs-device` beside the kernel's: the guest makes zoned `null_blk` devices with different
//! sizes and limits, and gives each and the library's the same commands and writes, through the block layer. The
//! library's report is compared after each, blkzone's after some.

use std::time::Duration;

use super::judge;
use super::programs::{LOADER, dynamic};
use super::{Bench, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(3600);

/// A device: MiB in all, in a zone, and that can be written in a zone; conventional zones; zones open and active at
/// most.
const DEVICES: [(&str, [u32; 6]); 5] = [
    ("plain", [16, 1, 1, 0, 0, 0]),
    // The last zone is shorter; the kernel wants all of it to be written then.
    ("parts", [23, 2, 2, 2, 0, 0]),
    ("open", [12, 1, 1, 1, 3, 0]),
    ("active", [12, 1, 1, 0, 0, 4]),
    ("limits", [20, 2, 1, 1, 2, 3]),
];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let (steps, every) = if bench.quick { (300, 5) } else { (200_000, 2000) };
    let mut boot = bench.guest.boot("zones");
    for file in dynamic(&["blkzone"])? {
        boot = boot.program(&file);
    }
    let output = boot.run(&script(steps, every), LIMIT)?;
    judge::succeeded_with_refusals(&output)?;
    let commands = DEVICES.len() * steps;
    let remark = format!("{commands} commands to {} devices, the same in null_blk and here", DEVICES.len());
    Ok(Outcome { wall: output.wall, remark })
}

fn script(steps: usize, every: usize) -> String {
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
             --retired {} {} --steps {steps} --blkzone-every {every} --seed {seed}\n",
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
