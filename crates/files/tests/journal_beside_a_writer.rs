//! A volume that is read together with its journal, while somebody else writes to it.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fmt;
use std::sync::Arc;

use f2fs_device::{BlockDevice, Claims, MemoryDevice};
use f2fs_files::{FileSystem, FsError, JournalMode, JournalOptions, JournalTrouble, Options, create_journal};
use f2fs_journal::{Gather, Medium, MediumError, RegionMedium, SharedMedium};
use f2fs_pmem::{MemoryRegion, PersistentRegion};
use f2fs_sync::Mutex;
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::VolumeError;
use f2fs_volume::format::FormatOptions;

const BYTES: usize = 1 << 20;

type Region = Arc<RegionMedium<MemoryRegion>>;

fn medium() -> Region {
    Arc::new(RegionMedium::new(MemoryRegion::new(BYTES).unwrap()))
}

/// A medium at whose first read something happens.
struct Hooked {
    medium: Region,
    first: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.medium.fmt(f)
    }
}

impl Medium for Hooked {
    fn grain(&self) -> usize {
        self.medium.grain()
    }

    fn bytes(&self) -> u64 {
        self.medium.bytes()
    }

    fn claims(&self) -> &Claims {
        self.medium.claims()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        if let Some(first) = self.first.lock().take() {
            first();
        }
        self.medium.read(offset, into)
    }

    fn write(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        self.medium.write(offset, bytes)
    }

    fn persist(&self) -> Result<(), MediumError> {
        self.medium.persist()
    }
}

fn with(medium: SharedMedium) -> Options {
    Options::new().journal(JournalOptions::new(medium, JournalMode::Journal))
}

/// The data of the journal belongs to one checkpoint: it is not shown over a later one, which came between.
#[test]
fn a_checkpoint_that_comes_meanwhile_is_noticed() {
    let (device, journal) = (formatted(64, &FormatOptions::default()), medium());
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let fs = FileSystem::open(device.clone(), with(journal.clone())).unwrap();
    let file = fs.create_file("/f", 0o644).unwrap();
    file.write_at(&[7; 16_000], 0).unwrap();
    file.sync_all().unwrap();
    drop((file, fs)); // a crash
    let read = |device: &Arc<MemoryDevice>, medium: SharedMedium| {
        FileSystem::open(device.clone(), with(medium).read_only(true))
    };
    let fs = read(&device, journal.clone()).unwrap();
    let mut bytes = vec![0; 16_000];
    fs.open_file("/f").unwrap().read_at(&mut bytes, 0).unwrap();
    assert!(bytes == [7; 16_000]);
    drop(fs);

    let (later, its) = (Arc::new(device.snapshot()), medium());
    let mut records = vec![0; BYTES];
    journal.region().load(0, &mut records).unwrap();
    its.region().store(0, &records).unwrap();
    drop(FileSystem::open(later.clone(), with(its)).unwrap()); // it writes a checkpoint, and another crash
    let writer = {
        let device = device.clone();
        move || {
            for (number, part) in (0..).zip(later.to_bytes().chunks(1 << 20)) {
                device.write_slice(number << 8, part).unwrap();
            }
        }
    };
    let hooked = Arc::new(Hooked { medium: journal, first: Mutex::new(Some(Box::new(writer))) });
    match read(&device, hooked).unwrap_err() {
        FsError::Volume(VolumeError::Journal(JournalTrouble::OtherCheckpoint { base, found, .. })) => {
            assert_ne!(base, found);
        }
        other => panic!("{other}"),
    }
}
