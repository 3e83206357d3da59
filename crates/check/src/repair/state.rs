//! The state of a volume while it is repaired.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use f2fs_format::dentry::FileType;
use f2fs_format::{LogType, Nid, SegmentNo};

/// Lines about actions that are kept.
const MAX_ACTIONS: usize = 10_000;

/// A reference to a node or to a block: the node that holds it, and where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Reference {
    pub(super) holder: Nid,
    pub(super) slot: Slot,
}

/// Where a reference stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Slot {
    /// An address.
    Address(u32),
    /// A child node.
    Child(u32),
    /// The xattr node.
    Xattr,
    /// A directory entry: file block (`u32::MAX`: inline) and slot.
    Entry(u32, u32),
    /// The NAT or the list of orphans.
    Table,
}

/// What speaks for a reference, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trust {
    /// Nothing else: the tables have nothing to say about the block. Where both are lost, `f2fs cat` shows it all the same.
    Alone,
    /// A part of what is known about the block.
    Partly,
    /// The other side names it, too.
    Sound,
}

impl Trust {
    /// Of a reference that the other side names, too, if it is so.
    pub(super) fn sound_if(sound: bool) -> Trust {
        if sound { Trust::Sound } else { Trust::Partly }
    }
}

/// A reference that holds, and whether the other side agrees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) by: Reference,
    pub(super) trust: Trust,
    pub(super) is_node: bool,
    /// The owner for the summary.
    pub(super) owner: (Nid, u16),
}

/// A segment that was free, with blocks of the repair's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnSegment {
    pub(super) segment: SegmentNo,
    /// The log of its blocks.
    pub(super) log: LogType,
    /// The next block in it.
    pub(super) next: u32,
}

/// All of it. Known conflicts are kept from pass to pass, everything else begins again.
#[derive(Debug, Default)]
pub(super) struct State {
    /// References that lost a conflict.
    cuts: BTreeSet<Reference>,
    /// Names that lead to another inode than the entries say, by directory.
    turned: BTreeMap<(Nid, Vec<u8>), Nid>,
    /// Names whose entries lead nowhere, or to a directory that has another one, by directory.
    dangling: BTreeSet<(Nid, Vec<u8>)>,
    /// The types that entries say where their inodes say others, by directory and name.
    mistyped: BTreeMap<(Nid, Vec<u8>), FileType>,
    /// Segments of nodes that data were claimed in.
    node_segments: BTreeSet<SegmentNo>,
    /// A lost directory names an inode of the list of orphans: none of them is taken for one.
    orphans_have_names: bool,
    /// In this pass something was found that would have changed earlier actions.
    too_late: bool,
    /// Blocks, by address.
    pub(super) blocks: HashMap<u32, Claim>,
    /// Nodes.
    pub(super) nodes: BTreeMap<u32, Claim>,
    /// Inodes, with the entries that name them.
    pub(super) inodes: BTreeMap<u32, u32>,
    /// Inodes that are directories, with the directory above.
    pub(super) directories: BTreeMap<u32, Nid>,
    /// The entry that names a directory.
    entries: BTreeMap<u32, Reference>,
    /// What directories said that is above them, of those that said another one than names them.
    moved: BTreeMap<u32, Nid>,
    /// Inodes that lost their name because their bucket had no room.
    nameless: BTreeSet<u32>,
    /// Orphans that are.
    pub(super) orphans: BTreeSet<Nid>,
    /// Reserved blocks (`NEW_ADDR`).
    pub(super) reserved: u64,
    /// Segments with blocks of inodes that are not reached yet, as their nodes say.
    pub(super) spoken_for: BTreeSet<SegmentNo>,
    /// Numbers of nodes that a journal beside the volume has.
    pub(super) reserved_nids: BTreeSet<u32>,
    /// Free segments that new blocks go to.
    pub(super) own: Vec<OwnSegment>,
    pub(super) actions: Vec<String>,
}

impl State {
    pub(super) fn begin_pass(&mut self) {
        let (cuts, turned) = (std::mem::take(&mut self.cuts), std::mem::take(&mut self.turned));
        let node_segments = std::mem::take(&mut self.node_segments);
        *self = State { cuts, turned, node_segments, orphans_have_names: self.orphans_have_names, ..State::default() };
    }

    pub(super) fn conflicts(&self) -> usize {
        self.cuts.len() + self.turned.len()
    }

    /// From the next pass on a name leads to this inode, whatever its entry says.
    pub(super) fn turn(&mut self, dir: Nid, name: Vec<u8>, ino: Nid) {
        self.turned.entry((dir, name)).or_insert(ino);
    }

    /// Where a name leads, if it is not where its entry says.
    pub(super) fn turned(&self, dir: Nid, name: &[u8]) -> Option<Nid> {
        // Hardly ever there is any, and most names are asked for.
        if self.turned.is_empty() { None } else { self.turned.get(&(dir, name.to_vec())).copied() }
    }

