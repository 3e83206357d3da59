//! A damaged volume on a device that fails: it is read, checked, and changed.
#![no_main]

use f2fs_fuzz::{Input, harness, seeds};

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin(&[seeds::damages, seeds::failures]), |data: &[u8]| {
    if let Some(input) = Input::decode(data) {
        let base = input.usual();
        let (faults, choices) = input.faults();
        let device = input.device(base);
        if choices.len().is_multiple_of(2) {
            harness::change_on_failing(&device, base.names(), choices, &faults, input.is_sound());
        } else {
            harness::read_from_failing(&device, &faults);
        }
    }
});
