//! A node block in memory, and whether a sync or the next checkpoint has to write it.
//!
//! ```text
//!            Node::write                 checkpoint, or a sync of the file
//!   clean ----------------> dirty ------------------------------> clean         (and ahead in between: `write_ahead.rs`)
//!     |                       |
//!     | NodeStore::remove     | NodeStore::remove
//!     +------> removed <------+        (there is no way back: the NID may be reused only after a checkpoint)
//! ```
//!
//! # Locking
//!
//! `block` is the page's lock; [`Node`](crate::Node) has its order. The marks beside it are atomic: each says under
//! which lock it changes.

use core::fmt;

use f2fs_format::Nid;
use f2fs_format::node::NodeBlock;
use f2fs_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use f2fs_sync::{Mutex, RwLock};

/// Neither a sync nor the next checkpoint has to write a page in this state, unless it is journaled.
pub(crate) const CLEAN: u32 = 0;
/// Both have to.
pub(crate) const DIRTY: u32 = 1;
/// Nobody has synced it, and the next checkpoint finds it on the device (`write_ahead.rs`).
pub(crate) const AHEAD: u32 = 2;

/// A node block in memory.
pub(crate) struct NodePage {
    pub(crate) nid: Nid,
    pub(crate) ino: Nid,
    pub(crate) block: RwLock<Box<NodeBlock>>,
    /// [`CLEAN`], [`DIRTY`] or [`AHEAD`]. Becomes dirty under the write lock.
    state: AtomicU32,
    /// In a list of pages for the next checkpoint: those that became dirty since the last one, or since they
    /// were written ahead, also if a sync has written them meanwhile.
    pub(crate) listed: AtomicBool,
    /// Where in the lists it was put last (`dirty_nodes.rs`): a hint.
    pub(crate) listed_at: AtomicU64,
    /// The journal holds its state as of the last sync, and the next checkpoint has to write it. Set under the write
    /// lock.
    pub(crate) journaled: AtomicBool,
    /// The version of the names in which the node was made; 0: it was read from the device, so a checkpoint has it.
    pub(crate) born: AtomicU64,
    /// The version of the names in which this inode got another name, lost one, or was moved.
    pub(crate) renamed: AtomicU64,
    /// The epoch in which nodes were cut off this inode: neither roll-forward nor a record of a journal repeats that.
    pub(crate) unloggable: AtomicU64,
    /// The epoch in which synced data left this inode for a block of its own: a sync into the log could leave neither.
    pub(crate) left_inline: AtomicU64,
    /// Set once the node is freed.
    pub(crate) removed: AtomicBool,
    /// Writes whose blocks its slots name and the device may not have yet (`flight/joined.rs`).
    pub(crate) awaits: AtomicU32,
    /// Held while this inode's file is synced, where others are at the same time.
    pub(crate) syncing: Mutex<()>,
    /// Second chance for the eviction.
    pub(crate) used: AtomicBool,
    _not_small: [u64; NOT_SMALL],
}

/// Words that make a page's memory larger than the pieces (120 bytes) that the C library only puts aside when they are given
/// back, to join them later, all at once, with its lock held: behind a checkpoint of 300,000 nodes nobody got memory
/// for 80 to 120 ms.
const NOT_SMALL: usize = 5;
#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<NodePage>() + 2 * size_of::<usize>() > 120, "with the counts of its `Arc`");

impl NodePage {
    pub(crate) fn new(block: Box<NodeBlock>) -> NodePage {
        NodePage {
            nid: block.nid(),
            ino: block.ino(),
            block: RwLock::new(block),
            state: AtomicU32::new(CLEAN),
            listed: AtomicBool::new(false),
            listed_at: AtomicU64::new(0),
            journaled: AtomicBool::new(false),
            born: AtomicU64::new(0),
            renamed: AtomicU64::new(0),
            unloggable: AtomicU64::new(0),
            left_inline: AtomicU64::new(0),
            removed: AtomicBool::new(false),
            awaits: AtomicU32::new(0),
            syncing: Mutex::new(()),
            used: AtomicBool::new(true),
            _not_small: [0; NOT_SMALL],
        }
    }

