//! The segment information table in force, and the comparison with all reachable blocks.

use f2fs_format::sit::{ENTRIES_PER_BLOCK, RawSitEntry, SitBlock};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Geometry, LogType, SegmentNo, bits::msb};
use rayon::prelude::*;

use super::error::CheckError;
use super::finding::{FindingKind, Place, Problem};
use super::report::Collector;
use super::source::{Source, ZEROS};
use super::sparse::SparseBits;
use super::zones::Zones;

/// SIT blocks that one task reads together.
const BATCH: usize = 256;
/// Words of 64 blocks in a segment.
const WORDS: usize = BLOCKS_PER_SEGMENT as usize / 64;

/// The table. Blocks without a valid segment take no memory.
#[derive(Debug)]
pub(super) struct SitTable {
    blocks: Vec<Option<Box<SitBlock>>>,
    segments: u32,
}

/// Sums over the table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SitSums {
    /// Segments without a valid block that are no log's.
    pub(super) free_segments: u64,
    /// Those of them that Linux does not count.
    pub(super) doubtful_segments: u64,
    /// Valid blocks in segments of node logs.
    pub(super) node_blocks: u64,
    /// Valid blocks.
    pub(super) blocks: u64,
}

impl SitTable {
    /// Reads the table.
    pub(super) fn load(source: &Source<'_>, geometry: &Geometry, bitmap: &[u8]) -> Result<SitTable, CheckError> {
        let indices: Vec<u32> = (0..geometry.sit_blocks()).collect();
        let parts: Vec<Vec<Option<Box<SitBlock>>>> = indices
            .par_chunks(BATCH)
            .map(|part| {
                let addr = |index: &u32| geometry.sit_block(*index, msb::test(bitmap, *index as usize));
                let addrs: Vec<BlockAddr> = part.iter().map(addr).collect();
                let read = source.blocks(&addrs)?;
                let keep = |block: &f2fs_format::RawBlock| (*block != ZEROS).then(|| Box::new(*SitBlock::read(block)));
                Ok(read.iter().map(keep).collect())
            })
            .collect::<Result<_, CheckError>>()?;
        Ok(SitTable { blocks: parts.into_iter().flatten().collect(), segments: geometry.main_segments })
    }

    /// A segment's entry; a free one beyond the end.
    pub(super) fn get(&self, segment: SegmentNo) -> &RawSitEntry {
        static FREE: RawSitEntry = RawSitEntry::ZERO;
        let block = self.blocks.get(segment.index() / ENTRIES_PER_BLOCK).and_then(Option::as_ref);
        block.map_or(&FREE, |block| &block.entries[segment.index() % ENTRIES_PER_BLOCK])
    }

    /// Whether a block of a segment is valid.
    pub(super) fn is_valid(&self, segment: SegmentNo, offset: u32) -> bool {
        msb::test(&self.get(segment).valid_map, offset as usize)
    }

    /// Lays the journal over the table and checks its entries, and those that go below it: Linux looks at them as well
    /// (`build_sit_entries`), and does not mount a volume with a wrong one. Entries that are out of range are left out.
    pub(super) fn apply_journal(&mut self, journal: &[(SegmentNo, RawSitEntry)], findings: &Collector) {
        let kind = FindingKind::SitJournal;
        for (index, (segment, entry)) in journal.iter().enumerate() {
            let place = Place::Segment(*segment);
            if segment.0 >= self.segments {
                let (found, max) = (segment.0.into(), u64::from(self.segments) - 1);
                findings.add(kind, place, Problem::Range { what: "segment of the entry", found, min: 0, max });
                continue;
            }
            let twice = journal[..index].iter().any(|(other, _)| other == segment);
            findings.require(!twice, kind, &place, "a second entry for the segment", index as u64);
            if let Some(block) = self.blocks.get_mut(segment.index() / ENTRIES_PER_BLOCK) {
                let block = block.get_or_insert_with(|| Box::new(SitBlock::ZERO));
                let below = &mut block.entries[segment.index() % ENTRIES_PER_BLOCK];
                check_entry(below, &place, ["valid blocks, below the journal's entry", "type, below it"], findings);
                *below = *entry;
            }
        }
    }

    /// All segments.
    pub(super) fn segments(&self) -> std::ops::Range<u32> {
        0..self.segments
    }

