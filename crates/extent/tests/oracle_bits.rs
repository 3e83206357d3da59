//! State bits against the naive model of `common/bits.rs`, under random operations.
#![cfg(not(any(loom, shuttle)))]

#[allow(dead_code)] // each test uses a part
mod common;

use common::{Random, bits, operations};

#[test]
fn random_operations_agree_with_a_naive_model() {
    bits::epoch(&mut Random::new(0x5eed), operations());
}
