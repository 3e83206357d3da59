//! The entries of one directory.

use std::collections::HashSet;

use f2fs_format::bits::lsb;
use f2fs_format::dentry::{DentryView, DentryViewMut, FileType, check_name};
use f2fs_format::inode::inline;
use f2fs_format::node::NodeBlock;
use f2fs_format::{Nid, hash};

use super::RepairError;
use super::inode::Content;
use super::state::{Reference, Slot};
use super::walk::{Role, Walk};

/// File block of the inline area.
const INLINE: u32 = u32::MAX;
/// Levels of hashing that are tried (`i_dir_level`); the kernel's default is 0.
const MAX_DIR_LEVEL: u8 = 8;

/// A directory whose entries are put right.
#[derive(Debug)]
pub(super) struct Directory {
    ino: Nid,
    parent: Nid,
    is_root: bool,
    /// It was unlinked, and has no entries but `.` and `..`; those neither, if it was cut since.
    is_orphan: bool,
    names: HashSet<Vec<u8>>,
    subdirectories: u32,
    dots: [bool; 2],
    /// Entries that stand in the wrong bucket.
    misplaced: Vec<(Vec<u8>, Nid, FileType)>,
}

/// The treatment of an entry.
enum Verdict {
    Keep,
    Remove(&'static str),
    /// Name, target and type are to be these.
    Replace(Vec<u8>, Nid, FileType),
}

impl Directory {
    pub(super) fn new(ino: Nid, parent: Nid, role: Role) -> Directory {
        let (is_root, is_orphan) = (role == Role::Root, role == Role::Orphan);
        let (names, misplaced) = (HashSet::new(), Vec::new());
        Directory { ino, parent, is_root, is_orphan, names, subdirectories: 0, dots: [false; 2], misplaced }
    }

    /// Puts the entries right, and with them the directory's links and depth.
    pub(super) fn mend(
        &mut self,
        walk: &mut Walk<'_>,
        node: &mut NodeBlock,
        content: &Content,
    ) -> Result<(), RepairError> {
        let features = walk.tables.geometry.features;
        let dots_known_missing = node.inode().i_inline & inline::DOTS != 0 || self.is_orphan;
        let dir_level = best_level(walk, content, node.inode().i_dir_level)?;
        if dir_level != node.inode().i_dir_level {
            walk.state.act(|| format!("directory {}: i_dir_level is {dir_level}", self.ino));
            node.inode_mut().i_dir_level = dir_level;
        }
        let mut last_used = None;
        if node.inode().i_inline & inline::DENTRY != 0 {
            let mut area = node.inode().inline_data(features).to_vec();
            self.mend_area(walk, &mut area, INLINE, dir_level)?;
            if !dots_known_missing {
                self.add_dots(walk, &mut area, true);
            }
            node.inode_mut().inline_data_mut(features).copy_from_slice(&area);
        } else {
            for &(block, addr) in &content.data {
                let mut bytes = walk.overlay.block(addr)?;
                let before = bytes.clone();
                let at = u32::try_from(block).unwrap_or(INLINE - 1);
                self.mend_area(walk, &mut bytes[..], at, dir_level)?;
                if block == 0 && !dots_known_missing {
                    self.add_dots(walk, &mut bytes[..], false);
                }
                if bytes != before {
                    walk.overlay.put(addr, &bytes);
                }
                if DentryView::block(&bytes).used_slots() > 0 {
                    last_used = last_used.max(hash::locate_block(block, dir_level).map(|(level, _)| level));
                }
            }
            for (name, ino, file_type) in std::mem::take(&mut self.misplaced) {
                self.place(walk, &name, ino, file_type, (dir_level, content))?;
            }
        }
        let inode = node.inode_mut();
        if self.dots != [true; 2] && !dots_known_missing {
            // Where there is no room for them, the inode says so, as that of fsck.f2fs does.
            walk.state.act(|| format!("directory {}: is marked as one without `.` and `..`", self.ino));
            inode.i_inline |= inline::DOTS;
        }
        inode.i_links = (2 + self.subdirectories).into();
        if let Some(level) = last_used.filter(|level| *level >= inode.i_current_depth.get()) {
            inode.i_current_depth = (level + 1).into();
        }
        Ok(())
    }

