//! The two mounts.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Resource, getrlimit};

use super::super::interrupt::{self, Undo};
use super::super::volume::{How, Mounted, is_mounted};
use super::{Amount, Bench, PAGE_CACHE};
use crate::{Result, process};

/// How ours is mounted.
const OURS: How = How { options: "cache=writeback,nodiscard", page_cache: PAGE_CACHE };
/// Files that the pass-through has open beside those of a round: it opens each that the kernel knows.
const OTHERS: u64 = 4000;
/// How long a mount may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A mount that is measured.
pub(super) trait Side {
    /// The directory that it is mounted on.
    fn dir(&self) -> &Path;
    /// The process that serves it.
    fn server(&self) -> Result<String>;
    /// Makes everything durable.
    fn settle(&self) -> Result<()>;
    /// Mounts it anew.
    fn again(&mut self) -> Result<()>;
}

/// Syncs the file system of a directory.
fn sync(dir: &Path) -> Result<File> {
    let dir = File::open(dir)?;
    rustix::fs::syncfs(&dir)?;
    Ok(dir)
}

/// An image for either side, of the same size and without holes.
#[derive(Debug)]
pub(super) struct Images<'a> {
    bench: &'a Bench,
    pass_through: PathBuf,
}

impl<'a> Images<'a> {
    pub(super) fn new(bench: &'a Bench, pass_through: PathBuf, amount: &Amount) -> Result<Images<'a>> {
        // The pass-through takes the greatest limit that it may.
        if let Some(most) = getrlimit(Resource::Nofile).maximum {
            ensure!(amount.files + OTHERS <= most, "the pass-through may open {most} files; give fewer by --files");
        }
        let images = Images { bench, pass_through };
        // Files of all rounds with their nodes, or four of fio, and room for what is written before the old is free.
        let files = u64::from(amount.rounds) * amount.files * 3 * 4096;
        let bytes = files.max(8 * amount.bytes).next_multiple_of(2 << 20) + (512 << 20);
        for image in [images.file("peers-ours"), images.file("peers-theirs")] {
            let mut file = File::create(&image)?;
            let piece = vec![0x5a; 2 << 20];
            for _ in 0..bytes / piece.len() as u64 {
                file.write_all(&piece)?;
            }
            file.sync_all()?;
        }
        Ok(images)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.bench.images.join(format!("{name}.img"))
    }

    /// Ours, of a new volume.
    pub(super) fn ours(&self) -> Result<Ours<'_>> {
        Ok(Ours(Mounted::formatted(self.bench, "peers-ours", OURS)?))
    }

    /// Theirs, of a new ext4.
    pub(super) fn theirs(&self) -> Result<Theirs> {
        let image = self.file("peers-theirs");
        let complete = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
        process::output(Command::new("mkfs.ext4").args(["-q", "-F", "-i", "4096", "-E", complete]).arg(&image))?;
        let below = self.bench.images.join("peers-ext4");
        let dir = self.bench.images.join("peers-theirs");
        fs_err::create_dir_all(&below)?;
        fs_err::create_dir_all(&dir)?;
        let attach = ["--find", "--show", "--direct-io=on"];
        let device = process::output(Command::new("losetup").args(attach).arg(&image))?;
        let device = String::from_utf8(device)?.trim().to_owned();
        let undo = {
            let (device, below, dir) = (device.clone(), below.clone(), dir.clone());
            move || undo(&[&dir, &below], &device)
        };
        let program = self.pass_through.clone();
        let mut theirs = Theirs { program, device, below, dir, server: None, _undo: Undo::by(undo) };
        theirs.mount()?;
        Ok(theirs)
    }
}

impl Drop for Images<'_> {
    fn drop(&mut self) {
        for image in [self.file("peers-ours"), self.file("peers-theirs")] {
            // One that stays is overwritten by the next run.
            let _ = fs::remove_file(image);
        }
    }
}

/// `f2fs mount`.
#[derive(Debug)]
pub(super) struct Ours<'a>(Mounted<'a>);

impl Ours<'_> {
    /// Unmounts; the volume must be clean.
    pub(super) fn end(self) -> Result<()> {
        self.0.clean()
    }
}

impl Side for Ours<'_> {
    fn dir(&self) -> &Path {
        &self.0.dir
    }

    fn server(&self) -> Result<String> {
        self.0.server()
    }

    fn settle(&self) -> Result<()> {
        Ok(sync(&self.0.dir)?.sync_all()?)
    }

    fn again(&mut self) -> Result<()> {
        self.0.umount()?;
        self.0.mount(OURS)
    }
}

/// `passthrough_hp` above ext4.
#[derive(Debug)]
pub(super) struct Theirs {
    program: PathBuf,
    device: String,
    below: PathBuf,
    dir: PathBuf,
    server: Option<Child>,
    _undo: Undo,
}

impl Theirs {
    fn mount(&mut self) -> Result<()> {
        let mut command = Command::new("mount");
        command.args(["-t", "ext4", &self.device]).arg(&self.below);
        interrupt::undisturbed(|| process::output(&mut command))?;
        let mut command = Command::new(&self.program);
        command.arg("--foreground").arg(&self.below).arg(&self.dir).stdout(Stdio::null());
        self.server = Some(command.spawn().context("passthrough_hp")?);
        let end = Instant::now() + PATIENCE;
        while !is_mounted(&self.dir)? {
            if Instant::now() > end {
                bail!("passthrough_hp does not mount");
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn umount(&mut self) -> Result<()> {
        process::output(Command::new("umount").arg(&self.dir))?;
        if let Some(mut server) = self.server.take() {
            server.wait()?;
        }
        process::output(Command::new("umount").arg(&self.below)).map(drop)
    }

    /// Unmounts both.
    pub(super) fn end(mut self) -> Result<()> {
        self.umount()
    }
}

impl Side for Theirs {
    fn dir(&self) -> &Path {
        &self.dir
    }

    fn server(&self) -> Result<String> {
        Ok(self.server.as_ref().context("passthrough_hp does not run")?.id().to_string())
    }

    fn settle(&self) -> Result<()> {
        // It hands on what the kernel keeps. Its error may be one of times: passthrough_hp 3.14 seems unable to set those
        // of a file that was renamed or removed and is not open.
        let _ = sync(&self.dir);
        sync(&self.below).map(drop)
    }

    fn again(&mut self) -> Result<()> {
        self.umount()?;
        self.mount()
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // After an error, which is told. One that does not end by itself is ended.
            undo(&[&self.dir, &self.below], &self.device);
            let _ = server.kill();
            let _ = server.wait();
        } else {
            undo(&[], &self.device);
        }
    }
}

/// Unmounts directories, also where files are open there, and gives the loop device back when nobody has it any more.
fn undo(mounted: &[&Path], device: &str) {
    for dir in mounted {
        let _ = process::output(Command::new("umount").arg("--lazy").arg(dir));
    }
    let _ = process::output(Command::new("losetup").arg("--detach").arg(device));
}
