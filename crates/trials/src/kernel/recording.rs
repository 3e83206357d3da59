//! A recording of what the kernel did: its log, its output, and the checkpoints that the log shows.

use f2fs_device_test::{CrashLog, Event};
use f2fs_format::BLOCKS_PER_SEGMENT;
use f2fs_format::checkpoint::CheckpointBlock;
use f2fs_format::superblock::SuperBlock;
use f2fs_sync::Arc;

use super::early::Syncs;
use super::report::{Line, Said};
use super::script::{Floor, Script, salt};
use crate::base::options;
use crate::op::Op;
use crate::record::{Lane, Maker, Recording, Step};

/// Makes the recording of a script. Operations that were refused are left out. With it come the syncs that returned
/// early, by the numbers of their steps from 0 on.
///
/// # Errors
/// A report that does not fit the script, for people.
pub fn recording(floor: &Floor, script: &Script, log: CrashLog, report: &[Line]) -> Result<Kernel, String> {
    let Some((Line { said: Said::Begin, .. }, said)) = report.split_first() else {
        return Err("the report does not begin at the beginning".to_owned());
    };
    let Some((Line { said: Said::Closed, .. }, done)) = said.split_last() else {
        return Err(format!("the report ends after {} of {} operations", report.len() - 1, script.ops.len()));
    };
    if done.len() != script.ops.len() {
        return Err(format!("{} operations were reported, and {} asked for", done.len(), script.ops.len()));
    }
    let versions = Versions::of(&log, floor);
    let mut tree = floor.tree.clone();
    let mut lane = Lane::new("/".to_owned(), Arc::new(tree.clone()));
    // Writes of the mount belong to the first operation.
    let mut before = 0;
    for (index, line) in said.iter().enumerate() {
        let (op, ino) = match line.said {
            Said::Done(ino) => (script.ops[index].clone(), ino),
            // An unmount writes everything.
            Said::Closed => (Op::Checkpoint, 0),
            Said::Refused(_) => continue,
            Said::Begin => return Err("the report begins twice".to_owned()),
        };
        op.apply(&mut tree, salt(index), ino);
        let after = log.events_in(line.log);
        let fsynced = op.syncs().and_then(|path| tree.names.get(path).copied());
        let tick = 2 * lane.steps.len();
        lane.steps.push(Step {
            op,
            fsynced,
            names: false,
            recorded: false,
            certain: true,
            tree: Arc::new(tree.clone()),
            clock: (tick, tick + 1),
            events: (before, after),
            versions: (versions.at(before), versions.at(after)),
        });
        before = after;
    }
    let syncs = Syncs::of(&log);
    let early = |index: &usize| {
        let step = &lane.steps[*index];
        syncs.is_early(step, versions.last(step.events.0))
    };
    let early = (0..lane.steps.len()).filter(early).collect();
    let whole = Recording::of_lane(log, lane, floor.version, options(|volume| volume));
    Ok(Kernel { recording: Recording { maker: Maker::Kernel, timeless: true, ..whole }, early })
}

/// What Linux did for a script.
#[derive(Debug)]
pub struct Kernel {
    /// The operations and the log.
    pub recording: Recording,
    /// The steps whose sync returned before its node was durable, as the first one after a checkpoint does.
    pub early: Vec<usize>,
}

impl Kernel {
    /// Takes a sync that returned early for one that was not over: it promised nothing.
    pub fn excuse(&mut self) {
        for step in &self.early {
            self.recording.lanes[0].steps[*step].certain = false;
        }
    }
}

/// When which checkpoint was there.
struct Versions {
    first: u64,
    /// Events after which a version was complete, in order.
    complete: Vec<(usize, u64)>,
}

impl Versions {
    /// Those that the log of a volume shows: a pack is complete when its last block, which repeats its first, is
    /// written.
    fn of(log: &CrashLog, floor: &Floor) -> Versions {
        let start = u64::from(SuperBlock::read(&floor.device.block(0).0).cp_blkaddr.get());
        let length = u64::from(BLOCKS_PER_SEGMENT);
        // Of each pack: its version and its number of blocks.
        let mut begun = [None; 2];
        let mut complete = Vec::new();
        for (index, event) in log.events().iter().enumerate() {
            let Event::Write { start: first, data, .. } = event else { continue };
            for (at, block) in (*first..).zip(data.as_blocks()) {
                let Some(pack) = at.checked_sub(start).map(|at| (at / length) as usize).filter(|pack| *pack < 2) else {
                    continue;
                };
                let offset = (at - start) % length;
                let header = CheckpointBlock::read(&block.0).header;
                let version = header.checkpoint_ver.get();
                if offset == 0 {
                    begun[pack] = Some((version, u64::from(header.cp_pack_total_block_count.get())));
                } else if begun[pack].is_some_and(|pack| pack == (version, offset + 1)) {
                    complete.push((index + 1, version));
                }
            }
        }
        Versions { first: floor.version, complete }
    }

    /// Events when the last version at a position was complete, and which it is.
    fn last(&self, events: usize) -> (usize, u64) {
        self.complete.iter().rfind(|(at, _)| *at <= events).copied().unwrap_or((0, self.first))
    }

    fn at(&self, events: usize) -> u64 {
        let there = self.complete.iter().filter(|(at, _)| *at <= events).map(|(_, version)| *version);
        there.max().unwrap_or(self.first).max(self.first)
    }
}
