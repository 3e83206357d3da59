//! One inode: its fields follow from its nodes and entries.

use f2fs_format::dentry::FileType;
use f2fs_format::feature::Features;
use f2fs_format::inode::{Extent, inline};
use f2fs_format::node::{ADDRS_PER_BLOCK, NodeBlock, XATTR_NODE_OFFSET};
use f2fs_format::path::{self, NodeKind};
use f2fs_format::xattr::{SetMode, XattrBuffer, full_name};
use f2fs_format::{BlockAddr, Nid, hash};

use super::directory::Directory;
use super::state::{Reference, Slot, Trust};
use super::walk::{Role, Walk};
use super::{RepairError, layout};
use crate::extent::ExtentWatch;

/// The nodes and blocks of an inode.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Blocks and nodes, the inode not counted.
    pub(super) blocks: u64,
    pub(super) reserved: u64,
    /// The last file block with an address in the main area, in the inode or a node that begins in front of the end.
    last_near: Option<u64>,
    /// The last one in a node that begins behind the end by `i_size`.
    last_behind: Option<u64>,
    /// The first file block behind the end.
    end: u64,
    /// Whether the node that is walked begins behind it.
    is_behind: bool,
    /// File blocks with their addresses; of directories.
    pub(super) data: Vec<(u64, BlockAddr)>,
    /// The inode.
    ino: Nid,
    /// Whether it counts all that is named, as far as somebody asked.
    is_counted: Option<bool>,
}

impl Content {
    /// Where the last block ends.
    fn bytes(&self) -> u64 {
        self.last_near.max(self.last_behind).map_or(0, |last| (last + 1) * 4096)
    }
}

