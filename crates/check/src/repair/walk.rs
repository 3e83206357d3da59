//! The walk over what is reachable. Nodes and inodes are put right on the way.

use std::cmp::Ordering;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use f2fs_format::dentry::FileType;
use f2fs_format::feature::Features;
use f2fs_format::inode;
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Nid, flipped_bit, path};

use super::RepairError;
use super::overlay::Overlay;
use super::owners::Owners;
use super::state::{Claim, Reference, Slot, State, Trust};
use super::tables::Tables;

/// Why an inode is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Root,
    /// An entry names it.
    Linked {
        parent: Nid,
        file_type: FileType,
    },
    Orphan,
    Quota,
}

/// Inodes whose `i_links` is not the number of their names.
#[derive(Debug, Default)]
pub(super) struct WrongLinks {
    /// They have more names than links.
    pub(super) too_few: BTreeSet<Nid>,
    /// They have fewer.
    pub(super) too_many: Vec<Nid>,
}

/// The state of the walk.
pub(super) struct Walk<'w> {
    pub(super) overlay: &'w Overlay,
    pub(super) tables: &'w mut Tables,
    pub(super) state: &'w mut State,
    pub(super) pending: VecDeque<(Nid, Role)>,
    owners: Option<Rc<Owners>>,
}

/// Walks everything that is reachable.
pub(super) fn walk(overlay: &Overlay, tables: &mut Tables, state: &mut State) -> Result<(), RepairError> {
    let (root, listed) = (tables.geometry.root_ino, tables.orphans.clone());
    let quota: Vec<Nid> = tables.sb.qf_ino.iter().map(|ino| Nid::from(*ino)).filter(|ino| !ino.is_null()).collect();
    let conflicts = state.conflicts();
    let mut walk = Walk::new(overlay, tables, state);
    walk.enter(root, Role::Root)?;
    for ino in quota {
        walk.enter(ino, Role::Quota)?;
    }
    walk.run()?;
    // Last: what has a name is no orphan.
    for ino in listed {
        let named = walk.state.orphans_have_names() || walk.state.inodes.contains_key(&ino.0);
        if named || !walk.enter(ino, Role::Orphan)? {
            walk.state.act(|| format!("orphan {ino}: is off the list"));
        } else {
            walk.state.orphans.insert(ino);
        }
    }
    walk.run()?;
    let names = walk.mend_links()?;
    if walk.state.conflicts() == conflicts {
        walk.turn_back(names)?;
    }
    Ok(())
}

/// The action on a child node: the walk, its NID, its node offset, and itself.
type EachChild<'e, W> = dyn FnMut(&mut W, Nid, u32, Box<NodeBlock>) -> Result<(), RepairError> + 'e;

