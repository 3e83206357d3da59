//! Does the operations of a script on a mounted file system, and says after each how long the log of writes is. Runs in
//! the virtual machine.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use f2fs_device_test::bytes;
use rustix::fs::{FallocateFlags, RenameFlags, XattrFlags};

use super::report::{Line, Said};
use super::script::salt;
use crate::op::{Op, target};

/// Where it is done.
#[derive(Debug, clap::Args)]
pub struct Perform {
    /// Where the file system is mounted.
    mount: PathBuf,
    /// The operations, one on each line.
    #[arg(long)]
    script: PathBuf,
    /// The log that its device writes.
    #[arg(long)]
    log: PathBuf,
}

/// Does the operations. One that the file system refuses is reported, and the next one is done.
///
/// # Errors
///
/// If the script is invalid, or the log cannot be read.
pub fn run(args: &Perform) -> anyhow::Result<()> {
    let text = fs::read_to_string(&args.script).with_context(|| args.script.display().to_string())?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let ops: Vec<Op> = lines.map(str::parse).collect::<Result<_, _>>()?;
    let say = |said: Said| -> anyhow::Result<()> {
        let log = fs::metadata(&args.log).with_context(|| args.log.display().to_string())?.len();
        println!("{}", Line { log, said });
        Ok(io::stdout().flush()?)
    };
    // Removed files that stay open until the end.
    let mut open = Vec::new();
    say(Said::Begin)?;
    for (index, op) in ops.iter().enumerate() {
        let said = match perform(op, &args.mount, salt(index), &mut open) {
            Ok(ino) => Said::Done(ino),
            Err(error) => match error.raw_os_error() {
                Some(errno) => Said::Refused(errno),
                None => return Err(error).with_context(|| format!("`{op}`")),
            },
        };
        say(said)?;
    }
    Ok(())
}

/// Does one; gives the inode that it made, or 0.
fn perform(op: &Op, mount: &Path, salt: u64, open: &mut Vec<File>) -> io::Result<u32> {
    let at = |path: &str| mount.join(path.trim_start_matches('/'));
    let file = |path: &str| OpenOptions::new().read(true).write(true).open(at(path));
    let ino = |path: &str| fs::symlink_metadata(at(path)).map(|stat| stat.ino() as u32);
    match op {
        Op::Create(path) => {
            let made = OpenOptions::new().write(true).create_new(true).mode(0o644).open(at(path))?;
            return Ok(made.metadata()?.ino() as u32);
        }
        Op::Mkdir(path) => {
            fs::DirBuilder::new().mode(0o755).create(at(path))?;
            return ino(path);
        }
        Op::Symlink(path, len) => {
            rustix::fs::symlink(&target(*len, salt)[..], at(path))?;
            return ino(path);
        }
        Op::Link(from, to) => fs::hard_link(at(from), at(to))?,
        Op::Rename(from, to) => fs::rename(at(from), at(to))?,
        Op::Exchange(from, to) => {
            let here = rustix::fs::CWD;
            rustix::fs::renameat_with(here, at(from), here, at(to), RenameFlags::EXCHANGE)?;
        }
        Op::Unlink(path) => fs::remove_file(at(path))?,
        Op::Orphan(path) => {
            let held = file(path)?;
            fs::remove_file(at(path))?;
            open.push(held);
        }
        Op::Rmdir(path) => fs::remove_dir(at(path))?,
        Op::Write(path, offset, len) => file(path)?.write_all_at(&bytes(*len, salt), *offset)?,
        Op::WriteDurable(path, offset, len) => {
            let file = file(path)?;
            file.write_all_at(&bytes(*len, salt), *offset)?;
            file.sync_all()?;
        }
        Op::Truncate(path, size) => file(path)?.set_len(*size)?,
        Op::Allocate(path, offset, len, keep) => {
            let flags = if *keep { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
            rustix::fs::fallocate(file(path)?, flags, *offset, *len)?;
        }
        Op::Punch(path, offset, len) => {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(file(path)?, flags, *offset, *len)?;
        }
        Op::Zero(path, offset, len, keep) => {
            let keep = if *keep { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
            rustix::fs::fallocate(file(path)?, FallocateFlags::ZERO_RANGE | keep, *offset, *len)?;
        }
        Op::SetXattr(path, name, len) => {
            rustix::fs::lsetxattr(at(path), name.as_str(), &bytes(*len, salt), XattrFlags::empty())?;
        }
        Op::RemoveXattr(path, name) => rustix::fs::lremovexattr(at(path), name.as_str())?,
        Op::SetMode(path, mode) => fs::set_permissions(at(path), fs::Permissions::from_mode(u32::from(*mode)))?,
        Op::SetOwner(path, uid, gid) => std::os::unix::fs::lchown(at(path), Some(*uid), Some(*gid))?,
        Op::Sync(path) => file(path)?.sync_all()?,
        Op::SyncDir(path) => File::open(at(path))?.sync_all()?,
        Op::Checkpoint => rustix::fs::syncfs(File::open(mount)?)?,
        // A clock that goes, and a cleaner that chooses for itself.
        Op::SetTimes(..) | Op::Replace(..) | Op::Append(..) | Op::Clean => {
            return Err(rustix::io::Errno::OPNOTSUPP.into());
        }
    }
    Ok(0)
}
