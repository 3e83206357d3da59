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
