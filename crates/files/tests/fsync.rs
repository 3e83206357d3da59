//! Files that were synced outlive a crash, and what was not stays as the checkpoint has it.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_device::{MemoryDevice, Operation};
use f2fs_device_test::{Fault, FaultDevice, FaultRule};
use f2fs_files::{AllocateFlags, FileSystem, FsError, Options, RecoveryReport, RenameMode, SetMode, SetTimes, Time};
use f2fs_format::feature::Features;
use f2fs_test_kit::synced::{content, read, start};
use f2fs_test_kit::volumes::{assert_clean, assert_consistent, formatted, saved};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{FsyncMode, VolumeOptions};

fn all_features() -> Features {
    Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM).union(Features::SB_CHECKSUM)
}

/// The device after a crash: all that was written, nothing closed. Judged as it is, by this library and by fsck.f2fs.
fn crashed(fs: FileSystem, device: &MemoryDevice) -> Arc<MemoryDevice> {
    drop(fs);
    let image = Arc::new(device.snapshot());
    assert_consistent(&image);
    f2fs_oracle::assert_accepted(f2fs_test_kit::volumes::TempPathExt::path(&saved(&image)));
    image
}

/// Opens what a crash left for reading, then for writing; `judge` sees both. The closed volume must be without fault.
fn recovered(image: &Arc<MemoryDevice>, judge: impl Fn(&FileSystem)) -> RecoveryReport {
    let before = image.to_bytes();
    let fs = FileSystem::open(image.clone(), Options::new().read_only(true)).unwrap();
    judge(&fs);
    let read_only = fs.recovered();
    drop(fs);
    assert!(image.to_bytes() == before, "opened for reading, and written");
    let fs = FileSystem::open(image.clone(), Options::new()).unwrap();
    assert_eq!(fs.recovered(), read_only);
    judge(&fs);
    fs.close().unwrap();
    assert_clean(image);
    let fs = FileSystem::open(image.clone(), Options::new()).unwrap();
    assert_eq!(fs.recovered(), RecoveryReport::default());
    judge(&fs);
    read_only
}

