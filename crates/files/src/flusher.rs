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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use f2fs_volume::VolumeOptions;

    use super::*;
    use crate::Options;
    use crate::samples::{formatted, wait_for};

    const HOUR: Duration = Duration::from_secs(3600);
    /// Pages of the cache.
    const CACHE: u64 = 1024;

    fn file_system() -> FileSystem {
        let device = formatted(32 * 1024);
        let options = Options::new().page_cache(CACHE * 4096).volume(VolumeOptions::new().dirty_nodes(64));
        FileSystem::open(device, options).unwrap()
    }

    #[test]
    fn its_time_is_what_it_was_set_to() {
        assert_eq!(FlusherOptions::default().interval(HOUR).interval, HOUR);
    }

    /// All that is dirty is written when its time has come.
    #[test]
    fn pages_are_written_back_after_a_while() {
        let fs = file_system();
        let flusher = fs.start_flusher(FlusherOptions::default().interval(Duration::ZERO)).unwrap();
        let file = fs.create_file("/f", 0o644).unwrap();
        for round in 1..=3 {
            file.write_at(&[round; 3 * 4096], 0).unwrap();
            wait_for("they stay dirty", || fs.stats().dirty_pages == 0);
        }
        drop(flusher);
        file.write_at(&[4; 4096], 0).unwrap();
        assert_eq!(fs.stats().dirty_pages, 1, "nobody writes it back");
    }

    /// When more than an eighth of the cache is dirty, so much is written that half of that is left.
    #[test]
    fn many_dirty_pages_are_not_left_until_their_time() {
        let fs = file_system();
        let flusher = fs.start_flusher(FlusherOptions::default().interval(HOUR)).unwrap();
        let files: Vec<_> =
            (0..CACHE / 8 + 32).map(|number| fs.create_file(format!("/{number}"), 0o644).unwrap()).collect();
        files.iter().for_each(|file| assert_eq!(file.write_at(&[1; 4096], 8192).unwrap(), 4096));
        wait_for("they stay dirty", || fs.stats().dirty_pages <= CACHE / 8);
        assert_ne!(fs.stats().dirty_pages, 0, "some are left for later");
        drop(flusher);
    }

    /// When it is dropped, its thread has gone, holds nothing, and operations write the checkpoints that are due.
    #[test]
    fn a_flusher_that_is_dropped_leaves_all_to_the_operations() {
        let fs = file_system();
        let held = Arc::strong_count(&fs.core);
        for _ in 0..20 {
            drop(fs.start_flusher(FlusherOptions::default().interval(HOUR)).unwrap());
            assert_eq!(Arc::strong_count(&fs.core), held);
        }
        assert!(!fs.core.pages.alarm.is_heard());
        let before = fs.write_stat().checkpoints;
        (0..2000).for_each(|number| drop(fs.create_file(format!("/{number}"), 0o644).unwrap()));
        assert_ne!(fs.write_stat().checkpoints, before);
    }

    /// With one, operations go on while a checkpoint is due, and it writes that.
    #[test]
    fn a_flusher_writes_the_checkpoints_that_are_due() {
        let fs = file_system();
        let flusher = fs.start_flusher(FlusherOptions::default().interval(HOUR)).unwrap();
        assert!(fs.core.pages.alarm.is_heard());
        let before = fs.write_stat().checkpoints;
        (0..2000).for_each(|number| drop(fs.create_file(format!("/{number}"), 0o644).unwrap()));
        wait_for("none is written", || fs.write_stat().checkpoints != before);
        drop(flusher);
    }
}
