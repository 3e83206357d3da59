//! Two threads change a damaged volume at once.
#![no_main]

use f2fs_fuzz::{Input, harness};

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin("two_threads"), |data: &[u8]| {
    if let Some(input) = Input::decode(data) {
        let base = input.usual();
        harness::change_by_two(&input.device(base), base.names(), &input.choices, input.is_sound());
    }
});
