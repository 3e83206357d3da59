//! The zones of the devices of a new volume.

use f2fs_device::{BlockDevice, DeviceInfo, Zone, ZoneChange, ZoneState};
use f2fs_format::LogType;
use f2fs_format::feature::Features;
use f2fs_format::mkfs::{DeviceZones, FormatOptions, VolumePlan};

use super::write::Writer;
use super::{FewZones, FormatVolumeError};
use crate::kept_sections::KeptSections;

/// Each log of a volume that is open for writing has a zone that is written in part.
pub(super) fn allow_all_logs(info: &DeviceInfo) -> Result<(), FormatVolumeError> {
    let needed = LogType::ALL.len() as u32;
    match info.zones.and_then(|limits| limits.at_once()) {
        Some(limit) if limit < needed => Err(FormatVolumeError::ZoneLimit { limit, needed }),
        _ => Ok(()),
    }
}

/// The zones of each of the devices (bytes, and the first block in the whole); none for one without zones.
pub(super) fn of_each(device: &dyn BlockDevice, devices: &[(u64, u64)]) -> Result<Vec<Vec<Zone>>, FormatVolumeError> {
    let all = device.report_zones(0, usize::MAX)?;
    let broken = |zone: &&Zone| matches!(zone.state, ZoneState::ReadOnly | ZoneState::Offline);
    if let Some(zone) = all.iter().find(broken) {
        return Err(FormatVolumeError::Zone { zone: zone.number, start: zone.start, state: zone.state });
    }
    let ends = devices.iter().skip(1).map(|(_, start)| *start).chain([u64::MAX]);
    let of_device = |((_, start), end): (&(u64, u64), u64)| {
        let zones: Vec<Zone> = all.iter().filter(|zone| (*start..end).contains(&zone.start)).copied().collect();
        are_alike(&zones, *start).map(|()| zones)
    };
    devices.iter().zip(ends).map(of_device).collect()
}

/// Looks whether the zones of a device that begins at block `begin` follow each other, are of one size, and can be
/// written as far as each other. The last one may be shorter.
fn are_alike(zones: &[Zone], begin: u64) -> Result<(), FormatVolumeError> {
    let Some((first, last)) = zones.first().zip(zones.last()) else { return Ok(()) };
    let mut capacity = None;
    for (zone, number) in zones.iter().zip(0_u64..) {
        let check = |what, found: u64, expected: u64| {
            let (zone, start) = (zone.number, zone.start);
            let unlike = FormatVolumeError::ZoneUnlike { zone, start, what, found, expected };
            if found == expected { Ok(()) } else { Err(unlike) }
        };
        let shorter = zone.start == last.start && zone.blocks < first.blocks;
        let blocks = if shorter { zone.blocks } else { first.blocks };
        check("the first block", zone.start, begin.saturating_add(number.saturating_mul(first.blocks)))?;
        check("the number of blocks", zone.blocks, blocks)?;
        if zone.state != ZoneState::Conventional {
            let possible = zone.capacity.clamp(1, blocks);
            let expected = blocks.min(*capacity.get_or_insert(possible));
            check("the number of blocks that can be written", zone.capacity, expected)?;
        }
    }
    Ok(())
}

/// The properties of a device's zones that the plan needs.
pub(super) fn planned(zones: &[Zone]) -> Option<DeviceZones> {
    let first = zones.first()?;
    let conventional = zones.iter().take_while(|zone| zone.state == ZoneState::Conventional).count() as u64;
    let capacities = zones.iter().map(|zone| zone.capacity).collect();
    Some(DeviceZones { zone_blocks: first.blocks, conventional, capacities })
}

/// Blocks that users of a new volume can fill: what its checkpoint promises may be more than there is room for.
pub(super) fn user_blocks(plan: &VolumePlan, zones: &[Vec<Zone>]) -> Result<u64, FormatVolumeError> {
    if zones.iter().all(Vec::is_empty) {
        return Ok(plan.checkpoint.user_blocks);
    }
    let written_in_order = zones.iter().flatten().find(|zone| zone.state != ZoneState::Conventional);
    let smaller = written_in_order.filter(|zone| zone.capacity < zone.blocks).map(|zone| zone.capacity as u32);
    let (geometry, overprovision) = (&plan.geometry, plan.checkpoint.overprovision_segments);
    match crate::zones::room(geometry, smaller, overprovision) {
        0 => Err(FormatVolumeError::TooFewZones {
            zones: geometry.main_segments / geometry.segs_per_sec,
            needed: KeptSections::new(geometry, overprovision).least() + 1,
        }),
        room => Ok(plan.checkpoint.user_blocks.min(room)),
    }
}

