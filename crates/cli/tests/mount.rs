//! `f2fs mount`, by programs that use the mount. These tests need root and `/dev/fuse`; elsewhere they say that they
//! were not run.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::mounted::{Mounted, is_mounted, shell};
use common::{command, fail, ok};
use f2fs::device::{AlignedBuf, BlockDevice, Request};
use f2fs::uring::UringDevice;
use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, RenameFlags, SeekFrom as Seeking, XattrFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn a_tree_is_copied_there_and_back() {
    let Some(mounted) = Mounted::new("a_tree_is_copied_there_and_back", &[]) else { return };
    let tree = mounted.place.path("tree");
    fs::create_dir_all(tree.join("a/b")).unwrap();
    for n in 0..300_usize {
        fs::write(tree.join(format!("a/{n}")), vec![n as u8; n * n]).unwrap();
    }
    symlink("../300", tree.join("a/b/link")).unwrap();
    fs::hard_link(tree.join("a/7"), tree.join("a/b/seven")).unwrap();
    fs::set_permissions(tree.join("a/8"), fs::Permissions::from_mode(0o4711)).unwrap();
    let (from, to) = (tree.display(), mounted.path("copy"));
    let to = to.display();
    shell(&format!("mkfifo {from}/pipe; mknod {from}/null c 1 3; touch -d '1999-12-31 23:59:59.123456789' {from}/a/9"));
    shell(&format!("cp -a {from} {to}; diff -r --no-dereference {from}/a {to}/a"));
    mounted.umount();
    mounted.mount(&["ro"]);
    shell(&format!("diff -r --no-dereference {from}/a {to}/a"));
    let list = "find . -printf '%P %y %m %n %U %G %s %l %T@\\n' | grep -v '^[^ ]* d' | sort";
    shell(&format!("cd {from}; {list} > {from}.list; cd {to}; {list} | cmp - {from}.list"));
    assert!(mounted.path("copy/null").metadata().unwrap().file_type().is_char_device());
    let error = fs::write(mounted.path("new"), b"").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    mounted.judge();
}

#[test]
fn names_are_exchanged_kept_and_linked() {
    let Some(mounted) = Mounted::new("names_are_exchanged_kept_and_linked", &[]) else { return };
    let (one, two) = (mounted.path("one"), mounted.path("two"));
    fs::write(&one, b"1").unwrap();
    fs::write(&two, b"2").unwrap();
    let rename = |flags| rustix::fs::renameat_with(CWD, &one, CWD, &two, flags);
    assert_eq!(rename(RenameFlags::NOREPLACE), Err(Errno::EXIST));
    rename(RenameFlags::EXCHANGE).unwrap();
    assert_eq!((fs::read(&one).unwrap(), fs::read(&two).unwrap()), (b"2".to_vec(), b"1".to_vec()));
    fs::hard_link(&one, mounted.path("three")).unwrap();
    assert_eq!(one.metadata().unwrap().nlink(), 2);
    fs::remove_file(&one).unwrap();
    assert_eq!(mounted.path("three").metadata().unwrap().nlink(), 1);
    assert!(!one.exists());
    fs::rename(mounted.path("three"), &two).unwrap();
    assert_eq!(fs::read(&two).unwrap(), b"2");
    fs::create_dir_all(mounted.path("d/e")).unwrap();
    assert_eq!(fs::remove_dir(mounted.path("d")).unwrap_err().raw_os_error(), Some(Errno::NOTEMPTY.raw_os_error()));
    assert_eq!(fs::rename(mounted.path("d"), mounted.path("d/e/f")).unwrap_err().raw_os_error(), Some(22));
    // A large directory, listed while names go.
    fs::create_dir(mounted.path("many")).unwrap();
    for n in 0..3000 {
        File::create(mounted.path(&format!("many/{n}"))).unwrap();
    }
    let listed = fs::read_dir(mounted.path("many"))
        .unwrap()
        .flatten()
        .map(|entry| fs::remove_file(entry.path()).unwrap())
        .count();
    assert_eq!(listed, 3000);
    fs::remove_dir(mounted.path("many")).unwrap();
    mounted.judge();
}

