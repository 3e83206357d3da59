//! 32 threads in shared and private directories, with checkpoints all the time: at the end the volume is what a model
//! says, and clean to both judges.
//!
//! Each thread owns a set of names, in directories of its own and in shared ones, so that its model is exact. Besides,
//! all threads fight over the names of one directory, where only invariants can hold. `F2FS_STRESS=20` does 20 times as
//! much.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use f2fs_device_test::Random;
use f2fs_files::{DirectoryLock, FileSystem, FsError, Options, RenameMode};
use f2fs_format::Nid;
use f2fs_format::feature::Features;
use f2fs_test_kit::model::{Content, Model, ROOT, assert_equal, show};
use f2fs_test_kit::volumes::{assert_clean, at, formatted, scale, within};
use f2fs_test_kit::worker::{SHARED, Worker};
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::FormatOptions;

const THREADS: usize = 32;
const ROUNDS: usize = 3;
const ARENA_NAMES: usize = 12;

/// The names that all threads fight over, with how often each appeared less how often it went.
struct Arena {
    counts: Vec<AtomicI64>,
}

impl Arena {
    fn path(name: usize) -> String {
        // Some names share a slot's length, some a hash bucket.
        format!("/arena/c{name}")
    }

    fn new() -> Arena {
        Arena { counts: (0..ARENA_NAMES).map(|_| AtomicI64::new(0)).collect() }
    }

    fn add(&self, name: usize, delta: i64) {
        self.counts[name].fetch_add(delta, Ordering::Relaxed);
    }

    fn step(&self, fs: &FileSystem, random: &mut Random) {
        let (one, two) = (random.below(ARENA_NAMES), random.below(ARENA_NAMES));
        let (first, second) = (Arena::path(one), Arena::path(two));
        match random.below(7) {
            0 | 1 => match fs.create_file(&first, 0o644) {
                Ok(file) => {
                    self.add(one, 1);
                    // The winner's content; another thread may have taken the name away by now.
                    assert_eq!(file.write_at(&file.ino().0.to_le_bytes().repeat(8), 0).unwrap(), 32);
                }
                Err(FsError::Exists) => {}
                Err(error) => panic!("{error}"),
            },
            2 => match fs.remove_file(&first) {
                Ok(()) => self.add(one, -1),
                Err(FsError::NotFound) => {}
                Err(error) => panic!("{error}"),
            },
            3 => match fs.rename(&first, &second, RenameMode::NoReplace) {
                Ok(()) => {
                    self.add(one, -1);
                    self.add(two, 1);
                }
                Err(FsError::NotFound | FsError::Exists) => {}
                Err(error) => panic!("{error}"),
            },
            4 => match fs.rename(&first, &second, RenameMode::Exchange) {
                Ok(()) | Err(FsError::NotFound) => {}
                Err(error) => panic!("{error}"),
            },
            5 => match fs.link(&first, &second) {
                Ok(()) => self.add(two, 1),
                Err(FsError::NotFound | FsError::Exists) => {}
                Err(error) => panic!("{error}"),
            },
            _ => match fs.open_file(&first) {
                Ok(file) => {
                    let mut read = [0; 64];
                    let len = file.read_at(&mut read, 0).unwrap();
                    // All or nothing of what its creator wrote.
                    assert!(len == 0 || read[..len] == file.ino().0.to_le_bytes().repeat(8)[..], "{read:?}");
                }
                Err(FsError::NotFound) => {}
                Err(error) => panic!("{error}"),
            },
        }
    }

