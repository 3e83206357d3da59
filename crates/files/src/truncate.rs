//! Freeing the blocks of a file from its end, in steps that each fit into one operation.
//!
//! A file that keeps its name is cut so that no checkpoint between two steps has blocks behind its size: a crash would
//! leave them there, and they would come back when the file grows. So each step but the last takes the size along.

use core::ops::Range;

use f2fs_format::node::ADDRS_PER_BLOCK;
use f2fs_format::path::{self, NodeKind};
use f2fs_format::{Corruption, Nid};
use f2fs_volume::tree::{add_blocks, load_child};
use f2fs_volume::{Node, Op, Volume};

use crate::FsError;

/// Direct nodes emptied in one operation at most: bounds how long a checkpoint waits.
const STEP: u32 = 32;
/// So many blocks at the end of a file are always one step: they lie in as many nodes as that, if they begin within
/// one.
pub(crate) const STEP_BLOCKS: u64 = (STEP as u64 - 1) * ADDRS_PER_BLOCK as u64;

/// The outcome of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing is left behind `keep`.
    Done,
    /// Another step is needed.
    More,
}

/// Capacity of a subtree in file blocks.
fn capacity(kind: NodeKind) -> u64 {
    let width = ADDRS_PER_BLOCK as u64;
    match kind {
        NodeKind::Direct => width,
        NodeKind::Indirect => width * width,
        NodeKind::DoubleIndirect => width * width * width,
        NodeKind::Inode | NodeKind::Xattr => 0,
    }
}

struct Step<'a, 'o> {
    op: &'a Op<'o>,
    volume: &'a Volume,
    inode: &'a Node,
    budget: u32,
    /// Blocks (data and nodes) freed.
    freed: i64,
    /// The first of the file's blocks that was freed, or whose node was.
    end: u64,
    /// The nodes that it comes by, if it frees nothing and only loads them.
    loaded: Option<Vec<Node>>,
}

/// Frees what lies at or behind block `keep`, from the end, as far as one operation should go.
pub(crate) fn truncate_step(op: &Op<'_>, inode: &Node, keep: u64) -> Result<Progress, FsError> {
    step(op, inode, keep).1
}

/// The same. It also returns the first block of the file that was freed, or whose node was, even after an error.
pub(crate) fn step(op: &Op<'_>, inode: &Node, keep: u64) -> (u64, Result<Progress, FsError>) {
    let mut step = Step { op, volume: op.volume(), inode, budget: STEP, freed: 0, end: u64::MAX, loaded: None };
    let result = step.run(keep);
    let (end, freed) = (step.end, step.freed);
    if freed != 0 {
        add_blocks(op, inode, -freed);
    }
    (end, result)
}

/// Loads the nodes that freeing all at or behind block `keep` needs, and what the NAT has of those that would go. As long
/// as the caller keeps them the device is not asked for them again.
pub(crate) fn load_behind(op: &Op<'_>, inode: &Node, keep: u64) -> Result<Vec<Node>, FsError> {
    let (volume, loaded) = (op.volume(), Some(Vec::new()));
    let mut step = Step { op, volume, inode, budget: u32::MAX, freed: 0, end: u64::MAX, loaded };
    step.run(keep)?;
    Ok(step.loaded.unwrap_or_default())
}

/// The last of these slots of an indirect node that names a node.
fn last_child(node: &Node, slots: Range<usize>) -> Option<(usize, Nid)> {
    let first = slots.start;
    let page = node.read();
    let named = page.slots().get(slots)?;
    let last = named.iter().rposition(|slot| !Nid::from(*slot).is_null())?;
    Some((first + last, named[last].into()))
}

