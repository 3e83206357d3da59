//! A machine with many processors, played: N virtual cores run the production code, each with a clock of its own, in
//! the half of `--cfg f2fs_manycore`.
//!
//! | File | What it is |
//! |---|---|
//! | `machine.rs` | machines: tables of what a line costs, by distance |
//! | `lines.rs` | who has which line, and what an access to it costs |
//! | `core.rs` | the cores, and which of them runs |
//! | `queues.rs` | who waits for which lock or condition variable |
//! | `device.rs` | a device with a rate and a latency |
//! | `outcome.rs` | what a run tells |
//!
//! # The model
//!
//! All cores are coroutines of one thread. An access to an atomic, to a lock's word, to the value behind a lock or to
//! memory that the code names ([`memory`](crate::memory)) takes as long as the state of its line says (64 bytes, told
//! apart by address):
//!
//! - in the core's own cache: a hit;
//! - else a transfer: as far away as the nearest core that has it (a read), or the farthest of those that have to give
//!   it up (a write). Nobody has it: memory.
//! - The transfers of one line come one after the other, in the order in which they are asked for. Reads of a line that
//!   nobody changed meanwhile overlap.
//!
//! Each write, read-modify-write and lock stands for a share of the operation's other instructions
//! ([`Pace`]); reads in the own cache cost their hit only, so that loops over many words are not charged twice.
//!
//! The core with the smallest clock runs. It may go on until its clock is ahead of all others; while it hits lines of
//! its own, until it is ahead by the shortest transfer, because no access of another core could have taken the line
//! before. So each access has the result that it would have if the cores ran at the same time. A run is the same each
//! time (lines are told by address: with address-space randomisation, two processes differ in which neighbours share a
//! line where the allocator says so).
//!
//! A lock is waited for as `parking_lot` does: ten rounds of spinning, the last seven with a system call each, then
//! parking. A release wakes the first that is parked; whoever comes first has the lock. A lock that stands for a
//! kernel's spin lock ([`spinning`](crate::spinning)) is waited for in a queue, whose members spin on a line each.
//!
//! # Left out
//!
//! | | Error of the predicted speed |
//! |---|---|
//! | store buffers: a core need not wait for its plain stores | too low |
//! | prefetch, several misses of one core at once | too low |
//! | the home agent prefers cores that are near | too low, for lines that all write |
//! | capacity of caches, traffic on the links, bandwidth of memory | too high |
//! | memory behind the value of a lock that no [`memory::read`](crate::memory::read) or [`memory::written`](crate::memory::written) names, the allocator | too high |
//! | what runs [`apart`]: transfers of a device in memory take no time | too high |
//! | where memory stands: all of it is near | too high |
//! | two threads on one core, clocks that fall when all cores work | too high |
//!
//! ```text
//! let machine = Machine::named("epyc").expect("it is in the table");
//! machine.boot();
//! let counter = ShardedCounter::new(0);
//! let outcome = manycore::run(&machine, &Pace::default(), 128, 10, |core| {
//!     for _ in 0..1000 {
//!         counter.add(1);
//!         manycore::lap();
//!     }
//! });
//! println!("{} a second", outcome.rate());
//! ```

pub(crate) mod core;
mod device;
mod lines;
mod machine;
mod outcome;
mod queues;

pub use self::core::{Pace, apart, boot, lap, now, prepare, run, run_on, running, work};
pub use device::Device;
pub use machine::{Level, Machine, PICOSECONDS};
pub use outcome::{Hot, Outcome, Spent};
