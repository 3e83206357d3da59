//! Why an operation on a volume failed.

use core::fmt;

use f2fs_device::{AlreadyOpen, DeviceError};
use f2fs_format::{Corruption, FormatError};
use f2fs_journal::MediumError;
use f2fs_nat::NatError;
use f2fs_segment::SegmentError;
use thiserror::Error;

use crate::{JournalTrouble, StopCause};

/// Why an operation on a volume failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// Somebody has the device open in this process. It is open for writing, or open at all and this open is for
    /// writing.
    #[error(transparent)]
    AlreadyOpen(#[from] AlreadyOpen),
    /// The bytes on the device contradict the format.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// The device is not an F2FS volume that this library opens.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The volume has features that are read here, and would not be kept right by writing: it opens for reading
    /// ([`VolumeOptions::read_only`](crate::VolumeOptions::read_only)).
    #[error("cannot write to a volume with {names} (feature bits {bits:#x}): it opens for reading only")]
    OnlyForReading {
        /// The bits of these features.
        bits: u32,
        /// Their names, comma separated.
        names: String,
    },
    /// Neither superblock can be used.
    #[error("no valid superblock: first: {first}; second: {second}")]
    NoSuperblock {
        /// The fault of the one in block 0.
        first: Corruption,
        /// The fault of the one in block 1.
        second: Corruption,
    },
    /// Neither checkpoint pack can be used.
    #[error("no valid checkpoint pack: first: {first}; second: {second}")]
    NoCheckpoint {
        /// The fault of the first pack.
        first: Corruption,
        /// The fault of the second pack.
        second: Corruption,
    },
    /// The newest checkpoint lost its first block. What is written would build on the one before it, and give up the
    /// newer one for good ([`VolumeOptions::newest_only`](crate::VolumeOptions::newest_only)).
    #[error(
        "checkpoint {newer:#x} in pack {pack} lost its first block, and a change would give it up for checkpoint {older:#x}"
    )]
    LostCheckpoint {
        /// 0 or 1: its pack.
        pack: u32,
        /// Its version.
        newer: u64,
        /// The version of the checkpoint that can be opened.
        older: u64,
    },
    /// The volume says that it is larger than the device.
    #[error("the volume has {volume} blocks, the device only {device}: truncated image?")]
    Truncated {
        /// Blocks by the superblock.
        volume: u64,
        /// Blocks of the device.
        device: u64,
    },
    /// The volume lies on other devices than were given. Nothing was written.
    #[error("the volume lies on {}, and {} given", Devices(expected), Given(found))]
    Devices {
        /// Blocks of the volume on each device; empty if it lies on one.
        expected: Vec<u64>,
        /// Blocks of each device that was given; empty for one.
        found: Vec<u64>,
    },
    /// A device of the volume holds something else: it is another one, or stands in another one's place. Nothing was
    /// written.
    #[error("device {device}, counted from 0, is not the volume's, or not in its place: {source}")]
    ForeignDevice {
        /// Which one.
        device: usize,
        /// A node that should lie on it.
        source: Corruption,
    },
    /// The volume is one on zones, and the device has none: it is an image, which opens for reading only. Nothing was
    /// written.
    #[error("the volume was made for zones, and the device has none: it opens for reading only")]
    NoZones,
    /// The zones of the device are not those that the volume was made for, or cannot be written to. Nothing was
    /// written.
    #[error("zone {zone}, at block {start}: {what} is {found}, not {expected}")]
    Zone {
        /// Its number on its device.
        zone: u32,
        /// Its first block.
        start: u64,
        /// The quantity that is wrong.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The value that it should have.
        expected: u64,
    },
    /// The device lets fewer zones be written to at a time than the volume has logs. Nothing was written.
    #[error("the device lets {limit} zones be written to at a time, and the logs of a volume need {needed}")]
    ZoneLimit {
        /// Zones that the device allows.
        limit: u32,
        /// Zones that are needed.
        needed: u32,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The node address table failed or contradicts itself.
    #[error(transparent)]
    Nat(#[from] NatError),
    /// The segment manager failed or the SIT contradicts itself.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The volume is full: `wanted` blocks do not fit into the `available` ones.
    #[error("the volume is full: {wanted} blocks wanted, {available} left")]
    NoSpace {
        /// Blocks asked for.
        wanted: u64,
        /// Blocks that are left for users.
        available: u64,
    },
    /// A file would be larger than its nodes can address.
    #[error("a file of {size} bytes: at most {limit} are possible")]
    FileTooLarge {
        /// Bytes asked for.
        size: u64,
        /// The most bytes that a file can have.
        limit: u64,
    },
    /// Every NID is in use, was freed since the last checkpoint, or is held back.
    #[error(
        "the volume has no room for another file: {used} of {limit} node identifiers are in use{}",
        if used < limit { ", and no other is free: they are held back, or wait for a checkpoint" } else { "" }
    )]
    NoNids {
        /// Nodes in use.
        used: u64,
        /// Nodes that the NAT has room for.
        limit: u64,
    },
    /// The checkpoint pack has no room for another orphan.
    #[error("too many orphan inodes: at most {limit}")]
    TooManyOrphans {
        /// Orphans that a pack holds.
        limit: u64,
    },
    /// The chain of nodes behind the checkpoint, which roll-forward follows, comes back to itself.
    #[error("the chain of synced nodes loops at block {addr} after {nodes} nodes")]
    LoopedChain {
        /// A block of the loop.
        addr: f2fs_format::BlockAddr,
        /// Nodes that were followed until then.
        nodes: u64,
    },
    /// The volume cannot be used with the journal that was given. Nothing was written.
    #[error(transparent)]
    Journal(#[from] JournalTrouble),
    /// Checkpointing is disabled on the volume (`CP_DISABLED_FLAG`): it can be opened for reading only.
    #[error("checkpointing is disabled on this volume: open it for reading")]
    CheckpointDisabled,
    /// The volume was opened for reading.
    #[error("the volume is open for reading only")]
    ReadOnly,
    /// An earlier error or panic left the volume in a state that must not be written any more, or it was closed. What
    /// the last checkpoint holds is safe.
    #[error("the volume was stopped: {reason}")]
    Stopped {
        /// The reason.
        reason: StopCause,
    },
}