#[test]
fn every_kind_of_change_to_a_file() {
    for (features, mode) in [(Features(0), FsyncMode::Posix), (all_features(), FsyncMode::Strict)] {
        let (device, fs) = start(features, mode);
        fs.create_dir("/dir", 0o755).unwrap();
        for (name, len) in
            [("old", 50_000), ("inline", 100), ("grown", 0), ("large", 9 << 20), ("kept", 5000), ("cut", 20_000)]
        {
            fs.create_file(format!("/dir/{name}"), 0o644).unwrap().write_at(&content(1, len), 0).unwrap();
        }
        fs.checkpoint().unwrap();
        let version = fs.volume().footer_version();

        let open = |path: &str| fs.open_file(path).unwrap();
        let old = open("/dir/old");
        old.write_at(&content(2, 10_000), 8192).unwrap();
        old.write_at(&content(3, 5000), 100_000).unwrap();
        fs.set_permissions("/dir/old", 0o600).unwrap();
        fs.set_owner("/dir/old", Some(7), Some(8)).unwrap();
        fs.set_xattr("/dir/old", "user.small", b"inline", SetMode::Any).unwrap();
        fs.set_xattr("/dir/old", "user.large", &content(9, 3000), SetMode::Any).unwrap();
        let time = Time { seconds: 1_000_000, nanoseconds: 17 };
        fs.set_times("/dir/old", SetTimes::new().accessed(time).modified(time)).unwrap();
        old.sync_all().unwrap();
        open("/dir/inline").write_at(&content(4, 60), 50).unwrap();
        open("/dir/inline").sync_data().unwrap();
        open("/dir/grown").write_at(&content(5, 30_000), 0).unwrap();
        open("/dir/grown").sync_all().unwrap();
        open("/dir/large").write_at(&content(6, 1 << 20), 6 << 20).unwrap();
        open("/dir/large").sync_all().unwrap();
        open("/dir/kept").allocate(0, 400_000, AllocateFlags::KEEP_SIZE).unwrap();
        open("/dir/kept").sync_all().unwrap();
        open("/dir/cut").set_len(6000).unwrap();
        open("/dir/cut").sync_all().unwrap();
        let new = fs.create_file("/dir/new", 0o640).unwrap();
        new.write_at(&content(7, 5 << 20), 0).unwrap();
        new.sync_all().unwrap();
        new.write_at(&content(8, 4096), 4096).unwrap();
        new.sync_all().unwrap();
        fs.create_file("/empty", 0o604).unwrap().sync_all().unwrap();
        let hole = fs.create_file("/hole", 0o644).unwrap();
        hole.write_at(b"far", 5_000_000_000).unwrap();
        hole.sync_all().unwrap();
        // Not synced.
        fs.create_file("/dir/lost", 0o644).unwrap().write_at(&content(9, 9000), 0).unwrap();
        open("/dir/inline").write_at(&content(9, 20), 0).unwrap();
        fs.remove_file("/dir/cut").unwrap();
        assert_eq!(fs.volume().footer_version(), version, "a sync was a checkpoint");

        let image = crashed(fs, &device);
        let report = recovered(&image, |fs| {
            let mut expected = content(1, 50_000);
            expected[8192..18192].copy_from_slice(&content(2, 10_000));
            expected.resize(100_000, 0);
            expected.extend(content(3, 5000));
            assert!(read(fs, "/dir/old") == expected);
            let stat = fs.metadata("/dir/old").unwrap();
            assert_eq!((stat.permissions, stat.uid, stat.gid, stat.modified), (0o600, 7, 8, time));
            assert_eq!(fs.xattr("/dir/old", "user.small").unwrap(), b"inline");
            assert!(fs.xattr("/dir/old", "user.large").unwrap() == content(9, 3000));
            let mut expected = content(1, 50);
            expected.extend(content(4, 60));
            assert!(read(fs, "/dir/inline") == expected && fs.metadata("/dir/inline").unwrap().inline);
            assert!(read(fs, "/dir/grown") == content(5, 30_000));
            let mut expected = content(1, 9 << 20);
            expected[6 << 20..7 << 20].copy_from_slice(&content(6, 1 << 20));
            assert!(read(fs, "/dir/large") == expected);
            assert!(read(fs, "/dir/kept") == content(1, 5000));
            assert!(fs.metadata("/dir/kept").unwrap().blocks >= 98);
            assert!(read(fs, "/dir/cut") == content(1, 6000));
            let mut expected = content(7, 5 << 20);
            expected[4096..8192].copy_from_slice(&content(8, 4096));
            assert!(read(fs, "/dir/new") == expected);
            assert_eq!(fs.metadata("/dir/new").unwrap().permissions, 0o640);
            assert_eq!((fs.metadata("/empty").unwrap().size, fs.metadata("/empty").unwrap().permissions), (0, 0o604));
            let mut far = [1; 6];
            assert_eq!(fs.open_file("/hole").unwrap().read_at(&mut far, 4_999_999_997).unwrap(), 6);
            assert_eq!(&far, b"\0\0\0far");
            assert!(!fs.exists("/dir/lost").unwrap());
        });
        assert_eq!((report.files, report.new_files), (9, 3));
    }
}

