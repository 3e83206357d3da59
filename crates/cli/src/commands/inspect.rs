//! `f2fs inspect`.

mod unopened;

use std::io::Write;
use std::path::Path;

use comfy_table::{Table, presets};
use f2fs::VolumeView;
use f2fs::files::path_from_bytes;
use f2fs::format::checkpoint::{Checkpoint, LogPosition, flags};
use f2fs::format::superblock::{SuperBlock, VolumeDevice};
use f2fs::format::{BLOCKS_PER_SEGMENT, LogType};
use f2fs_workload::shell::Quoted;
use serde_json::{Value, json};

use crate::commands::format::hex;
use crate::error::CliError;
use crate::image::{Access, open};
use crate::size::human;

pub(crate) fn run(image: &Path, with_holes: bool, as_json: bool) -> Result<(), CliError> {
    let fs = match open(image, Access::ReadCheckpoint) {
        Ok(fs) => fs,
        Err(error) => return unopened::show(image, as_json, error),
    };
    let holes = if with_holes { Some(Holes::of(fs.volume())?) } else { None };
    // Where the root cannot be read, no journal can be brought back.
    let left = fs.missing_journal().ok().flatten();
    let mut out = std::io::stdout().lock();
    if as_json {
        let mut value = for_programs(fs.volume(), holes.as_ref());
        value["left_with_journal"] = json!(left);
        writeln!(out, "{value:#}")?;
    } else {
        let mut table = for_people(fs.volume(), holes.as_ref());
        if let Some(journal) = left {
            table.add_row(["journal", &format!("left with synced files in {journal}")]);
        }
        writeln!(out, "{table}")?;
    }
    Ok(())
}

/// The names of a checkpoint's flags.
fn flag_names(checkpoint: &Checkpoint) -> Vec<&'static str> {
    flags::NAMES.iter().filter(|(bit, _)| checkpoint.flags & bit != 0).map(|(_, name)| *name).collect()
}

/// The six logs, or those that a read-only volume has, with their places.
fn logs(volume: VolumeView<'_>, checkpoint: &Checkpoint) -> impl Iterator<Item = (LogType, LogPosition, &'static str)> {
    let geometry = volume.geometry();
    LogType::ALL.into_iter().filter(|log| geometry.has_log(*log)).map(|log| {
        let position = checkpoint.log(log);
        (log, position, if position.alloc_type == 0 { "LFS" } else { "SSR" })
    })
}

/// All of it as JSON.
fn for_programs(volume: VolumeView<'_>, holes: Option<&Holes>) -> Value {
    let stat = volume.stat();
    let mut value = json!({
        "device": volume.device_info().description.clone(),
        "superblock": superblock_json(volume),
        "checkpoint": checkpoint_json(volume),
        "counts": {
            "user_blocks": stat.user_blocks,
            "valid_blocks": stat.valid_blocks,
            "valid_nodes": stat.valid_nodes,
            "valid_inodes": stat.valid_inodes,
            "max_nodes": stat.max_nodes,
            "free_segments": stat.free_segments,
            "free_nids": stat.free_nids,
            "orphans": volume.orphans().len(),
        },
    });
    if let Some(holes) = holes {
        value["holes"] = json!({
            "dirty_segments": holes.segments,
            "blocks": holes.blocks,
            "mean_hole": holes.mean_hole(),
            "mean_run": holes.mean_run(),
            "segments_by_valid_tenth": holes.by_tenth,
        });
    }
    value
}

fn superblock_json(volume: VolumeView<'_>) -> Value {
    let (geometry, superblock) = (volume.geometry(), volume.superblock());
    let stops: Vec<Value> =
        superblock.stops().iter().map(|(name, count)| json!({ "reason": name, "count": count })).collect();
    json!({
        "label": superblock.label(),
        "uuid": hex(&superblock.uuid),
        "version": format!("{}.{}", superblock.major_ver.get(), superblock.minor_ver.get()),
        "features": geometry.features.names(),
        "blocks": geometry.block_count,
        "segments": geometry.segment_count,
        "segments_per_section": geometry.segs_per_sec,
        "sections_per_zone": geometry.secs_per_zone,
        "sections": geometry.sections,
        "areas": {
            "checkpoint": geometry.cp_blkaddr.0,
            "sit": geometry.sit_blkaddr.0,
            "nat": geometry.nat_blkaddr.0,
            "ssa": geometry.ssa_blkaddr.0,
            "main": geometry.main_blkaddr.0,
        },
        "main_segments": geometry.main_segments,
        "checkpoint_payload": geometry.cp_payload,
        "devices": devices_json(superblock),
        "stops": stops,
        "errors": superblock.errors(),
    })
}

