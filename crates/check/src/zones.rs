//! Zones: blocks in use of a zone that is written in order lie before its write pointer.

use f2fs_device::{Zone, ZoneState};
use f2fs_format::checkpoint::flags;
use f2fs_format::feature::Features;
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Geometry, LogType, SegmentNo, bits::msb};

use super::error::CheckError;
use super::finding::{FindingKind, Place};
use super::pack::Pack;
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
    /// So many blocks from its start, since Linux takes the rest of any section for a place where no block can be
    /// (6.4).
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

    /// Whether a segment lies in no zone, and yet behind a zone's capacity: mkfs.f2fs counts it among the free ones,
    /// Linux does not.
    pub(super) fn is_doubtful(&self, segment: SegmentNo, geometry: &Geometry) -> bool {
        matches!(self.room(segment, geometry), Room::Within(0))
    }

    /// Whether it is known which segments can be written.
    pub(super) fn are_known(&self) -> bool {
        !self.unknown
    }

    /// All zones, in their order; none of a volume without.
    pub(super) fn all(&self) -> &[Zone] {
        &self.zones
    }

    /// The zone of a block, if it is one that is written in its order.
    pub(super) fn at(&self, addr: BlockAddr) -> Option<&Zone> {
        let block = u64::from(addr.0);
        let behind = self.zones.partition_point(|zone| zone.start <= block);
        let zone = behind.checked_sub(1).map(|at| &self.zones[at])?;
        (block < zone.start + zone.blocks && zone.state != ZoneState::Conventional).then_some(zone)
    }

    /// Whether a block lies in a zone that is written in its order.
    pub(super) fn is_sequential(&self, addr: BlockAddr) -> bool {
        self.at(addr).is_some()
    }

    /// Whether a block can have been written: in a zone, it lies in front of the write pointer.
    pub(super) fn is_written(&self, addr: BlockAddr) -> bool {
        self.at(addr).is_none_or(|zone| u64::from(addr.0) - zone.start < written(zone))
    }

    /// Whether a block lies in no zone, and yet behind a zone's capacity.
    pub(super) fn is_behind_capacity(&self, addr: BlockAddr, geometry: &Geometry) -> bool {
        geometry.locate(addr).is_some_and(
            |(segment, offset)| matches!(self.room(segment, geometry), Room::Within(blocks) if offset >= blocks),
        )
    }

    /// Blocks of a section that can be written.
    pub(super) fn section_blocks(&self, geometry: &Geometry) -> u32 {
        let section = geometry.segs_per_sec * BLOCKS_PER_SEGMENT;
        self.capacity.map_or(section, |capacity| (capacity as u32).clamp(1, section))
    }

    /// Whether a log can go on here: its zone, if there is one, is to be written at this block.
    pub(super) fn goes_on_at(&self, segment: SegmentNo, offset: u32, geometry: &Geometry) -> bool {
        let addr = geometry.block_at(segment, offset);
        match self.at(addr) {
            Some(zone) if matches!(zone.state, ZoneState::ReadOnly | ZoneState::Offline) => false,
            Some(zone) => zone.write_pointer() == Some(addr.0.into()) && u64::from(addr.0) < zone.start + zone.capacity,
            None => !self.is_behind_capacity(addr, geometry),
        }
    }

    /// Reports logs of a volume that was closed which stand off the write pointers of their zones. After a crash they
    /// may: whoever opens the volume for writing moves them (`f2fs_check_and_fix_write_pointer` in the kernel's
    /// `fs/f2fs/segment.c`).
    pub(super) fn check_logs(&self, pack: &Pack, geometry: &Geometry, findings: &Collector) {
        if !pack.has(flags::UMOUNT) {
            return;
        }
        for log in LogType::ALL.into_iter().filter(|log| geometry.has_log(*log)) {
            let (segment, offset) = pack.log(log);
            let block = u64::from(geometry.block_at(segment, offset).0);
            let Some(zone) = self.at(geometry.block_at(segment, 0)) else { continue };
            let (found, what) =
                (zone.start + written(zone), "block of the log's zone that is to be written, by the log");
            findings.expect(FindingKind::WritePointer, &Place::Log(log), what, block, found);
        }
    }

    fn room(&self, segment: SegmentNo, geometry: &Geometry) -> Room {
        let start = u64::from(geometry.block_at(segment, 0).0);
        let within = |blocks: u64, before: u64| blocks.saturating_sub(before).min(BLOCKS_PER_SEGMENT.into()) as u32;
        let Some(zone) = self.at(geometry.block_at(segment, 0)) else {
            let before = u64::from(segment.0 % geometry.segs_per_sec * BLOCKS_PER_SEGMENT);
            return self.capacity.map_or(Room::Any, |capacity| Room::Within(within(capacity, before)));
        };
        let before = start - zone.start;
        Room::Written { written: within(written(zone), before), usable: within(zone.capacity, before) }
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

/// Blocks of a zone that can be read.
fn written(zone: &Zone) -> u64 {
    match zone.state {
        ZoneState::Offline => 0,
        // Of a full or worn-out zone the pointer means nothing.
        _ => zone.written.unwrap_or(zone.capacity),
    }
}
