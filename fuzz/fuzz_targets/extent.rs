//! The extent table: locks and state bits, step by step beside the naive models that its oracle tests use.
#![no_main]

#[allow(dead_code)] // the target uses a part
#[path = "../../crates/extent/tests/common/mod.rs"]
mod common;

use common::Source;
use f2fs_fuzz::seeds;

/// Choices out of the fuzzer's bytes; zero when they are used up.
struct Bytes<'a>(&'a [u8]);

impl Source for Bytes<'_> {
    fn below(&mut self, bound: usize) -> usize {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                usize::from(byte) % bound
            }
            None => 0,
        }
    }
}

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin(&[seeds::steps]), |data: &[u8]| {
    let Some((&selector, data)) = data.split_first() else { return };
    // A step takes some six bytes.
    let steps = data.len() / 6;
    match selector % 2 {
        0 => common::locks::epoch(&mut Bytes(data), steps),
        _ => common::bits::epoch(&mut Bytes(data), steps),
    }
});
