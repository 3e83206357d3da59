//! Checkpoints by age: what nobody syncs is durable after a while, too.
//!
//! A thread of its own wakes every so often, and writes a checkpoint if the volume has changed. It ends with the mount,
//! and with the first error that stops the volume: every later change is refused then, and closing the volume says so.
//! It also gives memory back that checkpoints have [released](crate::released): of those that operations wrote as well,
//! and if it is to write none itself.
//!
//! # Locking
//!
//! None. A flag says that the mount has ended; the thread is unparked after it is set.

use std::io;
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::{Duration, Instant};

use f2fs_files::FileSystem;
use f2fs_sync::Arc;
use f2fs_sync::atomic::{AtomicBool, Ordering};

use crate::released::Released;

/// At most so long after the last time it is looked whether memory can go back.
const LOOK: Duration = Duration::from_secs(60);

/// Checkpoints that nobody writes yet.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    fs: FileSystem,
    every: Option<Duration>,
    look: Duration,
}

/// The thread that writes them. It ends when this is dropped, which waits for a checkpoint that is being written.
#[derive(Debug)]
pub(crate) struct Writing {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The counts that differ between a changed volume and an unchanged one, beside nodes that are not written yet.
#[derive(Debug, PartialEq, Eq)]
struct State {
    blocks: u64,
    nodes: u64,
    written: u64,
}

impl State {
    fn of(fs: &FileSystem) -> State {
        let stat = fs.statfs();
        State { blocks: stat.valid_blocks, nodes: stat.valid_nodes, written: stat.written.written_blocks() }
    }
}

impl Checkpoints {
    pub(crate) fn new(fs: FileSystem, every: Option<Duration>) -> Checkpoints {
        Checkpoints { fs, every, look: LOOK }
    }

    pub(crate) fn start(self) -> io::Result<Writing> {
        let ended = Arc::new(AtomicBool::new(false));
        let end = ended.clone();
        let thread = Builder::new().name("f2fs-checkpoints".into()).spawn(move || {
            let Checkpoints { fs, every, look } = self;
            let (mut last, mut begun) = (State::of(&fs), Instant::now());
            let mut released = Released::default();
            let left = |begun: Instant| every.map(|every| every.saturating_sub(begun.elapsed()));
            while waited(left(begun).map_or(look, |left| left.min(look)), &end) && fs.volume().stopped().is_none() {
                if left(begun) == Some(Duration::ZERO) {
                    if fs.statfs().dirty_nodes != 0 || State::of(&fs) != last {
                        // An error that does not stop the volume, like one of the room that is left, may be gone the
                        // next time.
                        let _ = fs.checkpoint();
                        last = State::of(&fs);
                    }
                    begun = Instant::now();
                }
                if released.is_due(fs.write_stat().node_blocks) {
                    fs.shrink_caches();
                }
            }
        })?;
        Ok(Writing { ended, thread: Some(thread) })
    }
}

/// Waits so long: whether the mount goes on.
fn waited(every: Duration, ended: &AtomicBool) -> bool {
    let begun = Instant::now();
    loop {
        if ended.load(Ordering::Acquire) {
            return false;
        }
        // Parking may end early without a reason.
        match every.checked_sub(begun.elapsed()) {
            Some(left) if !left.is_zero() => park_timeout(left),
            _ => return true,
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic has stopped the volume.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use f2fs_files::Options;

    use super::*;

    #[test]
    fn what_changed_is_written_once() {
        let device = Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
        f2fs_volume::format::format(&*device, &Default::default()).unwrap();
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let version = || fs.volume().last_checkpoint().version;
        let writing = Checkpoints::new(fs.clone(), Some(Duration::from_millis(20))).start().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let before = version();
        fs.create_file("/f", 0o644).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while version() == before {
            assert!(Instant::now() < end, "no checkpoint is written");
            std::thread::sleep(Duration::from_millis(5));
        }
        // The file may have been made in the middle of the first one.
        std::thread::sleep(Duration::from_millis(200));
        let after = version();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(version(), after, "an unchanged volume is written to");
        // It ends at once, however long the next one would take.
        drop(writing);
        let start = Instant::now();
        drop(Checkpoints::new(fs.clone(), Some(Duration::from_secs(3600))).start().unwrap());
        assert!(start.elapsed() < Duration::from_secs(60));
        fs.close().unwrap();
    }

    /// Behind a checkpoint of many nodes memory goes back when few are written, whoever wrote it. What is above the limits
    /// of the caches goes along, and shows it.
    #[test]
    fn memory_goes_back_in_a_quiet_time() {
        const FILES: usize = 6000;
        let device = Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
        f2fs_volume::format::format(&*device, &Default::default()).unwrap();
        let mut options = Options::new().inode_cache(NonZeroUsize::MIN);
        options.volume = options.volume.node_cache(NonZeroUsize::MIN);
        let fs = FileSystem::open(device, options).unwrap();
        let path = |file| format!("/{file}");
        (0..FILES).for_each(|file| drop(fs.create_file(path(file), 0o644).unwrap()));
        fs.checkpoint().unwrap();
        let version = fs.volume().last_checkpoint().version;
        let nodes = || fs.statfs().cached_nodes as usize;
        for every in [None, Some(Duration::from_secs(3600))] {
            let open: Vec<_> = (0..FILES).map(|file| fs.open_file(path(file)).unwrap()).collect();
            assert!(nodes() >= FILES);
            drop(open);
            // There is something to write.
            fs.create_file(format!("/new-{}", every.is_some()), 0o644).unwrap();
            let checkpoints = Checkpoints { look: Duration::from_millis(20), ..Checkpoints::new(fs.clone(), every) };
            let writing = checkpoints.start().unwrap();
            let end = Instant::now() + Duration::from_secs(20);
            while nodes() > FILES / 2 {
                assert!(Instant::now() < end, "{} nodes stay", nodes());
                std::thread::sleep(Duration::from_millis(5));
            }
            drop(writing);
        }
        assert_eq!(fs.volume().last_checkpoint().version, version, "nobody asked for a checkpoint");
        fs.close().unwrap();
    }
}
