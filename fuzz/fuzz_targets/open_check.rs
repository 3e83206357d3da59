//! Opens a damaged volume for reading, looks at everything, and checks it.
#![no_main]

use f2fs_fuzz::{Input, harness, seeds};

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin(&[seeds::damages]), |data: &[u8]| {
    if let Some(input) = Input::decode(data) {
        let base = input.usual();
        let _ = harness::open_and_check(&input.device(base));
    }
});
