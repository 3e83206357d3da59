//! Syncs that go to a journal beside the volume: what they leave after a crash, what they cost, and volumes and
//! journals that do not belong together.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod behind;
mod names;

use std::sync::Arc;
use std::time::Duration;

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_device_test::RecordingDevice;
use f2fs_device_test::pmem::CountedRegion;
use f2fs_files::{FileSystem, FsError, JournalMode, JournalOptions, JournalTrouble, Options, create_journal};
use f2fs_journal::{Gather, MediumError, RegionMedium, SharedMedium};
use f2fs_pmem::{MemoryRegion, PersistentRegion};
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_test_kit::synced::{content, read};
use f2fs_test_kit::volumes::{assert_clean, assert_consistent, formatted};
use f2fs_volume::VolumeError;
use f2fs_volume::format::FormatOptions;

const BYTES: usize = 1 << 20;

type Medium = Arc<RegionMedium<MemoryRegion>>;

fn medium() -> Medium {
    Arc::new(RegionMedium::new(MemoryRegion::new(BYTES).unwrap()))
}

/// The journal after a power cut, if all its records are durable.
fn copy(from: &Medium) -> Medium {
    let to = medium();
    let mut bytes = vec![0; BYTES];
    from.region().load(0, &mut bytes).unwrap();
    to.region().store(0, &bytes).unwrap();
    to
}

fn with(journal: &Medium) -> Options {
    with_mode(journal, JournalMode::Ordered)
}

fn with_mode(journal: &Medium, mode: JournalMode) -> Options {
    Options::new().journal(JournalOptions::new(journal.clone() as SharedMedium, mode))
}

/// A volume with its journal, open.
fn start() -> (Arc<RecordingDevice>, Medium, FileSystem) {
    start_in(JournalMode::Ordered)
}

fn start_in(mode: JournalMode) -> (Arc<RecordingDevice>, Medium, FileSystem) {
    let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    let journal = medium();
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let fs = FileSystem::open(device.clone(), with_mode(&journal, mode)).unwrap();
    (device, journal, fs)
}

/// The volume after a power cut, if nothing survives that was not flushed.
fn cut(device: &RecordingDevice) -> Arc<MemoryDevice> {
    Arc::new(device.log().image_at(device.position(), |_, _| false))
}

#[test]
fn synced_files_come_back_from_the_journal() {
    synced_files_come_back(JournalMode::Ordered);
}

#[test]
fn synced_files_come_back_with_their_data() {
    synced_files_come_back(JournalMode::Journal);
}

fn synced_files_come_back(mode: JournalMode) {
    let (device, journal, fs) = start_in(mode);
    let old = fs.create_file("/old", 0o600).unwrap();
    old.write_at(&content(1, 9000), 0).unwrap();
    fs.checkpoint().unwrap();
    let (checkpoints, flushes) = (fs.statfs().written.checkpoints, device.counts().flushes);
    old.write_at(&content(2, 5000), 4096).unwrap();
    old.sync_all().unwrap();
    let large = fs.create_file("/large", 0o644).unwrap();
    // Far enough for a direct node, with a hole in front.
    large.write_at(&content(3, 60_000), 8 << 20).unwrap();
    fs.set_xattr("/large", b"user.a", b"value", Default::default()).unwrap();
    large.sync_all().unwrap();
    let durable = fs.create_file("/durable", 0o644).unwrap();
    durable.write_durable(&content(4, 12_288), 0).unwrap();
    if mode == JournalMode::Journal {
        assert_eq!(device.counts().flushes, flushes, "no sync flushes the device");
    }
    fs.create_file("/lost", 0o644).unwrap().write_at(b"never synced", 0).unwrap();
    assert_eq!(fs.statfs().written.checkpoints, checkpoints, "no sync is a checkpoint");
    assert!(fs.volume().synced_nodes().unwrap().is_empty(), "and nothing is in the log");

    let (image, left) = (cut(&device), copy(&journal));
    assert_consistent(&*image);
    for read_only in [true, false] {
        let fs = FileSystem::open(image.clone(), with(&left).read_only(read_only)).unwrap();
        assert_eq!((fs.recovered().files, fs.recovered().new_files), (3, 2), "read only: {read_only}");
        let mut expected = content(1, 9000);
        expected.resize(9096, 0);
        expected[4096..].copy_from_slice(&content(2, 5000));
        assert_eq!(read(&fs, "/old"), expected);
        let found = read(&fs, "/large");
        assert!(found[..8 << 20].iter().all(|byte| *byte == 0));
        assert_eq!(found[8 << 20..], content(3, 60_000));
        assert_eq!(fs.xattr("/large", b"user.a").unwrap(), b"value");
        assert_eq!(read(&fs, "/durable"), content(4, 12_288));
        assert!(!fs.exists("/lost").unwrap());
        if !read_only {
            fs.close().unwrap();
        }
    }
    assert_clean(&image);
    // Closed, it needs its journal no more.
    let fs = FileSystem::open(image.clone(), Options::new()).unwrap();
    assert_eq!(fs.recovered().files, 0);
    fs.close().unwrap();
    drop(fs);
    let fs = FileSystem::open(image, with(&left)).unwrap();
    assert_eq!(fs.recovered().files, 0);
}

