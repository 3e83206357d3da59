//! Reading and changing the entries of a dentry block or an inline area.

use zerocopy::IntoBytes;

use super::{DentryLayout, DirEntry, ENTRY_SIZE, FileType, SLOT_LEN, slots_for};
use crate::bits::lsb;
use crate::inode::NAME_LEN;
use crate::{Corruption, Nid, RawBlock};

/// One entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its first slot.
    pub slot: usize,
    /// The stored hash.
    pub hash: u32,
    /// The inode.
    pub ino: Nid,
    /// The stored type number; see [`FileType::from_number`].
    pub file_type: u8,
    /// The name, 1 to 255 bytes.
    pub name: &'a [u8],
}

impl Entry<'_> {
    /// Slots that it takes.
    #[must_use]
    pub fn slots(&self) -> usize {
        slots_for(self.name.len())
    }

    /// Whether it is `.` or `..`.
    #[must_use]
    pub fn is_dot(&self) -> bool {
        self.name == b"." || self.name == b".."
    }
}

/// The entries of a dentry block or inline area, to read.
#[derive(Clone, Copy, Debug)]
pub struct DentryView<'a> {
    layout: DentryLayout,
    bytes: &'a [u8],
}

impl<'a> DentryView<'a> {
    /// A dentry block.
    #[must_use]
    pub fn block(block: &'a RawBlock) -> DentryView<'a> {
        DentryView { layout: DentryLayout::BLOCK, bytes: block }
    }

    /// The inline area of an inode ([`Inode::inline_data`](crate::inode::Inode::inline_data)). One that is too small
    /// has no slots.
    #[must_use]
    pub fn inline(area: &'a [u8]) -> DentryView<'a> {
        DentryView { layout: DentryLayout::of_size(area.len()), bytes: area }
    }

    /// How many slots there are.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.layout.slots
    }

    /// Whether a slot is marked in the bitmap.
    #[must_use]
    pub fn is_used(&self, slot: usize) -> bool {
        slot < self.layout.slots && lsb::test(self.bytes, slot)
    }

    /// How many slots are marked in the bitmap.
    #[must_use]
    pub fn used_slots(&self) -> usize {
        (0..self.layout.slots).filter(|slot| lsb::test(self.bytes, *slot)).count()
    }

    /// Whether any slot is marked in the bitmap.
    #[inline]
    #[must_use]
    pub fn is_used_at_all(&self) -> bool {
        // Mostly one of the first eight is: that is seen at once.
        let among_first = self.layout.slots >= 8 && self.bytes.first().is_some_and(|marks| *marks != 0);
        among_first || lsb::find(self.bytes, 0, self.layout.slots, true).is_some()
    }

    /// The fixed part of the entry in a slot, whether or not the slot is in use; `None` beyond the last slot.
    #[inline]
    #[must_use]
    pub fn raw(&self, slot: usize) -> Option<DirEntry> {
        if slot >= self.layout.slots {
            return None;
        }
        let at = self.layout.entries_at + slot * ENTRY_SIZE;
        let bytes: &[u8; ENTRY_SIZE] = self.bytes.get(at..)?.first_chunk()?;
        Some(zerocopy::transmute!(*bytes))
    }

    /// The entry that begins in a slot; `None` if the slot is free or does not exist.
    ///
    /// # Errors
    /// [`Corruption::Dentry`] if its name is empty, too long, or runs beyond the last slot.
    #[inline]
    pub fn entry(&self, slot: usize) -> Result<Option<Entry<'a>>, Corruption> {
        let Some(raw) = self.raw(slot).filter(|_| self.is_used(slot)) else {
            return Ok(None);
        };
        let len = usize::from(raw.name_len.get());
        let max = NAME_LEN.min((self.layout.slots - slot) * SLOT_LEN);
        if len == 0 || len > max {
            let (found, max) = (len as u64, max as u64);
            return Err(Corruption::Dentry { slot, what: "name_len", found, min: 1, max });
        }
        let at = self.layout.names_at + slot * SLOT_LEN;
        let name = &self.bytes[at..at + len];
        let (hash, ino) = (raw.hash_code.get(), raw.ino.into());
        Ok(Some(Entry { slot, hash, ino, file_type: raw.file_type, name }))
    }

