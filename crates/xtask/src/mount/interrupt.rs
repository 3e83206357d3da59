//! Ctrl-C ends the mounts too.
//!
//! The server of a mount has a session of its own, so Ctrl-C does not reach it. Who mounts something says here how that
//! is undone. A thread waits for a signal, undoes what is there, the last first, and ends this program. A second signal
//! ends it at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::Result;

/// How often the thread looks for a signal.
const PAUSE: Duration = Duration::from_millis(50);

/// What undoes a mount. It may be called when the mount is not there yet, or no longer.
type Way = Box<dyn Fn() + Send>;

/// What is to be undone. Held while something is mounted: so nothing comes behind what the thread undoes.
static UNDO: Mutex<Vec<(usize, Way)>> = Mutex::new(Vec::new());

/// Something that a signal undoes until this is dropped.
#[derive(Debug)]
pub(super) struct Undo(usize);

impl Undo {
    /// From now on a signal undoes it in this way.
    pub(super) fn by(way: impl Fn() + Send + 'static) -> Undo {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        UNDO.lock().unwrap_or_else(PoisonError::into_inner).push((number, Box::new(way)));
        Undo(number)
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        UNDO.lock().unwrap_or_else(PoisonError::into_inner).retain(|(number, _)| *number != self.0);
    }
}

/// Mounts something. A signal that comes meanwhile is heard when it is done.
pub(super) fn undisturbed<T>(mount: impl FnOnce() -> T) -> T {
    let _undo = UNDO.lock().unwrap_or_else(PoisonError::into_inner);
    mount()
}

/// Hears SIGINT and SIGTERM from now on.
///
/// # Errors
///
/// If the handlers cannot be installed.
pub(super) fn hear() -> Result<()> {
    let heard = Arc::new(AtomicUsize::new(0));
    let again = Arc::new(false.into());
    for signal in [SIGINT, SIGTERM] {
        // In this order, so that the first signal does not find its own mark.
        flag::register_conditional_shutdown(signal, status(signal), Arc::clone(&again))?;
        flag::register(signal, Arc::clone(&again))?;
        flag::register_usize(signal, Arc::clone(&heard), signal as usize)?;
    }
    thread::spawn(move || {
        let signal = loop {
            match heard.load(Ordering::Relaxed) {
                0 => thread::sleep(PAUSE),
                signal => break signal,
            }
        };
        let undo = UNDO.lock().unwrap_or_else(PoisonError::into_inner);
        eprintln!("interrupted: {} mounts are ended", undo.len());
        undo.iter().rev().for_each(|(_, way)| way());
        // With the lock, so that nobody mounts anything now.
        std::process::exit(status(signal as i32));
    });
    Ok(())
}

/// The exit status of a program that a signal ended, as shells show it.
fn status(signal: i32) -> i32 {
    128 + signal
}
