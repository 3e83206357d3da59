//! What a sync costs: records, fences, flushes and lines, and when it is a checkpoint all the same.

use super::*;

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

/// In the mode `writeback` a sync waits for no data: after a power cut the file has its size, its attributes and its
/// name, and its blocks hold what they held or what was written.
#[test]
fn a_sync_in_writeback_flushes_nothing() {
    let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    let journal = Arc::new(RegionMedium::new(CountedRegion::new(MemoryRegion::new(BYTES).unwrap())));
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let with = || Options::new().journal(JournalOptions::new(journal.clone(), JournalMode::Writeback));
    let fs = FileSystem::open(device.clone(), with()).unwrap();
    let file = fs.create_file("/file", 0o640).unwrap();
    file.write_at(&content(1, 9000), 0).unwrap();
    fs.checkpoint().unwrap();
    let written = fs.statfs().written;
    for round in 2..6 {
        let (before, lines) = (device.counts(), journal.region().counts());
        file.write_at(&content(round, 4096), 4096).unwrap();
        file.write_at(&content(round, 4096), u64::from(round) * 4096).unwrap();
        file.sync_all().unwrap();
        let cost = journal.region().counts().since(lines);
        assert_eq!((device.counts().flushes, cost.fences), (before.flushes, 1), "round {round}");
        assert!(cost.stored_past_cache <= 16, "{} lines", cost.stored_past_cache);
    }
    fs.set_permissions("/file", 0o600).unwrap();
    fs.rename("/file", "/moved", f2fs_files::RenameMode::default()).unwrap();
    fs.root().unwrap().sync_all().unwrap();
    assert_eq!(fs.statfs().written.checkpoints, written.checkpoints);
    let image = cut(&device);
    drop((fs, file));
    assert_consistent(&*image);
    let fs = FileSystem::open(image, with()).unwrap();
    let stat = fs.metadata("/moved").unwrap();
    assert_eq!((stat.size, stat.permissions, fs.exists("/file").unwrap()), (6 * 4096, 0o600, false));
    assert!(read(&fs, "/moved")[..4096] == content(1, 9000)[..4096]);
    fs.close().unwrap();
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
