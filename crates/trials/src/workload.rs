//! The workloads that are crashed.
//!
//! | Text | What it is |
//! |---|---|
//! | `plain: create /A/new; sync /A/new` | operations on a base volume, as the enumeration makes them, or anybody |
//! | `random tight 7` | operations by chance, from a seed |
//! | `threads plain 7` | three threads at once, each in its own directory, and a fourth that writes checkpoints |
//!
//! The enumeration is that of ACE (Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing", OSDI
//! 2018): every sequence of so many operations over a bounded set of files and of parameters, each followed by nothing, an
//! `fsync` of what it was about, or a checkpoint; the last one always by one of the two.

use std::fmt;
use std::str::FromStr;

use f2fs_sync::Arc;
use f2fs_sync::atomic::{AtomicUsize, Ordering};

use crate::base::{Base, BaseKind};
use crate::op::Op;
use crate::random::Random;
use crate::record::{Recording, Source, StepError, record};
use crate::tree::{Content, Tree};

/// Threads of a workload with several.
const THREADS: usize = 3;
/// Checkpoints that the fourth one writes at most.
const CHECKPOINTS: usize = 12;

/// What is done before the crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// These operations, one after the other.
    Sequence(BaseKind, Vec<Op>),
    /// Operations by chance.
    Random(BaseKind, u64),
    /// Several threads.
    Threads(BaseKind, u64),
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Workload::Sequence(base, ops) => {
                let texts: Vec<String> = ops.iter().map(Op::to_string).collect();
                write!(f, "{}: {}", base.name(), texts.join("; "))
            }
            Workload::Random(base, seed) => write!(f, "random {} {seed}", base.name()),
            Workload::Threads(base, seed) => write!(f, "threads {} {seed}", base.name()),
        }
    }
}

/// A text that is no workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no workload")]
pub struct ParseWorkloadError(String);

impl FromStr for Workload {
    type Err = ParseWorkloadError;

    fn from_str(text: &str) -> Result<Workload, ParseWorkloadError> {
        parse(text).ok_or_else(|| ParseWorkloadError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Workload> {
    let base = |name: &str| BaseKind::ALL.into_iter().find(|kind| kind.name() == name.trim());
    if let Some((name, ops)) = text.split_once(':') {
        let ops = ops.split(';').map(str::trim).filter(|op| !op.is_empty());
        return Some(Workload::Sequence(base(name)?, ops.map(|op| op.parse().ok()).collect::<Option<_>>()?));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let (base, seed) = (base(words.get(1)?)?, words.get(2)?.parse().ok()?);
    match *words.first()? {
        "random" => Some(Workload::Random(base, seed)),
        "threads" => Some(Workload::Threads(base, seed)),
        _ => None,
    }
}

impl Workload {
    /// The volume it begins on.
    #[must_use]
    pub fn base(&self) -> BaseKind {
        match self {
            Workload::Sequence(base, _) | Workload::Random(base, _) | Workload::Threads(base, _) => *base,
        }
    }

    /// Runs it on a copy of its base.
    ///
    /// # Errors
    /// [`StepError`] if an operation comes out otherwise than the model.
    pub fn run(&self, base: &Base) -> Result<Recording, StepError> {
        let device = base.device.snapshot();
        match self {
            Workload::Sequence(_, ops) => {
                let mut ops = ops.iter().cloned();
                let source: Source<'_> = Box::new(move |_| ops.next());
                record(device, &base.tree, 1, vec![("/".into(), source)], false)
            }
            Workload::Random(kind, seed) => {
                let mut steps = Steps::new(*seed, "", *kind);
                let source: Source<'_> = Box::new(move |tree| steps.next(tree));
                record(device, &base.tree, seed << 16, vec![("/".into(), source)], true)
            }
            Workload::Threads(kind, seed) => threads(base, *kind, *seed),
        }
    }
}

fn threads(base: &Base, kind: BaseKind, seed: u64) -> Result<Recording, StepError> {
    let mut before = (0..THREADS).map(|index| Op::Mkdir(format!("/t{index}")));
    let source: Source<'_> = Box::new(move |_| before.next());
    let made = record(base.device.snapshot(), &base.tree, 3, vec![("/".into(), source)], true)?;
    let device = made.log.image_at(made.log.events().len(), |_, _| true);
    let tree = made.lanes[0].history(made.lanes[0].steps.len()).clone();
    let done = Arc::new(AtomicUsize::new(0));
    let mut sources: Vec<(String, Source<'_>)> = Vec::new();
    for index in 0..THREADS {
        let dir = format!("/t{index}");
        let mut steps = Steps::new(seed ^ (index as u64) << 32, &dir, kind);
        let done = Arc::clone(&done);
        let source: Source<'_> = Box::new(move |tree| {
            let op = steps.next(tree);
            if op.is_none() {
                done.fetch_add(1, Ordering::Relaxed);
            }
            op
        });
        sources.push((dir, source));
    }
    // The fourth has no names.
    let mut left = CHECKPOINTS;
    let checkpoints: Source<'_> = Box::new(move |_| {
        std::thread::sleep(std::time::Duration::from_micros(200));
        left -= 1;
        (left > 0 && done.load(Ordering::Relaxed) < THREADS).then_some(Op::Checkpoint)
    });
    sources.push(("/none".into(), checkpoints));
    record(device, &tree, seed << 16, sources, true)
}

/// Operations by chance below a directory.
#[derive(Debug)]
pub(crate) struct Steps {
    random: Random,
    dir: String,
    left: usize,
    names: usize,
    kind: BaseKind,
}

impl Steps {
    pub(crate) fn new(seed: u64, dir: &str, kind: BaseKind) -> Steps {
        let mut random = Random::new(seed);
        let left = 16 + random.below(24);
        Steps { random, dir: dir.to_owned(), left, names: 0, kind }
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
        // What fills the volume has its own operations.
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
            BaseKind::Plain | BaseKind::Checksums => [1, 100, 4096, 5000, 40_000],
            BaseKind::Tight => [100, 4096, 8192, 16_384, 40_000],
            BaseKind::Full => [4096, 40_000, 400_000, 1 << 20, 2 << 20],
        };
        let len = random.pick(&lengths).copied().unwrap_or(1);
        let offset = random.pick(&[0, 0, 1, 4096, 6000, 60_000]).copied().unwrap_or(0);
        let sizes = match self.kind {
            BaseKind::Full => [0, 0, 4096, 1 << 20, 3 << 20],
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
            return match (self.kind, random.below(6)) {
                (BaseKind::Full, 0 | 1) => Op::Unlink(path),
                (BaseKind::Full, 2) => Op::Truncate(path, 4096),
                (BaseKind::Full, 3) => Op::Create(format!("/large-new-{}", self.names)),
                (BaseKind::Full, _) => Op::Write(path, 0, 2 << 20),
                _ => Op::Write(path, offset, 16 * 4096),
            };
        }
        match random.below(23) {
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
            11..=14 => Op::Write(path, offset, len),
            15 => Op::Truncate(path, size),
            16 => Op::Allocate(path, offset, len as u64, random.chance(2)),
            17 => Op::SetXattr(path, format!("user.n{}", random.below(3)), *random.pick(&[1, 100, 3000]).unwrap_or(&1)),
            18 => Op::RemoveXattr(path, format!("user.n{}", random.below(3))),
            19..=21 => Op::Sync(path),
            _ => Op::Checkpoint,
        }
    }
}

