//! Files that are made without a name, and get one when they are whole.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use f2fs_device::MemoryDevice;
use f2fs_files::{
    FileKind, FileSystem, FsError, InodeRef, JournalMode, JournalOptions, NewFile, Options, RecoveryReport,
    create_journal,
};
use f2fs_format::feature::Features;
use f2fs_journal::{RegionMedium, SharedMedium};
use f2fs_pmem::MemoryRegion;
use f2fs_test_kit::synced::{content, read, start};
use f2fs_test_kit::volumes::{TempPathExt, assert_clean, assert_consistent, saved};
use f2fs_volume::{FsyncMode, Volume, VolumeOptions};

fn file() -> NewFile {
    NewFile::new(FileKind::Regular, 0o640)
}

/// A file without a name that holds so many bytes.
fn unnamed(fs: &FileSystem, seed: u8, len: usize) -> InodeRef {
    let made = fs.root().unwrap().create_unnamed(&file()).unwrap();
    assert_eq!(made.open_file().unwrap().write_at(&content(seed, len), 0).unwrap(), len);
    made
}

fn new() -> (Arc<MemoryDevice>, FileSystem) {
    start(Features(0), FsyncMode::Posix)
}

/// What is on the device, as fsck.f2fs and our check accept it.
fn crashed(fs: FileSystem, device: &MemoryDevice) -> Arc<MemoryDevice> {
    drop(fs);
    let image = Arc::new(device.snapshot());
    assert_consistent(&image);
    f2fs_oracle::assert_accepted(saved(&image).path());
    image
}

#[test]
fn it_is_there_while_somebody_has_it() {
    let (device, fs) = new();
    let before = fs.statfs();
    let made = unnamed(&fs, 1, 3 << 20);
    assert_eq!((made.metadata().unwrap().links, made.metadata().unwrap().size), (0, 3 << 20));
    assert_eq!(fs.read_dir("/").unwrap().count(), 0);
    assert_eq!(fs.inode(made.ino()).unwrap().metadata().unwrap().permissions, 0o640);
    made.sync_all().unwrap();
    drop(made);
    fs.checkpoint().unwrap();
    assert_eq!(fs.statfs().valid_blocks, before.valid_blocks);
    assert_eq!(fs.statfs().valid_inodes, before.valid_inodes);

    // What a crash leaves of one is freed by the next open.
    let made = unnamed(&fs, 2, 100_000);
    fs.checkpoint().unwrap();
    let image = Arc::new(device.snapshot());
    drop((made, fs));
    assert_consistent(&image);
    f2fs_oracle::assert_accepted(saved(&image).path());
    let fs = FileSystem::open(image.clone(), Options::new()).unwrap();
    assert_eq!(fs.statfs().valid_inodes, before.valid_inodes);
    fs.close().unwrap();
    assert_clean(&image);
}

