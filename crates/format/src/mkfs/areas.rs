//! The areas of a new volume, and where its logs begin.

use alloc::vec;
use alloc::vec::Vec;

use super::{DeviceZones, FormatOptions, SEGMENT_SIZE, within};
use crate::superblock::{MAGIC, SuperBlock};
use crate::{BLOCK_SIZE, BLOCKS_PER_SEGMENT, FormatError, LogType, nat, sit};

/// Bytes between the checkpoint header and the checksum at the end of the block: what both bitmaps share.
const BITMAPS_IN_CHECKPOINT: u64 = 4092 - 192;
/// The part of these bytes that the SIT bitmap may take, so that the NAT keeps at least a segment.
const SIT_BITMAP_IN_CHECKPOINT: u64 = BITMAPS_IN_CHECKPOINT - 64;
/// SIT bitmap of the largest volume.
const MAX_SIT_BITMAP: u64 = 298 * BITMAP_PER_SEGMENT;
/// Bytes of version bitmap for a segment of table blocks.
const BITMAP_PER_SEGMENT: u64 = BLOCKS_PER_SEGMENT as u64 / 8;
/// Zones that the logs need, and one more.
const LEAST_ZONES: u64 = 7;
/// `F2FS_MIN_SEGMENTS`.
const LEAST_SEGMENTS: u64 = 9;

/// Areas in segments, before they become a superblock.
#[derive(Clone, Debug)]
pub(super) struct Areas {
    segs_per_sec: u64,
    secs_per_zone: u64,
    block_count: u64,
    segment0: u64,
    /// Whole segments behind `segment0`.
    total: u64,
    /// How many of them each device has.
    on_each_device: Vec<u64>,
    /// Of these, the ones in whole zones.
    segments: u64,
    sit: u64,
    nat: u64,
    ssa: u64,
    cp_payload: u64,
    pub(super) sections: u64,
    /// The zones of each device; empty for a volume without any.
    zones: Vec<Option<DeviceZones>>,
}

impl Areas {
    /// `None` if the devices are too small.
    pub(super) fn new(options: &FormatOptions, devices: &[u64]) -> Option<Areas> {
        let in_sectors = |bytes: &u64| bytes - bytes % u64::from(options.sector_size());
        let (first, others) = devices.split_first()?;
        let per_segment = u64::from(BLOCKS_PER_SEGMENT);
        let (segs_per_sec, secs_per_zone) = (u64::from(options.segs_per_sec), u64::from(options.secs_per_zone));
        let zone = segs_per_sec * secs_per_zone;

        // Segment 0 begins at the first zone that leaves the two superblocks alone. Where zones follow on another
        // device, as far behind that as makes sections end where this device ends.
        let zoned = options.zones.iter().any(Option::is_some);
        let odd = if zoned && !others.is_empty() { in_sectors(first) % (zone * SEGMENT_SIZE) } else { 0 };
        let front = zone * SEGMENT_SIZE + odd;
        let mut on_each_device = vec![in_sectors(first).checked_sub(front)? / SEGMENT_SIZE];
        on_each_device.extend(others.iter().map(|bytes| bytes / SEGMENT_SIZE));
        if on_each_device.contains(&0) {
            return None;
        }
        let total: u64 = on_each_device.iter().sum();
        if total < LEAST_SEGMENTS {
            return None;
        }
        let segments = total - total % zone;

        let sit_half = segments.div_ceil(sit::ENTRIES_PER_BLOCK as u64).div_ceil(per_segment);
        let sit = 2 * sit_half;
        let left = segments.checked_sub(2 + sit)? * per_segment;
        let nat_half = left.div_ceil(nat::ENTRIES_PER_BLOCK as u64).div_ceil(per_segment);
        let sit_bitmap = (sit_half * BITMAP_PER_SEGMENT).min(MAX_SIT_BITMAP);
        let payload = |bytes: u64| bytes.div_ceil(BLOCK_SIZE as u64);
        let (nat_half, cp_payload) = if options.large_nat_bitmap {
            // A NAT entry for a fifth of the blocks; both bitmaps run on into the payload.
            let nat_half = (nat_half * 20 / 100).max(1);
            let bitmaps = sit_bitmap + nat_half * BITMAP_PER_SEGMENT;
            (nat_half, payload(bitmaps.saturating_sub(BITMAPS_IN_CHECKPOINT)))
        } else if sit_bitmap > SIT_BITMAP_IN_CHECKPOINT {
            (nat_half.min(BITMAPS_IN_CHECKPOINT / BITMAP_PER_SEGMENT), payload(sit_bitmap))
        } else {
            (nat_half.min((BITMAPS_IN_CHECKPOINT - sit_bitmap) / BITMAP_PER_SEGMENT), 0)
        };
        let nat = 2 * nat_half;

        // A summary block for each segment that is left, and the metadata filled up to whole zones.
        let ssa = (segments.checked_sub(2 + sit + nat)? + 1).div_ceil(per_segment);
        let meta_zones = (2 + sit + nat + ssa).div_ceil(zone);
        let ssa = meta_zones * zone - (2 + sit + nat);
        let zones = (segments / zone).checked_sub(meta_zones).filter(|zones| *zones >= LEAST_ZONES)?;
        Some(Areas {
            segs_per_sec,
            secs_per_zone,
            block_count: devices.iter().map(in_sectors).sum::<u64>() / BLOCK_SIZE as u64,
            on_each_device,
            segment0: front / BLOCK_SIZE as u64,
            total,
            segments,
            sit,
            nat,
            ssa,
            cp_payload,
            sections: zones * secs_per_zone,
            zones: options.zones.clone(),
        })
    }

