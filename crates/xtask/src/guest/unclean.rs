//! Volumes that were not closed: the kernel's after a reset of the machine, ours after the process ended. Both sides
//! show the last checkpoint, and the same one.

use std::time::Duration;

use super::judge;
use super::machine::Bus;
use super::{Bench, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(600);

/// Passes its status on itself, since the machine is reset in the end. No checkpoint follows the `sync`: the kernel's
/// own, every minute, are put off.
const CRASH: &str = "
set -e
disk=$(device kernel)
mount -t f2fs $disk /mnt
echo 3600 > /sys/fs/f2fs/${disk##*/}/cp_interval
guest-agent make --scale small /mnt
sync
guest-agent manifest /mnt > /share/synced
guest-agent change --scale small /mnt
dmesg > /share/dmesg
echo 0 > /share/status
echo b > /proc/sysrq-trigger
sleep 100
";

/// Without recovery first, then with it: nothing was fsynced, so that it has nothing to add. The second mount writes.
const SHOW: &str = "
set -e
for name in kernel library; do
    disk=$(device $name)
    mount -t f2fs -o ro,norecovery $disk /mnt
    guest-agent manifest /mnt > /share/$name
    umount /mnt
    mount -t f2fs $disk /mnt
    guest-agent manifest /mnt > /share/$name.recovered
    guest-agent change --scale small /mnt
    guest-agent manifest /mnt > /share/$name.changed
    umount /mnt
done
";

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let [kernel, library] = ["kernel", "library"].map(|name| bench.image(&format!("unclean-{name}")));
    f2fs_oracle::mkfs_sized(&kernel, 256 << 20, &[])?;
    bench.here.format(&library, "256M", &[])?;

    let crash = bench.guest.boot("unclean-crash").disk(&kernel, Bus::VirtioBlk, "kernel").run(CRASH, LIMIT)?;
    judge::succeeded(&crash)?;
    bench.here.abandon("small", &library)?;
    let mut wall = crash.wall;
    let mut here = Vec::new();
    for image in [&kernel, &library] {
        judge::fsck_accepted(image)?;
        bench.here.check(image)?;
        here.push(bench.here.manifest(image)?);
    }

    let boot = bench.guest.boot("unclean").disk(&kernel, Bus::VirtioBlk, "kernel");
    let output = boot.disk(&library, Bus::Nvme, "library").run(SHOW, LIMIT)?;
    judge::succeeded(&output)?;
    wall += output.wall;
    for (index, (name, image)) in [("kernel", &kernel), ("library", &library)].into_iter().enumerate() {
        for view in [name.to_owned(), format!("{name}.recovered")] {
            let there = bench.here.guest_manifest(&output.share, &view)?;
            judge::same(&view, ("this project", &here[index]), ("the kernel", &there))?;
        }
        judge::fsck_clean(image)?;
        bench.here.check(image)?;
        let changed = bench.here.guest_manifest(&output.share, &format!("{name}.changed"))?;
        judge::same(name, ("the kernel", &changed), ("this project", &bench.here.manifest(image)?))?;
    }
    let synced = bench.here.guest_manifest(&crash.share, "synced")?;
    judge::same("after a reset", ("the kernel before it", &synced), ("this project", &here[0]))?;
    let paths: usize = here.iter().map(|manifest| manifest.lines().count()).sum();
    Ok(Outcome { wall, remark: format!("{paths} paths of the last checkpoints, the same on both sides") })
}
