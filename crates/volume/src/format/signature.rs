//! What a device holds already.

use std::fmt;

use f2fs_device::{BlockDevice, DeviceError};
use f2fs_format::superblock::{MAGIC, SuperBlock};

use super::read_block;

/// Blocks at the front that are zeroed when something is overwritten: other file systems keep their marks there.
pub(super) const WIPED_BLOCKS: u64 = 1024;

/// What a device was recognised to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signature {
    /// A superblock of F2FS, valid or not.
    F2fs {
        /// The volume's label.
        label: String,
        /// Its UUID.
        uuid: [u8; 16],
    },
    /// Another file system, a partition table or the like.
    Other(&'static str),
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Signature::F2fs { label, uuid } => {
                f.write_str("an F2FS volume ")?;
                if !label.is_empty() {
                    write!(f, "labelled {label:?} ")?;
                }
                write!(f, "with UUID {:032x}", u128::from_be_bytes(*uuid))
            }
            Signature::Other(what) => f.write_str(what),
        }
    }
}

/// Marks of others: byte offset on the device, bytes there.
const OTHERS: [(usize, &[u8], &str); 11] = [
    (1080, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    (0, b"XFSB", "an XFS file system"),
    (0x10040, b"_BHRfS_M", "a Btrfs file system"),
    (1024, b"\xe2\xe1\xf5\xe0", "an EROFS file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (0, b"hsqs", "a SquashFS file system"),
    (0, b"LUKS\xba\xbe", "an encrypted LUKS volume"),
    (512, b"EFI PART", "a GPT partition table"),
    (4086, b"SWAPSPACE2", "swap space"),
    (510, b"\x55\xaa", "a partition table or a FAT file system"),
];

/// Looks for F2FS in both superblocks, then for others.
///
/// # Errors
/// Those of the device.
pub(super) fn find(device: &dyn BlockDevice) -> Result<Option<Signature>, DeviceError> {
    for index in 0..2.min(device.info().blocks) {
        let superblock = SuperBlock::read(&read_block(device, index)?);
        if superblock.magic.get() == MAGIC {
            return Ok(Some(Signature::F2fs { label: superblock.label(), uuid: superblock.uuid }));
        }
    }
    let front = device.read(0, 17.min(device.info().blocks) as usize)?;
    let holds = |at: usize, mark: &[u8]| front.as_bytes().get(at..at + mark.len()) == Some(mark);
    Ok(OTHERS.iter().find(|(at, mark, _)| holds(*at, mark)).map(|(_, _, what)| Signature::Other(what)))
}
