//! The changes of roll-forward to the tables.

use f2fs_format::inode;
use f2fs_format::node::{NodeBlock, mark};
use f2fs_format::summary::{Summary, SummaryBlock};
use f2fs_format::{BlockAddr, Corruption, LogType, Nid};
use f2fs_segment::SegmentError;

use super::Recovery;
use crate::blocks::read_block;
use crate::node::Node;
use crate::node_page::NodePage;
use crate::{Op, VolumeError};

impl Recovery<'_> {
    /// Keeps blocks of the chain, or blocks that its nodes name, from being written before a checkpoint is durable.
    /// Those outside the main area are passed over. Call it when the volume is opened, before anything else uses it.
    ///
    /// # Errors
    /// [`VolumeError::Segment`].
    pub fn hold(self, blocks: &[BlockAddr]) -> Result<(), VolumeError> {
        for addr in blocks.iter().filter(|addr| self.0.geometry.in_main(**addr)) {
            self.0.segments.hold(*addr)?;
        }
        Ok(())
    }

    /// Begins a recovery: operations may change what is in memory, also if the volume is open for reading; no
    /// checkpoint is written. Call it after the last [`hold`](Self::hold).
    ///
    /// # Errors
    /// [`VolumeError::Segment`] if no segment is free for a log to go on.
    pub fn begin(self) -> Result<(), VolumeError> {
        self.0.segments.leave_held()?;
        self.0.roll_forward.set_recovering(true);
        Ok(())
    }

    /// Ends a recovery. A volume that is open for writing needs a checkpoint now.
    pub fn end(self) {
        self.0.roll_forward.set_recovering(false);
    }

    /// Brings the zones under the volume together with what was opened; of a volume that is open for reading, only the
    /// number of blocks for users; does nothing on a volume without zones. Call it after synced files are recovered,
    /// and before anything is written; not if the recovery failed.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] if no section is free for a log that has to move; [`VolumeError::Device`].
    pub fn settle_zones(self) -> Result<(), VolumeError> {
        self.0.space.keep_back();
        self.0.zoning.settle(&self.0.segments)
    }

    /// Whether a NID names a node.
    ///
    /// # Errors
    /// [`VolumeError::Nat`].
    pub fn has_node(self, nid: Nid) -> Result<bool, VolumeError> {
        Ok(!self.0.nat.get(nid)?.addr.is_null())
    }

    /// Takes an inode of the chain into use whose number is free; it is as `block` says, footer aside.
    ///
    /// # Errors
    /// [`VolumeError::Corrupt`] if the number is taken, [`VolumeError::Nat`] if it cannot be one,
    /// [`VolumeError::NoSpace`].
    pub fn adopt_inode(self, op: &Op<'_>, ino: Nid, mut block: Box<NodeBlock>) -> Result<Node, VolumeError> {
        let taken = || Corruption::Mismatch { what: "nodes with the number of a new inode", expected: 0, found: 1 };
        if !self.0.nat.reserve(ino)? {
            return Err(taken().into());
        }
        if let Err(error) = self.0.space.take_node() {
            self.0.nat.cancel(ino);
            return Err(error);
        }
        self.0.nat.bind(ino, ino, BlockAddr::NEW)?;
        self.0.space.add_inode();
        block.footer = NodeBlock::ZERO.footer;
        block.footer.nid = ino.into();
        block.footer.ino = ino.into();
        block.footer.set_mark(mark::COLD, block.inode().file_type() != inode::mode::DIRECTORY);
        let node = Node { page: self.0.store.insert(NodePage::new(block)) };
        drop(node.write(op));
        Ok(node)
    }

    /// Takes a data block into use that a node of the chain names. Its reservation is the caller's business.
    ///
    /// # Errors
    /// [`VolumeError::Corrupt`] if it is in use, or cannot be; [`VolumeError::Segment`].
    pub fn adopt_block(self, op: &Op<'_>, addr: BlockAddr, summary: Summary) -> Result<(), VolumeError> {
        op.expect_of(self.0);
        match self.0.segments.adopt(addr, summary, self.0.clock.now()) {
            Err(VolumeError::Segment(
                SegmentError::InUse { .. } | SegmentError::LogType { .. } | SegmentError::Phase { .. },
            )) => {
                let what = "synced, and in use already";
                Err(Corruption::Block { what, nid: summary.nid.into(), addr }.into())
            }
            result => result,
        }
    }

    /// Whether a block is in use.
    ///
    /// # Errors
    /// [`VolumeError::Device`].
    pub fn is_in_use(self, addr: BlockAddr) -> Result<bool, VolumeError> {
        self.0.segments.is_valid(addr)
    }

    /// The owner of a data block that is in use; `None` if it is not, or holds a node.
    ///
    /// # Errors
    /// [`VolumeError::Device`].
    pub fn owner_of(self, addr: BlockAddr) -> Result<Option<Summary>, VolumeError> {
        let Some((segment, offset)) = self.0.geometry.locate(addr) else { return Ok(None) };
        let info = self.0.segments.info(segment)?;
        if !info.valid_map.contains(offset) || LogType::is_node(info.log) {
            return Ok(None);
        }
        let owner = match self.0.segments.newer_owner(addr, segment, offset) {
            Some(owner) => owner,
            None => {
                let buf = read_block(&*self.0.device, self.0.geometry.summary_block(segment))?;
                SummaryBlock::read(buf.block(0)).entries[offset as usize]
            }
        };
        Ok(Some(owner))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
