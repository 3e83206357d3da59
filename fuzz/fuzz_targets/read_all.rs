//! Opens a damaged volume for reading, and reads all that can be read, twice.
#![no_main]

use f2fs_fuzz::{Input, harness, seeds};

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin(&[seeds::damages]), |data: &[u8]| {
    if let Some(input) = Input::decode(data) {
        let base = input.usual();
        harness::read_everything(&input.device(base));
    }
});
