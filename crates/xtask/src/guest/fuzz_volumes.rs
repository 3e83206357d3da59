//! Small volumes made by the kernel, for the fuzz targets to damage. With `--keep` the images stay;
//! `fuzz/src/packed.rs` says how they are packed.

use std::time::Duration;

use super::judge;
use super::machine::Bus;
use super::{Bench, EXTRA_FEATURES, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(600);
/// Bytes of an image.
const BYTES: u64 = 64 << 20;
/// The volumes, and the features of each.
const VOLUMES: [(&str, &[&str]); 4] =
    [("tree", &[]), ("aged", &["-O", EXTRA_FEATURES]), ("synced", &[]), ("synced-extra", &["-O", EXTRA_FEATURES])];

/// All of them get a tree. One is aged: overwritten here and there when it is almost full, and emptied. On two, files
/// are synced one by one after the last checkpoint, and then the machine is reset. Data is zeros.
const SCRIPT: &str = "
set -e
tree() {
    mkdir -p $1/dir/below $1/big $1/empty
    i=0
    while [ $i -lt 250 ]; do : > \"$1/big/a name of some length $i\"; i=$((i + 1)); done
    i=0
    while [ $i -lt 200 ]; do rm \"$1/big/a name of some length $i\"; i=$((i + 3)); done
    echo small > $1/dir/small
    ln $1/dir/small $1/dir/below/hard
    ln -s dir/small $1/soft
    mkfifo $1/dir/fifo
    mknod $1/dir/device b 8 300
    dd status=none if=/dev/zero of=$1/dir/large bs=4096 count=1200
    dd status=none if=/dev/zero of=$1/dir/holes bs=4096 count=3 seek=3000
    dd status=none if=/dev/zero of=$1/dir/holes bs=4096 count=3 seek=9 conv=notrunc
    mv $1/dir/large $1/dir/moved
}
for name in tree aged synced synced-extra; do
    disk=$(device $name)
    mkdir -p /mnt/$name
    mount -t f2fs $disk /mnt/$name
    echo 3600 > /sys/fs/f2fs/${disk##*/}/cp_interval
    tree /mnt/$name
done
i=0
dd status=none if=/dev/zero of=/mnt/aged/fill bs=4096 count=2000
while [ $i -lt 60 ]; do
    dd status=none if=/dev/zero of=/mnt/aged/fill bs=4096 count=7 seek=$((i * 37 % 1900)) conv=notrunc
    dd status=none if=/dev/zero of=/mnt/aged/dir/$i bs=4096 count=$((i % 9))
    [ $((i % 10)) -ne 0 ] || sync
    i=$((i + 1))
done
dd status=none if=/dev/zero of=/mnt/aged/fill bs=4096 count=9
sync
umount /mnt/aged /mnt/tree
for name in synced synced-extra; do
    dd status=none if=/dev/zero of=/mnt/$name/dir/moved bs=4096 count=5 seek=40 conv=notrunc,fsync
    dd status=none if=/dev/zero of=/mnt/$name/dir/new bs=4096 count=30 conv=fsync
    dd status=none if=/dev/zero of=/mnt/$name/dir/far bs=4096 count=2 seek=2500 conv=fsync
    dd status=none if=/dev/zero of=/mnt/$name/dir/inline bs=100 count=2 conv=fsync
    dd status=none if=/dev/zero of=/mnt/$name/dir/holes bs=4096 count=1 seek=1500 conv=notrunc,fsync
done
dmesg > /share/dmesg
echo 0 > /share/status
echo b > /proc/sysrq-trigger
sleep 100
";

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let image = |name: &str| bench.image(&format!("fuzz-volumes-{name}"));
    let mut boot = bench.guest.boot("fuzz-volumes");
    for (name, features) in VOLUMES {
        f2fs_oracle::mkfs_sized(image(name), BYTES, features)?;
        boot = boot.disk(&image(name), Bus::VirtioBlk, name);
    }
    let output = boot.run(SCRIPT, LIMIT)?;
    judge::succeeded(&output)?;
    for (name, _) in VOLUMES {
        judge::fsck_accepted(&image(name))?;
        bench.here.check(&image(name))?;
    }
    Ok(Outcome { wall: output.wall, remark: format!("{} images, sound", VOLUMES.len()) })
}
