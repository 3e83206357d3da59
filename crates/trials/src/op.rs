//! Operations of a workload, and how each is done. `model` says what it does to the model, `text` how it is written
//! down.

mod model;
mod text;

use std::ops::Range;

use f2fs_files::{
    AllocateFlags, File, FileKind, FileSystem, FsError, NewFile, Pace, RenameMode, SetMode, SetTimes, Time,
};

use crate::tree::{Content, Tree, is_within, parent};
use f2fs_device_test::bytes;
use f2fs_format::BLOCK_BYTES;

pub use text::ParseOpError;

/// Bytes that are written together.
/// Permissions of new files, directories and symbolic links.
const FILE_MODE: u16 = 0o644;
const DIR_MODE: u16 = 0o755;
const LINK_MODE: u16 = 0o777;

/// One operation. Its text is its name and what it is about: `rename /A/foo /B/bar`, `write /A/foo 4096 100`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Make an empty file.
    Create(String),
    /// Make a directory.
    Mkdir(String),
    /// Make a symbolic link with a target of so many bytes.
    Symlink(String, usize),
    /// Give a new file of so many bytes a name that another one may have: it gets it when it is whole.
    Replace(String, usize),
    /// Give a file another name.
    Link(String, String),
    /// Rename, over what is there.
    Rename(String, String),
    /// Let two names change places.
    Exchange(String, String),
    /// Remove a file.
    Unlink(String),
    /// Remove a file that stays open until the end: an orphan.
    Orphan(String),
    /// Remove an empty directory.
    Rmdir(String),
    /// Write: offset and length.
    Write(String, u64, usize),
    /// Write so many bytes at the end, all or none. What was done is a [`Write`](Op::Write).
    Append(String, usize),
    /// Write so that it is durable at once: offset and length.
    WriteDurable(String, u64, usize),
    /// Set the size.
    Truncate(String, u64),
    /// Allocate blocks (offset, length), the size kept or not.
    Allocate(String, u64, u64, bool),
    /// Punch a hole: offset and length.
    Punch(String, u64, u64),
    /// Zero a range (offset, length), with blocks for it, the size kept or not.
    Zero(String, u64, u64, bool),
    /// Set an extended attribute of so many bytes.
    SetXattr(String, String, usize),
    /// Remove an extended attribute.
    RemoveXattr(String, String),
    /// Set the permission bits.
    SetMode(String, u16),
    /// Set owner and group.
    SetOwner(String, u32, u32),
    /// Set both times, to so many seconds since 1970 and one more.
    SetTimes(String, i64),
    /// Make a file durable.
    Sync(String),
    /// Make a directory durable.
    SyncDir(String),
    /// Make everything durable.
    Checkpoint,
    /// Empty a section, if there is one worth it.
    Clean,
}

/// Whether a healthy volume may refuse an operation so, whatever the model says: it is full, or an inode's attributes
/// are.
#[must_use]
pub fn is_refusal(error: &FsError) -> bool {
    error.is_no_space() || matches!(error, FsError::Attribute { .. })
}

/// The effects of an operation.
#[derive(Debug, Default)]
pub struct Done {
    /// The inode that it made or opened.
    pub ino: u32,
    /// The file that stays open.
    pub open: Option<File>,
    /// Where an append begins.
    pub offset: Option<u64>,
    /// Bytes that were written, if they were fewer than asked for: the volume is full.
    pub written: Option<usize>,
}

