//! Why a volume could not be checked at all.

use f2fs_device::{AlreadyOpen, DeviceError};
use f2fs_format::Corruption;

/// Why there is no verdict.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// Somebody has the device open for writing in this process. Nothing was read.
    #[error(transparent)]
    AlreadyOpen(#[from] AlreadyOpen),
    /// The device failed.
    #[error("cannot read the volume: {0}")]
    Device(#[from] DeviceError),
    /// Neither superblock is valid: no F2FS volume, or one whose geometry is lost.
    #[error("no valid superblock (first: {first}; second: {second})")]
    NoSuperblock {
        /// The fault of the first copy.
        first: Corruption,
        /// The fault of the second copy.
        second: Corruption,
    },
    /// The volume has blocks of another size than 4096 bytes.
    #[error("cannot check a volume with blocks of {bytes} bytes: only those with blocks of 4096 bytes")]
    BlockSize {
        /// Bytes of a block of the volume.
        bytes: u64,
    },
    /// The superblock describes more blocks than the device has.
    #[error("the volume needs {needed} blocks, the device has {found}")]
    DeviceTooSmall {
        /// Blocks up to the end of the main area.
        needed: u64,
        /// Blocks of the device.
        found: u64,
    },
    /// The volume lies on other devices than were given. The lists have the blocks of each; an empty one stands for one
    /// device.
    #[error("the volume lies on {}, and {} given", count(.expected), count(.found))]
    Devices {
        /// By the superblock.
        expected: Vec<u64>,
        /// As given.
        found: Vec<u64>,
    },
    /// Features that change the rules, and that the check does not know.
    #[error("cannot check a volume with {names} (feature bits {bits:#x})")]
    Unsupported {
        /// The offending bits.
        bits: u32,
        /// Their names, comma separated.
        names: String,
    },
    /// The threads could not be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// How many.
        threads: usize,
        /// The system's error.
        reason: String,
    },
}

fn count(devices: &[u64]) -> String {
    match devices {
        [] | [_] => "one device".into(),
        devices => format!("{} devices of {devices:?} blocks", devices.len()),
    }
}
