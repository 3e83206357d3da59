//! Syncs of Linux that return before what they made durable is durable: a fault of Linux, which is told from all
//! others.
//!
//! An `fsync` writes the nodes of its file, waits for them, and lets the device flush. Linux 6.12 numbers the nodes
//! that it waits for from 0 after each checkpoint, and takes 0 for "none". So if a sync writes the first node after a
//! checkpoint and no other, nobody waits for it:
//!
//! ```text
//!   as it must be     write of the node | flush | fsync returns
//!   as it is          flush | write of the node | fsync returns        the device begins the flush first
//!                     flush | fsync returns | write of the node        the write takes longer
//! ```
//!
//! `cargo xtask guest first-sync` shows it with witnesses that are not of this project.
//!
//! What is told apart here is read from the log alone, and only this pattern is known. A sync without its node for any
//! other reason stays a violation.

use f2fs_device_test::{CrashLog, Event};
use f2fs_format::node::{NodeBlock, NodeFooter, mark};

use crate::record::Step;

/// A node of a file in the log.
#[derive(Clone, Copy, Debug)]
struct Node {
    event: usize,
    footer: NodeFooter,
    durable: bool,
}

/// What the syncs of files wrote.
#[derive(Debug)]
pub struct Syncs<'a> {
    log: &'a CrashLog,
    /// Nodes of files, inodes among them, in order. Those of directories are not waited for one by one.
    nodes: Vec<Node>,
}

impl<'a> Syncs<'a> {
    /// Reads the nodes of a log.
    #[must_use]
    pub fn of(log: &'a CrashLog) -> Syncs<'a> {
        let mut nodes = Vec::new();
        for (event, entry) in log.events().iter().enumerate() {
            let Event::Write { data, durable, .. } = entry else { continue };
            let footers = data.as_blocks().iter().map(|block| NodeBlock::read(&block.0).footer);
            nodes.extend(footers.filter(is_waited_for).map(|footer| Node { event, footer, durable: *durable }));
        }
        Syncs { log, nodes }
    }

    /// Whether a step returned early. `checkpoint`: events when the last checkpoint before it was complete, and its
    /// version.
    #[must_use]
    pub fn is_early(&self, step: &Step, checkpoint: (usize, u64)) -> bool {
        let (Some(ino), (before, after)) = (step.fsynced, step.events) else { return false };
        if step.versions.0 != step.versions.1 {
            // A checkpoint made it durable.
            return false;
        }
        let (since, version) = checkpoint;
        let of_now = |node: &&Node| node.event >= since && node.footer.cp_ver.get() as u32 == version as u32;
        let nodes: Vec<&Node> = self.nodes.iter().filter(of_now).collect();
        let synced = |node: &&&Node| node.footer.ino.get() == ino && node.footer.has_mark(mark::FSYNC);
        let flushed = |node: &Node| {
            let behind = self.log.events().get(node.event + 1..after).unwrap_or(&[]);
            node.durable || behind.iter().any(Event::is_flush)
        };
        let last = nodes.iter().filter(|node| node.event >= before && node.event < after).rfind(synced);
        // What comes later belongs to a later sync if this one wrote a node already.
        let Some(node) = last.or_else(|| nodes.iter().find(|node| node.event >= after).filter(synced)) else {
            return false;
        };
        let is_inode = node.footer.nid.get() == ino;
        let is_first = nodes[0].event == node.event;
        let is_alone = nodes.iter().filter(|other| other.event < after.max(node.event + 1)).count() == 1;
        is_inode && is_first && is_alone && !flushed(node)
    }
}

/// Direct nodes of files: inodes, and those that hold addresses.
fn is_waited_for(footer: &NodeFooter) -> bool {
    footer.nid.get() != 0 && footer.ino.get() != 0 && footer.has_mark(mark::COLD)
}

#[cfg(test)]
mod tests {
    use f2fs_device::{AlignedBuf, BlockDevice, MemoryDevice};
    use f2fs_device_test::RecordingDevice;

    use super::*;
    use crate::op::Op;
    use crate::tree::Tree;

    /// `n7`: inode 7 is written; `s7`: with the mark of a sync; `d7`: durably; `f`: a flush.
    fn log(text: &str) -> CrashLog {
        let device = RecordingDevice::new(MemoryDevice::new(64));
        for (at, word) in text.split_whitespace().enumerate() {
            let Some(number) = word.get(1..).and_then(|number| number.parse().ok()) else {
                device.flush().unwrap();
                continue;
            };
            let mut node = NodeBlock::ZERO;
            node.footer.nid.set(number);
            node.footer.ino.set(number);
            node.footer.cp_ver.set(1);
            node.footer.set_mark(mark::COLD, true);
            node.footer.set_mark(mark::FSYNC, !word.starts_with('n'));
            let block = AlignedBuf::from_bytes(node.as_block());
            let written = if word.starts_with('d') {
                device.write_fua(at as u64, block)
            } else {
                device.write_slice(at as u64, block.as_bytes())
            };
            written.unwrap();
        }
        device.log()
    }

    /// Of a sync of inode 7 that had these events.
    fn early(text: &str, events: (usize, usize)) -> bool {
        let log = log(text);
        let op: Op = "sync /a".parse().unwrap();
        Syncs::of(&log).is_early(&Step::without_checkpoint(op, Some(7), Tree::default(), events), (0, 1))
    }

    #[test]
    fn the_first_node_alone_is_known() {
        assert!(early("f s7", (0, 2)));
        assert!(early("f s7", (0, 1)), "it came later");
        assert!(!early("s7 f", (0, 2)), "as it must be");
        assert!(early("s7", (0, 1)), "no flush at all is the same in the log");
    }

    #[test]
    fn anything_else_is_no_known_fault() {
        assert!(!early("n5 f s7", (1, 3)), "it is not the first node");
        assert!(!early("s7 f f s7", (2, 4)), "the second sync of a file");
        assert!(!early("f s7 s7", (0, 3)), "two nodes: the second one has a number");
        assert!(!early("f n7", (0, 2)), "no mark");
        assert!(!early("f s5", (0, 2)), "somebody else's node");
        assert!(!early("f", (0, 1)), "no node at all");
    }

    #[test]
    fn a_durable_write_needs_no_flush() {
        assert!(!early("f d7", (0, 2)));
        assert!(!early("f d7", (0, 1)), "on its way, which is another fault");
    }

    #[test]
    fn nodes_of_another_checkpoint_do_not_count() {
        let log = log("s5 f s7");
        let op: Op = "sync /a".parse().unwrap();
        let step = Step::without_checkpoint(op, Some(7), Tree::default(), (1, 3));
        assert!(!Syncs::of(&log).is_early(&step, (0, 1)));
        assert!(Syncs::of(&log).is_early(&step, (1, 1)), "a checkpoint between them");
        assert!(!Syncs::of(&log).is_early(&step, (1, 2)), "of no checkpoint that is there");
    }
}
