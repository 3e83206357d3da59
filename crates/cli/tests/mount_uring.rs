//! `f2fs mount -o transport=uring`, by programs that use the mount. These tests need root, `/dev/fuse`, and a kernel that has
//! FUSE over `io_uring` switched on; elsewhere they say that they were not run. All other tests of mounts judge it too, with
//! `F2FS_TEST_MOUNT_OPTION=transport=uring`.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use common::mounted::{Mounted, is_mounted, shell};
use common::{command, fail};
use rustix::fs::{AtFlags, CWD, OFlags, linkat};
use rustix::io::Errno;
use rustix::process::Signal;

const PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";
const RINGS: &str = "transport=uring";

/// Whether the kernel has it, and has it switched on.
fn is_on() -> bool {
    fs::read_to_string(PARAMETER).is_ok_and(|text| text.trim() == "Y")
}

fn mounted(test: &str, options: &[&str]) -> Option<Mounted> {
    if !is_on() {
        eprintln!("NOT RUN: {test}: needs Linux 6.14 or later, and Y in {PARAMETER}");
        return None;
    }
    Mounted::new(test, &[&[RINGS], options].concat())
}

fn unnamed(dir: &Path, flags: OFlags, content: &[u8]) -> File {
    let flags = (OFlags::TMPFILE | flags).bits() as i32;
    let mut file = OpenOptions::new().read(true).write(true).mode(0o640).custom_flags(flags).open(dir).unwrap();
    file.write_all(content).unwrap();
    file
}

fn name(file: &File, path: &Path) -> Result<(), Errno> {
    linkat(CWD, format!("/proc/self/fd/{}", file.as_raw_fd()), CWD, path, AtFlags::SYMLINK_FOLLOW)
}

#[test]
fn a_tree_goes_through_rings() {
    let Some(mounted) = mounted("a_tree_goes_through_rings", &[]) else { return };
    let threads: Vec<String> = fs::read_dir(format!("/proc/{}/task", mounted.server()))
        .unwrap()
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("comm")).unwrap())
        .collect();
    let count = |name| threads.iter().filter(|thread| thread.starts_with(name)).count();
    assert!(count("f2fs-ring") >= thread::available_parallelism().unwrap().get(), "{threads:?}");
    assert_eq!(count("fuser"), 1, "what is left for /dev/fuse is little: {threads:?}");
    let tree = mounted.place.path("tree");
    fs::create_dir_all(tree.join("a/b")).unwrap();
    for n in 0..300_usize {
        fs::write(tree.join(format!("a/{n}")), vec![n as u8; n * n * 9]).unwrap();
    }
    let (from, to) = (tree.display(), mounted.path("copy"));
    let to = to.display();
    shell(&format!("cp -a {from} {to}; diff -r {from} {to}"));
    mounted.umount();
    mounted.mount(&["ro", RINGS]);
    shell(&format!("diff -r {from} {to}"));
    assert_eq!(fs::write(mounted.path("new"), b"").unwrap_err().raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    mounted.judge();
}

#[test]
fn a_file_without_a_name_is_named_when_it_is_whole() {
    let Some(mounted) = mounted("a_file_without_a_name_is_named_when_it_is_whole", &[]) else { return };
    for cache in ["through", "writeback", "none"] {
        mounted.umount();
        mounted.mount(&[RINGS, &format!("cache={cache}")]);
        let dir = mounted.path(cache);
        fs::create_dir(&dir).unwrap();
        let mut file = unnamed(&dir, OFlags::empty(), &[7; 100_000]);
        assert_eq!((file.metadata().unwrap().nlink(), fs::read_dir(&dir).unwrap().count()), (0, 0));
        name(&file, &dir.join("whole")).unwrap();
        assert_eq!((file.metadata().unwrap().nlink(), fs::read(dir.join("whole")).unwrap()), (1, vec![7; 100_000]));
        name(&file, &dir.join("second")).unwrap();
        assert_eq!(name(&unnamed(&dir, OFlags::empty(), b"x"), &dir.join("whole")), Err(Errno::EXIST));
        assert_eq!(name(&unnamed(&dir, OFlags::EXCL, b"x"), &dir.join("never")), Err(Errno::NOENT));
        fs::remove_file(dir.join("whole")).unwrap();
        fs::remove_file(dir.join("second")).unwrap();
        assert_eq!(name(&file, &dir.join("late")), Err(Errno::NOENT));
        let mut content = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut content).unwrap();
        assert_eq!(content, [7; 100_000]);
    }
    mounted.judge();
}