/// The operations of the enumeration.
#[must_use]
pub fn alphabet() -> Vec<Op> {
    [
        "create /A/new",
        "create /new",
        "mkdir /A/newdir",
        "symlink /A/sym 20",
        "symlink /A/long 200",
        "link /A/foo /A/hard",
        "link /A/foo /B/hard2",
        "link /A/new /B/hard3",
        "rename /A/foo /A/foo2",
        "rename /A/foo /B/foo2",
        "rename /A/foo /B/bar",
        "rename /A/bar /A/foo",
        "rename /A/deep /B/deep",
        "rename /A/new /B/bar",
        "rename /A/new /A/new2",
        "exchange /A/foo /B/baz",
        "exchange /A/bar /B/soft",
        "unlink /A/foo",
        "unlink /A/bar",
        "unlink /B/hard",
        "unlink /A/new",
        "orphan /A/foo",
        "rmdir /A/deep",
        "write /A/foo 0 4096",
        "write /A/foo 8192 5000",
        "write /A/foo 40960 100",
        "write /A/bar 200 300",
        "write /A/bar 3000 6000",
        "write /A/new 0 6000",
        "write /B/baz 4096 4096",
        "truncate /A/foo 0",
        "truncate /A/foo 5000",
        "truncate /A/foo 20000",
        "truncate /B/baz 1",
        "reserve /A/foo 16384 9000",
        "allocate /A/foo 16384 9000",
        "allocate /A/bar 0 9000",
        "setxattr /A/foo user.y 30",
        "setxattr /A/foo user.long 3000",
        "setxattr /A/new user.y 30",
        "removexattr /A/foo user.x",
    ]
    .iter()
    .filter_map(|text| text.parse().ok())
    .collect()
}

/// All sequences of `length` operations that fit the tree of `base`, each with what makes it durable.
#[must_use]
pub fn sequences(base: &Base, length: usize) -> Vec<Workload> {
    let mut done: Vec<(Vec<Op>, Tree)> = vec![(Vec::new(), base.tree.clone())];
    let alphabet = alphabet();
    for step in 0..length {
        let mut next = Vec::new();
        for (ops, tree) in &done {
            for op in alphabet.iter().filter(|op| op.fits(tree)) {
                let mut after = tree.clone();
                // Numbers that no inode of the base has.
                op.apply(&mut after, 0, 1_000_000 + step as u32);
                // Without a subject, some other file: an fsync of it must not take the operation along, or may.
                let subject = op.subject().filter(|path| Op::Sync((*path).to_owned()).fits(&after));
                let other = ["/B/bar", "/B/baz"].into_iter().find(|path| after.names.contains_key(*path));
                let sync = subject.or(other).map(|path| Op::Sync(path.to_owned())).filter(|sync| sync.fits(&after));
                let mut durable = vec![Some(Op::Checkpoint)];
                durable.extend(sync.map(Some));
                if step + 1 < length {
                    durable.push(None);
                }
                for last in durable {
                    let ops = ops.iter().cloned().chain([op.clone()]).chain(last).collect();
                    next.push((ops, after.clone()));
                }
            }
        }
        done = next;
    }
    done.into_iter().map(|(ops, _)| Workload::Sequence(base.kind, ops)).collect()
}
