//! Files that processors keep open, where volumes are damaged, full, cached, or read only, and where names move about.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use f2fs_device::MemoryDevice;
use f2fs_device_test::Random;
use f2fs_files::{File, FileKind, FileSystem, FsError, NewFile, OpenOptions, Options, RenameMode};
use f2fs_format::dentry::{DentryLayout, DentryView, ENTRY_SIZE};
use f2fs_format::feature::Features;
use f2fs_format::hash::dentry_hash;
use f2fs_test_kit::harm::{ino, options, patch_node};
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;

fn empty(options: Options) -> (Arc<MemoryDevice>, FileSystem) {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), options).unwrap();
    (device, fs)
}

fn used(fs: &FileSystem) -> (u64, u64, u64) {
    let stat = fs.statfs();
    (stat.valid_inodes, stat.valid_nodes, stat.valid_blocks)
}

fn content(file: &File) -> String {
    let mut bytes = vec![0; file.size() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    String::from_utf8(bytes).unwrap()
}

fn make(fs: &FileSystem, path: &str, bytes: &str) {
    fs.create_file(path, 0o644).unwrap().write_at(bytes.as_bytes(), 0).unwrap();
}

fn opened(fs: &FileSystem, path: &str) -> Vec<File> {
    (0..4).map(|_| fs.open_file(path).unwrap()).collect()
}

/// Names of files and of directories change at random; what is opened is always what the model says.
#[test]
fn names_at_random_mean_what_they_should() {
    for seed in 0..3 {
        let (device, fs) = empty(Options::new());
        let nothing = used(&fs);
        let mut random = Random::new(seed);
        // Directory names to directories, and names in each to contents.
        let mut dirs: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        let mut held: Vec<(File, String)> = Vec::new();
        let (mut next, dir_names, names) = (0, ["x", "y", "z"], ["a", "b", "c", "d"]);
        for _ in 0..4000 {
            let mut pick = |of: usize| random.below(of);
            let (dir, dir2) = (dir_names[pick(3)].to_owned(), dir_names[pick(3)].to_owned());
            let (name, name2) = (names[pick(4)].to_owned(), names[pick(4)].to_owned());
            let (path, path2) = (format!("/{dir}/{name}"), format!("/{dir2}/{name2}"));
            let text = |dirs: &BTreeMap<String, BTreeMap<String, String>>, dir: &str, name: &str| {
                dirs.get(dir).and_then(|names| names.get(name)).cloned()
            };
            let (from, to) = (text(&dirs, &dir, &name), text(&dirs, &dir2, &name2));
            match pick(14) {
                0 | 1 => {
                    next += 1;
                    let file = OpenOptions::new().write(true).create(true).open(&fs, &path);
                    assert_eq!(file.is_ok(), dirs.contains_key(&dir), "{path}");
                    if let Ok(file) = file
                        && from.is_none()
                    {
                        file.write_at(next.to_string().as_bytes(), 0).unwrap();
                        dirs.get_mut(&dir).unwrap().insert(name, next.to_string());
                    }
                }
                2 => {
                    let done = fs.link(&path, &path2).is_ok();
                    assert_eq!(done, from.is_some() && to.is_none() && dirs.contains_key(&dir2));
                    if done {
                        dirs.get_mut(&dir2).unwrap().insert(name2, from.unwrap());
                    }
                }
                3 => {
                    assert_eq!(fs.remove_file(&path).is_ok(), from.is_some());
                    dirs.get_mut(&dir).map(|names| names.remove(&name));
                }
                4 => {
                    let done = fs.rename(&path, &path2, RenameMode::Replace).is_ok();
                    assert_eq!(done, from.is_some() && dirs.contains_key(&dir2));
                    // Names of one file stay both.
                    if done && from != to {
                        dirs.get_mut(&dir).unwrap().remove(&name);
                        dirs.get_mut(&dir2).unwrap().insert(name2, from.unwrap());
                    }
                }
                5 => {
                    let done = fs.rename(&path, &path2, RenameMode::Exchange).is_ok();
                    assert_eq!(done, from.is_some() && to.is_some());
                    if done {
                        dirs.get_mut(&dir).unwrap().insert(name, to.unwrap());
                        dirs.get_mut(&dir2).unwrap().insert(name2, from.unwrap());
                    }
                }
                6 => {
                    assert_eq!(fs.create_dir(format!("/{dir}"), 0o755).is_ok(), !dirs.contains_key(&dir));
                    dirs.entry(dir).or_default();
                }
                7 if pick(4) == 0 => {
                    assert_eq!(fs.remove_all(format!("/{dir}")).is_ok(), dirs.remove(&dir).is_some());
                }
                8 => {
                    let done = fs.rename(format!("/{dir}"), format!("/{dir2}"), RenameMode::Exchange).is_ok();
                    assert_eq!(done, dirs.contains_key(&dir) && dirs.contains_key(&dir2));
                    if done && dir != dir2 {
                        let (one, two) = (dirs.remove(&dir).unwrap(), dirs.remove(&dir2).unwrap());
                        dirs.extend([(dir, two), (dir2, one)]);
                    }
                }
                9 => {
                    let done = fs.rename(format!("/{dir}"), format!("/{dir2}"), RenameMode::NoReplace).is_ok();
                    assert_eq!(done, dirs.contains_key(&dir) && !dirs.contains_key(&dir2));
                    if done {
                        let names = dirs.remove(&dir).unwrap();
                        dirs.insert(dir2, names);
                    }
                }
                10 => {
                    held.drain(..held.len() / 2);
                    fs.checkpoint().unwrap();
                }
                _ => {
                    let way = [path.clone(), format!("/{dir}/../{dir}/./{name}"), format!("//{dir}//{name}")];
                    for path in way.iter().chain([&path, &path]) {
                        match (fs.open_file(path), &from) {
                            (Ok(file), Some(text)) => {
                                assert_eq!(content(&file), *text, "{path}");
                                held.push((file, text.clone()));
                            }
                            (Err(FsError::NotFound), None) => {}
                            (file, expected) => {
                                panic!("{path}: {:?}, not {expected:?}", file.map(|file| content(&file)))
                            }
                        }
                    }
                }
            }
            held.iter().for_each(|(file, text)| assert_eq!(content(file), *text));
        }
        for dir in dirs.keys() {
            fs.remove_all(format!("/{dir}")).unwrap();
        }
        drop(held);
        assert_eq!(used(&fs), nothing, "seed {seed}");
        assert!(fs.volume().orphans().is_empty());
        fs.close().unwrap();
        assert_clean(&device);
    }
}

/// `links` is 1, and there are two names.
#[test]
fn a_file_with_a_name_too_many_ends_once() {
    for (first, second) in [("/a", "/b"), ("/b", "/a")] {
        let device = formatted(64, &options());
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        make(&fs, "/a", "both");
        fs.link("/a", "/b").unwrap();
        fs.close().unwrap();
        drop(fs);
        patch_node(&device, ino(&device, "/a"), |node| node.inode_mut().i_links = 1.into());
        for handles in [false, true] {
            let device = Arc::new(device.snapshot());
            let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
            let before = fs.statfs().valid_inodes;
            let files = [opened(&fs, "/a"), opened(&fs, "/b")];
            let files = handles.then_some(files);
            fs.remove_file(first).unwrap();
            assert!(fs.open_file(first).is_err());
            let again = fs.open_file(second);
            if let Ok(file) = &again {
                assert_eq!(content(file), "both");
            }
            fs.remove_file(second).unwrap();
            drop((again, files));
            assert!(fs.volume().orphans().is_empty());
            assert_eq!(fs.statfs().valid_inodes, before - 1);
            fs.close().unwrap();
            assert_clean(&device);
        }
    }
}

/// The same, and the second name moves: the file ends while that goes on.
#[test]
fn a_file_that_ends_as_its_name_moves_is_no_deadlock() {
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    make(&fs, "/a", "both");
    fs.link("/a", "/b").unwrap();
    fs.close().unwrap();
    drop(fs);
    patch_node(&device, ino(&device, "/a"), |node| node.inode_mut().i_links = 1.into());
    let fs = FileSystem::open(device.clone(), Options::new().page_cache(1 << 20)).unwrap();
    drop([opened(&fs, "/a"), opened(&fs, "/b")]);
    fs.remove_file("/a").unwrap();
    let _ = fs.rename("/b", "/c", RenameMode::Replace);
    let _ = fs.open_file("/c").map(|file| content(&file));
    let _ = fs.remove_file("/c");
    assert!(fs.volume().orphans().is_empty());
    let _ = fs.close();
}

#[test]
fn a_cached_file_that_is_kept_ends_with_its_dirty_pages() {
    let (device, fs) = empty(Options::new().page_cache(8 << 20));
    let nothing = used(&fs);
    for round in 0..20 {
        make(&fs, "/a", "x");
        let files = opened(&fs, "/a");
        files[3].write_at(&vec![round; 3 << 20], 0).unwrap();
        if round % 2 == 0 {
            drop(files);
            fs.remove_file("/a").unwrap();
        } else {
            fs.remove_file("/a").unwrap();
            files[1].write_at(&vec![round; 1 << 20], 1 << 20).unwrap();
            if round % 3 == 0 {
                fs.checkpoint().unwrap();
            }
        }
    }
    assert_eq!(used(&fs), nothing);
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn an_orphan_that_was_kept_is_freed_by_the_next_open() {
    let (device, fs) = empty(Options::new());
    fs.checkpoint().unwrap();
    let nothing = used(&fs);
    make(&fs, "/a", "x");
    make(&fs, "/b", "kept");
    drop(opened(&fs, "/b"));
    let files = opened(&fs, "/a");
    fs.remove_file("/a").unwrap();
    fs.remove_file("/b").unwrap();
    assert_eq!(fs.volume().orphans().len(), 1);
    fs.checkpoint().unwrap();
    let image = Arc::new(device.snapshot());
    let again = FileSystem::open(image.clone(), Options::new()).unwrap();
    assert_eq!(used(&again).0, nothing.0);
    again.close().unwrap();
    assert_clean(&image);
    drop(files);
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn a_volume_for_reading_keeps_files_open() {
    let (device, fs) = empty(Options::new());
    fs.create_dir("/d", 0o755).unwrap();
    make(&fs, "/d/a", "x");
    fs.symlink(b"d/a", "/s", &NewFile::new(FileKind::Symlink, 0o777)).unwrap();
    fs.close().unwrap();
    drop(fs);
    let fs = FileSystem::open(device.clone(), Options::new().read_only(true)).unwrap();
    let again = FileSystem::open(device.clone(), Options::new().read_only(true)).unwrap();
    let clone = fs.clone();
    for path in ["/d/a", "/s", "/d/../s", "/d/./a", "/d/../d/a"] {
        for fs in [&fs, &again, &clone] {
            assert!(opened(fs, path).iter().all(|file| content(file) == "x"), "{path}");
        }
    }
    for path in ["/d", "/d/.", "/d/..", "/d/"] {
        assert!(matches!(fs.open_file(path), Err(FsError::IsDirectory)), "{path}");
    }
    assert!(matches!(fs.open_file("/d/a/"), Err(FsError::NotDirectory)));
    assert!(matches!(fs.open_file("/d/a/b"), Err(FsError::NotDirectory)));
    assert!(matches!(fs.remove_file("/d/a"), Err(FsError::Volume(_) | FsError::ReadOnly)));
    assert_eq!(content(&fs.open_file("/d/a").unwrap()), "x");
    drop((fs, again, clone));
    FileSystem::open(device, Options::new()).unwrap().close().unwrap();
}

/// All blocks are taken; files that are kept give theirs back at once.
#[test]
fn a_full_volume_is_emptied_of_files_that_are_kept() {
    let (device, fs) = empty(Options::new());
    let nothing = used(&fs).0;
    let mut count = 0;
    while let Ok(file) = fs.create_file(format!("/{count}"), 0o644) {
        count += 1;
        drop((fs.open_file(format!("/{}", count - 1)), fs.open_file(format!("/{}", count - 1))));
        if file.write_at(&[7; 300_000], 0).is_err() {
            break;
        }
    }
    for number in 0..count {
        fs.remove_file(format!("/{number}")).unwrap();
    }
    assert_eq!(used(&fs).0, nothing);
    assert!(fs.volume().orphans().is_empty());
    fs.close().unwrap();
    assert_clean(&device);
}

/// Threads exchange, link and remove names, and rename the directories, while others open the files.
#[test]
fn names_that_move_beside_threads_that_open_them() {
    let (device, fs) = empty(Options::new());
    let nothing = used(&fs);
    fs.create_dir("/x", 0o755).unwrap();
    fs.create_dir("/y", 0o755).unwrap();
    for path in ["/x/a", "/x/b", "/y/a", "/y/b"] {
        make(&fs, path, path);
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    for path in ["/x/a", "/x/b", "/y/a", "/y/b", "/x/l"] {
                        let _ = (fs.open_file(path), fs.open_file(path)).0.map(|file| content(&file));
                    }
                }
            });
        }
        let movers: Vec<_> = (0..3)
            .map(|mover: usize| {
                let fs = fs.clone();
                scope.spawn(move || {
                    for _ in 0..1500 {
                        let _ = match mover {
                            0 => fs.rename("/x/a", "/y/b", RenameMode::Exchange),
                            1 => fs.rename("/x", "/y", RenameMode::Exchange),
                            _ => fs.link("/x/a", "/x/l").and_then(|()| fs.rename("/x/l", "/y/a", RenameMode::Replace)),
                        };
                        let _ = (mover == 2).then(|| fs.remove_file("/x/l"));
                        let _ = (mover == 0).then(|| fs.rename("/y/b", "/x/b", RenameMode::Replace));
                        let _ = (mover == 2).then(|| fs.create_file("/y/b", 0o644).map(drop));
                    }
                })
            })
            .collect();
        movers.into_iter().for_each(|mover| mover.join().unwrap());
        done.store(true, Ordering::Release);
    });
    fs.remove_all("/x").unwrap();
    fs.remove_all("/y").unwrap();
    assert_eq!(used(&fs), nothing);
    assert!(fs.volume().orphans().is_empty());
    fs.close().unwrap();
    assert_clean(&device);
}

