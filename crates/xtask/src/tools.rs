//! The programs that the tests need beside cargo.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use anyhow::bail;

use crate::{Result, process};

/// The programs known here, and the Debian package of each.
const PACKAGES: &[(&str, &str)] = &[
    ("mkfs.f2fs", "f2fs-tools"),
    ("fsck.f2fs", "f2fs-tools"),
    ("dump.f2fs", "f2fs-tools"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("f2fs_io", "f2fs-tools"),
    ("xfs_io", "xfsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("fsverity", "fsverity"),
    ("blkzone", "util-linux"),
    ("zstd", "zstd"),
    ("xz", "xz-utils"),
    ("dpkg-deb", "dpkg"),
    ("fio", "fio"),
    ("dmsetup", "dmsetup"),
    ("valgrind", "valgrind"),
    ("c++", "g++"),
    // bindgen's libclang comes with it.
    ("clang", "clang"),
    ("git", "git"),
    ("sqlite3", "sqlite3"),
    ("tar", "tar"),
    ("rsync", "rsync"),
    ("stress-ng", "stress-ng"),
    ("fs_mark", "fsmark"),
    ("dbench", "dbench"),
    ("bonnie++", "bonnie++"),
    ("postmark", "postmark"),
    ("pgbench", "postgresql"),
    ("db_bench", "rocksdb-tools"),
    ("ldb", "rocksdb-tools"),
    ("sst_dump", "rocksdb-tools"),
    ("runuser", "util-linux"),
    ("setpriv", "util-linux"),
    ("unshare", "util-linux"),
    ("flock", "util-linux"),
    ("getfattr", "attr"),
    ("getfacl", "acl"),
    ("bc", "bc"),
    ("gawk", "gawk"),
    ("losetup", "mount"),
    ("pkg-config", "pkg-config"),
    ("fusermount3", "fuse3"),
];

/// Programs for the tests on this machine, without the guest tests.
pub(crate) const FOR_TESTS: &[&str] = &["mkfs.f2fs", "fsck.f2fs", "dump.f2fs"];

/// Programs for the guest tests, on this machine.
pub(crate) const FOR_GUEST: &[&str] = &[
    "qemu-system-x86_64",
    "busybox",
    "dpkg-deb",
    "mkfs.f2fs",
    "fsck.f2fs",
    "f2fs_io",
    "xfs_io",
    "fsverity",
    "blkzone",
    "fio",
    "dmsetup",
];

/// Programs for the fuzz targets: libFuzzer is built with them.
pub(crate) const FOR_FUZZ: &[&str] = &["c++"];

/// Where a program lies, if it is installed. Administrators' directories are searched too, on the path or not.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|file| fs::metadata(file).is_ok_and(|data| data.is_file()))
}

/// Makes sure that each program is there: installs the packages of those that are not, when that is possible.
///
/// # Errors
///
/// Names the packages to install, if a program is missing and this process may not or cannot install it.
pub(crate) fn require(programs: &[&str]) -> Result<()> {
    install(&missing(programs)?)?;
    let packages = missing(programs)?;
    if !packages.is_empty() {
        bail!("programs are missing after their packages were installed: {}", packages.join(" "));
    }
    Ok(())
}

/// Installs packages, when that is possible. Those that are there stay as they are.
///
/// # Errors
///
/// Names the packages, if this process may not or cannot install them.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if !is_root() || find("apt-get").is_none() {
        bail!("some programs are missing; install their packages first: apt-get install {list}");
    }
    eprintln!("installing {list}");
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["-qq", "-y"]).args(args);
        process::run(&mut command)
    };
    apt(&["update"])?;
    let mut install = vec!["install", "--no-install-recommends", "--no-upgrade"];
    install.extend(packages);
    apt(&install)
}

/// The packages of the programs that are not installed, each once.
fn missing(programs: &[&str]) -> Result<Vec<&'static str>> {
    let mut packages = Vec::new();
    for program in programs {
        if find(program).is_some() {
            continue;
        }
        let Some((_, package)) = PACKAGES.iter().find(|(known, _)| known == program) else {
            bail!("`{program}` is missing, and its package is not known here");
        };
        if !packages.contains(package) {
            packages.push(*package);
        }
    }
    Ok(packages)
}

/// Whether this process may install packages.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // The owner of a process's own directory is its effective user.
    fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_there_and_names_what_is_not() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program").is_none());
        assert!(missing(&["sh"]).is_ok_and(|packages| packages.is_empty()));
        let error = missing(&["no-such-program"]).expect_err("it has no package");
        assert!(error.to_string().contains("no-such-program"), "{error}");
    }
}
