//! The zones that a volume lies on, while it is open for writing.
//!
//! Each section of the main area is a zone, written from its start to its end by one log ([`SegmentManager`]); a device
//! between the volume and the zones keeps the order ([`OrderedZones`]). What a volume does with them, and when, stands
//! in `zoning.rs`. A zone that cannot be reset is worn out: its section is given to no log any more.
//!
//! # Locking
//!
//! `left` is held for a moment, and nothing is taken under it. Zones are reset and finished where nothing writes to
//! them.

use f2fs_device::{BlockDevice, DeviceError, OrderedZones, Zone, ZoneChange, ZoneState};
use f2fs_format::{BLOCKS_PER_SEGMENT, Geometry, LogType, SegmentNo};
use f2fs_segment::{BlockMap, Run, SegmentManager};
use f2fs_sync::{Mutex, PlainArc};

use crate::VolumeError;
use crate::kept_sections::KeptSections;

/// The zones under a volume.
#[derive(Debug)]
pub(crate) struct Zones {
    pub(crate) ordered: PlainArc<OrderedZones>,
    /// The first block of the main area, and the one behind its last.
    main: std::ops::Range<u64>,
    /// Blocks of a section.
    section: u64,
    /// The blocks of a zone that can be written, if not all. Of a section that is no zone no more are written: Linux
    /// takes the rest of any section for a place where no block can be, and refuses a volume with one there (since
    /// 6.4).
    capacity: Option<u32>,
    /// The zones that no log went on writing when the last checkpoint was frozen.
    left: Mutex<Vec<u64>>,
}

/// Blocks that there is room for, where each section has so many that can be written, if not all, and so many segments are
/// kept back; `u64::MAX` if that is no less than what the checkpoint promises.
///
/// mkfs.f2fs takes a segment for usable if any block of it is. So it may promise users more than the zones hold, or so
/// much that nothing is left to clean with: a volume that is filled that far takes no overwrite any more. Here as many
/// sections are kept back as mkfs.f2fs keeps segments, and [those that logs and cleaning need](KeptSections::least).
pub(crate) fn room(geometry: &Geometry, capacity: Option<u32>, overprovision_segments: u32) -> u64 {
    let kept = KeptSections::new(geometry, overprovision_segments);
    if capacity.is_none() && kept.count == kept.least() {
        return u64::MAX;
    }
    let sections = geometry.main_segments / geometry.segs_per_sec;
    let blocks = capacity.unwrap_or(geometry.segs_per_sec * BLOCKS_PER_SEGMENT);
    u64::from(sections.saturating_sub(kept.least())) * u64::from(blocks)
}

/// Whether a zone is one of the main area, and written in its order.
fn is_inside(zone: &Zone, geometry: &Geometry) -> bool {
    zone.start < u64::from(geometry.main_end().0) && zone.state != ZoneState::Conventional
}

/// The blocks of each zone of the main area that can be written, by the first one that is not dead.
fn capacity_of(zones: &[Zone], geometry: &Geometry) -> Option<u64> {
    let inside = zones.iter().filter(|zone| is_inside(zone, geometry));
    inside.map(|zone| zone.capacity).find(|capacity| *capacity != 0)
}

fn less_than_all(capacity: Option<u64>, geometry: &Geometry) -> Option<u32> {
    let section = geometry.segs_per_sec * BLOCKS_PER_SEGMENT;
    capacity.filter(|blocks| *blocks < section.into()).map(|blocks| blocks as u32)
}

/// The blocks of each section that can be written, if not all, of a volume that is open for reading. A device without
/// zones, such as a copy of the volume in a file, does not know.
pub(crate) fn capacity_to_show(device: &dyn BlockDevice, geometry: &Geometry) -> Result<Option<u32>, DeviceError> {
    if device.info().zones.is_none() {
        return Ok(None);
    }
    Ok(less_than_all(capacity_of(&device.report_zones(0, usize::MAX)?, geometry), geometry))
}

/// Whether the blocks in use of so many segments were written: none of them can lie behind the write pointer of its
/// zone. Some do where the devices of a volume have changed places, or are others.
pub(crate) fn check_written(
    device: &dyn BlockDevice,
    geometry: &Geometry,
    segments: impl Iterator<Item = SegmentNo>,
    in_use: impl Fn(SegmentNo) -> Result<BlockMap, VolumeError>,
) -> Result<(), VolumeError> {
    let zones = device.report_zones(0, usize::MAX)?;
    for segment in segments {
        let first = u64::from(geometry.block_at(segment, 0).0);
        let behind = zones.partition_point(|zone| zone.start <= first);
        let Some(zone) = behind.checked_sub(1).map(|at| &zones[at]) else { continue };
        let Some(found) = zone.written.filter(|_| is_inside(zone, geometry)) else { continue };
        let Some((offset, blocks)) = in_use(segment)?.runs(true).last() else { continue };
        let expected = first - zone.start + u64::from(offset + blocks);
        if expected > found && first < zone.start + zone.blocks {
            let (zone, start, what) = (zone.number, zone.start, "the number of blocks that are written");
            return Err(VolumeError::Zone { zone, start, what, found, expected });
        }
    }
    Ok(())
}

