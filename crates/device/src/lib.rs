//! Block devices: the contract between a storage engine and the device under it.
//!
//! This crate owns the contract between the file system and the device that stores its blocks. It does no I/O on real
//! hardware: the `io_uring` back end is `f2fs-uring`. The devices here live in memory; those that fail on purpose are
//! `f2fs-device-test`.
//!
//! | Item | What it is |
//! |---|---|
//! | [`BlockDevice`] | the trait: batched asynchronous requests, one-call conveniences, a durable [`flush`](BlockDevice::flush) |
//! | [`Claims`], [`Claim`] | one writer or many readers have a device open |
//! | [`AlignedBuf`], [`Block`] | memory that a device may transfer into directly (4096-byte aligned, a whole number of blocks) |
//! | [`Request`], [`Completion`], [`Ticket`] | a batch on its way |
//! | [`IoQueue`] | one thread keeping a queue depth busy |
//! | [`MemoryDevice`] | sparse, sharded, with copy-on-write snapshots |
//! | [`NullDevice`] | keeps nothing: the floor of a measurement |
//! | [`ZonedDevice`] | zones that are written from their start to their end, as zoned disks and NVMe namespaces demand |
//! | [`OrderedZones`] | puts the writes of many threads to such zones in order |
//! | [`SpannedDevice`] | several devices as one, one behind the other |
//! | [`WriteBehind`] | a device, and writes that wait in memory for its next flush |
//! | [`FlushGate`] | for back ends: shared flushes and the poison of a failed one |
//! | [`Handover`] | for back ends: waiting threads that share one completion queue |
//!
//! A block is 4096 bytes ([`BLOCK_SIZE`]) and every address is a `u64` block index from the start of the device. This
//! crate knows nothing of F2FS structures.
//!
//! # What a device promises
//!
//! - **Ownership.** Buffers move into a [`Request`] and come back in its [`Completion`]. Whatever the caller drops, the
//!   device keeps buffers and file until the transfer is over.
//! - **Order.** None between requests in flight at the same time, in one batch or in several. A caller that needs order
//!   waits.
//! - **Durability.** A completed write is visible to later reads; it survives a power cut only after a
//!   [`BlockDevice::flush`] that *began after the write completed*, or if it was an [`Op::WriteFua`] (which makes
//!   itself durable, nothing else).
//! - **Poison.** A flush that failed is never tried again: after it every write, discard and flush fails with
//!   [`DeviceErrorKind::Poisoned`]. The kernel reports a lost write-back once and then forgets it, so a second flush
//!   that succeeded would prove nothing. Reads go on.
//! - **Ranges.** Each request is checked against the size before any I/O.
//! - **Claims.** A device has one set of [`Claims`] for its whole life, the same through every wrapper around it. The
//!   device does not ask for a claim before a transfer. Opening a volume, formatting and checking claim the device, and
//!   keep the claim.
//!
//! # A device of one's own
//!
//! [`info`](BlockDevice::info), [`claims`](BlockDevice::claims), [`submit`](BlockDevice::submit) and
//! [`flush`](BlockDevice::flush) have to be written. A device that stores blocks itself holds a [`Claims`] in a field
//! and returns it. One that wraps another device returns the claims of that one, so that a volume cannot be opened both
//! through the wrapper and beside it. Two device values that stand for the same medium (one file opened twice, a
//! partition and its disk) have claims that know nothing of each other: the opener of the medium has to keep them
//! apart. `f2fs-uring` does that with locks of the operating system. A device may panic: an operation on a volume that
//! unwinds stops the volume.
//!
//! Its methods must not call into a volume or file system that lies on the device. They are called with locks of that
//! volume held, or while others wait for the answer, so such a call may wait for itself for ever. That is true of calls
//! that change nothing as well, and of another thread whose end the method waits for. What a device has to tell the
//! program it puts aside, for a thread that reads it later.
//!
//! # Locking model
//!
//! The trait has no locks. [`MemoryDevice`] has one reader-writer lock per 256 KiB, taken one at a time, so transfers
//! to different chunks meet nowhere. [`FlushGate`] and [`Handover`] hold their locks for bookkeeping only, never while
//! the device works; their protocols are model checked (`tests/loom_waiting.rs`). [`ZonedDevice`] locks the zone that
//! it writes, and one lock for all when a zone opens or ends (`tests/loom_zones.rs`). [`WriteBehind`] has locks for
//! what waits, and one for the thread that sends (`tests/loom_behind.rs`).
//!
//! # Example
//!
//! ```
//! use f2fs_device::{AlignedBuf, BlockDevice, MemoryDevice, Request};
//!
//! # fn main() -> Result<(), f2fs_device::DeviceError> {
//! let device = MemoryDevice::new(1 << 20); // 4 GiB, none of it allocated yet
//! device.write_slice(7, b"seven")?; // zero padded to a block
//! device.flush()?;
//! assert_eq!(&device.read(7, 1)?.as_bytes()[..5], b"seven");
//!
//! // A batch: submitted together, waited for together.
//! let batch = (0..8).map(|i| Request::read(i, AlignedBuf::new(1)).with_tag(i)).collect();
//! for completion in device.submit(batch).wait() {
//!     let tag = completion.request.tag;
//!     let bufs = completion.into_bufs()?;
//!     assert_eq!(bufs[0].as_bytes().starts_with(b"seven"), tag == 7);
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod buf;
mod claim;
mod device;
mod error;
mod flush_gate;
mod handover;
mod info;
mod memory;
mod null;
mod nvme_status;
mod queue;
mod recycle;
mod request;
mod spanned;
mod ticket;
mod write_behind;
mod zoned;

pub use buf::{AlignedBuf, Block, BufHome};
pub use claim::{AlreadyOpen, Claim, Claims};
pub use device::BlockDevice;
pub use error::{DeviceError, DeviceErrorKind, Operation};
pub use flush_gate::FlushGate;
pub use handover::{Handover, HandoverGuard};
pub use info::DeviceInfo;
pub use memory::{MemoryDevice, MemoryError};
pub use null::NullDevice;
pub use nvme_status::NvmeStatus;
pub use queue::{IoQueue, TicketQueue};
pub use recycle::Recycler;
pub use request::{Completion, Op, Request};
pub use spanned::{SpanError, SpannedDevice};
pub use ticket::{Pending, Ticket};
pub use write_behind::WriteBehind;
pub use zoned::{
    KeptError, KeptZones, OrderedZones, Zone, ZoneChange, ZoneError, ZoneLayout, ZoneLimits, ZoneState, ZonedDevice,
};

/// Bytes in a block: the unit of every transfer.
pub const BLOCK_SIZE: usize = 4096;

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
