//! Volumes on which files were synced and that were not closed: the kernel's after a reset of the machine, ours after the
//! process ended. Each side recovers what either synced, and the same.

use std::fs;
use std::time::Duration;

use anyhow::{Context, bail};

use super::judge;
use super::machine::Bus;
use super::{Bench, EXTRA_FEATURES, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(600);

/// The images: who makes and syncs, and with which features.
const IMAGES: [(&str, bool, bool); 4] =
    [("kernel", true, false), ("kernel-extra", true, true), ("library", false, false), ("library-extra", false, true)];

/// The kernel makes and syncs on all its disks, then the machine is reset. Its own checkpoints, every minute, are put off.
const CRASH: &str = "
set -e
for name in kernel kernel-extra; do
    disk=$(device $name)
    mkdir -p /mnt/$name
    mount -t f2fs $disk /mnt/$name
    echo 3600 > /sys/fs/f2fs/${disk##*/}/cp_interval
    guest-agent make --scale small /mnt/$name
    sync
    guest-agent sync --scale small /mnt/$name
done
dmesg > /share/dmesg
echo 0 > /share/status
echo b > /proc/sysrq-trigger
sleep 100
";

/// Without recovery first, then with it, which writes.
const SHOW: &str = "
set -e
for name in kernel kernel-extra library library-extra; do
    disk=$(device $name)
    mount -t f2fs -o ro,norecovery $disk /mnt
    guest-agent manifest /mnt > /share/$name.checkpoint
    umount /mnt
    mount -t f2fs $disk /mnt
    guest-agent manifest /mnt > /share/$name.recovered
    umount /mnt
done
";

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let image = |name: &str| bench.image(&format!("rolled-forward-{name}"));
    let mut crash = bench.guest.boot("rolled-forward-crash");
    for (name, kernel, extra) in IMAGES {
        let features: &[&str] = if extra { &["-O", EXTRA_FEATURES] } else { &[] };
        if kernel {
            f2fs_oracle::mkfs_sized(image(name), 256 << 20, features)?;
            crash = crash.disk(&image(name), Bus::VirtioBlk, name);
        } else {
            bench.here.format(&image(name), "256M", features)?;
            bench.here.script("make", "small", &image(name))?;
            bench.here.script("sync", "small", &image(name))?;
        }
    }
    let output = crash.run(CRASH, LIMIT)?;
    judge::succeeded(&output)?;
    let mut wall = output.wall;

    let mut here = Vec::new();
    let mut show = bench.guest.boot("rolled-forward");
    for (name, _, _) in IMAGES {
        let image = image(name);
        judge::fsck_accepted(&image)?;
        bench.here.check(&image)?;
        let before = fs::read(&image)?;
        let views = [bench.here.checkpoint_manifest(&image)?, bench.here.manifest(&image)?];
        if views[0] == views[1] || !views[1].contains("/new-large") || views[1].contains("/not-synced") {
            bail!("{name}: not what was synced was recovered:\n{}", views[1]);
        }
        if fs::read(&image)? != before {
            bail!("{name}: showing the recovered tree wrote to the image");
        }
        // Recovered for good here, on a copy.
        let copy = bench.image(&format!("rolled-forward-{name}-here"));
        fs::copy(&image, &copy).with_context(|| format!("cannot copy {}", image.display()))?;
        bench.here.mkdir(&copy, "/opened")?;
        bench.here.check(&copy)?;
        judge::fsck_clean(&copy)?;
        let recovered = bench.here.manifest(&copy)?;
        let same: String =
            recovered.lines().filter(|line| !line.ends_with("\t/opened")).map(|line| format!("{line}\n")).collect();
        judge::same(name, ("a reader", &strip_root(&views[1])), ("a writer", &strip_root(&same)))?;
        here.push(views);
        show = show.disk(&image, Bus::VirtioBlk, name);
    }
    let output = show.run(SHOW, LIMIT)?;
    judge::succeeded(&output)?;
    wall += output.wall;
    let mut paths = 0;
    for ((name, _, _), views) in IMAGES.iter().zip(&here) {
        for (view, here) in ["checkpoint", "recovered"].iter().zip(views) {
            let view = format!("{name}.{view}");
            let there = bench.here.guest_manifest(&output.share, &view)?;
            judge::same(&view, ("this project", here), ("the kernel", &there))?;
            paths += here.lines().count();
        }
        judge::fsck_clean(&image(name))?;
        bench.here.check(&image(name))?;
    }
    Ok(Outcome { wall, remark: format!("{paths} paths before and after recovery, the same on both sides") })
}

/// Without the root directory, which has a link more with a new directory in it.
fn strip_root(manifest: &str) -> String {
    manifest.lines().filter(|line| !line.ends_with("\t/")).map(|line| format!("{line}\n")).collect()
}