/// The `..` of a directory leads to a file: it is no name of that file which anybody takes away.
#[test]
fn a_way_up_to_a_file_keeps_it_not() {
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    make(&fs, "/a", "x");
    fs.create_dir("/d", 0o755).unwrap();
    fs.close().unwrap();
    drop(fs);
    let file = ino(&device, "/a");
    patch_node(&device, ino(&device, "/d"), |node| {
        let area = node.inode_mut().inline_data_mut(Features::SB_CHECKSUM);
        let slot = DentryView::inline(area).find(dentry_hash(b".."), b"..").unwrap().slot;
        let entry = DentryLayout::of_size(area.len()).entries_at + slot * ENTRY_SIZE;
        area[entry + 4..entry + 8].copy_from_slice(&file.0.to_le_bytes());
    });
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let inodes = fs.statfs().valid_inodes;
    drop(opened(&fs, "/a"));
    let up: Vec<_> = (0..4).map(|_| fs.open_file("/d/..")).collect();
    assert!(up.iter().all(|file| file.as_ref().is_ok_and(|file| content(file) == "x")), "{up:?}");
    drop(up);
    fs.remove_file("/a").unwrap();
    assert_eq!((fs.volume().orphans(), fs.statfs().valid_inodes), (vec![], inodes - 1));
}
