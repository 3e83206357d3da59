//! A segment manager without a volume.

use f2fs_format::sit::RawSitEntry;
use f2fs_segment::{LogState, SegmentConfig, SegmentManager};

/// A manager of `lanes` lanes in each log, whose segments behind the first six hold what `entry` says.
pub fn manager(segments: u32, lanes: usize, entry: impl Fn(u32) -> RawSitEntry) -> SegmentManager {
    let config = SegmentConfig::embedded(segments, 1).expect("six segments and more").lanes(lanes);
    let entries = (0..segments).map(|segment| if segment < 6 { RawSitEntry::ZERO } else { entry(segment) }).collect();
    let bitmap = vec![0; config.geometry.sit_bitmap_size()];
    let logs = LogState::at_the_start(&config.geometry);
    SegmentManager::new(config, entries, bitmap, logs).expect("the tables agree")
}
