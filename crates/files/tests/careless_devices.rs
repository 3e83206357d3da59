//! Devices of an embedder's own whose answers break the promises of `BlockDevice::submit`: buffers are gone or have
//! another length, an answer is missing, or there is one too many. Each gives a typed error; nothing panics or waits
//! for ever.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use f2fs_check::{CheckOptions, check};
use f2fs_device::{
    AlignedBuf, BlockDevice, Claims, Completion, DeviceError, DeviceInfo, MemoryDevice, Op, Operation, Pending,
    Request, Ticket,
};
use f2fs_device_test::{Fault, FaultDevice, FaultRule};
use f2fs_files::{FileSystem, FsError, Options, ReadSlice};
use f2fs_test_kit::volumes::{formatted, within};
use f2fs_volume::format::{FormatOptions, format};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carelessness {
    NoBuffers,
    EmptyBuffers,
    ShortBuffers,
    LongBuffers,
    OneTooMany,
    OneMissing,
    /// Each is handed out twice.
    Twice,
}

const ALL: [Carelessness; 6] = [
    Carelessness::NoBuffers,
    Carelessness::EmptyBuffers,
    Carelessness::ShortBuffers,
    Carelessness::LongBuffers,
    Carelessness::OneTooMany,
    Carelessness::OneMissing,
];

/// Answers so from its `from`-th batch of reads on.
#[derive(Debug)]
struct Careless {
    below: MemoryDevice,
    how: Carelessness,
    from: AtomicU64,
    batches: AtomicU64,
}

impl Careless {
    fn new(below: MemoryDevice, how: Carelessness, from: u64) -> Arc<Careless> {
        Arc::new(Careless { below, how, from: from.into(), batches: AtomicU64::default() })
    }
}

impl BlockDevice for Careless {
    fn info(&self) -> &DeviceInfo {
        self.below.info()
    }

    fn claims(&self) -> &Claims {
        self.below.claims()
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.below.flush()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let reads = requests.iter().all(|request| request.op == Op::Read);
        let mut done = self.below.submit(requests).wait();
        if !reads || self.batches.fetch_add(1, Ordering::Relaxed) < self.from.load(Ordering::Relaxed) {
            return Ticket::ready(done);
        }
        let of_each = |done: &mut Vec<Completion>, change: fn(&mut AlignedBuf)| {
            done.iter_mut().flat_map(|completion| &mut completion.request.bufs).for_each(change);
        };
        match self.how {
            Carelessness::NoBuffers => done.iter_mut().for_each(|completion| completion.request.bufs.clear()),
            Carelessness::EmptyBuffers => of_each(&mut done, |buf| *buf = AlignedBuf::default()),
            Carelessness::ShortBuffers => {
                of_each(&mut done, |buf| *buf = AlignedBuf::new(buf.blocks().saturating_sub(1)));
            }
            Carelessness::LongBuffers => of_each(&mut done, |buf| *buf = AlignedBuf::new(buf.blocks() + 1)),
            Carelessness::OneTooMany => {
                done.push(Completion { request: Request::read(0, AlignedBuf::new(1)), result: Ok(()) });
            }
            Carelessness::OneMissing => drop(done.pop()),
            Carelessness::Twice => {
                let doubled = Doubled(done.into_iter().enumerate().collect());
                return Ticket::pending(doubled.0.len(), Vec::new(), Box::new(doubled));
            }
        }
        Ticket::ready(done)
    }
}

#[derive(Debug)]
struct Doubled(Vec<(usize, Completion)>);

impl Pending for Doubled {
    fn collect(&mut self, _block: bool, out: &mut VecDeque<(usize, Completion)>) {
        for (index, completion) in self.0.drain(..) {
            let Completion { request, result } = &completion;
            out.push_back((index, Completion { request: request.clone(), result: result.clone() }));
            out.push_back((index, completion));
        }
    }
}

const LONG: usize = 3 << 20;

fn filled() -> MemoryDevice {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    for name in 0..300 {
        fs.create_file(format!("/dir/{name}"), 0o644).unwrap().write_at(&[7; 20_000], 0).unwrap();
    }
    fs.create_file("/long", 0o644).unwrap().write_at(&vec![9; LONG], 0).unwrap();
    fs.close().unwrap();
    device.snapshot()
}

/// Reads in every way. What is read without an error is what was written.
fn read_all(device: &Arc<Careless>, page_cache: u64) -> Result<(), FsError> {
    let fs = FileSystem::open(device.clone(), Options::new().page_cache(page_cache))?;
    for entry in fs.read_dir("/dir")? {
        let name = String::from_utf8(entry?.name).unwrap();
        fs.metadata(format!("/dir/{name}"))?;
    }
    let mut bytes = vec![0; 20_000];
    let file = fs.open_file("/dir/7")?;
    assert_eq!(file.read_at(&mut bytes, 0)?, 20_000);
    assert!(bytes.iter().all(|byte| *byte == 7));
    let long = fs.open_file("/long")?;
    let mut bytes = vec![0; LONG];
    assert_eq!(long.read_at(&mut bytes, 0)?, LONG);
    assert!(bytes.iter().all(|byte| *byte == 9));
    let mut blocks = AlignedBuf::new(64);
    assert_eq!(long.read_into(&mut blocks, 0)?, 64 << 12);
    assert!(blocks.as_bytes().iter().all(|byte| *byte == 9));
    let mut pages = vec![[0; 4096]; 100];
    let mut reads: Vec<_> = pages.iter_mut().zip(0..).map(|(page, n)| ReadSlice::new(n * 8192, page)).collect();
    long.read_many(8, &mut reads)?;
    assert!(pages.iter().all(|page| *page == [9; 4096]));
    fs.close()
}

