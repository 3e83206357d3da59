//! A disk that knows no more than a checkpoint writes, and a volume's part in a checkpoint.
#![allow(clippy::unwrap_used)]
#![allow(dead_code)] // each test binary uses its part

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

use f2fs_format::bits::msb;
use f2fs_format::sit::{ENTRIES_PER_BLOCK, RawSitEntry, SitBlock};
use f2fs_format::summary::SummaryBlock;
use f2fs_format::{Geometry, LogType, SegmentNo};
use f2fs_segment::{LogState, SegmentConfig, SegmentFlush, SegmentManager, SummarySource};

pub(crate) fn geometry(main_segments: u32, segs_per_sec: u32) -> Geometry {
    SegmentConfig::embedded(main_segments, segs_per_sec).unwrap().geometry
}

/// A manager of an empty volume.
pub(crate) fn empty(geometry: &Geometry, config: impl FnOnce(SegmentConfig) -> SegmentConfig) -> SegmentManager {
    SegmentManager::empty(config(SegmentConfig::new(geometry.clone(), 0, 0))).unwrap()
}

/// The entry of a segment that a log wrote, with these blocks valid.
pub(crate) fn used(log: LogType, valid: impl IntoIterator<Item = u32>) -> RawSitEntry {
    let mut entry = RawSitEntry::ZERO;
    let mut count = 0;
    for at in valid {
        msb::set(&mut entry.valid_map, at as usize);
        count += 1;
    }
    entry.set_blocks(log, count);
    entry
}

/// A manager of so many segments, of which these are in use; the logs stand at the start.
pub(crate) fn open(
    segments: u32,
    segs_per_sec: u32,
    in_use: &[(u32, RawSitEntry)],
    config: impl FnOnce(SegmentConfig) -> SegmentConfig,
) -> SegmentManager {
    let geometry = geometry(segments, segs_per_sec);
    let mut entries = vec![RawSitEntry::ZERO; segments as usize];
    in_use.iter().for_each(|(segment, entry)| entries[*segment as usize] = *entry);
    let (bitmap, logs) = (vec![0; geometry.sit_bitmap_size()], LogState::at_the_start(&geometry));
    SegmentManager::new(config(SegmentConfig::new(geometry, 0, 0)), entries, bitmap, logs).unwrap()
}

/// The summaries on the disk: written in place, so a crash does not take them back.
#[derive(Default)]
pub(crate) struct Ssa(Mutex<BTreeMap<SegmentNo, Box<SummaryBlock>>>);

impl Ssa {
    pub(crate) fn get(&self, segment: SegmentNo) -> Box<SummaryBlock> {
        self.0.lock().unwrap().get(&segment).cloned().unwrap_or_else(SummaryBlock::new_box)
    }
}

impl SummarySource for Ssa {
    fn read_summary(&self, segment: SegmentNo) -> Result<Box<SummaryBlock>, Box<dyn Error + Send + Sync>> {
        Ok(self.get(segment))
    }
}

/// The state of the last durable checkpoint, and the two copies of the table.
pub(crate) struct Disk {
    pub(crate) geometry: Geometry,
    pub(crate) sit: [BTreeMap<u32, Box<SitBlock>>; 2],
    pub(crate) bitmap: Vec<u8>,
    pub(crate) journal: Vec<(SegmentNo, RawSitEntry)>,
    pub(crate) logs: [LogState; 6],
    pub(crate) free_segments: Option<u32>,
    pub(crate) ssa: Arc<Ssa>,
}

impl Disk {
    pub(crate) fn new(geometry: Geometry) -> Disk {
        Disk {
            sit: [BTreeMap::new(), BTreeMap::new()],
            bitmap: vec![0; geometry.sit_bitmap_size()],
            journal: Vec::new(),
            logs: LogState::at_the_start(&geometry),
            free_segments: None,
            ssa: Arc::new(Ssa::default()),
            geometry,
        }
    }

    /// The areas written before the checkpoint block: a crash may leave them behind.
    pub(crate) fn write_areas(&mut self, flush: &SegmentFlush) {
        for write in &flush.sit_blocks {
            self.sit[usize::from(write.second)].insert(write.index, write.block.clone());
        }
        for (segment, summary) in &flush.summaries {
            self.ssa.0.lock().unwrap().insert(*segment, summary.clone());
        }
    }

    /// The checkpoint block.
    pub(crate) fn commit(&mut self, flush: SegmentFlush) {
        self.bitmap = flush.sit_bitmap;
        self.journal = flush.sit_journal;
        self.logs = flush.logs;
        self.free_segments = Some(flush.free_segments);
    }

    /// A whole checkpoint, without a crash.
    pub(crate) fn checkpoint(&mut self, manager: &SegmentManager) {
        let flush = manager.begin_checkpoint(6).unwrap();
        self.write_areas(&flush);
        self.commit(flush);
        manager.end_checkpoint();
    }

    /// The table as a mount reads it.
    pub(crate) fn entries(&self) -> Vec<RawSitEntry> {
        let mut entries: Vec<_> = (0..self.geometry.main_segments)
            .map(|segment| {
                let index = segment / ENTRIES_PER_BLOCK as u32;
                let copy = usize::from(msb::test(&self.bitmap, index as usize));
                self.sit[copy]
                    .get(&index)
                    .map_or(RawSitEntry::ZERO, |block| block.entries[segment as usize % ENTRIES_PER_BLOCK])
            })
            .collect();
        for (segment, entry) in &self.journal {
            entries[segment.index()] = *entry;
        }
        entries
    }

    pub(crate) fn open(&self, config: impl FnOnce(SegmentConfig) -> SegmentConfig) -> SegmentManager {
        let config = config(SegmentConfig::new(self.geometry.clone(), 0, 0))
            .summaries(self.ssa.clone())
            .journaled(self.journal.iter().map(|(segment, _)| *segment));
        SegmentManager::new(config, self.entries(), self.bitmap.clone(), self.logs.clone()).unwrap()
    }
}
