//! A thread that takes the journal's space back in the background.

use std::thread;

use f2fs_files::FlusherOptions;

use super::*;

/// No sync writes a checkpoint: each makes its record durable and nothing else, and another thread the rest.
#[test]
fn checkpoints_are_written_in_the_background() {
    let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    let journal = medium();
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let (own, others) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let here = thread::current().id();
    let counted = {
        let (own, others) = (own.clone(), others.clone());
        Hooked::new(&journal, move |call| {
            if call == Call::Persist {
                let count = if thread::current().id() == here { &own } else { &others };
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })
    };
    let options = Options::new().journal(JournalOptions::new(counted, JournalMode::Ordered));
    let fs = FileSystem::open(device.clone(), options).unwrap();
    // Longer than the test: what wakes it is the journal.
    let flusher = fs.start_flusher(FlusherOptions::default().interval(Duration::from_secs(3600))).unwrap();
    let file = fs.create_file("/file", 0o600).unwrap();
    file.sync_all().unwrap();
    let (before, checkpoints) = (own.load(Ordering::Relaxed), fs.statfs().written.checkpoints);
    // So small a journal has two lanes at most.
    let lane = BYTES as u64 / f2fs_sync::processors().min(2) as u64;
    let (mut syncs, mut waits) = (0, 0);
    while fs.statfs().written.checkpoints < checkpoints + 5 {
        file.write_at(&u64::to_le_bytes(syncs), 0).unwrap();
        file.sync_all().unwrap();
        syncs += 1;
        // Operations write none before seven eighths of a lane are used.
        while fs.volume().journal_usage().unwrap().fullest > lane / 4 * 3 {
            waits += 1;
            assert!(waits < 60_000, "nobody takes the space back");
            thread::sleep(Duration::from_millis(1));
        }
    }
    // A sync writes one record, or none if a checkpoint froze behind its write: it waits for that then.
    let records = own.load(Ordering::Relaxed) - before;
    assert!(records <= syncs, "{syncs} syncs did more than write their records: {records}");
    assert!(syncs - records <= fs.statfs().written.checkpoints - checkpoints, "{records} records of {syncs} syncs");
    assert!(others.load(Ordering::Relaxed) >= 10, "each checkpoint is announced, and takes the space back");
    assert_eq!(fs.statfs().written.sync_checkpoints, 0);
    drop(flusher);
    // Without it an operation does so.
    for _ in 0..syncs {
        file.write_at(&u64::to_le_bytes(syncs), 0).unwrap();
        file.sync_all().unwrap();
    }
    assert!(own.load(Ordering::Relaxed) - before > 2 * syncs);
    let fs = FileSystem::open(cut(&device), with(&copy(&journal))).unwrap();
    assert_eq!(read(&fs, "/file"), syncs.to_le_bytes());
}