/// A sync that only a checkpoint can do is one.
#[test]
fn what_roll_forward_cannot_repeat_is_a_checkpoint() {
    for mode in [FsyncMode::Posix, FsyncMode::Strict] {
        let (device, fs) = start(all_features(), mode);
        let make = |path: &str, len: usize| {
            let file = fs.create_file(path, 0o644).unwrap();
            file.write_at(&content(1, len), 0).unwrap();
            file
        };
        fs.create_dir("/dir", 0o755).unwrap();
        for path in ["/renamed", "/linked", "/two", "/dir/moved", "/cut", "/attributes", "/plain", "/target"] {
            make(path, 5 << 20);
        }
        fs.link("/two", "/dir/second").unwrap();
        fs.set_xattr("/attributes", "user.large", &content(9, 3000), SetMode::Any).unwrap();
        fs.checkpoint().unwrap();

        let synced = |path: &str| -> bool {
            let before = fs.volume().footer_version();
            fs.open_file(path).unwrap().sync_all().unwrap();
            let checkpoint = fs.volume().footer_version() != before;
            // Once more: now there is nothing that needs one.
            let before = fs.volume().footer_version();
            fs.open_file(path).unwrap().write_at(b"again", 0).unwrap();
            fs.open_file(path).unwrap().sync_all().unwrap();
            let links = fs.metadata(path).unwrap().links;
            assert_eq!(fs.volume().footer_version() != before, links != 1, "{path}");
            checkpoint
        };
        assert!(!synced("/plain"));
        fs.rename("/renamed", "/other", RenameMode::NoReplace).unwrap();
        assert!(synced("/other"));
        fs.link("/linked", "/dir/link").unwrap();
        assert!(synced("/linked"));
        fs.remove_file("/two").unwrap();
        assert!(synced("/dir/second"));
        fs.create_dir("/fresh", 0o755).unwrap();
        make("/fresh/file", 10);
        assert!(synced("/fresh/file"));
        // A new file takes the name of one that moved away: the old one must not go.
        fs.rename("/dir/moved", "/moved", RenameMode::NoReplace).unwrap();
        make("/dir/moved", 10);
        assert!(synced("/dir/moved"));
        make("/left", 10);
        fs.checkpoint().unwrap();
        fs.link("/left", "/dir/left").unwrap();
        fs.remove_file("/left").unwrap();
        make("/left", 20);
        assert!(synced("/left"));
        assert_eq!(fs.metadata("/dir/left").unwrap().size, 10);
        fs.create_dir("/gone", 0o755).unwrap();
        make("/gone/child", 10);
        fs.checkpoint().unwrap();
        fs.remove_all("/gone").unwrap();
        make("/gone", 10);
        assert!(synced("/gone"));
        // Data that a sync left in the inode, and that moved to a block; nobody waits for what was not synced before.
        make("/grown", 10).sync_all().unwrap();
        fs.open_file("/grown").unwrap().write_at(&content(2, 8000), 10).unwrap();
        assert!(synced("/grown"));
        make("/growing", 10).write_at(&content(2, 8000), 10).unwrap();
        assert!(!synced("/growing"));
        // Nodes that went.
        fs.open_file("/cut").unwrap().set_len(10).unwrap();
        assert!(synced("/cut"));
        fs.remove_xattr("/attributes", "user.large").unwrap();
        assert!(synced("/attributes"));
        let before = fs.volume().footer_version();
        fs.open_dir("/dir").unwrap().sync_all().unwrap();
        assert_ne!(fs.volume().footer_version(), before);
        // Only strict syncs bring along what else happened in the directory.
        make("/temporary", 10);
        fs.rename("/temporary", "/target", RenameMode::Replace).unwrap();
        make("/new", 10);
        assert_eq!(synced("/new"), mode == FsyncMode::Strict);
        fs.remove_file("/plain").unwrap();
        make("/newer", 10);
        assert_eq!(synced("/newer"), mode == FsyncMode::Strict);

        let image = crashed(fs, &device);
        recovered(&image, |fs| {
            assert!(read(fs, "/moved") == content(1, 5 << 20));
            assert_eq!(fs.metadata("/cut").unwrap().size, 10);
            assert!(fs.xattrs("/attributes").unwrap().is_empty());
            for path in ["/other", "/linked", "/dir/link", "/dir/second", "/fresh/file", "/dir/moved", "/gone", "/new"]
            {
                assert_eq!(&read(fs, path)[..5], b"again", "{path}");
            }
            assert!(!fs.exists("/two").unwrap() && !fs.exists("/renamed").unwrap());
        });
    }
}

/// A new file takes the name of one that was unlinked, or of one that was synced before under the same name.
#[test]
fn names_that_are_taken_again() {
    let (device, fs) = start(Features(0), FsyncMode::Posix);
    fs.create_dir("/many", 0o755).unwrap();
    for number in 0..400 {
        fs.create_file(format!("/many/file-{number}"), 0o644).unwrap().write_at(&content(1, 9000), 0).unwrap();
    }
    fs.checkpoint().unwrap();
    let version = fs.volume().footer_version();
    for number in (0..400).step_by(5) {
        let path = format!("/many/file-{number}");
        for round in 0..3 {
            fs.remove_file(&path).unwrap();
            let file = fs.create_file(&path, 0o644).unwrap();
            file.write_at(&content(round, 5000), 0).unwrap();
            file.sync_all().unwrap();
        }
    }
    assert_eq!(fs.volume().footer_version(), version);
    let image = crashed(fs, &device);
    let report = recovered(&image, |fs| {
        assert_eq!(fs.read_dir("/many").unwrap().count(), 400);
        for number in 0..400 {
            let expected = if number % 5 == 0 { content(2, 5000) } else { content(1, 9000) };
            assert!(read(fs, &format!("/many/file-{number}")) == expected, "{number}");
        }
    });
    assert_eq!((report.files, report.new_files), (240, 240));
}

