//! A forked child does not use what only its parent has, whatever the parent had open before.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use f2fs_device::{AlignedBuf, BlockDevice as _, Request};
use f2fs_uring::{OpenOptions, UringDevice};

fn image(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    File::create(&path).unwrap().set_len(16 << 20).unwrap();
    path
}

/// Queues on a device, which is gone afterwards; the thread keeps their ring.
fn work(path: &Path) -> io::Result<()> {
    let device = UringDevice::open(path, OpenOptions::new()).map_err(io::Error::other)?;
    for _ in 0..3 {
        let mut queue = device.queue(8);
        (0..8).for_each(|block| queue.push(Request::read(block, AlignedBuf::new(1))));
        while let Some(completion) = queue.next_completion() {
            completion.result.map_err(io::Error::other)?;
        }
    }
    Ok(())
}

#[test]
fn a_child_has_rings_of_its_own() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    work(&image(dir.path(), "of-the-parent")).unwrap();
    let path = image(dir.path(), "of-the-child");
    let mut command = Command::new("true");
    // SAFETY: no other thread of this process holds a lock that the child needs: this is the only test of the program.
    // What the child allocates is its own.
    unsafe { command.pre_exec(move || work(&path)) };
    let status = command.status().unwrap();
    assert!(status.success(), "{status}");
    // And the parent's ring is as good as before.
    work(&image(dir.path(), "of-the-parent-again")).unwrap();
}