    /// All entries, in the order of their slots. A corrupt one is an error by itself: the next one is looked for behind
    /// it. Slots in use that state no length, behind a corrupt entry, are taken for the rest of its name.
    #[must_use]
    pub fn entries(&self) -> Entries<'a> {
        Entries { view: *self, slot: 0 }
    }

    /// The entry with this hash and name. Corrupt entries are passed over.
    #[must_use]
    pub fn find(&self, hash: u32, name: &[u8]) -> Option<Entry<'a>> {
        // Every look-up runs this for hundreds of entries. Most blocks that it comes by hold no such hash, in slots in
        // use or not: that takes a few instructions for each slot, without a look at lengths and marks.
        let slots = self.layout.slots;
        let (raw, _) = self.bytes.get(self.layout.entries_at..).unwrap_or_default().as_chunks::<ENTRY_SIZE>();
        let hash_of = |entry: &[u8; ENTRY_SIZE]| entry.first_chunk().copied().map_or(0, u32::from_le_bytes);
        // Eight at a time, without a branch for each.
        if !raw.get(..slots)?.chunks(8).any(|some| some.iter().fold(false, |is, entry| is | (hash_of(entry) == hash))) {
            return None;
        }
        let mut slot = 0;
        while let Some(at) = lsb::find(self.bytes, slot, slots, true) {
            let Some(entry @ [_, _, _, _, _, _, _, _, len0, len1, _]) = raw.get(at) else { break };
            let len = usize::from(u16::from_le_bytes([*len0, *len1]));
            if len == 0 || len > NAME_LEN || at + slots_for(len) > slots {
                slot = at + 1;
                continue;
            }
            if hash_of(entry) == hash
                && let Ok(Some(entry)) = self.entry(at)
                && entry.name == name
            {
                return Some(entry);
            }
            slot = at + slots_for(len);
        }
        None
    }

    /// The slot where the next entry may begin, behind a corrupt one.
    fn behind_corrupt(&self, slot: usize) -> usize {
        let stateless =
            |slot: &usize| self.is_used(*slot) && self.raw(*slot).is_some_and(|raw| raw.name_len.get() == 0);
        (slot + 1..).find(|slot| !stateless(slot)).unwrap_or(self.layout.slots)
    }

    /// The first of `slots` free slots in a row (`f2fs_room_for_filename`).
    #[must_use]
    pub fn room_for(&self, slots: usize) -> Option<usize> {
        let mut start = 0;
        loop {
            start = lsb::find(self.bytes, start, self.layout.slots, false)?;
            let end = lsb::find(self.bytes, start, self.layout.slots, true).unwrap_or(self.layout.slots);
            if end - start >= slots {
                return Some(start);
            }
            start = end;
        }
    }

    /// Whether there is no entry besides `.` and `..`. True of a block without any entry.
    ///
    /// # Errors
    /// [`Corruption::Dentry`] if an entry is corrupt.
    pub fn is_empty_dir(&self) -> Result<bool, Corruption> {
        for entry in self.entries() {
            if !entry?.is_dot() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Iterator over the entries of a [`DentryView`].
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    view: DentryView<'a>,
    slot: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Corruption>;

    fn next(&mut self) -> Option<Self::Item> {
        let slots = self.view.layout.slots;
        self.slot = lsb::find(self.view.bytes, self.slot.min(slots), slots, true)?;
        let entry = self.view.entry(self.slot).transpose()?;
        self.slot = match &entry {
            Ok(entry) => entry.slot + entry.slots(),
            Err(_) => self.view.behind_corrupt(self.slot),
        };
        Some(entry)
    }
}

impl core::iter::FusedIterator for Entries<'_> {}

/// The entries of a dentry block or inline area, to change.
#[derive(Debug)]
pub struct DentryViewMut<'a> {
    layout: DentryLayout,
    bytes: &'a mut [u8],
}