    /// Segments on each device.
    pub(super) fn on_each_device(&self) -> &[u64] {
        &self.on_each_device
    }

    /// Segments of the main area.
    pub(super) fn main(&self) -> u64 {
        self.sections * self.segs_per_sec
    }

    /// The segments that mkfs.f2fs takes for usable: the main area and what lies behind the last zone. Of a device with
    /// zones, all segments with blocks that can be written, those in front of the volume's first one among them.
    pub(super) fn usable(&self) -> u64 {
        if self.zones.is_empty() {
            return self.main() + self.total - self.segments;
        }
        let of_device =
            |(zones, segments): (&Option<DeviceZones>, &u64)| zones.as_ref().map_or(*segments, DeviceZones::usable);
        let all: u64 = self.zones.iter().zip(&self.on_each_device).map(of_device).sum();
        all.saturating_sub(self.segments - self.main())
    }

    /// The segments of the main area in which a block can be written.
    pub(super) fn writable_main(&self) -> u64 {
        if self.zones.is_empty() {
            return self.main();
        }
        let (first, end) = (self.segments - self.main(), self.segments);
        let mut start = 0;
        let mut sum = 0;
        for (index, (zones, own)) in self.zones.iter().zip(&self.on_each_device).enumerate() {
            let (from, to) = (first.clamp(start, start + own), end.clamp(start, start + own));
            // Of the first device the volume's segments begin behind its front.
            let front = if index == 0 { self.segment0 / u64::from(BLOCKS_PER_SEGMENT) } else { 0 };
            sum += zones.as_ref().map_or(to - from, |zones| zones.usable_among(from - start + front, to - from));
            start += own;
        }
        sum
    }

    /// Whether all that is written in place lies where that can be.
    ///
    /// # Errors
    /// [`FormatError::Layout`].
    pub(super) fn check_zones(&self) -> Result<(), FormatError> {
        let per_segment = u64::from(BLOCKS_PER_SEGMENT);
        let main = self.segment0 + (self.segments - self.main()) * per_segment;
        let section = self.segs_per_sec * per_segment;
        let mut start = 0;
        for (index, (zones, own)) in self.zones.iter().zip(&self.on_each_device).enumerate() {
            match zones {
                Some(zones) if index == 0 => {
                    within("blocks in front of the first section, behind its zones", self.segment0 % section, 0, 0)?;
                    let needed = main.div_ceil(zones.zone_blocks);
                    within(
                        "conventional zones at the front of the first device",
                        zones.conventional,
                        needed,
                        u64::MAX,
                    )?;
                }
                Some(_) => within("block at which the zones begin", start, main, u64::MAX)?,
                None => {}
            }
            if index + 1 < self.on_each_device.len() {
                // A section lies on one device.
                within("segments of a device, behind its last whole section", own % self.segs_per_sec, 0, 0)?;
            }
            start += own * per_segment + if index == 0 { self.segment0 } else { 0 };
        }
        Ok(())
    }

