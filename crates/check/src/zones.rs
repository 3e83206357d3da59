//! Zones: blocks in use of a zone that is written in order lie before its write pointer.

use f2fs_device::{Zone, ZoneState};
use f2fs_format::feature::Features;
use f2fs_format::{BLOCKS_PER_SEGMENT, Geometry, SegmentNo, bits::msb};

use super::error::CheckError;
use super::finding::{FindingKind, Place};
use super::report::Collector;
use super::source::Source;

/// The zones of a zoned volume.
#[derive(Debug, Default)]
pub(super) struct Zones {
    /// In their order. Empty for a volume or a device without zones.
    zones: Vec<Zone>,
    /// Whether the volume is zoned and the device says nothing of zones: an image of a zoned device, say.
    unknown: bool,
}

/// The kinds of blocks that a segment may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Anything: no zone has them, or a conventional one.
    Any,
    /// So many blocks from its start are written, out of so many that can be.
    Written { written: u32, usable: u32 },
}

impl Zones {
    /// Asks the device.
    pub(super) fn load(source: &Source<'_>, geometry: &Geometry, findings: &Collector) -> Result<Zones, CheckError> {
        if !geometry.features.contains(Features::BLKZONED) {
            return Ok(Zones::default());
        }
        let zones = source.zones()?;
        let section = u64::from(geometry.segs_per_sec) * u64::from(BLOCKS_PER_SEGMENT);
        let main = u64::from(geometry.main_blkaddr.0);
        let sequential = |zone: &&Zone| zone.state != ZoneState::Conventional;
        for zone in zones.iter().filter(sequential) {
            let end = zone.start + zone.blocks;
            if zone.blocks != section && end < geometry.main_end().0.into() {
                findings.expect(FindingKind::Zone, &Place::Volume, "blocks in a zone", section, zone.blocks);
                break;
            }
            if zone.start < main && end > 2 {
                let what = "first block of the zones that are written in their order";
                findings.expect(FindingKind::Zone, &Place::Volume, what, main, zone.start);
                break;
            }
        }
        Ok(Zones { unknown: zones.is_empty(), zones })
    }

    /// Whether blocks of a segment can be written at all, as far as that is known.
    pub(super) fn is_usable(&self, segment: SegmentNo, geometry: &Geometry) -> bool {
        !matches!(self.room(segment, geometry), Room::Written { usable: 0, .. })
    }

    /// Whether it is known which segments can be written.
    pub(super) fn are_known(&self) -> bool {
        !self.unknown
    }

    fn room(&self, segment: SegmentNo, geometry: &Geometry) -> Room {
        let start = u64::from(geometry.block_at(segment, 0).0);
        let behind = self.zones.partition_point(|zone| zone.start <= start);
        let Some(zone) = behind.checked_sub(1).map(|at| &self.zones[at]) else { return Room::Any };
        if start >= zone.start + zone.blocks || zone.state == ZoneState::Conventional {
            return Room::Any;
        }
        let before = start - zone.start;
        let within = |blocks: u64| blocks.saturating_sub(before).min(BLOCKS_PER_SEGMENT.into()) as u32;
        let written = match zone.state {
            ZoneState::Offline => 0,
            // Of a full or worn-out zone the pointer means nothing.
            _ => zone.written.unwrap_or(zone.capacity),
        };
        Room::Written { written: within(written), usable: within(zone.capacity) }
    }

    /// Reports valid blocks that the zone of their segment does not hold. `map`: which blocks are valid.
    pub(super) fn check_segment(&self, segment: SegmentNo, map: &[u8], geometry: &Geometry, findings: &Collector) {
        let Room::Written { written, .. } = self.room(segment, geometry) else { return };
        let last = (written..BLOCKS_PER_SEGMENT).rev().find(|offset| msb::test(map, *offset as usize));
        if let Some(last) = last {
            let (place, what) =
                (Place::Segment(segment), "blocks of the zone that are written, by the last valid block");
            findings.expect(FindingKind::Zone, &place, what, u64::from(last) + 1, written.into());
        }
    }
}