    /// Everything that was put there is there, and links are counted right. Then empties the arena.
    fn settle(&self, fs: &FileSystem) {
        let entries: Vec<_> = fs.read_dir("/arena").unwrap().map(Result::unwrap).collect();
        let mut names: HashMap<Nid, u32> = HashMap::new();
        for entry in &entries {
            *names.entry(entry.ino).or_default() += 1;
        }
        for name in 0..ARENA_NAMES {
            let there = fs.exists(Arena::path(name)).unwrap();
            assert_eq!(self.counts[name].load(Ordering::Relaxed), i64::from(there), "{}", Arena::path(name));
            let listed = entries.iter().filter(|entry| entry.name == format!("c{name}").as_bytes()).count();
            assert_eq!(listed, usize::from(there));
        }
        for entry in &entries {
            let path = [b"/arena/", &entry.name[..]].concat();
            let stat = fs.metadata(at(&path)).unwrap();
            assert_eq!((stat.ino, stat.links), (entry.ino, names[&entry.ino]), "{}", show(&path));
        }
        for entry in &entries {
            fs.remove_file(at(&[b"/arena/", &entry.name[..]].concat())).unwrap();
        }
        for count in &self.counts {
            count.store(0, Ordering::Relaxed);
        }
    }
}

fn stress(lock: DirectoryLock, features: Features, seed: u64) {
    // Room for all that a long run leaves scattered.
    let device =
        formatted(192 * scale("F2FS_STRESS").min(20) as u64, &FormatOptions::default().with_features(features));
    // Small caches: nodes and inodes come and go.
    let small = VolumeOptions::new().node_cache(NonZeroUsize::new(1024).unwrap()).dirty_nodes(400);
    // Checkpoints write all that is dirty while operations run, or nothing of it.
    let small = small.nodes_left_to_freeze(if lock == DirectoryLock::Bucket { 0 } else { u64::MAX });
    let options = Options::new().directory_lock(lock).inode_cache(NonZeroUsize::new(512).unwrap()).volume(small);
    let mut fs = FileSystem::open(device.clone(), options.clone()).unwrap();
    for name in SHARED.iter().chain([&&b"arena"[..]]) {
        fs.create_dir(at(&[b"/", *name].concat()), 0o755).unwrap();
    }
    let mut workers: Vec<Worker> = (0..THREADS).map(|number| Worker::new(number, seed)).collect();
    for worker in &mut workers {
        let private = format!("private-{}", worker.number);
        fs.create_dir(format!("/{private}"), 0o755).unwrap();
        worker.model.create(ROOT, private.as_bytes(), Content::Dir(Default::default()), 0o755);
    }
    let arena = Arena::new();
    let steps = 50 * scale("F2FS_STRESS");
    for round in 0..ROUNDS {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (fs, arena, done) = (&fs, &arena, &done);
            let running: Vec<_> = workers
                .iter_mut()
                .map(|worker| {
                    scope.spawn(move || {
                        for _ in 0..steps {
                            worker.step(fs);
                            let mut random = Random::new(worker.random.next());
                            arena.step(fs, &mut random);
                        }
                    })
                })
                .collect();
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    fs.checkpoint().unwrap();
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            let results: Vec<_> = running.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            done.store(true, Ordering::Relaxed);
            for result in results {
                result.unwrap();
            }
        });
        arena.settle(&fs);
        let mut expected = Model::new();
        for worker in &workers {
            expected.absorb(&worker.model);
        }
        if round % 2 == 0 {
            fs.close().unwrap();
        } else {
            // As after a crash: what the checkpoint holds is all there is.
            fs.checkpoint().unwrap();
        }
        drop(fs);
        fs = FileSystem::open(device.clone(), options.clone()).unwrap();
        assert_equal(&fs, &expected);
    }
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn names_locked_by_bucket() {
    within(Duration::from_secs(300 * scale("F2FS_STRESS") as u64), || {
        stress(DirectoryLock::Bucket, Features(0), 1);
    });
}

#[test]
fn directories_locked_as_a_whole() {
    let features = Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM).union(Features::FLEXIBLE_INLINE_XATTR);
    within(Duration::from_secs(300 * scale("F2FS_STRESS") as u64), move || {
        stress(DirectoryLock::Whole, features, 2);
    });
}

