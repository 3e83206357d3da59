//! The library itself runs in the guest, on an NVMe block device through io_uring: it formats, fills, checks and shows
//! the device; then the kernel mounts that device, shows the same tree and changes it; then the library shows that.

use std::fs::{self};
use std::time::Duration;

use super::judge;
use super::machine::Bus;
use super::{Bench, EXTRA_FEATURES, Outcome};
use crate::{Result, files};

const LIMIT: Duration = Duration::from_secs(900);

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let image = bench.image("nvme");
    files::make_sparse(&image, 1 << 30)?;
    let output =
        bench.guest.boot("nvme").disk(&image, Bus::Nvme, "target").run(&script(bench.scale("medium")), LIMIT)?;
    judge::succeeded(&output)?;
    let read = |name: &str| fs::read_to_string(output.share.join(name));
    let made = read("made")?;
    let mounted = bench.here.guest_manifest(&output.share, "mounted")?;
    judge::same("made on NVMe", ("the library", &made), ("the kernel", &mounted))?;
    let changed = bench.here.guest_manifest(&output.share, "changed")?;
    judge::same("changed on NVMe", ("the kernel", &changed), ("the library", &read("reopened")?))?;
    judge::fsck_clean(&image)?;
    bench.here.check(&image)?;
    let here = bench.here.manifest(&image)?;
    judge::same("the device as a file", ("the guest", &changed), ("the host", &here))?;
    let paths = made.lines().count() + changed.lines().count();
    Ok(Outcome { wall: output.wall, remark: format!("{paths} paths on /dev/nvme0n1, the same in the kernel and here") })
}

fn script(scale: &str) -> String {
    format!(
        "set -e\n\
         disk=$(device target)\n\
         test $disk = /dev/nvme0n1\n\
         f2fs format $disk -O {EXTRA_FEATURES}\n\
         guest-agent make --scale {scale} --require-io-uring --image $disk\n\
         f2fs check $disk\n\
         f2fs manifest $disk > /share/made\n\
         mount -t f2fs $disk /mnt\n\
         guest-agent manifest --defer /share/mounted.large /mnt > /share/mounted\n\
         guest-agent change --scale {scale} /mnt\n\
         umount /mnt\n\
         mount -t f2fs -o ro $disk /mnt\n\
         guest-agent manifest --defer /share/changed.large /mnt > /share/changed\n\
         umount /mnt\n\
         f2fs check $disk\n\
         f2fs manifest $disk > /share/reopened\n"
    )
}