    fn mend_area(
        &mut self,
        walk: &mut Walk<'_>,
        area: &mut [u8],
        block: u32,
        dir_level: u8,
    ) -> Result<(), RepairError> {
        let mut slot = 0;
        while slot < view(area, block).slots() {
            if !lsb::test(area, slot) {
                slot += 1;
                continue;
            }
            let verdict = self.verdict(walk, area, block, slot, dir_level)?;
            // Slots behind an entry whose name is wrong may be other entries.
            let sound = view(area, block).entry(slot).ok().flatten();
            let sound = sound.filter(|entry| entry.is_dot() || hash::dentry_hash(entry.name) == entry.hash);
            let length = sound.map_or(1, |entry| entry.slots());
            match verdict {
                Verdict::Keep => {}
                Verdict::Remove(why) => {
                    walk.state.act(|| {
                        let named = view(area, block).entry(slot).ok().flatten();
                        let name = named.map_or_else(String::new, |entry| format!(" `{}`", entry.name.escape_ascii()));
                        format!("directory {}: the entry{name} in slot {slot} is removed: {why}", self.ino)
                    });
                    clear(area, slot, length);
                }
                Verdict::Replace(name, ino, file_type) => {
                    walk.state.act(|| {
                        let name = name.escape_ascii();
                        format!("directory {}: the entry in slot {slot} is `{name}`, inode {ino}", self.ino)
                    });
                    clear(area, slot, length);
                    let put = view_mut(area, block).insert(slot, &name, hash::dentry_hash(&name), ino, file_type);
                    if !put {
                        // Something else stands where the name would go on: it is treated as the kind that it is. The
                        // inode is found again as one without a name.
                        walk.state.act(|| format!("directory {}: slot {slot} has no room for it", self.ino));
                        self.names.remove(&name);
                        if !matches!(&name[..], b"." | b"..") {
                            walk.state.misplaced(ino);
                            self.subdirectories -= u32::from(file_type == FileType::Directory);
                        }
                    }
                }
            }
            slot += view(area, block).entry(slot).ok().flatten().map_or(1, |entry| entry.slots());
        }
        Ok(())
    }

    /// Looks at one entry, and takes the inode that it names.
    fn verdict(
        &mut self,
        walk: &mut Walk<'_>,
        area: &[u8],
        block: u32,
        slot: usize,
        dir_level: u8,
    ) -> Result<Verdict, RepairError> {
        let entries = view(area, block);
        let Some(raw) = entries.raw(slot) else { return Ok(Verdict::Remove("it is none")) };
        let by_number = Nid::from(raw.ino);
        let stored = raw.hash_code.get();
        let (mut name, whole) = match entries.entry(slot) {
            Ok(Some(entry)) => {
                let marked = (slot..slot + entry.slots()).all(|slot| entries.is_used(slot));
                (Some(entry.name.to_vec()), marked)
            }
            _ => (None, false),
        };
        if let Some(dot @ (b"." | b"..")) = name.as_deref() {
            if block != INLINE && !in_place(block, 0, dir_level) {
                return Ok(Verdict::Remove("it stands in the wrong bucket"));
            }
            return Ok(self.dot(dot.len() - 1, by_number, raw.file_type, whole && stored == 0));
        }
        if self.is_orphan {
            return Ok(Verdict::Remove("the directory was unlinked"));
        }
        let turned = name.as_deref().and_then(|name| walk.state.turned(self.ino, name));
        let ino = turned.unwrap_or(by_number);
        let reference = Reference { holder: self.ino, slot: Slot::Entry(block, slot as u32) };
        if turned.is_none() && walk.state.is_cut(reference) {
            walk.state.dangles(self.ino, name.as_deref());
            return Ok(Verdict::Remove("another entry names the directory"));
        }
        let Some(mut inode) = walk.peek(ino)? else {
            walk.state.dangles(self.ino, name.as_deref());
            return Ok(Verdict::Remove("there is no such inode"));
        };
        let by_entry = FileType::from_number(raw.file_type).unwrap_or(FileType::Unknown);
        walk.settle_kind(self.ino, ino, by_entry, &mut inode)?;
        // The inode remembers its first name.
        let remembered = (Nid::from(inode.inode().i_pino) == self.ino).then(|| own_name(&inode)).flatten();
        let bad = |name: &[u8]| check_name(name).is_err();
        let wrong_hash = name.as_deref().is_none_or(|name| hash::dentry_hash(name) != stored);
        if (name.as_deref().is_none_or(bad) || wrong_hash)
            && let Some(own) =
                remembered.filter(|own| hash::dentry_hash(own) == stored || name.as_deref().is_none_or(bad))
        {
            name = Some(own);
        }
        let Some(name) = name.filter(|name| !bad(name)) else {
            return Ok(Verdict::Remove("its name cannot be one"));
        };
        if !self.names.insert(name.clone()) {
            return Ok(Verdict::Remove("the directory has this name already"));
        }
        let by_mode = FileType::from_mode(inode.inode().i_mode.get());
        let file_type = if by_mode == FileType::Unknown { by_entry } else { by_mode };
        if file_type == FileType::Unknown {
            return Ok(Verdict::Remove("neither the entry nor the inode says what it is"));
        }
        if !self.take(walk, (ino, &name), file_type, reference, &inode)? {
            self.names.remove(&name);
            walk.state.dangles(self.ino, Some(&name));
            return Ok(Verdict::Remove("the inode belongs elsewhere"));
        }
        if by_entry != file_type {
            walk.state.note_type(self.ino, &name, by_entry);
        }
        if block != INLINE && !in_place(block, hash::dentry_hash(&name), dir_level) {
            self.misplaced.push((name, ino, file_type));
            return Ok(Verdict::Remove("it stands in the wrong bucket"));
        }
        let same = view(area, block).entry(slot).ok().flatten().is_some_and(|entry| entry.name == name);
        let right = same && whole && !wrong_hash && by_entry == file_type && by_number == ino;
        Ok(if right { Verdict::Keep } else { Verdict::Replace(name, ino, file_type) })
    }

