//! A volume that is mounted for a judge.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fmt, fs};

use anyhow::{Context, bail};

use super::interrupt::Undo;
use super::{Bench, interrupt};
use crate::{Result, process};

/// How a volume is mounted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    /// The options behind `-o`.
    pub(crate) options: &'static str,
    /// The size of the server's page cache; `0`: it has none.
    pub(crate) page_cache: &'static str,
}

impl How {
    /// As the kernel caches, and without a page cache of the server.
    pub(crate) const fn plain(options: &'static str) -> How {
        How { options, page_cache: "0" }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.options)?;
        if self.page_cache == "0" { Ok(()) } else { write!(f, ", page cache {}", self.page_cache) }
    }
}

/// A volume that is mounted until this is dropped.
#[derive(Debug)]
pub(crate) struct Mounted<'a> {
    bench: &'a Bench,
    image: PathBuf,
    pub(crate) dir: PathBuf,
    _undo: Undo,
}

impl<'a> Mounted<'a> {
    /// Formats an image and mounts it.
    pub(crate) fn new(bench: &'a Bench, name: &str, size: &str, how: How) -> Result<Mounted<'a>> {
        let image = bench.images.join(format!("{name}.img"));
        let dir = bench.images.join(name);
        fs_err::create_dir_all(&dir)?;
        if is_mounted(&dir)? {
            bail!("{0} is mounted already; `f2fs umount {0}` ends that", dir.display());
        }
        if image.exists() {
            fs_err::remove_file(&image)?;
        }
        process::output(Command::new(&bench.f2fs).args(["format", "--size", size]).arg(&image))?;
        let mounted = Mounted::of(bench, image, dir);
        mounted.mount(how)?;
        Ok(mounted)
    }

    /// Formats an image that is there and keeps its blocks, and mounts it.
    pub(crate) fn formatted(bench: &'a Bench, name: &str, how: How) -> Result<Mounted<'a>> {
        let mounted = Mounted::of(bench, bench.images.join(format!("{name}.img")), bench.images.join(name));
        fs_err::create_dir_all(&mounted.dir)?;
        process::output(Command::new(&bench.f2fs).args(["format", "--force", "-t", "0"]).arg(&mounted.image))?;
        mounted.mount(how)?;
        Ok(mounted)
    }

    /// One that is not mounted yet. From now on an interrupt ends the mount.
    fn of(bench: &'a Bench, image: PathBuf, dir: PathBuf) -> Mounted<'a> {
        let (f2fs, mounted) = (bench.f2fs.clone(), dir.clone());
        let _undo = Undo::by(move || {
            let ended =
                || Command::new(&f2fs).arg("umount").arg(&mounted).status().is_ok_and(|status| status.success());
            if is_mounted(&mounted).unwrap_or(false) && !ended() {
                // Somebody still has files open there.
                let _ = Command::new("umount").arg("-l").arg(&mounted).status();
            }
        });
        Mounted { bench, image, dir, _undo }
    }

    pub(crate) fn mount(&self, how: How) -> Result<()> {
        let mut command = Command::new(&self.bench.f2fs);
        command.args(["--page-cache", how.page_cache]);
        command.args(["mount", "-o", how.options]).arg(&self.image).arg(&self.dir);
        interrupt::undisturbed(|| process::run(&mut command))
    }

    pub(crate) fn umount(&self) -> Result<()> {
        process::run(Command::new(&self.bench.f2fs).arg("umount").arg(&self.dir))
    }

    /// The process that serves the mount.
    pub(crate) fn server(&self) -> Result<String> {
        let image = self.image.canonicalize()?.to_string_lossy().into_owned();
        let mut pid = None;
        for entry in fs::read_dir("/proc")?.flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains("mount --told") && line.contains(&image) {
                pid = Some(entry.file_name().to_string_lossy().into_owned());
            }
        }
        pid.context("the mount has no server")
    }

    /// Kills the server, as the kernel would without memory, and removes the dead mount.
    pub(crate) fn kill(&self) -> Result<()> {
        let pid = self.server()?;
        process::run(Command::new("kill").args(["-KILL", &pid]))?;
        let end = Instant::now() + Duration::from_secs(30);
        while fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
            if Instant::now() > end {
                bail!("process {pid} goes on");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        process::run(Command::new("umount").arg("-l").arg(&self.dir))
    }

    /// Unmounts; `f2fs check` and fsck.f2fs must find nothing. Removes the image then.
    pub(crate) fn judge(self) -> Result<()> {
        let image = self.image.clone();
        self.clean()?;
        Ok(fs_err::remove_file(image)?)
    }

    /// Unmounts; `f2fs check` and fsck.f2fs must find nothing.
    pub(crate) fn clean(self) -> Result<()> {
        self.umount()?;
        let said = process::output(Command::new(&self.bench.f2fs).arg("check").arg(&self.image))?;
        if !said.is_empty() {
            bail!("f2fs check: {}", String::from_utf8_lossy(&said));
        }
        let said = process::output(Command::new("fsck.f2fs").arg("--dry-run").arg(&self.image))?;
        let said = String::from_utf8_lossy(&said);
        if said.contains("[ASSERT]") || said.contains("[Fail]") {
            bail!("fsck.f2fs: {said}");
        }
        Ok(())
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // After an error: the image is kept.
        if is_mounted(&self.dir).unwrap_or(false) {
            let _ = Command::new("umount").arg("-l").arg(&self.dir).status();
        }
    }
}

/// Whether a file system is mounted on a directory.
pub(super) fn is_mounted(dir: &Path) -> Result<bool> {
    let dir = format!(" {} ", dir.display());
    Ok(fs_err::read_to_string("/proc/self/mounts")?.lines().any(|line| line.contains(&dir)))
}
