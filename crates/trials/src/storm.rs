//! Threads on a device that is late, that completes in any order and fails by chance, until its power goes. What a
//! thread was told is so while it works, and what it was promised is there afterwards.
//!
//! ```text
//!   hands, hands, hands    each with files of its own and a part of a common one, beside a cleaner and a flusher
//!         | |  |
//!     file system          options by chance, with or without a journal
//!           |
//!   UnorderedDevice        requests end in any order
//!     FaultDevice          errors and torn writes by chance, or the end of it
//!    RecordingDevice  ---> what a power cut leaves: some of what was not flushed
//! ```
//!
//! The explorer ([`crate::explore`]) looks at all states of short workloads, on a device that does one thing at a time.
//! Here everything happens at once, nothing is enumerated, and a run is seldom the same again: the seed gives the
//! options and the operations, and the threads meet as they like.
//!
//! # Locking
//!
//! Threads share what was found wrong, behind a mutex that is a leaf. A file is known to one thread, but two that all write: there, each
//! thread knows what is its own, and all know its sizes and cuts (`together.rs`).

mod appended;
mod common;
mod contents;
mod hands;
mod promise;
mod together;
mod verdict;
mod world;

use f2fs_files::FsError;
use f2fs_sync::Mutex;
use f2fs_sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use self::hands::Hands;
use self::promise::Known;
use self::world::{End, World};
use crate::pool::{self, caught};
use crate::watch;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct StormPlan {
    /// The seed of the first volume. The others have those that follow.
    pub seed: u64,
    /// Number of volumes.
    pub volumes: u64,
    /// When to begin no more.
    pub until: Option<Instant>,
    /// Volumes at the same time; 0: one for each processor.
    pub threads: usize,
    /// fsck.f2fs looks at one in so many (0: at none).
    pub fsck: u64,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StormTally {
    /// Volumes.
    pub volumes: u64,
    /// Operations that succeeded, and those that did not.
    pub operations: [u64; 2],
    /// Of them: files that were made durable.
    pub syncs: u64,
    /// Requests that failed, were torn, or came to a dead device.
    pub faults: u64,
    /// Volumes that were closed, and not only cut off.
    pub closed: u64,
    /// Journals of which the device had failed, and with which no volume opens any more.
    pub journals_lost: u64,
}

impl StormTally {
    fn add(&mut self, other: StormTally) {
        self.volumes += other.volumes;
        (0..2).for_each(|at| self.operations[at] += other.operations[at]);
        self.syncs += other.syncs;
        self.faults += other.faults;
        self.closed += other.closed;
        self.journals_lost += other.journals_lost;
    }
}

/// Runs volumes until all are done, the time is over or `enough` of them broke a promise. Gives what was done, and for
/// each of those the seed, the options and what was wrong. `hangs` is told of a volume that does not end.
pub fn run(plan: StormPlan, enough: usize, hangs: &(impl Fn(&str) + Sync)) -> (StormTally, Vec<String>) {
    let seeds: Vec<u64> = (plan.seed..plan.seed.saturating_add(plan.volumes)).collect();
    let state = Mutex::new((StormTally::default(), Vec::new()));
    watch::during(&|look: watch::Look| hangs(&look.workload), || {
        pool::each(&seeds, plan.threads, |_, &seed| {
            if plan.until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
            watch::explores(&format!("--storm 1 --seed {seed}"));
            let outcome = watch::watched(&[], || caught(|| volume(seed, plan.fsck != 0 && seed % plan.fsck == 0)));
            let mut state = state.lock();
            match outcome {
                Ok(tally) => state.0.add(tally),
                Err(wrong) => state.1.push(format!("--storm 1 --seed {seed}: {wrong}")),
            }
            state.1.len() < enough
        });
    });
    state.into_inner()
}

/// What the threads of a volume share.
struct Storm {
    world: World,
    wrong: Mutex<Vec<String>>,
    /// The last content that anybody wrote.
    stamp: AtomicU64,
    done: [AtomicU64; 2],
    syncs: AtomicU64,
}

impl Storm {
    fn wrong(&self, what: String) {
        self.wrong.lock().push(what);
    }

    /// Makes a file durable.
    fn sync(&self, file: &mut Known) -> Result<(), FsError> {
        let synced = file.sync()?;
        self.syncs.fetch_add(synced.into(), Ordering::Relaxed);
        Ok(())
    }
}

/// One volume, from its making to the last look.
fn volume(seed: u64, fsck: bool) -> Result<StormTally, String> {
    let storm = Storm {
        world: World::new(seed)?,
        wrong: Mutex::default(),
        stamp: AtomicU64::new(0),
        done: Default::default(),
        syncs: AtomicU64::new(0),
    };
    let world = &storm.world;
    let mut files = Vec::new();
    std::thread::scope(|scope| {
        let _background = world.background();
        let work = |number| {
            let storm = &storm;
            scope.spawn(move || caught(|| Ok(Hands::new(storm, seed, number).work())))
        };
        let threads: Vec<_> = (0..world.threads).map(work).collect();
        for thread in threads {
            match thread.join() {
                Ok(Ok(known)) => files.extend(known),
                Ok(Err(panic)) => storm.wrong(panic),
                Err(_) => storm.wrong("a thread died".to_owned()),
            }
        }
    });
    files.iter_mut().for_each(Known::take_in_cuts);
    let closed = world.end != End::Cut && world.close(&mut files);
    let done = storm.done.each_ref().map(|count| count.load(Ordering::Relaxed));
    let mut wrong = std::mem::take(&mut *storm.wrong.lock());
    files.iter_mut().for_each(|file| file.handle = None);
    let left = world.left();
    let lost = verdict::judge(world, left, &files, closed, fsck, &mut wrong);
    if !wrong.is_empty() {
        // What follows from the first is of less use.
        wrong.truncate(12);
        return Err(format!("{}, closed: {closed}\n  {}", world.describe(), wrong.join("\n  ")));
    }
    Ok(StormTally {
        volumes: 1,
        operations: done,
        syncs: storm.syncs.load(Ordering::Relaxed),
        faults: world.faults(),
        closed: closed.into(),
        journals_lost: lost.into(),
    })
}