    fn dot(&mut self, up: usize, ino: Nid, file_type: u8, whole: bool) -> Verdict {
        if self.dots[up] {
            return Verdict::Remove("a second one of . and ..");
        }
        self.dots[up] = true;
        let expected = if up == 0 || self.is_root { self.ino } else { self.parent };
        if ino == expected && file_type == FileType::Directory.number() && whole {
            return Verdict::Keep;
        }
        let name: &[u8] = if up == 0 { b"." } else { b".." };
        Verdict::Replace(name.to_vec(), expected, FileType::Directory)
    }

    fn add_dots(&mut self, walk: &mut Walk<'_>, area: &mut [u8], inline: bool) {
        let block = if inline { INLINE } else { 0 };
        for (up, name) in [&b"."[..], b".."].into_iter().enumerate() {
            if self.dots[up] {
                continue;
            }
            let target = if up == 0 || self.is_root { self.ino } else { self.parent };
            let mut entries = view_mut(area, block);
            let Some(slot) = entries.as_view().room_for(1) else { continue };
            if entries.insert(slot, name, 0, target, FileType::Directory) {
                walk.state.act(|| format!("directory {}: has `{}` again", self.ino, name.escape_ascii()));
                self.dots[up] = true;
            }
        }
    }

    /// Links an inode to this directory; tells whether it may be.
    fn take(
        &mut self,
        walk: &mut Walk<'_>,
        (ino, name): (Nid, &[u8]),
        file_type: FileType,
        reference: Reference,
        inode: &NodeBlock,
    ) -> Result<bool, RepairError> {
        let special =
            ino == walk.tables.geometry.root_ino || walk.tables.sb.qf_ino.iter().any(|raw| Nid::from(*raw) == ino);
        if special {
            return Ok(false);
        }
        let is_dir = file_type == FileType::Directory;
        if walk.state.inodes.contains_key(&ino.0) {
            if walk.state.orphans.contains(&ino) {
                walk.state.name_orphan();
            }
            if !is_dir {
                walk.state.inodes.entry(ino.0).and_modify(|links| *links += 1);
                return Ok(true);
            }
            // A directory has one name: the one that it says itself. The other entry is found and cut there.
            let said = walk.state.said_parent(ino).unwrap_or(inode.inode().i_pino.into());
            let is_named_here = walk.state.directories.get(&ino.0) == Some(&self.ino);
            if said == self.ino && (!is_named_here || own_name(inode).as_deref() == Some(name)) {
                if let Some(other) = walk.state.entry_of(ino) {
                    walk.state.cut(other);
                }
            } else {
                walk.state.refuse(reference);
            }
            return Ok(false);
        }
        let role = Role::Linked { parent: self.ino, file_type };
        if !walk.enter(ino, role)? {
            return Ok(false);
        }
        walk.state.inodes.insert(ino.0, 1);
        if is_dir {
            self.subdirectories += 1;
            walk.state.name_directory(ino, self.ino, reference);
        }
        Ok(true)
    }

