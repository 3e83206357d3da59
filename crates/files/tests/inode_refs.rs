//! References to inodes: operations by inode and name, and inodes that outlive their names.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::thread;

use f2fs_device::MemoryDevice;
use f2fs_files::{
    FileKind, FileSystem, FsError, InodeRef, NewFile, Nid, Options, RenameMode, SetAttributes, SetMode, SetTimes, Time,
};

fn device() -> Arc<MemoryDevice> {
    let device = Arc::new(MemoryDevice::new(32 * 1024));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    device
}

fn file() -> NewFile {
    NewFile::new(FileKind::Regular, 0o644)
}

fn directory() -> NewFile {
    NewFile::new(FileKind::Directory, 0o755)
}

#[test]
fn names_are_made_moved_and_removed() {
    let fs = FileSystem::open(device(), Options::new()).unwrap();
    let root = fs.root().unwrap();
    let dir = root.create("d", &directory()).unwrap();
    let one = dir.create("one", &file().owner(1, 2)).unwrap();
    assert_eq!(dir.lookup("one").unwrap().ino(), one.ino());
    assert_eq!(dir.lookup("..").unwrap().ino(), root.ino());
    assert_eq!(dir.lookup(".").unwrap().ino(), dir.ino());
    assert!(matches!(one.lookup("x"), Err(FsError::NotDirectory)));
    assert!(matches!(dir.create("..", &file()), Err(FsError::Exists)));
    assert!(matches!(dir.create("a/b", &file()), Err(FsError::Name(_))));
    assert!(matches!(dir.remove_file(".."), Err(FsError::Name(_))));
    assert!(matches!(root.remove_dir("d"), Err(FsError::NotEmpty)));
    root.link("two", &one).unwrap();
    assert_eq!(fs.metadata("/two").unwrap().links, 2);
    let link = root.symlink(b"d/one", "l", &file()).unwrap();
    assert_eq!(link.read_link().unwrap(), b"d/one");
    root.rename("two", &dir, "l2", RenameMode::NoReplace).unwrap();
    assert!(matches!(root.rename("l", &dir, "l2", RenameMode::NoReplace), Err(FsError::Exists)));
    root.rename("l", &dir, "l2", RenameMode::Exchange).unwrap();
    assert_eq!(root.lookup("l").unwrap().ino(), one.ino());
    assert_eq!(dir.lookup("l2").unwrap().kind(), FileKind::Symlink);
    one.set_xattr("user.a", b"b", SetMode::Any).unwrap();
    assert_eq!(one.xattr("user.a").unwrap(), b"b");
    one.remove_xattr("user.a").unwrap();
    assert!(one.xattrs().unwrap().is_empty());
    fs.close().unwrap();
}

#[test]
fn attributes_change_in_one_step_and_the_rest_stays() {
    let fs = FileSystem::open(device(), Options::new()).unwrap();
    let made = fs.root().unwrap().create("f", &file().owner(5, 6)).unwrap();
    let time = Time { seconds: -7, nanoseconds: 8 };
    let change = SetAttributes::default().permissions(Some(0o4711)).owner(None, Some(9)).times(None, Some(time));
    made.set_attributes(&change).unwrap();
    let data = made.metadata().unwrap();
    assert_eq!((data.permissions, data.uid, data.gid, data.modified), (0o4711, 5, 9, time));
    assert!(data.changed > time);
    let wrong = SetAttributes::default().times(Some(Time { seconds: 0, nanoseconds: 1 << 30 }), None);
    assert!(matches!(made.set_attributes(&wrong), Err(FsError::Time { .. })));
}

#[test]
fn a_file_without_a_name_lives_until_its_last_reference_goes() {
    let device = device();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let root = fs.root().unwrap();
    let before = fs.statfs().valid_blocks;
    let made = root.create("f", &file()).unwrap();
    made.open_file().unwrap().write_at(&[7; 1 << 20], 0).unwrap();
    root.remove_file("f").unwrap();
    assert!(matches!(root.lookup("f"), Err(FsError::NotFound)));
    assert!(matches!(root.link("again", &made), Err(FsError::NotFound)));
    let mut byte = [0];
    made.open_file().unwrap().read_at(&mut byte, 1 << 19).unwrap();
    assert_eq!((byte, made.metadata().unwrap().links), ([7], 0));
    assert!(fs.statfs().valid_blocks > before + 200);
    drop(made);
    assert_eq!(fs.statfs().valid_blocks, before);

    let gone = root.create("d", &directory()).unwrap();
    root.remove_dir("d").unwrap();
    assert!(matches!(gone.create("x", &file()), Err(FsError::NotFound)));
    assert!(matches!(gone.lookup("x"), Err(FsError::NotFound)));
}