impl Walk<'_> {
    /// The type that its directory gives an inode which says none itself: its block was lost, or a part of it.
    fn is_lost(&self, role: Role, node: &NodeBlock) -> Option<FileType> {
        let named = match role {
            Role::Linked { file_type, .. } => file_type,
            Role::Root => FileType::Directory,
            Role::Orphan | Role::Quota => FileType::Regular,
        };
        (FileType::from_mode(node.inode().i_mode.get()) == FileType::Unknown).then_some(named)
    }

    pub(super) fn inode(&mut self, ino: Nid, role: Role) -> Result<(), RepairError> {
        let addr: BlockAddr = self.tables.nat.get(ino).block_addr.into();
        let mut node = Box::new(*NodeBlock::read(&*self.overlay.block(addr)?));
        let before = node.clone();
        let features = self.tables.geometry.features;
        let lost = self.is_lost(role, &node);
        if let Some(named) = lost {
            self.remake_inode(ino, named, &mut node)?;
        }
        let file_type = self.mend_mode(ino, role, &mut node);
        layout::mend(&mut node, features);
        if lost.is_none() {
            self.mend_shift(ino, &mut node)?;
        }
        let is_dir = file_type == FileType::Directory;
        let xattr_nodes = self.mend_xattrs(ino, &mut node)?;
        let mut content = Content::default();
        let inode = node.inode_mut();
        if matches!(file_type, FileType::Regular | FileType::Symlink) {
            inode.i_inline &= !inline::DENTRY;
        } else if is_dir {
            inode.i_inline &= !inline::DATA;
        } else {
            inode.i_inline &= !(inline::DATA | inline::DENTRY);
        }
        let inline_content = inode.i_inline & (inline::DATA | inline::DENTRY) != 0;
        if inline_content {
            mend_inline(&mut node, features);
        } else if matches!(file_type, FileType::Regular | FileType::Symlink | FileType::Directory) {
            content = self.mend_tree(ino, &mut node)?;
            if lost.is_some() && file_type == FileType::Regular {
                node.inode_mut().i_size = content.bytes().into();
            }
        }
        self.state.reserved += content.reserved;
        if is_dir && !inline_content && content.blocks == 0 && content.reserved == 0 {
            // Without a block there is no place for `.` and `..` but the inode.
            let inode = node.inode_mut();
            inode.i_inline |= inline::DENTRY;
            inode.i_ext = Extent { fofs: 0.into(), blk_addr: 0.into(), len: 0.into() };
            inode.inline_data_mut(features).fill(0);
        }
        if is_dir {
            let parent = match role {
                Role::Linked { parent, .. } => parent,
                Role::Root => ino,
                Role::Orphan | Role::Quota => node.inode().i_pino.into(),
            };
            self.state.directories.insert(ino.0, parent);
            Directory::new(ino, parent, role).mend(self, &mut node, &content)?;
        }
        let inode = node.inode_mut();
        inode.i_blocks = (1 + xattr_nodes + content.blocks).into();
        match role {
            Role::Orphan => inode.i_links = 0.into(),
            // Nothing names it, and it has the link that mkfs.f2fs gives it.
            Role::Quota => inode.i_links = 1.into(),
            _ => {}
        }
        if let Role::Linked { parent, .. } = role
            && is_dir
            && Nid::from(inode.i_pino) != parent
        {
            self.state.note_moved(ino, inode.i_pino.into());
            inode.i_pino = parent.into();
        }
        mend_size(&mut node, features, file_type, &content, matches!(role, Role::Orphan));
        if *node.as_block() != *before.as_block() {
            self.state.act(|| format!("inode {ino}: {}", differences(&before, &node)));
            self.put(addr, &mut node);
        } else if self.checksum_holds(&node) == Some(false) {
            let sum = f2fs_format::inode::checksum(&node, self.tables.seed);
            self.state.act(|| format!("inode {ino}: i_inode_checksum is {sum:#010x}"));
            self.put(addr, &mut node);
        }
        Ok(())
    }

    /// Whether an inode's checksum is right; `None` if it has none.
    pub(super) fn checksum_holds(&self, node: &NodeBlock) -> Option<bool> {
        let extra = node.inode().extra()?;
        let has_one = f2fs_format::inode::has_checksum(node.inode(), self.tables.geometry.features);
        has_one.then(|| extra.i_inode_checksum.get() == f2fs_format::inode::checksum(node, self.tables.seed))
    }

    fn mend_mode(&mut self, ino: Nid, role: Role, node: &mut NodeBlock) -> FileType {
        let inode = node.inode_mut();
        let mut file_type = FileType::from_mode(inode.i_mode.get());
        let wanted = match role {
            Role::Root => Some(FileType::Directory),
            Role::Quota => Some(FileType::Regular),
            Role::Linked { file_type: named, .. } => (file_type == FileType::Unknown).then_some(named),
            Role::Orphan => (file_type == FileType::Unknown).then_some(FileType::Regular),
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != file_type) {
            let i_mode = inode.i_mode.get() & 0o7777 | wanted.to_mode();
            self.state.act(|| format!("inode {ino}: i_mode is {i_mode:o}, was {:o}", inode.i_mode.get()));
            inode.i_mode = i_mode.into();
            file_type = wanted;
        }
        file_type
    }

    /// The xattrs: what can be read of them stays. Returns the nodes that they take.
    fn mend_xattrs(&mut self, ino: Nid, node: &mut NodeBlock) -> Result<u64, RepairError> {
        let features = self.tables.geometry.features;
        let nid = Nid::from(node.inode().i_xattr_nid);
        let by = Reference { holder: ino, slot: Slot::Xattr };
        let mut body = None;
        if !nid.is_null() {
            body = self.find(nid, ino, XATTR_NODE_OFFSET, by)?;
            if body.is_none() {
                self.state.act(|| format!("inode {ino}: there is no xattr node {nid}"));
                node.inode_mut().i_xattr_nid = 0.into();
            }
        }
        let has_area = node.inode().i_inline & inline::XATTR != 0;
        let area = if has_area { node.inode().inline_xattr(features).to_vec() } else { Vec::new() };
        if sound(&area, body.as_deref()) {
            return Ok(body.is_some().into());
        }
        self.state.act(|| format!("inode {ino}: its extended attributes are written anew, as far as they can be read"));
        let mut kept = XattrBuffer::read(&vec![0; area.len()], None)?;
        for (index, name, value) in readable(&area, body.as_deref()) {
            // Attributes that no longer fit are lost.
            let _ = kept.set(index, &name, &value, SetMode::Create);
        }
        if has_area {
            node.inode_mut().inline_xattr_mut(features).copy_from_slice(kept.inline());
        }
        let Some(mut block) = body else { return Ok(0) };
        let addr: BlockAddr = self.tables.nat.get(nid).block_addr.into();
        block.body = kept.node().copied().unwrap_or_else(|| {
            // The node stays, empty: behind an inline area nothing ends the list but zeros.
            let mut zeros = [0; f2fs_format::node::BODY_SIZE];
            if !has_area && let Some(head) = kept_head(&kept) {
                zeros[..head.len()].copy_from_slice(&head);
            }
            zeros
        });
        self.overlay.put(addr, block.as_block());
        Ok(1)
    }

    /// The tree of nodes and blocks.
    fn mend_tree(&mut self, ino: Nid, node: &mut NodeBlock) -> Result<Content, RepairError> {
        let features = self.tables.geometry.features;
        let mut content = Content { ino, end: node.inode().i_size.get().div_ceil(4096), ..Content::default() };
        let mut extent = ExtentWatch::new(&node.inode().i_ext);
        let addresses = node.address_count(features);
        for slot in 0..addresses {
            let addr = node.address(slot, features).unwrap_or(BlockAddr::NULL);
            let kept = self.address(ino, slot, slot as u64, addr, &mut content, &mut extent)?;
            if kept != addr {
                node.set_address(slot, kept, features);
            }
        }
        let mut nids = node.inode().i_nid;
        self.subtree(ino, ino, 0, &mut nids, addresses, &mut content, &mut extent)?;
        node.inode_mut().i_nid = nids;
        if extent.broken().is_some() {
            node.inode_mut().i_ext = Extent { fofs: 0.into(), blk_addr: 0.into(), len: 0.into() };
        }
        Ok(content)
    }

    #[expect(clippy::too_many_arguments, reason = "the way down a tree carries what is counted on it")]
    fn subtree(
        &mut self,
        ino: Nid,
        holder: Nid,
        offset: u32,
        nids: &mut [zerocopy::little_endian::U32],
        addresses: usize,
        content: &mut Content,
        extent: &mut ExtentWatch,
    ) -> Result<(), RepairError> {
        self.children(ino, holder, offset, nids, &mut |walk, nid, child, mut node| {
            content.blocks += 1;
            let before = node.clone();
            walk.refill(ino, nid, child, &mut node)?;
            if NodeKind::of(child) == Some(NodeKind::Direct) {
                let first = path::first_block(child, addresses).unwrap_or(0);
                content.is_behind = first >= content.end;
                for slot in 0..ADDRS_PER_BLOCK {
                    let addr = BlockAddr::from(node.slots()[slot]);
                    node.slots_mut()[slot] =
                        walk.address(nid, slot, first + slot as u64, addr, content, extent)?.into();
                }
            } else {
                let mut slots = *node.slots();
                walk.subtree(ino, nid, child, &mut slots, addresses, content, extent)?;
                *node.slots_mut() = slots;
            }
            if *node.as_block() != *before.as_block() {
                let addr = walk.tables.nat.get(nid).block_addr.into();
                walk.put(addr, &mut node);
            }
            Ok(())
        })
    }

    /// One address slot; tells what belongs into it.
    fn address(
        &mut self,
        holder: Nid,
        slot: usize,
        block: u64,
        addr: BlockAddr,
        content: &mut Content,
        extent: &mut ExtentWatch,
    ) -> Result<BlockAddr, RepairError> {
        let kept = if addr.is_null() {
            addr
        } else if addr == BlockAddr::NEW {
            content.reserved += 1;
            content.blocks += 1;
            addr
        } else {
            self.block_of(holder, slot, addr, content)?
        };
        if !kept.is_null() && kept != BlockAddr::NEW {
            content.blocks += 1;
            let last = if content.is_behind { &mut content.last_behind } else { &mut content.last_near };
            *last = (*last).max(Some(block));
            content.data.push((block, kept));
        }
        extent.see(block, kept);
        Ok(kept)
    }

    /// The block that a slot owns: the one that it names, or else the one whose summary names the slot, and that nobody
    /// refers to.
    fn block_of(
        &mut self,
        holder: Nid,
        slot: usize,
        addr: BlockAddr,
        content: &mut Content,
    ) -> Result<BlockAddr, RepairError> {
        if !self.tables.is_owner(self.overlay, addr, holder, slot)?
            && let Some(other) = self.owners()?.block(holder, slot).filter(|other| *other != addr)
            && self.take_data(holder, slot as u32, other, Trust::Sound)
        {
            self.state.act(|| format!("nid {holder}: slot {slot} does not own block {addr}, but block {other}"));
            return Ok(other);
        }
        let mut trust = self.trust_in(holder, slot as u32, addr)?;
        if trust == Some(Trust::Alone) && !self.is_counted(content)? {
            trust = None;
        }
        if let Some(trust) = trust
            && self.take_data(holder, slot as u32, addr, trust)
        {
            return Ok(addr);
        }
        if let Some(other) = self.owners()?.forgotten_block(holder, slot).filter(|other| *other != addr)
            && self.take_instead(holder, slot as u32, other, Trust::Sound)
        {
            self.state.act(|| format!("nid {holder}: slot {slot} does not own block {addr}, but block {other}"));
            return Ok(other);
        }
        self.state.act(|| format!("nid {holder}: slot {slot} does not own block {addr}, it becomes a hole"));
        Ok(BlockAddr::NULL)
    }

    /// Whether the inode counts all blocks that it and its nodes name: none of them came in by a damage.
    fn is_counted(&mut self, content: &mut Content) -> Result<bool, RepairError> {
        if content.is_counted.is_none() {
            let addr: BlockAddr = self.tables.nat.get(content.ino).block_addr.into();
            let node = *NodeBlock::read(&*self.overlay.block(addr)?);
            let xattr_nodes = u64::from(node.inode().i_xattr_nid.get() != 0);
            let named = 1 + xattr_nodes + self.count(&node, 0)?;
            content.is_counted = Some(named <= node.inode().i_blocks.get());
        }
        Ok(content.is_counted == Some(true))
    }

    /// The blocks and nodes that a node names, and those below it.
    fn count(&self, node: &NodeBlock, offset: u32) -> Result<u64, RepairError> {
        let holds_addresses = NodeKind::of(offset).is_some_and(NodeKind::holds_addresses);
        let addresses = node.addresses(self.tables.geometry.features).filter(|addr| holds_addresses && !addr.is_null());
        let mut count = addresses.count() as u64;
        let nids = if offset == 0 { &node.inode().i_nid[..] } else { &node.slots()[..] };
        for (slot, nid) in nids.iter().map(|nid| Nid::from(*nid)).enumerate() {
            let Some(child) = path::child(offset, slot) else { break };
            if nid.is_null() || nid.0 >= self.tables.nat.len() {
                continue;
            }
            let addr: BlockAddr = self.tables.nat.get(nid).block_addr.into();
            if self.tables.is_there(addr) {
                let below = *NodeBlock::read(&*self.overlay.block(addr)?);
                // A damaged tree may lead back to itself, but not deeper than offsets go.
                if below.nid() == nid && below.footer.node_offset() == child {
                    count += 1 + self.count(&below, child)?;
                }
            }
        }
        Ok(count)
    }
}

