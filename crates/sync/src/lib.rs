//! The only crate of the family that names a lock or an atomic.
//!
//! Everything concurrent in f2fs is written against these types. In production they are `parking_lot`'s locks and the
//! standard atomics; under `--cfg loom` they are loom's and under `--cfg shuttle` shuttle's, behind the same
//! signatures, so that the models drive the production code and never a copy of it. Under `--cfg f2fs_counting` they
//! put every write on record, so that the cache lines that an operation writes are counted and not guessed; under
//! `--cfg f2fs_manycore` they let time pass on the virtual cores of a machine that is played (`manycore`).
//!
//! | Item | production | `cfg(loom)`, `cfg(shuttle)` | `cfg(f2fs_counting)` |
//! |---|---|---|---|
//! | [`Mutex`], [`RwLock`], [`Condvar`] | `parking_lot` | theirs, wrapped | `parking_lot`'s, wrapped |
//! | [`OnceLock`] | `std` | theirs, wrapped | `std`'s, wrapped |
//! | [`atomic`] | `std` | theirs | `std`'s, wrapped |
//! | [`thread`], [`hint`], [`thread_local!`] | `std` | theirs | `std`, on a machine of 16 processors |
//! | [`Arc`], [`Weak`] | `std` | `std` (loom's `Arc` cannot hold unsized types) | `std`'s, wrapped |
//! | [`PlainArc`] | `std` | `std` | `std`, not on record |
//! | [`memory`], [`spinning`] | empty | empty | empty; they tell `manycore` of memory behind a lock, and of spin locks |
//! | `model` | absent | loom: runs a model under every schedule, and counts them | absent |
//! | `scenario` | absent | shuttle: runs a larger one under many random schedules | absent |
//! | `counting` | absent | absent | counts lines, of one thread and of two |
//! | `manycore` | absent | absent | absent; under `cfg(f2fs_manycore)` it plays a machine, and the items above are as here |
//! | `meeting` | under `cfg(fuzzing)`: two threads wait for each other at locks, where an input says | absent | absent |
//! | [`mutant`](mutant()) | the constant `false` | `F2FS_MUTANT` names it | the constant `false` |
//!
//! `tests/halves.rs` uses every item above in all halves. Only the items that it uses are common to them: `parking_lot`
//! offers more.
//!
//! Code that needs a store-buffering (Dekker) pair uses `atomic::fence(SeqCst)`: loom treats `SeqCst` accesses as
//! acquire-release only.
//!
//! # Building blocks
//!
//! | Item | What for | Lines written on the hot path |
//! |---|---|---|
//! | [`PerCore`] | one value per processor | the slot's |
//! | [`Gate`] | operations pass, a checkpoint closes | one count, on entering and on leaving |
//! | [`ShardedCounter`] | statistics and totals, summed by few | the slot's delta |
//! | [`Budget`] | free blocks and node IDs: bounded, exact at the end | the slot's cache; near the end, one lock |
//! | [`Striped`] | a lock for each of many keys | the stripe's |
//! | [`GroupCommit`] | many want one slow thing: one does it for all | the queue's lock |
//! | [`InOrder`] | work is done side by side, and takes effect in order | the own slot, and the next one's |
//! | [`Gathering`] | when a group of them begins: the rule alone, for models in virtual time | none |
//! | [`Spares`] | things that are used again | the processor's list |
//! | [`Stamp`] | whether what was looked up still holds | none |
//!
//! None of them takes a lock of another crate or calls back while it has one of its own, so they are last in every
//! order of locks. A gate is entered before any lock is taken, because entering waits for a closer, which waits for
//! everybody.
//!
//! # The counting half
//!
//! It is chosen by a `cfg` and not by a cargo feature, like the loom half. Features are united over everything that is
//! built together: one test that asked for counting would have all others, and all crates above these, run counting
//! locks. A `cfg` in `RUSTFLAGS` is the choice of the one who runs the build, reaches all crates alike, and has a
//! target directory of its own. `cargo xtask counting` builds with it, runs the tests that pin the written lines, and
//! prints the table (`benches/benches/cache_lines.rs`).
//!
//! # Models and mutants
//!
//! A crate's models are the tests in its `tests/loom_*.rs`, which begin with `#![cfg(loom)]` and run their bodies
//! through `f2fs_sync::model`. Each model has a fault in the production code that it must find: the mutant of a point
//! of the protocol ([`protocol_step!`], [`protocol_value!`], [`protocol_never!`]), announced by a comment line of this
//! form in the file:
//!
//! ```text
//! // mutant: gate_enter_fence, killed by: a_closer_is_alone
//! ```
//!
//! `cargo xtask loom -p CRATE` builds the models once, runs each, then runs the named model once for every mutant and
//! expects it to fail. It also fails if a protocol point in the sources is announced nowhere, or an announced one
//! does not exist.
//!
//! A case too large for every schedule (eight threads and more, the production geometry) is a *scenario*, in
//! `tests/shuttle_*.rs`, run by `cargo xtask shuttle` in the same way. shuttle is sequentially consistent: it finds
//! faults of protocols, not of memory orders.
#![forbid(unsafe_code)]