#[test]
fn an_open_file_outlives_its_name() {
    let Some(mounted) = Mounted::new("an_open_file_outlives_its_name", &[]) else { return };
    let free = || rustix::fs::statvfs(&mounted.dir).unwrap().f_bfree;
    let before = free();
    let path = mounted.path("f");
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    file.write_all(&[7; 4 << 20]).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, b"another").unwrap();
    file.seek(SeekFrom::Start(3 << 20)).unwrap();
    file.write_all(b"more").unwrap();
    let mut all = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut all).unwrap();
    assert_eq!((all.len(), &all[3 << 20..][..4], file.metadata().unwrap().nlink()), (4 << 20, &b"more"[..], 0));
    assert!(before - free() >= 1024);
    drop(file);
    fs::remove_file(&path).unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    // The kernel forgets the inode a moment after the last close.
    while free() != before {
        assert!(Instant::now() < end, "{} blocks are still in use", before - free());
        thread::sleep(Duration::from_millis(20));
    }
    mounted.judge();
}

#[test]
fn holes_attributes_and_reservations() {
    let Some(mounted) = Mounted::new("holes_attributes_and_reservations", &[]) else { return };
    let path = mounted.path("sparse");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    file.set_len(1 << 30).unwrap();
    file.write_all_at(&[1; 8192], 100 << 20).unwrap();
    assert_eq!(rustix::fs::seek(&file, Seeking::Data(0)).unwrap(), 100 << 20);
    assert_eq!(rustix::fs::seek(&file, Seeking::Hole(100 << 20)).unwrap(), (100 << 20) + 8192);
    assert_eq!(rustix::fs::seek(&file, Seeking::Data(200 << 20)), Err(Errno::NXIO));
    assert!(file.metadata().unwrap().blocks() < 100);
    let reserved = File::create(mounted.path("reserved")).unwrap();
    rustix::fs::fallocate(&reserved, FallocateFlags::KEEP_SIZE, 0, 1 << 20).unwrap();
    assert_eq!(reserved.metadata().unwrap().size(), 0);
    assert!(reserved.metadata().unwrap().blocks() >= 2048);
    rustix::fs::setxattr(&path, "user.note", b"text", XattrFlags::CREATE).unwrap();
    assert_eq!(rustix::fs::setxattr(&path, "user.note", b"x", XattrFlags::CREATE), Err(Errno::EXIST));
    let both = XattrFlags::CREATE | XattrFlags::REPLACE;
    assert_eq!(rustix::fs::setxattr(&path, "user.note", b"x", both), Err(Errno::EXIST));
    assert_eq!(rustix::fs::setxattr(&path, "user.none", b"x", both), Err(Errno::NODATA));
    let mut value = [0; 16];
    assert_eq!(rustix::fs::getxattr(&path, "user.note", &mut value).unwrap(), 4);
    assert_eq!(rustix::fs::getxattr(&path, "user.none", &mut value), Err(Errno::NODATA));
    rustix::fs::removexattr(&path, "user.note").unwrap();
    // Who writes to a file takes its set-id bits, unless it is root; a change of the owner takes them from everybody.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
    rustix::fs::chownat(CWD, &path, Some(rustix::fs::Uid::from_raw(5)), None, AtFlags::empty()).unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o755);
    drop((file, reserved));
    mounted.judge();
}