impl<'w> Walk<'w> {
    pub(super) fn new(overlay: &'w Overlay, tables: &'w mut Tables, state: &'w mut State) -> Walk<'w> {
        Walk { overlay, tables, state, pending: VecDeque::new(), owners: None }
    }

    /// What summaries and footers say of all blocks and nodes.
    pub(super) fn owners(&mut self) -> Result<Rc<Owners>, RepairError> {
        if let Some(owners) = &self.owners {
            return Ok(Rc::clone(owners));
        }
        let owners = Rc::new(Owners::read(self.tables, self.overlay)?);
        self.owners = Some(Rc::clone(&owners));
        Ok(owners)
    }

    /// Puts an inode on the list of those to be walked; tells whether there is one, and it was not there before.
    pub(super) fn enter(&mut self, ino: Nid, role: Role) -> Result<bool, RepairError> {
        let by = Reference { holder: ino, slot: Slot::Table };
        if self.state.inodes.contains_key(&ino.0) || self.find(ino, ino, 0, by)?.is_none() {
            return Ok(false);
        }
        self.state.inodes.insert(ino.0, 0);
        self.pending.push_back((ino, role));
        Ok(true)
    }

    pub(super) fn run(&mut self) -> Result<(), RepairError> {
        while let Some((ino, role)) = self.pending.pop_front() {
            self.inode(ino, role)?;
        }
        Ok(())
    }

    /// Whether there is an inode of this number, without taking it.
    pub(super) fn peek(&mut self, ino: Nid) -> Result<Option<Box<NodeBlock>>, RepairError> {
        if self.state.inodes.contains_key(&ino.0) {
            let addr = self.tables.nat.get(ino).block_addr.into();
            return Ok(Some(Box::new(*NodeBlock::read(&*self.overlay.block(addr)?))));
        }
        Ok(self.locate(ino, ino)?.map(|(_, node, _)| node))
    }

    /// Where a node is, by two of three: NAT, footer, summary. Third: whether nothing about it was wrong.
    fn locate(&mut self, nid: Nid, ino: Nid) -> Result<Option<(BlockAddr, Box<NodeBlock>, bool)>, RepairError> {
        if nid.0 <= 2 || nid.0 >= self.tables.nat.len() {
            return Ok(None);
        }
        let entry = self.tables.nat.get(nid);
        let addr = BlockAddr::from(entry.block_addr);
        if self.tables.is_there(addr) {
            let mut node = Box::new(*NodeBlock::read(&*self.overlay.block(addr)?));
            if nid == ino {
                self.unflip(nid, addr, &mut node);
            }
            let owner = self.tables.owner(self.overlay, addr)?.map(|(owner, ..)| owner);
            let nat = Nid::from(entry.ino) == ino;
            let (footer_nid, footer_ino) = (node.nid() == nid, node.ino() == ino);
            match (nat, footer_nid, footer_ino) {
                (true, true, true) => {
                    let instead = self.tables.instead_of(self.overlay, addr, &node)?;
                    let is_whole = instead.is_none();
                    let (addr, node) = instead.unwrap_or((addr, node));
                    return Ok(Some((addr, node, is_whole)));
                }
                (_, true, true) => return Ok(Some((addr, node, false))),
                (true, true, false) => return Ok(Some((addr, node, false))),
                (true, false, _)
                    if owner == Some(nid)
                        && !self.is_of_another(addr, &node)
                        && !self.is_copy(addr, &node)?
                        && self.may_be_node(&node) =>
                {
                    return Ok(Some((addr, node, false)));
                }
                _ => {}
            }
        }
        let mut found = Vec::new();
        for addr in self.tables.by_footer(self.overlay, nid)? {
            let node = Box::new(*NodeBlock::read(&*self.overlay.block(addr)?));
            let is_owner = match self.tables.owner(self.overlay, addr)? {
                Some((owner, ..)) if owner == nid => true,
                // Another summary stands here, unless the node that it names is there.
                Some(_) if !self.tables.is_unknown(nid) => false,
                Some((owner, _, true)) if self.is_at(owner, addr) => false,
                // The summary was lost. The SIT speaks for what the footer says.
                _ => self.tables.is_valid(addr) && self.tables.in_node_segment(addr) == Some(true),
            };
            if node.ino() == ino && is_owner {
                found.push((addr, node, false));
            }
        }
        if found.is_empty()
            && let Some(addr) = self.tables.dropped(self.overlay, nid)?
        {
            let node = Box::new(*NodeBlock::read(&*self.overlay.block(addr)?));
            found.extend((node.ino() == ino).then_some((addr, node, false)));
        }
        if found.len() == 1 {
            return Ok(found.pop());
        }
        self.lost(nid, ino, addr)
    }

    /// An empty node in the place of one that was lost: two of NAT, SIT and summary say that it was there, and there is
    /// something that is no node.
    fn lost(
        &mut self,
        nid: Nid,
        ino: Nid,
        addr: BlockAddr,
    ) -> Result<Option<(BlockAddr, Box<NodeBlock>, bool)>, RepairError> {
        let is_unknown = self.tables.is_unknown(nid);
        let addr = if is_unknown { self.tables.by_summary(self.overlay, nid)? } else { Some(addr) };
        let Some(addr) = addr.filter(|addr| self.tables.is_there(*addr) && self.tables.is_valid(*addr)) else {
            return Ok(None);
        };
        let owns = match self.tables.owner(self.overlay, addr)? {
            Some((owner, _, is_node)) => owner == nid && is_node,
            None => !is_unknown && self.tables.in_node_segment(addr) == Some(true),
        };
        let is_its = is_unknown || Nid::from(self.tables.nat.get(nid).ino) == ino;
        let found = *NodeBlock::read(&*self.overlay.block(addr)?);
        if !owns || !is_its || self.is_of_another(addr, &found) {
            return Ok(None);
        }
        let mut node = Box::new(NodeBlock::ZERO);
        node.footer.nid = nid.into();
        node.footer.ino = ino.into();
        self.overlay.put(addr, node.as_block());
        self.state.act(|| format!("nid {nid}: what stands at block {addr} is no node, it begins anew"));
        Ok(Some((addr, node, false)))
    }

    /// Puts a bit back that was flipped in an inode, if its checksum says which.
    fn unflip(&mut self, ino: Nid, addr: BlockAddr, node: &mut NodeBlock) {
        if !self.tables.geometry.features.contains(Features::INODE_CHECKSUM) {
            return;
        }
        let Some(bit) = flipped_bit::in_inode(node, self.tables.seed) else { return };
        let whole = bit.flip(node);
        if whole.nid() == ino && whole.ino() == ino && inode::has_checksum(whole.inode(), self.tables.geometry.features)
        {
            self.state
                .act(|| format!("inode {ino}: bit {} of byte {} was flipped, and is put back", bit.bit, bit.byte));
            *node = whole;
            self.overlay.put(addr, node.as_block());
        }
    }

    /// Whether a node's footer names another node that the NAT and the summary know at this place.
    fn is_of_another(&self, addr: BlockAddr, node: &NodeBlock) -> bool {
        self.is_at(node.nid(), addr) && node.nid().0 > 2
    }

    /// Whether a node is a copy of another one, which is whole where the NAT says that it is: something was written to
    /// the wrong place. One damage changes one number of a footer, and not all of them to those of another node.
    fn is_copy(&self, addr: BlockAddr, node: &NodeBlock) -> Result<bool, RepairError> {
        let home = BlockAddr::from(self.tables.nat.get(node.nid()).block_addr);
        if node.nid().0 <= 2 || home == addr || !self.tables.is_there(home) {
            return Ok(false);
        }
        let block = self.overlay.block(home)?;
        let there = NodeBlock::read(&block);
        let name = |node: &NodeBlock| (node.nid(), node.ino(), node.footer.node_offset());
        Ok(name(there) == name(node))
    }

    /// Whether the NAT says that a node is at this place.
    fn is_at(&self, nid: Nid, addr: BlockAddr) -> bool {
        self.tables.nat.get(nid).block_addr.get() == addr.0
    }

    /// Whether a block whose footer has another number was a node at all: the footer of each has the place of the next
    /// one, which hardly ever stands in data. In a block that was cleared nothing is anything.
    fn may_be_node(&self, node: &NodeBlock) -> bool {
        let (next, geometry) = (node.footer.next_blkaddr.get(), &self.tables.geometry);
        next == 0 || (geometry.main_blkaddr.0..=geometry.main_end().0).contains(&next)
    }

    /// Takes a node that something refers to, with its entry and footer put right. `None`: there is none, or it belongs
    /// to another reference.
    pub(super) fn find(
        &mut self,
        nid: Nid,
        ino: Nid,
        offset: u32,
        by: Reference,
    ) -> Result<Option<Box<NodeBlock>>, RepairError> {
        if self.state.is_cut(by) {
            return Ok(None);
        }
        let Some((addr, mut node, sound)) = self.locate(nid, ino)? else { return Ok(None) };
        let at_home = node.footer.node_offset() == offset;
        let claim = Claim { by, trust: Trust::sound_if(sound && at_home), is_node: true, owner: (nid, 0) };
        if !self.state.claim_node(nid, claim) || !self.state.claim_block(addr.0, claim) {
            return Ok(None);
        }
        let mut entry = self.tables.nat.get(nid);
        if BlockAddr::from(entry.block_addr) != addr || Nid::from(entry.ino) != ino {
            self.state.act(|| format!("nid {nid}: its entry is of inode {ino} at block {addr}"));
            entry.block_addr = addr.into();
            entry.ino = ino.into();
            self.tables.nat.set(nid, entry);
        }
        if node.nid() != nid || node.ino() != ino || !at_home {
            self.state.act(|| format!("nid {nid}: its footer says nid {nid}, inode {ino}, offset {offset}"));
            node.footer.nid = nid.into();
            node.footer.ino = ino.into();
            node.footer.set_node_offset(offset);
            self.put(addr, &mut node);
        }
        Ok(Some(node))
    }

    /// Writes a node; an inode gets its checksum.
    pub(super) fn put(&mut self, addr: BlockAddr, node: &mut NodeBlock) {
        if node.is_inode() && inode::has_checksum(node.inode(), self.tables.geometry.features) {
            let sum = inode::checksum(node, self.tables.seed);
            node.inode_mut().extra_mut().i_inode_checksum = sum.into();
        }
        self.overlay.put(addr, node.as_block());
    }

    /// Takes a data block that a slot refers to; tells whether the slot keeps it.
    pub(super) fn take_data(&mut self, holder: Nid, slot: u32, addr: BlockAddr, trust: Trust) -> bool {
        let by = Reference { holder, slot: Slot::Address(slot) };
        !self.state.is_cut(by) && self.take_instead(holder, slot, addr, trust)
    }

    /// The same, in the place of the block that the slot refers to: it may have lost a conflict with that one.
    pub(super) fn take_instead(&mut self, holder: Nid, slot: u32, addr: BlockAddr, trust: Trust) -> bool {
        if self.tables.geometry.locate(addr).is_some_and(|(segment, _)| self.state.holds_nodes(segment)) {
            return false;
        }
        let by = Reference { holder, slot: Slot::Address(slot) };
        self.state.claim_block(addr.0, Claim { by, trust, is_node: false, owner: (holder, slot as u16) })
    }

    /// What speaks for a slot's reference to a data block, beside itself; `None` if everything speaks against it.
    pub(super) fn trust_in(&mut self, holder: Nid, slot: u32, addr: BlockAddr) -> Result<Option<Trust>, RepairError> {
        if !self.tables.is_there(addr) {
            return Ok(None);
        }
        let is_valid = self.tables.is_valid(addr);
        let is_beside_nodes = self.tables.is_beside_nodes(self.overlay, addr)?;
        Ok(match self.tables.owner(self.overlay, addr)? {
            Some((owner, owner_slot, _)) if owner == holder && u32::from(owner_slot) == slot => Some(Trust::Sound),
            Some((.., true)) if is_beside_nodes != Some(false) => None,
            _ if is_valid => Some(Trust::Partly),
            // The SIT was lost, and does not say that the block is free; the summary may be wrong.
            Some((.., false)) if self.tables.is_forgotten(addr) => Some(Trust::Alone),
            Some(_) => None,
            // A free block beside nodes: data never go there.
            None if is_beside_nodes == Some(true) => None,
            None => Some(Trust::Alone),
        })
    }

    /// The children of a node: their references are put right in `nids`; each child is handed to `each`.
    pub(super) fn children(
        &mut self,
        ino: Nid,
        holder: Nid,
        offset: u32,
        nids: &mut [zerocopy::little_endian::U32],
        each: &mut EachChild<'_, Self>,
    ) -> Result<(), RepairError> {
        for (slot, raw) in nids.iter_mut().enumerate() {
            let nid = Nid::from(*raw);
            if nid.is_null() {
                continue;
            }
            let by = Reference { holder, slot: Slot::Child(slot as u32) };
            let child = path::child(offset, slot);
            let found = match child {
                Some(child) => self.find(nid, ino, child, by)?.map(|node| (child, node)),
                None => None,
            };
            match found {
                Some((child, node)) => each(self, nid, child, node)?,
                None => {
                    self.state.act(|| format!("nid {holder}: slot {slot} does not lead to node {nid}, it is cleared"));
                    *raw = 0.into();
                }
            }
        }
        Ok(())
    }

    /// `i_links` of everything but directories, when all entries are known. Tells where they were wrong.
    fn mend_links(&mut self) -> Result<WrongLinks, RepairError> {
        let mut wrong = WrongLinks::default();
        for (ino, links) in self.state.inodes.clone() {
            let ino = Nid(ino);
            if self.state.directories.contains_key(&ino.0) || self.state.orphans.contains(&ino) {
                continue;
            }
            if self.tables.sb.qf_ino.iter().any(|quota| Nid::from(*quota) == ino) {
                continue;
            }
            match self.set_links(ino, links)?.cmp(&links) {
                Ordering::Less => _ = wrong.too_few.insert(ino),
                Ordering::Equal => {}
                Ordering::Greater => wrong.too_many.push(ino),
            }
        }
        Ok(wrong)
    }

    /// Sets the links of an inode; gives those that it had.
    pub(super) fn set_links(&mut self, ino: Nid, links: u32) -> Result<u32, RepairError> {
        let addr = self.tables.nat.get(ino).block_addr.into();
        let mut node = Box::new(*NodeBlock::read(&*self.overlay.block(addr)?));
        let before = node.inode().i_links.get();
        if before != links {
            self.state.act(|| format!("inode {ino}: i_links is {links}, was {before}"));
            node.inode_mut().i_links = links.into();
            self.put(addr, &mut node);
        }
        Ok(before)
    }
}
