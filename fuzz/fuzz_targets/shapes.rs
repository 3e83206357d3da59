//! The same with volumes of other geometries: sections, zones, from the smallest to 16 TiB.
#![no_main]

use f2fs_fuzz::{Input, harness, seeds};

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin(&[seeds::damages]), |data: &[u8]| {
    if let Some(input) = Input::decode(data) {
        let base = input.shaped();
        harness::change(&input.device(base), base.names(), &input.choices, input.is_sound());
    }
});
