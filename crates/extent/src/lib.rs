//! A lock table over the blocks of a file: shared, exclusive and fair locks on ranges, on which readers do not serialise.
//!
//! File systems that lock ranges of a file do it with a tree or a list under one lock. Every read then writes the same cache
//! line, and reads of one file stop scaling at some ten cores although no two of them are in each other's way: measured for
//! Btrfs' extent states, 4 KiB random reads of one file on 120 cores spend 89 % of their time in that lock. This crate has no
//! such line. A reader of a block writes the cache line of that block and its 63 neighbours, and nothing else.
//!
//! ```
//! use f2fs_extent::{Bits, ExtentTable};
//!
//! let table = ExtentTable::new();
//! // Two readers and a writer in one file, at once.
//! let reader = table.shared(0..8);
//! let neighbour = table.shared(4..12);
//! let writer = table.exclusive(100..200);
//! // A truncate waits for those in its range only.
//! let truncate = table.exclusive_from(1 << 20);
//! // What a block's state is, is kept beside its lock.
//! table.bits().set(100..200, Bits::DIRTY);
//! assert_eq!(table.bits().count(.., Bits::DIRTY), 100);
//! # drop((reader, neighbour, writer, truncate));
//! ```
//!
//! # What it can do
//!
//! | | |
//! |---|---|
//! | ranges | any, to block `u64::MAX`; 4 KiB blocks by convention, the table does not care |
//! | modes | [`shared`](ExtentTable::shared), [`exclusive`](ExtentTable::exclusive), [downgrade](ExclusiveGuard::downgrade) |
//! | waiting | forever, [not at all](ExtentTable::try_shared), [timed, cancellable](Wait), [as a future](ExtentTable::shared_async) |
//! | several ranges or files | [`lock_many`], without deadlock among such calls |
//! | guards | may be dropped on any thread; [owned ones](OwnedGuard) keep their table alive |
//! | order | conflicting requests are granted in the order in which they began to wait; nobody overtakes |
//! | state bits | [`ExtentBits`]: set, clear, convert, test, count, search, as Btrfs' extent io tree |
//! | addresses | [`AddressCache`]: which device block holds which block of the file, looked up without a lock |
//! | memory | 128 bytes for a table, and no heap while the file has at most 64 blocks; a byte for each block beyond that was ever locked, in pieces of up to 4 KiB |
//!
//! # Locking model
//!
//! ```text
//!   hull ── lowest and highest block that a covering request claims: read by all, written by covering requests only
//!   words ─ a byte a block (126 readers or 1 writer; "queued"), 8 blocks a word, 64 blocks a cache line
//!   marks ─ a bit a line: "was locked since the last covering request looked"; written on the first lock after that
//!   queue ─ waiting requests and held covering claims, in order of arrival, under a mutex of the table
//! ```
//!
//! - A range inside one word is taken by one compare-and-swap and released by one subtraction. A longer one takes its words
//!   in ascending order, and puts them back if it cannot have them all: nobody holds a part while waiting for the rest.
//! - A range of 4096 blocks (16 MiB) and more, or one that ends beyond block 2^30, is a *covering* claim: it is announced
//!   in the hull, kept in the queue's list, and the lines that are marked are searched for holders. Short requests look at
//!   the hull after taking their word; the argument that one of the two sees the other is in `hull.rs`.
//! - Who cannot have a range queues. The request sets the queued bit of each of its blocks; that turns newcomers to the
//!   queue and tells whoever releases the block to look there. The queue is one for the table: it is entered by requests that
//!   conflict, and those are about to sleep. It makes a request over many blocks, and over several ranges, one entry with
//!   one place in the order. `queue.rs` has the rules.
//! - The only lock that is held together with another one is that of the state bits (`bits/mod.rs`). Nothing is allocated, and
//!   nobody is woken, with the queue's lock held.
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
//! Wait queues hashed by block were weighed against the one queue here. They let waiters for different blocks of one file
//! queue in parallel, but a request over several blocks then has several places, waits while holding some of them, and can
//! be overtaken at one while it waits at another.
//!
//! Strict order has its price: a block that is wanted by many writers is handed from thread to thread, each of which has to be
//! woken, where an unfair lock would let running threads take it again and again.
//!
//! # Measured
//!
//! On 2 virtual processors of an AMD EPYC that other work kept busy, one thread, without contention
//! (`cargo bench --bench extent_instructions`; the loop around is taken off, time is the shortest of 20 runs):
//!
//! | Operation | instructions | allocations | ns |
//! |---|---|---|---|
//! | `shared` and unlock of one block, small file | 82 | 0 | 4.9 |
//! | `shared` and unlock of one block of 1 GiB | 117 | 0 | 10.0 |
//! | `exclusive` and unlock of one block of 1 GiB | 101 | 0 | 9.9 |
//! | `shared` and unlock of 1 MiB | 5489 | 0 | 293 |
//! | `exclusive_all` and unlock, idle file of 1 GiB | 5694 | 0 | 289 |
//! | the same, when every line was locked since the last one | | | 7600 |
//! | a reader-writer lock for the file, read | 19 | 0 | 3.9 |
//!
//! Against others (`cargo bench --bench extent_locks`), random shared locks of one block of a file of 2.5 GB, mean ns of a lock
//! and unlock by each of the threads. The load average was about 15 on the 2 processors, so only differences of several
//! times mean anything, and the figures for two threads do not tell how anything scales:
//!
//! | | 1 thread | 2 threads |
//! |---|---|---|
//! | this crate | 26 | 74 |
//! | reader-writer lock for the file | 10 | 19 |
//! | segment locks | 9 | 25 |
//! | list under a lock | 28 | 93 |
//! | tree of states, empty | 101 | 324 |
//! | tree of 640,000 states | 2381 | 5762 |
//!
//! Not measured: a quiet machine, more than two processors, the scaling of disjoint halves, and the longest wait.
//!
//! # How it is tested
//!
//! Scenarios of eight threads and more run under random schedules (`tests/shuttle_*.rs`, `cargo xtask shuttle`).
//! Models (`tests/loom_*.rs`, `cargo xtask loom -p f2fs-extent`) run this code under every schedule of two threads, or of
//! three with three preemptions, and each is seen to find a fault. Random operations are compared with a naive model of
//! every block and of the queue (`tests/oracle_*.rs`; `F2FS_EXTENT_OPS=100000000` for the long run), Btrfs' own scenarios are in
//! `tests/btrfs_scenarios.rs`, and threads contend in `tests/stress.rs`.
#![forbid(unsafe_code)]

mod acquire;
mod bits;
mod cache;
mod claim;
mod directory;
mod fast;
mod future;
mod geometry;
mod guard;
mod hull;
mod many;
mod order;
mod present;
mod queue;
mod range;
mod scan;
mod table;
mod wait;
mod word;
mod words;

pub use bits::{Bits, ExtentBits, Run};
pub use cache::{AddressCache, CacheBudget, CachedRun};
pub use future::{ExclusiveFuture, SharedFuture};
pub use guard::{ExclusiveGuard, OwnedGuard, SharedGuard};
pub use many::{LockRequest, ManyGuard, lock_many, lock_many_with};
pub use range::BlockRange;
pub use table::ExtentTable;
pub use wait::{CancelToken, LockError, Wait, WaitStats};
pub use word::Mode;