impl Zones {
    /// Looks whether the zones of a device are those of the volume, and puts writes in order.
    pub(crate) fn find(device: PlainArc<dyn BlockDevice>, geometry: &Geometry) -> Result<Zones, VolumeError> {
        let all = device.report_zones(0, usize::MAX)?;
        if all.is_empty() {
            return Err(VolumeError::NoZones);
        }
        let section = u64::from(geometry.segs_per_sec) * u64::from(BLOCKS_PER_SEGMENT);
        let main = u64::from(geometry.main_blkaddr.0)..u64::from(geometry.main_end().0);
        let inside = |zone: &&Zone| is_inside(zone, geometry);
        let capacity = capacity_of(&all, geometry);
        for zone in all.iter().filter(inside) {
            let check = |what, expected: u64, found: u64| {
                let (start, zone) = (zone.start, zone.number);
                if expected == found { Ok(()) } else { Err(VolumeError::Zone { zone, start, what, found, expected }) }
            };
            if zone.start < main.start {
                check("the first block that is written in its order", main.start, zone.start)?;
            }
            check("the distance to a section", 0, (zone.start - main.start) % section)?;
            check("the number of blocks", section, zone.blocks)?;
            check("the number of blocks that can be written", zone.capacity.min(zone.blocks), zone.capacity)?;
            // A dead zone may have none.
            let capacity = capacity.filter(|_| zone.state != ZoneState::Offline).unwrap_or(zone.capacity);
            check("the number of blocks that can be written", capacity, zone.capacity)?;
        }
        let capacity = less_than_all(capacity, geometry);
        let ordered = PlainArc::new(OrderedZones::new(device)?);
        let needed = LogType::ALL.len() as u32;
        match ordered.limit() {
            Some(limit) if limit < needed => Err(VolumeError::ZoneLimit { limit, needed }),
            _ => Ok(Zones { ordered, main, section, capacity, left: Mutex::new(Vec::new()) }),
        }
    }

    /// The device that keeps the order.
    pub(crate) fn device(&self) -> PlainArc<dyn BlockDevice> {
        self.ordered.clone()
    }

    /// The blocks of each section that can be written, if not all.
    pub(crate) fn capacity(&self) -> Option<u32> {
        self.capacity
    }

    /// Zones that the device lets be written to at a time, if there is a limit.
    pub(crate) fn limit(&self) -> Option<u32> {
        self.ordered.limit()
    }

    /// Writes that are missing in front of others never come: the volume has stopped.
    pub(crate) fn give_up(&self) {
        self.ordered.give_up();
    }

    pub(crate) fn section_of(&self, block: u64) -> u32 {
        ((block - self.main.start) / self.section) as u32
    }

    /// The zones of the main area that are written in their order.
    pub(crate) fn sequential(&self) -> Result<Vec<Zone>, DeviceError> {
        let mut zones = self.ordered.report_zones(self.main.start, usize::MAX)?;
        zones.retain(|zone| zone.state != ZoneState::Conventional && self.main.contains(&zone.start));
        Ok(zones)
    }

    /// Makes the zone of a free section empty. If that fails no log gets it.
    pub(crate) fn reset(&self, segments: &SegmentManager, start: u64) {
        if self.ordered.change_zone(start, ZoneChange::Reset).is_err() {
            segments.retire_section(self.section_of(start));
        }
    }

    /// Notes the zones that are written in part and that nobody goes on writing. The gate is closed: no write to them
    /// is on its way.
    pub(crate) fn note_left(&self, segments: &SegmentManager) {
        let standing = segments.sections_of_logs();
        let left = |start: &u64| self.main.contains(start) && !standing.contains(&self.section_of(*start));
        *self.left.lock() = self.ordered.active().into_iter().filter(left).collect();
    }

    /// Finishes zones that were noted, unless they are full by now: the device counts them. One that cannot be finished
    /// is read as before.
    pub(crate) fn finish_left(&self) {
        let left = core::mem::take(&mut *self.left.lock());
        let active = self.ordered.active();
        for start in left.into_iter().filter(|start| active.contains(start)) {
            let _ = self.ordered.change_zone(start, ZoneChange::Finish);
        }
    }

    /// A checkpoint is durable: sections that it frees as a whole are reset, and zones that were left before it are
    /// finished. Returns the runs that may be discarded: they lie in no zone that is reset.
    pub(crate) fn begin_anew(&self, segments: &SegmentManager) -> Vec<Run> {
        for section in segments.sections_freed_by_checkpoint() {
            let start = self.main.start + u64::from(section) * self.section;
            if self.ordered.is_sequential(start) {
                self.reset(segments, start);
            }
        }
        self.finish_left();
        let mut freed = segments.freed_by_checkpoint();
        freed.retain(|run| {
            let last = u64::from(run.addr.0) + u64::from(run.len) - 1;
            !self.ordered.is_sequential(run.addr.0.into()) && !self.ordered.is_sequential(last)
        });
        freed
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
