//! FxMark on Linux's F2FS by system calls, and with the library (`sharded`) in its process, in one boot on the same RAM
//! disk, at 1 to 16 threads and never more than the guest has processors. Both have a volume that mkfs.f2fs has just
//! made, the same number of operations, and a page cache. Sides take turns; a ratio is of one round. Needs `/dev/kvm`
//! and real processors to mean anything; under emulation the test shows that it works.
//!
//! The library is a part of the program: no system call is in its rates, and none of the checks of a kernel. One thread
//! shows what that is worth; how the ratio grows with the threads shows how the two scale. The kernel runs without
//! mitigations, so that its calls are cheap. The volume is young and nearly empty: Linux does not search for free NIDs
//! as it does on the full volumes of FxMark's paper, which would slow it further.
//!
//! Predicted for 16 real processors, before any run:
//!
//! | | ratio, 1 thread | Linux, 16 by 1 | library, 16 by 1 | ratio, 16 threads |
//! |---|--:|--:|--:|--:|
//! | `mwul` (private directories) | 2 | 2.5 | 9 | 7 |
//! | `mwum` (one directory) | 2 | 0.6 | 4 | 13 |
//! | `mwcl` | 2.5 | 3 | 9 | 7.5 |
//! | `mwcm` (one directory, 4 KiB) | 2 | 0.7 | 4 | 11 |
//! | `mwrl` | 2.5 | 5 | 10 | 5 |
//! | `drbl` | 2 | 14 | 14 | 2 |
//! | `dwol` | 2 | 8 | 12 | 3 |
//!
//! Reasons: all unlinks of Linux's F2FS take the list of free NIDs and that of orphans, all its creates the first of
//! them, and a directory has one lock. Here lists are by processor, and a directory has 64 locks of its names. Reads and
//! overwrites of private blocks write hardly any common line on either side.

use std::thread;
use std::time::Duration;

use anyhow::ensure;

use super::programs::{self, LOADER, dynamic};
use super::{Bench, Outcome, judge};
use crate::Result;

const LIMIT: Duration = Duration::from_secs(1800);
const SCRIPT: &str = include_str!("scaling.sh");
/// Workloads of the script.
const WORKLOADS: usize = 7;
/// The most threads.
const MOST: u32 = 16;

/// How much is measured.
#[derive(Debug)]
struct Amount {
    /// Files that are made or unlinked.
    files: u64,
    /// Renames, reads and writes.
    calls: u64,
    rounds: u32,
    /// Of the RAM disk (MiB).
    disk: u64,
    /// Of the guest (MiB).
    memory: u64,
    /// After so many seconds nothing more is begun.
    seconds: u64,
}

const FULL: Amount = Amount { files: 48_000, calls: 480_000, rounds: 3, disk: 3072, memory: 8192, seconds: 1200 };
const QUICK: Amount = Amount { files: 1000, calls: 5000, rounds: 1, disk: 512, memory: 2048, seconds: 600 };

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let amount = if bench.quick { &QUICK } else { &FULL };
    let here = thread::available_parallelism().map_or(1, |number| u32::try_from(number.get()).unwrap_or(MOST));
    let processors = bench.processors.unwrap_or(here.min(MOST));
    let program = programs::measured(&bench.cache, "f2fs-cli", "f2fs")?;
    let mut boot = bench.guest.boot("scaling").processors(processors).memory(amount.memory).program(&program);
    for file in dynamic(&["mkfs.f2fs"])? {
        boot = boot.program(&file);
    }
    let threads = threads(processors);
    let words: Vec<String> = threads.iter().map(u32::to_string).collect();
    let Amount { files, calls, rounds, disk, seconds, .. } = amount;
    let script = format!(
        "LOADER='/bin/{LOADER} --library-path /bin'\nTHREADS='{}'\nROUNDS={rounds}\nFILES={files}\nCALLS={calls}\n\
         MIB={disk}\nSECONDS_ALL={seconds}\n{SCRIPT}",
        words.join(" ")
    );
    let output = boot.run(&script, LIMIT)?;
    judge::succeeded(&output)?;
    let table = output.log.split_once("== table\n").map_or("", |(_, table)| table);
    print!("{}", table.lines().map(|line| format!("    {line}\n")).collect::<String>());
    let measured = fs_err::read_to_string(output.share.join("scaling.csv"))?.lines().count();
    let all = *rounds as usize * threads.len() * WORKLOADS * 2;
    ensure!(measured == all, "{measured} of {all} measurements were made in {seconds} s");
    Ok(Outcome { wall: output.wall, remark: format!("{measured} measurements on {processors} processors") })
}

/// Powers of two up to the processors, the greatest first: should time run out, the extremes are there.
fn threads(processors: u32) -> Vec<u32> {
    let mut all: Vec<u32> =
        (0..).map(|power| 1 << power).take_while(|threads| *threads <= processors.clamp(1, MOST)).collect();
    all.rotate_right(1);
    all
}

#[cfg(test)]
mod tests {
    use super::threads;

    #[test]
    fn threads_are_those_that_have_processors() {
        assert_eq!(threads(16), [16, 1, 2, 4, 8]);
        assert_eq!(threads(64), threads(16));
        assert_eq!(threads(3), [2, 1]);
        assert_eq!(threads(1), [1]);
    }
}
