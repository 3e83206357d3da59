//! 32 threads in shared and private directories, with checkpoints all the time: at the end the volume is what a model says,
//! and clean to both judges.
//!
//! Each thread owns a set of names, in directories of its own and in shared ones, so that its model is exact. Besides, all
//! threads fight over the names of one directory, where only invariants can hold. `F2FS_STRESS=20` does 20 times as much.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;
mod model;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use common::{Random, assert_clean, at, bytes, formatted, scale, within};
use f2fs_files::{DirectoryLock, FileKind, FileSystem, FsError, NewFile, Options, RenameMode, SetMode};
use f2fs_format::Nid;
use f2fs_format::feature::Features;
use f2fs_volume::OpenOptions;
use f2fs_volume::format::FormatOptions;
use model::{Content, Id, Model, Outcome, ROOT, assert_equal, outcome, show};

const THREADS: usize = 32;
const ROUNDS: usize = 3;
const SHARED: [&[u8]; 3] = [b"one", b"two", b"three"];
const ARENA_NAMES: usize = 12;

/// A thread with its own names and the model of them.
struct Worker {
    number: usize,
    random: Random,
    model: Model,
    made: usize,
}

impl Worker {
    fn new(number: usize, seed: u64) -> Worker {
        let mut model = Model::new();
        for name in SHARED {
            model.create(ROOT, name, Content::Dir(Default::default()), 0o755);
        }
        model.create(ROOT, b"arena", Content::Dir(Default::default()), 0o755);
        Worker { number, random: Random::new(seed ^ (number as u64) << 32), model, made: 0 }
    }

    /// A directory that this thread may put names into: its own ones, and the shared ones.
    fn dir(&mut self) -> (Vec<u8>, Id) {
        let dirs: Vec<_> = self
            .model
            .paths()
            .into_iter()
            .filter(|(path, id)| self.model.dir(*id).is_some() && path != b"/arena" && path != b"/")
            .collect();
        self.random.pick(&dirs).clone()
    }