#[test]
fn a_file_without_a_name_is_gone_after_a_kill_and_a_named_one_is_not() {
    let test = "a_file_without_a_name_is_gone_after_a_kill_and_a_named_one_is_not";
    let Some(mounted) = mounted(test, &["commit=0"]) else { return };
    let blocks = || rustix::fs::statvfs(&mounted.dir).unwrap();
    let before = (blocks().f_bfree, blocks().f_ffree);
    let (lost, kept) = (unnamed(&mounted.dir, OFlags::empty(), &[1; 2 << 20]), mounted.path("kept"));
    lost.sync_all().unwrap();
    // A checkpoint, which lists the file.
    File::open(&mounted.dir).unwrap().sync_all().unwrap();
    let whole = unnamed(&mounted.dir, OFlags::empty(), &[2; 5000]);
    name(&whole, &kept).unwrap();
    whole.sync_all().unwrap();
    File::open(&mounted.dir).unwrap().sync_all().unwrap();
    mounted.kill(Signal::KILL);
    drop((lost, whole));
    mounted.umount_dead();
    mounted.mount(&[RINGS]);
    assert_eq!(fs::read(&kept).unwrap(), vec![2; 5000]);
    fs::remove_file(&kept).unwrap();
    assert_eq!(fs::read_dir(&mounted.dir).unwrap().count(), 0);
    let end = Instant::now() + Duration::from_secs(10);
    while (blocks().f_bfree, blocks().f_ffree) != before {
        assert!(Instant::now() < end, "{:?} of {before:?} are free", (blocks().f_bfree, blocks().f_ffree));
        thread::sleep(Duration::from_millis(20));
    }
    mounted.judge();
}

/// Programs that work on a mount whose server is killed get errors; none waits for an answer that never comes.
#[test]
fn a_killed_server_leaves_nobody_waiting() {
    let Some(mounted) = mounted("a_killed_server_leaves_nobody_waiting", &[]) else { return };
    let dir = &mounted.dir;
    thread::scope(|scope| {
        let works: Vec<_> = (0..8)
            .map(|n| {
                scope.spawn(move || {
                    let end = Instant::now() + Duration::from_secs(30);
                    for count in 0.. {
                        assert!(Instant::now() < end, "the server lives");
                        let path = dir.join(format!("{n}-{count}"));
                        if let Err(error) = fs::write(&path, vec![n; 70_000]).and_then(|()| fs::read(&path)) {
                            return error.raw_os_error().unwrap();
                        }
                    }
                    unreachable!()
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(300));
        mounted.kill(Signal::KILL);
        for work in works {
            let number = work.join().unwrap();
            let expected = [Errno::NOTCONN, Errno::CONNABORTED, Errno::CANCELED, Errno::IO];
            assert!(expected.iter().any(|errno| errno.raw_os_error() == number), "error {number}");
        }
    });
    mounted.umount_dead();
    mounted.mount(&[RINGS]);
    mounted.judge();
}

#[test]
fn a_mount_that_is_used_is_busy_and_ends_by_a_signal() {
    let Some(mounted) = mounted("a_mount_that_is_used_is_busy_and_ends_by_a_signal", &[]) else { return };
    let mut file = File::create(mounted.path("open")).unwrap();
    fail(command(["umount"]).arg(&mounted.dir), 1, "busy");
    file.write_all(b"still served").unwrap();
    mounted.kill(Signal::TERM);
    assert!(!is_mounted(&mounted.dir));
    assert!(file.write_all(b"not any more").is_err());
    drop(file);
    mounted.mount(&[RINGS, "ro"]);
    assert_eq!(fs::read(mounted.path("open")).unwrap(), b"still served");
    mounted.judge();
}

/// Many syncs at once wait for the device, and requests of others go on meanwhile.
#[test]
fn more_syncs_than_threads_are_answered() {
    let Some(mounted) = mounted("more_syncs_than_threads_are_answered", &["threads=1"]) else { return };
    let dir = &mounted.dir;
    thread::scope(|scope| {
        for n in 0..16 {
            scope.spawn(move || {
                for count in 0..20 {
                    let mut file = File::create(dir.join(format!("{n}-{count}"))).unwrap();
                    file.write_all(&[n; 5000]).unwrap();
                    file.sync_all().unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_dir(dir).unwrap().count(), 320);
    mounted.judge();
}

#[test]
fn where_it_cannot_be_the_reason_is_told() {
    let test = "where_it_cannot_be_the_reason_is_told";
    if is_on() {
        eprintln!("NOT RUN: {test}: it can be here");
        return;
    }
    let Some(mounted) = Mounted::formatted(test, &[]) else { return };
    let why = if Path::new(PARAMETER).exists() { "switches it on with `echo Y > " } else { "needs Linux 6.14" };
    fail(command(["mount", "-o", RINGS]).arg(&mounted.image).arg(&mounted.dir), 1, why);
    assert!(!is_mounted(&mounted.dir));
    mounted.mount(&[]);
    mounted.judge();
}