/// The kernel keeps what was written; a program that copies by `SEEK_DATA` must not take it for a hole.
#[test]
fn what_the_kernel_keeps_is_no_hole() {
    let options = &["cache=writeback"];
    let Some(mounted) = Mounted::new("what_the_kernel_keeps_is_no_hole", options) else { return };
    let path = mounted.path("kept");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all_at(&[1; 100_000], 0).unwrap();
    assert_eq!(rustix::fs::seek(&file, Seeking::Data(0)).unwrap(), 0);
    assert_eq!(rustix::fs::seek(&file, Seeking::Data(50_000)).unwrap(), 50_000);
    assert_eq!(rustix::fs::seek(&file, Seeking::Hole(0)).unwrap(), 100_000);
    assert_eq!(rustix::fs::seek(&file, Seeking::Data(100_000)), Err(Errno::NXIO));
    let copy = mounted.path("copy");
    shell(&format!("cp --sparse=always {0} {1}; cmp {0} {1}", path.display(), copy.display()));
    drop(file);
    mounted.judge();
}

#[test]
fn ranges_are_punched_and_zeroed() {
    let Some(mounted) = Mounted::new("ranges_are_punched_and_zeroed", &[]) else { return };
    let path = mounted.path("f");
    let shown = path.display();
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let before = path.metadata().unwrap().blocks();
    // In the kernel's cache, too: what was read before must not be shown afterwards.
    assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 7));
    shell(&format!("fallocate -p -o 100000 -l 300000 {shown}; fallocate -z -o 500001 -l 100000 {shown}"));
    let expected = |path: &std::path::Path, len: usize| {
        let found = fs::read(path).unwrap();
        let zeros = |at| (100_000..400_000).contains(&at) || (500_001..600_001).contains(&at) || at >= 1 << 20;
        assert_eq!(found.len(), len);
        let wrong = found.iter().enumerate().find(|(at, byte)| **byte != if zeros(*at) { 0 } else { 7 });
        assert_eq!(wrong, None);
    };
    expected(&path, 1 << 20);
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    // The hole is the whole blocks within: 102400 (25) up to 397312 (97). Zeros keep their blocks.
    assert_eq!(rustix::fs::seek(&file, Seeking::Hole(0)).unwrap(), 25 * 4096);
    assert_eq!(rustix::fs::seek(&file, Seeking::Data(25 * 4096)).unwrap(), 97 * 4096);
    let punched = path.metadata().unwrap().blocks();
    assert!(punched <= before - 72 * 8 + 8 && punched > before - 100 * 8, "{punched} of {before}");
    let zero = |flags, offset, len| rustix::fs::fallocate(&file, flags, offset, len);
    zero(FallocateFlags::ZERO_RANGE, 1 << 20, 5000).unwrap();
    zero(FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE, 2 << 20, 5000).unwrap();
    expected(&path, (1 << 20) + 5000);
    zero(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 0).unwrap_err();
    for unknown in [FallocateFlags::COLLAPSE_RANGE, FallocateFlags::INSERT_RANGE, FallocateFlags::UNSHARE_RANGE] {
        assert_eq!(zero(unknown, 0, 4096), Err(Errno::OPNOTSUPP), "{unknown:?}");
    }
    drop(file);
    mounted.umount();
    mounted.mount(&[]);
    expected(&path, (1 << 20) + 5000);
    mounted.judge();
}

#[test]
fn lists_of_access_are_inherited_and_follow_the_mode() {
    let Some(mounted) = Mounted::new("lists_of_access_are_inherited_and_follow_the_mode", &[]) else { return };
    // owner rwx, user 7 rwx, group r-x, mask rwx, others ---
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in [(1_u16, 7_u16, !0_u32), (2, 7, 7), (4, 5, !0), (16, 7, !0), (32, 0, !0)] {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let dir = mounted.path("d");
    fs::create_dir(&dir).unwrap();
    rustix::fs::setxattr(&dir, "system.posix_acl_default", &list, XattrFlags::empty()).unwrap();
    let file = dir.join("f");
    File::create(&file).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o660, "the mask stands for the group");
    let mut value = [0; 100];
    let len = rustix::fs::getxattr(&file, "system.posix_acl_access", &mut value).unwrap();
    assert_eq!(len, list.len());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    rustix::fs::getxattr(&file, "system.posix_acl_access", &mut value).unwrap();
    // An empty list, and none where there is none, as tar asks for both.
    for name in ["system.posix_acl_default", "system.posix_acl_access"] {
        for _ in 0..2 {
            rustix::fs::setxattr(&dir, name, &2u32.to_le_bytes(), XattrFlags::empty()).unwrap();
            rustix::fs::removexattr(&dir, name).unwrap();
        }
        assert!(rustix::fs::getxattr(&dir, name, &mut value).is_err());
    }
    assert_eq!(value[4 + 3 * 8 + 2], 0, "the mask follows the mode");
    mounted.judge();
}