/// Whether a planned volume on devices of so many bytes has so few zones that it is slow once it is nearly full.
pub(super) fn are_few(plan: &VolumePlan, options: &FormatOptions, bytes: &[u64]) -> Option<FewZones> {
    let kept = |plan: &VolumePlan| KeptSections::new(&plan.geometry, plan.checkpoint.overprovision_segments);
    let wanted = kept(plan).wanted(1);
    if !options.features.contains(Features::BLKZONED) || kept(plan).count >= wanted {
        return None;
    }
    let keeps_enough = |percent: &u32| {
        let mut options = options.clone();
        options.overprovision = Some(f64::from(*percent));
        VolumePlan::on(&options, bytes).is_ok_and(|plan| kept(&plan).count >= wanted)
    };
    Some(FewZones {
        zones: plan.geometry.main_segments / plan.geometry.segs_per_sec,
        kept: kept(plan).count,
        wanted,
        overprovision: (1..=50).find(keeps_enough),
    })
}

/// Whether a block lies in a zone that is written in its order only.
pub(super) fn is_sequential(zone: &Zone, block: u64) -> bool {
    zone.state != ZoneState::Conventional && (zone.start..zone.start + zone.blocks).contains(&block)
}

/// Makes all zones empty.
pub(super) fn reset<'a>(writer: &Writer<'_>, zones: impl Iterator<Item = &'a Zone>) -> Result<(), FormatVolumeError> {
    for zone in zones.filter(|zone| !matches!(zone.state, ZoneState::Conventional | ZoneState::Empty)) {
        writer.device.change_zone(zone.start, ZoneChange::Reset)?;
        writer.go_on()?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use f2fs_device::{MemoryDevice, ZoneLayout, ZonedDevice};

    use super::*;
    use crate::format::{FormatReport, format, format_until};

    /// Zones of 512 blocks from a block on, of which 300 can be written; the first two are conventional.
    fn alike(begin: u64) -> Vec<Zone> {
        let zone = |number: u32| {
            let start = begin + 512 * u64::from(number);
            let (capacity, state) = match number {
                0 | 1 => (512, ZoneState::Conventional),
                _ => (300, ZoneState::Empty),
            };
            Zone::new(number, start, 512, capacity, state, None)
        };
        (0..8).map(zone).collect()
    }

    /// What is wrong with zones that are bent: the number of one, the quantity, its value, and that of the others.
    fn wrong(begin: u64, bend: impl FnOnce(&mut Vec<Zone>)) -> Option<(u32, &'static str, u64, u64)> {
        let mut zones = alike(begin);
        bend(&mut zones);
        match are_alike(&zones, begin) {
            Ok(()) => None,
            Err(FormatVolumeError::ZoneUnlike { zone, what, found, expected, .. }) => {
                Some((zone, what, found, expected))
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn zones_of_a_device_follow_each_other_and_are_of_one_size() {
        for begin in [0, 1000] {
            assert_eq!(wrong(begin, |_| {}), None);
            assert_eq!(wrong(begin, Vec::clear), None);
            let (first, second) = (begin + 2 * 512 + 1, begin + 2 * 512);
            assert_eq!(wrong(begin, |zones| zones[2].start += 1), Some((2, "the first block", first, second)));
            assert_eq!(wrong(begin, |zones| zones[2].blocks = 256), Some((2, "the number of blocks", 256, 512)));
            assert_eq!(wrong(begin, |zones| zones[7].blocks = 1024), Some((7, "the number of blocks", 1024, 512)));
            // The last one may be shorter.
            assert_eq!(wrong(begin, |zones| zones[7].blocks = 400), None);
            let shorter = |zones: &mut Vec<Zone>| (zones[7].blocks, zones[7].capacity) = (200, 200);
            assert_eq!(wrong(begin, shorter), None);
        }
        let what = "the number of blocks that can be written";
        assert_eq!(wrong(0, |zones| zones[5].capacity = 299), Some((5, what, 299, 300)));
        assert_eq!(wrong(0, |zones| zones[5].capacity = 512), Some((5, what, 512, 300)));
        assert_eq!(wrong(0, |zones| zones[2].capacity = 0), Some((2, what, 0, 1)));
        assert_eq!(wrong(0, |zones| zones[1].capacity = 7), None, "it is written anywhere");
    }

    #[test]
    fn a_block_of_a_sequential_zone() {
        let zones = alike(1000);
        assert!(!is_sequential(&zones[1], 1512) && !is_sequential(&zones[2], 2023) && !is_sequential(&zones[2], 2536));
        assert!(is_sequential(&zones[2], 2024) && is_sequential(&zones[2], 2535));
        let planned = planned(&zones).unwrap();
        assert_eq!((planned.zone_blocks, planned.conventional), (512, 2));
    }

    fn zoned() -> FormatOptions {
        FormatOptions::default().with_features(Features::BLKZONED)
    }

    fn device(zones: u64, blocks: u64, capacity: u64) -> ZonedDevice<MemoryDevice> {
        let layout = ZoneLayout::new(blocks).with_conventional(8).with_capacity(capacity);
        ZonedDevice::new(MemoryDevice::new(zones * blocks), layout).unwrap()
    }

    fn made(zones: u64, capacity: u64, options: &FormatOptions) -> FormatReport {
        format(&device(zones, 512, capacity), options).unwrap()
    }

    #[test]
    fn users_are_promised_what_the_zones_hold() {
        let report = made(64, 512, &zoned());
        let kept = report.overprovision_segments;
        assert!(report.user_blocks <= u64::from(56 - kept) * 512);
        let report = made(64, 300, &zoned());
        assert_eq!(report.user_blocks, u64::from(56 - report.overprovision_segments) * 300);
        // Without zones as mkfs.f2fs says.
        let report = format(&MemoryDevice::new(64 << 8), &FormatOptions::default()).unwrap();
        assert_eq!(report.user_blocks, 4096);
    }

    #[test]
    fn zones_that_are_all_kept_from_users_are_too_few() {
        let tried = |zones: u64| format(&device(zones, 1024, 1024), &zoned());
        let fewest = (12..64).find(|zones| tried(*zones).is_ok()).unwrap();
        let Err(FormatVolumeError::TooFewZones { zones, needed }) = tried(fewest - 1) else {
            panic!("{:?}", tried(fewest - 1))
        };
        assert_eq!(needed, zones + 1);
        assert!(u64::from(zones) < fewest - 1, "some have the areas in front");
        let report = tried(fewest).unwrap();
        assert_eq!(report.few_zones.unwrap().zones, needed);
    }

    #[test]
    fn a_volume_of_few_zones_is_told_how_many_it_needs() {
        let few = made(64, 512, &zoned()).few_zones.unwrap();
        assert_eq!((few.zones, few.kept, few.wanted), (56, 37, 39));
        let percent = few.overprovision.unwrap();
        let is_enough = |percent: u32| {
            let mut options = zoned();
            options.overprovision = Some(f64::from(percent));
            format(&device(64, 512, 512), &options).is_ok_and(|report| report.few_zones.is_none())
        };
        assert!(is_enough(percent) && !is_enough(percent - 1), "{percent}");
        // As many as are needed are enough.
        let exact = (64..96).map(|zones| made(zones, 512, &zoned())).find(|report| report.overprovision_segments == 39);
        assert_eq!(exact.unwrap().few_zones, None);
        assert_eq!(format(&MemoryDevice::new(64 << 8), &FormatOptions::default()).unwrap().few_zones, None);
    }

    #[test]
    fn zones_are_reset_by_a_format() {
        let device = device(64, 512, 512);
        for zone in 20..23 {
            device.write_slice(zone * 512, &[7; 4096]).unwrap();
        }
        device.finish(22).unwrap();
        let stops = |from: u32| {
            let asked = std::cell::Cell::new(0);
            let stop = || asked.replace(asked.get() + 1) >= from;
            let result = format_until(&device, &zoned(), &stop);
            let untouched = [ZoneState::Conventional, ZoneState::Empty];
            let written = device.report().filter(|zone| !untouched.contains(&zone.state)).count();
            (matches!(result, Err(FormatVolumeError::Stopped { touched: true })), written)
        };
        // It is asked before anything is written, when the old superblocks are gone, and behind each zone.
        assert_eq!(stops(1), (true, 3));
        assert_eq!(stops(2), (true, 2));
        assert_eq!(stops(3), (true, 0), "two at once");
        format(&device, &zoned()).unwrap();
        for zone in 20..23 {
            assert_eq!(device.zone(zone).unwrap().state, ZoneState::Empty);
        }
        // What a volume has written of zones is reset for the next one.
        let before: Vec<Zone> = device.report().collect();
        format(&device, &zoned().forced()).unwrap();
        assert!(device.report().eq(before));
    }
}