impl Op {
    /// Does it. `salt` makes the bytes that it writes.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn perform(&self, fs: &FileSystem, salt: u64) -> Result<Done, FsError> {
        let made = |ino: f2fs_format::Nid| Done { ino: ino.0, ..Done::default() };
        match self {
            Op::Create(path) => fs.create_file(path, FILE_MODE).map(|file| made(file.ino())),
            Op::Mkdir(path) => fs.create_dir(path, DIR_MODE).map(|stat| made(stat.ino)),
            Op::Symlink(path, len) => fs
                .symlink(&target(*len, salt), path, &NewFile::new(FileKind::Symlink, LINK_MODE))
                .map(|stat| made(stat.ino)),
            Op::Replace(path, len) => {
                let new = fs.root()?.create_unnamed(&NewFile::new(FileKind::Regular, FILE_MODE))?;
                let written = new.open_file()?.write_at(&bytes(*len, salt), 0)?;
                if salt.is_multiple_of(2) {
                    // It lists the file.
                    fs.checkpoint()?;
                }
                let name = path.rsplit('/').next().unwrap_or_default();
                fs.inode_at(parent(path))?.link_over(name, &new)?;
                Ok(Done { written: (written < *len).then_some(written), ..made(new.ino()) })
            }
            Op::Link(from, to) => {
                let file = fs.inode_at(from)?;
                let name = to.rsplit('/').next().unwrap_or_default();
                fs.inode_at(parent(to))?.link(name, &file).map(|()| made(file.ino()))
            }
            Op::Rename(from, to) => fs.rename(from, to, RenameMode::Replace).map(|()| Done::default()),
            Op::Exchange(from, to) => fs.rename(from, to, RenameMode::Exchange).map(|()| Done::default()),
            Op::Unlink(path) => fs.remove_file(path).map(|()| Done::default()),
            Op::Orphan(path) => {
                let open = fs.open_file(path)?;
                fs.remove_file(path).map(|()| Done { open: Some(open), ..Done::default() })
            }
            Op::Rmdir(path) => fs.remove_dir(path).map(|()| Done::default()),
            Op::Write(path, offset, len) => {
                let file = fs.open_file(path)?;
                let written = file.write_at(&bytes(*len, salt), *offset)?;
                Ok(Done { written: (written < *len).then_some(written), ..made(file.ino()) })
            }
            Op::Append(path, len) => {
                let file = fs.open_file(path)?;
                let offset = file.append(&bytes(*len, salt))?;
                Ok(Done { offset: Some(offset), ..made(file.ino()) })
            }
            Op::WriteDurable(path, offset, len) => {
                let file = fs.open_file(path)?;
                let written = file.write_durable(&bytes(*len, salt), *offset)?;
                Ok(Done { written: (written < *len).then_some(written), ..made(file.ino()) })
            }
            Op::Truncate(path, size) => {
                let file = fs.open_file(path)?;
                file.set_len(*size).map(|()| made(file.ino()))
            }
            Op::Allocate(path, offset, len, keep) => {
                let file = fs.open_file(path)?;
                file.allocate(*offset, *len, AllocateFlags::NONE.keep_size(*keep)).map(|()| made(file.ino()))
            }
            Op::Punch(path, offset, len) => {
                let file = fs.open_file(path)?;
                file.punch_hole(*offset, *len).map(|()| made(file.ino()))
            }
            Op::Zero(path, offset, len, keep) => {
                let file = fs.open_file(path)?;
                file.allocate(*offset, *len, AllocateFlags::ZERO_RANGE.keep_size(*keep)).map(|()| made(file.ino()))
            }
            Op::SetXattr(path, name, len) => {
                fs.set_xattr(path, name, &bytes(*len, salt), SetMode::Any).map(|()| Done::default())
            }
            Op::RemoveXattr(path, name) => fs.remove_xattr(path, name).map(|()| Done::default()),
            Op::SetMode(path, mode) => fs.set_permissions(path, *mode).map(|()| Done::default()),
            Op::SetOwner(path, uid, gid) => fs.set_owner(path, Some(*uid), Some(*gid)).map(|()| Done::default()),
            Op::SetTimes(path, seconds) => {
                let time = |seconds| Time { seconds, nanoseconds: 0 };
                fs.set_times(path, SetTimes::new().accessed(time(*seconds)).modified(time(seconds + 1)))
                    .map(|()| Done::default())
            }
            Op::Sync(path) => {
                let file = fs.open_file(path)?;
                file.sync_all().map(|()| made(file.ino()))
            }
            Op::SyncDir(path) => fs.open_dir(path)?.sync_all().map(|()| Done::default()),
            Op::Checkpoint => fs.checkpoint().map(|_| Done::default()),
            Op::Clean => fs.clean_step(Pace::Urgent).map(|_| Done::default()),
        }
    }

    /// Whether it can be done on this tree; decides which sequences are worth trying. An operation that it rules out
    /// may still succeed.
    #[must_use]
    pub fn fits(&self, tree: &Tree) -> bool {
        let file = |path: &str| tree.node(path).is_some_and(|node| matches!(node.content, Content::File(_)));
        let free = |path: &str| !tree.names.contains_key(path) && tree.is_dir(parent(path));
        match self {
            Op::Create(path) | Op::Mkdir(path) | Op::Symlink(path, _) => free(path),
            Op::Replace(path, _) => tree.is_dir(parent(path)) && !tree.is_dir(path),
            Op::Link(from, to) => file(from) && free(to),
            Op::Rename(from, to) => {
                let target = match (tree.is_dir(from), tree.names.contains_key(to)) {
                    (_, false) => tree.is_dir(parent(to)),
                    (true, true) => {
                        tree.is_dir(to) && tree.names.keys().filter(|path| is_within(path, to)).count() == 1
                    }
                    (false, true) => !tree.is_dir(to),
                };
                tree.names.contains_key(from) && from != to && !is_within(to, from) && target
            }
            Op::Exchange(from, to) => {
                let both = tree.names.contains_key(from) && tree.names.contains_key(to);
                both && !is_within(to, from) && !is_within(from, to)
            }
            Op::Unlink(path) => tree.names.contains_key(path) && !tree.is_dir(path),
            Op::Orphan(path) | Op::Write(path, ..) | Op::Append(path, _) | Op::WriteDurable(path, ..) => file(path),
            Op::Truncate(path, _) | Op::SetTimes(path, _) => file(path),
            Op::Allocate(path, ..) | Op::Sync(path) => file(path),
            Op::Punch(path, ..) | Op::Zero(path, ..) => file(path),
            Op::Rmdir(path) => {
                tree.is_dir(path) && path != "/" && tree.names.keys().filter(|name| is_within(name, path)).count() == 1
            }
            Op::SetXattr(path, ..) | Op::SetMode(path, _) | Op::SetOwner(path, ..) => file(path) || tree.is_dir(path),
            Op::RemoveXattr(path, name) => {
                tree.node(path).is_some_and(|node| node.xattrs.contains_key(name.as_bytes()))
            }
            Op::SyncDir(path) => tree.is_dir(path),
            Op::Checkpoint | Op::Clean => true,
        }
    }

    /// What was done: a part of it, if that was less, and where.
    #[must_use]
    pub fn done(self, done: &Done) -> Op {
        if let (Op::Append(path, len), Some(offset)) = (&self, done.offset) {
            return Op::Write(path.clone(), offset, *len);
        }
        match (self, done.written) {
            (Op::Write(path, offset, _), Some(written)) => Op::Write(path, offset, written),
            (Op::Replace(path, _), Some(written)) => Op::Replace(path, written),
            (Op::WriteDurable(path, offset, _), Some(written)) => Op::WriteDurable(path, offset, written),
            (op, _) => op,
        }
    }

    /// The names that it looks up and must find.
    #[must_use]
    pub(crate) fn needs(&self) -> Vec<&str> {
        match self {
            Op::Create(_) | Op::Mkdir(_) | Op::Symlink(..) | Op::Replace(..) | Op::Checkpoint | Op::Clean => Vec::new(),
            Op::Exchange(path, other) => vec![path, other],
            Op::Link(path, _) | Op::Rename(path, _) | Op::Unlink(path) | Op::Orphan(path) | Op::Rmdir(path) => {
                vec![path]
            }
            Op::SetXattr(path, ..) | Op::RemoveXattr(path, _) => vec![path],
            Op::SetMode(path, _) | Op::SetOwner(path, ..) | Op::SetTimes(path, _) => vec![path],
            Op::Allocate(path, ..) | Op::Sync(path) | Op::SyncDir(path) => vec![path],
            Op::Punch(path, ..) | Op::Zero(path, ..) | Op::Append(path, _) => vec![path],
            Op::Write(path, ..) | Op::WriteDurable(path, ..) | Op::Truncate(path, _) => vec![path],
        }
    }

    /// The name that it makes, and must not find.
    #[must_use]
    pub(crate) fn makes(&self) -> Option<&str> {
        match self {
            Op::Create(path) | Op::Mkdir(path) | Op::Symlink(path, _) | Op::Link(_, path) => Some(path),
            _ => None,
        }
    }

    /// The file that it opens first, and then changes whatever its name is.
    #[must_use]
    pub(crate) fn opens(&self) -> Option<&str> {
        match self {
            Op::Write(path, ..) | Op::WriteDurable(path, ..) | Op::Truncate(path, _) | Op::Sync(path) => Some(path),
            Op::Punch(path, ..) | Op::Zero(path, ..) | Op::Append(path, _) | Op::Link(path, _) => Some(path),
            Op::Allocate(path, ..) => Some(path),
            _ => None,
        }
    }

    /// The same on a file that it opens by another name.
    #[must_use]
    pub(crate) fn on(self, path: String) -> Op {
        match self {
            Op::Write(_, offset, len) => Op::Write(path, offset, len),
            Op::WriteDurable(_, offset, len) => Op::WriteDurable(path, offset, len),
            Op::Append(_, len) => Op::Append(path, len),
            Op::Link(_, to) => Op::Link(path, to),
            Op::Allocate(_, offset, len, keep) => Op::Allocate(path, offset, len, keep),
            Op::Truncate(_, size) => Op::Truncate(path, size),
            Op::Punch(_, offset, len) => Op::Punch(path, offset, len),
            Op::Zero(_, offset, len, keep) => Op::Zero(path, offset, len, keep),
            Op::Sync(_) => Op::Sync(path),
            other => other,
        }
    }

    /// The file that it makes durable.
    #[must_use]
    pub fn syncs(&self) -> Option<&str> {
        match self {
            Op::Sync(path) | Op::WriteDurable(path, ..) => Some(path),
            _ => None,
        }
    }

    /// The file that it writes to, and the range.
    #[must_use]
    pub fn writes(&self) -> Option<(&str, Range<usize>)> {
        let range = |from: u64, len: usize| from as usize..(from as usize).saturating_add(len);
        match self {
            Op::Write(path, offset, len) | Op::WriteDurable(path, offset, len) => Some((path, range(*offset, *len))),
            // A block of which a part becomes zeros is written again. The others are not on the device afterwards.
            Op::Punch(path, offset, len) | Op::Zero(path, offset, len, _) => {
                Some((path, range(*offset, *len as usize)))
            }
            // The bytes behind the new end in its block become zeros.
            Op::Truncate(path, size) => {
                Some((path, range(*size, size.next_multiple_of(BLOCK_BYTES) as usize - *size as usize)))
            }
            _ => None,
        }
    }

    /// The file that it is about, if there is one afterwards.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        match self {
            Op::Replace(path, _) | Op::Append(path, _) => Some(path),
            Op::Create(path) | Op::Write(path, ..) | Op::Truncate(path, _) | Op::Allocate(path, ..) => Some(path),
            Op::Punch(path, ..) | Op::Zero(path, ..) => Some(path),
            Op::SetXattr(path, ..) | Op::RemoveXattr(path, _) | Op::Sync(path) => Some(path),
            Op::SetMode(path, _) | Op::SetOwner(path, ..) | Op::SetTimes(path, _) => Some(path),
            Op::WriteDurable(path, ..) => Some(path),
            Op::Link(_, to) | Op::Rename(_, to) | Op::Exchange(_, to) => Some(to),
            Op::Mkdir(_) | Op::Symlink(..) | Op::Unlink(_) | Op::Orphan(_) | Op::Rmdir(_) => None,
            Op::SyncDir(_) | Op::Checkpoint | Op::Clean => None,
        }
    }
}

/// The target of so many bytes that a symbolic link is given.
#[must_use]
pub fn target(len: usize, salt: u64) -> Vec<u8> {
    bytes(len.max(1), salt).into_iter().map(|byte| b'a' + byte % 26).collect()
}