/// Data of several files goes out of the page cache in one request: it belongs to each of them.
#[test]
fn files_that_are_written_back_together_come_back_with_their_data() {
    let (device, journal, fs) = start_in(JournalMode::Journal);
    fs.close().unwrap();
    drop(fs);
    let options = with_mode(&journal, JournalMode::Journal).page_cache(16 * 4160);
    let fs = FileSystem::open(device.clone(), options).unwrap();
    fs.checkpoint().unwrap();
    let names: Vec<String> = (0..40).map(|number| format!("/{number}")).collect();
    let files: Vec<_> = (0..)
        .zip(&names)
        .map(|(number, name)| {
            let file = fs.create_file(name, 0o644).unwrap();
            file.write_at(&content(number, 4096), 0).unwrap();
            file
        })
        .collect();
    assert!(fs.stats().dirty_pages < 9, "the first ones were written for want of room");
    // Not the first file of a request, whose sync would flush the device for all.
    let synced = |number: &usize| number % 8 == 5;
    (0..40).filter(synced).for_each(|number| files[number].sync_all().unwrap());
    let (image, left) = (cut(&device), copy(&journal));
    let fs = FileSystem::open(image, with(&left)).unwrap();
    for number in (0..40).filter(synced) {
        assert!(read(&fs, &names[number]) == content(number as u8, 4096), "{number}");
    }
}

#[test]
fn a_sync_costs_one_record_and_one_flush() {
    let (device, journal, fs) = start();
    let file = fs.create_file("/file", 0o600).unwrap();
    file.write_at(&content(1, 4096), 0).unwrap();
    file.sync_all().unwrap();
    let (before, used) = (device.counts(), fs.volume().journal_usage().unwrap().used);
    file.write_at(&content(2, 4096), 0).unwrap();
    file.sync_all().unwrap();
    let counts = device.counts();
    assert_eq!((counts.writes - before.writes, counts.flushes - before.flushes), (1, 1), "its data, and no node");
    let lines = (fs.volume().journal_usage().unwrap().used - used) / 64;
    assert!(lines <= 16, "{lines} lines");
    file.sync_all().unwrap();
    assert_eq!(fs.volume().journal_usage().unwrap().used, used + lines * 64, "nothing changed");
    drop(journal);
}

