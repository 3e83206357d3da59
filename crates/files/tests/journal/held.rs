//! A sync beside a record that is on its way.

use super::*;

/// No store waits.
const FREE: u64 = 0;
/// The next one will.
const ARMED: u64 = 1;
/// One does.
const WAITING: u64 = 2;

/// A record of names has a file that another thread syncs meanwhile: that thread waits until the record is durable.
#[test]
fn a_sync_waits_for_a_record_of_names_on_its_way() {
    let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    let journal = medium();
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let waits = Arc::new(AtomicU64::new(FREE));
    let hold = {
        let waits = waits.clone();
        move |call| {
            if call == Call::Write {
                let _ = waits.compare_exchange(ARMED, WAITING, Ordering::SeqCst, Ordering::SeqCst);
                while waits.load(Ordering::SeqCst) == WAITING {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Ok(())
        }
    };
    let options = Options::new().journal(JournalOptions::new(Hooked::new(&journal, hold), JournalMode::Ordered));
    let fs = FileSystem::open(device, options).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&content(1, 5000), 0).unwrap();
    let is_synced = AtomicU64::new(0);
    waits.store(ARMED, Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| fs.root().unwrap().sync_all().unwrap());
        while waits.load(Ordering::SeqCst) != WAITING {
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
        waits.store(FREE, Ordering::SeqCst);
        assert_eq!(early, 0, "the record is not durable yet");
    });
    assert_eq!((is_synced.load(Ordering::SeqCst), fs.statfs().written.name_records), (1, 1));
}
