//! A device that fails at one of its requests, for every request of a workload and every way to fail.
//!
//! | Fault | What is promised, and judged |
//! |---|---|
//! | `EIO` once, `EIO` for good, `ENOSPC`, short transfer, panic | An operation that succeeds has happened, one that fails gives a typed error (the panic comes through it) and has happened as a whole or not at all. Opened again, with the power on or after it went, the volume is consistent, holds what a checkpoint, an fsync or a close that succeeded had covered, and can be used. A volume that stopped refuses every change. Nothing becomes durable, or says so, on a device that is gone. |
//! | flush lost | The same with the power on; and after a power cut, if the device flushed again meanwhile. If it did not, it has lied about what it keeps: the volume opens, or says why not. |
//! | misdirected write, flipped bit on read | No panic, no hang; an error is whatever it may be. F2FS has no checksums over data, directories, SIT and NAT: what nobody finds is counted as *silent*. |
//!
//! The contents afterwards are judged as after a crash ([`judge`](crate::judge)). A volume whose journal's device failed
//! goes on without that journal, which then builds on an older checkpoint and may be refused: such a volume is opened
//! without it, and holds all that was promised.

mod matrix;
mod script;
mod trial;
mod way;

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use f2fs_device_test::{FaultDevice, RecordingDevice};
use f2fs_files::{FileSystem, FsError, JournalMode, JournalOptions, Options};
use f2fs_journal::DeviceMedium;
use f2fs_sync::{Arc, Mutex};

use crate::base::{self, Base, BaseKind};
use crate::{pool, several};

pub use matrix::{Broken, Matrix, Row};
pub use script::Requests;
pub use way::Way;

use script::Script;

/// One run takes a fraction of a second; this is a hang.
const HANG: Duration = Duration::from_secs(60);

/// A run whose request did not come is tried again.
const ATTEMPTS: usize = 10;

/// The base that the matrix runs on.
pub const BASE: BaseKind = BaseKind::Checksums;

/// The base with a journal on a device of its own, which fails like the volume's: each request of either device fails
/// in turn, and a failure for good takes both away.
pub const JOURNALED: BaseKind = BaseKind::Journaled;

fn options() -> Options {
    // Hardly any cache: things are read again and again.
    base::options(|volume| volume.node_cache(NonZeroUsize::MIN)).inode_cache(NonZeroUsize::MIN)
}

/// A recorded volume whose requests may fail, with those of its journal if it has one.
struct Faulty {
    /// What the volume is opened on.
    volume: Arc<FaultDevice>,
    journal: Option<Arc<FaultDevice>>,
    /// How it is opened.
    options: Options,
}

impl Faulty {
    fn new(recorder: &Arc<RecordingDevice>) -> Result<Faulty, &'static str> {
        let Some([volume, journal]) = several::beside_journal(recorder) else {
            let volume = Arc::new(FaultDevice::new(recorder.clone()));
            return Ok(Faulty { volume, journal: None, options: options() });
        };
        let volume = Arc::new(FaultDevice::new(volume));
        let journal = Arc::new(volume.beside(journal));
        let medium = DeviceMedium::new(journal.clone()).map_err(|_| "the journal is in use")?;
        let options = options().journal(JournalOptions::new(Arc::new(medium), JournalMode::Ordered));
        Ok(Faulty { volume, journal: Some(journal), options })
    }

    /// Whether the journal's device failed.
    fn has_failing_journal(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.own_faults() > 0)
    }

    /// Opens the volume.
    fn open(&self) -> Result<FileSystem, FsError> {
        FileSystem::open(self.volume.clone(), self.options.clone())
    }
}

/// The requests that fail.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where chance begins.
    pub seed: u64,
    /// Every so many-th request is failed; every flush.
    pub sample: u64,
    /// Only this episode and this request.
    pub only: Option<(usize, u64)>,
    /// Threads; 0: as many as processors.
    pub threads: usize,
}

/// Fails requests in every way. `progress` is told of runs done and of how many.
///
/// # Errors
/// If the workload fails on a healthy device.
pub fn run(base: &Base, settings: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Matrix, FsError> {
    let begun = Instant::now();
    let script = Script::new(base, settings.seed)?;
    let mut broken = Vec::new();
    for (episode, script) in script.episodes.iter().enumerate() {
        // Without a fault everything must be as it must be; else nothing that follows says anything.
        if let Err(what) = pool::caught(|| trial::run(script, Way::Once, u64::MAX)) {
            let ops: Vec<String> = script.ops.iter().map(ToString::to_string).collect();
            let what = format!("without a fault: {what}  the operations: {}", ops.join("; "));
            broken.push(Broken { way: Way::Once, episode, index: u64::MAX, what });
        }
    }
    let mut jobs = Vec::new();
    for way in Way::ALL {
        let step = if way == Way::FlushLost { 1 } else { settings.sample.max(1) };
        let all =
            script.episodes.iter().enumerate().flat_map(|(episode, script)| {
                (0..script.requests.that_can(way)).map(move |index| (way, episode, index))
            });
        let wanted = |job: &(Way, usize, u64)| settings.only.is_none_or(|only| only == (job.1, job.2));
        jobs.extend(all.step_by(if settings.only.is_some() { 1 } else { step as usize }).filter(wanted));
    }
    let result = Mutex::new((vec![Row::default(); Way::ALL.len()], broken));
    let work = |done: usize, &(way, episode, index): &(Way, usize, u64)| {
        let begun = Instant::now();
        let run = pool::caught(|| {
            let mut row = trial::run(&script.episodes[episode], way, index)?;
            for _ in 1..ATTEMPTS {
                if row.reached > 0 {
                    break;
                }
                row = trial::run(&script.episodes[episode], way, index)?;
            }
            Ok(row)
        });
        let mut result = result.lock();
        match run {
            Ok(row) => {
                let sum = &mut result.0[way as usize];
                *sum = sum.plus(row);
            }
            Err(what) => result.1.push(Broken { way, episode, index, what }),
        }
        if begun.elapsed() > HANG {
            let what = format!("took {:?}", begun.elapsed());
            result.1.push(Broken { way, episode, index, what });
        }
        drop(result);
        progress(done as u64 + 1, jobs.len() as u64);
        true
    };
    way::quietly(|| pool::each(&jobs, settings.threads, work));
    let (rows, broken) = result.into_inner();
    Ok(Matrix {
        episodes: script.episodes.len(),
        requests: script.requests(),
        rows: Way::ALL.into_iter().zip(rows).collect(),
        broken,
        took: begun.elapsed(),
    })
}
