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

/// The nodes of a volume by their NIDs: [`Volume::nodes`].
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'a>(pub(crate) &'a Volume);

impl Nodes<'_> {
    /// The node with this NID, from memory or from the device.
    ///
    /// # Errors
    /// [`VolumeError::Corrupt`] if the NID is free or out of range, or the block is not that node.
    pub fn get(self, nid: Nid) -> Result<Node, VolumeError> {
        if let Some(page) = self.0.store.get(nid) {
            return Ok(Node { page });
        }
        let entry = self.0.nat.get(nid)?;
        if !self.0.geometry.in_main(entry.addr) {
            let error = Corruption::Address { what: "NAT entry", nid, addr: entry.addr };
            return Err(error.into());
        }
        let buf = self.0.device.read(u64::from(entry.addr.0), 1)?;
        let block = Box::new(*NodeBlock::read(buf.block(0)));
        self.verify(nid, entry.ino, entry.addr, &block)?;
        Ok(Node { page: self.keep_read(NodePage::new(block))? })
    }

    /// Whether a NID, which may be any number, is that of an inode that is there.
    ///
    /// # Errors
    /// [`VolumeError`] if the block of the NAT cannot be read.
    pub fn is_inode(self, nid: Nid) -> Result<bool, VolumeError> {
        if nid < self.0.geometry.root_ino || nid.0 >= self.0.geometry.max_nid() {
            return Ok(false);
        }
        if let Some(page) = self.0.store.get(nid) {
            return Ok(page.ino == nid);
        }
        let entry = self.0.nat.get(nid)?;
        Ok(self.0.geometry.in_main(entry.addr) && entry.ino == nid)
    }

    /// Puts a node that was read into the cache, unless it was freed meanwhile: [`remove`](Self::remove)
    /// frees the NID first and empties the cache then. So a thread that puts a node in and still finds its address is
    /// in time.
    fn keep_read(self, page: NodePage) -> Result<Arc<NodePage>, VolumeError> {
        let nid = page.nid;
        let freed = || self.0.nat.get(nid).is_ok_and(|entry| entry.addr.is_null());
        let gone = Corruption::Address { what: "NAT entry", nid, addr: BlockAddr::NULL };
        self.0.store.insert_read(page, freed).ok_or_else(|| gone.into())
    }

    /// Drops clean nodes that nobody uses from a cache that is above its limit
    /// ([`VolumeOptions::node_cache`](crate::VolumeOptions::node_cache)). A checkpoint does the same.
    pub fn shrink(self) {
        self.0.store.shrink();
    }

    /// Drops clean nodes that nobody holds, and that nobody has used since this was called last: whatever the limit of
    /// the cache is.
    pub fn drop_unused(self) {
        self.0.store.drop_unused();
    }

    /// Reads many nodes at once into the cache: those that are not there yet, in one batch. Errors are left to
    /// [`get`](Self::get).
    pub fn prefetch(self, nids: &[Nid]) {
        let wanted: Vec<(Nid, f2fs_nat::NatEntry)> = nids
            .iter()
            .filter(|nid| self.0.store.get(**nid).is_none())
            .filter_map(|nid| self.0.nat.get(*nid).ok().map(|entry| (*nid, entry)))
            .filter(|(_, entry)| self.0.geometry.in_main(entry.addr))
            .collect();
        for chunk in wanted.chunks(256) {
            let requests =
                chunk.iter().map(|(_, entry)| Request::read(u64::from(entry.addr.0), AlignedBuf::new(1))).collect();
            let Ok(read) = self.0.device.execute_all(requests) else { return };
            for ((nid, entry), completion) in chunk.iter().zip(read) {
                let Ok(buf) = completion.checked(1).into_buf() else { continue };
                let block = Box::new(*NodeBlock::read(buf.block(0)));
                if self.verify(*nid, entry.ino, entry.addr, &block).is_ok() {
                    // Freed since: nobody asks for it.
                    let _ = self.keep_read(NodePage::new(block));
                }
            }
        }
    }

    fn verify(self, nid: Nid, ino: Nid, addr: BlockAddr, block: &NodeBlock) -> Result<(), VolumeError> {
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
        if block.is_inode() && inode::has_checksum(block.inode(), self.0.features()) {
            let found = block.inode().extra().map_or(0, |extra| extra.i_inode_checksum.get());
            let expected = inode::checksum(block, self.0.checksum_seed);
            if found != expected {
                return wrong("inode checksum", expected.into(), found.into());
            }
        }
        Ok(())
    }

    /// The version of a node's NAT entry, which goes into the summaries of the blocks that the node points to.
    ///
    /// # Errors
    /// [`VolumeError::Nat`].
    pub fn version(self, nid: Nid) -> Result<u8, VolumeError> {
        Ok(self.0.nat.get(nid)?.version)
    }

    /// Whether a node was written since it was made. True as well if the NAT cannot tell.
    #[must_use]
    pub fn is_on_device(self, nid: Nid) -> bool {
        !self.0.nat.get(nid).is_ok_and(|entry| !entry.addr.is_real())
    }

    /// Whether a node was made since the last checkpoint, and no record of names has it. False for one that is not in
    /// memory: new ones are.
    #[must_use]
    pub fn is_new(self, nid: Nid) -> bool {
        let is_durable = |page: &NodePage| self.0.names.is_durable(page.born.load(Ordering::Acquire));
        self.0.store.get(nid).is_some_and(|page| !is_durable(&page))
    }

    /// Makes a node: takes a NID and a block, and puts a zeroed node with its footer into the cache.
    ///
    /// # Errors
    /// [`VolumeError::NoSpace`], [`VolumeError::NoNids`]; nothing is taken then.
    pub fn create(self, op: &Op<'_>, new: NewNode) -> Result<Node, VolumeError> {
        op.expect_of(self.0);
        self.0.space.take_node()?;
        let nid = match self.0.nat.allocate() {
            Ok(Some(nid)) => nid,
            Ok(None) => {
                self.0.space.give_node();
                return Err(VolumeError::NoNids { used: self.0.space.nodes(), limit: self.0.space.node_limit() });
            }
            Err(error) => {
                self.0.space.give_node();
                return Err(error.into());
            }
        };
        let ino = new.ino.unwrap_or(nid);
        if let Err(error) = self.0.nat.bind(nid, ino, BlockAddr::NEW) {
            self.0.nat.cancel(nid);
            self.0.space.give_node();
            return Err(error.into());
        }
        if new.ino.is_none() {
            self.0.space.add_inode();
        }
        let page = self.0.store.insert_new(self.0.names.now(), |block| {
            block.footer.nid = nid.into();
            block.footer.ino = ino.into();
            block.footer.set_node_offset(new.offset);
            block.footer.set_mark(f2fs_format::node::mark::COLD, !new.directory);
        });
        let node = Node { page };
        drop(node.write(op));
        Ok(node)
    }

    /// Frees a node: its NID and its block can be used again after the next checkpoint.
    ///
    /// # Errors
    /// [`VolumeError::Nat`], [`VolumeError::Segment`] if NAT or SIT say that it was free already.
    pub fn remove(self, op: &Op<'_>, node: &Node) -> Result<(), VolumeError> {
        op.expect_of(self.0);
        let old = self.0.nat.free(node.nid())?;
        self.0.store.remove(&node.page);
        self.0.pressure.freed_node(self.0.epoch());
        if node.nid() == node.ino() {
            self.0.space.drop_inode();
        }
        self.0.space.give_node();
        if (old.addr.is_real() || node.page.is_journaled())
            && node.nid() != node.ino()
            && let Some(inode) = self.0.store.get(node.ino())
        {
            // Roll-forward adds nodes to a file; it knows of none that went. A record of a journal may have the node
            // though no log ever did.
            inode.unloggable.store(self.0.epoch(), Ordering::Release);
        }
        if old.addr.is_real() {
            self.0.segments.invalidate_run(f2fs_segment::Run { addr: old.addr, len: 1 }, self.0.clock.now())?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