#[test]
fn locks_keep_others_out() {
    let Some(mounted) = Mounted::new("locks_keep_others_out", &[]) else { return };
    let path = mounted.path("f");
    let (one, two) = (File::create(&path).unwrap(), OpenOptions::new().write(true).open(&path).unwrap());
    let lock = |file: &File, how| rustix::fs::flock(file, how);
    lock(&one, FlockOperation::LockShared).unwrap();
    lock(&two, FlockOperation::NonBlockingLockShared).unwrap();
    assert_eq!(lock(&one, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK));
    drop(two);
    lock(&one, FlockOperation::NonBlockingLockExclusive).unwrap();
    // Locks of ranges are a process's: another one is refused, and let in after this one has closed the file.
    rustix::fs::fcntl_lock(&one, FlockOperation::NonBlockingLockExclusive).unwrap();
    let other = || {
        let script = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)";
        Command::new("python3").args(["-c", script]).arg(&path).output().unwrap().status.success()
    };
    assert!(!other());
    drop(one);
    assert!(other());
    mounted.judge();
}

#[test]
fn contents_that_the_kernel_does_not_keep() {
    let Some(mounted) = Mounted::new("contents_that_the_kernel_does_not_keep", &["cache=none"]) else { return };
    let path = mounted.path("f");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    for at in 0..200_u64 {
        file.write_all_at(&[at as u8; 777], at * 777).unwrap();
    }
    let again = File::open(&path).unwrap();
    let mut part = [0; 1000];
    again.read_exact_at(&mut part, 776).unwrap();
    assert!(part[0] == 0 && part[1..778].iter().all(|byte| *byte == 1) && part[778..].iter().all(|byte| *byte == 2));
    file.set_len(1000).unwrap();
    file.set_len(200 * 777).unwrap();
    shell(&format!("cp {0} {0}2; cmp {0} {0}2", path.display()));
    assert!(fs::read(&path).unwrap()[1000..].iter().all(|byte| *byte == 0));
    // Nothing of the file is in the kernel's memory.
    let resident = Command::new("fincore").args(["-nb", "-o", "RES"]).arg(&path).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&resident.stdout).trim(), "0");
    drop((file, again));
    mounted.judge();
}

#[test]
fn times_before_1970_are_kept() {
    let Some(mounted) = Mounted::new("times_before_1970_are_kept", &[]) else { return };
    let file = File::create(mounted.path("f")).unwrap();
    let time = std::time::UNIX_EPOCH - Duration::new(5, 7);
    file.set_times(fs::FileTimes::new().set_accessed(time - Duration::from_secs(1)).set_modified(time)).unwrap();
    drop(file);
    mounted.umount();
    mounted.mount(&[]);
    let data = mounted.path("f").metadata().unwrap();
    assert_eq!((data.modified().unwrap(), data.accessed().unwrap()), (time, time - Duration::from_secs(1)));
    assert_eq!((data.mtime(), data.mtime_nsec()), (-6, 999_999_993));
    mounted.judge();
}

