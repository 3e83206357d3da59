//! Syncs of names: of directories, of files that were renamed or linked, of files in new directories. With a journal
//! none of them is a checkpoint, and after a crash the tree is that of the sync.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use f2fs_device_test::Random;
use f2fs_files::{FileKind, NewFile, RenameMode};

use super::*;

/// A file as a listing sees it: kind, links, mode, owner, and marks of its attributes and of its content or target.
type Seen = (FileKind, u32, u16, u32, u64, (usize, u64));

fn mark(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The whole tree.
fn tree(fs: &FileSystem) -> BTreeMap<String, Seen> {
    let mut seen = BTreeMap::new();
    let mut left = vec![String::new()];
    while let Some(path) = left.pop() {
        let here = if path.is_empty() { "/" } else { path.as_str() };
        let stat = fs.symlink_metadata(here).unwrap();
        let attributes = fs.xattrs(here).unwrap();
        let content = match stat.kind {
            FileKind::Regular => read(fs, here),
            FileKind::Symlink => fs.read_link(here).unwrap(),
            FileKind::Directory => {
                for entry in fs.open_dir(here).unwrap().entries() {
                    left.push(format!("{path}/{}", String::from_utf8(entry.unwrap().name).unwrap()));
                }
                Vec::new()
            }
            _ => format!("{:?}", stat.device).into_bytes(),
        };
        let content = (content.len(), mark(&content));
        seen.insert(here.to_owned(), (stat.kind, stat.links, stat.permissions, stat.uid, mark(&attributes), content));
    }
    seen
}

/// Cuts the power and opens what is left, for reading and for writing: both show this tree, and so does a volume that
/// was closed then.
fn assert_left(device: &RecordingDevice, journal: &Medium, mode: JournalMode, expected: &BTreeMap<String, Seen>) {
    let (image, left) = (cut(device), copy(journal));
    for read_only in [true, false] {
        let fs = FileSystem::open(image.clone(), with_mode(&left, mode).read_only(read_only)).unwrap();
        assert_same(&tree(&fs), expected, if read_only { "read only" } else { "open for writing" });
        if !read_only {
            fs.close().unwrap();
        }
    }
    assert_clean(&image);
    let fs = FileSystem::open(image, Options::new().read_only(true)).unwrap();
    assert_same(&tree(&fs), expected, "without the journal");
}

fn assert_same(found: &BTreeMap<String, Seen>, expected: &BTreeMap<String, Seen>, how: &str) {
    let differs = |path: &&String| found.get(*path) != expected.get(*path);
    let all: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    if let Some(path) = all.into_iter().find(differs) {
        panic!("{how}: {path} is {:?}, and was {:?}", found.get(path), expected.get(path));
    }
}

fn counts(fs: &FileSystem) -> (u64, u64) {
    let written = fs.statfs().written;
    (written.checkpoints, written.name_records)
}

#[test]
fn a_file_in_new_directories_is_one_record() {
    for mode in [JournalMode::Ordered, JournalMode::Journal] {
        let (device, journal, fs) = start_in(mode);
        let before = counts(&fs);
        fs.create_dir("/a", 0o700).unwrap();
        fs.create_dir("/a/b", 0o750).unwrap();
        fs.set_owner("/a/b", Some(7), Some(8)).unwrap();
        fs.set_xattr("/a", b"user.of", b"a directory", Default::default()).unwrap();
        let file = fs.create_file("/a/b/file", 0o600).unwrap();
        file.write_at(&content(1, 9000), 0).unwrap();
        file.sync_all().unwrap();
        let expected = tree(&fs);
        assert_eq!(counts(&fs), (before.0, before.1 + 1));
        // From here on it is a file in an old directory.
        fs.create_file("/a/b/unsynced", 0o600).unwrap();
        fs.create_file("/a/b/next", 0o600).unwrap().sync_all().unwrap();
        fs.remove_file("/a/b/unsynced").unwrap();
        assert_eq!(counts(&fs), (before.0, before.1 + 1));
        let with_next = tree(&fs);
        assert!(with_next.len() > expected.len());
        assert_left(&device, &journal, mode, &with_next);
    }
}

#[test]
fn renamed_and_linked_files_are_in_one_place() {
    let (device, journal, fs) = start();
    for name in ["/one", "/two", "/three"] {
        fs.create_file(name, 0o644).unwrap().write_at(name.as_bytes(), 0).unwrap();
    }
    for name in ["/left", "/right", "/left/below"] {
        fs.create_dir(name, 0o755).unwrap();
    }
    fs.checkpoint().unwrap();
    let before = counts(&fs);
    // Over another one, across directories.
    fs.rename("/one", "/two", RenameMode::Replace).unwrap();
    fs.rename("/two", "/right/two", RenameMode::Replace).unwrap();
    fs.open_file("/right/two").unwrap().sync_all().unwrap();
    assert_left(&device, &journal, JournalMode::Ordered, &tree(&fs));
    // Another name, and the old one gone.
    fs.link("/three", "/left/three").unwrap();
    fs.open_file("/three").unwrap().sync_all().unwrap();
    assert_left(&device, &journal, JournalMode::Ordered, &tree(&fs));
    fs.remove_file("/three").unwrap();
    fs.open_file("/left/three").unwrap().sync_all().unwrap();
    assert_left(&device, &journal, JournalMode::Ordered, &tree(&fs));
    // Directories that change places, each with a parent of its own.
    fs.rename("/left/below", "/right/below", RenameMode::Replace).unwrap();
    fs.rename("/left", "/right/below", RenameMode::Exchange).unwrap();
    fs.open_dir("/").unwrap().sync_all().unwrap();
    assert_left(&device, &journal, JournalMode::Ordered, &tree(&fs));
    // A directory that is gone.
    fs.remove_dir("/left").unwrap();
    fs.open_dir("/").unwrap().sync_all().unwrap();
    let synced = tree(&fs);
    assert_left(&device, &journal, JournalMode::Ordered, &synced);
    assert_eq!(counts(&fs), (before.0, before.1 + 5));
    fs.rename("/right", "/never", RenameMode::Replace).unwrap();
    assert_left(&device, &journal, JournalMode::Ordered, &synced);
}

#[test]
fn a_directory_brings_all_kinds_of_files_along() {
    for mode in [JournalMode::Ordered, JournalMode::Journal] {
        let (device, journal, fs) = start_in(mode);
        let root = fs.root().unwrap();
        let before = counts(&fs);
        let kinds = [FileKind::Fifo, FileKind::Socket, FileKind::CharDevice, FileKind::BlockDevice];
        for (number, kind) in (1..).zip(kinds) {
            let mut new = NewFile::new(kind, 0o640);
            if matches!(kind, FileKind::CharDevice | FileKind::BlockDevice) {
                new = new.device(number * 100, 70_000);
            }
            root.create(format!("kind{number}"), &new).unwrap();
        }
        let link = |len| vec![b'x'; len];
        fs.symlink(&link(20), "/short", &NewFile::new(FileKind::Symlink, 0o777)).unwrap();
        fs.symlink(&link(4000), "/long", &NewFile::new(FileKind::Symlink, 0o777)).unwrap();
        // So many names that the directory has blocks, and then levels.
        fs.create_dir("/many", 0o755).unwrap();
        for number in 0..600 {
            fs.create_file(format!("/many/{number:060}"), 0o644).unwrap();
        }
        fs.open_file(format!("/many/{:060}", 7)).unwrap().write_at(&content(3, 5000), 0).unwrap();
        fs.open_dir("/many").unwrap().sync_all().unwrap();
        assert_eq!(counts(&fs), (before.0, before.1 + 1));
        assert_left(&device, &journal, mode, &tree(&fs));
        for number in (0..600).filter(|number| number % 7 != 0) {
            fs.remove_file(format!("/many/{number:060}")).unwrap();
        }
        fs.remove_file("/long").unwrap();
        fs.remove_file("/kind3").unwrap();
        fs.set_xattr("/many", b"user.long", &[7; 3000], Default::default()).unwrap();
        fs.open_dir("/many").unwrap().sync_all().unwrap();
        assert_left(&device, &journal, mode, &tree(&fs));
        for number in (0..600).filter(|number| number % 7 == 0) {
            fs.remove_file(format!("/many/{number:060}")).unwrap();
        }
        fs.remove_dir("/many").unwrap();
        fs.root().unwrap().sync_all().unwrap();
        assert_eq!(counts(&fs), (before.0, before.1 + 3));
        assert_left(&device, &journal, mode, &tree(&fs));
    }
}

/// A new file that was synced by itself, and is gone or elsewhere at the next sync of names, does not come back where
/// it was.
#[test]
fn records_of_files_and_of_names_follow_each_other() {
    let (device, journal, fs) = start();
    let before = counts(&fs);
    for name in ["/gone", "/moved", "/linked", "/open"] {
        let file = fs.create_file(name, 0o644).unwrap();
        file.write_at(name.as_bytes(), 0).unwrap();
        file.sync_all().unwrap();
    }
    assert_eq!(counts(&fs), before);
    fs.remove_file("/gone").unwrap();
    fs.rename("/moved", "/there", RenameMode::Replace).unwrap();
    fs.link("/linked", "/other").unwrap();
    fs.remove_file("/linked").unwrap();
    let open = fs.open_file("/open").unwrap();
    fs.remove_file("/open").unwrap();
    open.sync_all().unwrap();
    assert_eq!(counts(&fs), (before.0, before.1 + 1));
    assert_left(&device, &journal, JournalMode::Ordered, &tree(&fs));
    // Syncs of these by themselves do not bring their first names back.
    for name in ["/there", "/other"] {
        let file = fs.open_file(name).unwrap();
        file.write_at(b"again", 100).unwrap();
        file.sync_all().unwrap();
    }
    // A name that was another file's.
    fs.create_file("/moved", 0o600).unwrap().sync_all().unwrap();
    assert_eq!(counts(&fs), (before.0, before.1 + 1));
    assert_left(&device, &journal, JournalMode::Ordered, &tree(&fs));
}

#[test]
fn a_renamed_file_brings_its_data_along() {
    for (mode, cache) in [(JournalMode::Ordered, 0), (JournalMode::Journal, 0), (JournalMode::Journal, 1 << 20)] {
        let (device, journal, fs) = start_in(mode);
        drop(fs);
        let fs = FileSystem::open(device.clone(), with_mode(&journal, mode).page_cache(cache)).unwrap();
        fs.create_file("/file", 0o644).unwrap().write_at(&content(1, 20_000), 0).unwrap();
        fs.checkpoint().unwrap();
        let (before, flushes) = (counts(&fs), device.counts().flushes);
        fs.create_file("/new", 0o644).unwrap().write_at(&content(2, 50_000), 0).unwrap();
        fs.rename("/new", "/file", RenameMode::Replace).unwrap();
        fs.root().unwrap().sync_all().unwrap();
        assert_eq!(counts(&fs), (before.0, before.1 + 1));
        assert_eq!(device.counts().flushes - flushes, u64::from(mode == JournalMode::Ordered));
        assert_left(&device, &journal, mode, &tree(&fs));
        // More data than a record takes: the device is flushed.
        fs.create_file("/new", 0o644).unwrap().write_at(&content(3, 500_000), 0).unwrap();
        fs.rename("/new", "/file", RenameMode::Replace).unwrap();
        fs.root().unwrap().sync_all().unwrap();
        assert_eq!(counts(&fs), (before.0, before.1 + 2));
        assert_left(&device, &journal, mode, &tree(&fs));
    }
}

#[test]
fn very_many_names_are_a_checkpoint() {
    let (device, journal, fs) = start();
    let before = counts(&fs);
    for number in 0..2500 {
        fs.create_file(format!("/{number:0250}"), 0o644).unwrap();
    }
    fs.root().unwrap().sync_all().unwrap();
    assert_eq!(counts(&fs).1, before.1);
    assert!(fs.statfs().written.sync_checkpoints > 0);
    fs.create_dir("/next", 0o755).unwrap();
    fs.root().unwrap().sync_all().unwrap();
    assert_eq!(counts(&fs).1, before.1 + 1);
    assert_left(&device, &journal, JournalMode::Ordered, &tree(&fs));
}

/// Changes by chance. A crash behind each sync leaves the tree as it was then.
#[test]
fn names_by_chance_are_as_they_were_synced() {
    for seed in 0..6 {
        let mode = if seed % 2 == 0 { JournalMode::Ordered } else { JournalMode::Journal };
        let (device, journal, fs) = start_in(mode);
        let mut random = Random::new(seed);
        for _ in 0..6 {
            for _ in 0..random.below(25) {
                change(&fs, &mut random);
            }
            fs.root().unwrap().sync_all().unwrap();
            assert_left(&device, &journal, mode, &tree(&fs));
        }
    }
}

fn change(fs: &FileSystem, random: &mut Random) {
    let name = |random: &mut Random| {
        let below = ["", "/a", "/b", "/a/c"][random.below(4)];
        format!("{below}/{}", ["a", "b", "c", "d", "e"][random.below(5)])
    };
    let (first, second) = (name(random), name(random));
    // Most of them fit the tree, and the others are refused.
    match random.below(9) {
        0 | 1 => drop(fs.create_dir(&first, 0o755)),
        2 => drop(fs.create_file(&first, 0o644)),
        3 => drop(fs.link(&first, &second)),
        4 => drop(fs.rename(&first, &second, RenameMode::Replace)),
        5 => drop(fs.rename(&first, &second, RenameMode::Exchange)),
        6 => drop(fs.remove_file(&first)),
        7 => drop(fs.remove_dir(&first)),
        _ => {
            if let Ok(file) = fs.open_file(&first) {
                file.write_at(&content(random.below(200) as u8, 6000), random.below(3000) as u64).unwrap();
                file.sync_all().unwrap();
            }
        }
    }
}

/// Files that processors keep open lose their names, with handles and without; what was synced is what is left, and nothing
/// of them is.
#[test]
fn files_that_are_kept_open_lose_their_names() {
    for mode in [JournalMode::Ordered, JournalMode::Journal] {
        for held in [false, true] {
            for last in ["/d", "/d/f"] {
                let (device, journal, fs) = start_in(mode);
                fs.create_dir("/d", 0o755).unwrap();
                fs.create_dir("/e", 0o755).unwrap();
                for path in ["/d/a", "/d/b", "/d/c", "/e/d", "/d/e"] {
                    let file = fs.create_file(path, 0o644).unwrap();
                    file.write_at(&content(7, 9000), 0).unwrap();
                    file.sync_all().unwrap();
                }
                fs.link("/d/e", "/e/e").unwrap();
                let open = |path| (0..4).map(|_| fs.open_file(path).unwrap()).collect::<Vec<_>>();
                let files: Vec<_> = ["/d/a", "/d/b", "/d/c", "/e/d", "/d/e", "/e/e"].map(open).into();
                let files = held.then_some(files);
                fs.remove_file("/d/a").unwrap();
                fs.rename("/d/b", "/d/c", RenameMode::Replace).unwrap();
                fs.rename("/d/c", "/e/d", RenameMode::Replace).unwrap();
                fs.remove_file("/d/e").unwrap();
                fs.create_file("/d/f", 0o644).unwrap().write_at(b"new", 0).unwrap();
                let file = fs.open_file("/d/f").unwrap();
                drop((fs.open_file("/d/f").unwrap(), fs.open_file("/d/f").unwrap()));
                if last == "/d" {
                    fs.open_dir("/d").unwrap().sync_all().unwrap();
                } else {
                    file.sync_all().unwrap();
                }
                let expected = tree(&fs);
                let found = expected.keys().map(String::as_str).collect::<Vec<_>>();
                assert_eq!(found, ["/", "/d", "/d/f", "/e", "/e/d", "/e/e"]);
                if last == "/d" {
                    assert_left(&device, &journal, mode, &expected);
                }
                let image = cut(&device);
                let again = FileSystem::open(image.clone(), with_mode(&copy(&journal), mode)).unwrap();
                assert_eq!(read(&again, "/d/f"), b"new");
                again.close().unwrap();
                drop(again);
                assert_clean(&image);
                drop((file, files));
                fs.close().unwrap();
            }
        }
    }
}
