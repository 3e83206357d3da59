//! The only crate of the family that names a lock or an atomic.
//!
//! Everything concurrent in f2fs is written against these types. In production they are `parking_lot`'s locks and the
//! standard atomics; under `--cfg loom` they are loom's and under `--cfg shuttle` shuttle's, behind the same signatures, so
//! that the models drive the production code and never a copy of it.
//!
//! | Item | production | `cfg(loom)`, `cfg(shuttle)` |
//! |---|---|---|
//! | [`Mutex`], [`RwLock`], [`Condvar`] | `parking_lot` | theirs, wrapped |
//! | [`OnceLock`], [`thread_local!`] | `std` | theirs, wrapped |
//! | [`atomic`], [`thread`], [`hint`] | `std` | theirs |
//! | [`Arc`] | `std` | `std` (loom's `Arc` cannot hold unsized types) |
//! | `model` | absent | loom: runs a model under every schedule, and counts them |
//! | `scenario` | absent | shuttle: runs a larger one under many random schedules |
//! | [`mutant`](mutant()) | the constant `false` | `F2FS_MUTANT` names it |
//!
//! `tests/halves.rs` uses every item above in all halves. Only what it uses is common to both: `parking_lot` offers more.
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
//!
//! None of them takes a lock of another crate or calls back while it has one of its own, so they are last in every order
//! of locks. A gate is entered before any lock is taken, because entering waits for a closer, which waits for everybody.
//!
//! # Further halves
//!
//! A half is a module that shows these names, chosen by a `cfg` at the head of this file: one that counts the cache lines
//! written by an operation would wrap the production half in the same way as the loom half wraps loom's types.
//!
//! # Models and mutants
//!
//! A crate's models are the tests in its `tests/loom_*.rs`, which begin with `#![cfg(loom)]` and run their bodies through
//! `f2fs_sync::model`. Each model has a fault in the production code that it must find, switched by
//! [`mutant`](mutant()), and announced by a comment line of this form in the file:
//!
//! ```text
//! // mutant: gate_enter_no_fence, killed by: a_closer_is_alone
//! ```
//!
//! `cargo xtask loom -p CRATE` builds the models once, runs each, then runs the named model once for every mutant and
//! expects it to fail. It also fails if a `mutant("...")` in the crate's sources is announced nowhere, or an announced one
//! does not exist.
//!
//! What is too large for every schedule (eight threads and more, the production geometry) is a *scenario*, in
//! `tests/shuttle_*.rs`, run by `cargo xtask shuttle` in the same way. shuttle is sequentially consistent: it finds faults of
//! protocols, not of memory orders.
#![forbid(unsafe_code)]

mod budget;
mod counter;
pub mod gate;
#[cfg(loom)]
pub mod model;
#[cfg(any(loom, shuttle))]
mod model_half;
mod mutant;
mod per_core;
#[cfg(not(any(loom, shuttle)))]
mod production;
#[cfg(all(shuttle, not(loom)))]
pub mod scenario;
mod striped;

pub use budget::Budget;
pub use counter::ShardedCounter;
pub use gate::{ClosedGate, Gate, GateGuard};
#[cfg(any(loom, shuttle))]
pub use model_half::*;
pub use mutant::mutant;
pub use per_core::PerCore;
#[cfg(not(any(loom, shuttle)))]
pub use production::*;
pub use striped::Striped;

pub use crossbeam_utils::CachePadded;
pub use std::sync::{Arc, Weak};
