//! `fstrim` on a mount. These tests need root and `/dev/fuse`; elsewhere they say that they were not run.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use common::mounted::{Mounted, shell, umount};
use common::{command, ok};
use rustix::fs::FallocateFlags;

/// `fstrim` of root gives the image's room back, all or a part; others may not.
#[test]
fn free_segments_are_given_back_while_it_is_mounted() {
    let name = "free_segments_are_given_back_while_it_is_mounted";
    let Some(mounted) = Mounted::new(name, &["allow_other", "nodiscard"]) else { return };
    fs::write(mounted.path("kept"), vec![7; 3 << 20]).unwrap();
    fs::write(mounted.path("gone"), vec![1; 40 << 20]).unwrap();
    shell(&format!("sync -f {}", mounted.dir.display()));
    fs::remove_file(mounted.path("gone")).unwrap();
    let held = || fs::metadata(&mounted.image).unwrap().blocks() * 512;
    let before = held();
    let given = || before.saturating_sub(held());
    let dir = mounted.dir.display();
    let other = "setpriv --reuid 1 --regid 1 --clear-groups";
    shell(&format!("cd /; chmod 755 {dir}; ! {other} fstrim {dir} 2>/dev/null"));
    // Less than what was asked for lies together.
    shell(&format!("fstrim --minimum 1T {dir}"));
    assert!(given() < 8 << 20, "{before}, {}", held());
    shell(&format!("fstrim --verbose {dir} | grep -q 'bytes) trimmed'"));
    assert!(given() > 36 << 20, "{before}, {}", held());
    assert_eq!(fs::read(mounted.path("kept")).unwrap(), vec![7; 3 << 20]);
    // No such request for files.
    shell(&format!("! lsattr {dir}/kept 2>/dev/null"));
    mounted.judge();
}

/// What looks free may be what the SIT has lost: `f2fs trim` checks that, and a mount does not.
#[test]
fn what_may_be_lost_is_not_given_back() {
    let name = "what_may_be_lost_is_not_given_back";
    let Some(mounted) = Mounted::new(name, &[]) else { return };
    let reserved = File::create(mounted.path("reserved")).unwrap();
    rustix::fs::fallocate(&reserved, FallocateFlags::KEEP_SIZE, 0, 1 << 20).unwrap();
    drop(reserved);
    let dir = mounted.dir.display();
    // Until it is opened again, all is known.
    shell(&format!("fstrim {dir}"));
    umount(&mounted.dir);
    mounted.mount(&[]);
    shell(&format!("! fstrim {dir} 2> {dir}/said; grep -q 'not supported' {dir}/said"));
    umount(&mounted.dir);
    ok(command(["trim"]).arg(&mounted.image));
    mounted.mount(&[]);
    mounted.judge();
}