/// Content in the inode: nothing else holds any.
fn mend_inline(node: &mut NodeBlock, features: Features) {
    let inode = node.inode_mut();
    let at = inode.layout(features).extra_words;
    if let Some(word) = inode.i_addr.get_mut(at) {
        *word = 0.into();
    }
    inode.i_nid = Default::default();
    inode.i_ext = Extent { fofs: 0.into(), blk_addr: 0.into(), len: 0.into() };
    if inode.i_inline & inline::DATA != 0 {
        let room = inode.inline_data(features).len() as u64;
        if inode.i_size.get() > room {
            inode.i_size = room.into();
        }
        if inode.i_inline & inline::DATA_EXIST == 0 && inode.inline_data(features).iter().any(|byte| *byte != 0) {
            inode.i_inline |= inline::DATA_EXIST;
        }
    }
}

/// The size covers at least the blocks that there are, and the depth the entries.
fn mend_size(node: &mut NodeBlock, features: Features, file_type: FileType, content: &Content, orphan: bool) {
    use f2fs_format::inode::advise;
    let inode = node.inode_mut();
    let max = path::max_file_blocks(inode.layout(features).address_count()) * 4096;
    let max = if file_type == FileType::Symlink { 4096 } else { max };
    let last = content.last_behind.max(content.last_near);
    let needed = last.map_or(0, |last| (last + 1) * 4096);
    if inode.i_size.get() > max {
        inode.i_size = needed.min(max).into();
    }
    // A look-up in a directory goes by its size, whatever the advice.
    let is_dir = file_type == FileType::Directory;
    let kept = inode.i_advise & (advise::KEEP_SIZE | advise::VERITY) != 0 && !is_dir;
    let beyond_is_fine = kept || orphan;
    let reaches = |last: Option<u64>| last.is_some_and(|last| last >= inode.i_size.get().div_ceil(4096));
    // Nodes that all lie behind the end of a file are what Linux leaves: its size is right.
    let is_left = file_type == FileType::Regular && !reaches(content.last_near);
    if reaches(last) && !is_left && !beyond_is_fine {
        inode.i_size = needed.into();
    }
    if is_dir {
        if inode.i_current_depth.get() > hash::MAX_DEPTH {
            inode.i_current_depth = 1.into();
        }
        let level = last.and_then(|last| hash::locate_block(last, inode.i_dir_level)).map(|(level, _)| level);
        if let Some(level) = level.filter(|level| *level >= inode.i_current_depth.get()) {
            inode.i_current_depth = (level + 1).into();
        }
    }
}

