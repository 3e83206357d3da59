//! Locks against the naive model of `common/locks.rs`, under random operations.
#![cfg(not(any(loom, shuttle)))]

#[allow(dead_code)] // each test uses a part
mod common;

use common::{Random, locks, operations};

#[test]
fn random_operations_agree_with_a_naive_model() {
    let mut random = Random::new(0x0acd);
    // Many tables, so that each structure is met new and old.
    let steps = operations() / 50;
    for _ in 0..50 {
        locks::epoch(&mut random, steps);
    }
}
