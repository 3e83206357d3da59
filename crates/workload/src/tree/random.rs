//! Random changes with syncs between them, the same for the same seed: for comparing the recovery of two sides.

use std::collections::BTreeSet;

use f2fs_device_test::Random;

use super::Op;
use super::data::mix;

/// Directories that are there before the changes begin.
const DIRECTORIES: [&str; 4] = ["", "/a", "/a/b", "/c"];
/// Files that are there before.
const FILES: u64 = 24;
/// The one file with data far behind its beginning, in nodes of every kind but the double indirect ones.
const SPARSE: &str = "/a/sparse";
/// Farther than the inode and both direct nodes reach.
const FAR: u64 = 14 << 20;

/// The tree that [`random_syncs`] begins with. Make a checkpoint behind it.
#[must_use]
pub fn random_base(seed: u64) -> Vec<Op> {
    let mut script = Script::new(seed);
    for path in &DIRECTORIES[1..] {
        script.ops.push(Op::Mkdir { path: (*path).into(), mode: 0o755 });
    }
    for path in base_files() {
        script.create(path);
    }
    script.ops
}

/// So many random operations, more than a quarter of them syncs of a file, on what [`random_base`] made. Links, renames
/// and new directories are among the first half, whose syncs are checkpoints.
#[must_use]
pub fn random_syncs(seed: u64, steps: u64) -> Vec<Op> {
    let mut script = Script::new(mix(seed) ^ 1);
    script.directories = DIRECTORIES.map(str::to_owned).to_vec();
    for (inode, path) in base_files().enumerate() {
        script.names.push(Name { path, inode });
        script.xattrs.push(BTreeSet::new());
    }
    for step in 0..steps {
        script.step(step >= steps / 2);
    }
    script.ops
}

fn base_files() -> impl Iterator<Item = String> {
    let path = |index| format!("{}/base{index}", DIRECTORIES[index as usize % DIRECTORIES.len()]);
    (0..FILES).map(path).chain([SPARSE.to_owned()])
}

/// A name of a regular file.
#[derive(Clone, Debug)]
struct Name {
    path: String,
    /// Which of the files made so far.
    inode: usize,
}

struct Script {
    random: Random,
    ops: Vec<Op>,
    directories: Vec<String>,
    names: Vec<Name>,
    /// Attributes that each file has.
    xattrs: Vec<BTreeSet<&'static str>>,
    /// The name touched last.
    last: String,
}

impl Script {
    fn new(seed: u64) -> Self {
        let (random, last) = (Random::new(mix(seed)), SPARSE.to_owned());
        Script { random, ops: Vec::new(), directories: Vec::new(), names: Vec::new(), xattrs: Vec::new(), last }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below_u64(bound)
    }

    /// Small, around a page, or many blocks.
    fn length(&mut self) -> u64 {
        let bound = [300, 5000, 30_000, 200_000][self.below(4) as usize];
        1 + self.below(bound)
    }

    fn any(&mut self) -> usize {
        let count = self.names.len() as u64;
        self.below(count) as usize
    }

    fn new_path(&mut self) -> String {
        let count = self.directories.len() as u64;
        let index = self.below(count) as usize;
        let directory = self.directories[index].clone();
        let number = self.ops.len();
        // Some names take many slots, so that directories grow out of their inodes.
        let padding = "-".repeat([0, 0, 30, 120][self.below(4) as usize]);
        format!("{directory}/new{number}{padding}")
    }

    fn write(&mut self, path: &str) {
        let durable = self.below(5) == 0 && !self.is_linked(path);
        let offset = match self.below(4) {
            0 => 0,
            _ if path == SPARSE => self.below(FAR),
            _ => self.below(300_000),
        };
        let (length, seed) = (self.length(), self.random.next());
        let path = path.into();
        self.ops.push(match durable {
            true => Op::WriteDurable { path, offset, length, seed },
            false => Op::Write { path, offset, length, seed },
        });
    }