impl<'a> DentryViewMut<'a> {
    /// A dentry block.
    #[must_use]
    pub fn block(block: &'a mut RawBlock) -> DentryViewMut<'a> {
        DentryViewMut { layout: DentryLayout::BLOCK, bytes: block }
    }

    /// The inline area of an inode.
    #[must_use]
    pub fn inline(area: &'a mut [u8]) -> DentryViewMut<'a> {
        DentryViewMut { layout: DentryLayout::of_size(area.len()), bytes: area }
    }

    /// The same, to read.
    #[must_use]
    pub fn as_view(&self) -> DentryView<'_> {
        DentryView { layout: self.layout, bytes: self.bytes }
    }

    fn put(&mut self, slot: usize, raw: &DirEntry) {
        let at = self.layout.entries_at + slot * ENTRY_SIZE;
        self.bytes[at..at + ENTRY_SIZE].copy_from_slice(raw.as_bytes());
    }

    /// Puts an entry into free slots from `slot` on (`f2fs_update_dentry`). Tells whether it did: not if the name is
    /// empty or too long, runs beyond the last slot, or a slot is taken.
    #[must_use]
    pub fn insert(&mut self, slot: usize, name: &[u8], hash: u32, ino: Nid, file_type: FileType) -> bool {
        let count = slots_for(name.len());
        let room = self.layout.slots.saturating_sub(slot);
        let fits = !name.is_empty() && name.len() <= NAME_LEN && count <= room;
        if !fits || (slot..slot + count).any(|slot| lsb::test(self.bytes, slot)) {
            return false;
        }
        let raw = DirEntry {
            hash_code: hash.into(),
            ino: ino.into(),
            name_len: (name.len() as u16).into(),
            file_type: file_type.number(),
        };
        self.put(slot, &raw);
        for index in slot..slot + count {
            lsb::set(self.bytes, index);
            if index > slot {
                // A reader that starts in the middle of the name must not take old bytes for an entry.
                self.put(index, &DirEntry::default());
            }
        }
        let at = self.layout.names_at + slot * SLOT_LEN;
        let area = &mut self.bytes[at..at + count * SLOT_LEN];
        area.fill(0);
        area[..name.len()].copy_from_slice(name);
        true
    }

    /// Frees the slots of the entry that begins in `slot`; tells its inode, or `None` if the slot was free.
    ///
    /// # Errors
    /// [`Corruption::Dentry`] if the entry is corrupt; then nothing is changed.
    pub fn remove(&mut self, slot: usize) -> Result<Option<Nid>, Corruption> {
        let Some(entry) = self.as_view().entry(slot)? else {
            return Ok(None);
        };
        let (ino, count) = (entry.ino, entry.slots());
        for index in slot..slot + count {
            lsb::clear(self.bytes, index);
        }
        Ok(Some(ino))
    }

    /// Makes the entry that begins in `slot` name another inode; tells whether there is such an entry.
    ///
    /// # Errors
    /// [`Corruption::Dentry`] if the entry is corrupt; then nothing is changed.
    pub fn set_target(&mut self, slot: usize, ino: Nid, file_type: FileType) -> Result<bool, Corruption> {
        if self.as_view().entry(slot)?.is_none() {
            return Ok(false);
        }
        let Some(mut raw) = self.as_view().raw(slot) else {
            return Ok(false);
        };
        raw.ino = ino.into();
        raw.file_type = file_type.number();
        self.put(slot, &raw);
        Ok(true)
    }

    /// Clears everything and enters `.` and `..`: the first block, or the inline area, of a new directory. Tells
    /// whether there was room, which only fails in an inline area of fewer than two slots.
    #[must_use]
    pub fn make_empty(&mut self, own: Nid, parent: Nid) -> bool {
        self.bytes.fill(0);
        self.insert(0, b".", 0, own, FileType::Directory) && self.insert(1, b"..", 0, parent, FileType::Directory)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    use super::*;
    use crate::dentry::DentryBlock;
    use crate::hash::dentry_hash;

    fn names<'a>(view: &DentryView<'a>) -> Vec<(usize, &'a [u8], u32)> {
        view.entries().map(|entry| entry.unwrap()).map(|entry| (entry.slot, entry.name, entry.ino.0)).collect()
    }

    #[test]
    fn insert_find_remove() {
        let mut block = [0u8; 4096];
        let mut view = DentryViewMut::block(&mut block);
        assert!(view.make_empty(Nid(9), Nid(3)));
        let long = [b'n'; 255];
        for name in [&b"eight888"[..], b"nine99999", &long, b"z"] {
            let slot = view.as_view().room_for(slots_for(name.len())).unwrap();
            let ino = Nid(name.len() as u32);
            assert!(view.insert(slot, name, dentry_hash(name), ino, FileType::Regular));
            assert!(!view.insert(slot, b"again", 1, ino, FileType::Regular), "taken");
        }
        let read = view.as_view();
        let expected: Vec<(usize, &[u8], u32)> = vec![
            (0, b".", 9),
            (1, b"..", 3),
            (2, b"eight888", 8),
            (3, b"nine99999", 9),
            (5, &long, 255),
            (37, b"z", 1),
        ];
        assert_eq!(names(&read), expected);
        assert_eq!(read.used_slots(), 38);
        assert!(read.is_used_at_all());
        let found = read.find(dentry_hash(&long), &long).unwrap();
        assert_eq!((found.slot, found.file_type, found.slots()), (5, 1, 32));
        assert_eq!(read.find(1, &long), None, "another hash");
        assert!(!read.is_empty_dir().unwrap());

        assert_eq!(view.remove(3), Ok(Some(Nid(9))));
        assert_eq!(view.remove(3), Ok(None));
        assert_eq!((view.as_view().room_for(2), view.as_view().room_for(3)), (Some(3), Some(38)));
        assert_eq!(view.as_view().room_for(214 - 38 + 1), None);
        assert_eq!(view.set_target(1, Nid(77), FileType::Directory), Ok(true));
        assert_eq!(view.set_target(3, Nid(77), FileType::Directory), Ok(false));
        for slot in [2, 5, 37] {
            assert!(view.remove(slot).unwrap().is_some());
        }
        assert!(view.as_view().is_empty_dir().unwrap());
        assert_eq!(names(&view.as_view())[1], (1, &b".."[..], 77));
    }

    #[test]
    fn the_block_type_agrees_with_the_view() {
        let mut block = DentryBlock::ZERO;
        assert!(DentryViewMut::block(block.as_block_mut()).make_empty(Nid(3), Nid(3)));
        assert!(DentryViewMut::block(block.as_block_mut()).insert(213, b"last", 7, Nid(5), FileType::Fifo));
        assert_eq!((block.dentry_bitmap[0], block.dentry_bitmap[26]), (3, 0x20));
        assert_eq!(block.dentry[213].ino.get(), 5);
        assert_eq!(&block.filename[213], b"last\0\0\0\0");
        let mut view = DentryViewMut::block(block.as_block_mut());
        assert!(!view.insert(212, b"runs past the end", 7, Nid(5), FileType::Fifo));
        assert!(!view.insert(5000, b"x", 7, Nid(5), FileType::Fifo));
        assert!(!view.insert(5, b"", 7, Nid(5), FileType::Fifo));
    }

    #[test]
    fn any_mark_of_a_slot_is_seen_and_no_other() {
        for slot in 0..216 {
            let mut block = DentryBlock::ZERO;
            lsb::set(block.as_block_mut(), slot);
            // There are 214 slots in 27 bytes of marks.
            assert_eq!(DentryView::block(block.as_block()).is_used_at_all(), slot < 214, "{slot}");
        }
    }

    #[test]
    fn corrupt_entries_are_named() {
        let mut block = DentryBlock::ZERO;
        for slot in [0, 210] {
            lsb::set(block.as_block_mut(), slot);
        }
        let error = DentryView::block(block.as_block()).entry(0).unwrap_err();
        assert_eq!(error, Corruption::Dentry { slot: 0, what: "name_len", found: 0, min: 1, max: 255 });
        block.dentry[0].name_len = 300.into();
        block.dentry[210].name_len = 33.into();
        let view = DentryView::block(block.as_block());
        assert_eq!(view.entries().filter(Result::is_err).count(), 2, "each is an error by itself");
        assert!(view.find(0, b"x").is_none() && view.is_empty_dir().is_err());
        let error = view.entry(210).unwrap_err();
        assert_eq!(error, Corruption::Dentry { slot: 210, what: "name_len", found: 33, min: 1, max: 32 });
        assert_eq!((view.entry(214), view.entry(usize::MAX)), (Ok(None), Ok(None)));
        assert!(!DentryView::block(&[0; 4096]).is_used_at_all());
        assert!(DentryViewMut::block(block.as_block_mut()).remove(210).is_err());
    }

    /// Entries beside a corrupt one are found, whatever length it states.
    #[test]
    fn corrupt_entries_hide_no_others() {
        let long = [b'n'; 40];
        for len in [0, 256, 300, u16::MAX] {
            let mut block = DentryBlock::ZERO;
            let mut view = DentryViewMut::block(block.as_block_mut());
            for (slot, name) in [(0, &b"front"[..]), (1, &long), (6, b"behind"), (200, b"last")] {
                assert!(view.insert(slot, name, dentry_hash(name), Nid(7), FileType::Regular));
            }
            block.dentry[1].name_len = len.into();
            let view = DentryView::block(block.as_block());
            let seen: Vec<_> = view.entries().map(|entry| entry.map(|entry| entry.slot)).collect();
            assert!(matches!(seen[..], [Ok(0), Err(_), Ok(6), Ok(200)]), "{len}: {seen:?}");
            for name in [&b"front"[..], b"behind", b"last"] {
                assert!(view.find(dentry_hash(name), name).is_some(), "{len}");
            }
            assert!(view.find(dentry_hash(&long), &long).is_none());
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic_and_always_end(bytes in prop::collection::vec(any::<u8>(), 0..4096), slot in 0..300usize) {
            let mut bytes = bytes;
            let view = DentryView::inline(&bytes);
            prop_assert!(view.entries().count() <= view.slots());
            let _ = (view.find(0, b"a"), view.is_empty_dir(), view.entry(slot), view.room_for(slot), view.used_slots());
            let mut view = DentryViewMut::inline(&mut bytes);
            let _ = view.remove(slot);
            let _ = view.set_target(slot, Nid(3), FileType::Regular);
            if view.insert(slot, b"some name", 5, Nid(4), FileType::Regular) {
                prop_assert_eq!(view.as_view().entry(slot).unwrap().unwrap().name, b"some name");
            }
        }

        #[test]
        fn a_directory_holds_what_was_put_in(size in 40..3600usize, ops in prop::collection::vec((any::<bool>(), 0..12u8, 1..60usize), 1..80)) {
            let mut area = vec![0xa5; size];
            let mut view = DentryViewMut::inline(&mut area);
            prop_assert!(view.make_empty(Nid(5), Nid(3)));
            let mut model: Vec<Vec<u8>> = Vec::new();
            for (insert, letter, len) in ops {
                let name = vec![b'a' + letter; len];
                let hash = dentry_hash(&name);
                let found = view.as_view().find(hash, &name).map(|entry| entry.slot);
                prop_assert_eq!(found.is_some(), model.contains(&name));
                match (insert, found) {
                    (true, None) => {
                        if let Some(slot) = view.as_view().room_for(slots_for(len)) {
                            prop_assert!(view.insert(slot, &name, hash, Nid(len as u32), FileType::Regular));
                            model.push(name);
                        }
                    }
                    (false, Some(slot)) => {
                        prop_assert_eq!(view.remove(slot), Ok(Some(Nid(len as u32))));
                        model.retain(|other| *other != name);
                    }
                    _ => {}
                }
            }
            let mut listed: Vec<Vec<u8>> = names(&view.as_view())[2..].iter().map(|entry| entry.1.to_vec()).collect();
            listed.sort();
            model.sort();
            prop_assert_eq!(listed, model);
        }
    }
}
