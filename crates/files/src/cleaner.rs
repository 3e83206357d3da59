//! Cleaning: when segments run short, on request, and in the background.
//!
//! ```text
//!                        +--------------------+   free sections at the low mark, or told so   +--------------------+
//!   start_cleaner -----> | idle: one section  | --------------------------------------------> | urgent: one after  |
//!                        | every interval, if |                                               | the other, then a  |
//!                        | nobody wrote       | <-------------------------------------------- | checkpoint         |
//!                        +--------------------+     enough free, or nothing more to gain      +--------------------+
//! ```
//!
//! # Locking
//!
//! A step is an operation like any other: it enters the gate and takes node pages one at a time. The thread's own mutex
//! protects its orders alone and is not held while it works.

use std::io;
use std::time::Duration;

use f2fs_sync::{Arc, Condvar, Mutex, thread};
use f2fs_volume::{CleanStep, Need, Reason, VictimPolicy, WriteStat};

use crate::core::Core;
use crate::{FileSystem, FsError};

/// How eagerly the background cleaner works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pace {
    /// In idle times, the sections with the best benefit for their cost.
    Idle,
    /// At once, the emptiest sections.
    Urgent,
}

impl Pace {
    fn policy(self) -> VictimPolicy {
        match self {
            Pace::Idle => VictimPolicy::CostBenefit,
            Pace::Urgent => VictimPolicy::Greedy,
        }
    }
}

/// How the background cleaner works.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CleanerOptions {
    /// Time between two looks. If nothing was written since the last one, a section is cleaned.
    pub interval: Duration,
    /// The same when sections are few.
    pub urgent_interval: Duration,
    /// Free segments at which cleaning becomes urgent; 0: where the logs begin to write into holes.
    pub low_mark: u32,
    /// The victims of urgent cleaning; `None`: the emptiest.
    pub policy: Option<VictimPolicy>,
}

impl Default for CleanerOptions {
    fn default() -> Self {
        // The kernel's: 30 s (DEF_GC_THREAD_MIN_SLEEP_TIME) and 500 ms (DEF_GC_THREAD_URGENT_SLEEP_TIME).
        CleanerOptions {
            interval: Duration::from_secs(30),
            urgent_interval: Duration::from_millis(500),
            low_mark: 0,
            policy: None,
        }
    }
}

impl CleanerOptions {
    /// Sets the time between two looks.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets the time between two looks when sections are few.
    #[must_use]
    pub fn urgent_interval(mut self, interval: Duration) -> Self {
        self.urgent_interval = interval;
        self
    }

    /// Sets the free segments at which cleaning becomes urgent.
    #[must_use]
    pub fn low_mark(mut self, segments: u32) -> Self {
        self.low_mark = segments;
        self
    }

    /// Sets how victims of urgent cleaning are chosen.
    #[must_use]
    pub fn policy(mut self, policy: VictimPolicy) -> Self {
        self.policy = Some(policy);
        self
    }
}

impl FileSystem {
    /// Empties one section while operations run: for embedders who drive cleaning themselves. The section is free after
    /// the next checkpoint. `None`: there is nothing worth it, or so little room that only [`clean`](Self::clean)
    /// helps.
    ///
    /// # Errors
    /// [`FsError::Volume`].
    pub fn clean_step(&self, pace: Pace) -> Result<Option<CleanStep>, FsError> {
        Ok(self.core.volume.cleaning().step(pace.policy())?)
    }

    /// The same, with victims chosen by `policy`.
    ///
    /// # Errors
    /// [`FsError::Volume`].
    pub fn clean_step_by(&self, policy: VictimPolicy) -> Result<Option<CleanStep>, FsError> {
        Ok(self.core.volume.cleaning().step(policy)?)
    }

    /// Counts of blocks written since the file system was opened, by reason.
    #[must_use]
    pub fn write_stat(&self) -> WriteStat {
        self.core.volume.stat().written
    }

    /// Starts a thread that cleans in the background, until the [`Cleaner`] is dropped.
    ///
    /// # Errors
    /// Those of the system, if it gives no thread.
    pub fn start_cleaner(&self, options: CleanerOptions) -> io::Result<Cleaner> {
        let shared = Arc::new(Shared { orders: Mutex::new(Orders::default()), wake: Condvar::new() });
        let thread = {
            let (shared, core) = (Arc::clone(&shared), Arc::clone(&self.core));
            thread::Builder::new().name("f2fs-cleaner".into()).spawn(move || run(&core, &shared, options))?
        };
        Ok(Cleaner { shared, thread: Some(thread) })
    }
}

