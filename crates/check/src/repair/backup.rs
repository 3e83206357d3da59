//! The backup: the old content of each block that a repair changes, and checksums that tell whether the volume was
//! written to since.
//!
//! All numbers are little-endian.
//!
//! | Bytes | What |
//! |---|---|
//! | 8 | `F2FSBAK1` |
//! | 8 | blocks of the device |
//! | 8 | number of records |
//! | 4 | CRC-32 (that of F2FS) of the 24 bytes in front |
//! | records | 8: block; 4: sum of its new content; 4: sum of its old content; 4096: its old content |
//!
//! Beside those that change, the first blocks of both checkpoint packs are among them, and the block where the next
//! chain of synced nodes begins: a checkpoint or a sync since the repair changes one of them. Undoing the repair then
//! would put old tables in front of new files.
//!
//! A sum is the CRC-32 of the content from its last byte to its first: forwards, all blocks that end with a CRC of
//! their own, as checkpoint blocks do, would have the same one.

use std::io::{self, Read, Write};

use f2fs_device::{AlreadyOpen, BlockDevice, DeviceError};
use f2fs_format::{BLOCK_SIZE, crc};

use super::{CLAIMANT, Repair};

const MAGIC: [u8; 8] = *b"F2FSBAK1";

/// Why a repair cannot be undone, or its backup not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] io::Error),
    /// Somebody has the device open in this process. Nothing was written.
    #[error(transparent)]
    AlreadyOpen(#[from] AlreadyOpen),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// It is no backup, or a damaged one.
    #[error("the backup of the repair is damaged or cut short at record {record}: {what}")]
    Damaged {
        /// The reason.
        what: &'static str,
        /// In which record; those are counted from 0, the head counts as 0.
        record: u64,
    },
    /// It belongs to a device of another size.
    #[error("the backup is that of a device of {expected} blocks, and this one has {found}")]
    OtherDevice {
        /// The blocks of the device that was repaired.
        expected: u64,
        /// The blocks of this one.
        found: u64,
    },
    /// It belongs to another device, or the device was changed since the repair.
    #[error("block {block} was changed since the repair: its checksum is {found:#010x}, not {expected:#010x}")]
    Changed {
        /// The block.
        block: u64,
        /// The checksum of the block that the repair wrote.
        expected: u32,
        /// The sum of what is there.
        found: u32,
    },
}

/// The result of [`undo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undone {
    /// Blocks that were written back.
    pub restored: u64,
    /// Blocks that were as they had been already.
    pub untouched: u64,
}

impl Repair {
    /// Writes the backup of the blocks that [`apply`](Repair::apply) is going to change on `device`. Make it durable
    /// before that.
    ///
    /// # Errors
    /// Errors of reading the device and writing the backup.
    pub fn write_backup(&self, device: &dyn BlockDevice, mut to: impl Write) -> Result<(), BackupError> {
        let mut head = Vec::with_capacity(28);
        head.extend_from_slice(&MAGIC);
        head.extend_from_slice(&device.info().blocks.to_le_bytes());
        let witnesses: Vec<u64> =
            self.witnesses.iter().copied().filter(|witness| !self.blocks().any(|block| block == *witness)).collect();
        let records = (self.changes.len() + witnesses.len()) as u64;
        head.extend_from_slice(&records.to_le_bytes());
        head.extend_from_slice(&crc::checksum(&head).to_le_bytes());
        to.write_all(&head)?;
        let changed = self.changes.iter().map(|(block, new)| (*block, Some(new)));
        for (block, new) in changed.chain(witnesses.into_iter().map(|block| (block, None))) {
            let old = device.read(block, 1)?;
            let old = old.as_bytes();
            to.write_all(&block.to_le_bytes())?;
            to.write_all(&sum(new.map_or(old, |new| &new[..])).to_le_bytes())?;
            to.write_all(&sum(old).to_le_bytes())?;
            to.write_all(old)?;
        }
        to.flush()?;
        Ok(())
    }
}

impl Repair {
    /// How many of the [`blocks`](Repair::blocks) have their new content on `device`: of a repair that failed half-way.
    ///
    /// # Errors
    /// Errors of reading the device.
    pub fn applied_blocks(&self, device: &dyn BlockDevice) -> Result<usize, DeviceError> {
        let mut applied = 0;
        for (block, new) in &self.changes {
            applied += usize::from(device.read(*block, 1)?.as_bytes() == &new[..]);
        }
        Ok(applied)
    }
}

/// The sum of a block's content.
fn sum(content: &[u8]) -> u32 {
    let backwards: Vec<u8> = content.iter().rev().copied().collect();
    crc::checksum(&backwards)
}

struct Record {
    block: u64,
    as_before: bool,
    /// The repair left the block alone.
    witness: bool,
    content: Vec<u8>,
}

/// The next bytes of the backup, of this record.
fn fill(from: &mut impl Read, bytes: &mut [u8], record: u64) -> Result<(), BackupError> {
    from.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => BackupError::Damaged { what: "it ends there", record },
        _ => error.into(),
    })
}

fn number<const N: usize>(from: &mut impl Read, record: u64) -> Result<[u8; N], BackupError> {
    let mut bytes = [0; N];
    fill(from, &mut bytes, record)?;
    Ok(bytes)
}

/// Writes the old content of every block back that a repair changed, and flushes. The whole backup is verified, and
/// compared with the device, before the first write; it may be repeated.
///
/// # Errors
/// [`BackupError`]; all but [`Device`](BackupError::Device) leave the device as it is.
pub fn undo(device: &dyn BlockDevice, mut from: impl Read) -> Result<Undone, BackupError> {
    let _claim = device.claims().exclusive(CLAIMANT)?;
    let damaged = |what, record| BackupError::Damaged { what, record };
    let head: [u8; 24] = number(&mut from, 0)?;
    let stored = u32::from_le_bytes(number(&mut from, 0)?);
    if head[..8] != MAGIC || crc::checksum(&head) != stored {
        return Err(damaged("the head", 0));
    }
    let field = |at: usize| head[at..at + 8].iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let (blocks, count) = (field(8), field(16));
    if blocks != device.info().blocks {
        return Err(BackupError::OtherDevice { expected: blocks, found: device.info().blocks });
    }
    let mut records = Vec::new();
    for index in 0..count {
        let block = u64::from_le_bytes(number(&mut from, index)?);
        let new = u32::from_le_bytes(number(&mut from, index)?);
        let old = u32::from_le_bytes(number(&mut from, index)?);
        let mut content = vec![0; BLOCK_SIZE];
        fill(&mut from, &mut content, index)?;
        if sum(&content) != old || block >= blocks {
            return Err(damaged("a block", index));
        }
        let present = device.read(block, 1)?;
        let (found, as_before) = (sum(present.as_bytes()), present.as_bytes() == content);
        if found != new && !as_before {
            return Err(BackupError::Changed { block, expected: new, found });
        }
        records.push(Record { block, as_before, witness: new == old, content });
    }
    let mut undone = Undone { restored: 0, untouched: 0 };
    for record in records {
        if record.witness {
            continue;
        }
        if record.as_before {
            undone.untouched += 1;
        } else {
            device.write_slice(record.block, &record.content)?;
            undone.restored += 1;
        }
    }
    device.flush()?;
    Ok(undone)
}
