//! Repairs a damaged volume: it is repaired or refused, and never worse than before.
#![no_main]

use f2fs_fuzz::{Input, harness, seeds};

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin(&[seeds::damages]), |data: &[u8]| {
    if let Some(input) = Input::decode(data) {
        let base = input.usual();
        harness::repair(&input.device(base));
    }
});