#[derive(Debug, Default)]
struct Orders {
    stop: bool,
    urgent: bool,
    steps: u64,
    failed: Option<String>,
}

#[derive(Debug)]
struct Shared {
    orders: Mutex<Orders>,
    wake: Condvar,
}

/// A thread that cleans in the background. Dropping it stops the thread and waits for it.
#[derive(Debug)]
#[must_use = "dropping it stops the cleaning"]
pub struct Cleaner {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Cleaner {
    /// Cleans now, whatever the state of the volume, until nothing more is gained.
    pub fn urge(&self) {
        self.shared.orders.lock().urgent = true;
        self.shared.wake.notify_one();
    }

    /// Sections that it has emptied.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.shared.orders.lock().steps
    }

    /// The error or panic that ended the thread, if one did.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        self.shared.orders.lock().failed.clone()
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        self.shared.orders.lock().stop = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by the thread.
            let _ = thread.join();
        }
    }
}

/// Notes a panic of the thread.
struct Noting<'a>(&'a Shared);

impl Drop for Noting<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.orders.lock().failed = Some("the cleaner panicked".to_owned());
        }
    }
}

fn run(core: &Core, shared: &Shared, options: CleanerOptions) {
    let _noting = Noting(shared);
    let mut seen = core.volume.stat().data_blocks_written;
    loop {
        let short = is_short(core, options.low_mark);
        let urgent = {
            let mut orders = shared.orders.lock();
            if !orders.stop && !orders.urgent {
                let wait = if short { options.urgent_interval } else { options.interval };
                let _ = shared.wake.wait_for(&mut orders, wait);
            }
            if orders.stop {
                return;
            }
            core::mem::take(&mut orders.urgent)
        };
        let written = core.volume.stat().data_blocks_written;
        let idle = written == seen;
        let result = if urgent || is_short(core, options.low_mark) {
            clean_urgently(core, shared, options.policy.unwrap_or(VictimPolicy::Greedy))
        } else if idle {
            core.clean_step(VictimPolicy::CostBenefit).map(|step| note(shared, step))
        } else {
            Ok(())
        };
        seen = core.volume.stat().data_blocks_written;
        if let Err(error) = result {
            // Operations meet the same error and report it; there is nobody here to report to.
            shared.orders.lock().failed = Some(error.to_string());
            return;
        }
    }
}

fn is_short(core: &Core, low_mark: u32) -> bool {
    if low_mark == 0 { core.volume.writes_into_holes() } else { core.volume.stat().free_segments <= low_mark }
}

fn note(shared: &Shared, step: Option<CleanStep>) {
    shared.orders.lock().steps += u64::from(step.is_some_and(|step| step.segments > 0));
}