/// Opened without recovery: the last checkpoint, and for writing that is what stays.
#[test]
fn without_recovery_the_checkpoint_is_shown() {
    let (device, fs) = start(Features(0), FsyncMode::Posix);
    fs.create_file("/synced", 0o644).unwrap().sync_all().unwrap();
    let image = crashed(fs, &device);
    let options = |read_only: bool| Options::new().volume(VolumeOptions::new().recovery(false).read_only(read_only));
    let fs = FileSystem::open(image.clone(), options(true)).unwrap();
    assert!(!fs.exists("/synced").unwrap());
    assert!(matches!(fs.create_file("/more", 0o644), Err(FsError::ReadOnly)));
    drop(fs);
    let fs = FileSystem::open(image.clone(), Options::new().read_only(true)).unwrap();
    assert!(fs.exists("/synced").unwrap());
    assert!(matches!(fs.create_file("/more", 0o644), Err(FsError::ReadOnly)));
    drop(fs);
    let fs = FileSystem::open(image.clone(), options(false)).unwrap();
    fs.create_file("/more", 0o644).unwrap();
    fs.close().unwrap();
    assert_clean(&image);
    let fs = FileSystem::open(image, Options::new()).unwrap();
    assert!(!fs.exists("/synced").unwrap() && fs.exists("/more").unwrap());
}

/// Nothing else makes it stay: the power goes before the program writes a checkpoint.
#[test]
fn what_was_given_up_is_not_found_again() {
    let (device, fs) = start(Features(0), FsyncMode::Posix);
    for number in 0..20 {
        let file = fs.create_file(format!("/synced-{number}"), 0o644).unwrap();
        file.write_at(&content(number, 40_000), 0).unwrap();
        file.sync_all().unwrap();
    }
    let image = crashed(fs, &device);
    let without = Options::new().volume(VolumeOptions::new().recovery(false));
    let fs = FileSystem::open(image.clone(), without).unwrap();
    // In the places of what was given up.
    fs.create_file("/more", 0o644).unwrap().write_at(&content(100, 4 << 20), 0).unwrap();
    let image = crashed(fs, &image);
    let report = recovered(&image, |fs| {
        let names: Vec<_> = fs.read_dir("/").unwrap().map(|entry| entry.unwrap().name).collect();
        assert!(!names.iter().any(|name| name.starts_with(b"synced")), "given up, and found again");
    });
    assert_eq!(report, RecoveryReport::default());
}

