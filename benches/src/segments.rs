//! A segment manager without a volume.

use f2fs_format::feature::Features;
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::SummaryBlock;
use f2fs_format::{BlockAddr, Geometry, LogType, Nid, SegmentNo};
use f2fs_segment::{LogState, SegmentConfig, SegmentManager};

fn geometry(main_segments: u32) -> Geometry {
    let at = |segment: u32| BlockAddr(512 + segment * 512);
    let sit_segments = 2 * main_segments.div_ceil(55 * 512);
    let ssa = 4 + sit_segments;
    let main = ssa + main_segments.div_ceil(512);
    Geometry {
        block_count: u64::from(2 + main + main_segments) * 512,
        features: Features(0),
        segment0_blkaddr: at(0),
        cp_blkaddr: at(0),
        sit_blkaddr: at(2),
        nat_blkaddr: at(2 + sit_segments),
        ssa_blkaddr: at(ssa),
        main_blkaddr: at(main),
        segment_count: main + main_segments,
        sit_segments,
        nat_segments: 2,
        ssa_segments: main - ssa,
        main_segments,
        sections: main_segments,
        segs_per_sec: 1,
        secs_per_zone: 1,
        cp_payload: 0,
        root_ino: Nid(3),
    }
}

/// A manager of `lanes` lanes in each log, whose segments behind the first six hold what `entry` says.
pub fn manager(segments: u32, lanes: usize, entry: impl Fn(u32) -> RawSitEntry) -> SegmentManager {
    let geometry = geometry(segments);
    let entries = (0..segments).map(|segment| if segment < 6 { RawSitEntry::ZERO } else { entry(segment) }).collect();
    let logs = LogType::ALL.map(|log| LogState {
        segment: SegmentNo(log.number().into()),
        next_offset: 0,
        alloc_type: 0,
        summary: SummaryBlock::new_box(),
    });
    let bitmap = vec![0; geometry.sit_bitmap_size()];
    SegmentManager::new(SegmentConfig::new(geometry, 0, 0).lanes(lanes), entries, bitmap, logs)
        .expect("the tables agree")
}
