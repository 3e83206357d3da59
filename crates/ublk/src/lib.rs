//! Block devices of f2fs as block devices of Linux, through ublk.
//!
//! [`Server`] exports any [`BlockDevice`](f2fs_device::BlockDevice), and [`ZonedDevice`](f2fs_device::ZonedDevice)s
//! with all commands of zones, as `/dev/ublkbN`: for mkfs, mount, fio, or any other program that wants a block device.
//!
//! | Item | What it is |
//! |---|---|
//! | [`Server`], [`Options`] | makes a device, or takes over one whose server died; serves and deletes it |
//! | [`DataPath`] | how data move between requests and the device |
//! | [`Backend`], [`ZonedBlockDevice`] | what is exported |
//! | [`list`], [`delete`], [`features`] | the devices of the machine, and what its driver can do |
//! | [`UblkError`] | why not, with numbers |
//!
//! ```no_run
//! use f2fs_device::MemoryDevice;
//! use f2fs_sync::PlainArc;
//! use f2fs_ublk::{Backend, Options, Server};
//!
//! # fn main() -> Result<(), f2fs_ublk::UblkError> {
//! let device = Backend::Plain(PlainArc::new(MemoryDevice::new(1 << 20)));
//! let server = Server::add(&device, Options::default())?;
//! println!("{}", server.path().display());
//! let mut seconds = 0..;
//! let counts = server.finish(|| seconds.next() > Some(1000))?; // deletes it
//! println!("{} requests in {} entries", counts.requests, counts.entries);
//! # Ok(())
//! # }
//! ```
//!
//! # Protocol
//!
//! The driver has a control device, which takes the commands of `server.rs`, and a character device for each block
//! device. A queue of that has tags, as many as its depth; a tag carries one request at a time:
//!
//! ```text
//!   server                                              driver
//!   FETCH(tag, memory) ------------------------------->  the tag waits for a request
//!            <------------- descriptor written; completion of the command: a request has come
//!   ... the device does it ...
//!   COMMIT_AND_FETCH(tag, result, memory) ------------>  the request is over, the tag waits for the next one
//! ```
//! All commits of a round and the wait for the next requests are one entry into the kernel (`worker.rs`), so a busy
//! queue enters it once for many requests; the rings defer their completions to that entry.
//!
//! *How data move.* By copy: the driver copies between the request and the tag's memory, which is the buffer that the
//! device gets. A read or write of a [`MemoryDevice`](f2fs_device::MemoryDevice) is so two copies, one of a file with
//! `O_DIRECT` is one. A device that is a file ([`BlockDevice::file`](f2fs_device::BlockDevice::file)) is read and
//! written by the queue's own ring, in the entries that it makes anyway; a transfer that fails there is the device's
//! then. Zoned devices need user copy: the ring reads and writes the data of requests in the character device, before
//! the device writes them and after it has read them. *Without a copy* (`path.rs`): from Linux 6.16 on, the driver puts the
//! pages of a request among the buffers of the ring that fetches it, and a device that is a file is read and written right
//! there. What does not go well so goes by user copy, and then through the device.
//!
//! # Locking model
//!
//! Queues share the device below and nothing else. Each has a thread, a ring and memory of its own; the first thread
//! has the control. One lock for each queue holds the memory that devices have dropped (`home.rs`), and one for all holds
//! what they wait for at their start (`queues.rs`).
//!
//! # Unsafe code
//!
//! This crate is an unsafe leaf: pushing entries that point into memory (`control.rs`, `ring.rs`), a raw kernel entry,
//! the mapping of descriptors (`descriptors.rs`), and the length of memory that comes back (`home.rs`). Each says why it
//! is sound; they rest on one rule: memory whose tag is the kernel's is not touched, and is leaked rather than freed if
//! its entry's end was not seen. The fields of a descriptor are checked in safe code (`translate.rs`) before they become a length.

mod abi;
mod backend;
mod channel;
mod control;
mod counts;
mod descriptors;
mod devices;
mod driver;
mod error;
mod gather;
mod home;
mod path;
mod queues;
mod rehearsal;
mod ring;
mod server;
mod translate;
mod worker;
mod zone_record;

pub use backend::{Backend, ZoneChange, ZonedBlockDevice};
pub use counts::QueueCounts;
pub use devices::{Device, State, delete, features, list};
pub use error::UblkError;
pub use path::DataPath;
pub use rehearsal::{Rehearsed, rehearse};
pub use server::{Options, Server};

/// The example of this crate's README, so that it is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
