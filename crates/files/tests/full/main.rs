//! Volumes without room: errors with their numbers, nothing broken, and room again after deletions.
//!
//! `F2FS_ROUNDS=10` runs ten times as many rounds of filling and emptying.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod fill;
mod nids;
mod nothing_left;
mod recovered;
mod rounds;
mod threads;
mod whole;
