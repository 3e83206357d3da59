//! Files without a name (`O_TMPFILE`) on a mounted file system: named when they are whole, or never.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::fs::{AtFlags, CWD, OFlags, linkat};
use rustix::io::Errno;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An empty directory of the mounted file system.
    dir: PathBuf,
    /// Makes this file when one without a name was synced, and waits to be killed.
    #[arg(long)]
    hold: Option<PathBuf>,
}

const CONTENT: &[u8] = &[7; 300_000];

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let dir = &args.dir;
    let file = make(dir, OFlags::empty())?;
    ensure!(links(&file)? == 0, "a file without a name has {} links", links(&file)?);
    ensure!(fs::read_dir(dir)?.next().is_none(), "a file without a name is listed");
    name(&file, &dir.join("whole"))?;
    ensure!(links(&file)? == 1 && fs::read(dir.join("whole"))? == CONTENT, "the name leads elsewhere");
    name(&file, &dir.join("second"))?;
    ensure!(links(&file)? == 2, "{} links", links(&file)?);
    let taken = name(&make(dir, OFlags::empty())?, &dir.join("whole"));
    ensure!(taken == Err(Errno::EXIST), "a name that is there was given to another file: {taken:?}");
    let alone = name(&make(dir, OFlags::EXCL)?, &dir.join("alone"));
    ensure!(alone == Err(Errno::NOENT), "a file that was to stay without a name got one: {alone:?}");
    fs::remove_file(dir.join("second"))?;
    File::open(dir)?.sync_all()?;
    if let Some(hold) = &args.hold {
        let lost = make(dir, OFlags::empty())?;
        lost.sync_all()?;
        // Everything, with a checkpoint that lists the file without a name.
        File::open(dir)?.sync_all()?;
        fs::write(hold, b"")?;
        loop {
            thread::sleep(Duration::from_secs(1));
        }
    }
    Ok(())
}

fn make(dir: &Path, flags: OFlags) -> anyhow::Result<File> {
    let flags = (OFlags::TMPFILE | flags).bits() as i32;
    let mut file = OpenOptions::new().read(true).write(true).mode(0o640).custom_flags(flags).open(dir)?;
    file.write_all(CONTENT).context("a file without a name")?;
    Ok(file)
}

fn links(file: &File) -> anyhow::Result<u64> {
    Ok(file.metadata()?.nlink())
}

fn name(file: &File, path: &Path) -> Result<(), Errno> {
    linkat(CWD, format!("/proc/self/fd/{}", file.as_raw_fd()), CWD, path, AtFlags::SYMLINK_FOLLOW)
}
