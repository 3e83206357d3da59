//! The zone state machine: layouts and commands, step by step beside the naive model that its property test uses.
#![no_main]

#[path = "../../crates/device/tests/zone_model/mod.rs"]
mod zone_model;

use f2fs_fuzz::seeds;

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin(&[seeds::steps]), |data: &[u8]| zone_model::run(data));