/// The log goes on in other segments, and many threads write it.
#[test]
fn a_chain_through_several_segments_and_threads() {
    const THREADS: usize = 8;
    const FILES: usize = 40;
    const SYNCS: usize = 6;
    let (device, fs) = start(all_features(), FsyncMode::Posix);
    for thread in 0..THREADS {
        fs.create_dir(format!("/{thread}"), 0o755).unwrap();
    }
    fs.checkpoint().unwrap();
    let version = fs.volume().footer_version();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let fs = &fs;
            scope.spawn(move || {
                for number in 0..FILES {
                    let file = fs.create_file(format!("/{thread}/{number}"), 0o644).unwrap();
                    for sync in 0..SYNCS {
                        file.write_at(&content(sync as u8, 4096), sync as u64 * 4096).unwrap();
                        file.sync_all().unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(fs.volume().footer_version(), version);
    let image = crashed(fs, &device);
    let report = recovered(&image, |fs| {
        for thread in 0..THREADS {
            for number in 0..FILES {
                let bytes = read(fs, &format!("/{thread}/{number}"));
                assert!((0..SYNCS).all(|sync| bytes[sync * 4096..][..4096] == content(sync as u8, 4096)));
            }
        }
    });
    assert_eq!(report.files, (THREADS * FILES) as u64);
    assert!(report.nodes >= (THREADS * FILES * SYNCS) as u64 && report.nodes > 3 * 512);
}

/// Every error of the device in a sync is one of the sync; the volume stops, says why, and what was synced before is
/// there.
#[test]
fn an_error_in_a_sync_stops_the_volume_and_is_recorded() {
    for (rule, reason) in [
        (FaultRule::on([Operation::Write]).after(1), Some("write_fail")),
        (FaultRule::on([Operation::Write]).after(1).fault(Fault::Error(28)), Some("write_fail")),
        // After a failed flush nothing is written any more, this record neither.
        (FaultRule::on([Operation::Flush]), None),
    ] {
        let device = formatted(64, &FormatOptions::default().with_features(all_features()));
        let faulty = Arc::new(FaultDevice::new(device.clone()));
        let fs = FileSystem::open(faulty.clone(), Options::new()).unwrap();
        let before = fs.create_file("/before", 0o644).unwrap();
        before.write_at(&content(1, 9000), 0).unwrap();
        before.sync_all().unwrap();
        faulty.arm(rule);
        before.write_at(&content(2, 9000), 0).unwrap();
        assert!(matches!(before.sync_all(), Err(FsError::Volume(f2fs_volume::VolumeError::Device(_)))));
        assert!(fs.volume().stopped().is_some());
        faulty.disarm();
        assert!(matches!(before.sync_all(), Err(FsError::Volume(f2fs_volume::VolumeError::Stopped { .. }))));
        assert!(fs.create_file("/after", 0o644).is_err());
        assert!(read(&fs, "/before") == content(2, 9000), "what is in memory can still be read");
        drop((before, fs));
        let image = Arc::new(device.snapshot());
        assert_consistent(&image);
        f2fs_oracle::assert_accepted(f2fs_test_kit::volumes::TempPathExt::path(&saved(&image)));
        let fs = FileSystem::open(image, Options::new()).unwrap();
        let found = read(&fs, "/before");
        assert!(found == content(1, 9000) || reason.is_none() && found == content(2, 9000));
        let stops: Vec<&str> = fs.volume().superblock().stops().iter().map(|(name, _)| *name).collect();
        assert_eq!(stops, Vec::from_iter(reason));
        assert!(fs.volume().superblock().errors().is_empty());
    }
}

/// The device after a crash behind the sync of a new file `/a`, or behind a durable write to it.
fn crashed_behind_a_new_file(fs: FileSystem, device: &MemoryDevice, by_a_write: bool) -> Arc<MemoryDevice> {
    let new = fs.create_file("/a", 0o644).unwrap();
    let content = content(3, 9000);
    if by_a_write {
        // Not in its inode any more.
        new.write_at(&[0; 9000], 0).unwrap();
        new.write_durable(&content, 0).unwrap();
    } else {
        new.write_at(&content, 0).unwrap();
        new.sync_all().unwrap();
    }
    drop(new);
    crashed(fs, device)
}

/// A file that a rename took one of its names from lives on under another, which no checkpoint has: a new file that is
/// synced under the name that went must not take its last durable name away.
#[test]
fn a_name_that_a_rename_took_from_a_file_with_another_is_not_given_away_by_a_sync() {
    for by_a_write in [false, true] {
        let (device, fs) = start(Features(0), FsyncMode::Posix);
        fs.create_file("/a", 0o644).unwrap().write_at(&content(1, 9000), 0).unwrap();
        fs.create_file("/c", 0o644).unwrap().write_at(&content(2, 9000), 0).unwrap();
        fs.checkpoint().unwrap();
        fs.link("/a", "/b").unwrap();
        fs.rename("/c", "/a", RenameMode::Replace).unwrap();
        fs.remove_file("/a").unwrap();
        let image = crashed_behind_a_new_file(fs, &device, by_a_write);
        recovered(&image, |fs| {
            assert_eq!(read(fs, "/a"), content(3, 9000));
            assert_eq!(read(fs, "/b"), content(1, 9000), "it had a name at every moment, and was durable");
        });
    }
}

/// The same where both names go: what is left of the file behind the crash is all of it, or nothing.
#[test]
fn the_last_of_several_names_is_not_given_away_by_a_sync() {
    for by_a_write in [false, true] {
        let (device, fs) = start(Features(0), FsyncMode::Posix);
        fs.create_file("/a", 0o644).unwrap().write_at(&content(1, 9000), 0).unwrap();
        fs.link("/a", "/b").unwrap();
        fs.checkpoint().unwrap();
        fs.remove_file("/b").unwrap();
        fs.remove_file("/a").unwrap();
        let image = crashed_behind_a_new_file(fs, &device, by_a_write);
        recovered(&image, |fs| {
            assert_eq!(read(fs, "/a"), content(3, 9000));
            assert!(!fs.exists("/b").unwrap(), "its name went before the other one");
        });
    }
}

/// `cargo test -p f2fs-files --features mutants --test fsync` runs this.
#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    f2fs_sync::assert_found("what_was_given_up_is_not_found_again", &["given_up_is_found_again"], "found again");
}
