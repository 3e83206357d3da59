//! Inodes that nothing refers to get their first name back, or one in `lost+found`: their number.

use std::collections::BTreeSet;

use f2fs_format::dentry::FileType;
use f2fs_format::inode::inline;
use f2fs_format::node::NodeBlock;
use f2fs_format::{BLOCKS_PER_SEGMENT, LogType, Nid, SegmentNo};

use super::RepairError;
use super::directory::own_name;
use super::entries::{insert, look_up, make_room, set_parent};
use super::make;
use super::nodes::node_of;
use super::overlay::Overlay;
use super::state::{Reference, Slot, State};
use super::tables::Tables;
use super::walk::{Role, Walk};

/// Directories of lost files at most; each has room for tens of thousands of names.
const MAX_DIRECTORIES: u32 = 4096;

/// Names every inode that is there but was not reached, and frees the other nodes.
pub(super) fn attach(overlay: &Overlay, tables: &mut Tables, state: &mut State) -> Result<(), RepairError> {
    let mut walk = Walk::new(overlay, tables, state);
    let mut unreached: Vec<Nid> =
        walk.tables.nat.in_use().filter(|nid| !walk.state.nodes.contains_key(&nid.0)).collect();
    unreached.extend(unknown_inodes(&mut walk)?);
    for nid in &unreached {
        speak_for(&mut walk, *nid)?;
    }
    if !walk.state.inodes.contains_key(&walk.tables.geometry.root_ino.0) {
        make::root(&mut walk)?;
    }
    let mut lost = Vec::new();
    for nid in unreached {
        if walk.state.nodes.contains_key(&nid.0) {
            continue;
        }
        let by = Reference { holder: nid, slot: Slot::Table };
        let Some(node) = walk.peek(nid)? else { continue };
        let addr = walk.tables.nat.get(nid).block_addr.get();
        let claimed = walk.state.blocks.contains_key(&addr) || walk.state.is_cut(by);
        let file_type = FileType::from_mode(node.inode().i_mode.get());
        if node.is_inode() && node.footer.node_offset() == 0 && !claimed && file_type != FileType::Unknown {
            lost.push((nid, file_type, Nid::from(node.inode().i_pino)));
        }
    }
    let nameless = walk.state.nameless();
    // Everything below a lost directory keeps its place: directories whose own parent is not lost go first.
    let all: BTreeSet<u32> = lost.iter().map(|(nid, ..)| nid.0).collect();
    lost.sort_by_key(|(nid, file_type, parent)| {
        let is_dir = *file_type == FileType::Directory;
        (!is_dir, is_dir && all.contains(&parent.0), nid.0)
    });
    if lost.is_empty() && nameless.is_empty() {
        return Ok(());
    }
    let links_before = walk.state.inodes.clone();
    let mut found = Shelf { directory: None, made: 0 };
    for ino in nameless {
        let Some(node) = walk.peek(ino)? else { continue };
        let file_type = FileType::from_mode(node.inode().i_mode.get());
        let place = found.place_for(&mut walk, ino)?;
        if name(&mut walk, ino, file_type, &place)? {
            walk.state.inodes.insert(ino.0, 1);
        }
    }
    for (ino, file_type, _) in lost {
        if walk.state.inodes.contains_key(&ino.0) {
            continue;
        }
        let place = found.place_for(&mut walk, ino)?;
        if !walk.enter(ino, Role::Linked { parent: place.0, file_type })? {
            continue;
        }
        walk.state.inodes.insert(ino.0, 1);
        walk.run()?;
        let named = name(&mut walk, ino, file_type, &place)?;
        debug_assert!(named, "a place was found for it");
    }
    // Entries of a lost directory may be further names of files that were found before it.
    let changed = |(ino, links): (&u32, &u32)| (links_before.get(ino) != Some(links)).then_some((Nid(*ino), *links));
    let changed: Vec<(Nid, u32)> = walk.state.inodes.iter().filter_map(changed).collect();
    for (ino, links) in changed {
        if !walk.state.directories.contains_key(&ino.0) {
            walk.set_links(ino, links)?;
        }
    }
    Ok(())
}

