//! Names that come, go and move, also beside threads that open them.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use f2fs_device_test::Random;
use f2fs_files::{File, FsError, OpenOptions, Options, RenameMode};
use f2fs_test_kit::volumes::{assert_clean, scale};

use super::{content, empty, end, gone, make, means, opened, used};

#[test]
fn a_name_means_the_file_that_was_renamed_to_it() {
    let (device, fs) = empty(Options::new());
    for path in ["/a", "/b", "/c"] {
        make(&fs, path, path);
    }
    assert!(means(&fs, "/a", "/a") && means(&fs, "/b", "/b") && means(&fs, "/c", "/c"));
    fs.rename("/a", "/d", RenameMode::NoReplace).unwrap();
    assert!(gone(&fs, "/a") && means(&fs, "/d", "/a"));
    fs.rename("/b", "/d", RenameMode::Replace).unwrap();
    assert!(gone(&fs, "/b") && means(&fs, "/d", "/b"));
    fs.rename("/c", "/d", RenameMode::Exchange).unwrap();
    assert!(means(&fs, "/c", "/b") && means(&fs, "/d", "/c"));
    fs.create_dir("/to", 0o755).unwrap();
    fs.rename("/d", "/to/d", RenameMode::Replace).unwrap();
    assert!(gone(&fs, "/d") && means(&fs, "/to/d", "/c"));
    // The directory moves with what is remembered in it, and its old name may be another's.
    fs.rename("/to", "/went", RenameMode::Replace).unwrap();
    assert!(gone(&fs, "/to/d") && means(&fs, "/went/d", "/c"));
    fs.create_dir("/to", 0o755).unwrap();
    assert!(gone(&fs, "/to/d"));
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn each_name_of_a_file_is_remembered_by_itself() {
    let (device, fs) = empty(Options::new());
    let nothing = used(&fs);
    make(&fs, "/a", "linked");
    fs.link("/a", "/b").unwrap();
    drop((opened(&fs, "/a"), opened(&fs, "/b")));
    fs.remove_file("/a").unwrap();
    assert!(gone(&fs, "/a"));
    assert!(means(&fs, "/b", "linked"));
    fs.remove_file("/b").unwrap();
    end(&device, &fs, nothing);
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
        end(&device, &fs, nothing);
    }
}

/// Threads open a file by its name while another one replaces and removes it. A file that was opened after a replacement is
/// that one or a later one, never one before.
#[test]
fn what_is_opened_is_never_older_than_what_was_seen() {
    const READERS: usize = 3;
    let rounds = 3000 * scale("F2FS_STRESS");
    let (device, fs) = empty(Options::new());
    let nothing = used(&fs);
    let (done, start) = (AtomicBool::new(false), Barrier::new(READERS + 1));
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                start.wait();
                let mut seen = 0;
                while !done.load(Ordering::Acquire) {
                    let file = match fs.open_file("/a") {
                        Err(FsError::NotFound) => continue,
                        file => file.unwrap(),
                    };
                    let now: usize = content(&file).parse().unwrap();
                    assert!(now >= seen, "{now} after {seen}");
                    seen = now;
                }
            });
        }
        start.wait();
        for round in 1..=rounds {
            make(&fs, "/next", &format!("{round:08}"));
            fs.rename("/next", "/a", RenameMode::Replace).unwrap();
            if round % 5 == 0 {
                fs.remove_file("/a").unwrap();
                assert!(gone(&fs, "/a"));
            }
        }
        done.store(true, Ordering::Release);
    });
    let _ = fs.remove_file("/a");
    end(&device, &fs, nothing);
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
    end(&device, &fs, nothing);
}
