//! The volume under check: its tables, and what has been reached in them so far.
//!
//! # Locking rules
//!
//! The tables are read-only while threads walk. The nodes and blocks they reach are kept in [`sparse`](super::sparse)
//! bitmaps and counters, one atomic word at a time; whoever sets a bit first owns the block, the node or the inode, and
//! the others report. The only locks are the collector's and those of the summary cache; neither is held while the
//! other is taken.

use f2fs_format::feature::Features;
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Geometry, Nid, SegmentNo};
use f2fs_sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::error::CheckError;
use super::finding::{FindingKind, Place, Problem};
use super::nat::NatTable;
use super::report::{Collector, Counts};
use super::sit::SitTable;
use super::source::Source;
use super::sparse::{SparseBits, SparseWords};
use super::summary::{Summaries, SummaryCursor};
use super::{Phase, Progress};

/// The link word of an inode: the type that its first directory entry gave, above the number of entries.
const TYPE_SHIFT: u32 = 28;
const COUNT_MASK: u32 = (1 << TYPE_SHIFT) - 1;

/// The counts of a walk.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) blocks: AtomicU64,
    pub(super) reserved: AtomicU64,
    pub(super) nodes: AtomicU64,
    pub(super) inodes: AtomicU64,
    pub(super) directories: AtomicU64,
    pub(super) orphans: AtomicU64,
}

/// The volume under check.
pub(super) struct Subject<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) geometry: &'a Geometry,
    pub(super) features: Features,
    /// Seed of inode checksums.
    pub(super) checksum_seed: u32,
    pub(super) nat: NatTable,
    pub(super) sit: SitTable,
    pub(super) summaries: Summaries,
    pub(super) findings: &'a Collector,
    pub(super) progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// Main-area blocks that something refers to.
    pub(super) blocks: SparseBits,
    /// Nodes that something refers to.
    pub(super) nodes: SparseBits,
    /// Inodes that were reached by a directory entry, or are roots.
    inodes: SparseBits,
    /// Segments whose type was reported already.
    mixed: SparseBits,
    links: SparseWords,
    /// `i_links` + 1 of inodes that are no directories.
    declared: SparseWords,
    pub(super) tally: Tally,
    /// Nodes that the checkpoint says there are.
    pub(super) expected_nodes: u64,
}

/// The effect of a directory entry on the inode it names.
pub(super) struct Linked {
    /// No entry named it before.
    pub(super) first: bool,
    /// The type that the first entry gave.
    pub(super) file_type: u8,
}

