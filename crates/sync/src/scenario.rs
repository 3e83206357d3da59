//! Runs a scenario: a closure with many threads, under many schedules that shuttle draws at random.
//!
//! ```text
//! #![cfg(shuttle)]
//!
//! // mutant: withdraw_wakes_next, killed by: ten_threads_on_one_block
//!
//! #[test]
//! fn ten_threads_on_one_block() {
//!     f2fs_sync::scenario::random("ten_threads_on_one_block", 300, || { ... });
//! }
//! ```
//!
//! Unlike a loom model, a scenario that passes is no proof: it is as good as the number of its schedules, which
//! `F2FS_SHUTTLE_FACTOR` multiplies. Every access is sequentially consistent, time does not pass, and a schedule in
//! which nobody can go on is reported as a deadlock. A schedule that fails is printed, and can be run again with
//! `shuttle::replay`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner};

/// Switches between threads in one schedule before it counts as endless.
const MOST_STEPS: usize = 1_000_000;
/// Bytes of stack for each thread.
const STACK: usize = 512 << 10;

/// Runs the scenario under so many schedules in which each next thread is drawn at random.
///
/// # Panics
///
/// If it fails under one of them, or deadlocks.
pub fn random(name: &str, schedules: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let schedules = schedules * factor();
    run(name, "random", RandomScheduler::new(schedules), scenario);
}

/// Runs the scenario under so many schedules in which threads have random priorities that change at `depth` random
/// points: one thread may run far ahead of the others or stay far behind, which random choice at each step makes
/// unlikely.
///
/// # Panics
///
/// If it fails under one of them, or deadlocks.
pub fn priorities(name: &str, schedules: usize, depth: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let schedules = schedules * factor();
    run(name, &format!("priorities, {depth} changes"), PctScheduler::new(depth, schedules), scenario);
}

fn factor() -> usize {
    std::env::var("F2FS_SHUTTLE_FACTOR").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1)
}

fn run(name: &str, kind: &str, scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(MOST_STEPS);
    config.stack_size = STACK;
    // shuttle warns that it knows no weak memory: the documentation above says so.
    config.silence_warnings = true;
    let report = Report { name, kind, iterations: Arc::new(AtomicU64::new(0)), start: Instant::now() };
    let iterations = Arc::clone(&report.iterations);
    Runner::new(scheduler, config).run(move || {
        iterations.fetch_add(1, Ordering::Relaxed);
        scenario();
    });
}

/// Says how far the scenario came, whether it ends well or by a panic.
struct Report<'a> {
    name: &'a str,
    kind: &'a str,
    iterations: Arc<AtomicU64>,
    start: Instant,
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        let Report { name, kind, .. } = self;
        let (iterations, seconds) = (self.iterations.load(Ordering::Relaxed), self.start.elapsed().as_secs_f64());
        println!("model {name}: {iterations} iterations, {seconds:.2} s, {kind}");
    }
}
