//! The contents that a device has already.

use std::fmt;

use f2fs_device::{BlockDevice, DeviceError};
use f2fs_format::BLOCK_SIZE;
use f2fs_format::superblock::{MAGIC, SuperBlock};

use super::read_block;

/// Blocks at the front that are zeroed when something is overwritten: other file systems keep their marks there.
pub(super) const WIPED_BLOCKS: u64 = 1024;

/// The contents of a device, as recognised.
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
    /// A journal, which may hold files that were synced into it.
    Journal,
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
            Signature::Journal => f.write_str("the journal of an F2FS volume"),
            Signature::Other(what) => f.write_str(what),
        }
    }
}

/// A mark of others: its byte offset on the device, its bytes, and the format that has it.
type Mark = (usize, &'static [u8], &'static str);

/// Those that are looked for, the ones of file systems first: partition tables and boot sectors may stand in front of
/// them.
const OTHERS: [Mark; 31] = [
    (1080, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    (0, b"XFSB", "an XFS file system"),
    (0x10040, b"_BHRfS_M", "a Btrfs file system"),
    (4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", "a bcachefs file system"),
    (1024, b"\xe2\xe1\xf5\xe0", "an EROFS file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (82, b"FAT32   ", "a FAT file system"),
    (54, b"FAT16   ", "a FAT file system"),
    (54, b"FAT12   ", "a FAT file system"),
    (0, b"hsqs", "a SquashFS file system"),
    (32769, b"CD001", "an ISO 9660 file system"),
    (0, b"LUKS\xba\xbe", "an encrypted LUKS volume"),
    (536, b"LVM2 001", "a physical volume of LVM"),
    (4096, b"\xfc\x4e\x2b\xa9", "a member of a RAID"),
    (4086, b"SWAPSPACE2", "swap space"),
    (0, b"QFI\xfb", "a QCOW2 image"),
    (0, b"KDMV", "a VMDK image"),
    (0, b"conectix", "a VHD image"),
    (0, b"\x3a\xff\x26\xed", "an Android sparse image, which simg2img expands"),
    (0, b"\x1f\x8b\x08", "data that gzip compressed"),
    (0, b"\xfd7zXZ\0", "data that xz compressed"),
    (0, b"\x28\xb5\x2f\xfd", "data that zstd compressed"),
    (0, b"\x04\x22\x4d\x18", "data that lz4 compressed"),
    (0, b"BZh", "data that bzip2 compressed"),
    (0, b"PK\x03\x04", "a ZIP archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (257, b"ustar", "a tar archive"),
    (512, b"EFI PART", "a GPT partition table"),
    (4096, b"EFI PART", "a GPT partition table"),
    (510, b"\x55\xaa", "an MBR partition table or a boot sector"),
];

/// The contents of a device: F2FS if either superblock has its magic number, else what others mark; `None` if nothing
/// is recognised.
///
/// ```
/// use f2fs_device::{BlockDevice, MemoryDevice};
/// use f2fs_volume::format::{Signature, recognise};
///
/// let device = MemoryDevice::new(1 << 14);
/// assert_eq!(recognise(&device)?, None);
/// device.write_slice(0, b"XFSB")?;
/// assert_eq!(recognise(&device)?, Some(Signature::Other("an XFS file system")));
/// # Ok::<(), f2fs_device::DeviceError>(())
/// ```
///
/// # Errors
/// Those of the device.
pub fn recognise(device: &dyn BlockDevice) -> Result<Option<Signature>, DeviceError> {
    recognise_from(device, 0)
}

/// The contents of each device of several, as far as they are recognised, with the block at which that device begins.
pub(super) fn on_each(device: &dyn BlockDevice, devices: &[(u64, u64)]) -> Result<Vec<(u64, Signature)>, DeviceError> {
    let held = devices.iter().map(|(_, start)| Ok(recognise_from(device, *start)?.map(|found| (*start, found))));
    held.filter_map(Result::transpose).collect()
}

/// The contents from a block on.
fn recognise_from(device: &dyn BlockDevice, start: u64) -> Result<Option<Signature>, DeviceError> {
    let blocks = device.info().blocks;
    for index in start..(start + 2).min(blocks) {
        let superblock = SuperBlock::read(&read_block(device, index)?);
        if superblock.magic.get() == MAGIC {
            return Ok(Some(Signature::F2fs { label: superblock.label(), uuid: superblock.uuid }));
        }
    }
    let front = device.read(start, 17.min(blocks - start) as usize)?;
    let holds = |at: usize, mark: &[u8]| front.as_bytes().get(at..at + mark.len()) == Some(mark);
    // Either copy of its header.
    if holds(0, &f2fs_journal::MAGIC) || holds(BLOCK_SIZE, &f2fs_journal::MAGIC) {
        return Ok(Some(Signature::Journal));
    }
    Ok(OTHERS.iter().find(|(at, mark, _)| holds(*at, mark)).map(|(_, _, what)| Signature::Other(what)))
}
