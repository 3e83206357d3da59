//! A thread that writes dirty pages back, and the checkpoints that are due, if an embedder asks for one.
//!
//! Without it pages are written back by operations that pass, once the oldest is five seconds old or many are dirty; a
//! program that stops writing leaves its last pages dirty until a sync, a checkpoint or the close. A checkpoint that is
//! due (many nodes are dirty, few sections are free, half of a journal's lane is used) is written by the next operation,
//! which waits for it; with a flusher operations go on meanwhile, as long as there is room.
//!
//! # Locking
//!
//! None of its own: it waits for the [`Alarm`](crate::page_cache::Alarm) of the page cache with nothing held.

use std::io;
use std::time::Duration;

use f2fs_sync::atomic::{AtomicBool, Ordering};
use f2fs_sync::{Arc, thread};

use crate::core::Core;
use crate::core::write_back::WriteBack;
use crate::filesystem::FileSystem;

/// The shortest time between two looks, so that an interval of nothing keeps no processor busy.
const SHORTEST: Duration = Duration::from_millis(1);

/// How the thread works.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FlusherOptions {
    /// Time between two looks, 1 ms at least: a page stays dirty about so long at most. Once an eighth of the cache is
    /// dirty, the thread does not wait for it.
    pub interval: Duration,
}

impl Default for FlusherOptions {
    fn default() -> Self {
        // The kernel's dirty_writeback_centisecs.
        FlusherOptions { interval: Duration::from_secs(5) }
    }
}

impl FlusherOptions {
    /// Sets the time between two looks.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }
}

impl FileSystem {
    /// Starts a thread that writes dirty pages back, and the checkpoints that are due, so that operations seldom wait for
    /// one, until the [`Flusher`] is dropped.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// use f2fs_files::{FileSystem, FlusherOptions, Options};
    ///
    /// let fs = FileSystem::open(device, Options::new().page_cache(16 << 20))?;
    /// let flusher = fs.start_flusher(FlusherOptions::default())?;
    /// fs.create_file("/f", 0o644)?.write_at(&[7; 10_000], 0)?;
    /// drop(flusher);
    /// fs.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the system, if it gives no thread.
    pub fn start_flusher(&self, options: FlusherOptions) -> io::Result<Flusher> {
        let (stop, core) = (Arc::new(AtomicBool::new(false)), Arc::clone(&self.core));
        let attending = Attending::new(Arc::clone(&core));
        let thread = {
            let stop = Arc::clone(&stop);
            thread::Builder::new().name("f2fs-flusher".into()).spawn(move || run(&attending.0, &stop, options))?
        };
        Ok(Flusher { core, stop, thread: Some(thread) })
    }
}

/// A thread that writes dirty pages back, and checkpoints. Dropping it stops the thread and waits for it.
#[derive(Debug)]
#[must_use = "dropping it stops the thread"]
pub struct Flusher {
    core: Arc<Core>,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.core.pages.alarm.ring();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by the thread.
            let _ = thread.join();
        }
    }
}

/// Alarms are heard, and operations leave checkpoints to the thread, as long as it lives.
struct Attending(Arc<Core>);

impl Attending {
    fn new(core: Arc<Core>) -> Attending {
        core.pages.alarm.listen();
        core.volume.balance().attend(true);
        Attending(core)
    }
}

impl Drop for Attending {
    fn drop(&mut self) {
        self.0.volume.balance().attend(false);
        self.0.pages.alarm.stop_listening();
    }
}

fn run(core: &Core, stop: &AtomicBool, options: FlusherOptions) {
    let cache = &core.pages;
    // None so far: a call that came when the last flusher had ended is heard as well.
    let mut heard = 0;
    while !stop.load(Ordering::Acquire) {
        let rung = cache.alarm.wait(&mut heard, options.interval.max(SHORTEST));
        if stop.load(Ordering::Acquire) {
            return;
        }
        // Operations meet the same error and report it, once there is no room to go on without a checkpoint.
        let _ = core.attend();
        let all = !rung || core.dirty_files.is_overdue(core.now());
        let pages = if all { u64::MAX } else { cache.surplus() };
        if pages != 0 {
            // Errors wait for the next sync through each handle of the files.
            let _ = WriteBack(core).write_back_some(pages);
        }
    }
}
