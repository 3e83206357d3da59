//! Rolls forward what was synced on a volume whose chain of nodes is damaged: for a reader and for a writer.
#![no_main]

use f2fs_fuzz::{Input, harness, seeds};

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin(&[seeds::damages, seeds::taken]), |data: &[u8]| {
    if let Some(input) = Input::decode(data) {
        let base = input.synced();
        harness::roll_forward(&input.device(base), input.is_sound());
    }
});