#[test]
fn inodes_of_two_file_systems_do_not_mix() {
    let [one, two] = [device(), device()].map(|device| FileSystem::open(device, Options::new()).unwrap());
    let stranger = two.root().unwrap().create("f", &file()).unwrap();
    let root = one.root().unwrap();
    assert!(matches!(root.link("f", &stranger), Err(FsError::OtherVolume)));
    assert!(matches!(two.root().unwrap().rename("f", &root, "f", RenameMode::Replace), Err(FsError::OtherVolume)));
}

/// One name is made, moved, looked up, read and removed by threads at once. A reference leads to the inode that it was
/// made for, whatever becomes of the name. In the end all space is free again.
#[test]
fn names_go_while_others_hold_the_inodes() {
    let fs = FileSystem::open(device(), Options::new()).unwrap();
    let root = fs.root().unwrap();
    let (one, two) = (root.create("1", &directory()).unwrap(), root.create("2", &directory()).unwrap());
    fs.checkpoint().unwrap();
    let before = fs.statfs().valid_blocks;
    let stop = AtomicBool::new(false);
    let race = |result: Result<(), FsError>| match result {
        Ok(()) | Err(FsError::NotFound | FsError::Exists) => {}
        Err(error) => panic!("{error}"),
    };
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..2000_u32 {
                let Ok(made) = one.create("f", &file()) else { continue };
                let file = made.open_file().unwrap();
                file.write_at(&round.to_le_bytes().repeat(2048), 0).unwrap();
                race(one.remove_file("f"));
            }
        });
        for (from, to) in [(&one, &two), (&two, &one)] {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    race(from.rename("f", to, "f", RenameMode::Replace));
                    race(to.remove_file("f"));
                }
            });
        }
        for dir in [&one, &two] {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    look(dir);
                }
            });
        }
        writer.join().unwrap();
        stop.store(true, Relaxed);
    });
    race(one.remove_file("f"));
    race(two.remove_file("f"));
    fs.checkpoint().unwrap();
    assert_eq!(fs.statfs().valid_blocks, before);
    assert_eq!(fs.statfs().valid_inodes, 3);
    fs.close().unwrap();
}

fn look(dir: &InodeRef) {
    let Ok(found) = dir.lookup("f") else { return };
    let ino = found.ino();
    assert_eq!(found.metadata().unwrap().ino, ino);
    let mut bytes = [0; 8];
    let file = found.open_file().unwrap();
    drop(found);
    if file.read_at(&mut bytes, 4092).unwrap() == 8 {
        assert_eq!(bytes[..4], bytes[4..], "bytes of another file");
    }
    assert_eq!(file.metadata().unwrap().ino, ino);
}

/// A large directory notes changes of its names in memory. Setting other attributes, or failing to, loses none of them.
#[test]
fn attributes_keep_the_time_of_a_directorys_last_change() {
    static SECONDS: AtomicI64 = AtomicI64::new(1000);
    let device = device();
    let options = || Options::new().clock(|| Time { seconds: SECONDS.load(Relaxed), nanoseconds: 0 });
    let fs = FileSystem::open(device.clone(), options()).unwrap();
    fs.create_dir("/d", 0o755).unwrap();
    for number in 0..300 {
        fs.create_file(format!("/d/{number}"), 0o644).unwrap();
    }
    fs.checkpoint().unwrap();
    let (read, set) = (Time { seconds: 5, nanoseconds: 0 }, Time { seconds: 6, nanoseconds: 0 });
    let times = || fs.metadata("/d").map(|stat| (stat.accessed.seconds, stat.modified.seconds, stat.changed.seconds));
    let root = fs.root().unwrap();
    let directory = root.lookup("d").unwrap();

    SECONDS.store(2000, Relaxed);
    fs.create_file("/d/new", 0o644).unwrap();
    SECONDS.store(3000, Relaxed);
    fs.set_times("/d", SetTimes::new().accessed(read)).unwrap();
    assert_eq!(times().unwrap(), (5, 2000, 3000));

    SECONDS.store(4000, Relaxed);
    fs.create_file("/d/newer", 0o644).unwrap();
    directory.set_attributes(&SetAttributes::default().changed(Some(read))).unwrap();
    assert_eq!(times().unwrap(), (5, 4000, 5));

    SECONDS.store(5000, Relaxed);
    fs.create_file("/d/newest", 0o644).unwrap();
    directory.set_attributes(&SetAttributes::default().times(None, Some(set))).unwrap();
    assert_eq!(times().unwrap(), (5, 6, 5000));
    drop((root, directory));
    fs.close().unwrap();
    let stat = FileSystem::open(device.clone(), options()).unwrap().metadata("/d").unwrap();
    assert_eq!((stat.modified.seconds, stat.changed.seconds), (6, 5000));
}

