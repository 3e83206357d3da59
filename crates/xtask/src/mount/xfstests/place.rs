//! The place where xfstests runs: two volumes, and a view of the machine that ends with the run.
//!
//! ```text
//!   cargo xtask ── setpriv ── unshare ── sh ── check ── a test
//!                                         └── f2fs mount (two servers)
//! ```
//!
//! All below `unshare` has mounts and process numbers of its own. There the link `mount.fuse.f2fs` stands among the
//! system's helpers of `mount`, and the users that the suite wants are known. When `sh` ends, or this process, the kernel
//! ends all that is left there and takes the mounts away: nothing has to be undone.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use super::super::Bench;
use super::super::volume::How;
use crate::process::Outcome;
use crate::{Result, files, process};

/// The users, and groups of their names, that the suite wants.
const USERS: [&str; 3] = ["fsgqa", "fsgqa2", "123456-fsgqa"];
/// Their first number.
const FIRST_ID: u32 = 54_320;
/// The volumes: the one that is mounted all the time, and the one that tests mount.
const VOLUMES: [&str; 2] = ["test", "scratch"];
/// What runs behind `unshare`.
const SCRIPT: &str = r#"
sbin=$(readlink -f /sbin)
mount -t tmpfs none above
mkdir above/upper above/work
cp -P helper/* above/upper/
mount -t overlay overlay -o "lowerdir=$sbin,upperdir=above/upper,workdir=above/work" "$sbin"
mount --bind passwd /etc/passwd
mount --bind group /etc/group
cd "$SUITE"
./check "$@" || true
cd "$PLACE"
for volume in test scratch; do
    ! mountpoint -q $volume || f2fs umount $volume
    # The suite unmounts without waiting for the server, which has the image locked until it is closed.
    flock $volume.img true
done
"#;

/// Where the suite runs.
#[derive(Debug)]
pub(super) struct Place<'a> {
    bench: &'a Bench,
    /// The sources of xfstests, built.
    suite: &'a Path,
    dir: PathBuf,
    options: String,
}

impl<'a> Place<'a> {
    /// Formats the volumes.
    pub(super) fn new(bench: &'a Bench, suite: &'a Path, how: How) -> Result<Place<'a>> {
        let dir = bench.images.join("xfstests");
        if dir.exists() {
            files::remove_dir(&dir)?;
        }
        for name in VOLUMES.into_iter().chain(["above", "helper", "bin", "results", "tmp"]) {
            fs_err::create_dir_all(dir.join(name))?;
        }
        let place = Place { bench, suite, dir, options: format!("-o allow_other,{}", how.options) };
        for name in VOLUMES {
            process::output(Command::new(&bench.f2fs).args(["format", "--size", "3G"]).arg(place.image(name)))?;
        }
        symlink(&bench.f2fs, place.dir.join("bin/f2fs"))?;
        let helper = place.dir.join("helper/mount.fuse.f2fs");
        if how.page_cache == "0" {
            symlink(&bench.f2fs, helper)?;
        } else {
            // A link has no options beside those behind `-o`.
            let f2fs = bench.f2fs.display();
            fs_err::write(&helper, format!("#!/bin/sh\nexec {f2fs} --page-cache {} mount \"$@\"\n", how.page_cache))?;
            process::run(Command::new("chmod").arg("+x").arg(helper))?;
        }
        let (mut users, mut groups) = (fs_err::read_to_string("/etc/passwd")?, fs_err::read_to_string("/etc/group")?);
        for (id, name) in (FIRST_ID..).zip(USERS) {
            let known = |list: &str| list.lines().any(|line| line.split(':').next() == Some(name));
            if !known(&users) && !known(&groups) {
                users += &format!("{name}:*:{id}:{id}::/tmp:/bin/bash\n");
                groups += &format!("{name}:x:{id}:\n");
            }
        }
        fs_err::write(place.dir.join("passwd"), users)?;
        fs_err::write(place.dir.join("group"), groups)?;
        fs_err::write(place.dir.join("configuration"), "")?;
        Ok(place)
    }

    fn image(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.img"))
    }

    /// Runs tests; what was said, and whether they ended in time. The volumes are unmounted then, by force if not.
    pub(super) fn check(&self, tests: &[u16], limit: Duration) -> Result<Outcome> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let bin = [self.dir.join("bin")];
        let path = std::env::join_paths(bin.into_iter().chain(std::env::split_paths(&path)))?;
        let mut command = Command::new("setpriv");
        // An interrupt ends this process, and nothing below listens to it.
        command.args(["--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command.args(["sh", "-euc", SCRIPT, "sh"]).args(tests.iter().map(|test| format!("generic/{test:03}")));
        command.current_dir(&self.dir).env("PATH", path).env("PLACE", &self.dir).env("SUITE", self.suite);
        // Of a lock whose owner has ended the suite looks for the list of all processes then.
        command.env("FSTESTS_ISOL", "privatens");
        command.env("TMPDIR", self.dir.join("tmp")).env("RESULT_BASE", self.dir.join("results"));
        command.env("HOST_OPTIONS", self.dir.join("configuration")).env("FSTYP", "fuse").env("FUSE_SUBTYP", ".f2fs");
        command.env("TEST_DEV", self.image("test")).env("TEST_DIR", self.dir.join("test"));
        command.env("SCRATCH_DEV", self.image("scratch")).env("SCRATCH_MNT", self.dir.join("scratch"));
        command.env("FUSE_MOUNT_OPTIONS", &self.options).env("TEST_FS_MOUNT_OPTS", &self.options);
        process::capture(&mut command, limit)
    }

    /// `f2fs check` and fsck.f2fs must find nothing in the volumes.
    pub(super) fn clean(&self) -> Result<()> {
        for name in VOLUMES {
            let image = self.image(name);
            // What a killed server has left is recovered by the next opening, as by a mount.
            let said = process::output(Command::new(&self.bench.f2fs).arg("check").arg(&image))?;
            if !said.is_empty() {
                bail!("f2fs check: {}", String::from_utf8_lossy(&said));
            }
            let said = process::output(Command::new("fsck.f2fs").arg("--dry-run").arg(&image)).context("fsck.f2fs")?;
            let said = String::from_utf8_lossy(&said);
            if said.contains("[ASSERT]") || said.contains("[Fail]") {
                bail!("fsck.f2fs: {said}");
            }
        }
        Ok(())
    }

    /// The results of the suite, which stay after a failure.
    pub(super) fn results(&self) -> PathBuf {
        self.dir.join("results")
    }

    /// Removes the volumes.
    pub(super) fn remove(self) -> Result<()> {
        files::remove_dir(&self.dir)
    }
}
