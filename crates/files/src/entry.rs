//! Entries of directories whose names no file system hands out.
//!
//! The contents of a volume are not trusted: a name with a slash, handed on as a component of a path, would lead
//! elsewhere. A listing of a directory gives such an entry as an error of its own, and goes on behind it.

use f2fs_format::dentry::{DirEntry, Entry, FileType, check_name};
use f2fs_format::inode::NAME_LEN;
use f2fs_format::{FormatError, Nid};
use thiserror::Error;

/// An entry that stands on the volume with an invalid name: it is empty, longer than 255 bytes or than the slots that
/// there are, holds a slash or a zero byte, or is `.` or `..` for something else than this directory or a directory
/// above. The volume is damaged, or was made on purpose; `f2fs check` finds such entries, and a repair mends or removes
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("directory {dir}, {}slot {slot}: inode {ino} has an invalid name of {len} bytes: {why}", block_text(*.block))]
#[non_exhaustive]
pub struct BadEntry {
    /// The directory.
    pub dir: Nid,
    /// The block of the directory; `None`: its inode.
    pub block: Option<u64>,
    /// The slot in the block or the inode.
    pub slot: usize,
    /// The inode that the entry names.
    pub ino: Nid,
    /// The length that the entry states, in bytes.
    pub len: usize,
    /// The fault of the name.
    pub why: &'static str,
    /// Where a listing goes on behind this entry, as for [`DirEntry::next`](crate::DirEntry::next).
    pub next: u64,
}

fn block_text(block: Option<u64>) -> String {
    block.map_or_else(String::new, |block| format!("block {block}, "))
}

/// Judges the names of the entries of one block or inode, in their order.
#[derive(Debug)]
pub(crate) struct Judge {
    pub(crate) dir: Nid,
    pub(crate) block: Option<u64>,
    /// Position of the first slot.
    pub(crate) base: u64,
    /// Whether `.`, and `..`, came by.
    dots: [bool; 2],
}

impl Judge {
    pub(crate) fn new(dir: Nid, block: Option<u64>, base: u64) -> Judge {
        Judge { dir, block, base, dots: [false; 2] }
    }

    /// The fault of an entry's name, if it has one. `shown` is the name as it would be handed out.
    pub(crate) fn look(&mut self, entry: &Entry<'_>, shown: &[u8]) -> Option<BadEntry> {
        let why = if entry.is_dot() {
            let up = entry.name.len() - 1;
            let again = std::mem::replace(&mut self.dots[up], true);
            let right = entry.file_type == FileType::Directory.number() && (up == 1 || entry.ino == self.dir);
            (again || !right).then_some("reserved")?
        } else {
            match check_name(shown) {
                Err(FormatError::Name { why, .. }) => why,
                Err(_) => "not a name",
                Ok(()) => return None,
            }
        };
        let next = self.base + (entry.slot + entry.slots()) as u64;
        let (dir, block) = (self.dir, self.block);
        Some(BadEntry { dir, block, slot: entry.slot, ino: entry.ino, len: entry.name.len(), why, next })
    }

    /// An entry whose length is wrong.
    pub(crate) fn corrupt(&self, slot: usize, raw: &DirEntry) -> BadEntry {
        let len = usize::from(raw.name_len.get());
        let why = match len {
            0 => "empty",
            1..=NAME_LEN => "longer than its slots",
            _ => "longer than 255 bytes",
        };
        let (dir, block, next) = (self.dir, self.block, self.base + slot as u64 + 1);
        BadEntry { dir, block, slot, ino: raw.ino.into(), len, why, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: u8 = FileType::Regular.number();
    const DIRECTORY: u8 = FileType::Directory.number();

    fn entry(name: &[u8], ino: u32, file_type: u8) -> Entry<'_> {
        Entry { slot: 5, hash: 0, ino: Nid(ino), file_type, name }
    }

    fn why(judge: &mut Judge, entry: &Entry<'_>) -> Option<&'static str> {
        judge.look(entry, entry.name).map(|bad| bad.why)
    }

    /// `.` and `..` are names of directories, once each; `.` is this one's.
    #[test]
    fn reserved_names_have_their_place() {
        for (entry, bad) in [
            (entry(b".", 7, DIRECTORY), None),
            (entry(b".", 8, DIRECTORY), Some("reserved")),
            (entry(b".", 7, FILE), Some("reserved")),
            (entry(b".", 8, FILE), Some("reserved")),
            (entry(b"..", 7, DIRECTORY), None),
            (entry(b"..", 8, DIRECTORY), None),
            (entry(b"..", 8, FILE), Some("reserved")),
        ] {
            assert_eq!(why(&mut Judge::new(Nid(7), None, 0), &entry), bad, "{entry:?}");
        }
        let mut judge = Judge::new(Nid(7), None, 0);
        let (here, up) = (entry(b".", 7, DIRECTORY), entry(b"..", 3, DIRECTORY));
        assert_eq!(
            [&here, &up, &here, &up].map(|entry| why(&mut judge, entry)),
            [None, None, Some("reserved"), Some("reserved")]
        );
    }

    /// An entry with such a name says where it stands, and where the next one does.
    #[test]
    fn a_bad_entry_says_where_it_stands() {
        let mut judge = Judge::new(Nid(7), Some(3), 1000);
        assert_eq!(judge.look(&entry(b"name", 9, FILE), b"name"), None);
        let bad = judge.look(&entry(b"a/b and more than a slot", 9, FILE), b"a/b and more than a slot").unwrap();
        assert_eq!((bad.dir, bad.block, bad.slot, bad.ino, bad.len), (Nid(7), Some(3), 5, Nid(9), 24));
        assert_eq!(bad.next, 1000 + 5 + 3);
        assert!(bad.to_string().contains("directory 7, block 3, slot 5"), "{bad}");
        let raw = |len: u16| DirEntry { name_len: len.into(), ino: 9.into(), ..DirEntry::default() };
        for (len, why) in
            [(0, "empty"), (1, "longer than its slots"), (255, "longer than its slots"), (256, "longer than 255 bytes")]
        {
            let bad = Judge::new(Nid(7), None, 10).corrupt(2, &raw(len));
            assert_eq!((bad.why, bad.slot, bad.next, bad.ino, bad.len), (why, 2, 13, Nid(9), len.into()));
            assert!(bad.to_string().contains("directory 7, slot 2"), "{bad}");
        }
    }
}
