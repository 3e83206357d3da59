//! Few names, which are made, linked, moved, given away and made again, with files made durable in between.
//!
//! Operations by chance on a whole tree hardly ever use a name a second time, and the enumeration has three of them:
//! here a name leads to one file after the other between two checkpoints, and a file goes through many names.

use crate::op::Op;
use crate::tree::Tree;
use f2fs_device_test::Random;

/// All names that there are on a volume.
const NAMES: [&str; 6] = ["/A/foo", "/A/bar", "/A/new", "/B/bar", "/A/dir", "/A/dir/foo"];
/// Those that a thread has in a directory of its own.
const IN_DIRECTORY: [&str; 6] = ["foo", "bar", "new", "dir/bar", "dir", "dir/foo"];

/// Random operations on a few names.
#[derive(Debug)]
pub(super) struct Names {
    random: Random,
    all: Vec<String>,
    left: usize,
}

impl Names {
    pub(super) fn new(seed: u64) -> Names {
        Names::with(seed, NAMES.map(str::to_owned).to_vec())
    }

    /// In an empty directory.
    pub(super) fn in_directory(seed: u64, dir: &str) -> Names {
        Names::with(seed, IN_DIRECTORY.map(|name| format!("{dir}/{name}")).to_vec())
    }

    fn with(seed: u64, all: Vec<String>) -> Names {
        let mut random = Random::new(seed);
        let left = 10 + random.below(16);
        Names { random, all, left }
    }

    pub(super) fn next(&mut self, tree: &Tree) -> Option<Op> {
        self.left = self.left.checked_sub(1)?;
        loop {
            let op = self.propose();
            if op.fits(tree) {
                return Some(op);
            }
        }
    }

    fn propose(&mut self) -> Op {
        let random = &mut self.random;
        let mut name = || random.pick(&self.all).cloned().unwrap_or_default();
        let (path, other) = (name(), name());
        match random.below(24) {
            0..=4 => Op::Create(path),
            5 => Op::Mkdir(path),
            6..=8 => Op::Link(path, other),
            9..=12 => Op::Rename(path, other),
            13 => Op::Exchange(path, other),
            14..=16 => Op::Unlink(path),
            17 => Op::Orphan(path),
            18 => Op::Rmdir(path),
            19 if random.chance(2) => Op::Write(path, 0, 5000),
            19 => Op::Replace(path, 5000),
            20 => Op::WriteDurable(path, 0, 100),
            21 | 22 => Op::Sync(path),
            _ if random.chance(8) => Op::Checkpoint,
            _ if random.chance(4) => Op::SyncDir(path),
            // Of a new file, before anything else makes it durable.
            _ => Op::Sync(path),
        }
    }
}
