//! The entries of one directory.

use f2fs_format::dentry::{DentryView, Entry, FileType};
use f2fs_format::inode::{advise, flags, inline};
use f2fs_format::{BlockAddr, Corruption, Nid, encryption, hash};

use super::error::CheckError;
use super::finding::{FindingKind, Place, Problem};
use super::inode::InodeView;
use super::names::{NameAt, Names};
use super::walk::{Role, Task};

/// Dentry blocks that are read together.
const BATCH: usize = 128;

/// The state of a directory while its entries come by.
pub(super) struct Entries<'v, 's, 'a> {
    view: &'v InodeView<'s, 'a>,
    names: Names,
    subdirectories: u64,
    /// Entries named `.`, and `..`.
    dots: [u64; 2],
    children: Vec<Task>,
}

impl<'v, 's, 'a> Entries<'v, 's, 'a> {
    pub(super) fn new(view: &'v InodeView<'s, 'a>) -> Entries<'v, 's, 'a> {
        Entries { view, names: Names::default(), subdirectories: 0, dots: [0; 2], children: Vec::new() }
    }

    /// The inline dentry area.
    pub(super) fn add_inline(&mut self, area: &[u8]) {
        self.add(DentryView::inline(area), None);
    }

    /// The directory's blocks: file block and address of each.
    pub(super) fn add_blocks(&mut self, blocks: &[(u64, BlockAddr)]) -> Result<(), CheckError> {
        for part in blocks.chunks(BATCH) {
            let addrs: Vec<BlockAddr> = part.iter().map(|(_, addr)| *addr).collect();
            let read = self.view.subject.source.blocks_behind(&addrs, self.view.ahead)?;
            for ((block, _), content) in part.iter().zip(read.iter()) {
                self.add(DentryView::block(content), Some(u32::try_from(*block).unwrap_or(u32::MAX)));
            }
        }
        Ok(())
    }

    fn add(&mut self, entries: DentryView<'_>, block: Option<u32>) {
        let mut slot = 0;
        while slot < entries.slots() {
            slot += match entries.entry(slot) {
                Ok(None) => 1,
                Ok(Some(entry)) => {
                    self.entry(&entries, block, &entry);
                    entry.slots()
                }
                Err(corruption) => {
                    self.report(FindingKind::Dentry, block, slot, b"", corrupt(corruption));
                    1
                }
            };
        }
    }

    fn report(&self, kind: FindingKind, block: Option<u32>, slot: usize, name: &[u8], problem: Problem) {
        let place = Place::Dentry { dir: self.view.ino, block, slot: slot as u32, name: name.into() };
        self.view.subject.findings.add(kind, place, problem);
    }

    fn entry(&mut self, entries: &DentryView<'_>, block: Option<u32>, entry: &Entry<'_>) {
        let fault = |kind, what, found| {
            self.report(kind, block, entry.slot, entry.name, Problem::Fault { what, found });
        };
        if self.view.role == Role::Orphan {
            // It was empty when it was unlinked, and may have been cut since.
            if entry.is_dot() {
                return self.dot(block, entry);
            }
            return fault(FindingKind::Dentry, "an entry in a directory that was unlinked; ino", entry.ino.0.into());
        }
        if let Some(free) = (entry.slot..entry.slot + entry.slots()).find(|slot| !entries.is_used(*slot)) {
            fault(FindingKind::Dentry, "the name runs over a slot that is not marked", free as u64);
        }
        let encrypted = self.view.inode().i_advise & advise::ENCRYPT != 0 && !entry.is_dot();
        if encrypted {
            if entry.name.len() < encryption::MIN_NAME_LEN {
                fault(FindingKind::Dentry, "an encrypted name that is too short, bytes", entry.name.len() as u64);
            }
        } else if let Some(at) = entry.name.iter().position(|byte| matches!(byte, 0 | b'/')) {
            fault(FindingKind::Dentry, "a slash or a zero byte in the name at", at as u64);
        }
        let expected = self.hash(entry, encrypted);
        if entry.hash != expected {
            let problem = Problem::Bits { what: "hash", expected: expected.into(), found: entry.hash.into() };
            self.report(FindingKind::DentryHash, block, entry.slot, entry.name, problem);
        }
        if let Some(block) = block {
            self.check_position(block, entry, expected);
        }
        if entry.is_dot() {
            return self.dot(block, entry);
        }
        self.names.add(entry.name, NameAt { block, slot: entry.slot as u16 });
        let known = FileType::from_number(entry.file_type).filter(|known| *known != FileType::Unknown);
        let Some(file_type) = known else {
            let problem = Problem::Range { what: "file_type", found: entry.file_type.into(), min: 1, max: 7 };
            return self.report(FindingKind::Dentry, block, entry.slot, entry.name, problem);
        };
        self.subdirectories += u64::from(file_type == FileType::Directory);
        self.child(block, entry, file_type);
    }

    /// The right hash of an entry; the stored one where the right one cannot be told.
    fn hash(&self, entry: &Entry<'_>, encrypted: bool) -> u32 {
        let casefolded = self.view.inode().i_flags.get() & flags::CASEFOLD != 0;
        match (casefolded && !entry.is_dot(), encrypted) {
            (true, true) => entry.hash,
            (true, false) => hash::folded_ascii_hash(entry.name).unwrap_or(entry.hash),
            (false, _) => hash::dentry_hash(entry.name),
        }
    }

    /// The bucket, the level and the block must be where a lookup and a listing go.
    fn check_position(&self, block: u32, entry: &Entry<'_>, expected_hash: u32) {
        let inode = self.view.inode();
        let report = |problem| {
            self.report(FindingKind::DentryPosition, Some(block), entry.slot, entry.name, problem);
        };
        let Some((level, bucket)) = hash::locate_block(block.into(), inode.i_dir_level) else {
            return report(Problem::Fault { what: "in a block beyond the last level", found: block.into() });
        };
        let right = expected_hash % hash::buckets(level, inode.i_dir_level);
        if right != bucket {
            let (expected, found) = (right.into(), bucket.into());
            report(Problem::Mismatch { what: "bucket", expected, found });
        }
        let depth = inode.i_current_depth.get();
        if level >= depth {
            let max = u64::from(depth.saturating_sub(1));
            report(Problem::Range { what: "level, by i_current_depth", found: level.into(), min: 0, max });
        }
        let blocks = inode.i_size.get().div_ceil(4096);
        if u64::from(block) >= blocks {
            let max = blocks.saturating_sub(1);
            report(Problem::Range { what: "block, by i_size", found: block.into(), min: 0, max });
        }
    }

    fn dot(&mut self, block: Option<u32>, entry: &Entry<'_>) {
        let up = entry.name.len() - 1;
        self.dots[up] += 1;
        let ino = self.view.ino;
        let parent = Nid::from(self.view.inode().i_pino);
        let expected = if up == 0 || self.view.role == Role::Root { ino } else { parent };
        let mismatch = |what, expected: u64, found: u64| {
            if expected != found {
                let problem = Problem::Mismatch { what, expected, found };
                self.report(FindingKind::Dots, block, entry.slot, entry.name, problem);
            }
        };
        mismatch("inode", expected.0.into(), entry.ino.0.into());
        mismatch("file_type", FileType::Directory.number().into(), entry.file_type.into());
    }

    /// The inode that an entry names: in use, linked once more, and to be walked if this is the first entry for it.
    fn child(&mut self, block: Option<u32>, entry: &Entry<'_>, file_type: FileType) {
        let (subject, ino) = (self.view.subject, entry.ino);
        let add = |kind, problem| self.report(kind, block, entry.slot, entry.name, problem);
        let (found, min, max) = (u64::from(ino.0), 3, u64::from(subject.nat.len()) - 1);
        if !(min..=max).contains(&found) {
            return add(FindingKind::Dentry, Problem::Range { what: "ino", found, min, max });
        }
        if subject.nat.get(ino).block_addr.get() == 0 {
            return add(FindingKind::Dentry, Problem::Fault { what: "names a free inode", found });
        }
        let linked = subject.link(ino, file_type.number());
        if linked.file_type != file_type.number() {
            let (what, expected) = ("file_type, against another entry for the inode", linked.file_type.into());
            add(FindingKind::FileType, Problem::Mismatch { what, expected, found: file_type.number().into() });
        }
        if subject.take_inode(ino) {
            let role = Role::Linked { file_type: file_type.number(), parent: self.view.ino };
            self.children.push(Task { ino, role });
        } else if linked.first {
            add(FindingKind::Parent, Problem::Fault { what: "names the root, an orphan or a quota file", found });
        } else if file_type == FileType::Directory {
            add(FindingKind::Parent, Problem::Fault { what: "a second entry for a directory", found });
        }
    }

    /// All entries were seen: what the directory as a whole must be. Returns the inodes to be walked next.
    pub(super) fn finish(mut self) -> Result<Vec<Task>, CheckError> {
        let view = self.view;
        let inode = view.inode();
        let (what, expected) = ("i_links", 2 + self.subdirectories);
        view.subject.findings.expect(FindingKind::Links, &view.place, what, expected, inode.i_links.get().into());
        if !view.has_inline(inline::DOTS) {
            for (what, count) in [("entries named .", self.dots[0]), ("entries named ..", self.dots[1])] {
                view.subject.findings.expect(FindingKind::Dots, &view.place, what, 1, count);
            }
        }
        if let Role::Linked { parent, .. } = view.role {
            let (expected, found) = (parent.0.into(), inode.i_pino.get().into());
            view.subject.findings.expect(FindingKind::Parent, &view.place, "i_pino", expected, found);
        }
        for at in std::mem::take(&mut self.names).repeated() {
            let problem = Problem::Fault { what: "the directory has this name already; slot", found: at.slot.into() };
            self.report(FindingKind::DuplicateName, at.block, at.slot.into(), b"", problem);
        }
        Ok(self.children)
    }
}

/// The place carries the slot; what is left of the format crate's error is the field.
fn corrupt(corruption: Corruption) -> Problem {
    match corruption {
        Corruption::Dentry { what, found, min, max, .. } => Problem::Range { what, found, min, max },
        other => Problem::Corrupt(other),
    }
}
