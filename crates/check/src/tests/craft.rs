//! Changing a volume by hand, consistently: what the tools that make the test volumes do not make.

use f2fs_format::nat::RawNatEntry;
use f2fs_format::node::{NodeBlock, XATTR_NODE_OFFSET};
use f2fs_format::summary::Summary;
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, LogType, Nid, bits::msb};

use super::image::Image;

/// The first free block of a segment at or behind `from`.
fn next_free(map: &[u8; 64], from: u32) -> u32 {
    msb::find(map, from as usize, BLOCKS_PER_SEGMENT as usize, false).expect("the log has room") as u32
}

impl Image {
    /// Takes the next block of a log, as an allocation does: SIT, summary, log offset, count.
    pub(crate) fn take_block(&self, log: LogType, owner: Summary) -> BlockAddr {
        let (segment, offset) = self.pack().log(log);
        let addr = self.geometry.block_at(segment, offset);
        let (summary, at) = self.summary_of(addr);
        self.edit_summary(summary, |summary| summary.entries[at] = owner);
        self.edit_sit(segment, |entry| {
            msb::set(&mut entry.valid_map, offset as usize);
            entry.set_blocks(log, entry.valid_blocks() + 1);
        });
        let next = next_free(&self.sit(segment).valid_map, offset + 1) as u16;
        self.edit_checkpoint(|cp| {
            let header = &mut cp.header;
            if log.is_node() {
                header.cur_node_blkoff[log.index() - 3] = next.into();
            } else {
                header.cur_data_blkoff[log.index()] = next.into();
            }
            header.valid_block_count = (header.valid_block_count.get() + 1).into();
        });
        addr
    }

    /// Gives a block back.
    pub(crate) fn give_block(&self, addr: BlockAddr) {
        let (segment, offset) = self.geometry.locate(addr).unwrap();
        self.edit_sit(segment, |entry| {
            assert!(msb::clear(&mut entry.valid_map, offset as usize));
            let log = entry.log_type().unwrap();
            entry.set_blocks(log, entry.valid_blocks() - 1);
        });
        let is_log = LogType::ALL.into_iter().any(|log| self.pack().log(log).0 == segment);
        let freed = u32::from(!is_log && self.sit(segment).valid_blocks() == 0);
        self.edit_checkpoint(|cp| {
            let header = &mut cp.header;
            header.valid_block_count = (header.valid_block_count.get() - 1).into();
            header.free_segment_count = (header.free_segment_count.get() + freed).into();
        });
    }

    /// A NID among those in use that is free itself.
    fn unused_nid(&self) -> Nid {
        (4..).map(Nid).find(|nid| self.nat(*nid).block_addr.get() == 0).unwrap()
    }

    /// Adds a node of zeros below an inode, not yet referred to. `i_blocks` is raised.
    pub(crate) fn add_node(&self, ino: Nid, offset: u32) -> Nid {
        let nid = self.unused_nid();
        let is_direct = f2fs_format::path::NodeKind::of(offset).unwrap().is_direct();
        let log = if is_direct { LogType::WarmNode } else { LogType::ColdNode };
        let addr = self.take_block(log, Summary::new(nid, 0, 0));
        self.edit_nat(nid, |nat| *nat = RawNatEntry { version: 0, ino: ino.into(), block_addr: addr.into() });
        let mut node = NodeBlock::ZERO;
        (node.footer.nid, node.footer.ino) = (nid.into(), ino.into());
        node.footer.set_node_offset(offset);
        self.put(addr, node.as_block());
        self.edit_checkpoint(|cp| cp.header.valid_node_count = (cp.header.valid_node_count.get() + 1).into());
        self.edit_node(ino, |node| node.inode_mut().i_blocks = (node.inode().i_blocks.get() + 1).into());
        nid
    }

    /// Adds an xattr node of zeros.
    pub(crate) fn add_xattr_node(&self, ino: Nid) -> Nid {
        let nid = self.add_node(ino, XATTR_NODE_OFFSET);
        self.edit_node(ino, |node| node.inode_mut().i_xattr_nid = nid.into());
        nid
    }
}
