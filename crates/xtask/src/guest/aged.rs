//! Aged images: filled and overwritten many times by this project, their logs in the holes of old segments, with
//! unclean stops. The kernel mounts them, sees the same files, writes more, and this project opens them again.

use std::time::Duration;

use super::judge;
use super::machine::Bus;
use super::{Bench, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(600);
/// How the images are written: as the kernel does, with runs rewritten and moved, and with blocks moved among others of
/// their age.
const WAYS: [(&str, &[&str]); 3] =
    [("ssr", &[]), ("selective-greedy", &["--allocation", "selective-greedy"]), ("at-ssr", &["--merge-ages"])];

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let image = |way: &str| bench.image(&format!("aged-{way}"));
    let mut boot = bench.guest.boot("aged");
    let mut script = "set -e\n".to_owned();
    let mut made = Vec::new();
    for (way, options) in WAYS {
        bench.here.format(&image(way), "160M", &[])?;
        bench.here.age(&image(way), options)?;
        bench.here.check(&image(way))?;
        judge::fsck_clean(&image(way))?;
        made.push(bench.here.manifest(&image(way))?);
        boot = boot.disk(&image(way), Bus::VirtioBlk, way);
        script.push_str(&format!(
            "disk=$(device {way})\n\
             mount -t f2fs $disk /mnt\n\
             guest-agent manifest /mnt > /share/{way}.before\n\
             dd if=/dev/urandom of=/mnt/3 bs=4096 count=500 seek=100 conv=notrunc\n\
             dd if=/dev/urandom of=/mnt/new bs=65536 count=40\n\
             sync\n\
             umount /mnt\n\
             mount -t f2fs -o ro $disk /mnt\n\
             guest-agent manifest /mnt > /share/{way}.after\n\
             umount /mnt\n"
        ));
    }
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    for ((way, _), made) in WAYS.into_iter().zip(&made) {
        let before = bench.here.guest_manifest(&output.share, &format!("{way}.before"))?;
        judge::same(way, ("this project", made), ("the kernel", &before))?;
        bench.here.check(&image(way))?;
        judge::fsck_clean(&image(way))?;
        let after = bench.here.guest_manifest(&output.share, &format!("{way}.after"))?;
        judge::same(
            way,
            ("the kernel after its writes", &after),
            ("this project", &bench.here.manifest(&image(way))?),
        )?;
    }
    Ok(Outcome { wall: output.wall, remark: format!("{} images, the same in the kernel and here", WAYS.len()) })
}
