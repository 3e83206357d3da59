//! `f2fs put -r` and `f2fs get -r` in the guest, where they run as root on a file system that keeps every kind of file
//! and attribute (tmpfs): nothing is lost on the way in, in the kernel's view of the volume, or on the way out.

use std::time::Duration;

use super::judge;
use super::machine::Bus;
use super::{Bench, Outcome};
use crate::{Result, files};

const LIMIT: Duration = Duration::from_secs(600);

const SCRIPT: &str = "
set -e
disk=$(device target)
mkdir -m 755 /tmp/in /tmp/out
guest-agent make --scale small /tmp/in
guest-agent manifest /tmp/in > /share/host
f2fs format $disk
f2fs put -r $disk /tmp/in /
f2fs check $disk
f2fs manifest $disk > /share/put
mount -t f2fs -o ro $disk /mnt
guest-agent manifest /mnt > /share/mounted
umount /mnt
f2fs get -r $disk / /tmp/out
guest-agent manifest /tmp/out > /share/got
";

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let image = bench.image("copies");
    files::make_sparse(&image, 512 << 20)?;
    let output = bench.guest.boot("copies").disk(&image, Bus::Nvme, "target").run(SCRIPT, LIMIT)?;
    judge::succeeded(&output)?;
    judge::fsck_clean(&image)?;
    let host = bench.here.guest_manifest(&output.share, "host")?;
    for (name, view) in [("put", "the library"), ("mounted", "the kernel"), ("got", "the copy that came out")] {
        let other = bench.here.guest_manifest(&output.share, name)?;
        judge::same("a copied tree", ("the original", &host), (view, &other))?;
    }
    let paths = host.lines().count();
    Ok(Outcome {
        wall: output.wall,
        remark: format!("{paths} paths with all attributes, the same in, mounted and out"),
    })
}