mod budget;
mod counter;
#[cfg(f2fs_counting)]
pub mod counting;
pub mod gate;
mod group_commit;
mod in_order;
#[cfg(f2fs_manycore)]
pub mod manycore;
#[cfg(all(any(fuzzing, test), not(any(loom, shuttle, f2fs_counting, f2fs_manycore))))]
pub mod meeting;
pub mod memory;
#[cfg(loom)]
pub mod model;
#[cfg(any(loom, shuttle))]
mod model_half;
mod mutant;
mod per_core;
#[cfg(not(any(loom, shuttle, f2fs_counting, f2fs_manycore)))]
mod production;
#[cfg(all(shuttle, not(loom)))]
pub mod scenario;
mod share_out;
mod spares;
mod stamp;
mod striped;
#[cfg(any(f2fs_counting, f2fs_manycore))]
mod watched_half;

pub use budget::Budget;
pub use counter::ShardedCounter;
pub use gate::{ClosedGate, Gate, GateGuard};
pub use group_commit::{Gathering, Gathers, GroupCommit};
pub use in_order::{BrokenOff, InOrder};
pub use memory::spinning;
#[cfg(any(loom, shuttle))]
pub use model_half::*;
#[cfg(any(f2fs_manycore, feature = "mutants"))]
pub use mutant::assert_found;
pub use mutant::mutant;
pub use per_core::{PerCore, cache_stripes_here, processors, stripe_of, stripes_here};
#[cfg(not(any(loom, shuttle, f2fs_counting, f2fs_manycore)))]
pub use production::*;
pub use share_out::share_out;
pub use spares::Spares;
pub use stamp::Stamp;
pub use striped::Striped;
#[cfg(any(f2fs_counting, f2fs_manycore))]
pub use watched_half::*;

pub use crossbeam_utils::CachePadded;
#[cfg(not(any(f2fs_counting, f2fs_manycore)))]
pub use std::sync::{Arc, Weak};

/// An [`Arc`] that is on record in no half: for trait objects that callers make, and for values that no hot path
/// clones.
pub use std::sync::Arc as PlainArc;

/// An [`Arc`] of a type as one of a trait object: `coerce!(arc => dyn Trait)`. A wrapper of the counting half cannot be
/// converted in place, as the standard library's can.
#[cfg(not(any(f2fs_counting, f2fs_manycore)))]
#[macro_export]
macro_rules! coerce {
    ($arc:expr => $target:ty) => {{
        let arc = $arc;
        let arc: $crate::Arc<$target> = arc;
        arc
    }};
}

/// An [`Arc`] of a type as one of a trait object.
#[cfg(any(f2fs_counting, f2fs_manycore))]
#[macro_export]
macro_rules! coerce {
    ($arc:expr => $target:ty) => {{
        let arc = $crate::Arc::into_plain($arc);
        let arc: $crate::PlainArc<$target> = arc;
        $crate::Arc::from(arc)
    }};
}

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
