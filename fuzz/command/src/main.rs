//! The command on a damaged image: its own modules (links to `crates/cli/src`), which read and change a volume in
//! memory. What it prints goes nowhere.
#![no_main]
#![allow(dead_code)] // of the command's modules a part is used

mod args;
mod closing;
mod commands;
mod error;
mod escape;
mod image;
mod interrupt;
mod journal_file;
mod medium;
mod memory_limit;
mod mounts;
mod progress;
mod size;
mod system_log;

use std::process::ExitCode;
use std::sync::OnceLock;

use clap::Parser;
use f2fs_fuzz::{Input, seeds};

use args::Arguments;

/// The operations, one after the other from a place that the input chooses: words behind `f2fs`. `I` is the image.
const WORDS: [&str; 28] = [
    "ls -l I /",
    "ls -lR I /",
    "ls -laR --json I /",
    "ls --zero I /hashed /inline",
    "ls -dlh I /inline/soft /inline/device",
    "ls -lR --no-recovery I",
    "cat I /large",
    "cat I /inline/small",
    "cat I /inline/soft",
    "get I /inline/hard -",
    "stat I / /inline /large /inline/soft /inline/device",
    "stat --json I / /inline/small /hashed /inline/long",
    "manifest I",
    "manifest --max-hash 0 I",
    "manifest --no-recovery --max-hash 64k I",
    "inspect I",
    "inspect --holes I",
    "inspect --json I",
    "inspect --holes --json I",
    "check I",
    "check --json I",
    "ls -lR I /dir /big",
    "mkdir -p I /new/below",
    "ln -s I target /inline/new",
    "ln I /large /new",
    "mv I /inline/small /small",
    "rm -r I /inline",
    "rm -rf I /hashed /dir",
];

fn arguments() -> &'static [Arguments] {
    static ARGUMENTS: OnceLock<Vec<Arguments>> = OnceLock::new();
    ARGUMENTS.get_or_init(|| {
        let parse = |words: &&str| Arguments::try_parse_from(["f2fs"].into_iter().chain(words.split(' ')));
        WORDS.iter().map(|words| parse(words).expect("a command line")).collect()
    })
}

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin(&[seeds::damages, seeds::borders]), |data: &[u8]| {
    let Some(input) = Input::decode(data) else { return };
    medium::put(input.device(input.usual()));
    let first = usize::from(input.choices.first().copied().unwrap_or(0));
    for number in 0..3 {
        let words = &arguments()[(first + number * 7) % WORDS.len()];
        let _: ExitCode = commands::run(words).unwrap_or_else(|error| ExitCode::from(&error));
    }
});