    /// Puts an entry where a lookup goes.
    fn place(
        &mut self,
        walk: &mut Walk<'_>,
        name: &[u8],
        ino: Nid,
        file_type: FileType,
        (dir_level, content): (u8, &Content),
    ) -> Result<(), RepairError> {
        let wanted = hash::dentry_hash(name);
        for &(block, addr) in &content.data {
            let at = u32::try_from(block).unwrap_or(INLINE - 1);
            if !in_place(at, wanted, dir_level) {
                continue;
            }
            let mut bytes = walk.overlay.block(addr)?;
            let mut entries = DentryViewMut::block(&mut bytes);
            let Some(slot) = entries.as_view().room_for(f2fs_format::dentry::slots_for(name.len())) else { continue };
            if entries.insert(slot, name, wanted, ino, file_type) {
                walk.overlay.put(addr, &bytes);
                let name = name.escape_ascii();
                walk.state.act(|| format!("directory {}: `{name}` stands in block {block} now", self.ino));
                return Ok(());
            }
        }
        // No block of its bucket: the inode is found again as one without a name.
        walk.state.misplaced(ino);
        self.subdirectories -= u32::from(file_type == FileType::Directory);
        Ok(())
    }
}

/// The level of hashing by which most entries stand where they are looked for: the present one, unless another is
/// better.
fn best_level(walk: &Walk<'_>, content: &Content, present: u8) -> Result<u8, RepairError> {
    let mut misfits = [0u32; MAX_DIR_LEVEL as usize + 1];
    let mut wrong = 0;
    for &(block, addr) in &content.data {
        let at = u32::try_from(block).unwrap_or(INLINE - 1);
        let bytes = walk.overlay.block(addr)?;
        for entry in DentryView::block(&bytes).entries().flatten().filter(|entry| !entry.is_dot()) {
            wrong += u32::from(!in_place(at, entry.hash, present));
            for (level, misfits) in (0..).zip(&mut misfits) {
                *misfits += u32::from(!in_place(at, entry.hash, level));
            }
        }
    }
    let best = (0..).zip(misfits).min_by_key(|(_, misfits)| *misfits);
    Ok(best.filter(|(_, misfits)| *misfits < wrong).map_or(present, |(level, _)| level))
}

/// Whether a name with this hash may stand in a file block.
fn in_place(block: u32, wanted: u32, dir_level: u8) -> bool {
    hash::locate_block(block.into(), dir_level)
        .is_some_and(|(level, bucket)| wanted % hash::buckets(level, dir_level) == bucket)
}

/// The name that an inode was made with.
pub(super) fn own_name(node: &NodeBlock) -> Option<Vec<u8>> {
    let inode = node.inode();
    let len = usize::try_from(inode.i_namelen.get()).ok()?;
    let name = inode.i_name.get(..len)?;
    check_name(name).is_ok().then(|| name.to_vec())
}

fn view(area: &[u8], block: u32) -> DentryView<'_> {
    match area.first_chunk() {
        Some(bytes) if block != INLINE => DentryView::block(bytes),
        _ => DentryView::inline(area),
    }
}

fn view_mut(area: &mut [u8], block: u32) -> DentryViewMut<'_> {
    if block != INLINE && area.len() == f2fs_format::BLOCK_SIZE {
        if let Some(bytes) = area.first_chunk_mut() {
            return DentryViewMut::block(bytes);
        }
        unreachable!("as long as a block")
    }
    DentryViewMut::inline(area)
}

/// Frees slots.
fn clear(area: &mut [u8], slot: usize, count: usize) {
    for index in slot..slot + count {
        lsb::clear(area, index);
    }
}