    /// From the next pass on no slot of data leads into this segment.
    pub(super) fn hold_nodes(&mut self, segment: SegmentNo) {
        self.too_late |= self.node_segments.insert(segment);
    }

    /// Whether a slot that led into this segment was wrong.
    pub(super) fn holds_nodes(&self, segment: SegmentNo) -> bool {
        self.node_segments.contains(&segment)
    }

    /// Whether this pass used something that it later found to be wrong.
    pub(super) fn is_too_late(&self) -> bool {
        self.too_late
    }

    pub(super) fn orphans_have_names(&self) -> bool {
        self.orphans_have_names
    }

    /// An entry names an orphan that was entered as one.
    pub(super) fn name_orphan(&mut self) {
        (self.orphans_have_names, self.too_late) = (true, true);
    }

    pub(super) fn act(&mut self, text: impl FnOnce() -> String) {
        if self.actions.len() < MAX_ACTIONS {
            self.actions.push(text());
        }
    }

    /// Whether a reference lost in an earlier pass.
    pub(super) fn is_cut(&self, reference: Reference) -> bool {
        self.cuts.contains(&reference)
    }

    /// Enters a claim; tells whether the reference holds. If it displaces another one, that one is cut and another pass
    /// is needed.
    pub(super) fn claim_block(&mut self, addr: u32, claim: Claim) -> bool {
        match self.blocks.get(&addr).copied() {
            None => {
                self.blocks.insert(addr, claim);
                true
            }
            Some(old) if old.by == claim.by => true,
            Some(old) if claim.trust > old.trust => {
                self.cut(old.by);
                self.blocks.insert(addr, claim);
                true
            }
            Some(_) => {
                self.refuse(claim.by);
                false
            }
        }
    }

    /// The same for a node.
    pub(super) fn claim_node(&mut self, nid: Nid, claim: Claim) -> bool {
        match self.nodes.get(&nid.0).copied() {
            None => {
                self.nodes.insert(nid.0, claim);
                true
            }
            Some(old) if claim.trust > old.trust && old.by.slot != Slot::Table => {
                self.cut(old.by);
                self.nodes.insert(nid.0, claim);
                true
            }
            Some(_) => {
                self.refuse(claim.by);
                false
            }
        }
    }

    /// A reference that was taken for right is given up.
    pub(super) fn cut(&mut self, reference: Reference) {
        self.too_late |= self.cuts.insert(reference);
    }

    /// A reference that is not taken, in this pass and the next ones.
    pub(super) fn refuse(&mut self, reference: Reference) {
        self.cuts.insert(reference);
    }

    /// Notes the entry of a directory.
    pub(super) fn name_directory(&mut self, ino: Nid, parent: Nid, by: Reference) {
        self.directories.insert(ino.0, parent);
        self.entries.insert(ino.0, by);
    }

    /// The entry that names a directory.
    pub(super) fn entry_of(&self, ino: Nid) -> Option<Reference> {
        self.entries.get(&ino.0).copied()
    }

    /// Notes that a directory got another parent than the one that it said.
    pub(super) fn note_moved(&mut self, ino: Nid, said: Nid) {
        self.moved.insert(ino.0, said);
    }

    /// What a directory said that is above it, if it says another one by now.
    pub(super) fn said_parent(&self, ino: Nid) -> Option<Nid> {
        self.moved.get(&ino.0).copied()
    }

    /// Notes that the entry of a name was removed because there is nothing where it leads, or what has another name.
    pub(super) fn dangles(&mut self, dir: Nid, name: Option<&[u8]>) {
        if let Some(name) = name {
            self.dangling.insert((dir, name.to_vec()));
        }
    }

    /// Names whose entries were removed.
    pub(super) fn dangling(&self) -> &BTreeSet<(Nid, Vec<u8>)> {
        &self.dangling
    }

    /// Notes that the entry of a name says another type than the inode that it leads to.
    pub(super) fn note_type(&mut self, dir: Nid, name: &[u8], by_entry: FileType) {
        self.mistyped.insert((dir, name.to_vec()), by_entry);
    }

    /// The type that the entry of a name said, if its inode says another one.
    pub(super) fn type_said(&self, place: &(Nid, Vec<u8>)) -> Option<FileType> {
        self.mistyped.get(place).copied()
    }

    /// An inode whose entry found no place: it is walked, but has a name less.
    pub(super) fn misplaced(&mut self, ino: Nid) {
        self.nameless.insert(ino.0);
        self.inodes.entry(ino.0).and_modify(|links| *links = links.saturating_sub(1));
    }

    /// Inodes that are walked, but have no name.
    pub(super) fn nameless(&self) -> Vec<Nid> {
        self.nameless.iter().filter(|ino| self.inodes.get(ino) == Some(&0)).map(|ino| Nid(*ino)).collect()
    }
}
