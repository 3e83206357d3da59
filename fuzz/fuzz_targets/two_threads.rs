//! Two threads change a damaged volume at once, and meet where the input says.
#![no_main]

use f2fs_fuzz::{Input, harness, seeds};
use f2fs_sync::meeting;

/// Bytes of the choices that say where the threads wait for each other.
const SCHEDULE: usize = 24;

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin(&[seeds::damages, seeds::meetings]), |data: &[u8]| {
    if let Some(input) = Input::decode(data) {
        let base = input.usual();
        let (schedule, choices) = input.choices.split_at(SCHEDULE.min(input.choices.len()));
        harness::change_by_two(&input.device(base), base.names(), choices, input.is_sound(), |one, two| {
            meeting::two(schedule, one, two);
        });
    }
});
