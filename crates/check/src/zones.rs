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
    /// The blocks of a zone that can be written, if not all.
    capacity: Option<u64>,
}

/// The kinds of blocks that a segment may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Anything: no zone has them, or a conventional one.
    Any,
    /// So many blocks from its start are written, out of so many that can be.
    Written { written: u32, usable: u32 },
    /// So many blocks from its start, since Linux takes the rest of any section for a place where no block can be (6.4).
    Within(u32),
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
        let capacity = zones.iter().filter(sequential).map(|zone| zone.capacity).find(|capacity| *capacity != 0);
        let capacity = capacity.filter(|capacity| *capacity < section);
        Ok(Zones { unknown: zones.is_empty(), zones, capacity })
    }

    /// Whether blocks of a segment can be written at all, as far as that is known.
    pub(super) fn is_usable(&self, segment: SegmentNo, geometry: &Geometry) -> bool {
        !matches!(self.room(segment, geometry), Room::Written { usable: 0, .. })
    }

    /// Whether a segment lies in no zone, and yet behind a zone's capacity: mkfs.f2fs counts it among the free ones, Linux does not.
    pub(super) fn is_doubtful(&self, segment: SegmentNo, geometry: &Geometry) -> bool {
        matches!(self.room(segment, geometry), Room::Within(0))
    }

    /// Whether it is known which segments can be written.
    pub(super) fn are_known(&self) -> bool {
        !self.unknown
    }

    fn room(&self, segment: SegmentNo, geometry: &Geometry) -> Room {
        let start = u64::from(geometry.block_at(segment, 0).0);
        let within = |blocks: u64, before: u64| blocks.saturating_sub(before).min(BLOCKS_PER_SEGMENT.into()) as u32;
        let behind = self.zones.partition_point(|zone| zone.start <= start);
        let zone = behind.checked_sub(1).map(|at| &self.zones[at]);
        let in_zone = |zone: &&Zone| start < zone.start + zone.blocks && zone.state != ZoneState::Conventional;
        let Some(zone) = zone.filter(in_zone) else {
            let before = u64::from(segment.0 % geometry.segs_per_sec * BLOCKS_PER_SEGMENT);
            return self.capacity.map_or(Room::Any, |capacity| Room::Within(within(capacity, before)));
        };
        let before = start - zone.start;
        let written = match zone.state {
            ZoneState::Offline => 0,
            // Of a full or worn-out zone the pointer means nothing.
            _ => zone.written.unwrap_or(zone.capacity),
        };
        Room::Written { written: within(written, before), usable: within(zone.capacity, before) }
    }

    /// Reports valid blocks that the zone of their segment does not hold. `map`: which blocks are valid.
    pub(super) fn check_segment(&self, segment: SegmentNo, map: &[u8], geometry: &Geometry, findings: &Collector) {
        let (room, what) = match self.room(segment, geometry) {
            Room::Any => return,
            Room::Written { written, .. } => (written, "blocks of the zone that are written, by the last valid block"),
            Room::Within(blocks) => (blocks, "blocks in front of the capacity of zones, by the last valid block"),
        };
        if let Some(last) = (room..BLOCKS_PER_SEGMENT).rev().find(|offset| msb::test(map, *offset as usize)) {
            findings.expect(FindingKind::Zone, &Place::Segment(segment), what, u64::from(last) + 1, room.into());
        }
    }
}
