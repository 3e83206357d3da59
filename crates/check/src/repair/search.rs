//! Nodes that are looked for where the NAT does not lead: by their footers, and by what summaries say.
//!
//! All blocks of nodes are read once for it, when somebody asks first.

use std::collections::HashMap;

use f2fs_format::node::NodeBlock;
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::{SummaryBlock, TYPE_NODE};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, LogType, Nid, SegmentNo};

use super::RepairError;
use super::found_nodes::ValidNodes;
use super::overlay::Overlay;
use super::tables::Tables;

impl Tables {
    /// Valid blocks whose footers have a NID.
    pub(super) fn by_footer(&mut self, overlay: &Overlay, nid: Nid) -> Result<Vec<BlockAddr>, RepairError> {
        Ok(self.valid_nodes(overlay)?.by_footer.get(&nid.0).cloned().unwrap_or_default())
    }

    /// The valid block of a node, if the NAT leads to an older copy of it that is not valid, by footers, summary and SIT:
    /// one flipped bit may lead from one to the other. Where the SIT is the one that is older, its copy is, too.
    pub(super) fn instead_of(
        &mut self,
        overlay: &Overlay,
        addr: BlockAddr,
        older: &NodeBlock,
    ) -> Result<Option<(BlockAddr, Box<NodeBlock>)>, RepairError> {
        let version = |node: &NodeBlock| node.footer.cp_ver.get() & u64::from(u32::MAX);
        if self.is_valid(addr) {
            return Ok(None);
        }
        let mut found = Vec::new();
        for addr in self.by_footer(overlay, older.nid())? {
            let node = Box::new(*NodeBlock::read(&*overlay.block(addr)?));
            let is_owner = matches!(self.owner(overlay, addr)?, Some((owner, _, true)) if owner == older.nid());
            if self.is_valid(addr) && is_owner && node.ino() == older.ino() && version(&node) >= version(older) {
                found.push((addr, node));
            }
        }
        Ok(if found.len() == 1 { found.pop() } else { None })
    }

    /// The block that a summary says is a node's, and that lost what was in it; `None` also if there are several.
    pub(super) fn by_summary(&mut self, overlay: &Overlay, nid: Nid) -> Result<Option<BlockAddr>, RepairError> {
        let all = self.valid_nodes(overlay)?.by_summary.get(&nid.0);
        Ok(all.and_then(|all| if let [addr] = all[..] { Some(addr) } else { None }))
    }

    /// Nodes that the NAT knows nothing of, with the blocks whose footers and summaries name them.
    pub(super) fn unknown(&mut self, overlay: &Overlay) -> Result<Vec<(BlockAddr, Nid)>, RepairError> {
        let nids = self.nat.len();
        let found = &self.valid_nodes(overlay)?.by_footer;
        let single: Vec<_> =
            found.iter().filter(|(_, all)| all.len() == 1).map(|(nid, all)| (all[0], Nid(*nid))).collect();
        let mut all = Vec::new();
        for (addr, nid) in single.into_iter().filter(|(_, nid)| nid.0 < nids) {
            if self.is_unknown(nid) && matches!(self.owner(overlay, addr)?, Some((owner, _, true)) if owner == nid) {
                all.push((addr, nid));
            }
        }
        all.sort_unstable();
        Ok(all)
    }

    fn valid_nodes(&mut self, overlay: &Overlay) -> Result<&ValidNodes, RepairError> {
        if self.found.valid.is_none() {
            self.found.valid = Some(self.read_valid_nodes(overlay)?);
        }
        Ok(self.found.valid.get_or_insert_default())
    }