/// Inodes that neither the NAT knows nor anything that was reached. Blocks of nodes that were reached are not read.
fn unknown_inodes(walk: &mut Walk<'_>) -> Result<Vec<Nid>, RepairError> {
    let mut found = BTreeSet::new();
    for segment in walk.tables.sit.segments().map(SegmentNo) {
        if walk.tables.sit.get(segment).log_type().is_none_or(|log: LogType| !log.is_node()) {
            continue;
        }
        for offset in 0..BLOCKS_PER_SEGMENT {
            let addr = walk.tables.geometry.block_at(segment, offset);
            let is_left = walk.tables.sit.is_valid(segment, offset) && !walk.state.blocks.contains_key(&addr.0);
            if !is_left || !walk.tables.is_there(addr) {
                continue;
            }
            let node = *NodeBlock::read(&*walk.overlay.block(addr)?);
            let nid = node.nid();
            let is_inode = node.is_inode() && nid == node.ino() && nid.0 < walk.tables.nat.len();
            if is_inode && walk.tables.is_unknown(nid) && !walk.state.nodes.contains_key(&nid.0) {
                found.insert(nid);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Keeps the segments of a node, and of the data that it names, from being taken for free ones: the SIT may say that
/// they are.
fn speak_for(walk: &mut Walk<'_>, nid: Nid) -> Result<(), RepairError> {
    let geometry = &walk.tables.geometry;
    let addr = walk.tables.nat.get(nid).block_addr.into();
    let Some((segment, _)) = geometry.locate(addr) else { return Ok(()) };
    walk.state.spoken_for.insert(segment);
    if !walk.tables.is_there(addr) {
        return Ok(());
    }
    let node = *NodeBlock::read(&*walk.overlay.block(addr)?);
    if !(node.is_inode() && node.inode().i_inline & (inline::DATA | inline::DENTRY) != 0) {
        let named = node.addresses(geometry.features).filter_map(|addr| geometry.locate(addr));
        walk.state.spoken_for.extend(named.map(|(segment, _)| segment));
    }
    Ok(())
}

/// Whether a directory has no such name yet, and room for it.
fn takes(walk: &mut Walk<'_>, dir: Nid, name: &[u8]) -> Result<bool, RepairError> {
    Ok(look_up(walk, dir, name)?.is_none() && make_room(walk, dir, name)?)
}

/// The directory that takes names at present.
struct Shelf {
    directory: Option<Nid>,
    made: u32,
}

impl Shelf {
    /// A directory with room for a number.
    fn place(&mut self, walk: &mut Walk<'_>, number: &[u8]) -> Result<Nid, RepairError> {
        if let Some(directory) = self.directory
            && takes(walk, directory, number)?
        {
            return Ok(directory);
        }
        let root = walk.tables.geometry.root_ino;
        while self.made < MAX_DIRECTORIES {
            let name = if self.made == 0 { "lost+found".to_owned() } else { format!("lost+found.{}", self.made) };
            self.made += 1;
            if let Some(existing) = look_up(walk, root, name.as_bytes())? {
                if walk.state.directories.contains_key(&existing.0) && takes(walk, existing, number)? {
                    self.directory = Some(existing);
                    return Ok(existing);
                }
                continue;
            }
            let ino = make::directory(walk, root, name.as_bytes())?;
            self.directory = Some(ino);
            return Ok(ino);
        }
        Err(RepairError::NoRoom("more directories of lost files"))
    }

    /// Where an inode without a name is put: where it was made, if that directory is there and the name is free; else
    /// here, with its number for a name.
    fn place_for(&mut self, walk: &mut Walk<'_>, ino: Nid) -> Result<(Nid, Vec<u8>), RepairError> {
        if let Some(node) = walk.peek(ino)? {
            let parent = Nid::from(node.inode().i_pino);
            let is_there = parent != ino && walk.state.directories.contains_key(&parent.0);
            if let Some(name) = own_name(&node).filter(|_| is_there)
                && takes(walk, parent, &name)?
            {
                return Ok((parent, name));
            }
        }
        let number = ino.to_string().into_bytes();
        Ok((self.place(walk, &number)?, number))
    }
}

/// Gives an inode its name.
fn name(
    walk: &mut Walk<'_>,
    ino: Nid,
    file_type: FileType,
    (directory, name): &(Nid, Vec<u8>),
) -> Result<bool, RepairError> {
    if !insert(walk, *directory, name, ino, file_type)? {
        return Ok(false);
    }
    let text = name.escape_ascii();
    walk.state.act(|| format!("inode {ino}: had no name, it is `{text}` in directory {directory} now"));
    if file_type == FileType::Directory {
        let (addr, mut node) = node_of(walk, ino)?;
        walk.state.directories.insert(ino.0, *directory);
        node.inode_mut().i_pino = (*directory).into();
        walk.put(addr, &mut node);
        set_parent(walk, ino, *directory)?;
    }
    Ok(true)
}
