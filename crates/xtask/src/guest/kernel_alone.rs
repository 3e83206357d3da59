//! The kernel's own view is stable: what it makes, it shows again after a remount, and `fsck.f2fs` finds nothing. Without
//! that, no other comparison would mean anything.

use std::time::Duration;

use super::judge;
use super::machine::Bus;
use super::{Bench, EXTRA_FEATURES, Outcome};
use crate::Result;

const SCRIPT: &str = "
set -e
for name in plain extra; do
    disk=$(device $name)
    mount -t f2fs $disk /mnt
    guest-agent make --scale medium /mnt
    guest-agent change --scale medium /mnt
    guest-agent manifest /mnt > /share/$name.before
    umount /mnt
    mount -t f2fs -o ro $disk /mnt
    guest-agent manifest /mnt --defer /share/$name.after.large > /share/$name.after
    umount /mnt
done
";

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let disks = [("plain", Bus::VirtioBlk, ""), ("extra", Bus::Nvme, EXTRA_FEATURES)];
    let mut boot = bench.guest.boot("kernel-alone");
    for (name, bus, features) in disks {
        let image = bench.image(&format!("kernel-alone-{name}"));
        f2fs_oracle::mkfs_sized(&image, 1 << 30, &["-O", features])?;
        boot = boot.disk(&image, bus, name);
    }
    let output = boot.run(SCRIPT, Duration::from_secs(600))?;
    judge::succeeded(&output)?;
    let mut paths = 0;
    for (name, ..) in disks {
        let before = judge::guest_manifest(&output.share, &format!("{name}.before"))?;
        let after = judge::guest_manifest(&output.share, &format!("{name}.after"))?;
        judge::same(name, ("the making mount", &before), ("the later mount", &after))?;
        judge::fsck_clean(&bench.image(&format!("kernel-alone-{name}")))?;
        paths += after.lines().count();
    }
    Ok(Outcome { wall: output.wall, remark: format!("{paths} paths, the same after a remount") })
}
