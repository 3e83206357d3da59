//! Names that a sync puts into a journal.

use std::cell::Cell;
use std::sync::Arc;

use f2fs_files::{FileSystem, JournalMode, JournalOptions, Options, RenameMode, Time, create_journal};
use f2fs_journal::{RegionMedium, SharedMedium};
use f2fs_pmem::{MemoryRegion, PersistentRegion};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

const BYTES: usize = 1 << 20;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_700_000_000) };
}

fn clock() -> Time {
    Time { seconds: NOW.get(), nanoseconds: 0 }
}

fn medium() -> Arc<RegionMedium<MemoryRegion>> {
    Arc::new(RegionMedium::new(MemoryRegion::new(BYTES).unwrap()))
}

/// A directory whose names come back from a journal comes back with the time at which they changed.
#[test]
fn a_directory_comes_back_with_its_times() {
    let device = formatted(64, &FormatOptions::default());
    let journal = medium();
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let with = |journal: &Arc<RegionMedium<MemoryRegion>>| {
        let journal = JournalOptions::new(journal.clone() as SharedMedium, JournalMode::Ordered);
        Options::new().journal(journal).clock(clock)
    };
    let fs = FileSystem::open(device.clone(), with(&journal)).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    let file = fs.create_file("/dir/old", 0o644).unwrap();
    fs.checkpoint().unwrap();
    let before = fs.statfs().written.checkpoints;
    NOW.set(NOW.get() + 100);
    let then = clock();
    fs.rename("/dir/old", "/dir/new", RenameMode::Replace).unwrap();
    file.sync_all().unwrap();
    assert_eq!(fs.statfs().written.checkpoints, before, "it went to the journal");
    let (image, copy) = (Arc::new(device.snapshot()), medium());
    let mut bytes = vec![0; BYTES];
    journal.region().load(0, &mut bytes).unwrap();
    copy.region().store(0, &bytes).unwrap();
    NOW.set(NOW.get() + 100);
    let again = FileSystem::open(image, with(&copy)).unwrap();
    assert!(again.exists("/dir/new").unwrap() && !again.exists("/dir/old").unwrap());
    let stat = again.metadata("/dir").unwrap();
    assert_eq!((stat.modified, stat.changed), (then, then));
}