#[test]
fn reserving_takes_set_id_bits_unless_root_does_it() {
    for cache in ["cache=through", "cache=writeback"] {
        let options = ["allow_other", cache];
        let Some(mounted) = Mounted::new("reserving_takes_set_id_bits_unless_root_does_it", &options) else { return };
        let path = mounted.path("f");
        let file = File::create(&path).unwrap();
        for (user, left) in [("0", 0o6777), ("65534", 0o777)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o6777)).unwrap();
            let mut reserve = Command::new("setpriv");
            reserve.args([&format!("--reuid={user}"), "--clear-groups", "fallocate", "-l", "8192", "/proc/self/fd/0"]);
            assert!(reserve.stdin(file.try_clone().unwrap()).status().unwrap().success());
            assert_eq!(path.metadata().unwrap().mode() & 0o7777, left, "{user}");
        }
        drop(file);
        mounted.judge();
    }
}

#[test]
fn a_signal_at_any_moment_leaves_no_mount() {
    let Some(mounted) = Mounted::formatted("a_signal_at_any_moment_leaves_no_mount", &[]) else { return };
    // The last steps come as soon as it is mounted, and a little later.
    let moments = (0..40).map(|step| (false, 1000 * step)).chain((0..40).map(|step| (true, 20 * step)));
    for (when_mounted, later) in moments {
        // Who starts this in the background of a script has it ignore the signal.
        let mut mount = Command::new("env");
        mount.arg("--default-signal=INT").arg(env!("CARGO_BIN_EXE_f2fs")).args(["mount", "--foreground"]);
        let mut server = mount.arg(&mounted.image).arg(&mounted.dir).spawn().unwrap();
        while when_mounted && !is_mounted(&mounted.dir) {}
        thread::sleep(Duration::from_micros(later));
        let process = Pid::from_child(&server);
        kill_process(process, Signal::INT).unwrap();
        let ended = server.wait().unwrap();
        assert!(!is_mounted(&mounted.dir), "{later} us after it was started, or mounted: {when_mounted}; {ended}");
    }
    mounted.mount(&[]);
    mounted.judge();
}

#[test]
fn a_listing_has_the_directory_itself_and_the_one_above() {
    let Some(mounted) = Mounted::new("a_listing_has_the_directory_itself_and_the_one_above", &[]) else { return };
    fs::create_dir(mounted.path("d")).unwrap();
    fs::write(mounted.path("d/f"), b"text").unwrap();
    // In a small directory and in one of several requests, by `ls`, which sees no entry that has no number.
    for count in ["3", "1003"] {
        shell(&format!("test $(ls -a {} | wc -l) = {count}", mounted.path("d").display()));
        shell(&format!("cd {} && touch $(seq 1000)", mounted.path("d").display()));
    }
    mounted.judge();
}

/// The kernel shows and uses the permissions of a file after somebody else's write as the write left them.
#[test]
fn set_id_bits_go_with_a_write_of_another_user() {
    for cache in ["cache=through", "cache=writeback"] {
        let Some(mounted) = Mounted::new("set_id_bits_go_with_a_write_of_another_user", &["allow_other", cache]) else {
            return;
        };
        let f = mounted.path("f");
        let f = f.display();
        let other = "setpriv --reuid 1 --regid 1 --clear-groups";
        for write in [
            format!("{other} dd if=/dev/zero of={f} bs=1k count=1 conv=notrunc status=none"),
            format!("{other} fallocate --punch-hole --offset 0 --length 4096 {f}"),
        ] {
            // Only the permissions are asked for: with the size the kernel would ask for all.
            shell(&format!(
                "head -c 8192 /dev/zero > {f}; chmod 6777 {f}; test $(stat -c %a {f}) = 6777; cd /; {write}; test $(stat -c %a {f}) = 777"
            ));
        }
        mounted.judge();
    }
}

