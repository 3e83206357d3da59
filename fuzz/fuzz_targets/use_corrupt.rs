//! Opens a damaged volume for writing, changes it, writes checkpoints, and opens it again. A sound volume stays sound.
#![no_main]

use f2fs_fuzz::{Input, harness, seeds};

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin(&[seeds::damages]), |data: &[u8]| {
    if let Some(input) = Input::decode(data) {
        let base = input.usual();
        harness::change(&input.device(base), base.names(), &input.choices, input.is_sound());
    }
});