#[test]
fn it_gets_names_and_only_such_a_file_gets_a_first_one_again() {
    let (device, fs) = new();
    let root = fs.root().unwrap();
    let made = unnamed(&fs, 1, 9000);
    root.link("a", &made).unwrap();
    root.link("b", &made).unwrap();
    assert!(matches!(root.link("a", &made), Err(FsError::Exists)));
    assert_eq!((made.metadata().unwrap().links, read(&fs, "/a")), (2, content(1, 9000)));
    fs.remove_file("/a").unwrap();
    fs.remove_file("/b").unwrap();
    assert_eq!(made.metadata().unwrap().links, 0);
    assert!(matches!(root.link("a", &made), Err(FsError::NotFound)), "it had names, and they went");
    assert!(matches!(root.link_over("a", &made), Err(FsError::NotFound)));
    assert!(!fs.exists("/a").unwrap());

    let fifo = root.create_unnamed(&NewFile::new(FileKind::Fifo, 0o600)).unwrap();
    root.link("pipe", &fifo).unwrap();
    assert_eq!(fs.metadata("/pipe").unwrap().kind, FileKind::Fifo);
    for kind in [FileKind::Directory, FileKind::Symlink] {
        let refused = root.create_unnamed(&NewFile::new(kind, 0o700)).unwrap_err();
        assert!(matches!(refused, FsError::WrongKind { .. }), "{refused}");
    }
    assert!(matches!(fifo.create_unnamed(&file()), Err(FsError::NotDirectory)));
    let gone = root.create("gone", &NewFile::new(FileKind::Directory, 0o700)).unwrap();
    let late = gone.create_unnamed(&file()).unwrap();
    root.remove_dir("gone").unwrap();
    assert!(matches!(gone.create_unnamed(&file()), Err(FsError::NotFound)));
    assert!(matches!(gone.link("x", &late), Err(FsError::NotFound)));
    assert!(matches!(gone.link_over("x", &late), Err(FsError::NotFound)));
    root.link("late", &late).unwrap();
    drop((made, fifo, gone, late, root));
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn it_takes_the_name_of_another_at_one_stroke() {
    let (device, fs) = new();
    let root = fs.inode_at("/").unwrap();
    let empty = fs.statfs();
    root.create("a", &file()).unwrap().open_file().unwrap().write_at(&content(1, 50_000), 0).unwrap();
    let open = fs.open_file("/a").unwrap();
    let made = unnamed(&fs, 2, 9000);
    root.link_over("a", &made).unwrap();
    assert_eq!(read(&fs, "/a"), content(2, 9000));
    let mut old = vec![0; 50_000];
    assert_eq!(open.read_at(&mut old, 0).unwrap(), 50_000);
    assert!(old == content(1, 50_000), "who has it open keeps it");
    drop(open);

    // Onto a name of its own, onto none, onto one of several, onto a directory.
    root.link_over("a", &made).unwrap();
    root.link_over("b", &made).unwrap();
    assert_eq!(made.metadata().unwrap().links, 2);
    let third = unnamed(&fs, 3, 100);
    root.link_over("b", &third).unwrap();
    assert_eq!((made.metadata().unwrap().links, third.metadata().unwrap().links), (1, 1));
    fs.create_dir("/dir", 0o755).unwrap();
    let fourth = unnamed(&fs, 4, 100);
    assert!(matches!(root.link_over("dir", &fourth), Err(FsError::IsDirectory)));
    assert!(matches!(root.link_over(".", &fourth), Err(FsError::IsDirectory)));
    assert!(matches!(root.link_over("..", &fourth), Err(FsError::IsDirectory)));
    let dir = root.lookup("dir").unwrap();
    for name in ["a", "free"] {
        assert!(matches!(root.link_over(name, &dir), Err(FsError::DirectoryLink)), "{name}");
    }
    assert_eq!(fourth.metadata().unwrap().links, 0);
    drop((made, third, fourth, dir));
    for name in ["/a", "/b"] {
        fs.remove_file(name).unwrap();
    }
    fs.remove_dir("/dir").unwrap();
    fs.checkpoint().unwrap();
    assert_eq!(fs.statfs().valid_blocks, empty.valid_blocks, "nothing is left of any");
    drop(root);
    fs.close().unwrap();
    assert_clean(&device);
}

/// In the last checkpoint it has no name, and is on the list of what the next open frees.
#[test]
fn a_synced_one_outlives_a_crash_under_its_name() {
    for over in [false, true] {
        for listed in [false, true] {
            let (device, fs) = new();
            let root = fs.root().unwrap();
            root.create("a", &file()).unwrap().open_file().unwrap().write_at(&content(1, 9000), 0).unwrap();
            fs.checkpoint().unwrap();
            let made = unnamed(&fs, 2, 30_000);
            if listed {
                fs.checkpoint().unwrap();
            }
            let name = if over { "a" } else { "b" };
            root.link_over(name, &made).unwrap();
            made.sync_all().unwrap();
            drop((made, root));
            let image = crashed(fs, &device);
            let fs = FileSystem::open(image.clone(), Options::new()).unwrap();
            assert_eq!(read(&fs, &format!("/{name}")), content(2, 30_000));
            assert_eq!(fs.metadata(format!("/{name}")).unwrap().links, 1);
            assert_eq!(fs.exists("/a").unwrap() && fs.exists("/b").unwrap(), !over);
            fs.close().unwrap();
            assert_clean(&image);
        }
    }
}

/// Its first name may be in another directory than the one that it was made in: there it is behind a crash.
#[test]
fn a_synced_one_is_found_in_the_directory_that_it_got_its_name_in() {
    for listed in [false, true] {
        let (device, fs) = new();
        fs.create_dir("/d", 0o755).unwrap();
        fs.checkpoint().unwrap();
        let made = unnamed(&fs, 2, 30_000);
        if listed {
            fs.checkpoint().unwrap();
        }
        fs.root().unwrap().lookup("d").unwrap().link("b", &made).unwrap();
        made.sync_all().unwrap();
        drop(made);
        let image = crashed(fs, &device);
        let fs = FileSystem::open(image.clone(), Options::new()).unwrap();
        assert_eq!(read(&fs, "/d/b"), content(2, 30_000), "{listed}");
        assert!(!fs.exists("/b").unwrap());
        fs.close().unwrap();
        assert_clean(&image);
    }
}

/// It has a name that is not durable, and another file is synced: then nothing of it is there, and no harm is done.
#[test]
fn one_that_was_not_synced_is_gone_behind_a_crash() {
    let (device, fs) = new();
    let root = fs.root().unwrap();
    root.create("a", &file()).unwrap().open_file().unwrap().write_at(&content(1, 9000), 0).unwrap();
    let made = unnamed(&fs, 2, 30_000);
    fs.checkpoint().unwrap();
    root.link_over("a", &made).unwrap();
    let other = root.create("other", &file()).unwrap();
    other.sync_all().unwrap();
    drop((made, other, root));
    let image = crashed(fs, &device);
    let fs = FileSystem::open(image.clone(), Options::new()).unwrap();
    assert_eq!(read(&fs, "/a"), content(1, 9000));
    assert!(fs.exists("/other").unwrap());
    fs.close().unwrap();
    assert_clean(&image);
}

#[test]
fn a_journal_has_its_name_as_well() {
    for listed in [false, true] {
        let device = f2fs_test_kit::volumes::formatted(64, &Default::default());
        let medium: SharedMedium = Arc::new(RegionMedium::new(MemoryRegion::new(1 << 20).unwrap()));
        create_journal(device.clone(), medium.clone(), false).unwrap();
        let options = || Options::new().journal(JournalOptions::new(medium.clone(), JournalMode::Ordered));
        let fs = FileSystem::open(device.clone(), options()).unwrap();
        fs.create_file("/a", 0o644).unwrap().write_at(&content(1, 9000), 0).unwrap();
        fs.checkpoint().unwrap();
        let made = unnamed(&fs, 2, 30_000);
        if listed {
            fs.checkpoint().unwrap();
        }
        fs.root().unwrap().link_over("a", &made).unwrap();
        let checkpoints = fs.stats().checkpoints;
        made.sync_all().unwrap();
        let took = fs.stats().checkpoints - checkpoints;
        assert_eq!(took, u64::from(listed), "a record has it, unless the checkpoint lists it as an orphan");
        drop((made, fs));
        let image = Arc::new(device.snapshot());
        let fs = FileSystem::open(image.clone(), options()).unwrap();
        assert_eq!(fs.recovered() != RecoveryReport::default(), !listed);
        assert_eq!(read(&fs, "/a"), content(2, 30_000));
        fs.close().unwrap();
        assert_clean(&image);
    }
}

#[test]
fn a_volume_is_full_of_them_and_empty_again() {
    let (device, fs) = new();
    let root = fs.root().unwrap();
    let mut all = Vec::new();
    let refused = loop {
        match root.create_unnamed(&file()) {
            Ok(made) => all.push(made),
            Err(error) => break error,
        }
    };
    assert!(refused.is_no_space(), "{refused}");
    assert!(all.len() > 10_000, "{}", all.len());
    fs.checkpoint().unwrap();
    let last = all.pop().unwrap();
    root.link("one", &last).unwrap();
    drop((last, all));
    assert_eq!(fs.statfs().valid_inodes, 2);
    root.link("two", &unnamed(&fs, 1, 100)).unwrap();
    drop(root);
    fs.close().unwrap();
    assert_clean(&device);
}

/// Threads give one name to file after file. Who reads finds a whole one, always.
#[test]
fn a_name_that_is_given_away_again_and_again_always_leads_to_a_whole_file() {
    let (device, fs) = new();
    let root = fs.root().unwrap();
    root.link("a", &unnamed(&fs, 0, 9000)).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (1..3_u8)
            .map(|seed| {
                let (fs, root) = (&fs, &root);
                scope.spawn(move || (0..200).for_each(|_| root.link_over("a", &unnamed(fs, seed, 9000)).unwrap()))
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let found = read(&fs, "/a");
                assert!((0..3).any(|seed| found == content(seed, 9000)), "{} bytes", found.len());
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs.checkpoint().unwrap();
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs.metadata("/a").unwrap().links, 1);
    assert_eq!(fs.statfs().valid_inodes, 2);
    drop(root);
    fs.close().unwrap();
    assert_clean(&device);
}

#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    let found = |test, mutant, sign| f2fs_sync::assert_found(test, &[mutant], sign);
    found("it_gets_names_and_only_such_a_file_gets_a_first_one_again", "named_file_stays_an_orphan", "panicked");
    found("a_journal_has_its_name_as_well", "named_orphan_in_a_record", "a record has it");
}

/// Whoever makes such a file anywhere and names it elsewhere finds its first name in the inode, where a repair looks for it.
#[test]
fn its_inode_says_where_its_first_name_stands() {
    let (device, fs) = new();
    fs.create_dir("/dir", 0o755).unwrap();
    fs.create_file("/dir/replaced", 0o644).unwrap();
    let dir = fs.inode_at("/dir").unwrap();
    for name in ["new", "replaced"] {
        dir.link_over(name, &unnamed(&fs, 3, 10_000)).unwrap();
    }
    fs.checkpoint().unwrap();
    let volume = Volume::open(Arc::new(device.snapshot()), &VolumeOptions::new().read_only(true)).unwrap();
    for name in ["new", "replaced"] {
        let node = volume.nodes().get(dir.lookup(name).unwrap().ino()).unwrap();
        let block = node.read();
        let raw = block.inode();
        assert_eq!((raw.i_pino.get(), &raw.i_name[..name.len()]), (dir.ino().0, name.as_bytes()));
    }
}

/// fsck.f2fs would take the number for the address of a block.
#[test]
fn device_files_without_a_name_are_accepted_and_keep_their_number() {
    for features in [Features(0), Features::EXTRA_ATTR] {
        let (device, fs) = start(features, FsyncMode::Posix);
        let root = fs.root().unwrap();
        let numbers = [(FileKind::CharDevice, 1, 3), (FileKind::BlockDevice, 259, 70_000)];
        let mut held = Vec::new();
        for (kind, major, minor) in numbers {
            let new = NewFile::new(kind, 0o600).device(major, minor);
            held.push((root.create_unnamed(&new).unwrap(), major, minor));
            held.push((root.create("gone", &new).unwrap(), major, minor));
            root.remove_file("gone").unwrap();
        }
        let shown = |made: &InodeRef| {
            let number = made.metadata().unwrap().device.unwrap();
            (number.major, number.minor)
        };
        fs.checkpoint().unwrap();
        let image = Arc::new(device.snapshot());
        assert_consistent(&image);
        f2fs_oracle::assert_accepted(saved(&image).path());
        for (number, (made, major, minor)) in held.iter().enumerate() {
            assert_eq!(shown(made), (*major, *minor));
            if number % 2 == 0 {
                root.link(number.to_string(), made).unwrap();
                assert_eq!(shown(made), (*major, *minor));
            }
        }
        drop(held);
        drop(root);
        fs.close().unwrap();
        assert_clean(&device);
        let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
        assert_eq!(shown(&fs.inode_at("/0").unwrap()), (1, 3));
        assert_eq!(shown(&fs.inode_at("/2").unwrap()), (259, 70_000));
    }
}