    fn create(&mut self, path: String) {
        let mode = [0o644, 0o600, 0o755][self.below(3) as usize];
        self.ops.push(Op::Create { path: path.as_str().into(), mode });
        if self.below(4) != 0 {
            self.write(&path);
        }
        self.names.push(Name { path, inode: self.xattrs.len() });
        self.xattrs.push(BTreeSet::new());
    }

    /// Whether a file has several names.
    fn is_linked(&self, path: &str) -> bool {
        let inode = self.names.iter().find(|name| name.path == path).map(|name| name.inode);
        self.names.iter().filter(|name| Some(name.inode) == inode).count() > 1
    }

    /// `logged`: only files that can be synced without a checkpoint.
    fn step(&mut self, logged: bool) {
        let roll = self.below(100);
        if roll >= 70 {
            let (other, any) = (self.below(3) == 0, self.any());
            let path = if other { self.names[any].path.clone() } else { self.last.clone() };
            if self.names.iter().any(|name| name.path == path) && !(logged && self.is_linked(&path)) {
                self.ops.push(Op::Fsync { path: path.into() });
            }
            return;
        }
        if roll < 14 {
            let path = self.new_path();
            self.create(path.clone());
            self.last = path;
            return;
        }
        let index = self.any();
        let Name { path, inode } = self.names[index].clone();
        self.last.clone_from(&path);
        match roll {
            14..40 => self.write(&path),
            40..46 => {
                let size = if self.below(3) == 0 && !logged { 0 } else { self.length() };
                self.ops.push(Op::Truncate { path: path.into(), size });
            }
            46..52 => self.set_xattr(&path, inode),
            52..54 => {
                if let Some(name) = self.xattrs[inode].pop_first() {
                    self.ops.push(Op::RemoveXattr { path: path.into(), name: name.into() });
                }
            }
            54..58 if path != SPARSE => {
                self.names.remove(index);
                self.ops.push(Op::Unlink { path: path.clone().into() });
                // Made again, sometimes.
                if self.below(2) == 0 {
                    self.create(path);
                }
            }
            58 | 59 if path != SPARSE && !logged => self.rename(index),
            60 if !logged => {
                let new = self.new_path();
                self.ops.push(Op::Link { existing: path.into(), path: new.as_str().into() });
                self.names.push(Name { path: new, inode });
            }
            61 if !logged => {
                let new = self.new_path();
                self.ops.push(Op::Mkdir { path: new.as_str().into(), mode: 0o755 });
                self.directories.push(new);
            }
            62..66 => {
                let (uid, mode) = (self.below(2000) as u32, self.below(0o1000) as u16);
                self.ops.push(Op::Chown { path: path.as_str().into(), uid, gid: uid / 2 });
                self.ops.push(Op::Chmod { path: path.into(), mode: mode | 0o400 });
            }
            _ => {
                let (offset, length, keep_size) = (self.below(200_000), self.length(), self.below(2) == 0);
                self.ops.push(Op::Allocate { path: path.into(), offset, length, keep_size });
            }
        }
    }

    fn set_xattr(&mut self, path: &str, inode: usize) {
        const NAMES: [&str; 3] = ["user.one", "user.two", "user.a-third-with-a-longer-name"];
        let name = NAMES[self.below(3) as usize];
        // Both do not fit into one node together with the rest.
        let length = if name == NAMES[0] && self.below(2) == 0 { 1500 } else { self.below(60) };
        let value = (0..length).map(|at| (at * 7 % 251) as u8).collect();
        self.ops.push(Op::SetXattr { path: path.into(), name: name.into(), value });
        self.xattrs[inode].insert(name);
    }

    fn rename(&mut self, index: usize) {
        let other = self.any();
        let from = self.names[index].clone();
        let onto = self.names[other].clone();
        // Two names of one file: nothing would happen.
        let to = if self.below(3) == 0 && onto.inode != from.inode && onto.path != SPARSE {
            self.names.retain(|name| name.path != onto.path);
            onto.path
        } else {
            self.new_path()
        };
        self.ops.push(Op::Rename { from: from.path.as_str().into(), to: to.as_str().into() });
        if let Some(name) = self.names.iter_mut().find(|name| name.path == from.path) {
            name.path.clone_from(&to);
        }
        self.last = to;
    }
}
