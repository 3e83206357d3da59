//! Why an operation on files failed.

mod attribute;
mod number;

use f2fs_device::DeviceError;
use f2fs_format::compression::Compression;
use f2fs_format::encryption::EncryptionPolicy;
use f2fs_format::{Corruption, FormatError, Nid};
use f2fs_sync::PlainArc;
use f2fs_volume::VolumeError;
use thiserror::Error;

use crate::device_number::DeviceNumber;
use crate::entry::BadEntry;

pub use attribute::BadAttribute;

/// Why an operation on files failed. Where POSIX has a name for it, the variant says so.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FsError {
    /// No such file or directory (`ENOENT`).
    #[error("no such file or directory")]
    NotFound,
    /// The name is taken (`EEXIST`).
    #[error("already exists")]
    Exists,
    /// A directory is needed here (`ENOTDIR`).
    #[error("not a directory")]
    NotDirectory,
    /// A directory cannot be used here (`EISDIR`).
    #[error("is a directory")]
    IsDirectory,
    /// A directory cannot get another name beside its own (`EPERM`).
    #[error("a directory cannot have another name")]
    DirectoryLink,
    /// The directory holds entries (`ENOTEMPTY`).
    #[error("directory not empty")]
    NotEmpty,
    /// The root has no name, and the directory of a path that ends in `.` or `..` cannot be renamed (`EBUSY`).
    #[error("the root, `.` and `..` cannot be renamed or removed")]
    Busy,
    /// A name is empty, too long, `.` or `..`, or holds a slash or NUL (`EINVAL`, `ENAMETOOLONG`).
    #[error(transparent)]
    Name(FormatError),
    /// An entry of the volume has an invalid name (`EUCLEAN`).
    #[error(transparent)]
    BadEntry(BadEntry),
    /// A directory cannot be moved into itself (`EINVAL`).
    #[error("a directory cannot be moved into itself")]
    IntoItself,
    /// A symbolic link that has no target (`ENOENT`). Linux leaves such links when the power is cut between the name and
    /// the target (`f2fs_symlink`), and says the same of them.
    #[error("the symbolic link has no target")]
    NoTarget,
    /// Too many symbolic links on the way (`ELOOP`).
    #[error("too many symbolic links: more than {limit}")]
    Loop {
        /// Links followed at most.
        limit: u32,
    },
    /// The link count is at its limit (`EMLINK`).
    #[error("too many links: at most {limit}")]
    TooManyLinks {
        /// The limit.
        limit: u32,
    },
    /// The file cannot be that large (`EFBIG`).
    #[error("file too large: {size} bytes wanted, at most {limit}")]
    FileTooLarge {
        /// The size asked for, in bytes.
        size: u64,
        /// The largest size in bytes.
        limit: u64,
    },
    /// The target of a symbolic link is empty, too long, or holds a zero byte (`ENOENT`, `ENAMETOOLONG`, `EINVAL`).
    #[error(
        "the target of a symbolic link {why}: it has {len} bytes, and 1 to {limit} are possible, none of them zero"
    )]
    LinkTarget {
        /// The fault.
        why: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The longest possible.
        limit: usize,
    },
    /// A time has more nanoseconds than a second (`EINVAL`).
    #[error("a time with {nanoseconds} nanoseconds: at most 999999999 are possible")]
    Time {
        /// The nanoseconds asked for.
        nanoseconds: u32,
    },
    /// A device number does not fit into an inode (`EINVAL`).
    #[error("device number {major}:{minor}: at most {}:{} is possible", DeviceNumber::MAX.major, DeviceNumber::MAX.minor)]
    DeviceNumber {
        /// The major number asked for.
        major: u32,
        /// The minor number asked for.
        minor: u32,
    },
    /// The operation does not fit this kind of file (`EINVAL`).
    #[error("cannot {operation}: it is a {kind}")]
    WrongKind {
        /// The operation.
        operation: &'static str,
        /// The kind of the file.
        kind: &'static str,
    },
    /// No such attribute (`ENODATA`).
    #[error("no such extended attribute")]
    NoAttribute,
    /// An attribute's name or value cannot be stored ([`BadAttribute`] has the error numbers).
    #[error("extended attribute: {why}: {size} bytes{}", at_most(*.limit))]
    Attribute {
        /// The fault.
        why: BadAttribute,
        /// Bytes of what was given.
        size: usize,
        /// The limit in bytes; 0: the length is not what is wrong.
        limit: usize,
    },
    /// The data is encrypted, and this library has no keys (`ENOKEY`).
    #[error("the data of inode {ino} is encrypted ({})", policy_name(.policy.as_ref()))]
    Encrypted {
        /// The inode.
        ino: Nid,
        /// How, and by which key; `None` if the inode does not have it, or not in a form that the kernel knows.
        policy: Option<EncryptionPolicy>,
    },
    /// The data is compressed, and this library does not decompress (`EOPNOTSUPP`).
    #[error("cluster {cluster} of inode {ino} is compressed ({compression})")]
    Compressed {
        /// The inode.
        ino: Nid,
        /// The first cluster that was to be read, counted from the start of the file.
        cluster: u64,
        /// How the file is compressed.
        compression: Compression,
    },
    /// The file needs something that this library does not do (`EOPNOTSUPP`).
    #[error("inode {ino}: unsupported: {what}")]
    Unsupported {
        /// The inode.
        ino: Nid,
        /// The feature that it needs.
        what: &'static str,
    },
    /// The file is not open for that (`EBADF`).
    #[error("the file is not open for {0}")]
    NotOpenFor(&'static str),
    /// A dirty block was not in the page cache when it was to be written: a fault of this library (`EIO`).
    #[error("block {block} of inode {ino} was to be written, and is not in the page cache")]
    PageLost {
        /// The inode's number.
        ino: Nid,
        /// The block in the file.
        block: u64,
    },
    /// Two files that have to be in one file system are in different ones (`EXDEV`).
    #[error("the files are in different file systems")]
    OtherVolume,
    /// An argument makes no sense (`EINVAL`).
    #[error("invalid argument: {0}")]
    Invalid(&'static str),
    /// The chain of nodes that were synced after the last checkpoint contradicts itself or the checkpoint. It can be
    /// opened without ([`VolumeOptions::recovery`](f2fs_volume::VolumeOptions::recovery)), at the checkpoint.
    #[error("the files synced after the last checkpoint cannot be recovered: {0}")]
    Recovery(#[source] Box<FsError>),
    /// A file that was synced into a journal cannot be brought back. The others can be
    /// ([`JournalOptions::passes_over`](crate::JournalOptions::passes_over)).
    #[error("inode {ino}: {reason}")]
    SyncedFile {
        /// Its inode.
        ino: Nid,
        /// What is wrong with it.
        #[source]
        reason: Box<FsError>,
    },
    /// The volume was left with files that were synced into a journal, and is to be opened for writing without it.
    /// Nothing was written. [`Options::without_journal`](crate::Options::without_journal) gives them up.
    #[error("the volume was left with synced files in the journal {journal}, which was not given")]
    JournalMissing {
        /// The journal's identity.
        journal: String,
    },
    /// A volume takes a journal only if the attributes of its root leave room for the journal's identity. The
    /// volume is as it was.
    #[error("the extended attributes of the root leave {free} bytes for the journal's identity, which takes {needed}")]
    NoRoomForJournal {
        /// Bytes that it takes.
        needed: usize,
        /// Bytes that are free.
        free: usize,
    },
    /// The volume was left with files that were synced into another journal than the one that was given. Nothing was
    /// written.
    #[error("the volume was left with synced files in the journal {expected}, and {found} was given")]
    OtherJournal {
        /// The identity of the journal that it was left with.
        expected: String,
        /// That of the one that was given.
        found: String,
    },
    /// Space is missing (`ENOSPC`): blocks, node identifiers, or room for orphans in the checkpoint. The cause has the
    /// numbers. The operation may succeed after a deletion and a checkpoint.
    #[error(transparent)]
    NoSpace(Box<VolumeError>),
    /// Data that was written into the page cache could not be written to the device. It is still in memory, and the
    /// next sync or checkpoint tries again.
    #[error("data in the page cache could not be written: {0}")]
    WriteBack(#[source] PlainArc<FsError>),
    /// The file system is open for reading only (`EROFS`).
    #[error("the volume is open for reading only")]
    ReadOnly,
    /// The volume below failed.
    #[error(transparent)]
    Volume(VolumeError),
}

fn at_most(limit: usize) -> String {
    if limit == 0 { String::new() } else { format!(", at most {limit}") }
}

fn policy_name(policy: Option<&EncryptionPolicy>) -> String {
    policy.map_or_else(|| "by no known policy".into(), ToString::to_string)
}

impl<E: Into<VolumeError>> From<E> for FsError {
    fn from(error: E) -> Self {
        match error.into() {
            error if error.is_no_space() => FsError::NoSpace(Box::new(error)),
            VolumeError::ReadOnly => FsError::ReadOnly,
            VolumeError::FileTooLarge { size, limit } => FsError::FileTooLarge { size, limit },
            error => FsError::Volume(error),
        }
    }
}

impl From<BadEntry> for FsError {
    fn from(entry: BadEntry) -> Self {
        FsError::BadEntry(entry)
    }
}

impl FsError {
    pub(crate) fn corrupt(what: &'static str, found: u64, min: u64, max: u64) -> FsError {
        FsError::Volume(Corruption::Range { what, found, min, max }.into())
    }

    pub(crate) fn corrupt_inode(ino: Nid, what: &'static str) -> FsError {
        FsError::Volume(Corruption::Inode { ino, what }.into())
    }

    pub(crate) fn no_parent(directory: Nid) -> FsError {
        FsError::corrupt_inode(directory, "it is a directory without an entry `..`")
    }

    /// Whether space was missing (`ENOSPC`).
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        matches!(self, FsError::NoSpace(_))
    }

    /// Whether segments are missing although the volume need not be full: cleaning may help.
    pub(crate) fn is_shortage(&self) -> bool {
        matches!(self, FsError::NoSpace(error) if matches!(**error, VolumeError::Segment(_)))
    }

    /// Whether NIDs are missing.
    pub(crate) fn is_lack_of_nids(&self) -> bool {
        matches!(self, FsError::NoSpace(error) if matches!(**error, VolumeError::NoNids { .. }))
    }

    /// Whether the file is sound, and its data needs a key or a decompressor, or is another device: a program that
    /// reads a whole volume can go on with the next file.
    #[must_use]
    pub fn is_unreadable_content(&self) -> bool {
        matches!(self, FsError::Encrypted { .. } | FsError::Compressed { .. } | FsError::Unsupported { .. })
    }

    /// The device's error, if that is the reason.
    #[must_use]
    pub fn device(&self) -> Option<&DeviceError> {
        match self {
            FsError::Volume(error) => error.device(),
            FsError::Recovery(error) | FsError::SyncedFile { reason: error, .. } => error.device(),
            FsError::WriteBack(error) => error.device(),
            _ => None,
        }
    }

    /// Whether the volume holds bytes that contradict the format.
    #[must_use]
    pub fn is_corruption(&self) -> bool {
        self.device().is_none() && number::of_corruption(self)
    }
}

#[cfg(test)]
mod tests {
    use f2fs_format::LogType;
    use f2fs_segment::SegmentError;

    use super::*;

    #[test]
    fn a_lack_of_space_says_what_is_missing() {
        let blocks = FsError::from(VolumeError::NoSpace { wanted: 2, available: 1 });
        let numbers = FsError::from(VolumeError::NoNids { used: 1, limit: 1 });
        let segments = FsError::from(SegmentError::NoSpace { log: LogType::HotData, free: 0, prefree: 0, floor: 1 });
        let others = [FsError::NotFound, FsError::from(VolumeError::ReadOnly), FsError::Invalid("x")];
        for (error, space, shortage, nids) in
            [(&blocks, true, false, false), (&numbers, true, false, true), (&segments, true, true, false)]
                .into_iter()
                .chain(others.iter().map(|error| (error, false, false, false)))
        {
            let said = (error.is_no_space(), error.is_shortage(), error.is_lack_of_nids());
            assert_eq!(said, (space, shortage, nids), "{error}");
        }
        assert!(matches!(others[1], FsError::ReadOnly));
    }

    #[test]
    fn texts_have_their_numbers() {
        let attribute = |limit| FsError::Attribute { why: BadAttribute::TooLarge, size: 9, limit }.to_string();
        assert_eq!(attribute(0), "extended attribute: a value that is too long: 9 bytes");
        assert_eq!(attribute(8), "extended attribute: a value that is too long: 9 bytes, at most 8");
        let encrypted = FsError::Encrypted { ino: Nid(5), policy: None };
        assert_eq!(encrypted.to_string(), "the data of inode 5 is encrypted (by no known policy)");
        assert!(encrypted.is_unreadable_content() && !FsError::NotFound.is_unreadable_content());
        assert!(FsError::corrupt("a size", 3, 0, 2).is_corruption() && !encrypted.is_corruption());
    }

    #[test]
    fn targets_of_links_have_the_numbers_of_linux() {
        let number = |len| FsError::LinkTarget { why: "is not one", len, limit: 5 }.raw_os_error();
        assert_eq!([0, 1, 5, 6].map(number), [2, 22, 22, 36]);
        let name = |len| FsError::Name(FormatError::Name { why: "is not one", len }).raw_os_error();
        assert_eq!([0, 255, 256].map(name), [22, 22, 36]);
    }
}