impl<'a> Subject<'a> {
    /// Nothing is reached yet.
    #[expect(clippy::too_many_arguments, reason = "the parts of one volume, put together in one place")]
    pub(super) fn new(
        source: &'a Source<'a>,
        geometry: &'a Geometry,
        checksum_seed: u32,
        tables: (NatTable, SitTable),
        summaries: Summaries,
        findings: &'a Collector,
        progress: Option<&'a (dyn Fn(Progress) + Sync)>,
        expected_nodes: u64,
    ) -> Subject<'a> {
        let (nat, sit) = tables;
        let nids = u64::from(nat.len());
        Subject {
            source,
            geometry,
            features: geometry.features,
            checksum_seed,
            sit,
            summaries,
            findings,
            progress,
            blocks: SparseBits::new(geometry.main_blocks().into()),
            nodes: SparseBits::new(nids),
            inodes: SparseBits::new(nids),
            mixed: SparseBits::new(geometry.main_segments.into()),
            links: SparseWords::new(nids),
            declared: SparseWords::new(nids),
            tally: Tally::default(),
            expected_nodes,
            nat,
        }
    }

    /// Takes a block of the main area for its owner; tells whether it is the first one. Reports a second owner, a block
    /// that the SIT holds for free, and a segment of the wrong sort.
    pub(super) fn claim(&self, addr: BlockAddr, is_node: bool, owner: &Place) -> bool {
        let Some((segment, offset)) = self.geometry.locate(addr) else { return false };
        self.tally.blocks.fetch_add(1, Relaxed);
        let fresh = !self.blocks.set(addr.0 - self.geometry.main_blkaddr.0);
        let block = u64::from(addr.0);
        self.findings.require(fresh, FindingKind::DuplicateBlock, owner, "a second reference to block", block);
        let valid = self.sit.is_valid(segment, offset);
        self.findings.require(valid, FindingKind::NotValid, owner, "the sit holds it for free, block", block);
        let entry = self.sit.get(segment);
        let fits = entry.log_type().is_none_or(|log| log.is_node() == is_node);
        if !fits && !self.mixed.set(segment.0) {
            let what = if is_node { "a node in a segment of type" } else { "data in a segment of type" };
            let problem = Problem::Fault { what, found: entry.type_number().into() };
            self.findings.add(FindingKind::SegmentType, Place::Segment(segment), problem);
        }
        fresh
    }

    /// Follows a reference to a node: its NAT entry, its block, that block's summary. `None`: there is no block to
    /// read, or it was followed before; findings say why. `place` is where the reference stands.
    pub(super) fn resolve(
        &self,
        nid: Nid,
        ino: Nid,
        place: &Place,
        cursor: &mut SummaryCursor,
    ) -> Result<Option<BlockAddr>, CheckError> {
        let (found, min, max) = (u64::from(nid.0), 3, u64::from(self.nat.len()) - 1);
        if !(min..=max).contains(&found) {
            let problem = Problem::Range { what: "nid", found, min, max };
            self.findings.add(FindingKind::NodeTree, place.clone(), problem);
            return Ok(None);
        }
        let entry = self.nat.get(nid);
        let addr = BlockAddr::from(entry.block_addr);
        if !self.geometry.in_main(addr) {
            let what =
                if addr.is_null() { "refers to a free nid" } else { "its address is outside the main area, nid" };
            self.findings.require(false, FindingKind::NatEntry, place, what, found);
            return Ok(None);
        }
        if Nid::from(entry.ino) != ino {
            let (what, expected, found) = ("inode of the nat entry", ino.0.into(), entry.ino.get().into());
            let problem = Problem::Mismatch { what, expected, found };
            self.findings.add(FindingKind::NatEntry, Place::Node { nid, addr }, problem);
            return Ok(None);
        }
        if self.nodes.set(nid.0) {
            self.findings.require(false, FindingKind::NodeTree, place, "a second reference to node", found);
            return Ok(None);
        }
        self.tally.nodes.fetch_add(1, Relaxed);
        let own = Place::Node { nid, addr };
        self.claim(addr, true, &own);
        self.summaries.check_node(self, cursor, addr, nid)?;
        Ok(Some(addr))
    }

    /// Checks the footer of a node that was read. False: it is another node, and its content means nothing.
    pub(super) fn check_footer(&self, node: &NodeBlock, addr: BlockAddr, nid: Nid, ino: Nid, offset: u32) -> bool {
        let place = Place::Node { nid, addr };
        let kind = FindingKind::NodeFooter;
        self.findings.expect(kind, &place, "nid of the footer", nid.0.into(), node.nid().0.into());
        self.findings.expect(kind, &place, "inode of the footer", ino.0.into(), node.ino().0.into());
        let found = node.footer.node_offset().into();
        self.findings.expect(kind, &place, "node offset of the footer", offset.into(), found);
        node.nid() == nid && node.ino() == ino
    }

    /// Takes an inode for the walk; tells whether it is the first time.
    pub(super) fn take_inode(&self, ino: Nid) -> bool {
        !self.inodes.set(ino.0)
    }

    /// Records a directory entry of `file_type` for an inode.
    pub(super) fn link(&self, ino: Nid, file_type: u8) -> Linked {
        let old = self.links.update(ino.0, |word| {
            let count = (word & COUNT_MASK).saturating_add(1).min(COUNT_MASK);
            let first = if word == 0 { u32::from(file_type) << TYPE_SHIFT } else { word & !COUNT_MASK };
            first | count
        });
        let first = old == 0;
        Linked { first, file_type: if first { file_type } else { (old >> TYPE_SHIFT) as u8 } }
    }

    /// Records the `i_links` of an inode that is not a directory.
    pub(super) fn declare_links(&self, ino: Nid, i_links: u32) {
        self.declared.update(ino.0, |_| i_links.saturating_add(1));
    }

    /// Compares the entries of every file with its `i_links`.
    pub(super) fn check_links(&self) {
        for nid in self.declared.used().flatten() {
            let (declared, found) = (self.declared.get(nid), self.links.get(nid) & COUNT_MASK);
            if declared != 0 {
                let place = Place::Nid(Nid(nid));
                let (expected, stored) = (found.into(), u64::from(declared - 1));
                self.findings.expect(FindingKind::Links, &place, "i_links", expected, stored);
            }
        }
    }

    /// Tells the caller how far the check is.
    pub(super) fn report_progress(&self, phase: Phase, done: u64, total: u64) {
        if let Some(progress) = self.progress {
            progress(Progress { phase, done, total });
        }
    }

    /// The counts so far.
    pub(super) fn counts(&self, free_segments: u64) -> Counts {
        let reserved_blocks = self.tally.reserved.load(Relaxed);
        Counts {
            blocks: self.tally.blocks.load(Relaxed) + reserved_blocks,
            reserved_blocks,
            nodes: self.tally.nodes.load(Relaxed),
            inodes: self.tally.inodes.load(Relaxed),
            directories: self.tally.directories.load(Relaxed),
            orphans: self.tally.orphans.load(Relaxed),
            free_segments,
            blocks_read: self.source.blocks_read(),
        }
    }

    /// The segment of a main-area block.
    pub(super) fn segment_of(&self, addr: BlockAddr) -> Option<(SegmentNo, u32)> {
        self.geometry.locate(addr)
    }
}
