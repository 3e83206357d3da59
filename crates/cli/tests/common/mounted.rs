//! A mount for the tests of `f2fs mount`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Place, command, ok, run};

/// A volume that is mounted, and unmounted in the end.
pub(crate) struct Mounted {
    pub(crate) image: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) place: Place,
    /// `--pmem` and its like, for every opening.
    pub(crate) flags: Vec<String>,
}

/// The option that all mounts of the tests get, such as `transport=uring`: then these judge another transport.
const OPTION_VARIABLE: &str = "F2FS_TEST_MOUNT_OPTION";

/// Whether the kernel lets this process mount anything: root of a container may be root in name only.
fn may_mount(place: &Place) -> bool {
    let dir = place.path("probe");
    fs::create_dir(&dir).unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&dir).output().is_ok_and(|done| done.status.success());
    if mounted {
        assert!(Command::new("umount").arg(&dir).status().unwrap().success());
    }
    mounted
}

impl Mounted {
    /// `None`: this machine cannot mount, and the test is named as not run.
    pub(crate) fn new(test: &str, options: &[&str]) -> Option<Mounted> {
        let mounted = Mounted::formatted(test, &[])?;
        mounted.mount(options);
        Some(mounted)
    }

    /// A new volume and a directory for it, not mounted yet; every command about it gets `flags`.
    pub(crate) fn formatted(test: &str, flags: &[&str]) -> Option<Mounted> {
        let place = Place::new();
        if !rustix::process::geteuid().is_root() || File::open("/dev/fuse").is_err() || !may_mount(&place) {
            eprintln!("NOT RUN: {test}: needs root, who may mount, and /dev/fuse");
            return None;
        }
        let image = place.path("disk.img");
        ok(command(["format", "--size", "256M"]).args(flags).arg(&image));
        let dir = place.path("mnt");
        fs::create_dir(&dir).unwrap();
        Some(Mounted { image, dir, place, flags: flags.iter().map(ToString::to_string).collect() })
    }

    pub(crate) fn mount(&self, options: &[&str]) {
        let mut mount = command(["mount"]);
        let given = std::env::var(OPTION_VARIABLE).ok();
        for option in given.iter().map(String::as_str).chain(options.iter().copied()) {
            mount.args(["-o", option]);
        }
        ok(mount.args(&self.flags).arg(&self.image).arg(&self.dir));
    }

    /// Unmounts; below it something may be mounted.
    pub(crate) fn umount_one(&self) {
        while_busy(&self.dir, || run(command(["umount"]).arg(&self.dir)));
    }

    /// Unmounts what a server that was killed has left.
    pub(crate) fn umount_dead(&self) {
        let removed = run(command(["umount"]).arg(&self.dir));
        let said = String::from_utf8_lossy(&removed.stderr);
        assert!(removed.status.success() && said.contains("its server had ended before"), "{said}");
        assert!(!is_mounted(&self.dir));
    }

    pub(crate) fn umount(&self) {
        self.umount_one();
        assert!(!is_mounted(&self.dir));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Unmounts; both judges must find the volume clean.
    pub(crate) fn judge(&self) {
        self.umount();
        assert_eq!(ok(command(["check"]).args(&self.flags).arg(&self.image)), "");
        let fsck = Command::new("fsck.f2fs").arg("--dry-run").arg(&self.image).output().unwrap();
        let said = String::from_utf8_lossy(&fsck.stdout);
        assert!(fsck.status.success() && !said.contains("[ASSERT]") && !said.contains("[Fail]"), "{said}");
    }

    /// The number of the process that serves the mount.
    pub(crate) fn server(&self) -> i32 {
        let image = self.image.to_str().unwrap();
        let serves = |entry: &fs::DirEntry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains("mount --told") && line.contains(image)
        };
        let mut found = fs::read_dir("/proc").unwrap().flatten().filter(serves);
        let pid = found.next().expect("a server").file_name().to_str().unwrap().parse().unwrap();
        assert!(found.next().is_none());
        pid
    }

    /// Sends a signal to the server, and waits until it has ended. By itself: a new process begins with copies of the
    /// files that are open here, and the kernel writes them back when these are closed.
    pub(crate) fn kill(&self, signal: Signal) {
        let pid = self.server();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(Instant::now() < end, "the server goes on");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if is_mounted(&self.dir) {
            let _ = Command::new("umount").arg("-l").arg(&self.dir).status();
        }
    }
}

pub(crate) fn is_mounted(dir: &Path) -> bool {
    let dir = format!(" {} ", dir.to_str().unwrap());
    fs::read_to_string("/proc/self/mounts").unwrap().lines().any(|line| line.contains(&dir))
}

pub(crate) fn shell(script: &str) {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Takes a mount away.
#[allow(dead_code)] // not by all that have this module
pub(crate) fn umount(dir: &Path) {
    while_busy(dir, || Command::new("umount").arg(dir).output().unwrap());
}

/// A mount is busy as long as a process that another test of this program just started has not dropped the files that it
/// inherits.
fn while_busy(dir: &Path, umount: impl Fn() -> Output) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let output = umount();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return;
        }
        assert!(said.contains("busy") && Instant::now() < end, "{}: {said}", dir.display());
        thread::sleep(Duration::from_millis(20));
    }
}