#[test]
fn a_sync_with_data_costs_one_fence() {
    let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    let journal = Arc::new(RegionMedium::new(CountedRegion::new(MemoryRegion::new(8 << 20).unwrap())));
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let options = Options::new().journal(JournalOptions::new(journal.clone(), JournalMode::Journal));
    let fs = FileSystem::open(device.clone(), options).unwrap();
    let file = fs.create_file("/file", 0o600).unwrap();
    for round in 0..20_u64 {
        file.write_at(&content(round as u8, 4096), round % 4 * 4096).unwrap();
        let (before, lines) = (device.counts(), journal.region().counts());
        let allocations = allocation_counter::measure(|| file.sync_data().unwrap()).count_total;
        let (after, cost) = (device.counts(), journal.region().counts().since(lines));
        assert_eq!((after.writes - before.writes, after.flushes - before.flushes), (0, 0), "round {round}");
        assert_eq!(cost.fences, 1, "round {round}");
        assert!((65..=80).contains(&cost.stored_past_cache), "{} lines", cost.stored_past_cache);
        assert!(round < 8 || allocations == 0, "round {round}: {allocations} allocations");
    }
    // The same block again and again is one block of the record.
    for round in 0..200 {
        file.write_at(&content(round, 4096), 0).unwrap();
    }
    let (before, lines) = (device.counts(), journal.region().counts());
    file.sync_data().unwrap();
    assert_eq!(device.counts().flushes, before.flushes);
    assert!(journal.region().counts().since(lines).stored_past_cache <= 80);
    // More than a record takes: the device has it, and the record is small.
    for at in 0..70 {
        file.write_at(&content(at as u8, 4096), at * 4096).unwrap();
    }
    let (before, lines) = (device.counts(), journal.region().counts());
    file.sync_data().unwrap();
    assert_eq!(device.counts().flushes, before.flushes + 1);
    assert!(journal.region().counts().since(lines).stored_past_cache <= 20);
    file.write_at(b"small again", 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(device.counts().flushes, before.flushes + 1);
}

#[test]
fn a_file_with_several_names_needs_no_checkpoint() {
    let (device, journal, fs) = start();
    let file = fs.create_file("/file", 0o600).unwrap();
    fs.link("/file", "/other").unwrap();
    file.write_at(&content(1, 5000), 0).unwrap();
    let counts = || (fs.statfs().written.checkpoints, fs.statfs().written.name_records);
    let before = counts();
    file.sync_all().unwrap();
    assert_eq!(counts(), (before.0, before.1 + 1), "its names are new");
    file.write_at(&content(2, 9000), 0).unwrap();
    file.sync_all().unwrap();
    assert_eq!(counts(), (before.0, before.1 + 1), "they are old");
    let (image, left) = (cut(&device), copy(&journal));
    fs.remove_file("/other").unwrap();
    file.sync_all().unwrap();
    assert_eq!(counts(), (before.0, before.1 + 2), "it lost one");
    let fs = FileSystem::open(image.clone(), with(&left)).unwrap();
    for path in ["/file", "/other"] {
        assert_eq!(read(&fs, path), content(2, 9000));
    }
    assert_eq!(fs.metadata("/file").unwrap().links, 2);
    fs.close().unwrap();
    drop(fs);
    assert_clean(&image);
}

/// A node that a record has, and that no checkpoint ever had, is cut off: it does not come back with its blocks.
#[test]
fn what_was_cut_off_again_does_not_come_back() {
    let (device, journal, fs) = start();
    let file = fs.create_file("/file", 0o600).unwrap();
    file.write_at(&content(1, 5000), 8 << 20).unwrap();
    fs.set_xattr("/file", b"user.long", &[7; 3000], Default::default()).unwrap();
    file.sync_all().unwrap();
    file.set_len(100).unwrap();
    fs.remove_xattr("/file", b"user.long").unwrap();
    file.sync_all().unwrap();
    let (image, left) = (cut(&device), copy(&journal));
    let fs = FileSystem::open(image.clone(), with(&left)).unwrap();
    assert_eq!(read(&fs, "/file"), [0; 100]);
    assert!(fs.xattrs("/file").unwrap().is_empty());
    fs.close().unwrap();
    drop(fs);
    assert_clean(&image);
}

/// A medium of which one store or fence fails, or all loads from one on.
#[derive(Debug)]
struct Failing {
    medium: Medium,
    left: AtomicU64,
    reads: bool,
}

impl Failing {
    fn new(medium: Medium, at: u64, reads: bool) -> Arc<Failing> {
        Arc::new(Failing { medium, left: AtomicU64::new(at), reads })
    }

    fn pass(&self, reads: bool) -> Result<(), MediumError> {
        if reads != self.reads || self.left.fetch_sub(1, Ordering::Relaxed) != 0 {
            return Ok(());
        }
        if reads {
            self.left.store(0, Ordering::Relaxed);
        }
        Err(MediumError::Other("a media error".into()))
    }
}

impl f2fs_journal::Medium for Failing {
    fn grain(&self) -> usize {
        self.medium.grain()
    }

    fn bytes(&self) -> u64 {
        self.medium.bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        self.pass(true)?;
        self.medium.read(offset, into)
    }

    fn write(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        self.pass(false)?;
        self.medium.write(offset, bytes)
    }

    fn persist(&self) -> Result<(), MediumError> {
        self.pass(false)?;
        self.medium.persist()
    }
}

/// A media error at each store and fence: a sync that returned without an error is kept, by the journal, or by the
/// volume alone.
#[test]
fn a_media_error_at_each_store_costs_no_promise() {
    let mut failed = 0;
    for (mode, first) in [(JournalMode::Ordered, 0), (JournalMode::Journal, 1)] {
        for at in (first..40).step_by(2) {
            let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
            let journal = medium();
            create_journal(device.clone(), journal.clone(), false).unwrap();
            let failing = Failing::new(journal.clone(), at, false);
            let options = Options::new().journal(JournalOptions::new(failing.clone(), mode));
            let Ok(fs) = FileSystem::open(device.clone(), options) else {
                // It failed while nothing was synced yet.
                FileSystem::open(cut(&device), Options::new().without_journal(true)).unwrap();
                continue;
            };
            let file = fs.create_file("/file", 0o600).unwrap();
            for round in 1..=12 {
                file.write_at(&[round; 5000], 0).unwrap();
                file.sync_all().unwrap();
                if round == 6 {
                    fs.checkpoint().unwrap();
                }
                if round % 3 == 0 {
                    let (image, left) = (cut(&device), copy(&journal));
                    assert_consistent(&*image);
                    let opened = FileSystem::open(image.clone(), with_mode(&left, mode)).or_else(|_| {
                        // Not without a reason: the journal failed, and is behind the volume.
                        assert!(failing.left.load(Ordering::Relaxed) > 40, "operation {at}, round {round}");
                        failed += 1;
                        FileSystem::open(image, Options::new().without_journal(true))
                    });
                    assert_eq!(read(&opened.unwrap(), "/file"), [round; 5000], "operation {at}, round {round}");
                }
            }
        }
    }
    assert!(failed > 5, "{failed}");
}

/// A journal that cannot be read gives an error, and nothing is written.
#[test]
fn a_journal_that_cannot_be_read_is_refused() {
    let (device, journal, fs) = start_in(JournalMode::Journal);
    let file = fs.create_file("/file", 0o600).unwrap();
    file.write_at(&content(1, 9000), 0).unwrap();
    file.sync_all().unwrap();
    let (image, left) = (cut(&device), copy(&journal));
    let before = image.snapshot();
    let mut refused = 0;
    for at in 0..40 {
        let failing = JournalOptions::new(Failing::new(copy(&left), at, true), JournalMode::Journal);
        match FileSystem::open(Arc::new(before.snapshot()), Options::new().journal(failing)) {
            Ok(fs) => assert!(read(&fs, "/file") == content(1, 9000), "operation {at}"),
            Err(_) => refused += 1,
        }
    }
    assert!((2..40).contains(&refused), "{refused}");
    let fs = FileSystem::open(image, with_mode(&left, JournalMode::Journal)).unwrap();
    assert_eq!(read(&fs, "/file"), content(1, 9000));
}

#[test]
fn a_journal_that_fills_is_emptied_by_checkpoints() {
    let (device, journal, fs) = start();
    let checkpoints = fs.statfs().written.checkpoints;
    let file = fs.create_file("/file", 0o600).unwrap();
    for round in 0..6000_u64 {
        file.write_at(&round.to_le_bytes(), round % 7 * 5000).unwrap();
        file.sync_all().unwrap();
    }
    let checkpoints = fs.statfs().written.checkpoints - checkpoints;
    assert!((2..60).contains(&checkpoints), "{checkpoints} checkpoints");
    let fs = FileSystem::open(cut(&device), with(&copy(&journal))).unwrap();
    let found = read(&fs, "/file");
    for round in 5993..6000_u64 {
        let at = (round % 7 * 5000) as usize;
        assert_eq!(found[at..at + 8], round.to_le_bytes());
    }
}

#[test]
fn a_sync_that_does_not_fit_is_a_checkpoint() {
    let device = formatted(64, &FormatOptions::default());
    let journal = Arc::new(RegionMedium::new(MemoryRegion::new(16 << 10).unwrap()));
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let options = JournalOptions::new(journal, JournalMode::Writeback);
    let fs = FileSystem::open(device, Options::new().journal(options)).unwrap();
    let file = fs.create_file("/file", 0o600).unwrap();
    let checkpoints = fs.statfs().written.checkpoints;
    // Some 20 direct nodes.
    file.write_at(&content(1, 80 << 20 >> 1), 0).unwrap();
    file.sync_all().unwrap();
    assert_eq!(fs.statfs().written.checkpoints, checkpoints + 1);
    file.write_at(b"small", 0).unwrap();
    file.sync_all().unwrap();
    assert_eq!(fs.statfs().written.checkpoints, checkpoints + 1, "the journal goes on");
}

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

#[test]
fn threads_sync_side_by_side() {
    let (device, journal, fs) = start();
    let fs = &fs;
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            scope.spawn(move || {
                for round in 0..200_u64 {
                    let path = format!("/{}", (u64::from(thread) + round) % 5);
                    let file = fs.open_file(&path).or_else(|_| fs.create_file(&path, 0o644));
                    let Ok(file) = file.or_else(|_| fs.open_file(&path)) else { panic!("{path}") };
                    file.write_at(&[thread + 1; 3000], u64::from(thread) * 3000).unwrap();
                    file.sync_data().unwrap();
                }
            });
        }
    });
    let fs = FileSystem::open(cut(&device), with(&copy(&journal))).unwrap();
    for path in 0..5 {
        let found = read(&fs, &format!("/{path}"));
        assert_eq!(found, (0..12_000).map(|at| (at / 3000) as u8 + 1).collect::<Vec<_>>());
    }
}

