//! The remains of a volume that cannot be opened.

use std::io::Write;
use std::path::Path;

use comfy_table::{Table, presets};
use f2fs::format::checkpoint::{CheckpointHeader, flags};
use f2fs::format::feature::Features;
use f2fs::format::superblock::SuperBlock;
use f2fs::uring::OpenOptions;
use f2fs::volume::format::recognise;
use f2fs::volume::{Examined, examine};
use serde_json::{Value, json};

use super::{devices, devices_json, or_none};
use crate::commands::format::hex;
use crate::error::CliError;
use crate::image::{Access, device};
use crate::medium;
use crate::size::human;

/// Prints superblocks and checkpoint packs as they stand, if there is anything of F2FS.
///
/// # Errors
/// Always: `why` the volume could not be opened.
pub(super) fn show(image: &Path, as_json: bool, why: CliError) -> Result<(), CliError> {
    // A file that cannot be opened as a device has nothing to show.
    let Ok(device) = device(image, Access::Read).or_else(|_| medium::open(image, true, OpenOptions::new())) else {
        return Err(why);
    };
    let found = examine(&*device);
    let mut out = std::io::stdout().lock();
    if as_json {
        let holds = recognise(&*device).ok().flatten();
        let value = json!({
            "opened": false,
            "error": why.to_string(),
            "holds": holds.map(|holds| holds.to_string()),
            "device": device.info().description,
            "device_blocks": device.info().blocks,
            "superblocks": found.superblocks.iter().map(superblock_json).collect::<Vec<_>>(),
            "packs": found.packs.iter().map(pack_json).collect::<Vec<_>>(),
        });
        writeln!(out, "{value:#}")?;
        return Err(why);
    }
    if !found.is_f2fs() && found.packs.iter().all(|pack| pack.problem.is_some()) {
        return Err(why);
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let blocks = device.info().blocks;
    table.add_row(["device", &device.info().description]);
    table.add_row(["size", &format!("{} ({blocks} blocks)", human(blocks.saturating_mul(4096)))]);
    for (number, found) in found.superblocks.iter().enumerate() {
        table.add_row([format!("superblock {}", number + 1), state(found)]);
        if let Some(raw) = found.raw.filter(|_| found.is_f2fs()) {
            superblock_rows(&mut table, &raw);
        }
    }
    for (number, found) in found.packs.iter().enumerate() {
        table.add_row([format!("checkpoint {}", number + 1), state(found)]);
        if let Some(raw) = &found.raw
            && (found.problem.is_none() || raw.checkpoint_ver.get() != 0)
        {
            pack_rows(&mut table, raw);
        }
    }
    writeln!(out, "{table}")?;
    Err(why)
}

fn state<T>(found: &Examined<T>) -> String {
    match &found.problem {
        None => format!("block {}: sound", found.block),
        Some(problem) => format!("block {}: {problem}", found.block),
    }
}

fn superblock_rows(table: &mut Table, raw: &SuperBlock) {
    let blocks = raw.block_count.get();
    table.add_row(["  label", &or_none(&raw.label())]);
    table.add_row(["  uuid", &hex(&raw.uuid)]);
    table.add_row(["  features", &or_none(&Features(raw.feature.get()).names().join(", "))]);
    table.add_row(["  size", &format!("{} ({blocks} blocks)", human(blocks.saturating_mul(4096)))]);
    let main = format!(
        "{} segments from block {}, {} to a section",
        raw.segment_count_main, raw.main_blkaddr, raw.segs_per_sec
    );
    table.add_row(["  main area", &main]);
    devices(raw).iter().for_each(|(name, text)| {
        table.add_row([&format!("  {name}"), text]);
    });
}

fn pack_rows(table: &mut Table, raw: &CheckpointHeader) {
    table.add_row(["  version", &format!("{:#x}, {}", raw.checkpoint_ver.get(), or_none(&flag_names(raw).join(", ")))]);
    table.add_row(["  in use", &format!("{} of {} blocks", raw.valid_block_count, raw.user_block_count)]);
    let nodes = format!("{} ({} inodes)", raw.valid_node_count, raw.valid_inode_count);
    table.add_row(["  nodes", &nodes]);
}

fn flag_names(raw: &CheckpointHeader) -> Vec<&'static str> {
    let set = raw.ckpt_flags.get();
    flags::NAMES.iter().filter(|(bit, _)| set & bit != 0).map(|(_, name)| *name).collect()
}

fn superblock_json(found: &Examined<SuperBlock>) -> Value {
    let raw = found.raw.filter(|_| found.is_f2fs());
    json!({
        "block": found.block,
        "problem": found.problem.as_ref().map(ToString::to_string),
        "superblock": raw.map(|raw| json!({
            "label": raw.label(),
            "uuid": hex(&raw.uuid),
            "version": format!("{}.{}", raw.major_ver, raw.minor_ver),
            "features": Features(raw.feature.get()).names(),
            "blocks": raw.block_count.get(),
            "segments": raw.segment_count.get(),
            "segments_per_section": raw.segs_per_sec.get(),
            "sections_per_zone": raw.secs_per_zone.get(),
            "sections": raw.section_count.get(),
            "areas": {
                "checkpoint": raw.cp_blkaddr.get(),
                "sit": raw.sit_blkaddr.get(),
                "nat": raw.nat_blkaddr.get(),
                "ssa": raw.ssa_blkaddr.get(),
                "main": raw.main_blkaddr.get(),
            },
            "main_segments": raw.segment_count_main.get(),
            "checkpoint_payload": raw.cp_payload.get(),
            "devices": devices_json(&raw),
        })),
    })
}

fn pack_json(found: &Examined<CheckpointHeader>) -> Value {
    json!({
        "block": found.block,
        "problem": found.problem.as_ref().map(ToString::to_string),
        "checkpoint": found.raw.map(|raw| json!({
            "version": raw.checkpoint_ver.get(),
            "flags": flag_names(&raw),
            "user_blocks": raw.user_block_count.get(),
            "valid_blocks": raw.valid_block_count.get(),
            "valid_nodes": raw.valid_node_count.get(),
            "valid_inodes": raw.valid_inode_count.get(),
            "free_segments": raw.free_segment_count.get(),
            "reserved_segments": raw.rsvd_segment_count.get(),
            "overprovision_segments": raw.overprov_segment_count.get(),
            "next_free_nid": raw.next_free_nid.get(),
            "pack_blocks": raw.cp_pack_total_block_count.get(),
        })),
    })
}
