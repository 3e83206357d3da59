//! The tree of one file: address slots, direct and indirect nodes, and the blocks that they refer to.

use f2fs_format::node::NodeBlock;
use f2fs_format::path::{self, Addresses, NodeKind};
use f2fs_format::{BlockAddr, Nid};
use f2fs_sync::atomic::Ordering::Relaxed;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

use super::ahead::Ahead;
use super::clusters::{Clusters, Slot};
use super::error::CheckError;
use super::extent::ExtentWatch;
use super::finding::{FindingKind, Place, Problem};
use super::inode::InodeView;
use super::source::ZEROS;
use super::subject::Subject;
use super::summary::SummaryCursor;

/// Child nodes that are read together.
const BATCH: usize = 128;
/// Address slots that are compared with zeros together: four cache lines.
const GROUP: usize = 64;

/// The walk through one file's tree.
pub(super) struct TreeWalk<'s, 'a> {
    subject: &'s Subject<'a>,
    ahead: &'s Ahead,
    ino: Nid,
    /// Addresses that each node holds.
    addresses: Addresses,
    /// The clusters of a compressed file.
    clusters: Option<Clusters>,
    cursor: SummaryCursor,
    extent: ExtentWatch,
    /// Blocks of the file so far, the inode not counted.
    pub(super) blocks: u64,
    /// The first file block behind the end by `i_size`.
    end: u64,
    /// Whether the node that is walked begins behind the end.
    is_behind: bool,
    /// The last file block that has a place, in the inode or a node that begins in front of the end.
    pub(super) last_written: Option<u64>,
    /// The last file block that has a place in a node behind the end.
    pub(super) last_behind: Option<u64>,
    /// File block and address of every block that was taken here first. Filled where somebody reads them.
    pub(super) kept_blocks: Option<Vec<(u64, BlockAddr)>>,
}

impl<'s, 'a> TreeWalk<'s, 'a> {
    pub(super) fn new(view: &InodeView<'s, 'a>, keeps_blocks: bool) -> TreeWalk<'s, 'a> {
        let (subject, inode) = (view.subject, view.inode());
        TreeWalk {
            subject,
            ahead: view.ahead,
            ino: view.ino,
            addresses: inode.layout(subject.features).addresses(),
            clusters: inode.compression(subject.features).map(Clusters::new),
            cursor: SummaryCursor::default(),
            extent: ExtentWatch::new(&inode.i_ext),
            blocks: 0,
            end: inode.i_size.get().div_ceil(4096),
            is_behind: false,
            last_written: None,
            last_behind: None,
            kept_blocks: keeps_blocks.then(Vec::new),
        }
    }

    /// Walks the whole tree. `version`: that of the inode's NAT entry.
    pub(super) fn walk(&mut self, node: &NodeBlock, version: u8) -> Result<(), CheckError> {
        self.see_addresses((self.ino, version), 0, node.address_slots(self.subject.features))?;
        self.children(self.ino, 0, &node.inode().i_nid)
    }

    /// Blocks that the compressed clusters save; `None` where the inode need not say how many.
    pub(super) fn saved_blocks(&self) -> Option<u64> {
        self.clusters.as_ref().and_then(Clusters::saved)
    }

    /// Blocks of the cached extent, if the file is not laid out so.
    pub(super) fn broken_extent(&self) -> Option<u64> {
        self.extent.broken()
    }

    /// The address slots of a node with its version, of which the first is the file's block `first`. Holes are passed
    /// over quickly: a small file is little else.
    fn see_addresses(&mut self, (nid, version): (Nid, u8), first: u64, slots: &[U32]) -> Result<(), CheckError> {
        self.is_behind = nid != self.ino && first >= self.end;
        for (group, slots) in slots.chunks(GROUP).enumerate() {
            if slots.as_bytes() == &ZEROS[..size_of_val(slots)] {
                continue;
            }
            let used = slots.iter().map(|raw| BlockAddr::from(*raw)).enumerate().filter(|(_, addr)| !addr.is_null());
            for (at, addr) in used {
                let slot = group * GROUP + at;
                self.address((nid, version, slot as u32), first + slot as u64, addr)?;
            }
        }
        Ok(())
    }

