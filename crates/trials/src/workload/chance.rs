//! Random operations.

use crate::base::BaseKind;
use crate::op::Op;
use crate::tree::{Content, Tree, parent};
use f2fs_device_test::Random;

/// Random operations below a directory.
#[derive(Debug)]
pub(crate) struct Steps {
    random: Random,
    dir: String,
    left: usize,
    names: usize,
    kind: BaseKind,
    /// Whether modes, owners and times change as well: in every other workload.
    attributes: bool,
    /// Whether files are appended to: in every fifth.
    appends: bool,
}

impl Steps {
    pub(crate) fn new(seed: u64, dir: &str, kind: BaseKind) -> Steps {
        let mut random = Random::new(seed);
        let left = 16 + random.below(24);
        let (attributes, appends) = (seed & 4 == 0, seed % 5 == 3);
        Steps { random, dir: dir.to_owned(), left, names: 0, kind, attributes, appends }
    }

    pub(crate) fn next(&mut self, tree: &Tree) -> Option<Op> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        loop {
            let op = self.propose(tree);
            if op.fits(tree) {
                return Some(op);
            }
        }
    }

    fn propose(&mut self, tree: &Tree) -> Op {
        let root = if self.dir.is_empty() { "/" } else { &self.dir };
        // The files that fill the volume have operations of their own.
        let ours = |path: &&String| path.as_str() != root && !path.starts_with("/fill") && !path.starts_with("/large");
        let mut paths: Vec<String> = tree.names.keys().filter(ours).cloned().collect();
        paths.push(format!("{}/none", self.dir));
        let mut dirs: Vec<String> = paths.iter().filter(|path| tree.is_dir(path)).cloned().collect();
        dirs.push(self.dir.clone());
        let random = &mut self.random;
        let path = random.pick(&paths).cloned().unwrap_or_default();
        let other = random.pick(&paths).cloned().unwrap_or_default();
        self.names += 1;
        let new = format!("{}/n{}", random.pick(&dirs).cloned().unwrap_or_default(), self.names);
        let lengths = match self.kind {
            BaseKind::Plain
            | BaseKind::Checksums
            | BaseKind::Wide
            | BaseKind::Broad
            | BaseKind::Several
            | BaseKind::Journaled
            | BaseKind::DataJournaled
            | BaseKind::LineJournaled
            | BaseKind::WideJournaled
            | BaseKind::WideDataJournaled
            | BaseKind::Cached => [1, 100, 4096, 5000, 40_000],
            BaseKind::Tight => [100, 4096, 8192, 16_384, 40_000],
            BaseKind::Full | BaseKind::FullJournaled | BaseKind::Zoned | BaseKind::ZonedInPart => {
                [4096, 40_000, 400_000, 1 << 20, 2 << 20]
            }
        };
        let len = random.pick(&lengths).copied().unwrap_or(1);
        let offset = random.pick(&[0, 0, 1, 4096, 6000, 60_000]).copied().unwrap_or(0);
        let sizes = match self.kind {
            BaseKind::Full | BaseKind::FullJournaled | BaseKind::Zoned | BaseKind::ZonedInPart => {
                [0, 0, 4096, 1 << 20, 3 << 20]
            }
            _ => [0, 100, 4096, 9000, 70_000],
        };
        let size = random.pick(&sizes).copied().unwrap_or(0);
        let fill: Vec<&String> =
            tree.names.keys().filter(|path| path.starts_with("/fill/") || path.starts_with("/large")).collect();
        // Much of it without a checkpoint in between: what is freed meanwhile must not be used again.
        let often = match self.kind {
            BaseKind::Tight => 3,
            _ => 2,
        };
        if !fill.is_empty() && random.below(4) < often {
            let path = (*random.pick(&fill).unwrap_or(&fill[0])).clone();
            let blocks = match tree.node(&path).map(|node| &node.content) {
                Some(Content::File(bytes)) => bytes.len() / 4096,
                _ => 1,
            };
            let offset = random.below(blocks) as u64 * 4096;
            let segments =
                matches!(self.kind, BaseKind::Full | BaseKind::FullJournaled | BaseKind::Zoned | BaseKind::ZonedInPart);
            return match (segments, random.below(6)) {
                (true, 0 | 1) => Op::Unlink(path),
                (true, 2) => Op::Truncate(path, 4096),
                (true, 3) => Op::Create(format!("/large-new-{}", self.names)),
                // What is in the journal already is synced again, with more.
                (true, 4) if self.kind == BaseKind::FullJournaled => Op::Sync(path),
                (true, 4) => Op::Clean,
                // Not a whole segment: the next one is written in two parts.
                (true, _) if self.appends => Op::Append(path, (2 << 20) - (64 << 10)),
                (true, _) => Op::Write(path, 0, 2 << 20),
                (_, 0) => Op::Clean,
                _ => Op::Write(path, offset, 16 * 4096),
            };
        }
        match random.below(if self.attributes { 28 } else { 25 }) {
            0 | 1 => Op::Create(new),
            2 => Op::Mkdir(new),
            3 => Op::Symlink(new, 1 + random.below(120)),
            4 => Op::Link(path, new),
            5 => Op::Rename(path, new),
            6 => Op::Rename(path, other),
            7 => Op::Exchange(path, other),
            8 => Op::Unlink(path),
            9 => Op::Orphan(path),
            10 => Op::Rmdir(path),
            14 if self.appends => Op::Append(path, len),
            11..=14 => Op::Write(path, offset, len),
            15 => Op::Truncate(path, size),
            16 => Op::Allocate(path, offset, len as u64, random.chance(2)),
            17 => Op::SetXattr(path, format!("user.n{}", random.below(3)), *random.pick(&[1, 100, 3000]).unwrap_or(&1)),
            18 => Op::RemoveXattr(path, format!("user.n{}", random.below(3))),
            21 if self.kind.has_journal() => {
                let above = parent(&path);
                Op::SyncDir(if above.is_empty() { "/" } else { above }.to_owned())
            }
            19..=21 => Op::Sync(path),
            22 | 23 => Op::WriteDurable(path, offset, len),
            24 if self.attributes => Op::SetMode(path, 0o600 + random.below(64) as u16),
            25 => Op::SetOwner(path, random.below(3) as u32, random.below(3) as u32),
            26 => Op::SetTimes(path, random.below(1000) as i64),
            _ => Op::Checkpoint,
        }
    }
}
