//! Shared by the unit tests.

use f2fs_format::feature::Features;
use f2fs_format::{BlockAddr, Geometry, Nid};

/// A geometry with so many main segments.
pub(crate) fn geometry(main_segments: u32, segs_per_sec: u32, secs_per_zone: u32) -> Geometry {
    let at = |segment: u32| BlockAddr(512 + segment * 512);
    Geometry {
        block_count: u64::from(9 + main_segments) * 512,
        features: Features(0),
        segment0_blkaddr: at(0),
        cp_blkaddr: at(0),
        sit_blkaddr: at(2),
        nat_blkaddr: at(4),
        ssa_blkaddr: at(6),
        main_blkaddr: at(7),
        segment_count: 7 + main_segments,
        sit_segments: 2,
        nat_segments: 2,
        ssa_segments: 1,
        main_segments,
        sections: main_segments / segs_per_sec,
        segs_per_sec,
        secs_per_zone,
        cp_payload: 0,
        root_ino: Nid(3),
    }
}
