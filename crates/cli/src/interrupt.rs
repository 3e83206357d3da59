//! SIGINT, SIGTERM and SIGHUP while an image is changed.
//!
//! Work that changes a volume runs on a thread of its own, and the first thread waits for its end or for a signal. When
//! one comes, it brings the volume into a state that it can name: a volume is closed, which waits for the operations on
//! their way and refuses all others. A second signal ends the command at once; what a volume is left as then is its
//! last checkpoint.
//!
//! A signal that was ignored when the command began stays ignored: shells do so for commands in the background, and so
//! does `nohup`.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, LazyLock};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use crate::error::CliError;

/// How long the work has to come to its end after a signal.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a signal is looked for. Work that ends is noticed at once.
const TICK: Duration = Duration::from_millis(20);

/// The signal that came, 0: none. The handlers are there from the first use on.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(|| {
    let signal = Arc::new(AtomicUsize::new(0));
    let came = Arc::new(AtomicBool::new(false));
    let ignored = ignored();
    for number in [SIGINT, SIGTERM, SIGHUP] {
        if ignored & 1 << (number - 1) != 0 {
            continue;
        }
        // In this order: a signal that comes before all three are there is not lost. The first one finds `came` unset,
        // the second one ends the process.
        let _ = flag::register_usize(number, Arc::clone(&signal), number as usize);
        let _ = flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&came));
        let _ = flag::register(number, Arc::clone(&came));
    }
    signal
});

/// Something is brought to its end because of a signal.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// Whether a signal ended the work: an error that comes now is a result of that.
pub(crate) fn is_stopping() -> bool {
    STOPPING.load(Ordering::Relaxed)
}

/// The signals that are ignored, a bit each.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// From now on a first signal ends nothing by itself: the next [`guarded`] or [`until_stopped`] hears of it.
pub(crate) fn listen() {
    LazyLock::force(&SIGNAL);
}

/// From now on a write beyond the largest file that is allowed (`ulimit -f`) fails with an error, in place of ending the
/// process. Programs that are started get the signal as it was.
pub(crate) fn survive_large_files() {
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Does `work`. If a signal comes before its end, `stop` is called, and returns the state in which things are left;
/// that is the error. Work that has not ended a second later is left alone, and the process ends.
pub(crate) fn guarded<T: Send>(work: impl FnOnce() -> T + Send, stop: impl FnOnce() -> String) -> Result<T, CliError> {
    thread::scope(|scope| {
        let mut worker = Worker::start(scope, work)?;
        let signal = match worker.wait() {
            Ok(done) => return Ok(done),
            Err(signal) => signal,
        };
        let error = CliError::interrupted(signal, stop());
        if worker.done.recv_timeout(PATIENCE).is_ok() {
            return Err(error);
        }
        let mut stderr = io::stderr();
        if stderr.is_terminal() {
            // A progress bar stands in this line.
            let _ = stderr.write_all(b"\r\x1b[K");
        }
        std::process::exit(error.report().into());
    })
}

/// Does `work`. If a signal comes before its end, `ask` tells the work to stop, and its end is waited for. If the
/// result is an interruption, `left` gives the error's text: the state in which things are left.
pub(crate) fn until_stopped<T: Send>(
    work: impl FnOnce() -> T + Send,
    ask: impl FnOnce(),
    left: impl FnOnce(&T) -> Option<String>,
) -> Result<T, CliError> {
    thread::scope(|scope| {
        let mut worker = Worker::start(scope, work)?;
        let signal = match worker.wait() {
            Ok(done) => return Ok(done),
            Err(signal) => signal,
        };
        ask();
        let Ok(done) = worker.done.recv() else { worker.panicked() };
        left(&done).map_or(Ok(done), |left| Err(CliError::interrupted(signal, left)))
    })
}

/// The thread of the work.
struct Worker<'scope, T> {
    thread: Option<ScopedJoinHandle<'scope, ()>>,
    done: Receiver<T>,
}

impl<'scope, T: Send + 'scope> Worker<'scope, T> {
    fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        work: impl FnOnce() -> T + Send + 'scope,
    ) -> Result<Self, CliError> {
        listen();
        let (sender, done) = channel();
        let thread = Builder::new().spawn_scoped(scope, move || {
            let _ = sender.send(work());
        });
        let thread = thread.map_err(|error| CliError::new(format_args!("cannot start a thread: {error}")))?;
        Ok(Worker { thread: Some(thread), done })
    }

    /// The result of the work, or the signal that came before.
    fn wait(&mut self) -> Result<T, u8> {
        loop {
            match self.done.recv_timeout(TICK) {
                Ok(done) => return Ok(done),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.panicked(),
            }
            let signal = SIGNAL.load(Ordering::Relaxed);
            if signal != 0 {
                STOPPING.store(true, Ordering::Relaxed);
                return Err(signal as u8);
            }
        }
    }

    /// The work ended without a result: its panic goes on here.
    fn panicked(&mut self) -> ! {
        if let Some(Err(panic)) = self.thread.take().map(ScopedJoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
        std::process::exit(1);
    }
}
