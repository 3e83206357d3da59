//! What comes back of synced files after a power cut.

use super::*;

/// Nodes behind the last checkpoint.
fn in_the_log(image: &MemoryDevice) -> usize {
    let fs = FileSystem::open(Arc::new(image.snapshot()), Options::new().read_only(true)).unwrap();
    fs.volume().synced_nodes().unwrap().len()
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
    old.write_durable(&content(6, 4096), 0).unwrap();
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
    let (image, left) = (cut(&device), copy(&journal));
    assert_eq!(in_the_log(&image), 0, "and nothing is in the log");
    assert_consistent(&*image);
    for read_only in [true, false] {
        let fs = FileSystem::open(image.clone(), with(&left).read_only(read_only)).unwrap();
        assert_eq!((fs.recovered().files, fs.recovered().new_files), (3, 2), "read only: {read_only}");
        let mut expected = content(1, 9000);
        expected.resize(9096, 0);
        expected[4096..].copy_from_slice(&content(2, 5000));
        expected[..4096].copy_from_slice(&content(6, 4096));
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
    // One first, and not the first file of a request, whose sync might flush the device for all.
    for synced in [vec![21], vec![21, 5, 13, 29, 37]] {
        synced.iter().for_each(|number| files[*number].sync_all().unwrap());
        let (image, left) = (cut(&device), copy(&journal));
        let fs = FileSystem::open(image, with(&left)).unwrap();
        for number in synced {
            assert!(read(&fs, &names[number]) == content(number as u8, 4096), "{number}");
        }
    }
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

/// A volume does not need a journal any more that was detached, and has what was in it.
#[test]
fn a_file_system_goes_on_without_its_journal() {
    for mode in [JournalMode::Ordered, JournalMode::Journal] {
        let (device, journal, fs) = start_in(mode);
        let synced = |path: &str| {
            let file = fs.create_file(path, 0o600).unwrap();
            file.write_at(&content(1, 5000), 0).unwrap();
            file.sync_all().unwrap();
        };
        synced("/record");
        fs.detach_journal().unwrap();
        let checkpoints = fs.statfs().written.checkpoints;
        let used = fs.volume().journal_usage().unwrap().used;
        synced("/log");
        assert_eq!(fs.statfs().written.checkpoints, checkpoints, "no sync is one");
        assert_eq!(fs.volume().journal_usage().unwrap().used, used, "nothing goes there");
        let image = cut(&device);
        assert_eq!(in_the_log(&image), 1);
        for options in [Options::new(), with_mode(&copy(&journal), mode)] {
            let opened = FileSystem::open(Arc::new(image.snapshot()), options).unwrap();
            for path in ["/record", "/log"] {
                assert_eq!(read(&opened, path), content(1, 5000), "{path}");
            }
        }
        fs.close().unwrap();
        assert_clean(&device.snapshot());
    }
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