#[test]
fn answers_that_come_twice_are_an_error() {
    let device = Careless::new(filled(), Carelessness::Twice, u64::MAX);
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let long = fs.open_file("/long").unwrap();
    assert_eq!(long.read_at(&mut [0; 4096], (LONG - 4096) as u64).unwrap(), 4096);
    device.from.store(0, Ordering::Relaxed);
    let mut pages = vec![[0; 4096]; 100];
    let mut reads: Vec<_> = pages.iter_mut().zip(0..).map(|(page, n)| ReadSlice::new(n * 8192, page)).collect();
    let error = long.read_many(8, &mut reads).unwrap_err().to_string();
    assert!(error.contains("gave back other buffers"), "{error}");
}

#[test]
fn answers_that_break_their_promise_are_errors() {
    let volume = filled();
    within(Duration::from_secs(600), move || {
        let careful = Careless::new(volume.snapshot(), Carelessness::OneMissing, u64::MAX);
        read_all(&careful, 0).unwrap();
        let batches = careful.batches.load(Ordering::Relaxed);
        for how in ALL {
            let mut failed = 0;
            // Among the first reads, which open the volume, and among the last ones, which are of data.
            for from in [0, 1, 2, 3, 5, 8, 13, 20, 40].into_iter().chain(batches - 40..batches) {
                for page_cache in [0, 1 << 20] {
                    let device = Careless::new(volume.snapshot(), how, from);
                    match read_all(&device, page_cache) {
                        // An answer too many is not listened to.
                        Ok(()) => {}
                        Err(error) => {
                            let text = error.to_string();
                            let told = ["gave back other buffers", "lost the request"];
                            // The first reads look for a superblock: what nobody answers is none.
                            assert!(
                                from < 3 || told.iter().any(|told| text.contains(told)),
                                "{how:?} from {from}: {text}"
                            );
                            failed += 1;
                        }
                    }
                    // Reads nothing but this device, too.
                    let _ = check(&*device, &CheckOptions::default());
                }
            }
            assert!(failed > 4 || how == Carelessness::OneTooMany, "{how:?}: {failed}");
        }
    });
}

/// A device that leaves one of the requests that write without an answer, and does not do it.
fn forgetful(below: MemoryDevice, number: u64) -> (Arc<MemoryDevice>, Arc<FaultDevice>) {
    let below = Arc::new(below);
    let device = Arc::new(FaultDevice::new(below.clone()));
    let writes = FaultRule::on([Operation::Write, Operation::WriteFua]);
    device.arm(writes.after(number).fault(Fault::Unanswered));
    (below, device)
}

fn content(number: usize) -> Vec<u8> {
    vec![number as u8 + 1; 4096 * (1 + number % 4) + 50]
}

fn read(fs: &FileSystem, path: &str) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 20];
    let len = fs.open_file(path).unwrap().read_at(&mut bytes, 0).unwrap();
    bytes.truncate(len);
    bytes
}

/// Writes in every way, until a call fails.
fn write_all(device: &Arc<FaultDevice>, page_cache: u64) -> Result<(), FsError> {
    let fs = FileSystem::open(device.clone(), Options::new().page_cache(page_cache))?;
    for number in 0..20 {
        let file = fs.create_file(format!("/{number}"), 0o644)?;
        file.write_at(&content(number), 0)?;
        if number % 7 == 0 {
            file.sync_all()?;
        }
    }
    fs.checkpoint()?;
    // Two extents, in two requests.
    let late = fs.create_file("/late", 0o644)?;
    late.write_at(&[77; 300_000], 0)?;
    late.sync_all()?;
    late.write_at(&[78; 300_000], 0)?;
    fs.close()
}

#[test]
fn writes_that_nobody_answers_are_errors() {
    let volume = formatted(64, &FormatOptions::default());
    within(Duration::from_secs(600), move || {
        for page_cache in [0, 1 << 20] {
            let mut failed = 0;
            for number in 0.. {
                let (below, device) = forgetful(volume.snapshot(), number);
                let written = write_all(&device, page_cache);
                if let Err(error) = written {
                    let text = error.to_string();
                    assert!(text.contains("lost the request"), "write {number}: {text}");
                    failed += 1;
                    continue;
                }
                let report = check(&*below, &CheckOptions::default()).unwrap();
                assert!(report.is_consistent() && report.complete, "write {number}: {report}");
                let fs = FileSystem::open(below, Options::new().read_only(true)).unwrap();
                for file in 0..20 {
                    assert_eq!(read(&fs, &format!("/{file}")), content(file), "write {number}");
                }
                assert!(read(&fs, "/late") == [78; 300_000], "write {number}");
                if device.faults() == 0 {
                    break;
                }
                // It was of the second copy of the last checkpoint, or its data was written once more.
            }
            assert!(failed > 15, "{failed}");
        }
    });
}

#[test]
fn a_format_whose_writes_nobody_answers_is_an_error() {
    let mut failed = 0;
    for number in 0.. {
        let (below, device) = forgetful(MemoryDevice::new(16 * 1024), number);
        let made = format(&*device, &FormatOptions::default());
        if device.faults() == 0 {
            made.unwrap();
            let report = check(&*below, &CheckOptions::default()).unwrap();
            assert!(report.is_clean() && report.complete, "{report}");
            break;
        }
        let text = made.expect_err(&format!("write {number} is lost")).to_string();
        assert!(text.contains("lost the request"), "write {number}: {text}");
        failed += 1;
    }
    assert!(failed > 10, "{failed}");
}
