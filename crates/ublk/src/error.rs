//! Errors between this crate and the kernel's driver.

use std::{io, path::PathBuf, time::Duration};

use f2fs_device::DeviceError;

/// Why a device could not be made, found, served or deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UblkError {
    /// The kernel has no ublk driver, or it is not loaded.
    #[error(
        "this kernel has no ublk driver: /dev/ublk-control is missing (modprobe ublk_drv; needs CONFIG_BLK_DEV_UBLK)"
    )]
    NoDriver,
    /// The process may not use the driver.
    #[error(
        "{what}: permission denied; ublk devices belong to root (CAP_SYS_ADMIN), other users need a udev rule (docs/UBLK.md)"
    )]
    NoRights {
        /// The operation.
        what: &'static str,
    },
    /// An unprivileged device was made, and its file did not become this user's.
    #[error(
        "{} still belongs to root: a udev rule has to give it to its owner (docs/UBLK.md); root can delete ublk device {number}",
        path.display()
    )]
    NotOwned {
        /// The character device.
        path: PathBuf,
        /// The device, which this process cannot delete.
        number: u32,
    },
    /// A device of a user who is not root cannot have zones, and its data can move by copies of the driver only.
    #[error(
        "zones, user copy and data without a copy are for root alone: the kernel makes no such device for other users"
    )]
    RootAlone,
    /// Data can move without a copy only where a file has them.
    #[error("data move without a copy only to and from a device that is a file, and this one is none (--copy kernel)")]
    NoFile,
    /// The driver is there and lacks something that is needed.
    #[error("this kernel's ublk driver has no {feature}, which needs Linux {since}")]
    TooOld {
        /// The feature that the kernel lacks.
        feature: &'static str,
        /// The first release that has it.
        since: &'static str,
    },
    /// The kernel has no `io_uring` that takes commands, or forbids it.
    #[error("io_uring with entries of 128 bytes is not available: {0}")]
    NoRing(#[source] io::Error),
    /// The driver did not answer in time. The command may still happen.
    #[error("the ublk driver did not answer {command} within {limit:?}")]
    TimedOut {
        /// The command.
        command: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
    /// An earlier command was never answered, so that the driver is not asked again.
    #[error("the ublk driver did not answer an earlier command")]
    Stuck,
    /// There is no device with this number.
    #[error("there is no ublk device {number}")]
    NoSuchDevice {
        /// The number.
        number: u32,
    },
    /// The number that was asked for is taken.
    #[error("ublk device {number} exists already")]
    Exists {
        /// The number.
        number: u32,
    },
    /// Somebody has the block device open, or mounted.
    #[error("{} is in use", path.display())]
    InUse {
        /// The block device.
        path: PathBuf,
    },
    /// A recovery with another content than the device was made of.
    #[error("ublk device {number} was made of another file")]
    OtherContent {
        /// The device.
        number: u32,
    },
    /// A device whose server lives, or that was made without recovery.
    #[error("ublk device {number} cannot be recovered: {reason}")]
    NotRecoverable {
        /// The number.
        number: u32,
        /// Why.
        reason: &'static str,
    },
    /// The driver refused a command.
    #[error("{command} of ublk device {number}: {source}")]
    Refused {
        /// The command.
        command: &'static str,
        /// The device.
        number: u32,
        /// The driver's error.
        source: io::Error,
    },
    /// A quantity that a device cannot have.
    #[error("{what}: {value} is not in the range {min} to {max}")]
    Limit {
        /// The quantity.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The least that is possible.
        min: u64,
        /// The most that is possible.
        max: u64,
    },
    /// The kernel wants zones whose size is a power of two, and whole ones.
    #[error(
        "a zone of {zone_blocks} blocks on a device of {blocks} blocks: the kernel takes only whole zones whose size is a power of two"
    )]
    Zones {
        /// Blocks of a zone.
        zone_blocks: u64,
        /// Blocks of the device.
        blocks: u64,
    },
    /// The kernel wants one zone at least that is written in its order.
    #[error("all {zones} zones are conventional: the kernel takes that for no zoned device")]
    AllConventional {
        /// The zones of the device.
        zones: u32,
    },
    /// A file of the driver could not be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A queue ended by itself.
    #[error("queue {queue} ended: {source}")]
    Queue {
        /// The queue.
        queue: u16,
        /// Why.
        source: io::Error,
    },
    /// The thread of a queue panicked, typically in the device below.
    #[error("queue {queue} panicked")]
    Panicked {
        /// The queue.
        queue: u16,
    },
    /// The device below failed at the end.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
