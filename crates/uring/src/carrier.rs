//! The trait of a carrier of requests over a ring: an open file or block device, or a namespace of an NVMe device.
//!
//! The ring, its table of requests, the slots of threads and the queues are the same for all; a carrier fills in the
//! entries and reads the answers.

use std::fmt;
use std::os::fd::RawFd;
use std::thread::LocalKey;

use f2fs_device::{DeviceError, DeviceErrorKind, Op, Request};
use io_uring::{IoUring, cqueue, squeue};

use crate::spare::Kept;
use crate::{flight::Flight, progress::Landing};

/// A ring of a carrier.
pub(crate) type Ring<C> = IoUring<<C as Carrier>::Entry, <C as Carrier>::Answer>;

/// Carries requests over rings, and one after the other by system calls.
pub(crate) trait Carrier: fmt::Debug + Send + Sync + Sized + 'static {
    /// The entries of the submission queue.
    type Entry: squeue::EntryMarker;
    /// The entries of the completion queue.
    type Answer: cqueue::EntryMarker;
    /// The operations of `io_uring` that the entries use.
    const OPERATIONS: &'static [u8];

    /// The files that a ring has registered. Entries name the first; the others stay open as long as the ring has
    /// requests.
    fn files(&self) -> Vec<RawFd>;

    /// Checks a request against size, abilities and poison.
    fn admit(&self, request: &Request) -> Result<(), DeviceError>;

    /// Whether requests of this kind go by calls even where there is a ring.
    fn needs_call(&self, op: Op) -> bool;

    /// Runs an admitted request by system calls.
    fn run(&self, request: &mut Request) -> Result<(), DeviceError>;

    /// Turns the reason why an admitted request failed into its error; a durable write's failure poisons the device.
    fn failed(&self, request: &Request, kind: DeviceErrorKind) -> DeviceError;

    /// The entry for the rest of a request. It points to memory that belongs to the flight and stays where it is when
    /// the flight itself moves.
    fn entry(&self, flight: &mut Flight) -> Self::Entry;

    /// The meaning of the answer `result` to the last entry.
    fn land(&self, flight: &mut Flight, result: i32) -> Landing;

    /// Where a thread keeps the ring of its last queue.
    fn spare() -> &'static LocalKey<Kept<Self::Entry, Self::Answer>>;
}
