//! Files that are read in order: what comes next is read before the kernel asks for it.
//!
//! The kernel asks a FUSE server for 128 or 256 KiB at a time, and most disks give more if they are asked for more. So a
//! file that is read in order is read in windows of [`WINDOW`] bytes: while the requests of one are answered, the next
//! one is read.
//!
//! ```text
//!   requests   |0   |1   |2   |3   |4   |5   |
//!   windows    |  0, read with 1   |  1, read behind the answer to 1
//! ```
//!
//! What is in a window is what the file has: each change of the file drops both windows when it is done, and before it
//! is answered.
//!
//! # Locking
//!
//! Each window of a file has a mutex, which is held while the window is read from the device: who wants something in it
//! waits for that. Both are held at once only by a thread that takes them without waiting. A file that leaves the list
//! of those that have windows is marked so before its windows are dropped, and who fills one looks at the mark with the
//! window locked: so none is left behind.

use std::ops::Range;

use f2fs_device::{AlignedBuf, BLOCK_SIZE, Recycler};
use f2fs_files::{File, FsError};
use f2fs_sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use f2fs_sync::{Arc, Mutex};

/// Bytes that are read together.
const WINDOW: usize = 1 << 20;
/// A request of fewer bytes begins no stream: of small files the kernel asks for all.
const LEAST: usize = 64 << 10;

/// Bytes of a file, as they were when nobody changed it.
#[derive(Clone, Debug)]
struct Window {
    start: u64,
    len: usize,
    bytes: Arc<AlignedBuf>,
}

impl Window {
    fn end(&self) -> u64 {
        self.start + self.len as u64
    }

    fn piece(&self, offset: u64, size: usize) -> Option<Piece> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let range = from..from.checked_add(size)?;
        (range.end <= self.len).then(|| Piece { window: self.clone(), range })
    }
}

/// What a request asked for.
#[derive(Debug)]
pub(crate) struct Piece {
    window: Window,
    range: Range<usize>,
}

impl Piece {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.window.bytes.as_bytes()[self.range.clone()]
    }
}

/// How a file is read.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Where the next request begins if the file is read in order.
    next: AtomicU64,
    /// It stands in the list of files that have windows. Looked at with a window locked, before that is filled.
    pub(crate) listed: AtomicBool,
    /// A window was once filled, or is about to be. Never taken back.
    begun: AtomicBool,
    windows: [Mutex<Option<Window>>; 2],
}

impl Stream {
    /// The bytes that a request asks for, which are in the file, if it is read in order; `begins` is called in front of
    /// the first window, and lists it. `None` if it is not, or if they lie in two windows.
    pub(crate) fn read(
        &self,
        file: &File,
        offset: u64,
        size: usize,
        memory: &Recycler,
        begins: impl FnOnce(),
    ) -> Result<Option<Piece>, FsError> {
        // Reads that are out of order write nothing that others read.
        let in_order = self.next.load(Ordering::Relaxed) == offset && offset > 0;
        if size < LEAST && !in_order {
            return Ok(None);
        }
        self.next.store(offset + size as u64, Ordering::Relaxed);
        if let Some(piece) = self.find(offset, size) {
            return Ok(Some(piece));
        }
        if !in_order || size < LEAST {
            return Ok(None);
        }
        begins();
        if !self.begun.load(Ordering::Relaxed) {
            self.begun.store(true, Ordering::Relaxed);
        }
        // In front of what is read: see `changed`.
        fence(Ordering::SeqCst);
        let mut window = self.windows[0].lock();
        // Somebody may have read it meanwhile, or the list is full of others already.
        if window.as_ref().and_then(|window| window.piece(offset, size)).is_none() {
            if !self.listed.load(Ordering::Relaxed) {
                return Ok(None);
            }
            fill(&mut window, file, offset, memory)?;
        }
        Ok(window.as_ref().and_then(|window| window.piece(offset, size)))
    }

    /// Looks into the windows; waits for those that are on their way only if the others do not have it.
    fn find(&self, offset: u64, size: usize) -> Option<Piece> {
        let look = |window: &Option<Window>| window.as_ref().and_then(|window| window.piece(offset, size));
        let here = self.windows.iter().find_map(|window| window.try_lock().and_then(|window| look(&window)));
        here.or_else(|| self.windows.iter().find_map(|window| look(&window.lock())))
    }

    /// Behind an answer: reads the window behind that of the answer, or drops both at the end of the file. Nobody waits
    /// for this, and its error comes again with the request for what could not be read.
    pub(crate) fn go_on(&self, file: &File, answered: &Piece, memory: &Recycler) {
        let start = answered.window.end();
        if start >= file.size() {
            if answered.range.end == answered.window.len {
                self.clear();
            }
            return;
        }
        let [Some(one), Some(other)] = [&self.windows[0], &self.windows[1]].map(|window| window.try_lock()) else {
            return;
        };
        let place = |window: &Option<Window>| window.as_ref().map(|window| window.start);
        if place(&one) == Some(start) || place(&other) == Some(start) {
            return;
        }
        let mut oldest = if place(&one) <= place(&other) {
            drop(other);
            one
        } else {
            drop(one);
            other
        };
        if self.listed.load(Ordering::Relaxed) {
            let _ = fill(&mut oldest, file, start, memory);
        }
    }