impl Step<'_, '_> {
    fn run(&mut self, keep: u64) -> Result<Progress, FsError> {
        let features = self.volume.features();
        let addresses = self.inode.read().inode().layout(features).address_count();
        // Where each child of the inode begins.
        let children: [(u32, NodeKind); 5] = [
            (1, NodeKind::Direct),
            (2, NodeKind::Direct),
            (path::FIRST_INDIRECT, NodeKind::Indirect),
            (path::SECOND_INDIRECT, NodeKind::Indirect),
            (path::DOUBLE_INDIRECT, NodeKind::DoubleIndirect),
        ];
        for (slot, (offset, kind)) in children.into_iter().enumerate().rev() {
            let first = addresses as u64 + children[..slot].iter().map(|(_, kind)| capacity(*kind)).sum::<u64>();
            let kept = keep.saturating_sub(first);
            if kept >= capacity(kind) {
                return Ok(Progress::Done);
            }
            let nid: Nid = self.inode.read().inode().i_nid[slot].into();
            if nid.is_null() {
                continue;
            }
            if self.shrink(nid, (offset, kind), first, kept)? == Progress::More {
                return Ok(Progress::More);
            }
            if kept == 0 && self.loaded.is_none() {
                self.inode.write(self.op).inode_mut().i_nid[slot] = Nid::NULL.into();
            }
        }
        self.clear_addresses(self.inode, 0, keep.min(addresses as u64) as usize, addresses)?;
        Ok(Progress::Done)
    }

    /// Frees the blocks of a node behind its first `kept` ones, and the node itself if none is left. The node's first
    /// block is the file's block `first`. The caller clears the slot that named it.
    fn shrink(
        &mut self,
        nid: Nid,
        (offset, kind): (u32, NodeKind),
        first: u64,
        kept: u64,
    ) -> Result<Progress, FsError> {
        let node = load_child(self.volume, self.inode.nid(), nid, offset)?;
        if kind == NodeKind::Direct {
            if self.budget == 0 {
                return Ok(Progress::More);
            }
            self.budget -= 1;
            self.clear_addresses(&node, first, kept as usize, ADDRS_PER_BLOCK)?;
        } else {
            let child_kind = if kind == NodeKind::Indirect { NodeKind::Direct } else { NodeKind::Indirect };
            let width = capacity(child_kind);
            // From the last child to the first one of which anything goes.
            let first_slot = (kept / width) as usize;
            let mut behind = ADDRS_PER_BLOCK;
            while let Some((slot, child)) = last_child(&node, first_slot..behind) {
                behind = slot;
                let child_kept = kept.saturating_sub(slot as u64 * width);
                let child_offset = path::child(offset, slot).ok_or(Corruption::Range {
                    what: "child of a node offset",
                    found: offset.into(),
                    min: 0,
                    max: path::END.into(),
                })?;
                let child_first = first + slot as u64 * width;
                if self.shrink(child, (child_offset, child_kind), child_first, child_kept)? == Progress::More {
                    return Ok(Progress::More);
                }
                if child_kept == 0 && self.loaded.is_none() {
                    node.write(self.op).slots_mut()[slot] = Nid::NULL.into();
                }
            }
        }
        if let Some(loaded) = &mut self.loaded {
            if kept == 0 {
                self.volume.nodes().version(nid)?;
            }
            loaded.push(node);
        } else if kept == 0 {
            self.volume.nodes().remove(self.op, &node)?;
            self.freed += 1;
            self.end = first;
        }
        Ok(Progress::Done)
    }