    /// One address slot that is in use: `owner` is node, version, and slot.
    fn address(&mut self, owner: (Nid, u8, u32), block: u64, addr: BlockAddr) -> Result<(), CheckError> {
        self.extent.see(block, addr);
        if let Some(clusters) = &mut self.clusters {
            let place = || Place::Slot { nid: owner.0, index: owner.2 };
            match clusters.see(block, addr) {
                Slot::Block => {}
                Slot::Head { counted } => {
                    if counted {
                        // Reserved for the cluster's growth, as the slots behind its blocks.
                        self.blocks += 1;
                        self.subject.tally.reserved.fetch_add(1, Relaxed);
                    }
                    return Ok(());
                }
                Slot::Misplaced => {
                    let problem = Problem::Fault {
                        what: "the mark of a compressed cluster within it, at file block",
                        found: block,
                    };
                    self.subject.findings.add(FindingKind::Compression, place(), problem);
                    return Ok(());
                }
            }
        }
        if addr == BlockAddr::NEW {
            self.blocks += 1;
            self.subject.tally.reserved.fetch_add(1, Relaxed);
            return Ok(());
        }
        let place = Place::Slot { nid: owner.0, index: owner.2 };
        if !self.subject.geometry.in_main(addr) {
            let problem = Problem::Fault { what: "address outside the main area", found: addr.0.into() };
            self.subject.findings.add(FindingKind::Address, place, problem);
            return Ok(());
        }
        self.blocks += 1;
        let last = if self.is_behind { &mut self.last_behind } else { &mut self.last_written };
        *last = (*last).max(Some(block));
        let fresh = self.subject.claim(addr, false, &place);
        self.subject.summaries.check_data(self.subject, &mut self.cursor, addr, owner)?;
        if fresh && let Some(blocks) = &mut self.kept_blocks {
            blocks.push((block, addr));
        }
        Ok(())
    }

    /// The children of a node with node offset `offset`, batch by batch.
    fn children(&mut self, parent: Nid, offset: u32, nids: &[U32]) -> Result<(), CheckError> {
        let mut batch = Vec::with_capacity(BATCH);
        for (slot, nid) in nids.iter().map(|raw| Nid::from(*raw)).enumerate() {
            let Some(child) = path::child(offset, slot).filter(|_| !nid.is_null()) else { continue };
            let place = Place::Slot { nid: parent, index: slot as u32 };
            if let Some(addr) = self.subject.resolve(nid, self.ino, &place, &mut self.cursor)? {
                batch.push((nid, child, addr));
            }
            if batch.len() == BATCH {
                self.read_children(&batch)?;
                batch.clear();
            }
        }
        self.read_children(&batch)
    }

    fn read_children(&mut self, batch: &[(Nid, u32, BlockAddr)]) -> Result<(), CheckError> {
        let addrs: Vec<BlockAddr> = batch.iter().map(|(_, _, addr)| *addr).collect();
        let blocks = self.subject.source.blocks_behind(&addrs, self.ahead)?;
        for ((nid, offset, addr), block) in batch.iter().zip(blocks.iter()) {
            let node = NodeBlock::read(block);
            if self.subject.check_footer(node, *addr, *nid, self.ino, *offset) {
                self.blocks += 1;
                self.node(*nid, *offset, node)?;
            }
        }
        Ok(())
    }

    fn node(&mut self, nid: Nid, offset: u32, node: &NodeBlock) -> Result<(), CheckError> {
        if NodeKind::of(offset) != Some(NodeKind::Direct) {
            return self.children(nid, offset, node.slots());
        }
        let version = self.subject.nat.get(nid).version;
        let first = path::first_block(offset, self.addresses).unwrap_or(0);
        let (slots, behind) = node.slots().split_at(usize::from(self.addresses.direct));
        if let Some(at) = behind.iter().position(|raw| raw.get() != 0) {
            let place = Place::Slot { nid, index: (slots.len() + at) as u32 };
            let problem =
                Problem::Fault { what: "an address behind the last whole cluster", found: behind[at].get().into() };
            self.subject.findings.add(FindingKind::Compression, place, problem);
        }
        self.see_addresses((nid, version), first, slots)
    }
}
