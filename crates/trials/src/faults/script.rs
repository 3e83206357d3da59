//! The workload that is failed: episodes, each from an opening to a close or to a stop without one.
//!
//! ```text
//!   base -> open, operations, close -> open, operations, dropped -> open (recovers), operations, close -> ...
//!           '----- episode 0 -----'    '------ episode 1 ------'    '---------- episode 2 ----------'
//! ```
//!
//! Every run of an episode begins on the same volume with the same operations, so that a fault at one of its requests
//! needs no run of those before. Openings and closes make requests like others, and those after a drop roll forward.

use f2fs_device::MemoryDevice;
use f2fs_device_test::RecordingDevice;
use f2fs_files::FsError;
use f2fs_sync::Arc;

use super::Faulty;
use super::way::Way;
use crate::base::Base;
use crate::op::{Op, is_refusal};
use crate::tree::Tree;
use crate::workload::Steps;
use f2fs_device_test::Random;

/// Requests that the workload makes at least.
const REQUESTS: u64 = 2000;

/// Requests, by what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// All of them: reads, writes, discards and flushes.
    pub all: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
}

impl Requests {
    pub(super) fn plus(self, other: Requests) -> Requests {
        Requests {
            all: self.all + other.all,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            flushes: self.flushes + other.flushes,
        }
    }

    /// Those that can fail in a way.
    pub(super) fn that_can(self, way: Way) -> u64 {
        match way {
            Way::FlushLost => self.flushes,
            Way::Misdirected => self.writes,
            Way::Flipped => self.reads,
            _ => self.all,
        }
    }
}

/// One opening of the volume, and what is done until the next.
#[derive(Debug)]
pub(super) struct Episode {
    /// The volume before it.
    pub(super) start: MemoryDevice,
    /// Its contents once it is open.
    pub(super) tree: Tree,
    /// The operations.
    pub(super) ops: Vec<Op>,
    /// Whether it is closed in the end.
    pub(super) closed: bool,
    /// The requests of all that, on a healthy device.
    pub(super) requests: Requests,
}

impl Episode {
    /// The seed of the bytes that operation `index` writes.
    pub(super) fn salt(index: usize) -> u64 {
        (index as u64 + 1) << 8
    }

    fn new(start: MemoryDevice, steps: &mut Steps, closed: bool) -> Result<(Episode, MemoryDevice), FsError> {
        let recorded = || Arc::new(RecordingDevice::new(start.snapshot()));
        let tree = Tree::walk(&Faulty::new(&recorded()).map_err(FsError::Invalid)?.open()?)?;
        let recorder = recorded();
        let faulty = Faulty::new(&recorder).map_err(FsError::Invalid)?;
        let fs = faulty.open()?;
        let (mut now, mut ops, mut open) = (tree.clone(), Vec::new(), Vec::new());
        while let Some(op) = steps.next(&now) {
            let salt = Episode::salt(ops.len());
            let done = match op.perform(&fs, salt) {
                Ok(done) => done,
                Err(error) if is_refusal(&error) => continue,
                Err(error) => return Err(error),
            };
            op.clone().done(&done).apply(&mut now, salt, done.ino);
            open.extend(done.open);
            ops.push(op);
        }
        if closed {
            fs.close()?;
        }
        // Handles that close free what has no name any more: not with the volume gone.
        let (counts, all, end) = (recorder.counts(), faulty.volume.operations(), recorder.snapshot());
        drop(open);
        let requests = Requests { all, reads: counts.reads, writes: counts.writes, flushes: counts.flushes };
        Ok((Episode { start, tree, ops, closed, requests }, end))
    }
}

/// The whole workload.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) episodes: Vec<Episode>,
}

impl Script {
    /// Chance makes operations until there are requests enough.
    pub(super) fn new(base: &Base, seed: u64) -> Result<Script, FsError> {
        let mut random = Random::new(seed);
        let (mut script, mut start) = (Script { episodes: Vec::new() }, base.device.snapshot());
        while script.requests().all < REQUESTS {
            let mut steps = Steps::new(random.next(), "", base.kind);
            let closed = script.episodes.len() % 2 == 0;
            let (episode, end) = Episode::new(start, &mut steps, closed)?;
            script.episodes.push(episode);
            start = end;
        }
        Ok(script)
    }

    /// All requests.
    pub(super) fn requests(&self) -> Requests {
        self.episodes.iter().fold(Requests::default(), |sum, episode| sum.plus(episode.requests))
    }
}
