//! A volume that stops: it refuses changes from then on, and the superblock remembers why, as the kernel's does
//! (`f2fs_handle_critical_error` in `fs/f2fs/super.c`).
//!
//! The record is for the repair of the volume. The first error that stops it is recorded, both copies of the superblock
//! one after the other, each durable by itself; a device that no longer takes writes keeps the old ones. Nothing else
//! is written by a volume that has stopped.

use f2fs_device::{BlockDevice, DeviceError, Operation};
use f2fs_format::feature::Features;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::trouble::{ErrorKind, StopReason};
use f2fs_format::{BlockAddr, Corruption};
use f2fs_segment::SegmentError;

use crate::VolumeError;
use crate::blocks::read_block;

/// Records in both copies of the superblock why the volume stopped. `in_use`: the copy that it was opened with.
pub(crate) fn record(
    device: &dyn BlockDevice,
    mut superblock: SuperBlock,
    in_use: u32,
    error: Option<&VolumeError>,
) -> Result<(), DeviceError> {
    let (reason, found) = classify(error);
    superblock.count_stop(reason);
    if let Some(found) = found {
        superblock.note_error(found);
    }
    if Features(superblock.feature.get()).contains(Features::SB_CHECKSUM) {
        superblock.crc = superblock.compute_crc().into();
    }
    // The one that is not in use first, as the kernel does.
    for copy in [1 - in_use, in_use] {
        let mut block = read_block(device, BlockAddr(copy))?;
        superblock.write(block.block_mut(0));
        device.write_fua(copy.into(), block)?;
    }
    Ok(())
}

/// The kernel's words for an error.
fn classify(error: Option<&VolumeError>) -> (StopReason, Option<ErrorKind>) {
    match error {
        Some(VolumeError::Device(error)) if error.operation == Operation::Flush => (StopReason::FlushFail, None),
        Some(VolumeError::Segment(SegmentError::NoSpace { .. }) | VolumeError::NoSpace { .. }) => {
            (StopReason::NoSegment, None)
        }
        Some(VolumeError::Segment(SegmentError::Source { .. })) => {
            (StopReason::CorruptedSummary, Some(ErrorKind::InconsistentSummary))
        }
        Some(VolumeError::Segment(_)) => (StopReason::CorruptedFreeBitmap, Some(ErrorKind::InconsistentSit)),
        Some(VolumeError::Nat(_)) => (StopReason::CorruptedNid, Some(ErrorKind::InconsistentNat)),
        Some(VolumeError::Corrupt(corruption)) => (StopReason::MetaPage, Some(kind_of(corruption))),
        _ => (StopReason::WriteFail, None),
    }
}

fn kind_of(corruption: &Corruption) -> ErrorKind {
    match corruption {
        Corruption::Address { .. } | Corruption::Block { .. } => ErrorKind::InvalidBlkaddr,
        Corruption::Node { .. } => ErrorKind::InconsistentFooter,
        Corruption::Dentry { .. } => ErrorKind::CorruptedDirent,
        _ => ErrorKind::CorruptedInode,
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
