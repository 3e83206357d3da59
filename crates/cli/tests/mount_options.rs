//! How a volume is mounted: options, names, devices. These tests need root and `/dev/fuse`; elsewhere they say that
//! they were not run.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::mounted::{Mounted, is_mounted, shell, umount};
use common::{Place, command, fail, ok};
use rustix::process::Signal;

/// Runs the command under a name as `mount` does it, with an absolute path.
fn helper(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_f2fs"));
    command.arg0(format!("/sbin/{name}")).stdin(Stdio::null());
    command
}

/// Whether another user can read a file.
fn nobody_reads(path: &Path) -> bool {
    let mut cat = Command::new("setpriv");
    cat.args(["--reuid=65534", "--regid=65534", "--clear-groups", "cat"]).arg(path);
    cat.output().unwrap().status.success()
}

#[test]
fn the_name_in_fstab_mounts() {
    let Some(mounted) = Mounted::formatted("the_name_in_fstab_mounts", &[]) else { return };
    for name in ["mount.f2fs-fuse", "mount.fuse.f2fs"] {
        // As mount(8) calls it: the words `nofail` and `noauto` are its own, flags come last.
        let words = ["-n", "-o", "rw,noatime,uid=7,x-systemd.automount"];
        // `mount --fake` mounts nothing.
        ok(helper(name).arg(&mounted.image).arg(&mounted.dir).args(["-f"]).args(words));
        assert!(!is_mounted(&mounted.dir));
        ok(helper(name).arg(&mounted.image).arg(&mounted.dir).args(words));
        fs::write(mounted.path("f"), name).unwrap();
        assert_eq!(mounted.path("f").metadata().unwrap().uid(), 7);
        // mount(8) hands on what the list of mounts shows as well.
        let remount = |how| ok(helper(name).arg(&mounted.image).arg(&mounted.dir).args(["-o", how]));
        remount("ro,nosuid,user_id=0,group_id=0,default_permissions,remount");
        assert_eq!(fs::write(mounted.path("g"), name).unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
        remount("rw,remount");
        fs::write(mounted.path("g"), name).unwrap();
        mounted.umount();
        assert_eq!(ok(command(["cat"]).arg(&mounted.image).arg("/f")), name);
    }
    fail(helper("mount.f2fs-fuse").arg(&mounted.image).arg(&mounted.dir).args(["-o", "bogus"]), 2, "bogus");
    mounted.mount(&[]);
    mounted.judge();
}

#[test]
fn what_was_mounted_for_reading_does_not_become_writable_by_a_word() {
    let Some(mounted) = Mounted::formatted("what_was_mounted_for_reading_does_not_become_writable_by_a_word", &[])
    else {
        return;
    };
    mounted.mount(&["ro"]);
    let mut remount = helper("mount.f2fs-fuse");
    remount.arg(&mounted.image).arg(&mounted.dir).args(["-o", "rw,remount"]);
    fail(&mut remount, 1, "was mounted with `ro`");
    assert_eq!(fs::write(mounted.path("g"), "text").unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let line = mounts.lines().find(|line| line.contains(mounted.dir.to_str().unwrap())).unwrap();
    assert!(line.contains(" ro,"), "{line}");
    mounted.umount();
    mounted.mount(&[]);
    mounted.judge();
}

#[test]
fn a_mount_whose_server_lacks_something_is_told_of() {
    let Some(mounted) = Mounted::formatted("a_mount_whose_server_lacks_something_is_told_of", &[]) else { return };
    let mount = |threads: &str| {
        let mut mount = Command::new("prlimit");
        mount.args(["--nofile=100:100"]).arg(env!("CARGO_BIN_EXE_f2fs")).arg("mount");
        mount.args(["-o", threads]).arg(&mounted.image).arg(&mounted.dir).stdin(Stdio::null());
        mount
    };
    fail(&mut mount("threads=256"), 1, "Too many open files");
    assert!(!is_mounted(&mounted.dir));
    fail(command(["mount", "-o", "threads=257"]).arg(&mounted.image).arg(&mounted.dir), 2, "1 to 256 are possible");
    ok(&mut mount("threads=4"));
    fs::write(mounted.path("f"), "text").unwrap();
    mounted.judge();
}

#[test]
fn an_image_is_mounted_mapped() {
    let Some(mounted) = Mounted::formatted("an_image_is_mounted_mapped", &["--pmem"]) else { return };
    mounted.mount(&[]);
    // The process in the background maps it as well.
    let maps = fs::read_to_string(format!("/proc/{}/maps", mounted.server())).unwrap();
    assert!(maps.lines().any(|line| line.contains("rw-s") && line.ends_with("disk.img")), "{maps}");
    fs::write(mounted.path("f"), vec![3; 3 << 20]).unwrap();
    File::open(mounted.path("f")).unwrap().sync_all().unwrap();
    mounted.umount();
    mounted.mount(&["ro"]);
    assert_eq!(fs::read(mounted.path("f")).unwrap(), vec![3; 3 << 20]);
    mounted.judge();
}

#[test]
fn a_volume_on_several_devices_is_mounted() {
    let place = Place::new();
    let other = place.path("other.img");
    File::create(&other).unwrap().set_len(128 << 20).unwrap();
    let flags = ["--device", other.to_str().unwrap()];
    let Some(mounted) = Mounted::formatted("a_volume_on_several_devices_is_mounted", &flags) else { return };
    mounted.mount(&[]);
    let content: Vec<u8> = (0..100 << 20).map(|at: u32| (at >> 9) as u8).collect();
    for name in ["a", "b"] {
        fs::write(mounted.path(name), &content).unwrap();
    }
    mounted.umount();
    mounted.mount(&[]);
    for name in ["a", "b"] {
        assert!(fs::read(mounted.path(name)).unwrap() == content);
    }
    mounted.umount();
    assert_eq!(ok(command(["check"]).args(flags).arg(&mounted.image)), "");
}

#[test]
fn others_see_a_mount_only_if_it_says_so() {
    let Some(mounted) = Mounted::formatted("others_see_a_mount_only_if_it_says_so", &[]) else { return };
    let beside = mounted.place.path("beside");
    fs::write(&beside, b"text").unwrap();
    // The way to the mount is open to others here, so that what is refused below is refused by the mount.
    for dir in mounted.dir.ancestors().skip(1).take_while(|dir| !nobody_reads(&beside) && dir.parent().is_some()) {
        let mode = dir.metadata().unwrap().permissions().mode();
        if mode & 0o1 == 0 {
            fs::set_permissions(dir, fs::Permissions::from_mode(mode | 0o1)).unwrap();
        }
    }
    assert!(nobody_reads(&beside));
    mounted.mount(&[]);
    fs::write(mounted.path("f"), b"text").unwrap();
    fs::set_permissions(mounted.path("f"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(!nobody_reads(&mounted.path("f")));
    mounted.umount();
    mounted.mount(&["allow_other"]);
    assert!(nobody_reads(&mounted.path("f")));
    // The kernel minds permissions.
    fs::set_permissions(mounted.path("f"), fs::Permissions::from_mode(0o640)).unwrap();
    assert!(!nobody_reads(&mounted.path("f")));
    mounted.judge();
}

#[test]
fn one_image_is_mounted_once() {
    let Some(mounted) = Mounted::new("one_image_is_mounted_once", &[]) else { return };
    let other = mounted.place.path("other");
    fs::create_dir(&other).unwrap();
    let server = mounted.server().to_string();
    fail(command(["mount"]).arg(&mounted.image).arg(&other), 1, &format!("process {server} (f2fs)"));
    fail(command(["put"]).arg(&mounted.image).args(["/etc/hostname", "/h"]), 1, &server);
    assert!(!is_mounted(&other));
    mounted.judge();
}

#[test]
fn a_wrong_command_line_opens_nothing() {
    let place = Place::new();
    fail(&mut command(["mount", "-o", "bogus", "/nowhere", "/mnt"]), 2, "bogus");
    fail(command(["mount", "/nowhere"]).arg(place.dir()), 1, "/nowhere");
    let image = place.path("zeros");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    fail(command(["mount"]).arg(&image).arg(place.dir()), 1, "not an F2FS volume");
}

/// Only what f2fs mounted is unmounted, and a mount whose server has ended is called that.
#[test]
fn what_else_is_mounted_stays_and_dead_mounts_are_named() {
    let Some(mounted) = Mounted::new("what_else_is_mounted_stays_and_dead_mounts_are_named", &[]) else { return };
    let other = mounted.place.path("other");
    fs::create_dir(&other).unwrap();
    fail(command(["umount"]).arg(&other), 1, "no volume is mounted there");
    assert!(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&other).status().unwrap().success());
    fail(command(["umount"]).arg(&other), 1, "no volume is mounted there");
    assert!(is_mounted(&other));
    umount(&other);
    // Nobody waits for a server that stands still.
    let server = mounted.server();
    // The signal may be on its way while the server is asked.
    shell(&format!("kill -STOP {server}"));
    fail(
        command(["umount"]).arg(&mounted.dir),
        1,
        &format!("its server is stopped, and answers when process {server}"),
    );
    shell(&format!("kill -CONT {server}"));
    // What programs have open there does not keep a mount that nobody serves.
    let open = File::create(mounted.path("open")).unwrap();
    mounted.kill(Signal::KILL);
    fail(
        command(["mount"]).arg(&mounted.image).arg(&mounted.dir),
        1,
        "the server of the mount that is there has ended",
    );
    mounted.umount_dead();
    drop(open);
    mounted.mount(&[]);
    mounted.judge();
}

/// A server that ends unmounts what it mounted, and nothing that is below or on top of it.
#[test]
fn what_lies_below_and_on_top_of_a_mount_stays() {
    let Some(mounted) = Mounted::formatted("what_lies_below_and_on_top_of_a_mount_stays", &[]) else { return };
    let tmpfs =
        || assert!(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&mounted.dir).status().unwrap().success());
    let umount = || umount(&mounted.dir);
    let closed = || ok(command(["check"]).arg(&mounted.image));
    tmpfs();
    fs::write(mounted.path("below"), b"").unwrap();
    mounted.mount(&[]);
    umount();
    while Command::new("flock").arg("-n").arg(&mounted.image).arg("true").status().unwrap().code() != Some(0) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(closed(), "");
    assert!(mounted.path("below").exists());
    mounted.mount(&[]);
    mounted.umount_one();
    assert!(mounted.path("below").exists());
    umount();
    // On top.
    mounted.mount(&[]);
    tmpfs();
    fs::write(mounted.path("on_top"), b"").unwrap();
    mounted.kill(Signal::TERM);
    assert!(mounted.path("on_top").exists());
    assert_eq!(closed(), "");
    umount();
    umount();
}