/// A batch of sections, and a checkpoint that makes them free.
fn clean_urgently(core: &Core, shared: &Shared, policy: VictimPolicy) -> Result<(), FsError> {
    let mut emptied = 0;
    for _ in 0..crate::core::CLEANED_AT_ONCE {
        if shared.orders.lock().stop {
            break;
        }
        let step = core.clean_step(policy)?;
        note(shared, step);
        match step {
            Some(step) if step.segments > 0 => emptied += 1,
            _ => break,
        }
    }
    if emptied > 0 || matches!(core.volume.balance().need(), Need::Checkpoint | Need::Attendance) {
        core.checkpoint(Reason::Sync)?;
    }
    Ok(())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use super::*;
    use crate::Options;
    use crate::samples::{formatted, wait_for};

    fn empty() -> FileSystem {
        let device = formatted(32 * 1024);
        FileSystem::open(device, Options::new()).unwrap()
    }

    /// A few segments of which one block in eight is in use.
    fn make_holes(fs: &FileSystem, name: &str) {
        let (kept, gone) = (fs.create_file(name, 0o644).unwrap(), fs.create_file("/gone", 0o644).unwrap());
        for round in 0..300 {
            kept.write_at(&[1; 4096], round * 4096).unwrap();
            gone.write_at(&[2; 7 * 4096], round * 7 * 4096).unwrap();
        }
        drop(gone);
        fs.remove_file("/gone").unwrap();
        fs.checkpoint().unwrap();
    }

    fn shared() -> Shared {
        Shared { orders: Mutex::new(Orders::default()), wake: Condvar::new() }
    }

    #[test]
    fn an_option_is_what_it_was_set_to() {
        let (long, short) = (Duration::from_secs(7), Duration::from_secs(5));
        let all =
            CleanerOptions::default().interval(long).urgent_interval(short).low_mark(9).policy(VictimPolicy::Greedy);
        assert_eq!((all.interval, all.urgent_interval, all.low_mark), (long, short, 9));
        assert_eq!(all.policy, Some(VictimPolicy::Greedy));
    }

    #[test]
    fn sections_that_were_emptied_are_counted() {
        let shared = shared();
        let mut step = CleanStep::default();
        note(&shared, None);
        note(&shared, Some(step));
        assert_eq!(shared.orders.lock().steps, 0);
        step.segments = 2;
        (0..3).for_each(|_| note(&shared, Some(step)));
        assert_eq!(shared.orders.lock().steps, 3);
    }

    #[test]
    fn segments_are_short_from_the_mark_on() {
        let fs = empty();
        let free = fs.statfs().free_segments;
        let short = |mark| is_short(&fs.core, mark);
        assert_eq!([free - 1, free, free + 1].map(short), [false, true, true]);
        assert!(!short(0), "the logs write into no holes yet");
    }

    /// A batch is followed by the checkpoint that makes its sections free; where nothing is gained none is written.
    #[test]
    fn urgent_cleaning_ends_with_a_checkpoint_if_it_gained_something() {
        let fs = empty();
        let nothing = shared();
        let before = fs.write_stat();
        clean_urgently(&fs.core, &nothing, VictimPolicy::Greedy).unwrap();
        assert_eq!((fs.write_stat().checkpoints, nothing.orders.lock().steps), (before.checkpoints, 0));

        make_holes(&fs, "/kept");
        let (before, free) = (fs.write_stat(), fs.statfs().free_segments);
        let stopped = shared();
        stopped.orders.lock().stop = true;
        clean_urgently(&fs.core, &stopped, VictimPolicy::Greedy).unwrap();
        assert_eq!(fs.write_stat().minus(&before).victims, 0, "it was told to stop");

        let some = shared();
        clean_urgently(&fs.core, &some, VictimPolicy::Greedy).unwrap();
        let written = fs.write_stat().minus(&before);
        assert!(written.victims > 1, "{written:?}");
        assert_eq!((written.checkpoints, some.orders.lock().steps), (1, written.victims));
        assert!(fs.statfs().free_segments > free);
    }

    /// Nobody wrote since the last look: also if somebody did in between.
    #[test]
    fn a_volume_that_is_idle_again_is_cleaned_again() {
        let fs = empty();
        make_holes(&fs, "/kept");
        let cleaner = fs.start_cleaner(CleanerOptions::default().interval(Duration::from_millis(1))).unwrap();
        wait_for("nobody has written since it began, and it does nothing", || cleaner.steps() > 0);
        let mut steps = cleaner.steps();
        for name in ["/one", "/two", "/three"] {
            make_holes(&fs, name);
            wait_for("it does nothing", || cleaner.steps() > steps);
            assert_eq!(cleaner.failed(), None);
            steps = cleaner.steps();
        }
    }

    /// It is told so, and does not wait for its time; when it is dropped, its thread has gone, and holds nothing.
    #[test]
    fn a_cleaner_works_when_it_is_urged_and_goes_when_it_is_dropped() {
        let fs = empty();
        make_holes(&fs, "/kept");
        let held = Arc::strong_count(&fs.core);
        let hour = Duration::from_secs(3600);
        let options = CleanerOptions::default().interval(hour).urgent_interval(hour);
        let cleaner = fs.start_cleaner(options).unwrap();
        make_holes(&fs, "/more");
        assert_eq!(cleaner.steps(), 0, "its time has not come");
        let before = fs.write_stat().checkpoints;
        cleaner.urge();
        wait_for("it does nothing", || cleaner.steps() > 0);
        wait_for("what it gained is not free", || fs.write_stat().checkpoints > before);
        drop(cleaner);
        assert_eq!(Arc::strong_count(&fs.core), held);
        for _ in 0..20 {
            drop(fs.start_cleaner(options).unwrap());
            assert_eq!(Arc::strong_count(&fs.core), held);
        }
    }

    /// There is nobody to report to: who asks is told.
    #[test]
    fn an_error_ends_a_cleaner() {
        let fs = empty();
        make_holes(&fs, "/kept");
        let hour = Duration::from_secs(3600);
        let cleaner = fs.start_cleaner(CleanerOptions::default().interval(hour).urgent_interval(hour)).unwrap();
        assert_eq!(cleaner.failed(), None);
        fs.close().unwrap();
        cleaner.urge();
        wait_for("it goes on", || cleaner.failed().is_some());
        wait_for("its thread goes on", || cleaner.thread.as_ref().is_some_and(thread::JoinHandle::is_finished));
    }
}
