//! A device that says of a write that it went well, and gives back none of its buffers, is not believed: whatever write
//! that is, somebody is told, or nothing is lost by it.
#![cfg(not(any(loom, shuttle, f2fs_counting, f2fs_manycore)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use f2fs_device::{BlockDevice, Claims, Completion, DeviceError, DeviceInfo, MemoryDevice, Op, Request, Ticket};
use f2fs_files::{FileSystem, FsError, Options};
use f2fs_test_kit::synced::read;
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

/// A device that does nothing for one write.
#[derive(Debug)]
struct Lying {
    inner: Arc<MemoryDevice>,
    /// Writes that are done before it.
    before: AtomicI64,
}

impl Lying {
    fn lies(&self, request: &Request) -> bool {
        matches!(request.op, Op::Write | Op::WriteFua) && self.before.fetch_sub(1, Ordering::SeqCst) == 0
    }
}

impl BlockDevice for Lying {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let answer = |mut request: Request| {
            if self.lies(&request) {
                request.bufs.clear();
                return Completion { request, result: Ok(()) };
            }
            self.inner.execute(request)
        };
        Ticket::ready(requests.into_iter().map(answer).collect())
    }
}

fn work(device: Arc<Lying>, options: Options) -> Result<(), FsError> {
    let fs = FileSystem::open(device, options)?;
    for number in 0..10 {
        let file = fs.create_file(format!("/{number}"), 0o644)?;
        file.write_at(&[7; 20_000], 0)?;
        file.sync_all()?;
        if number == 5 {
            fs.checkpoint()?;
        }
    }
    // In several runs of blocks, and so in several requests.
    let file = fs.create_file("/last", 0o644)?;
    file.write_at(&[7; 3 << 20], 0)?;
    fs.close()
}

#[test]
fn a_write_that_gives_back_other_buffers_is_told() {
    for cache in [0, 1 << 20] {
        let (mut writes, mut untold) = (0, 0);
        loop {
            let inner = Arc::new(formatted(64, &FormatOptions::default()).snapshot());
            let device = Arc::new(Lying { inner: inner.clone(), before: AtomicI64::new(writes) });
            let result = work(device.clone(), Options::new().page_cache(cache));
            if device.before.load(Ordering::SeqCst) >= 0 {
                result.unwrap();
                break;
            }
            drop(device);
            if result.is_ok() {
                // The second checkpoint of a close, whose failure costs nothing.
                let fs = FileSystem::open(inner, Options::new()).unwrap();
                let whole = |name: &str, len| read(&fs, name) == vec![7; len];
                let all = (0..10).all(|number| whole(&format!("/{number}"), 20_000)) && whole("/last", 3 << 20);
                assert!(all, "write {writes} of a run with a cache of {cache} bytes");
                untold += 1;
            }
            writes += 1;
        }
        assert!(writes > 20 && untold < 6, "{untold} of {writes}");
    }
}