    fn read_valid_nodes(&self, overlay: &Overlay) -> Result<ValidNodes, RepairError> {
        let mut found = ValidNodes::default();
        for segment in self.sit.segments().map(SegmentNo) {
            let entry = self.sit.get(segment);
            if entry.log_type().is_some_and(|log| !log.is_node()) {
                continue;
            }
            let mut offsets = (0..BLOCKS_PER_SEGMENT).filter(|offset| self.sit.is_valid(segment, *offset)).peekable();
            if offsets.peek().is_none() {
                continue;
            }
            let on_device = overlay.block(self.geometry.summary_block(segment))?;
            let summary = self.known_summary(segment).unwrap_or(SummaryBlock::read(&on_device));
            for offset in offsets {
                let addr = self.geometry.block_at(segment, offset);
                if !self.is_there(addr) {
                    continue;
                }
                let nid = NodeBlock::read(&*overlay.block(addr)?).nid().0;
                found.by_footer.entry(nid).or_default().push(addr);
                let owner = summary.entries[offset as usize].nid.get();
                if summary.entry_type == TYPE_NODE && owner != nid && owner != 0 {
                    found.by_summary.entry(owner).or_default().push(addr);
                }
            }
        }
        for (nid, (_, addr)) in self.forgotten(overlay)? {
            found.by_footer.entry(nid).or_insert_with(|| vec![addr]);
        }
        Ok(found)
    }

    /// The newest block of a node that the SIT does not hold for a valid one of nodes, though summary and footer say
    /// what it was; if the NAT names a place, where it is not, or knows nothing of the NID. Else the NAT says that there is
    /// no such node any more.
    pub(super) fn dropped(&mut self, overlay: &Overlay, nid: Nid) -> Result<Option<BlockAddr>, RepairError> {
        if self.nat.get(nid).block_addr.get() == 0 && !self.is_unknown(nid) {
            return Ok(None);
        }
        if self.found.dropped.is_none() {
            let is_of_nodes = |entry: &RawSitEntry| entry.log_type().is_some_and(LogType::is_node);
            self.found.dropped = Some(self.newest(overlay, |tables, segment, offset| {
                !is_of_nodes(tables.sit.get(segment)) || !tables.sit.is_valid(segment, offset)
            })?);
        }
        Ok(self.found.dropped.as_ref().and_then(|all| all.get(&nid.0)).map(|(_, addr)| *addr))
    }

    /// The newest node of each NID in segments whose SIT entries were lost: they say that nothing ever was there, and
    /// the summaries and footers that there are nodes. With the versions that the footers carry.
    fn forgotten(&self, overlay: &Overlay) -> Result<HashMap<u32, (u64, BlockAddr)>, RepairError> {
        self.newest(overlay, |tables, segment, _| *tables.sit.get(segment) == RawSitEntry::ZERO)
    }

    /// The newest node of each NID among these blocks, by segment and offset there, if summary and footer say the same.
    /// With the versions that the footers carry.
    fn newest(
        &self,
        overlay: &Overlay,
        among: impl Fn(&Tables, SegmentNo, u32) -> bool,
    ) -> Result<HashMap<u32, (u64, BlockAddr)>, RepairError> {
        let mut newest: HashMap<u32, (u64, BlockAddr)> = HashMap::new();
        for segment in self.sit.segments().map(SegmentNo) {
            let mut offsets = (0..BLOCKS_PER_SEGMENT).filter(|offset| among(self, segment, *offset)).peekable();
            if offsets.peek().is_none() {
                continue;
            }
            // Most were never used; none of them is kept in memory.
            let on_device = overlay.block(self.geometry.summary_block(segment))?;
            let summary = self.known_summary(segment).unwrap_or(SummaryBlock::read(&on_device));
            if summary.entry_type != TYPE_NODE {
                continue;
            }
            for offset in offsets {
                let addr = self.geometry.block_at(segment, offset);
                let owner = Nid::from(summary.entries[offset as usize].nid);
                if owner.is_null() || !self.is_there(addr) {
                    continue;
                }
                let node = *NodeBlock::read(&*overlay.block(addr)?);
                let version = node.footer.cp_ver.get() & u64::from(u32::MAX);
                let is_older = newest.get(&owner.0).is_some_and(|(other, _)| *other > version);
                if node.nid() == owner && !is_older {
                    newest.insert(owner.0, (version, addr));
                }
            }
        }
        Ok(newest)
    }
}