fn checkpoint_json(volume: VolumeView<'_>) -> Value {
    let checkpoint = volume.last_checkpoint();
    let logs: Vec<Value> = logs(volume, &checkpoint)
        .map(|(log, position, allocation)| {
            json!({
                "log": log.name(),
                "segment": position.segment.0,
                "next_offset": position.next_offset,
                "allocation": allocation,
            })
        })
        .collect();
    json!({
        "version": checkpoint.version,
        "flags": flag_names(&checkpoint),
        "elapsed_seconds": checkpoint.elapsed_time,
        "reserved_segments": checkpoint.reserved_segments,
        "overprovision_segments": checkpoint.overprovision_segments,
        "free_segments": checkpoint.free_segments,
        "next_free_nid": checkpoint.next_free_nid.0,
        "logs": logs,
    })
}

/// All of it as a table.
fn for_people(volume: VolumeView<'_>, holes: Option<&Holes>) -> Table {
    let (geometry, superblock, stat) = (volume.geometry(), volume.superblock(), volume.stat());
    let checkpoint = volume.last_checkpoint();
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let mut row = |name: &str, text: String| {
        table.add_row([name, &text]);
    };
    row("device", volume.device_info().description.clone());
    row("label", or_none(&superblock.label()));
    row("uuid", hex(&superblock.uuid));
    row("features", or_none(&geometry.features.names().join(", ")));
    row("size", format!("{} ({} blocks)", human(geometry.block_count * 4096), geometry.block_count));
    row(
        "main area",
        format!(
            "{} segments from block {}, {} to a section",
            geometry.main_segments, geometry.main_blkaddr, geometry.segs_per_sec
        ),
    );
    devices(superblock).iter().for_each(|(name, text)| row(name, text.clone()));
    row("checkpoint", format!("version {:#x}, {}", checkpoint.version, or_none(&flag_names(&checkpoint).join(", "))));
    row("in use", format!("{} of {} blocks", stat.valid_blocks, stat.user_blocks));
    row("nodes", format!("{} ({} inodes), {} NIDs free", stat.valid_nodes, stat.valid_inodes, stat.free_nids));
    row(
        "segments",
        format!(
            "{} free, {} reserved, {} overprovision",
            stat.free_segments, checkpoint.reserved_segments, checkpoint.overprovision_segments
        ),
    );
    if let Some(holes) = holes {
        row(
            "holes",
            format!(
                "{} blocks in {} dirty segments, mean hole {:.1}, mean run between two {:.1}",
                holes.blocks,
                holes.segments,
                holes.mean_hole(),
                holes.mean_run()
            ),
        );
    }
    row("orphans", volume.orphans().len().to_string());
    let stops: Vec<String> = superblock.stops().iter().map(|(name, count)| format!("{name} ({count} times)")).collect();
    row("stopped", or_none(&stops.join(", ")));
    row("errors", or_none(&superblock.errors().join(", ")));
    for (log, position, allocation) in logs(volume, &checkpoint) {
        row(log.name(), format!("segment {}, block {}, {allocation}", position.segment, position.next_offset));
    }
    table
}

/// The devices that a superblock records, if there are several, for people.
fn devices(superblock: &SuperBlock) -> Vec<(String, String)> {
    let devices = superblock.devices().unwrap_or_default();
    let line = |(index, device): (usize, &VolumeDevice)| {
        let path = Quoted::path(path_from_bytes(&device.path)).to_string();
        (format!("device {index}"), format!("{path}, {} ({} blocks)", human(device.blocks * 4096), device.blocks))
    };
    devices.iter().enumerate().map(line).collect()
}

/// The same for programs.
fn devices_json(superblock: &SuperBlock) -> Value {
    let devices = superblock.devices().unwrap_or_default();
    let value =
        |device: &VolumeDevice| json!({ "recorded": String::from_utf8_lossy(&device.path), "blocks": device.blocks });
    devices.iter().map(value).collect()
}

/// The holes between the valid blocks of dirty segments.
#[derive(Default)]
struct Holes {
    segments: u64,
    blocks: u64,
    holes: u64,
    runs: u64,
    run_blocks: u64,
    /// Dirty segments by the share of their blocks that are valid, in tenths.
    by_tenth: [u64; 10],
}

impl Holes {
    fn of(volume: VolumeView<'_>) -> Result<Holes, CliError> {
        let mut all = Holes::default();
        for number in 0..volume.geometry().main_segments {
            let info = volume.segment(f2fs::format::SegmentNo(number))?;
            if info.valid == 0 || info.valid == BLOCKS_PER_SEGMENT {
                continue;
            }
            all.segments += 1;
            all.blocks += u64::from(BLOCKS_PER_SEGMENT - info.valid);
            all.holes += info.valid_map.runs(false).count() as u64;
            for (start, len) in info.valid_map.runs(true) {
                if start != 0 && start + len != BLOCKS_PER_SEGMENT {
                    all.runs += 1;
                    all.run_blocks += u64::from(len);
                }
            }
            all.by_tenth[(info.valid * 10 / BLOCKS_PER_SEGMENT) as usize] += 1;
        }
        Ok(all)
    }

    fn mean_hole(&self) -> f64 {
        self.blocks as f64 / self.holes.max(1) as f64
    }

    fn mean_run(&self) -> f64 {
        self.run_blocks as f64 / self.runs.max(1) as f64
    }
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "none".into() } else { text.into() }
}