/// Appends of many threads to one file do not overlap, and none is lost.
#[test]
fn appends_to_one_file() {
    within(Duration::from_secs(120), || {
        let device = formatted(64, &FormatOptions::default());
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let file = Arc::new(fs.create_file("/log", 0o644).unwrap());
        std::thread::scope(|scope| {
            for thread in 0..8u8 {
                let (file, fs) = (file.clone(), &fs);
                scope.spawn(move || {
                    for line in 0..40u8 {
                        file.append(&[thread, line].repeat(50 + usize::from(line))).unwrap();
                        if line % 16 == 0 {
                            fs.checkpoint().unwrap();
                        }
                    }
                });
            }
        });
        let mut all = vec![0; file.size() as usize];
        assert_eq!(file.read_at(&mut all, 0).unwrap(), all.len());
        let mut next = [0u8; 8];
        let mut rest = &all[..];
        while let [thread, line, ..] = *rest {
            let len = 2 * (50 + usize::from(line));
            assert_eq!(line, next[usize::from(thread)], "thread {thread}");
            assert!(rest[..len].chunks(2).all(|pair| pair == [thread, line]));
            next[usize::from(thread)] += 1;
            rest = &rest[len..];
        }
        assert_eq!(next, [40; 8]);
        drop(file);
        fs.close().unwrap();
        assert_clean(&device);
    });
}

/// Directories that are moved while a tree is removed are met twice on the way, which is no damage.
/// It ends, whether others end or not. How long it took before there was a limit for the tree as a whole, up to a minute,
/// was a matter of chance.
#[test]
fn a_tree_is_removed_while_others_go_on_making_names_in_it() {
    within(Duration::from_secs(60), || {
        let device = formatted(64, &FormatOptions::default());
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        fs.create_dir("/x", 0o755).unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (fs, ended) = (&fs, &ended);
                scope.spawn(move || {
                    for number in 0.. {
                        if ended.load(Ordering::Relaxed) {
                            break;
                        }
                        let _ = fs.create_dir("/x", 0o755);
                        let _ = fs.create_dir(format!("/x/{thread}"), 0o755);
                        let _ = fs.create_file(format!("/x/{thread}/{number}"), 0o644);
                    }
                });
            }
            for _ in 0..10 {
                match fs.remove_all("/x") {
                    Ok(()) | Err(FsError::NotEmpty | FsError::NotFound) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            ended.store(true, Ordering::Relaxed);
        });
        fs.close().unwrap();
        assert_clean(&device);
    });
}

#[test]
fn a_tree_is_removed_while_directories_move_in_it() {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let rounds = 2000 * scale("F2FS_STRESS");
    let stop = AtomicBool::new(false);
    let tolerated = |result: Result<(), FsError>| match result {
        Ok(()) => {}
        Err(error) => assert!(!error.is_corruption(), "{error}"),
    };
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (fs, stop) = (&fs, &stop);
            scope.spawn(move || {
                const PATHS: [&str; 5] = ["/t/a", "/t/b", "/t/a/c", "/t/b/c", "/t/a/c/d"];
                let mut random = Random::new(seed + 1);
                while !stop.load(Ordering::Relaxed) {
                    let _ = fs.create_dir("/t", 0o755);
                    let _ = fs.create_dir(PATHS[random.below(5)], 0o755);
                    let [from, to] = [(); 2].map(|()| PATHS[random.below(5)]);
                    let mode = if random.chance(2) { RenameMode::Exchange } else { RenameMode::Replace };
                    tolerated(fs.rename(from, to, mode));
                }
            });
        }
        let removing = (0..2).map(|_| scope.spawn(|| (0..rounds / 2).for_each(|_| tolerated(fs.remove_all("/t")))));
        let removed: Vec<_> =
            removing.collect::<Vec<_>>().into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        removed.into_iter().for_each(Result::unwrap);
    });
    fs.close().unwrap();
    assert_clean(&device);
}