    /// A superblock with these areas; identity, label, extensions and features are left empty.
    pub(super) fn superblock(&self, sector_size: u32) -> SuperBlock {
        let mut sb = SuperBlock::ZERO;
        sb.magic = MAGIC.into();
        (sb.major_ver, sb.minor_ver) = (1.into(), 15.into());
        sb.log_sectorsize = sector_size.ilog2().into();
        sb.log_sectors_per_block = (12 - sector_size.ilog2()).into();
        (sb.log_blocksize, sb.log_blocks_per_seg) = (12.into(), 9.into());
        sb.block_count = self.block_count.into();
        let word = |value: u64| (value as u32).into();
        (sb.segs_per_sec, sb.secs_per_zone) = (word(self.segs_per_sec), word(self.secs_per_zone));
        (sb.section_count, sb.segment_count) = (word(self.sections), word(self.segments));
        (sb.segment_count_ckpt, sb.segment_count_sit) = (word(2), word(self.sit));
        (sb.segment_count_nat, sb.segment_count_ssa) = (word(self.nat), word(self.ssa));
        sb.segment_count_main = word(self.main());
        sb.cp_payload = word(self.cp_payload);
        let mut at = self.segment0;
        sb.segment0_blkaddr = word(at);
        let areas = [
            (&mut sb.cp_blkaddr, 2),
            (&mut sb.sit_blkaddr, self.sit),
            (&mut sb.nat_blkaddr, self.nat),
            (&mut sb.ssa_blkaddr, self.ssa),
            (&mut sb.main_blkaddr, 0),
        ];
        for (addr, segments) in areas {
            *addr = word(at);
            at += segments * u64::from(BLOCKS_PER_SEGMENT);
        }
        (sb.node_ino, sb.meta_ino, sb.root_ino) = (1.into(), 2.into(), 3.into());
        sb
    }

    /// The segment in which each log begins, in the order of [`LogType::ALL`]: each in a zone of its own.
    pub(super) fn logs(&self, heap: bool) -> [u32; 6] {
        use LogType::{ColdData, ColdNode, HotData, HotNode, WarmData, WarmNode};
        let zone = self.segs_per_sec * self.secs_per_zone;
        let zones = self.sections / self.secs_per_zone;
        let mut at = [0u64; 6];
        if heap {
            // Nodes and directories from the end downwards, file data from the front.
            let last = (zones - 1) * zone + (self.secs_per_zone - 1) * self.segs_per_sec;
            for (index, log) in [HotNode, WarmNode, ColdNode, HotData].into_iter().enumerate() {
                at[log.index()] = last - index as u64 * zone;
            }
            at[WarmData.index()] = zone;
        } else if !self.zones.is_empty() {
            for (index, log) in [HotNode, WarmNode, ColdNode, HotData, WarmData, ColdData].into_iter().enumerate() {
                at[log.index()] = index as u64 * zone;
            }
        } else {
            // Nodes and directories in the first four zones, cold data at a quarter, warm data at the half.
            for (index, log) in [HotNode, WarmNode, ColdNode, HotData].into_iter().enumerate() {
                at[log.index()] = index as u64 * zone;
            }
            let beside = |wanted: u64, other: LogType| ((wanted - 1) * zone).max(at[other.index()] + zone);
            let cold = beside(zones / 4, HotData);
            at[ColdData.index()] = cold;
            at[WarmData.index()] = ((zones / 2 - 1) * zone).max(cold + zone);
        }
        let shared = (0..6).any(|log| at[..log].contains(&at[log]));
        if shared {
            at = core::array::from_fn(|log| log as u64 * zone);
        }
        at.map(|segment| segment as u32)
    }
}