    /// Checks every entry by itself (count, map and type agree, and the zone holds it) and sums them up. `logs`: the
    /// segments of the logs.
    pub(super) fn check(
        &self,
        logs: &[SegmentNo],
        (zones, geometry): (&Zones, &Geometry),
        findings: &Collector,
    ) -> SitSums {
        let one = |segment: u32| {
            let segment = SegmentNo(segment);
            let entry = self.get(segment);
            let place = Place::Segment(segment);
            check_entry(entry, &place, ["valid blocks", "type"], findings);
            let stored = entry.valid_blocks();
            zones.check_segment(segment, &entry.valid_map, geometry, findings);
            let is_free = stored == 0 && !logs.contains(&segment) && zones.is_usable(segment, geometry);
            let is_doubtful = is_free && zones.is_doubtful(segment, geometry);
            let is_node = entry.log_type().is_some_and(LogType::is_node);
            SitSums {
                free_segments: is_free.into(),
                doubtful_segments: is_doubtful.into(),
                node_blocks: if is_node { stored.into() } else { 0 },
                blocks: stored.into(),
            }
        };
        let add = |a: SitSums, b: SitSums| SitSums {
            free_segments: a.free_segments + b.free_segments,
            doubtful_segments: a.doubtful_segments + b.doubtful_segments,
            node_blocks: a.node_blocks + b.node_blocks,
            blocks: a.blocks + b.blocks,
        };
        self.segments().into_par_iter().map(one).reduce(SitSums::default, add)
    }

    /// Reports, for each segment, the blocks that are valid here but were not reached.
    pub(super) fn check_reached(&self, reached: &SparseBits, geometry: &Geometry, findings: &Collector) {
        self.segments().into_par_iter().for_each(|segment| {
            let map = &self.get(SegmentNo(segment)).valid_map;
            let (mut lost, mut first) = (0, None);
            for word in 0..WORDS {
                let mut valid = [0; 8];
                valid.copy_from_slice(&map[8 * word..8 * word + 8]);
                // The map counts from the top bit of each byte, the reached bits from the lowest.
                let valid = u64::from_le_bytes(valid.map(u8::reverse_bits));
                let unreached = valid & !reached.word(segment as usize * WORDS + word);
                lost += unreached.count_ones();
                if unreached != 0 && first.is_none() {
                    first = Some(64 * word as u32 + unreached.trailing_zeros());
                }
            }
            if let Some(first) = first {
                let place = Place::Block(geometry.block_at(SegmentNo(segment), first));
                let what = "valid in the sit, but nothing refers to it; such blocks in this segment";
                findings.add(FindingKind::Unreached, place, Problem::Fault { what, found: lost.into() });
            }
        });
    }

    /// Checks a log against the table: its type, that its next block is free, and that no block behind it is valid if
    /// the log fills in order.
    pub(super) fn check_log(&self, log: LogType, at: (SegmentNo, u32), ssr: bool, findings: &Collector) {
        let (segment, offset) = at;
        let entry = self.get(segment);
        let place = Place::Log(log);
        let found = entry.type_number().into();
        findings.expect(FindingKind::Log, &place, "type of its segment", log.number().into(), found);
        let used = |offset: &u32| msb::test(&entry.valid_map, *offset as usize);
        let (what, free) = ("its next block is in use", !used(&offset));
        findings.require(free, FindingKind::Log, &place, what, offset.into());
        if !ssr && let Some(behind) = (offset + 1..BLOCKS_PER_SEGMENT).find(used) {
            let what = "fills in order, but a block behind the next one is in use";
            findings.add(FindingKind::Log, place, Problem::Fault { what, found: behind.into() });
        }
    }
}

/// Whether an entry does not contradict itself: its count is that of its map, and its type one of a log.
pub(super) fn is_possible(entry: &RawSitEntry) -> bool {
    msb::count(&entry.valid_map) == entry.valid_blocks() && entry.log_type().is_some()
}

/// Tells what [contradicts](is_possible) itself in an entry.
fn check_entry(entry: &RawSitEntry, place: &Place, [blocks, log]: [&'static str; 2], findings: &Collector) {
    let (counted, stored) = (msb::count(&entry.valid_map), entry.valid_blocks());
    findings.expect(FindingKind::SitEntry, place, blocks, counted.into(), stored.into());
    if entry.log_type().is_none() {
        let (found, max) = (entry.type_number().into(), LogType::ColdNode.number().into());
        findings.add(FindingKind::SitEntry, place.clone(), Problem::Range { what: log, found, min: 0, max });
    }
}
