//! The zone state machine: layouts and commands, step by step beside the naive model that its property test uses.
#![no_main]

#[path = "../../crates/device/tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin("zones"), |data: &[u8]| common::run(data));
