//! Attributes of files, and their kinds and device numbers, as the protocol has them.

use std::time::UNIX_EPOCH;

use f2fs_files::{DeviceNumber, FileKind, Metadata};
use fuser::{FileAttr, FileType, INodeNo};

/// The kind of a file as the protocol has it.
pub(crate) fn file_type(kind: FileKind) -> FileType {
    match kind {
        FileKind::Regular => FileType::RegularFile,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::BlockDevice => FileType::BlockDevice,
        FileKind::CharDevice => FileType::CharDevice,
        FileKind::Fifo => FileType::NamedPipe,
        FileKind::Socket => FileType::Socket,
    }
}

/// A device number as the protocol has it (`new_encode_dev`).
pub(crate) fn encode(device: DeviceNumber) -> u32 {
    device.minor & 0xff | device.major << 8 | (device.minor & !0xff) << 12
}

/// The device that such a number says.
pub(crate) fn decode(device: u32) -> DeviceNumber {
    DeviceNumber { major: device >> 8 & 0xfff, minor: device & 0xff | device >> 12 & 0xf_ff00 }
}

/// The attributes of a file, which has this number in the mount.
pub(crate) fn attr(data: &Metadata, number: u64) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: data.size,
        blocks: data.blocks.saturating_mul(8),
        atime: data.accessed.into(),
        mtime: data.modified.into(),
        ctime: data.changed.into(),
        crtime: data.created.map_or(UNIX_EPOCH, Into::into),
        kind: file_type(data.kind),
        perm: data.permissions,
        nlink: data.links,
        uid: data.uid,
        gid: data.gid,
        rdev: data.device.map_or(0, encode),
        blksize: 4096,
        flags: 0,
    }
}

/// The answer that there is no file of a name: the kernel keeps that as well.
pub(crate) fn nothing() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_go_both_ways() {
        for (major, minor) in [(0, 0), (8, 1), (0xfff, 0xf_ffff), (1, 256)] {
            let device = DeviceNumber { major, minor };
            assert_eq!(decode(encode(device)), device);
        }
    }
}
