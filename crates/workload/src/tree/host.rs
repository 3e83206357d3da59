//! Operations through the operating system.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, XattrFlags};
use rustix::process::{Gid, Uid};

use super::{NodeKind, Op, TreeTarget, fill};

/// A directory of the host, as the root of a tree.
///
/// Modes of new files pass through the process's umask: a caller that wants them exact sets it to 0.
#[derive(Debug, Clone)]
pub struct HostTree {
    root: PathBuf,
}

/// An operation that the operating system refused.
#[derive(Debug, thiserror::Error)]
#[error("{op:?}: {source}")]
pub struct HostTreeError {
    /// The operation.
    pub op: Box<Op>,
    /// The operating system's error.
    pub source: io::Error,
}

impl HostTree {
    /// The tree whose `/` is the existing directory `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn at(&self, path: &[u8]) -> PathBuf {
        let below = path.strip_prefix(b"/").unwrap_or(path);
        self.root.join(OsStr::from_bytes(below))
    }

    fn write(&self, path: &[u8], offset: u64, length: u64, seed: u64, flags: OFlags) -> io::Result<()> {
        const PIECE: u64 = 1 << 20;
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).custom_flags(flags.bits() as i32).open(self.at(path))?;
        let mut buffer = vec![0; length.min(PIECE) as usize];
        let mut done = 0;
        while done < length {
            let piece = &mut buffer[..(length - done).min(PIECE) as usize];
            fill(seed, done, piece);
            file.write_all_at(piece, offset + done)?;
            done += piece.len() as u64;
        }
        Ok(())
    }

    fn run(&self, op: &Op) -> io::Result<()> {
        match op {
            Op::Mkdir { path, mode } => fs::mkdir(self.at(path), mode_of(*mode))?,
            Op::Create { path, mode } => {
                fs::open(self.at(path), OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY, mode_of(*mode))?;
            }
            Op::Write { path, offset, length, seed } => {
                self.write(path, *offset, *length, *seed, OFlags::empty())?;
            }
            Op::WriteDurable { path, offset, length, seed } => {
                self.write(path, *offset, *length, *seed, OFlags::DSYNC)?;
            }
            Op::Truncate { path, size } => {
                std::fs::OpenOptions::new().write(true).open(self.at(path))?.set_len(*size)?;
            }
            Op::Allocate { path, offset, length, keep_size } => {
                let flags = if *keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
                let file = std::fs::OpenOptions::new().write(true).open(self.at(path))?;
                fs::fallocate(file, flags, *offset, *length)?;
            }
            Op::Fsync { path } => std::fs::File::open(self.at(path))?.sync_all()?,
            Op::Symlink { path, target } => fs::symlink(OsStr::from_bytes(target), self.at(path))?,
            Op::Mknod { path, kind, mode } => {
                let (kind, device) = match *kind {
                    NodeKind::Block(major, minor) => (FileType::BlockDevice, fs::makedev(major, minor)),
                    NodeKind::Char(major, minor) => (FileType::CharacterDevice, fs::makedev(major, minor)),
                    NodeKind::Fifo => (FileType::Fifo, 0),
                    NodeKind::Socket => (FileType::Socket, 0),
                };
                fs::mknodat(CWD, self.at(path), kind, mode_of(*mode), device)?;
            }
            Op::Link { existing, path } => fs::link(self.at(existing), self.at(path))?,
            Op::Unlink { path } => fs::unlink(self.at(path))?,
            Op::Rmdir { path } => fs::rmdir(self.at(path))?,
            Op::Rename { from, to } => fs::rename(self.at(from), self.at(to))?,
            Op::SetXattr { path, name, value } => {
                fs::lsetxattr(self.at(path), OsStr::from_bytes(name), value, XattrFlags::empty())?;
            }
            Op::RemoveXattr { path, name } => fs::lremovexattr(self.at(path), OsStr::from_bytes(name))?,
            Op::Chmod { path, mode } => fs::chmod(self.at(path), mode_of(*mode))?,
            Op::Chown { path, uid, gid } => {
                let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
                fs::chownat(CWD, self.at(path), Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
            }
        }
        Ok(())
    }
}

impl TreeTarget for HostTree {
    type Error = HostTreeError;

    fn apply(&mut self, op: &Op) -> Result<(), HostTreeError> {
        self.run(op).map_err(|source| HostTreeError { op: Box::new(op.clone()), source })
    }
}

fn mode_of(bits: u16) -> Mode {
    Mode::from_raw_mode(u32::from(bits))
}

#[cfg(test)]
mod tests {
    use super::super::{Scale, apply_all, changes, everything};
    use super::*;
    use crate::manifest::{EntryKind, walk_host};

    /// Owners, devices and `trusted.` attributes need root, and some host file systems keep none of them.
    fn unprivileged(script: &[Op]) -> Vec<Op> {
        let plain = |op: &&Op| match op {
            Op::SetXattr { .. } | Op::RemoveXattr { .. } | Op::Chown { .. } => false,
            Op::Mknod { path, kind, .. } => !is_device(path) && matches!(kind, NodeKind::Fifo | NodeKind::Socket),
            Op::Unlink { path } => !is_device(path),
            _ => true,
        };
        script.iter().filter(plain).cloned().collect()
    }

    fn is_device(path: &[u8]) -> bool {
        path.starts_with(b"/special/block") || path.starts_with(b"/special/char")
    }

    #[test]
    fn the_scripts_run_and_give_the_same_tree_every_time() {
        let manifests: Vec<_> = (0..2)
            .map(|_| {
                let dir = tempfile::tempdir().unwrap();
                let mut tree = HostTree::new(dir.path());
                apply_all(&mut tree, &unprivileged(&everything(Scale::SMALL))).unwrap();
                let before = walk_host(dir.path()).unwrap();
                apply_all(&mut tree, &unprivileged(&changes(Scale::SMALL))).unwrap();
                (before, walk_host(dir.path()).unwrap())
            })
            .collect();
        let (before, after) = &manifests[0];
        assert_ne!(before, after);
        for ((one, other), what) in [((before, &manifests[1].0), "before"), ((after, &manifests[1].1), "after")] {
            let files = |manifest: &crate::manifest::Manifest| {
                // Link counts and sizes of directories are the host file system's own.
                let shown = manifest.entries().iter().filter(|entry| entry.kind != EntryKind::Directory);
                shown.map(ToString::to_string).collect::<Vec<_>>()
            };
            assert_eq!(files(one), files(other), "{what}");
        }
        let large = before.entries().iter().find(|entry| entry.path == b"/sparse/large").unwrap();
        assert_eq!(large.size, Scale::SMALL.large);
    }
}