    /// Something that this thread made, with its directory.
    fn owned(&mut self, files: bool) -> Option<(Vec<u8>, Id)> {
        let all: Vec<_> = self
            .model
            .paths()
            .into_iter()
            .filter(|(path, id)| {
                let made = path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(b"t"));
                made && path != b"/two" && path != b"/three" && (!files || self.model.dir(*id).is_none())
            })
            .collect();
        (!all.is_empty()).then(|| self.random.pick(&all).clone())
    }

    fn parent(&self, path: &[u8]) -> (Id, Vec<u8>) {
        let slash = path.iter().rposition(|byte| *byte == b'/').unwrap();
        let id = self.model.paths().into_iter().find(|(parent, _)| parent == &path[..slash]).unwrap().1;
        (id, path[slash + 1..].to_vec())
    }

    fn name(&mut self) -> Vec<u8> {
        self.made += 1;
        let tail = if self.random.chance(4) { "-with-a-name-that-takes-several-slots" } else { "" };
        // A few names come again, so that creation and renaming meet them.
        format!("t{}-{}{tail}", self.number, self.made % 37).into_bytes()
    }

    #[track_caller]
    fn same(&self, what: &str, path: &[u8], real: Outcome, wanted: Outcome) {
        assert_eq!(real, wanted, "thread {}: {what} {}", self.number, show(path));
    }

    fn step(&mut self, fs: &FileSystem) {
        match self.random.below(20) {
            0..=4 => {
                let ((dir, id), name) = (self.dir(), self.name());
                let path = [&dir[..], b"/", &name].concat();
                let real = outcome(&fs.create_file(at(&path), 0o644));
                let wanted = self.model.create(id, &name, Content::File(Vec::new()), 0o644);
                self.same("create", &path, real, wanted);
            }
            5 => {
                let ((dir, id), name) = (self.dir(), self.name());
                if dir.len() > 200 {
                    return;
                }
                let path = [&dir[..], b"/", &name].concat();
                let real = outcome(&fs.create_dir(at(&path), 0o750));
                let wanted = self.model.create(id, &name, Content::Dir(Default::default()), 0o750);
                self.same("mkdir", &path, real, wanted);
            }
            6 => {
                let ((dir, id), name) = (self.dir(), self.name());
                let path = [&dir[..], b"/", &name].concat();
                let target = vec![b'x'; self.random.below(4000) + 1];
                let real = outcome(&fs.symlink(&target, at(&path), &NewFile::new(FileKind::Symlink, 0o777)));
                let wanted = self.model.create(id, &name, Content::Symlink(target), 0o777);
                self.same("symlink", &path, real, wanted);
            }
            7..=9 => self.write(fs),
            10 => {
                let Some((path, id)) = self.owned(true) else { return };
                if let Content::File(_) = self.model.nodes[&id].content {
                    let size = self.random.below(30_000);
                    fs.open_file(at(&path)).unwrap().truncate(size as u64).unwrap();
                    self.model.truncate(id, size);
                }
            }
            11 => {
                let Some((source, id)) = self.owned(true) else { return };
                let ((dir, parent), name) = (self.dir(), self.name());
                let path = [&dir[..], b"/", &name].concat();
                let real = outcome(&fs.link(at(&source), at(&path)));
                let wanted = self.model.link(id, parent, &name);
                self.same("link", &path, real, wanted);
            }
            12..=13 => {
                let Some((path, _)) = self.owned(true) else { return };
                let (parent, name) = self.parent(&path);
                let real = outcome(&fs.unlink(at(&path)));
                let wanted = self.model.unlink(parent, &name);
                self.same("unlink", &path, real, wanted);
            }
            14 => {
                let Some((path, _)) = self.owned(false) else { return };
                let (parent, name) = self.parent(&path);
                let real = outcome(&fs.remove_dir(at(&path)));
                let wanted = self.model.rmdir(parent, &name);
                self.same("rmdir", &path, real, wanted);
            }
            15..=16 => {
                let Some((source, _)) = self.owned(false) else { return };
                let ((dir, parent), name) = (self.dir(), self.name());
                let path = [&dir[..], b"/", &name].concat();
                let (old, old_name) = self.parent(&source);
                let mode = *self.random.pick(&[RenameMode::Replace, RenameMode::NoReplace]);
                let real = outcome(&fs.rename(at(&source), at(&path), mode));
                let wanted = self.model.rename((old, &old_name), (parent, &name), mode);
                self.same("rename", &source, real, wanted);
            }
            17 => {
                let (Some((one, _)), Some((two, _))) = (self.owned(false), self.owned(false)) else { return };
                let ((old, old_name), (new, new_name)) = (self.parent(&one), self.parent(&two));
                let real = outcome(&fs.rename(at(&one), at(&two), RenameMode::Exchange));
                let wanted = self.model.rename((old, &old_name), (new, &new_name), RenameMode::Exchange);
                self.same("exchange", &one, real, wanted);
            }
            18 => {
                let Some((path, id)) = self.owned(false) else { return };
                if matches!(self.model.nodes[&id].content, Content::Symlink(_)) {
                    return;
                }
                let name = format!("user.{}", self.random.below(3)).into_bytes();
                let value = bytes(self.random.below(900), self.random.next());
                fs.set_xattr(at(&path), &name, &value, SetMode::Any).unwrap();
                self.model.nodes.get_mut(&id).unwrap().xattrs.insert(name, value);
            }
            _ => {
                let Some((path, id)) = self.owned(false) else { return };
                let name = format!("user.{}", self.random.below(3)).into_bytes();
                let real = outcome(&fs.remove_xattr(at(&path), &name));
                let node = self.model.nodes.get_mut(&id).unwrap();
                let wanted = if node.xattrs.remove(&name).is_some() { Outcome::Done } else { Outcome::NoAttribute };
                self.same("remove an attribute of", &path, real, wanted);
            }
        }
    }

    fn write(&mut self, fs: &FileSystem) {
        let Some((path, id)) = self.owned(true) else { return };
        let Content::File(before) = &self.model.nodes[&id].content else { return };
        let file = fs.open_file(at(&path)).unwrap();
        let mut read = vec![1; before.len() + 1];
        assert_eq!(file.read_at(0, &mut read).unwrap(), before.len(), "{}", show(&path));
        assert!(read[..before.len()] == before[..], "thread {}: {} changed", self.number, show(&path));
        let offset = match self.random.below(6) {
            0 => 4_000_000,
            1 => self.random.below(60_000),
            _ => self.random.below(5000),
        };
        let longest = if self.random.chance(8) { 100_000 } else { 3000 };
        let data = bytes(self.random.below(longest) + 1, self.random.next());
        // A file of some megabytes a thread is enough.
        let offset = if before.len() > 4_000_000 || self.made.is_multiple_of(5) { offset } else { offset % 60_000 };
        assert_eq!(file.write_at(offset as u64, &data).unwrap(), data.len());
        self.model.write(id, offset, &data);
    }
}

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
                    assert_eq!(file.write_at(0, &file.ino().0.to_le_bytes().repeat(8)).unwrap(), 32);
                }
                Err(FsError::Exists) => {}
                Err(error) => panic!("{error}"),
            },
            2 => match fs.unlink(&first) {
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
                    let len = file.read_at(0, &mut read).unwrap();
                    // All or nothing of what its creator wrote.
                    assert!(len == 0 || read[..len] == file.ino().0.to_le_bytes().repeat(8)[..], "{read:?}");
                }
                Err(FsError::NotFound) => {}
                Err(error) => panic!("{error}"),
            },
        }
    }

    /// What is there is what was put there, and links are counted right. Then empties the arena.
    fn settle(&self, fs: &FileSystem) {
        let entries = fs.read_dir("/arena").unwrap();
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
            let stat = fs.stat(at(&path)).unwrap();
            assert_eq!((stat.ino, stat.links), (entry.ino, names[&entry.ino]), "{}", show(&path));
        }
        for entry in &entries {
            fs.unlink(at(&[b"/arena/", &entry.name[..]].concat())).unwrap();
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
    let small = OpenOptions::new().node_cache(NonZeroUsize::new(1024).unwrap()).dirty_nodes(400);
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
        assert_eq!(file.read_at(0, &mut all).unwrap(), all.len());
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
