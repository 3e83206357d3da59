//! The logs of nodes: the log that a node belongs to, and a block for it there.
//!
//! # Locking
//!
//! The caller has the node's page locked, and holds an operation, or the closed gate. The segment manager and the NAT
//! lock for themselves.

use f2fs_format::node::{NodeBlock, mark};
use f2fs_format::path::NodeKind;
use f2fs_format::summary::Summary;
use f2fs_format::{BlockAddr, inode};
use f2fs_segment::{NodeLog, Run};

use crate::blocks::WriteBatch;
use crate::node_page::NodePage;
use crate::roll_forward::chain::Links;
use crate::{Volume, VolumeError};

pub(crate) fn is_indirect_offset(offset: u32) -> bool {
    matches!(NodeKind::of(offset), Some(NodeKind::Indirect | NodeKind::DoubleIndirect))
}

/// The log that a node belongs to (`__get_segment_type_6` in `fs/f2fs/segment.c`).
pub(crate) fn node_log(block: &NodeBlock) -> NodeLog {
    if is_indirect_offset(block.footer.node_offset()) {
        NodeLog::Cold
    } else if block.footer.has_mark(mark::COLD) {
        NodeLog::Warm
    } else {
        NodeLog::Hot
    }
}

/// The logs that nodes are written to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeLogs<'a>(pub(crate) &'a Volume);

impl NodeLogs<'_> {
    /// Gives a node a block of its log, with these marks, and hands it to the batch. `block` is that of `page`, locked.
    /// `links`: of a sync that writes beside others.
    pub(crate) fn write(
        self,
        page: &NodePage,
        block: &mut NodeBlock,
        version: u64,
        marks: u32,
        batch: &mut WriteBatch<'_>,
        links: Option<&mut Links<'_>>,
    ) -> Result<(), VolumeError> {
        let now = self.0.clock.now();
        let log = node_log(block);
        let version_of_nid = self.0.nat.get(page.nid)?.version;
        let summary = Summary::new(page.nid, version_of_nid, 0);
        let segments = self.0.segments.manager()?;
        let allocate = || Ok(segments.allocate_node(log, summary, now)?);
        let (addr, next) = match links {
            Some(links) => links.take(allocate)?,
            None => allocate()?,
        };
        self.seal(block, version, next, marks);
        batch.push(addr, block.as_block())?;
        let old = self.0.nat.bind(page.nid, page.ino, addr)?;
        if old.addr.is_real() {
            self.0.segments.invalidate_run(Run { addr: old.addr, len: 1 }, now)?;
        }
        page.set_clean();
        Ok(())
    }

    /// Gives a node the footer, and the checksum, with which it is written.
    pub(crate) fn seal(self, block: &mut NodeBlock, version: u64, next: BlockAddr, marks: u32) {
        block.footer.cp_ver = version.into();
        block.footer.next_blkaddr = next.into();
        block.footer.set_mark(mark::FSYNC, marks & mark::FSYNC != 0);
        block.footer.set_mark(mark::DENTRY, marks & mark::DENTRY != 0);
        if block.is_inode() && inode::has_checksum(block.inode(), self.0.features()) {
            let sum = inode::checksum(block, self.0.checksum_seed);
            block.inode_mut().extra_mut().i_inode_checksum = sum.into();
        }
    }
}
