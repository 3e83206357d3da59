//! Volumes and journals that do not belong together, and damaged records.

use f2fs_device::{KeptZones, ZoneLayout};
use f2fs_format::feature::Features;
use f2fs_journal::Journal;
use f2fs_volume::format::format;

use super::*;

fn trouble(result: Result<FileSystem, FsError>) -> JournalTrouble {
    match result.unwrap_err() {
        FsError::Volume(VolumeError::Journal(trouble)) => trouble,
        FsError::Recovery(error) => trouble(Err(*error)),
        other => panic!("{other}"),
    }
}

#[test]
fn volumes_and_journals_that_do_not_belong_together_are_refused() {
    let (device, journal, fs) = start();
    fs.create_file("/file", 0o600).unwrap().sync_all().unwrap();
    let (image, left) = (cut(&device), copy(&journal));

    // Without it: for reading, yes; for writing only if its files are given up.
    let before = image.snapshot();
    assert!(!FileSystem::open(image.clone(), Options::new().read_only(true)).unwrap().exists("/file").unwrap());
    let error = FileSystem::open(image.clone(), Options::new()).unwrap_err();
    assert!(matches!(&error, FsError::JournalMissing { journal } if journal.len() == 36), "{error}");
    assert!((0..image.info().blocks).all(|at| image.block(at).0 == before.block(at).0), "nothing was written");
    let other = medium();
    create_journal(image.clone(), other.clone(), false).unwrap();
    let error = FileSystem::open(image.clone(), with(&other)).unwrap_err();
    assert!(matches!(&error, FsError::OtherJournal { .. }), "{error}");
    let foreign = formatted(64, &FormatOptions::default());
    let error = trouble(FileSystem::open(foreign, with(&left)));
    assert!(matches!(error, JournalTrouble::Journal(f2fs_journal::Error::Foreign { .. })), "{error}");
    assert!(create_journal(image.clone(), left.clone(), false).is_err(), "there is one already");

    // Somebody goes on without it; then it is refused, with the numbers.
    let gone_on = Arc::new(image.snapshot());
    let fs = FileSystem::open(gone_on.clone(), Options::new().without_journal(true)).unwrap();
    fs.create_file("/other", 0o600).unwrap();
    drop(fs);
    let error = trouble(FileSystem::open(gone_on.clone(), with(&left)));
    let JournalTrouble::OtherCheckpoint { records: 1, base, found } = error else { panic!("{error}") };
    assert_eq!(base as u32 + 1, found as u32);
    FileSystem::open(gone_on.clone(), Options::new()).unwrap().close().unwrap();

    // The recovery itself may be cut anywhere, and done again.
    let recorder = Arc::new(RecordingDevice::new(image.snapshot()));
    let again = copy(&left);
    drop(FileSystem::open(recorder.clone(), with(&again)).unwrap());
    assert!(FileSystem::open(cut(&recorder), with(&again)).unwrap().exists("/file").unwrap());
    assert!(FileSystem::open(image, with(&again)).is_err(), "the volume is older than its journal");
}

#[test]
fn a_damaged_record_is_no_reason_to_lose_it_in_silence() {
    let (device, journal, fs) = start();
    let file = fs.create_file("/file", 0o600).unwrap();
    for round in 0..20 {
        file.write_at(&[round; 100], 0).unwrap();
        file.sync_all().unwrap();
    }
    let (image, left) = (cut(&device), copy(&journal));
    let mut bytes = vec![0; BYTES];
    left.region().load(0, &mut bytes).unwrap();
    // Somewhere in the records of the lane that has some.
    let used = (8192..BYTES).filter(|at| bytes[*at] != 0).collect::<Vec<_>>();
    left.region().store(used[used.len() / 2], &[!bytes[used[used.len() / 2]]]).unwrap();
    let error = trouble(FileSystem::open(image.clone(), with(&left)));
    assert!(matches!(error, JournalTrouble::Damaged { records: 1..19, .. }), "{error}");
    FileSystem::open(image, Options::new().without_journal(true)).unwrap();
}

/// A record that is no sync, and a header that is not a volume's.
#[test]
fn what_a_volume_did_not_write_is_refused() {
    let (device, journal, fs) = start();
    fs.create_file("/file", 0o600).unwrap().sync_all().unwrap();
    let (image, left) = (cut(&device), copy(&journal));
    let opened = |medium: &Medium| Journal::open(medium.clone() as SharedMedium, None).unwrap().start().unwrap();
    opened(&left).append(0, &[b"no sync"]).unwrap();
    let error = trouble(FileSystem::open(image.clone(), with(&left)));
    assert!(matches!(error, JournalTrouble::Record { .. }), "{error}");
    let left = copy(&journal);
    opened(&left).set_area(&[7; 3]).unwrap();
    let error = trouble(FileSystem::open(image.clone(), with(&left)));
    assert!(matches!(error, JournalTrouble::Area { bytes: 3 }), "{error}");
    assert!(FileSystem::open(image, with(&copy(&journal))).unwrap().exists("/file").unwrap());
}

/// Data cannot be written again to its place on zones.
#[test]
fn data_in_a_journal_of_zones_is_refused() {
    let layout = ZoneLayout::new(1024).with_conventional(8);
    let memory = Arc::new(MemoryDevice::new(KeptZones::<Arc<MemoryDevice>>::blocks_needed(&layout, 40).unwrap()));
    let zones = Arc::new(KeptZones::create(memory, layout).unwrap());
    format(&*zones, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
    let journal = medium();
    create_journal(zones.clone(), journal.clone(), false).unwrap();
    let error = trouble(FileSystem::open(zones.clone(), with_mode(&journal, JournalMode::Journal)));
    assert!(matches!(error, JournalTrouble::Zoned), "{error}");
    FileSystem::open(zones, with_mode(&journal, JournalMode::Ordered)).unwrap().close().unwrap();
}