/// A medium of which the next store waits.
#[derive(Debug)]
struct Held {
    medium: Medium,
    waits: AtomicU64,
}

/// No store waits.
const FREE: u64 = 0;
/// The next one will.
const ARMED: u64 = 1;
/// One does.
const WAITING: u64 = 2;

impl f2fs_journal::Medium for Held {
    fn grain(&self) -> usize {
        self.medium.grain()
    }

    fn bytes(&self) -> u64 {
        self.medium.bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        self.medium.read(offset, into)
    }

    fn write(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        let _ = self.waits.compare_exchange(ARMED, WAITING, Ordering::SeqCst, Ordering::SeqCst);
        while self.waits.load(Ordering::SeqCst) == WAITING {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.medium.write(offset, bytes)
    }

    fn persist(&self) -> Result<(), MediumError> {
        self.medium.persist()
    }
}

/// A record of names has a file that another thread syncs meanwhile: that thread waits until the record is durable.
#[test]
fn a_sync_waits_for_a_record_of_names_on_its_way() {
    let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    let journal = medium();
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let held = Arc::new(Held { medium: journal.clone(), waits: AtomicU64::new(FREE) });
    let options = Options::new().journal(JournalOptions::new(held.clone(), JournalMode::Ordered));
    let fs = FileSystem::open(device, options).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&content(1, 5000), 0).unwrap();
    let is_synced = AtomicU64::new(0);
    held.waits.store(ARMED, Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| fs.root().unwrap().sync_all().unwrap());
        while held.waits.load(Ordering::SeqCst) != WAITING {
            std::thread::sleep(Duration::from_millis(1));
        }
        scope.spawn(|| {
            file.sync_all().unwrap();
            is_synced.store(1, Ordering::SeqCst);
        });
        // Other operations go on.
        fs.create_file("/other", 0o644).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let early = is_synced.load(Ordering::SeqCst);
        held.waits.store(FREE, Ordering::SeqCst);
        assert_eq!(early, 0, "the record is not durable yet");
    });
    assert_eq!((is_synced.load(Ordering::SeqCst), fs.statfs().written.name_records), (1, 1));
}

/// `cargo test -p f2fs-files --features mutants --test journal` runs this.
#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    f2fs_sync::assert_found("a_sync_waits_for_a_record_of_names_on_its_way", &["journal_syncs_pass_names"], "panicked");
    let test = "files_that_are_written_back_together_come_back_with_their_data";
    f2fs_sync::assert_found(test, &["journal_flight_of_several_files"], "panicked");
    let test = "behind::what_a_checkpoint_holds_is_written_though_it_is_displaced_meanwhile";
    let mutants = ["journal_freeze_seals_data", "write_behind_forgets_sealed", "write_behind_sends_before_flush"];
    f2fs_sync::assert_found(test, &mutants, "panicked");
    f2fs_sync::assert_found(
        "behind::what_is_on_its_way_is_read_from_memory",
        &["write_behind_gone_before_sent"],
        "panicked",
    );
}
