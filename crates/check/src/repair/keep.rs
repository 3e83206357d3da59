//! A repair that keeps what was synced after the checkpoint.
//!
//! ```text
//!  checkpoint in force, its tables mended where they stand  +  chain of synced nodes, untouched
//!                          └──────────── the next opening rolls forward ────────────┘
//! ```
//!
//! It is only taken if the check finds the volume whole then with that checkpoint, so that nothing was wrong with the
//! counts in it; and if no block of the chain, or that it names, changes or is given to somebody else. Where something
//! else has to be done, the repair ends with a checkpoint of its own, and gives up what was synced.

use f2fs_format::feature::Features;
use f2fs_format::{BlockAddr, LogType};

use super::beginning::Beginning;
use super::journaled::Room;
use super::passes::{Mended, mend};
use super::synced::Synced;
use super::tables::Tables;
use super::{Repair, RepairError, in_place, versions};
use crate::{CheckOptions, judge};

/// Plans it; tells whether it can be done. `room`: what a journal beside the volume needs, whose records build on the
/// checkpoint as a chain does.
pub(super) fn plan(
    beginning: &Beginning,
    options: &CheckOptions<'_>,
    room: Option<&Room>,
    repair: &mut Repair,
) -> Result<bool, RepairError> {
    let chain = Synced::read(&beginning.overlay)?;
    if chain.is_none() && room.is_none() {
        return Ok(false);
    }
    let synced = chain.unwrap_or_default();
    let Mended { overlay, mut tables, mut state } = match mend(beginning, &synced.nodes, room) {
        Err(error @ (RepairError::Device(_) | RepairError::Check(_))) => return Err(error),
        Err(_) => return Ok(false),
        Ok(mended) => mended,
    };
    if !synced.fits(&tables, &state) || !room.is_none_or(|room| room.is_left(&tables, &state)) {
        return Ok(false);
    }
    versions::mend(&overlay, &mut tables, &mut state)?;
    in_place::write(&overlay, &mut tables, &mut state)?;
    let changes = overlay.changes()?;
    let changed = || changes.iter().map(|(block, _)| *block);
    let is_spared = synced.is_spared_by(changed()) && room.is_none_or(|room| room.is_spared_by(changed()));
    if !is_spared || changes.iter().any(|(block, _)| needs_checkpoint(BlockAddr(*block as u32), &tables)) {
        return Ok(false);
    }
    let after = judge(&overlay, options)?;
    if !(after.is_consistent() && after.complete) {
        return Ok(false);
    }
    let (segment, offset) = tables.pack.log(LogType::WarmNode);
    let chain = tables.geometry.block_at(segment, offset);
    let packs = [0, 1].map(|pack| tables.geometry.checkpoint_pack(pack));
    repair.packs = packs[0].0.into()..tables.geometry.sit_blkaddr.0.into();
    repair.witnesses = packs.into_iter().chain([chain]).map(|addr| addr.0.into()).collect();
    repair.actions = std::mem::take(&mut state.actions);
    (repair.after, repair.changes, repair.keeps_synced) = (after, changes, !synced.nodes.is_empty());
    repair.keeps_journal = room.is_some();
    Ok(true)
}

/// Whether a block cannot change beside a checkpoint that stays: it is in a zone that is written in order, or there are
/// quotas, and it is a node or data. Nobody has counted those anew, and only a checkpoint can say so.
fn needs_checkpoint(addr: BlockAddr, tables: &Tables) -> bool {
    let counts_quotas = tables.geometry.features.contains(Features::QUOTA);
    tables.zones.is_sequential(addr) || (counts_quotas && tables.geometry.in_main(addr))
}
