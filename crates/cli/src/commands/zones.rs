//! `f2fs zones`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use f2fs::device::{BLOCK_SIZE, BlockDevice, KeptZones, ZoneState};
use f2fs::uring::OpenOptions;
use f2fs_workload::shell::Quoted;
use serde_json::json;

use crate::args::zones::{Zones, ZonesArgs};
use crate::error::CliError;
use crate::medium;
use crate::size::human;

pub(crate) fn run(args: &ZonesArgs) -> Result<(), CliError> {
    if let Some(zones) = &args.make {
        make(&args.image, zones)?;
    }
    let device = medium::open(&args.image, true, OpenOptions::new())?;
    let Some(limits) = device.info().zones else {
        return Err(CliError::at(&args.image, "has no zones"));
    };
    let zones = device.report_zones(0, usize::MAX).map_err(|error| CliError::at(&args.image, error))?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let zone = |zone: &f2fs::device::Zone| {
            json!({
                "number": zone.number, "start": zone.start, "blocks": zone.blocks, "capacity": zone.capacity,
                "state": zone.state.to_string(), "written": zone.written,
            })
        };
        let value = json!({
            "zone_blocks": limits.zone_blocks, "max_open": limits.max_open, "max_active": limits.max_active,
            "zones": zones.iter().map(zone).collect::<Vec<_>>(),
        });
        writeln!(out, "{value:#}")?;
        return Ok(());
    }
    let bytes = |blocks: u64| human(blocks * BLOCK_SIZE as u64);
    let conventional = zones.iter().filter(|zone| zone.state == ZoneState::Conventional).count();
    let name = Quoted::path(&args.image);
    writeln!(
        out,
        "{name}: {} zones of {}, {conventional} of them conventional",
        zones.len(),
        bytes(limits.zone_blocks)
    )?;
    let written = zones.iter().filter(|zone| !matches!(zone.state, ZoneState::Conventional | ZoneState::Empty));
    for zone in written {
        let blocks = zone.written.map_or_else(String::new, |blocks| format!(", {blocks} blocks written"));
        writeln!(out, "zone {} at block {}: {}{blocks}, of {}", zone.number, zone.start, zone.state, zone.capacity)?;
    }
    Ok(())
}

/// Makes a file with zones; if that fails, there is none.
fn make(image: &Path, zones: &Zones) -> Result<(), CliError> {
    if zones.zone == 0 || !zones.size.is_multiple_of(zones.zone) {
        return Err(CliError::usage("SIZE is not a multiple of ZONE"));
    }
    let layout = zones.layout();
    let bytes = KeptZones::<Arc<dyn BlockDevice>>::blocks_needed(&layout, zones.size / zones.zone)
        .and_then(|blocks| blocks.checked_mul(BLOCK_SIZE as u64))
        .ok_or_else(|| CliError::usage("the size is more than a file can have"))?;
    let device = medium::create(image, bytes)?;
    KeptZones::create(device, layout).map(drop).map_err(|error| {
        // It was made here a moment ago.
        let _ = std::fs::remove_file(image);
        CliError::usage(error)
    })
}
