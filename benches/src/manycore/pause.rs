//! How long operations wait while a checkpoint is written, on virtual cores.
//!
//! Each core makes its part of the new inodes before the run. In it, core 0 writes the checkpoint. The others make,
//! overwrite and remove files, each with a rest between two operations, from before it begins until after it has ended.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use f2fs_sync::manycore::{self, Machine, Outcome};
use f2fs_sync::thread::sleep;

use super::{Subject, Workload};
use crate::report::ascending;
use crate::scaling::files::{BYTES, volume};

/// The rest of a core between two operations.
const REST: Duration = Duration::from_micros(100);
/// Core 0 begins the checkpoint so many nanoseconds after the run has begun; the others go on for as long behind it.
const ALONE: u64 = 10_000_000;
/// Files in a directory.
const IN_DIRECTORY: u64 = 1000;

/// Waits of a phase, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    /// Operations.
    pub count: usize,
    /// The median.
    pub median: f64,
    /// 99.9 % are shorter.
    pub high: f64,
    /// The longest.
    pub longest: f64,
}

impl Waits {
    fn of(times: impl Iterator<Item = (u64, u64)>) -> Waits {
        let waits = ascending(times.map(|(begin, end)| (end - begin) as f64));
        let at = |part: f64| waits.get((waits.len() as f64 * part) as usize).copied().unwrap_or(0.0);
        let longest = waits.last().copied().unwrap_or(0.0);
        Waits { count: waits.len(), median: at(0.5), high: at(0.999), longest }
    }
}

/// A checkpoint, and the operations beside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paused {
    /// Nanoseconds that the checkpoint took.
    pub checkpoint: u64,
    /// Operations before it began and after it ended.
    pub alone: Waits,
    /// Operations that overlapped it.
    pub during: Waits,
    /// What the run told, from soon after it began to the end of the checkpoint.
    pub outcome: Outcome,
}

/// Plays a checkpoint of so many new inodes beside operations of all other cores.
///
/// # Panics
///
/// If an operation fails.
#[must_use]
pub fn play(machine: &Machine, cores: usize, inodes: u64) -> Paused {
    let subject = Subject::new(Workload::Mwcl);
    // It boots another machine.
    let pace = subject.pace(200);
    manycore::boot(machine);
    let fs = volume(&subject, BYTES, inodes * 2);
    for core in 0..cores {
        manycore::prepare(core, || {
            fs.create_dir(format!("/own-{core}"), 0o755).expect("there is room");
            for file in 0..inodes / cores as u64 {
                let directory = format!("/dirty-{core}-{}", file / IN_DIRECTORY);
                if file % IN_DIRECTORY == 0 {
                    fs.create_dir(&directory, 0o755).expect("there is room");
                }
                drop(fs.create_file(format!("{directory}/file-{file}"), 0o644).expect("there is room"));
            }
        });
    }
    // Virtual cores are one thread: these cost them nothing.
    let (begun, ended, times) = (AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX), Mutex::new(Vec::new()));
    let operation = |core: usize, lap: u64| {
        let path = |number: u64| format!("/own-{core}/file-{number}");
        match lap % 3 {
            0 => drop(fs.create_file(path(lap / 3), 0o644).expect("there is room")),
            1 => {
                let file = fs.open_file(path(lap / 3)).expect("it was made");
                file.write_at(&[5; 4096], 0).expect("there is room");
            }
            _ => fs.remove_file(path(lap / 3)).expect("it was made"),
        }
    };
    let outcome = manycore::run(machine, &pace, cores, 1, |core| {
        if core == 0 {
            sleep(Duration::from_nanos(ALONE));
            begun.store(manycore::now(), Relaxed);
            fs.checkpoint().expect("there is room");
            ended.store(manycore::now(), Relaxed);
            return;
        }
        for lap in 0.. {
            let begin = manycore::now();
            if begin > ended.load(Relaxed).saturating_add(ALONE) {
                break;
            }
            operation(core, lap);
            times.lock().unwrap_or_else(PoisonError::into_inner).push((begin, manycore::now()));
            manycore::lap();
            sleep(REST);
        }
    });
    let (begun, ended) = (begun.load(Relaxed), ended.load(Relaxed));
    let times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
    let overlaps = |(begin, end): &(u64, u64)| *begin < ended && *end > begun;
    Paused {
        checkpoint: ended - begun,
        alone: Waits::of(times.iter().copied().filter(|time| !overlaps(time))),
        during: Waits::of(times.iter().copied().filter(overlaps)),
        outcome,
    }
}
