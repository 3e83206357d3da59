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
