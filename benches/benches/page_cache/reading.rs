//! Reads of what is in the cache.

use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Barrier;

use f2fs::{File, FileSystem};
use f2fs_device_test::Random;

use crate::volumes::volume;
use crate::{Clock, Goal, Measure, Place, Result, Row};

/// Bytes of the file that is read.
const FILE: u64 = 256 << 20;
/// Reads of a thread.
const READS: u64 = 1_500_000;

/// A file of a volume, all of it in the page cache.
struct Cached {
    _fs: FileSystem,
    file: File,
}

impl Cached {
    fn new(place: &Place) -> Result<Cached> {
        let image = place.filled("image", place.image_bytes())?;
        let (fs, flusher) = volume(&image, 2 * FILE)?;
        drop(flusher);
        let file = fs.create_file("/file", 0o644)?;
        let mut piece = vec![7; 1 << 20];
        for offset in (0..FILE).step_by(piece.len()) {
            file.write_at(&piece, offset)?;
        }
        fs.checkpoint()?;
        for offset in (0..FILE).step_by(piece.len()) {
            file.read_at(&mut piece, offset)?;
        }
        let cached = fs.stats().cached_pages;
        if cached < FILE / 4096 {
            return Err(format!("of {} blocks only {cached} are in the cache", FILE / 4096).into());
        }
        Ok(Cached { _fs: fs, file })
    }

    fn read(&self, threads: u64) -> Result<Measure> {
        many(threads, |buf, offset| Ok(self.file.read_at(buf, offset)?))
    }
}

/// Reads from persistent threads that start together.
fn many(threads: u64, read: impl Fn(&mut [u8], u64) -> Result<usize> + Sync) -> Result<Measure> {
    let start = Barrier::new(threads as usize + 1);
    let work = |thread: u64| {
        let mut random = Random::new(thread + 1);
        let mut buf = vec![0; 4096];
        start.wait();
        for _ in 0..READS {
            let offset = random.next() % (FILE / 4096) * 4096;
            match read(&mut buf, offset) {
                Ok(4096) => {}
                Ok(len) => return Err(format!("a read of {len} bytes")),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        start.wait();
        let clock = Clock::start()?;
        for worker in workers {
            worker.join().map_err(|_| "a reader has panicked")??;
        }
        Ok(clock.stop((threads * READS) as f64)?)
    })
}

pub(crate) fn beside_pread(place: &Place) -> Result<Row<'_>> {
    let cached = Cached::new(place)?;
    let plain = std::fs::File::open(place.filled("read", FILE)?)?;
    Ok(Row {
        name: "reads, pread",
        unit: "reads",
        goal: Goal::Rate(1.5e6),
        ours: Box::new(move || cached.read(1)),
        theirs: Box::new(move || many(1, |buf, offset| Ok(plain.read_at(buf, offset)?))),
    })
}

pub(crate) fn two_threads(place: &Place) -> Result<Row<'_>> {
    let two = Rc::new(Cached::new(place)?);
    let one = Rc::clone(&two);
    Ok(Row {
        name: "reads, threads",
        unit: "reads",
        goal: Goal::Ratio(1.9),
        ours: Box::new(move || two.read(2)),
        theirs: Box::new(move || one.read(1)),
    })
}