/// As on the kernel's own file systems.
#[test]
fn owners_and_names_of_attributes_are_as_on_linux() {
    let Some(mounted) = Mounted::new("owners_and_names_of_attributes_are_as_on_linux", &["allow_other"]) else {
        return;
    };
    let f = mounted.path("f");
    let f = f.display();
    shell(&format!(
        "for made in 'touch {f}' 'mkfifo {f}' 'mknod {f} c 1 3'; do
             $made; chmod 6777 {f}; chown 1:1 {f}; test $(stat -c %a {f}) = 777; rm {f}; done
         mkdir {f}; chmod 2777 {f}; chown 1:1 {f}; test $(stat -c %a {f}) = 2777; rmdir {f}"
    ));
    mounted.judge();
}

/// Direct writes that are under way together, beside a reader: what the kernel caches is not older than they are.
#[test]
fn direct_writes_leave_nothing_old_in_the_cache() {
    const BLOCKS: usize = 160;
    for cache in ["cache=through", "cache=writeback", "cache=none"] {
        let Some(mounted) = Mounted::new("direct_writes_leave_nothing_old_in_the_cache", &[cache]) else { return };
        let path = mounted.path("f");
        fs::write(&path, vec![0; BLOCKS * 4096]).unwrap();
        let device = UringDevice::open(&path, f2fs::uring::OpenOptions::new()).unwrap();
        let ended = AtomicBool::new(false);
        let old = thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    fs::read(&path).unwrap();
                }
            });
            let old = (1..=100_u16).find_map(|round| {
                let mut buf = AlignedBuf::new(BLOCKS / 40);
                buf.as_bytes_mut().fill(round as u8);
                let write = |at: usize| Request::write((at * (BLOCKS / 40)) as u64, buf.clone());
                for completion in device.submit((0..40).map(write).collect()).wait() {
                    completion.into_buf().unwrap();
                }
                let read = fs::read(&path).unwrap();
                read.iter().position(|byte| *byte != round as u8).map(|at| (round, at))
            });
            ended.store(true, Ordering::Relaxed);
            old
        });
        assert_eq!(old, None, "{cache}: round, place");
        drop(device);
        mounted.judge();
    }
}

/// Whoever opens a mounted image by another of its names is refused at once: nobody closes it.
#[test]
fn an_image_has_one_opener_whatever_its_name() {
    let Some(mounted) = Mounted::formatted("an_image_has_one_opener_whatever_its_name", &[]) else { return };
    mounted.mount(&[]);
    let beside = |name: &str| mounted.image.with_file_name(name);
    fs::hard_link(&mounted.image, beside("linked")).unwrap();
    let begun = Instant::now();
    fail(command(["ls"]).arg(beside("linked")), 1, "in use by process");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    // The mount has no name of it any more: whether it is about to close has to be waited for.
    fs::remove_file(&mounted.image).unwrap();
    let begun = Instant::now();
    fail(command(["ls"]).arg(beside("linked")), 1, "in use by process");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    fs::rename(beside("linked"), &mounted.image).unwrap();
    mounted.judge();
}

/// The volume is closed when the last mount of it goes, and nobody waits for that without a word.
#[test]
fn a_mount_in_two_places_is_told_of() {
    let Some(mounted) = Mounted::formatted("a_mount_in_two_places_is_told_of", &[]) else { return };
    mounted.mount(&[]);
    let other = mounted.dir.with_file_name("other");
    fs::create_dir(&other).unwrap();
    let bound = Command::new("mount").arg("--bind").args([&mounted.dir, &other]).status().unwrap();
    assert!(bound.success());
    fs::write(mounted.path("file"), "contents").unwrap();
    fail(command(["umount"]).arg(&mounted.dir), 1, "it is mounted in another place, too");
    assert_eq!(fs::read(other.join("file")).unwrap(), b"contents");
    ok(command(["umount"]).arg(&other));
    assert_eq!(ok(command(["cat"]).arg(&mounted.image).arg("/file")), "contents");
    mounted.mount(&[]);
    mounted.judge();
}
