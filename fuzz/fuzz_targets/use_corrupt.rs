//! Opens a damaged volume for writing, changes it, writes checkpoints, and opens it again.
#![no_main]

use f2fs_fuzz::{Input, harness};

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin("use_corrupt"), |data: &[u8]| {
    if let Some(input) = Input::decode(data) {
        harness::change(&input.device(), &input.choices);
    }
});
