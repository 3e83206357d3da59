//! A segment manager without a volume.

use std::error::Error;
use std::sync::Arc;

use f2fs_format::SegmentNo;
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::SummaryBlock;
use f2fs_segment::{LogState, SegmentConfig, SegmentManager, SummarySource};

/// Summaries that say nothing.
struct NoSummaries;

impl SummarySource for NoSummaries {
    fn read_summary(&self, _: SegmentNo) -> Result<Box<SummaryBlock>, Box<dyn Error + Send + Sync>> {
        Ok(SummaryBlock::new_box())
    }
}

fn open(config: SegmentConfig, entry: impl Fn(u32) -> RawSitEntry) -> SegmentManager {
    let segments = config.geometry.main_segments;
    let entries = (0..segments).map(|segment| if segment < 6 { RawSitEntry::ZERO } else { entry(segment) }).collect();
    let bitmap = vec![0; config.geometry.sit_bitmap_size()];
    let logs = LogState::at_the_start(&config.geometry);
    SegmentManager::new(config, entries, bitmap, logs).expect("the tables agree")
}

/// A manager of `lanes` lanes in each log, whose segments behind the first six hold what `entry` says.
pub fn manager(segments: u32, lanes: usize, entry: impl Fn(u32) -> RawSitEntry) -> SegmentManager {
    open(SegmentConfig::embedded(segments, 1).expect("six segments and more").lanes(lanes), entry)
}

/// The same, whose logs may take segments with holes.
pub fn manager_with_summaries(segments: u32, entry: impl Fn(u32) -> RawSitEntry) -> SegmentManager {
    let config = SegmentConfig::embedded(segments, 1).expect("six segments and more");
    open(config.summaries(Arc::new(NoSummaries)), entry)
}
