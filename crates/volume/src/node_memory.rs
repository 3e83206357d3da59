//! The memory of node blocks.
//!
//! A block of 4 KiB for each new file is most of what a volume asks the allocator for, and the system gives it page by
//! page: in a fresh process that took a third of the time of creating a file. Node blocks come from chunks in huge pages
//! ([`f2fs_frames`]), and go back to them.

use core::ops::{Deref, DerefMut};

use f2fs_format::node::NodeBlock;
use f2fs_frames::{Frame, Frames};

/// A node block in memory.
pub(crate) struct NodeMemory(Frame);

impl NodeMemory {
    /// The same as `block`.
    pub(crate) fn of(frames: &Frames, block: &NodeBlock) -> NodeMemory {
        let mut frame = frames.take();
        frame.copy_from_slice(block.as_block());
        NodeMemory(frame)
    }

    /// Zeros.
    pub(crate) fn zeroed(frames: &Frames) -> NodeMemory {
        NodeMemory(frames.take_zeroed())
    }
}

impl Deref for NodeMemory {
    type Target = NodeBlock;

    #[inline]
    fn deref(&self) -> &NodeBlock {
        NodeBlock::read(&self.0)
    }
}

impl DerefMut for NodeMemory {
    #[inline]
    fn deref_mut(&mut self) -> &mut NodeBlock {
        NodeBlock::read_mut(&mut self.0)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl From<Box<NodeBlock>> for NodeMemory {
    fn from(block: Box<NodeBlock>) -> NodeMemory {
        let mut frame = Frame::alone();
        frame.copy_from_slice(block.as_block());
        NodeMemory(frame)
    }
}