#[test]
fn an_inode_is_found_by_its_number_as_long_as_it_has_a_name() {
    let device = device();
    let (plain, large, dir, fork) = {
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let root = fs.root().unwrap();
        let dir = root.create("d", &directory()).unwrap();
        let plain = dir.create("plain", &file()).unwrap();
        root.link("other", &plain).unwrap();
        dir.remove_file("plain").unwrap();
        let large = root.create("large", &file()).unwrap();
        large.open_file().unwrap().set_len(1 << 30).unwrap();
        large.open_file().unwrap().write_at(&[1; 4096], (1 << 30) - 4096).unwrap();
        let numbers = (plain.ino(), large.ino(), dir.ino());
        drop((plain, large, dir, root));
        let after = fs.root().unwrap().create("after", &file()).unwrap().ino();
        fs.close().unwrap();
        (numbers.0, numbers.1, numbers.2, after)
    };
    let fs = FileSystem::open(device, Options::new()).unwrap();
    assert_eq!(fs.inode(plain).unwrap().metadata().unwrap().links, 1);
    assert_eq!(fs.inode(dir).unwrap().kind(), FileKind::Directory);
    assert_eq!(fs.inode(fs.root().unwrap().ino()).unwrap().kind(), FileKind::Directory);
    // The nodes of the large file have numbers, and are no inodes; neither are those of the volume's own, nor free ones.
    let nodes = (large.0 + 1..fork.0).map(Nid);
    let others = [0, 1, 2, fork.0 + 50, u32::MAX].map(Nid);
    assert!(fork.0 > large.0 + 1, "no node of the large file lies between");
    for number in nodes.chain(others) {
        assert!(matches!(fs.inode(number), Err(FsError::NotFound)), "{number:?}");
    }
    // Without a name it is found while somebody has it open.
    let open = fs.inode(plain).unwrap();
    fs.root().unwrap().remove_file("other").unwrap();
    assert_eq!(fs.inode(plain).unwrap().metadata().unwrap().links, 0);
    drop(open);
    assert!(matches!(fs.inode(plain), Err(FsError::NotFound)));
    fs.close().unwrap();
}

#[test]
fn inodes_come_and_go_beside_look_ups_by_number() {
    let fs = FileSystem::open(device(), Options::new()).unwrap();
    let first = fs.root().unwrap().create("first", &file()).unwrap().ino();
    let (ended, last) = (AtomicBool::new(false), AtomicI64::new(first.0.into()));
    let mut found = 0;
    thread::scope(|scope| {
        for maker in 0..2 {
            let (root, ended, last) = (fs.root().unwrap(), &ended, &last);
            scope.spawn(move || {
                let name = format!("f{maker}");
                while !ended.load(Relaxed) {
                    let made = root.create(&name, &file()).unwrap();
                    last.store(made.ino().0.into(), Relaxed);
                    made.open_file().unwrap().write_at(b"text", 0).unwrap();
                    drop(made);
                    root.remove_file(&name).unwrap();
                }
            });
        }
        // On a busy machine the makers may not run before many rounds are over.
        let mut round = 0;
        while round < 20_000 || (found == 0 && round < 50_000_000) {
            // One that was just made, or the next one of the same thread.
            let number = Nid(last.load(Relaxed) as u32 + round % 2);
            match fs.inode(number) {
                // A reference keeps it, whatever becomes of its name.
                Ok(inode) => {
                    found += 1;
                    assert!(inode.metadata().unwrap().links <= 1);
                }
                Err(error) => assert!(matches!(error, FsError::NotFound), "{error}"),
            }
            round += 1;
        }
        ended.store(true, Relaxed);
    });
    assert!(found > 0);
    assert_eq!(fs.statfs().valid_inodes, 2);
    fs.close().unwrap();
}

/// Whoever kept a number can tell that it is another file's by now.
#[test]
fn a_number_that_comes_again_has_another_generation() {
    let fs = FileSystem::open(device(), Options::new()).unwrap();
    fs.hold_nids(3).unwrap();
    let mut seen = std::collections::HashMap::new();
    let mut again = 0;
    for _ in 0..20 {
        let about = fs.create_file("/file", 0o644).unwrap().metadata().unwrap();
        if let Some(before) = seen.insert(about.ino, about.generation) {
            assert_ne!(before, about.generation, "{}", about.ino);
            again += 1;
        }
        fs.remove_file("/file").unwrap();
        fs.checkpoint().unwrap();
    }
    assert!(again > 0, "{seen:?}");
}