    /// How many windows it has.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.windows.iter().filter(|window| window.lock().is_some()).count()
    }

    /// Drops the windows: the file changed. A file that was never read in order has none, and its writers lock nothing
    /// here: either this sees that a window is about to be filled, or who fills it sees the change.
    pub(crate) fn changed(&self) {
        fence(Ordering::SeqCst);
        if self.begun.load(Ordering::Relaxed) {
            self.clear();
        }
    }

    /// Drops the windows.
    pub(crate) fn clear(&self) {
        for window in &self.windows {
            *window.lock() = None;
        }
    }
}

/// Reads a window. Its memory comes from a pool: what one thread's arena of the C library has once given out would
/// stay with that thread.
fn fill(window: &mut Option<Window>, file: &File, start: u64, memory: &Recycler) -> Result<(), FsError> {
    *window = None;
    let mut bytes = memory.take_stale(WINDOW / BLOCK_SIZE);
    let len = file.read_into(&mut bytes, start)?;
    *window = Some(Window { start, len, bytes: Arc::new(bytes) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use f2fs_files::{FileSystem, Options};

    use super::*;

    const STEP: usize = 256 << 10;

    fn fs() -> FileSystem {
        let device = Arc::new(f2fs_device::MemoryDevice::new(64 * 1024));
        f2fs_volume::format::format(&*device, &Default::default()).unwrap();
        FileSystem::open(device, Options::new()).unwrap()
    }

    /// A file of so many bytes, each 4 KiB with its number.
    fn file(fs: &FileSystem, name: &str, bytes: usize) -> File {
        let file = fs.create_file(name, 0o644).unwrap();
        let content: Vec<u8> = (0..bytes).map(|at| (at / 4096) as u8).collect();
        file.write_at(&content, 0).unwrap();
        file
    }

    fn listed() -> Stream {
        Stream { listed: true.into(), ..Stream::default() }
    }

    /// Reads as the server does; whether it came from a window.
    fn read(stream: &Stream, file: &File, offset: usize, size: usize) -> bool {
        let size = size.min(file.size() as usize - offset);
        let Some(piece) = stream.read(file, offset as u64, size, &Recycler::new(), || ()).unwrap() else {
            return false;
        };
        let bytes = piece.as_bytes();
        assert_eq!(bytes.len(), size);
        assert!(bytes.iter().zip(offset..).all(|(byte, at)| *byte == (at / 4096) as u8), "at {offset}");
        stream.go_on(file, &piece, &Recycler::new());
        true
    }

    #[test]
    fn a_file_that_is_read_in_order_comes_from_windows() {
        let fs = fs();
        let file = file(&fs, "/f", 5 * WINDOW + 12_345);
        let stream = listed();
        for (number, offset) in (0..file.size() as usize).step_by(STEP).enumerate() {
            assert_eq!(read(&stream, &file, offset, STEP), number > 0, "at {offset}");
        }
        assert_eq!(stream.held(), 0, "windows stay behind the end of the file");
    }

    #[test]
    fn the_next_window_is_read_before_it_is_asked_for() {
        let fs = fs();
        let file = file(&fs, "/f", 4 * WINDOW);
        let stream = listed();
        assert!(!read(&stream, &file, 0, STEP));
        assert!(read(&stream, &file, STEP, STEP));
        let starts = stream.windows.each_ref().map(|window| window.lock().as_ref().map(|window| window.start as usize));
        assert_eq!(starts, [Some(STEP), Some(STEP + WINDOW)]);
    }

    #[test]
    fn a_file_that_left_the_list_before_its_first_window_gets_none() {
        let fs = fs();
        let file = file(&fs, "/f", 4 * WINDOW);
        let stream = Stream::default();
        for step in 0..4 {
            assert!(!read(&stream, &file, step * STEP, STEP));
        }
        assert_eq!(stream.held(), 0);
    }

    #[test]
    fn reads_out_of_order_have_no_windows() {
        let fs = fs();
        let file = file(&fs, "/f", 4 * WINDOW);
        let stream = listed();
        for offset in [0, 8, 3, 12, 5, 1, 9] {
            assert!(!read(&stream, &file, offset * STEP, STEP));
        }
        // Small ones do not begin any, in order or not.
        for block in 0..64 {
            assert!(!read(&stream, &file, block * 4096, 4096));
        }
        assert_eq!(stream.held(), 0);
    }

    #[test]
    fn a_request_over_a_border_is_left_to_others() {
        let fs = fs();
        let file = file(&fs, "/f", 4 * WINDOW);
        let stream = listed();
        let steps: Vec<bool> = (0..12).map(|step| read(&stream, &file, step * 300 * 1024, 300 * 1024)).collect();
        assert!(steps.iter().filter(|from_window| **from_window).count() > 7, "{steps:?}");
    }

    #[test]
    fn two_that_read_one_file_in_order_get_what_it_has() {
        let fs = fs();
        let file = file(&fs, "/f", 8 * WINDOW);
        let stream = listed();
        thread::scope(|scope| {
            for first in 0..2 {
                let (stream, file) = (&stream, &file);
                scope.spawn(move || {
                    for step in (first..8 * WINDOW / STEP).step_by(2) {
                        read(stream, file, step * STEP, STEP);
                    }
                });
            }
        });
    }
}