type Attribute = (u8, Vec<u8>, Vec<u8>);

fn kept_head(kept: &XattrBuffer) -> Option<Vec<u8>> {
    // An empty list is a header; `node` does not give it out.
    let mut probe = kept.clone();
    probe.set(1, b"x", b"x", SetMode::Any).ok()?;
    Some(probe.node()?[..f2fs_format::xattr::HEADER_SIZE].to_vec())
}

/// The attributes up to the first that cannot be read; of two with the same name the first.
fn readable(area: &[u8], node: Option<&NodeBlock>) -> Vec<Attribute> {
    let mut all: Vec<Attribute> = Vec::new();
    // The more can be read of the areas alone, the more is kept.
    for (area, body) in [(area, node.map(|node| &node.body)), (area, None)] {
        let mut bytes = area.to_vec();
        if let Some(body) = body {
            bytes.extend_from_slice(body);
        }
        for (index, name, value) in entries(&bytes) {
            let internal = full_name(index, &name).is_none();
            if !internal && !name.contains(&0) && !all.iter().any(|(i, n, _)| *i == index && *n == name) {
                all.push((index, name, value));
            }
        }
    }
    all
}

/// A list of attributes, whatever stands in its header.
fn entries(bytes: &[u8]) -> Vec<Attribute> {
    let mut all = Vec::new();
    let mut at = f2fs_format::xattr::HEADER_SIZE;
    while let Some(head) = bytes.get(at..at + f2fs_format::xattr::ENTRY_HEADER_SIZE) {
        let (index, name_len) = (head[0], usize::from(head[1]));
        let value_len = usize::from(u16::from_le_bytes([head[2], head[3]]));
        if head == [0; 4] {
            break;
        }
        let name_at = at + f2fs_format::xattr::ENTRY_HEADER_SIZE;
        let end = name_at + name_len + value_len;
        let Some(text) = bytes.get(name_at..end) else { break };
        all.push((index, text[..name_len].to_vec(), text[name_len..].to_vec()));
        at = end.next_multiple_of(4);
    }
    all
}

