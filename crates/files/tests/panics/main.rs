//! A panic within an operation stops the volume: nothing that is half done becomes a checkpoint, the last checkpoint
//! and what was synced since are there at the next open, and no other thread waits forever.
//!
//! `F2FS_STRESS=1000` panics in every single request; usually in a part of them.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod guards;
mod judge;
mod on_the_way;
mod opening;
mod requests;
mod threads;
mod work;
