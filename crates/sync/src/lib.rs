//! The only crate of the family that names a lock or an atomic.
//!
//! Everything concurrent in f2fs is written against these types. In production they are `parking_lot`'s locks and the
//! standard atomics; under `--cfg loom` they are loom's, behind the same signatures, so that the models drive the
//! production code and never a copy of it.
//!
//! | Item | production | `cfg(loom)` |
//! |---|---|---|
//! | [`Mutex`], [`RwLock`], [`Condvar`] | `parking_lot` | loom, unwrapped |
//! | [`atomic`], [`thread`], [`hint`] | `core` / `std` | loom |
//! | [`Arc`] | `std` | `std` (loom's `Arc` cannot hold unsized types) |
//!
//! Code that needs a store-buffering (Dekker) pair uses `atomic::fence(SeqCst)`: loom treats `SeqCst` accesses as
//! acquire-release only.
#![forbid(unsafe_code)]

#[cfg(loom)]
mod loom_half;
#[cfg(not(loom))]
mod production;

#[cfg(loom)]
pub use loom_half::*;
#[cfg(not(loom))]
pub use production::*;

pub use crossbeam_utils::CachePadded;
pub use std::sync::{Arc, Weak};
