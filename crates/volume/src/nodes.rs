//! Nodes of a volume by their NIDs: finding, making, freeing them.

use f2fs_device::{AlignedBuf, BlockDevice, Request};
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Corruption, Nid, inode};
use f2fs_sync::Arc;
use f2fs_sync::atomic::Ordering;

use crate::node::Node;
use crate::node_page::NodePage;
use crate::{Op, Volume, VolumeError};

/// The place and kind of a new node.
#[derive(Clone, Copy, Debug)]
pub struct NewNode {
    /// The inode that it belongs to; `None` for a new inode.
    pub ino: Option<Nid>,
    /// Its offset in the file's node tree (the footer's).
    pub offset: u32,
    /// Whether it belongs to a directory: its blocks then go to the hot node log.
    pub directory: bool,
}

impl Volume {
    /// The node with this NID, from memory or from the device.
    ///
    /// # Errors
    /// [`VolumeError::Corrupt`] if the NID is free or out of range, or the block is not that node.
    pub fn node(&self, nid: Nid) -> Result<Node, VolumeError> {
        if let Some(page) = self.store.get(nid) {
            return Ok(Node { page });
        }
        let entry = self.nat.get(nid)?;
        if !self.geometry.in_main(entry.addr) {
            let error = Corruption::Address { what: "NAT entry", nid, addr: entry.addr };
            return Err(error.into());
        }
        let buf = self.device.read(u64::from(entry.addr.0), 1)?;
        let block = Box::new(*NodeBlock::read(buf.block(0)));
        self.verify_node(nid, entry.ino, entry.addr, &block)?;
        Ok(Node { page: self.keep_read(NodePage::new(block))? })
    }

    /// Puts a node that was read into the cache, unless it was freed meanwhile: [`remove_node`](Self::remove_node)
    /// frees the NID first and empties the cache then. So a thread that puts a node in and still finds its address is
    /// in time.
    fn keep_read(&self, page: NodePage) -> Result<Arc<NodePage>, VolumeError> {
        let nid = page.nid;
        let freed = || self.nat.get(nid).is_ok_and(|entry| entry.addr.is_null());
        let gone = Corruption::Address { what: "NAT entry", nid, addr: BlockAddr::NULL };
        self.store.insert_read(page, freed).ok_or_else(|| gone.into())
    }

    /// Reads many nodes at once into the cache: those that are not there yet, in one batch. Errors are left to
    /// [`node`](Self::node).
    pub fn prefetch(&self, nids: &[Nid]) {
        let wanted: Vec<(Nid, f2fs_nat::NatEntry)> = nids
            .iter()
            .filter(|nid| self.store.get(**nid).is_none())
            .filter_map(|nid| self.nat.get(*nid).ok().map(|entry| (*nid, entry)))
            .filter(|(_, entry)| self.geometry.in_main(entry.addr))
            .collect();
        for chunk in wanted.chunks(256) {
            let requests =
                chunk.iter().map(|(_, entry)| Request::read(u64::from(entry.addr.0), AlignedBuf::new(1))).collect();
            for ((nid, entry), completion) in chunk.iter().zip(self.device.submit(requests).wait()) {
                let Ok(buf) = completion.into_buf() else { continue };
                let block = Box::new(*NodeBlock::read(buf.block(0)));
                if self.verify_node(*nid, entry.ino, entry.addr, &block).is_ok() {
                    // Freed since: nobody asks for it.
                    let _ = self.keep_read(NodePage::new(block));
                }
            }
        }
    }

    fn verify_node(&self, nid: Nid, ino: Nid, addr: BlockAddr, block: &NodeBlock) -> Result<(), VolumeError> {
        let wrong = |what, expected: u64, found: u64| {
            Err(VolumeError::Corrupt(Corruption::Node { nid, addr, what, expected, found }))
        };
        if block.nid() != nid {
            return wrong("nid in the footer", nid.0.into(), block.nid().0.into());
        }
        if block.ino() != ino {
            return wrong("ino in the footer", ino.0.into(), block.ino().0.into());
        }
        if block.is_inode() && block.footer.node_offset() != 0 {
            return wrong("node offset of an inode", 0, block.footer.node_offset().into());
        }
        if block.is_inode() && inode::has_checksum(block.inode(), self.features()) {
            let found = block.inode().extra().map_or(0, |extra| extra.i_inode_checksum.get());
            let expected = inode::checksum(block, self.checksum_seed);
            if found != expected {
                return wrong("inode checksum", expected.into(), found.into());
            }
        }
        Ok(())
    }

    /// Makes a node: takes a NID and a block, and puts a zeroed node with its footer into the cache.
    ///
    /// # Errors
    /// [`VolumeError::NoSpace`], [`VolumeError::NoNids`]; nothing is taken then.
    pub fn new_node(&self, op: &Op<'_>, new: NewNode) -> Result<Node, VolumeError> {
        self.space.take_node()?;
        let nid = match self.nat.allocate() {
            Ok(Some(nid)) => nid,
            Ok(None) => {
                self.space.give_node();
                return Err(VolumeError::NoNids { used: self.space.nodes(), limit: self.space.node_limit() });
            }
            Err(error) => {
                self.space.give_node();
                return Err(error.into());
            }
        };
        let ino = new.ino.unwrap_or(nid);
        if let Err(error) = self.nat.bind(nid, ino, BlockAddr::NEW) {
            self.nat.cancel(nid);
            self.space.give_node();
            return Err(error.into());
        }
        if new.ino.is_none() {
            self.space.add_inode();
        }
        let mut block = NodeBlock::new_box();
        block.footer.nid = nid.into();
        block.footer.ino = ino.into();
        block.footer.set_node_offset(new.offset);
        block.footer.set_mark(f2fs_format::node::mark::COLD, !new.directory);
        let page = NodePage::new(block);
        page.born.store(self.epoch(), Ordering::Relaxed);
        let node = Node { page: self.store.insert(page) };
        drop(node.write(op));
        Ok(node)
    }

    /// Frees a node: its NID and its block can be used again after the next checkpoint.
    ///
    /// # Errors
    /// [`VolumeError::Nat`], [`VolumeError::Segment`] if NAT or SIT say that it was free already.
    pub fn remove_node(&self, _op: &Op<'_>, node: &Node) -> Result<(), VolumeError> {
        let old = self.nat.free(node.nid())?;
        self.store.remove(&node.page);
        if node.nid() == node.ino() {
            self.space.drop_inode();
        }
        self.space.give_node();
        if old.addr.is_real() {
            if node.nid() != node.ino()
                && let Some(inode) = self.store.get(node.ino())
            {
                // Roll-forward adds nodes to a file; it knows of none that went.
                inode.unloggable.store(self.epoch(), Ordering::Release);
            }
            self.segments.invalidate_run(f2fs_segment::Run { addr: old.addr, len: 1 }, self.clock.now())?;
        }
        Ok(())
    }
}
