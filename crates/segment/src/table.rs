//! The segment information table, as an opener hands it over.

use std::collections::BTreeMap;

use f2fs_format::sit::RawSitEntry;
use f2fs_format::{LogType, SegmentNo};
use f2fs_sync::atomic::{AtomicU64, Ordering};

use crate::states::States;
use crate::{BlockMap, SegmentError};

/// The SIT entries of a main area, on their way into a [`SegmentManager`](crate::SegmentManager).
///
/// An opener reads the table's blocks in any order, on any number of threads, and [loads](SegmentTable::load) them: the
/// memory taken is that of the segments with valid blocks, and 4.3 bytes for each other. A segment that is not loaded
/// is empty.
///
/// ```
/// use f2fs_format::sit::RawSitEntry;
/// use f2fs_format::{LogType, SegmentNo};
/// use f2fs_segment::SegmentTable;
///
/// # fn main() -> Result<(), f2fs_segment::SegmentError> {
/// let mut entries = vec![RawSitEntry::ZERO; 110];
/// entries[70].set_blocks(LogType::WarmNode, 1);
/// entries[70].valid_map[0] = 0x80;
///
/// let table = SegmentTable::new(110, &[])?;
/// std::thread::scope(|scope| {
///     let halves = [(SegmentNo(0), &entries[..55]), (SegmentNo(55), &entries[55..])];
///     let loaders = halves.map(|(first, half)| {
///         let table = &table;
///         scope.spawn(move || table.load(first, half))
///     });
///     loaders.into_iter().try_for_each(|loader| loader.join().expect("a loader does not panic"))
/// })?;
/// assert_eq!(table.valid_blocks(LogType::WarmNode), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SegmentTable {
    pub(crate) states: States,
    /// Segments whose entry stood in the journal, sorted.
    pub(crate) journaled: Vec<SegmentNo>,
    valid: [AtomicU64; 6],
}

impl SegmentTable {
    /// A table of so many main segments. All are empty but those in the SIT journal, whose entries are newer than the
    /// table's: what the table's blocks say of them is passed over.
    ///
    /// # Errors
    /// As [`load`](Self::load), for the journal.
    pub fn new(segments: u32, journal: &[(SegmentNo, RawSitEntry)]) -> Result<SegmentTable, SegmentError> {
        let mut table = SegmentTable {
            states: States::new(segments),
            journaled: Vec::new(),
            valid: core::array::from_fn(|_| AtomicU64::new(0)),
        };
        // Of two entries of a segment the later one counts, as in the kernel.
        let journal: BTreeMap<SegmentNo, &RawSitEntry> =
            journal.iter().map(|(segment, entry)| (*segment, entry)).collect();
        for (segment, entry) in &journal {
            table.load(*segment, core::slice::from_ref(*entry))?;
        }
        table.journaled = journal.into_keys().collect();
        Ok(table)
    }

    /// Segments of the main area.
    #[must_use]
    pub fn segments(&self) -> u32 {
        self.states.segments()
    }

    /// Takes over the entries of the segments from `first` on. May be called by several threads at once, for different
    /// segments.
    ///
    /// # Errors
    /// [`SegmentError::BadType`], [`SegmentError::BadCount`], [`SegmentError::OutsideTable`],
    /// [`SegmentError::LoadedTwice`]. The table is of no use then.
    pub fn load(&self, first: SegmentNo, entries: &[RawSitEntry]) -> Result<(), SegmentError> {
        let mut at = 0;
        while at < entries.len() {
            // Up to the next one that the journal has.
            let here = SegmentNo(first.0.saturating_add(at as u32));
            let next = self.journaled.iter().find(|segment| **segment >= here);
            let len = next.map_or(usize::MAX, |segment| (segment.0 - here.0) as usize).min(entries.len() - at);
            let valid = self.states.load(here, &entries[at..at + len])?;
            for (sum, valid) in self.valid.iter().zip(valid).filter(|(_, valid)| *valid != 0) {
                sum.fetch_add(valid, Ordering::Relaxed);
            }
            at += len + 1;
        }
        Ok(())
    }

    /// Valid blocks in the segments of a log, as far as they are loaded.
    #[must_use]
    pub fn valid_blocks(&self, log: LogType) -> u64 {
        self.valid[log.index()].load(Ordering::Relaxed)
    }

    /// Which blocks of a segment are valid.
    ///
    /// # Errors
    /// [`SegmentError::OutsideTable`].
    pub fn valid_map(&self, segment: SegmentNo) -> Result<BlockMap, SegmentError> {
        let segments = self.segments();
        if segment.0 >= segments {
            return Err(SegmentError::OutsideTable { segment, segments });
        }
        Ok(self.states.find(segment).state().valid_map)
    }
}
