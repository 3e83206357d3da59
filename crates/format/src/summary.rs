//! Segment summaries: the owner of each block of a segment, and the journals in the summaries of the logs.

pub mod compact;

use alloc::boxed::Box;
use alloc::vec::Vec;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::nat::RawNatEntry;
use crate::sit::RawSitEntry;
use crate::{Nid, RawBlock, SegmentNo};

/// Entries of a summary block: one a block of the segment.
pub const ENTRIES: usize = 512;
/// Bytes of the journal area.
pub const JOURNAL_SIZE: usize = 507;
/// NAT entries that a journal holds.
pub const NAT_JOURNAL_ENTRIES: usize = 38;
/// SIT entries that a journal holds.
pub const SIT_JOURNAL_ENTRIES: usize = 6;
/// Summary entries in the first block of a compact summary, behind both journals.
pub const COMPACT_FIRST: usize = 439;
/// Summary entries in each further block of a compact summary.
pub const COMPACT_NEXT: usize = 584;
/// Footer type of a node segment's summary (`SUM_TYPE_NODE`).
pub const TYPE_NODE: u8 = 1;
/// Footer type of a data segment's summary (`SUM_TYPE_DATA`).
pub const TYPE_DATA: u8 = 0;

/// The owner of a block (`struct f2fs_summary`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Summary {
    /// The node that holds the block's address; for a node block, the node itself.
    pub nid: U32,
    /// The NAT entry's version when the block was written.
    pub version: u8,
    /// The address slot in that node; 0 for a node block.
    pub ofs_in_node: U16,
}

const _: () = assert!(size_of::<Summary>() == 7);

impl Summary {
    /// A summary from its parts.
    #[must_use]
    pub fn new(nid: Nid, version: u8, ofs_in_node: u16) -> Summary {
        Summary { nid: nid.into(), version, ofs_in_node: U16::new(ofs_in_node) }
    }
}

/// A NAT entry in a journal (`struct nat_journal_entry`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NatJournalEntry {
    /// Whose entry.
    pub nid: U32,
    /// The entry, newer than the table's.
    pub ne: RawNatEntry,
}

/// A SIT entry in a journal (`struct sit_journal_entry`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SitJournalEntry {
    /// Whose entry.
    pub segno: U32,
    /// The entry, newer than the table's.
    pub se: RawSitEntry,
}

const _: () = assert!(size_of::<NatJournalEntry>() == 13);
const _: () = assert!(size_of::<SitJournalEntry>() == 78);

/// The journal area of a summary block (`struct f2fs_journal`): NAT entries in the hot-data log's summary, SIT entries
/// in the cold-data log's, and the kilobytes written so far in the hot-node log's.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Journal {
    /// `n_nats` or `n_sits`.
    pub count: U16,
    /// The entries.
    pub body: [u8; JOURNAL_SIZE - 2],
}

const _: () = assert!(size_of::<Journal>() == JOURNAL_SIZE);

impl core::fmt::Debug for Journal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Journal").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Journal {
    /// Empty.
    pub const ZERO: Journal = zerocopy::transmute!([0u8; JOURNAL_SIZE]);

    /// The NAT entries; `None` if the count is more than fit.
    #[must_use]
    pub fn nat_entries(&self) -> Option<Vec<(Nid, RawNatEntry)>> {
        let count = usize::from(self.count.get());
        let (entries, _) = <[NatJournalEntry; NAT_JOURNAL_ENTRIES]>::read_from_prefix(&self.body).ok()?;
        Some(entries.get(..count)?.iter().map(|entry| (entry.nid.into(), entry.ne)).collect())
    }

    /// The SIT entries; `None` if the count is more than fit.
    #[must_use]
    pub fn sit_entries(&self) -> Option<Vec<(SegmentNo, RawSitEntry)>> {
        let count = usize::from(self.count.get());
        let (entries, _) = <[SitJournalEntry; SIT_JOURNAL_ENTRIES]>::read_from_prefix(&self.body).ok()?;
        Some(entries.get(..count)?.iter().map(|entry| (entry.segno.into(), entry.se)).collect())
    }

    /// A journal of NAT entries; `None` if they are too many.
    #[must_use]
    pub fn from_nat(entries: &[(Nid, RawNatEntry)]) -> Option<Journal> {
        let entries: Vec<NatJournalEntry> =
            entries.iter().map(|(nid, ne)| NatJournalEntry { nid: (*nid).into(), ne: *ne }).collect();
        Journal::from_entries(entries.len(), NAT_JOURNAL_ENTRIES, entries.as_bytes())
    }

    /// A journal of SIT entries; `None` if they are too many.
    #[must_use]
    pub fn from_sit(entries: &[(SegmentNo, RawSitEntry)]) -> Option<Journal> {
        let entries: Vec<SitJournalEntry> =
            entries.iter().map(|(segno, se)| SitJournalEntry { segno: (*segno).into(), se: *se }).collect();
        Journal::from_entries(entries.len(), SIT_JOURNAL_ENTRIES, entries.as_bytes())
    }

    fn from_entries(count: usize, capacity: usize, bytes: &[u8]) -> Option<Journal> {
        if count > capacity {
            return None;
        }
        let mut journal = Journal::ZERO;
        journal.count = U16::new(count as u16);
        journal.body[..bytes.len()].copy_from_slice(bytes);
        Some(journal)
    }

    /// The kilobytes written (`kbytes_written` of the hot-node log's journal).
    #[must_use]
    pub fn kbytes_written(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.as_bytes()[..8]);
        u64::from_le_bytes(bytes)
    }

    /// A journal that carries the kilobytes written.
    #[must_use]
    pub fn from_kbytes_written(kbytes: u64) -> Journal {
        let mut journal = Journal::ZERO;
        journal.as_mut_bytes()[..8].copy_from_slice(&kbytes.to_le_bytes());
        journal
    }
}

/// A summary block (`struct f2fs_summary_block`): of a segment in the SSA, or of a log in a checkpoint pack.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SummaryBlock {
    /// One entry a block of the segment.
    pub entries: [Summary; ENTRIES],
    /// The journal; meaningful only in a checkpoint pack.
    pub journal: Journal,
    /// [`TYPE_NODE`] or [`TYPE_DATA`] (`entry_type`).
    pub entry_type: u8,
    /// Not used by the kernel.
    pub check_sum: U32,
}

const _: () = assert!(size_of::<SummaryBlock>() == 4096);

impl core::fmt::Debug for SummaryBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SummaryBlock")
            .field("entry_type", &self.entry_type)
            .field("journal", &self.journal)
            .finish_non_exhaustive()
    }
}

impl SummaryBlock {
    /// All zero: an unused data segment.
    pub const ZERO: SummaryBlock = zerocopy::transmute!([0u8; 4096]);

    /// All zero, on the heap.
    #[must_use]
    pub fn new_box() -> Box<SummaryBlock> {
        SummaryBlock::new_box_zeroed().unwrap_or_else(|_| Box::new(SummaryBlock::ZERO))
    }

    /// The block as a summary.
    #[must_use]
    pub fn read(block: &RawBlock) -> &SummaryBlock {
        zerocopy::transmute_ref!(block)
    }

    /// The block as bytes.
    #[must_use]
    pub fn as_block(&self) -> &RawBlock {
        zerocopy::transmute_ref!(self)
    }
}