/// Whether the check has nothing to say about these attributes.
fn sound(area: &[u8], node: Option<&NodeBlock>) -> bool {
    let body = node.map(|node| &node.body);
    let all: Vec<u8> = area.iter().chain(body.into_iter().flatten()).copied().collect();
    let Some(magic) = all.first_chunk::<4>() else { return true };
    if u32::from_le_bytes(*magic) != f2fs_format::xattr::MAGIC {
        return all.iter().all(|byte| *byte == 0);
    }
    let Ok(buffer) = XattrBuffer::read(area, body) else { return false };
    let mut names = std::collections::BTreeSet::new();
    buffer.entries().all(|entry| {
        use f2fs_format::xattr::index;
        entry.is_ok_and(|entry| {
            let internal = matches!(entry.index, index::ENCRYPTION | index::VERITY);
            (internal || full_name(entry.index, entry.name).is_some())
                && !entry.name.contains(&0)
                && names.insert((entry.index, entry.name.to_vec()))
        })
    })
}

/// The change, in words.
pub(super) fn differences(before: &NodeBlock, after: &NodeBlock) -> String {
    let (old, new) = (before.inode(), after.inode());
    let mut all = Vec::new();
    let mut field = |name: &str, old: u64, new: u64| {
        if old != new {
            all.push(format!("{name} is {new}, was {old}"));
        }
    };
    field("i_inline", old.i_inline.into(), new.i_inline.into());
    field("i_links", old.i_links.get().into(), new.i_links.get().into());
    field("i_size", old.i_size.get(), new.i_size.get());
    field("i_blocks", old.i_blocks.get(), new.i_blocks.get());
    field("i_current_depth", old.i_current_depth.get().into(), new.i_current_depth.get().into());
    field("i_pino", old.i_pino.get().into(), new.i_pino.get().into());
    field("i_namelen", old.i_namelen.get().into(), new.i_namelen.get().into());
    field("i_flags", old.i_flags.get().into(), new.i_flags.get().into());
    field("i_advise", old.i_advise.into(), new.i_advise.into());
    field("i_xattr_nid", old.i_xattr_nid.get().into(), new.i_xattr_nid.get().into());
    field("i_ext.len", old.i_ext.len.get().into(), new.i_ext.len.get().into());
    if all.is_empty() { "its content is put right".to_owned() } else { all.join(", ") }
}
