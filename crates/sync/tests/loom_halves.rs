//! The test of `halves.rs`, in the loom half: the signatures agree, and so does what the items do.
#![cfg(loom)]

#[path = "halves.rs"]
mod halves;
