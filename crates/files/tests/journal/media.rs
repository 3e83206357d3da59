//! Journals on media that fail.

use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_journal::DeviceMedium;

use super::*;

/// A medium of which one store or fence fails, or all loads from one on; and how many of them went well before.
fn failing(medium: &Medium, at: u64, reads: bool) -> (SharedMedium, Arc<AtomicU64>) {
    let left = Arc::new(AtomicU64::new(at));
    let pass = {
        let left = left.clone();
        move |call| {
            if (call == Call::Read) != reads || left.fetch_sub(1, Ordering::Relaxed) != 0 {
                return Ok(());
            }
            if reads {
                left.store(0, Ordering::Relaxed);
            }
            Err(MediumError::Other("a media error".into()))
        }
    };
    (Hooked::new(medium, pass), left)
}

/// A media error at each store and fence: a sync that returned without an error is kept, by the journal, or by the
/// volume alone.
#[test]
fn a_media_error_at_each_store_costs_no_promise() {
    let mut failed = 0;
    for mode in [JournalMode::Ordered, JournalMode::Journal] {
        for at in 0..40 {
            let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
            let journal = medium();
            create_journal(device.clone(), journal.clone(), false).unwrap();
            let (failing, left_of) = failing(&journal, at, false);
            let options = Options::new().journal(JournalOptions::new(failing, mode));
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
                        assert!(left_of.load(Ordering::Relaxed) > 40, "operation {at}, round {round}");
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

/// Each device that fails while a volume and its journal are opened is the reason that the error gives.
#[test]
fn the_device_of_a_journal_is_named_as_the_reason() {
    let image = formatted(64, &FormatOptions::default());
    let device = Arc::new(MemoryDevice::new(BYTES as u64 / 4096));
    create_journal(image.clone(), Arc::new(DeviceMedium::new(device.clone()).unwrap()), false).unwrap();
    for at in 0..6 {
        let failing = Arc::new(FaultDevice::new(Arc::new(device.snapshot())));
        failing.arm(FaultRule::on_all().after(at).for_good());
        let medium = Arc::new(DeviceMedium::new(failing).unwrap());
        let options = Options::new().journal(JournalOptions::new(medium, JournalMode::Ordered));
        let error = FileSystem::open(Arc::new(image.snapshot()), options).unwrap_err();
        assert!(error.device().is_some(), "operation {at}: {error}");
    }
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
        let failing = JournalOptions::new(failing(&copy(&left), at, true).0, JournalMode::Journal);
        match FileSystem::open(Arc::new(before.snapshot()), Options::new().journal(failing)) {
            Ok(fs) => assert!(read(&fs, "/file") == content(1, 9000), "operation {at}"),
            Err(_) => refused += 1,
        }
    }
    assert!((2..40).contains(&refused), "{refused}");
    let fs = FileSystem::open(image, with_mode(&left, JournalMode::Journal)).unwrap();
    assert_eq!(read(&fs, "/file"), content(1, 9000));
}
