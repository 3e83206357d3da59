//! Runs a model: a closure that loom calls once for every schedule it can tell apart.
//!
//! ```text
//! #![cfg(loom)]
//!
//! // What `cargo xtask loom` reads: each mutant, and the model that must kill it.
//! // mutant: gate_enter_fence, killed by: a_closer_is_alone
//!
//! #[test]
//! fn a_closer_is_alone() {
//!     f2fs_sync::model::exhaustive("a_closer_is_alone", || {
//!         let gate = Arc::new(Gate::new());
//!         ...
//!     });
//! }
//! ```
//!
//! Two threads (the model's own and one that it spawns) are explored exhaustively; three with at most three
//! preemptions. Every schedule must end: no thread may wait for something other than a lock, a condition variable, a
//! join or a park. A model must not mix `park` with locks (loom may wake a thread from a lock by an `unpark`), and
//! drops read guards on the thread that took them.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Runs the model under every schedule.
///
/// # Panics
///
/// If it fails under one of them, or deadlocks.
pub fn exhaustive(name: &str, model: impl Fn() + Send + Sync + 'static) {
    let bound = (std::env::var_os(QUICK).is_some()).then_some(QUICK_PREEMPTIONS);
    run(name, bound, model);
}

/// Set in the environment, it bounds the [`exhaustive`] models too.
const QUICK: &str = "F2FS_LOOM_QUICK";
/// To so many preemptions. Of the models with a bound, three ask for more.
const QUICK_PREEMPTIONS: usize = 4;

/// Runs the model under every schedule that takes the processor from a thread that could go on at most `preemptions`
/// times; `LOOM_MAX_PREEMPTIONS` may ask for more.
///
/// # Panics
///
/// If it fails under one of them, or deadlocks.
pub fn bounded(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    run(name, Some(preemptions), model);
}

std::thread_local! {
    /// Whether loom explores what runs now. The threads of a model share the one of the system that runs it.
    static EXPLORES: Cell<bool> = const { Cell::new(true) };
}

/// Whether more than one thread may run: neither the setup of a [`large`] model runs, nor the code behind [`judge`].
pub(crate) fn explores() -> bool {
    EXPLORES.get()
}

/// Bytes of stack of a thread of a [`large`] model.
const STACK: usize = 1 << 20;
/// The size of a thread's stack in loom: so many machine words.
const WORD: usize = size_of::<usize>();

/// Runs a model of something that takes many steps to set up: `setup` once in each iteration, with nothing explored,
/// then `body` as [`bounded`] does. Both run on a thread with room for deep calls; `body` starts others with [`spawn`],
/// three at most.
///
/// # Panics
///
/// If it fails under one of the schedules, or deadlocks.
pub fn large<T: 'static>(
    name: &str,
    preemptions: usize,
    setup: impl Fn() -> T + Send + Sync + 'static,
    body: impl Fn(T) + Send + Sync + 'static,
) {
    let mut builder = builder(Some(preemptions));
    builder.max_branches = 1_000_000;
    builder.expect_explicit_explore = true;
    let both = Arc::new((setup, body));
    check(name, &builder, move || {
        let both = Arc::clone(&both);
        let all = spawn(move || {
            let (setup, body) = &*both;
            EXPLORES.set(false);
            let made = setup();
            EXPLORES.set(true);
            loom::explore();
            body(made);
        });
        if let Err(panic) = all.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Starts a thread of a [`large`] model.
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> loom::thread::JoinHandle<T> {
    let builder = loom::thread::Builder::new().stack_size(STACK / WORD);
    builder.spawn(body).expect("loom has room for another thread")
}

/// Explores no more schedules from here on. The code that follows judges the result of the threads, which have ended.
pub fn judge() {
    loom::stop_exploring();
    EXPLORES.set(false);
}

fn run(name: &str, preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = builder(preemptions);
    builder.max_branches = 10_000;
    check(name, &builder, model);
}

fn builder(preemptions: Option<usize>) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    // loom has read `LOOM_MAX_PREEMPTIONS`, which may ask for more than the model does, not for less.
    builder.preemption_bound =
        preemptions.map(|least| builder.preemption_bound.map_or(least, |asked| asked.max(least)));
    builder
}

fn check(name: &str, builder: &loom::model::Builder, model: impl Fn() + Send + Sync + 'static) {
    let bound = builder.preemption_bound.map_or("every schedule".to_owned(), |n| format!("{n} preemptions"));

    let report = Report { name, bound, iterations: Arc::new(AtomicU64::new(0)), start: Instant::now() };
    let iterations = Arc::clone(&report.iterations);
    builder.check(move || {
        iterations.fetch_add(1, Ordering::Relaxed);
        EXPLORES.set(true);
        model();
    });
}

/// Says how far the model came, whether it ends well or by a panic.
struct Report<'a> {
    name: &'a str,
    bound: String,
    iterations: Arc<AtomicU64>,
    start: Instant,
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        let (name, bound, seconds) = (self.name, &self.bound, self.start.elapsed().as_secs_f64());
        let iterations = self.iterations.load(Ordering::Relaxed);
        println!("model {name}: {iterations} iterations, {seconds:.2} s, {bound}");
    }
}