    fn clear_addresses(&mut self, node: &Node, first: u64, from: usize, to: usize) -> Result<(), FsError> {
        if self.loaded.is_some() {
            return Ok(());
        }
        let mut cleared = 0;
        let freed = self.volume.slots().clear(self.op, node, from..to, |_, _| cleared += 1);
        if cleared != 0 {
            self.end = first + from as u64;
            self.freed += cleared;
        }
        Ok(freed.map(drop)?)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use f2fs_format::inode::Inode as RawInode;

    use super::*;
    use crate::samples::formatted;
    use crate::{File, FileSystem, Options};

    const B: u64 = 4096;
    const WIDTH: u64 = ADDRS_PER_BLOCK as u64;

    fn file_system() -> FileSystem {
        let device = formatted(32 * 1024);
        FileSystem::open(device, Options::new()).unwrap()
    }

    /// A file with these blocks, and how many addresses its inode has.
    fn file(fs: &FileSystem, name: &str, blocks: &[u64]) -> (File, u64) {
        let file = fs.create_file(name, 0o644).unwrap();
        file.allocate(0, 1, crate::AllocateFlags::NONE).unwrap();
        for block in blocks {
            file.write_at(&[1; B as usize], block * B).unwrap();
        }
        let addresses = file.inode().node.read().inode().layout(fs.volume().features()).address_count();
        (file, addresses as u64)
    }

    fn count(file: &File) -> u64 {
        file.metadata().unwrap().blocks
    }

    fn inode<T>(file: &File, look: impl Fn(&RawInode) -> T) -> T {
        look(file.inode().node.read().inode())
    }

    /// A step is bounded, ends where it says, and counts what it freed.
    #[test]
    fn each_step_frees_what_lies_last() {
        let fs = file_system();
        let before = fs.statfs();
        let (empty, addresses) = file(&fs, "/empty", &[]);
        let nodes = u64::from(STEP) * 2;
        let places: Vec<u64> = (0..nodes).map(|node| addresses + node * WIDTH + 7).collect();
        let (file, _) = file(&fs, "/f", &places);
        // Below the inode two nodes, below the first indirect one the others.
        assert_eq!(count(&file), 1 + 1 + 1 + 2 * nodes);
        let one = |keep| fs.core.change(|op| Ok(step(op, &file.inode().node, keep))).unwrap();
        let (end, progress) = one(0);
        assert_eq!((end, progress.unwrap()), (addresses + u64::from(STEP) * WIDTH, Progress::More));
        assert_eq!(count(&file), 1 + 1 + 1 + nodes);
        let (end, progress) = one(addresses + 3 * WIDTH + 8);
        assert_eq!((end, progress.unwrap()), (addresses + 4 * WIDTH, Progress::Done));
        assert_eq!(count(&file), 1 + 1 + 1 + 8);
        let (end, progress) = one(addresses + 3 * WIDTH + 7);
        assert_eq!((end, progress.unwrap()), (addresses + 3 * WIDTH + 7, Progress::Done), "the node stays");
        assert_eq!(count(&file), 1 + 1 + 1 + 7);
        let (end, progress) = one(addresses + 3 * WIDTH);
        assert_eq!((end, progress.unwrap()), (addresses + 3 * WIDTH, Progress::Done), "a node without a block");
        assert_eq!(count(&file), 1 + 1 + 1 + 6);
        let (end, progress) = one(1);
        assert_eq!((end, progress.unwrap()), (addresses, Progress::Done));
        assert_eq!((count(&file), inode(&file, |raw| raw.i_nid.map(u32::from))), (1 + 1, [0; 5]));
        let (end, progress) = one(0);
        assert_eq!((end, progress.unwrap()), (0, Progress::Done));
        let (end, progress) = one(0);
        assert_eq!((end, progress.unwrap()), (u64::MAX, Progress::Done), "nothing was left");
        assert_eq!(count(&file), 1);
        drop((file, empty));
        fs.remove_file("/f").unwrap();
        fs.remove_file("/empty").unwrap();
        let after = fs.statfs();
        assert_eq!((after.valid_blocks, after.valid_nodes), (before.valid_blocks, before.valid_nodes));
    }

    /// The blocks in front of the cut stay, whatever node leads to them, and those behind it go with their nodes.
    #[test]
    fn a_cut_leaves_what_lies_in_front_of_it() {
        let fs = file_system();
        let (_, addresses) = file(&fs, "/empty", &[]);
        // Each kind of node has its first block and others: in the same direct node, in the next one, behind the next
        // indirect one. And the last block of the inode.
        let second = addresses + 2 * WIDTH + WIDTH * WIDTH;
        let double = addresses + 2 * WIDTH + 2 * WIDTH * WIDTH;
        let blocks = [
            0,
            addresses - 1,
            addresses,
            addresses + WIDTH - 1,
            addresses + WIDTH,
            addresses + 2 * WIDTH,
            addresses + 3 * WIDTH + 1,
            second - 1,
            second,
            second + 5 * WIDTH,
            double - 1,
            double,
            double + 1,
            double + WIDTH,
            double + WIDTH * WIDTH + WIDTH + 9,
            double + 2 * WIDTH * WIDTH,
        ];
        // The nodes that lead to a block: each by the first block of the file that it could have.
        let nodes = |block: u64| -> Vec<(u32, u64)> {
            let round = |start: u64, width: u64| start + (block - start) / width * width;
            if block < addresses {
                Vec::new()
            } else if block < addresses + 2 * WIDTH {
                vec![(1, round(addresses, WIDTH))]
            } else if block < double {
                let start = if block < second { addresses + 2 * WIDTH } else { second };
                vec![(2, start), (1, round(start, WIDTH))]
            } else {
                vec![(3, double), (2, round(double, WIDTH * WIDTH)), (1, round(double, WIDTH))]
            }
        };
        let cuts = blocks.iter().flat_map(|block| [*block, block + 1]);
        for keep in cuts {
            let (file, _) = file(&fs, "/f", &blocks);
            file.set_len(keep * B).unwrap();
            let left: Vec<u64> = blocks.iter().copied().filter(|block| *block < keep).collect();
            let mut expected: Vec<_> = left.iter().flat_map(|block| nodes(*block)).collect();
            expected.sort_unstable();
            expected.dedup();
            // A node in which the cut lies may stay without a block.
            let spare =
                nodes(keep.saturating_sub(1)).into_iter().filter(|node| !expected.contains(node)).count() as u64;
            let least = 1 + left.len() as u64 + expected.len() as u64;
            assert!((least..=least + spare).contains(&count(&file)), "{keep}: {} for {least} + {spare}", count(&file));
            let mut found = Vec::new();
            let mut at = 0;
            while let Some(range) = file.next_data(at).unwrap() {
                found.extend((range.start / B)..(range.end / B));
                at = range.end;
            }
            assert_eq!(found, left, "{keep}");
            drop(file);
            fs.remove_file("/f").unwrap();
        }
    }

    /// What a cut needs is loaded, and nothing is changed.
    #[test]
    fn loading_frees_nothing() {
        let fs = file_system();
        let (_, addresses) = file(&fs, "/empty", &[]);
        let nodes = u64::from(STEP) + 8;
        let places: Vec<u64> = (0..nodes).map(|node| addresses + node * WIDTH).collect();
        let (file, _) = file(&fs, "/f", &places);
        let loaded = |keep| fs.core.change(|op| Ok(load_behind(op, &file.inode().node, keep)?.len() as u64)).unwrap();
        let (blocks, before) = (count(&file), inode(&file, |raw| raw.i_nid.map(u32::from)));
        assert_eq!(loaded(0), nodes + 1, "and the indirect one above most of them");
        assert_eq!(loaded(addresses + 4 * WIDTH), nodes - 4 + 1);
        assert_eq!(loaded(addresses + 2 * WIDTH), nodes - 2 + 1);
        assert_eq!(loaded(addresses + 4 * WIDTH - 1), nodes - 3 + 1, "the cut lies in a node");
        assert_eq!((loaded(addresses + nodes * WIDTH), loaded(u64::MAX)), (1, 0));
        assert_eq!((count(&file), inode(&file, |raw| raw.i_nid.map(u32::from))), (blocks, before));
        for place in places {
            let mut byte = [0];
            file.read_at(&mut byte, place * B).unwrap();
            assert_eq!(byte, [1]);
        }
    }
}