impl VolumeError {
    /// The device's error, if that is the reason: also where a block of a table could not be read, and that of the device
    /// of a journal.
    #[must_use]
    pub fn device(&self) -> Option<&DeviceError> {
        match self {
            VolumeError::Device(error) => Some(error),
            VolumeError::Nat(NatError::Source { source, .. })
            | VolumeError::Segment(SegmentError::Source { source, .. }) => source.downcast_ref(),
            VolumeError::Journal(JournalTrouble::Journal(f2fs_journal::Error::Medium(MediumError::Device(error)))) => {
                Some(error)
            }
            _ => None,
        }
    }

    /// Whether space was missing: the operation may succeed after a checkpoint or a deletion.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        matches!(self, VolumeError::NoSpace { .. } | VolumeError::NoNids { .. } | VolumeError::TooManyOrphans { .. })
            || matches!(self, VolumeError::Segment(SegmentError::NoSpace { .. }))
    }
}

/// The devices that a volume lies on, in words.
struct Devices<'a>(&'a [u64]);

impl fmt::Display for Devices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] | [_] => f.write_str("one device"),
            devices => write!(f, "{} devices of {devices:?} blocks", devices.len()),
        }
    }
}

/// The devices that were given, in words.
struct Given<'a>(&'a [u64]);

impl fmt::Display for Given<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] | [_] => f.write_str("one was"),
            devices => write!(f, "{} of {devices:?} blocks were", devices.len()),
        }
    }
}
