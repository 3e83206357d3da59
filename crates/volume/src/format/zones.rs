//! The zones of the devices of a new volume.

use f2fs_device::{BlockDevice, Zone, ZoneChange, ZoneState};
use f2fs_format::mkfs::DeviceZones;

use super::FormatVolumeError;
use super::write::Writer;

/// The zones of each of the devices (bytes, and the first block in the whole); none for one without zones.
pub(super) fn of_each(device: &dyn BlockDevice, devices: &[(u64, u64)]) -> Result<Vec<Vec<Zone>>, FormatVolumeError> {
    let all = device.report_zones(0, usize::MAX)?;
    let broken = |zone: &&Zone| matches!(zone.state, ZoneState::ReadOnly | ZoneState::Offline);
    if let Some(zone) = all.iter().find(broken) {
        return Err(FormatVolumeError::Zone { zone: zone.number, start: zone.start, state: zone.state });
    }
    let ends = devices.iter().skip(1).map(|(_, start)| *start).chain([u64::MAX]);
    let of_device = |((_, start), end): (&(u64, u64), u64)| {
        all.iter().filter(|zone| (*start..end).contains(&zone.start)).copied().collect()
    };
    Ok(devices.iter().zip(ends).map(of_device).collect())
}

/// The properties of a device's zones that the plan needs.
pub(super) fn planned(zones: &[Zone]) -> Option<DeviceZones> {
    let first = zones.first()?;
    let conventional = zones.iter().take_while(|zone| zone.state == ZoneState::Conventional).count() as u64;
    let capacities = zones.iter().map(|zone| zone.capacity).collect();
    Some(DeviceZones { zone_blocks: first.blocks, conventional, capacities })
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
