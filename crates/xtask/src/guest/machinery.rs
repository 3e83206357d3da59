//! The test machine itself: what goes wrong in it must be seen here. A harness that cannot fail shows nothing.

use std::time::Duration;

use anyhow::{Context, bail};

use super::judge;
use super::machine::Bus;
use super::{Bench, Outcome};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(300);

/// A script that fails after a damaged volume has made F2FS complain.
const COMPLAIN: &str = "
mount -t f2fs $(device damaged) /mnt && ls /mnt
exit 3
";
const PANIC: &str = "
echo about to panic
echo c > /proc/sysrq-trigger
";
const HANG: &str = "
echo about to hang
sleep 1000
";

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let image = bench.image("machinery");
    f2fs_oracle::mkfs_sized(&image, 64 << 20, &[])?;
    damage_both_packs(&image)?;
    let output = bench.guest.boot("machinery-status").disk(&image, Bus::VirtioBlk, "damaged").run(COMPLAIN, LIMIT)?;
    if output.status != 3 {
        bail!("a script ended with 3 in the guest, and {} arrived here", output.status);
    }
    let seen = judge::succeeded(&output).err().context("a failed script passed")?.to_string();
    if !seen.contains("F2FS-fs (vda)") {
        bail!("F2FS refused a damaged volume, and its complaint was not found in the kernel log: {seen}");
    }
    let panic = bench.guest.boot("machinery-panic").run(PANIC, LIMIT);
    let panic = panic.err().context("a kernel panic passed")?.to_string();
    if !panic.contains("died without an exit status") || !panic.contains("about to panic") {
        bail!("a kernel panic was reported as: {panic}");
    }
    // Long enough for a boot: the script must have begun when the limit strikes.
    let short = 2 * output.wall;
    let hang = bench.guest.boot("machinery-hang").run(HANG, short);
    let hang = hang.err().context("a script that hangs passed")?.to_string();
    if !hang.contains("ran past its limit") {
        bail!("a script that hangs was reported as: {hang}");
    }
    Ok(Outcome { wall: output.wall, remark: "a failure, a complaint, a panic and a hang were each seen".to_owned() })
}

/// Overwrites the first blocks of both checkpoint packs, so that no mount is possible.
fn damage_both_packs(image: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(image)?;
    for segment in [1, 2] {
        file.write_all_at(&[0xff; 4096], segment * (2 << 20))?;
    }
    Ok(())
}
