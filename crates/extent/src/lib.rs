//! A lock table over the blocks of a file: shared, exclusive and fair locks on ranges, on which readers do not
//! serialise.
//!
//! File systems that lock ranges of a file do it with a tree or a list under one lock. Every read then writes the same
//! cache line, and reads of one file stop scaling at some ten cores although no two of them are in each other's way:
//! measured for Btrfs' extent states, 4 KiB random reads of one file on 120 cores spend 89 % of their time in that
//! lock. This crate has no such line. A reader of a block writes the cache line of that block and its 63 neighbours,
//! and nothing else.
//!
//! ```
//! use f2fs_extent::ExtentTable;
//!
//! let table = ExtentTable::new();
//! // Two readers and a writer in one file, at once.
//! let reader = table.shared(0..8);
//! let neighbour = table.shared(4..12);
//! let writer = table.exclusive(100..200);
//! // A truncate waits for those in its range only.
//! let truncate = table.exclusive_from(1 << 20);
//! # drop((reader, neighbour, writer, truncate));
//! ```
//!
//! # What it can do
//!
//! | | |
//! |---|---|
//! | ranges | any, to block `u64::MAX`; 4 KiB blocks by convention, the table does not care |
//! | holders | any number share a block; the first 126 are counted in its byte, further ones are held in the queue |
//! | modes | [`shared`](ExtentTable::shared), [`exclusive`](ExtentTable::exclusive), [downgrade](ExclusiveGuard::downgrade) |
//! | waiting | forever, [not at all](ExtentTable::try_shared), [timed, cancellable](Wait), [as a future](ExtentTable::shared_async) |
//! | several ranges or files | [`lock_many`], without deadlock among such calls |
//! | guards | may be dropped on any thread; [owned ones](OwnedGuard) keep their table alive |
//! | order | conflicting requests are granted in the order in which they began to wait; nobody overtakes |
//! | addresses | [`AddressCache`]: which device block holds which block of the file, looked up without a lock |
//! | memory | 128 bytes for a table, and no heap while the file has at most 64 blocks; a byte for each block beyond that was ever locked, in pieces of up to 4 KiB, and up to 60 KiB to find the first of those far behind |
//!
//! Two parts stand beside the locks, and neither uses the other: [`AddressCache`], and [`bits`]. The latter keeps the
//! state of each block for a page cache (dirty, delayed, under write-back), as Btrfs' extent io tree does. The feature
//! `baselines` has that tree as it was in Linux 5.8, `StateTree`, to measure the locks against.
//!
//! # Locking model
//!
//! ```text
//!   hull ── lowest and highest block that a covering request claims: read by all, written by covering requests only
//!   words ─ a byte a block (to 126 readers or 1 writer; "queued"), 8 blocks a word, 64 blocks a cache line
//!   marks ─ a bit a line: "was locked since the last covering request looked"; written on the first lock after that
//!   queue ─ waiting requests, held covering claims and readers beyond the 126th of a block, in order of arrival, under a
//!           mutex of the table
//! ```
//!
//! - A range inside one word is taken by one compare-and-swap and released by one subtraction. A longer one takes its
//!   words in ascending order, and puts them back if it cannot have them all: nobody holds a part while waiting for the
//!   rest.
//! - A range of 4096 blocks (16 MiB) and more, or one that ends beyond block 2^30, is a *covering* claim: it is
//!   announced in the hull, kept in the queue's list, and the lines that are marked are searched for holders. Short
//!   requests look at the hull after taking their word; the argument that one of the two sees the other is in
//!   `hull.rs`.
//! - Who cannot have a range queues. The request sets the queued bit of each of its blocks; that turns newcomers to the
//!   queue and tells the thread that releases the block to look there. The queue is one for the table: it is entered by
//!   requests that conflict, and those are about to sleep. It makes a request over many blocks, and over several
//!   ranges, one entry with one place in the order. `queue.rs` has the rules.
//! - Nothing is allocated, and nobody is woken, with the queue's lock held; no other lock is taken with it.
//!
//! Lines written by a shared lock and unlock of one block: one, that of its word; on the first lock in the line after a
//! covering request, a second, that of its mark. File-global lines written: none.
//!
//! # Why this design
//!
//! | Design | shares | fair | cost of a short lock | a reader writes | whole file |
//! |---|---|---|---|---|---|
//! | reader-writer lock per file (ext4, F2FS) | whole file only | mostly | least | the file's line | cheapest |
//! | tree of states under a lock (Btrfs 5.8) | no | no | grows with the states | the tree's line | splits or covers states |
//! | list under a lock | yes | yes | grows with the holders | the list's line | cheap |
//! | segment locks (pNOVA) | yes | as the lock | least | the segment's line | every segment: O(size) |
//! | big-reader lock per file | yes | no | little | its core's line | every core; short writers too |
//! | words with a hull and a queue (here) | yes | strictly | little | the line of 64 blocks | what was locked since the last one |
//!
//! Wait queues hashed by block were weighed against the one queue here. They let waiters for different blocks of one
//! file queue in parallel, but a request over several blocks then has several places, waits while holding some of them,
//! and can be overtaken at one while it waits at another.
//!
//! Strict order has its price: a block that many writers want is handed from thread to thread, and each has to be
//! woken. An unfair lock would let running threads take it again and again.
//!
//! # Measured
//!
//! *On one thread* (`cargo bench -p f2fs-instructions --bench extent_instructions`, `cargo xtask counting`):
//! nanoseconds are the shortest of 20 runs on 2 virtual Intel Xeon processors, alone on the machine, with the loop
//! around taken off; in brackets those of an AMD EPYC.
//!
//! | Operation | instructions | allocations | ns |
//! |---|---|---|---|
//! | `shared` and unlock of one block, small file | 82 | 0 | 13.6 (4.9) |
//! | `shared` and unlock of one block of 1 GiB | 117 | 0 | 27.0 (10.0) |
//! | `exclusive` and unlock of one block of 1 GiB | 101 | 0 | 22.6 (9.9) |
//! | `shared` and unlock of 1 MiB | 5485 | 0 | 711 (293) |
//! | `exclusive_all` and unlock, idle file of 1 GiB | 5651 | 0 | 510 (289) |
//! | the same, when every line was locked since the last one | | | 13,900 (7600) |
//! | a reader-writer lock for the file, read | 19 | 0 | 18.3 (3.9) |
//!
//! *Against others* (`cargo bench --bench extent_locks`): nanoseconds between two locks of the same thread, file of 2.5
//! GB, on the same Xeon alone. Lowest of 10 samples; 128 threads on 2 processors show behaviour under pressure, not
//! scaling:
//!
//! | | random shared, 1 thread | 2 | 128 | own half exclusive, 1 | 2 | 128 | 95 shared to 5, 1 | 2 | 128 | 1 in 1000 the whole file, 1 | 2 | 128 |
//! |---|---|---|---|---|---|---|---|---|---|---|---|---|
//! | this crate | 24 | 44 | 2799 | 19 | 18 | 1335 | 27 | 63 | 4085 | 31 | 150 | 29740 |
//! | reader-writer lock for the file | 20 | 111 | 4300 | 14 | 83 | 3791 | 24 | 114 | 5055 | 21 | 131 | 3827 |
//! | segment locks | 17 | 25 | 2314 | 17 | 22 | 1735 | 19 | 83 | 3827 | 54 | 129 | 8265 |
//! | list under a lock | 49 | 204 | 13345 | 46 | 238 | 17471 | 45 | 225 | 34963 | 51 | 205 | 81209 |
//! | `range-lock` crate (no sharing, spins) | 71 | 441 | 13731 | 69 | 612 | 21455 | 64 | 707 | 27430 | 52 | 369 | 22854 |
//! | tree of states, empty | 108 | 352 | 39285 | 78 | 424 | 34847 | 113 | 409 | 48227 | 70 | 288 | 59744 |
//! | tree of 640,000 states | 1536 | 4497 | 321581 | 2106 | 4778 | 262141 | 705 | 2168 | 147105 | 669122 | 671836 | 349724163 |
//!
//! The trees of states were a `BTreeMap` then. They are red-black trees now, as in Linux: on one thread of an AMD EPYC a
//! lock and unlock of one block takes 34 ns in place of 64 to 71 with no state, and 1080 to 1120 in place of 850 to 890
//! with 640,000.
//!
//! Two threads on their own halves do 2.0 times what one does (the reader-writer lock: 0.4 times). Two threads do 101
//! times as many random shared locks as with the full tree, and as many a second as 128 threads do. The worst case here
//! is the whole file among many threads: everybody who comes while a covering request waits goes through the queue and
//! sleeps, so each such request costs as many wake-ups as there are threads. A lock that lets running threads in again
//! does better there.
//!
//! *Fairness* (`cargo bench --bench extent_fairness`): with 120 threads that share or take one block, half and half,
//! the longest wait is 1.35 times the fair share of 119 grants to others, the median 1.00 times. Of the peers, the list
//! is as fair; a reader-writer lock, segment locks and a tree have longest waits of 355, 25 and 109 times the fair
//! share. The first two of them do 45 and 63 times as many locks a second meanwhile, because a running thread takes the
//! block again and again and the others sleep. That is the price of the order.
//!
//! Not measured: the locks alone on more than two processors. Reads of one file through the file system were measured
//! on sixteen (`docs/SCALING.md` of the repository). The state bits' map of runs allocates under its own lock, which
//! short operations do not take.
//!
//! # How it is tested
//!
//! Scenarios of eight threads and more run under random schedules (`tests/shuttle_*.rs`, `cargo xtask shuttle`), and a
//! fuzz target plays locks and bits beside the models (`cargo xtask fuzz extent`). Models (`tests/loom_*.rs`, `cargo
//! xtask loom -p f2fs-extent`) run this code under every schedule of two threads (one model with five preemptions: it
//! did not end in 20 minutes), or of three with three preemptions, and each is seen to find a fault. Random operations
//! are compared with a naive model of every block and of the queue (`tests/oracle_*.rs`; `F2FS_EXTENT_OPS=100000000`
//! for the long run), Btrfs' own scenarios are in `tests/btrfs_scenarios.rs`, and threads contend in `tests/stress.rs`.
#![forbid(unsafe_code)]

mod acquire;
#[cfg(feature = "baselines")]
mod baseline;
pub mod bits;
mod cache;
mod claim;
mod directory;
mod fast;
mod future;
mod geometry;
mod guard;
mod hull;
mod many;
#[cfg(loom)]
#[doc(hidden)]
pub mod models;
mod order;
mod present;
mod queue;
mod range;
mod row;
mod scan;
mod table;
mod wait;
mod word;
mod words;

#[cfg(feature = "baselines")]
pub use baseline::{StateGuard, StateTree};
pub use bits::{Bits, ExtentBits, Run};
pub use cache::{AddressCache, CacheBudget, CachedRun};
pub use future::{ExclusiveFuture, SharedFuture};
pub use guard::{ExclusiveGuard, OwnedGuard, SharedGuard};
pub use many::{LockRequest, ManyGuard, lock_many, lock_many_with};
pub use range::BlockRange;
pub use table::ExtentTable;
pub use wait::{CancelToken, LockError, Wait, WaitStats};
pub use word::Mode;

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