    /// Begins again as the page of another node, for which `fill` gets a block of zeros.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn begin_again(&mut self, fill: impl FnOnce(&mut NodeBlock)) {
        let NodePage {
            nid,
            ino,
            block,
            state,
            listed,
            listed_at,
            journaled,
            born,
            renamed,
            unloggable,
            left_inline,
            removed,
            awaits,
            syncing: _,
            used,
            _not_small: _,
        } = self;
        let block = block.get_mut();
        **block = NodeBlock::ZERO;
        fill(block);
        (*nid, *ino) = (block.nid(), block.ino());
        for number in [state, awaits] {
            number.store(0, Ordering::Relaxed);
        }
        for number in [listed_at, born, renamed, unloggable, left_inline] {
            number.store(0, Ordering::Relaxed);
        }
        for mark in [listed, journaled, removed] {
            mark.store(false, Ordering::Relaxed);
        }
        used.store(true, Ordering::Relaxed);
    }

    /// Its present state goes to the journal: a sync has nothing to write before it changes again. Called under its
    /// write lock.
    pub(crate) fn set_journaled(&self) {
        self.journaled.store(true, Ordering::Release);
        self.set_clean();
    }

    /// It is synced, or a checkpoint writes it.
    pub(crate) fn set_clean(&self) {
        self.state.store(CLEAN, Ordering::Release);
    }

    /// It changed; gives what it was. Called under its write lock, or by the thread that failed to write it.
    #[inline]
    pub(crate) fn set_dirty(&self) -> u32 {
        if self.state.load(Ordering::Relaxed) == DIRTY { DIRTY } else { self.state.swap(DIRTY, Ordering::AcqRel) }
    }

    /// The next checkpoint finds it where it was just written. Called under its write lock.
    pub(crate) fn set_ahead(&self) {
        let _ = self.state.compare_exchange(DIRTY, AHEAD, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// The checkpoint that it was written ahead of is durable.
    pub(crate) fn settle_ahead(&self) {
        let _ = self.state.compare_exchange(AHEAD, CLEAN, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether a sync has to write it.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.state.load(Ordering::Acquire) != CLEAN
    }

    /// Whether the next checkpoint has to write it.
    pub(crate) fn is_to_be_written(&self) -> bool {
        let written = match self.state.load(Ordering::Acquire) {
            CLEAN => !self.is_journaled(),
            DIRTY => false,
            _ => true,
        };
        !written && !self.removed.load(Ordering::Acquire)
    }

    /// Whether the journal holds a state of it since the last checkpoint.
    pub(crate) fn is_journaled(&self) -> bool {
        self.journaled.load(Ordering::Acquire)
    }
}

impl fmt::Debug for NodePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodePage").field("nid", &self.nid).field("ino", &self.ino).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn a_page_that_begins_again_is_like_a_new_one() {
        let fill = |block: &mut NodeBlock| (block.footer.nid, block.footer.ino) = (7.into(), 5.into());
        let mut page = NodePage::new(NodeBlock::new_box());
        **page.block.write() = *NodeBlock::read(&[0xff; 4096]);
        page.set_dirty();
        for mark in [&page.listed, &page.journaled, &page.removed] {
            mark.store(true, Ordering::Relaxed);
        }
        for number in [&page.listed_at, &page.born, &page.renamed, &page.unloggable, &page.left_inline] {
            number.store(9, Ordering::Relaxed);
        }
        page.awaits.store(1, Ordering::Relaxed);
        page.used.store(false, Ordering::Relaxed);
        page.begin_again(fill);
        let mut block = NodeBlock::new_box();
        fill(&mut block);
        let new = NodePage::new(block);
        let of = |page: &NodePage| {
            let numbers = [&page.listed_at, &page.born, &page.renamed, &page.unloggable, &page.left_inline];
            let marks = [&page.listed, &page.journaled, &page.removed, &page.used];
            (
                (page.nid, page.ino, page.block.read().as_block().to_vec()),
                (page.state.load(Ordering::Relaxed), page.awaits.load(Ordering::Relaxed)),
                numbers.map(|number| number.load(Ordering::Relaxed)),
                marks.map(|mark| mark.load(Ordering::Relaxed)),
            )
        };
        assert_eq!(of(&page), of(&new));
    }

    #[test]
    fn a_page_is_written_by_syncs_and_checkpoints_that_have_to() {
        let page = NodePage::new(NodeBlock::new_box());
        let state = || (page.is_unsynced(), page.is_to_be_written(), page.is_journaled());
        assert_eq!(state(), (false, false, false));
        assert_eq!((page.set_dirty(), page.set_dirty()), (CLEAN, DIRTY));
        assert_eq!(state(), (true, true, false));
        // Written ahead: only a sync has to write it, until the checkpoint is durable.
        page.set_ahead();
        assert_eq!(state(), (true, false, false));
        page.settle_ahead();
        assert_eq!(state(), (false, false, false));
        page.set_ahead();
        assert_eq!(state(), (false, false, false), "a page that is clean stays so");
        page.set_dirty();
        page.settle_ahead();
        assert_eq!(state(), (true, true, false), "it changed again");
        page.set_ahead();
        assert_eq!(page.set_dirty(), AHEAD);
        page.set_clean();
        assert_eq!(state(), (false, false, false));
        // In the journal: the checkpoint has to write it.
        page.set_dirty();
        page.set_journaled();
        assert_eq!(state(), (false, true, true));
        page.removed.store(true, Ordering::Release);
        assert_eq!(state(), (false, false, true), "nobody writes what is freed");
        page.set_dirty();
        assert!(!page.is_to_be_written());
    }
}
