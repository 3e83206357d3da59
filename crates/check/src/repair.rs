//! Repair: it mends all faults that it can, starting from the reachable inodes.
//!
//! ```text
//!  superblock, pack, tables --> walk from the root, mending inodes and entries --> unreachable inodes to lost+found
//!        --> NAT, SIT, summaries and counts again, from what was reached --> check of the result --> backup --> write
//! ```
//!
//! Nothing is written while that goes on: changes are kept in memory in front of the device, and the [check](super)
//! judges the result there. [`Repair::write_backup`] saves each block that changes, as it is; [`Repair::apply`] writes
//! the new ones; [`undo`] writes the old ones back.
//!
//! # What wins
//!
//! - The identity of a node is decided by the NAT, its footer and the summary of its block, two against one. A node
//!   whose NAT entry leads nowhere is looked for by its footer.
//! - Where the NAT leads to an older copy of a node, and the SIT, a summary and a footer to a newer one, that one is the
//!   node.
//! - A block that two slots refer to belongs to the one that its summary names; the other one becomes a hole.
//! - An inode's fields follow from its nodes and entries; a directory entry's from the inode, which keeps its first
//!   name.
//! - Inodes that nothing refers to get their first name back where it is free, or go to `lost+found`, by their numbers;
//!   nodes without an inode are freed. If the root itself is gone, an empty one is made, which they come back to.
//! - A bit of an inode that its checksum says was flipped is put back before anything else is believed.
//! - A slot whose block is another's gets the one whose summary names it. A node whose block was lost, though NAT and
//!   summary say that it was there, begins anew with all that summaries and footers say was in it: a file keeps its
//!   content, to whole blocks.
//! - No data are valid among nodes. Where the SIT was lost, such a slot gets the one block whose summary names it, too.
//! - Nodes are looked for in segments of which the SIT knows nothing, too, if their summaries say that they have some.
//! - Where the NAT knows nothing of a node, or something that cannot be, footer and summary decide; where the summary was
//!   lost as well, the footer and the SIT. An inode that is found so and that no entry names gets its first name back.
//! - A name leads to the inode that was made with it, if that has a name too few, and its entry leads to nothing, or to
//!   one that was made with another name and has one too many: a bit of the number was flipped.
//! - A block that holds a copy of another node, which is whole in its own place, is lost to its own node.
//! - Of two superblocks that differ the one wins with which less is wrong. Where nothing else is, the other one is all
//!   that is written.
//! - A checkpoint of which only the first block is lost wins over the older one that is in force, if the volume is
//!   whole with it, or is not without it either. Where nothing else is wrong, that block is all that is written.
//! - What cannot be told is left alone: the check of the result then still finds it, and [`Repair::after`] says so.
//!
//! On zones nothing is changed in place: blocks that change are written again in empty zones, and so are blocks at
//! places that Linux refuses. A log that does not stand at its zone's write pointer moves, and blocks behind a write
//! pointer are lost. The new blocks are durable before the tables name them.
//!
//! Quotas are not counted: the checkpoint says that `fsck.f2fs` is to do so, and Linux does not use them before. A block
//! that a quota file lost is there again, without numbers: `fsck.f2fs` needs one to write them to.
//!
//! A volume that was not closed is repaired at its last checkpoint. Where the counts of that are right, as when bits
//! of the SIT, the NAT or an inode were flipped, only what is wrong is written again, in its place: the checkpoint
//! stays, and the files that were synced after it come back when the volume is opened
//! ([`keeps_synced`](Repair::keeps_synced)). Where more has to be done, the repair ends with a checkpoint of its own,
//! and gives them up ([`gives_up_synced`](Repair::gives_up_synced)).
//!
//! What was synced into a journal beside the volume comes back behind the repair ([`plan_with_journal`]), whether that ends
//! with a checkpoint of its own or not: the repair gives the numbers and the blocks in it to nobody else.
//!
//! Damage in one place may hide damage in another from the repair: what is left is repaired in turn, eight times at most,
//! as long as that leaves less (not on zones). All of that is one plan, with one backup.
//!
//! # Bounds
//!
//! Memory follows what is reachable: some 60 bytes a block of a file, and the changed blocks.
#![doc = ""]
#![doc = include_str!("repair/corpus.md")]

mod astray;
mod backup;
mod beginning;
mod beside;
mod directory;
mod entries;
mod found_nodes;
mod grow;
mod in_place;
mod inode;
mod journaled;
mod journals;
mod keep;
mod kind;
mod layout;
mod lost;
mod lost_checkpoint;
mod lost_node;
mod make;
mod nodes;
mod overlay;
mod owners;
mod passes;
mod quota_files;
mod rebuild;
mod rounds;
mod search;
mod state;
mod superblocks;
mod synced;
mod tables;
mod versions;
mod walk;
mod zoned;

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use f2fs_device::{AlreadyOpen, BlockDevice, Claim, DeviceError, ZoneChange};
use f2fs_format::feature::Features;
use f2fs_format::{BlockAddr, Corruption, Geometry, RawBlock};
use f2fs_sync::{Mutex, PlainArc};

pub use backup::{BackupError, Undone, undo};
pub use journaled::Journaled;

use super::report::Collector;
use super::source::Source;
use super::{CheckError, CheckOptions, CheckReport, judge, pack, recovery, superblock};
use journaled::Room;
use overlay::Overlay;
use passes::Mended;

/// Passes over a volume at most: each pass settles the conflicts that the one before it met.
const MAX_PASSES: usize = 16;

/// Repairs of the result of a repair at most, the first one counted.
const MAX_ROUNDS: usize = 8;

/// Why there is nothing that could be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Somebody has the device open in this process. Nothing was read or written.
    #[error(transparent)]
    AlreadyOpen(#[from] AlreadyOpen),
    /// The volume cannot be checked, before or after.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The volume has features that are checked, and not repaired.
    #[error("cannot repair a volume with {names} (feature bits {bits:#x})")]
    Unsupported {
        /// The bits of these features.
        bits: u32,
        /// Their names, comma separated.
        names: String,
    },
    /// There is no checkpoint that the tables could be read by.
    #[error("no checkpoint pack can be used: {0}")]
    NoCheckpoint(String),
    /// The blocks to be written contradict the format.
    #[error("the repaired checkpoint would not be valid: {0}")]
    Format(#[from] Corruption),
    /// The volume lies on zones, and the device says of none: an image of a zoned device, say.
    #[error("the volume lies on zones, and the device has none; it is repaired where it has")]
    NoZones,
    /// The journal that is to be kept is another volume's, or builds on another checkpoint.
    #[error(
        "the journal is not that of this volume as it is: it builds on {}, and the volume is at {}",
        number(*.builds_on), number(*.found)
    )]
    OtherJournal {
        /// The footer version of the checkpoint that it builds on, whose lower half is the checkpoint's number; `None`: it
        /// was never in use.
        builds_on: Option<u64>,
        /// The volume's; `None`: it has none.
        found: Option<u64>,
    },
    /// There is no free segment for what has to be written.
    #[error("no free segment for {0}")]
    NoRoom(&'static str),
}

fn number(version: Option<u64>) -> String {
    version.map_or_else(|| "no checkpoint".into(), |version| format!("checkpoint {version:#x}"))
}

/// The holder of the device meanwhile, as others who want it are told.
const CLAIMANT: &str = "a repair";

/// How a volume is put right: its changes, and the check of its result. Nothing of it is written yet. Nobody else opens
/// the device that it was planned for until it is [applied](Self::apply) or dropped.
#[derive(Debug)]
#[non_exhaustive]
pub struct Repair {
    /// The findings before.
    pub before: CheckReport,
    /// The findings afterwards.
    pub after: CheckReport,
    /// The changes, one line each.
    pub actions: Vec<String>,
    changes: Vec<(u64, Box<RawBlock>)>,
    /// Blocks on zones that are written to where nothing is, in their order.
    moved: Vec<(u64, Box<RawBlock>)>,
    /// What is done to zones before anything is written, by their first block.
    zones: BTreeMap<u64, ZoneChange>,
    /// Blocks that change when the volume is written to: the first of both checkpoint packs, and that where the next
    /// chain of synced nodes begins.
    witnesses: Vec<u64>,
    /// The blocks of the checkpoint packs.
    packs: Range<u64>,
    brings_back_checkpoint: bool,
    gives_up_synced: bool,
    keeps_synced: bool,
    keeps_journal: bool,
    /// Keeps others from opening the device, until the repair has been applied.
    claim: Mutex<Option<Claim>>,
}

impl Repair {
    /// The blocks that change in place, in order. Blocks on zones are written again elsewhere;
    /// [`actions`](Self::actions) names those.
    pub fn blocks(&self) -> impl Iterator<Item = u64> + '_ {
        self.changes.iter().map(|(block, _)| *block)
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Whether it brings a checkpoint back that is newer than the one in force, and of which only the first block was
    /// lost. What was synced between the two is part of it.
    #[must_use]
    pub fn brings_back_checkpoint(&self) -> bool {
        self.brings_back_checkpoint
    }

    /// Whether something was synced after the checkpoint that it begins at, which its own checkpoint has nothing of.
    #[must_use]
    pub fn gives_up_synced(&self) -> bool {
        self.gives_up_synced
    }

    /// Whether something was synced after the checkpoint, and all that is wrong is mended behind its back: the checkpoint
    /// stays, and the next opening for writing brings back what was synced after it. [`preview`](Self::preview) shows
    /// that it can.
    #[must_use]
    pub fn keeps_synced(&self) -> bool {
        self.keeps_synced
    }

    /// Whether the journal that it was planned for can be brought back behind it: the numbers and the blocks in that belong
    /// to nobody else. [`preview`](Self::preview) shows what comes back.
    #[must_use]
    pub fn keeps_journal(&self) -> bool {
        self.keeps_journal
    }

    /// The device as it will be, for reading: the blocks that change are in front of it, in memory. The repair has
    /// claimed the device itself; this can be opened meanwhile. Zones are shown as they are.
    #[must_use]
    pub fn preview(&self, device: &PlainArc<dyn BlockDevice>) -> PlainArc<dyn BlockDevice> {
        let overlay = Overlay::new(device.clone());
        for (block, bytes) in self.changes.iter().chain(&self.moved) {
            overlay.put(BlockAddr(*block as u32), bytes);
        }
        PlainArc::new(overlay)
    }

    /// Writes the changed blocks, and flushes. Write the backup first. Afterwards others may open the device.
    ///
    /// What a checkpoint names is on the device before the checkpoint is: a cut in the middle leaves the one that was in
    /// force, and the next repair begins at that one again.
    ///
    /// # Errors
    /// [`RepairError::AlreadyOpen`] for a copy of the device that it was planned for, if somebody has that open. Those
    /// of the device; then some blocks are written and others are not, and [`undo`] leads back.
    #[cfg_attr(feature = "tracing", tracing::instrument(level = "info", name = "repair", skip_all, fields(changes = self.changes.len()), err))]
    pub fn apply(&self, device: &dyn BlockDevice) -> Result<(), RepairError> {
        let planned = self.claim.lock().take();
        let _claim = match planned {
            Some(claim) if claim.is_of(device.claims()) => claim,
            _ => device.claims().exclusive(CLAIMANT)?,
        };
        for (zone, change) in &self.zones {
            device.change_zone(*zone, *change)?;
        }
        let (packs, others): (Vec<_>, Vec<_>) = self.changes.iter().partition(|(block, _)| self.packs.contains(block));
        for blocks in [self.moved.iter().collect(), others, packs] {
            if blocks.is_empty() {
                continue;
            }
            for (block, bytes) in blocks {
                device.write_slice(*block, &bytes[..])?;
            }
            device.flush()?;
        }
        Ok(())
    }
}

/// Features of volumes that are checked, and whose files are not put together here: their names and trees follow other
/// rules, or (`readonly`) they have neither all logs nor summaries: their main area begins where these would be.
const UNREPAIRED: Features = Features(
    Features::ENCRYPT.0
        | Features::CASEFOLD.0
        | Features::COMPRESSION.0
        | Features::DEVICE_ALIAS.0
        | Features::READONLY.0,
);

fn require_repairable(overlay: &Overlay) -> Result<(), RepairError> {
    let (sb, _) = superblock::load(&Source::new(overlay), &Collector::default())?;
    let bits = sb.feature.get() & UNREPAIRED.0;
    if bits != 0 {
        return Err(RepairError::Unsupported { bits, names: Features(bits).names().join(", ") });
    }
    Ok(())
}

/// What a journal needs on the volume, if it fits.
fn require_fits(journal: Option<&Journaled>, overlay: &Overlay) -> Result<Option<Room>, RepairError> {
    let Some(journal) = journal else { return Ok(None) };
    journal.require_fits(overlay)?;
    let (sb, _) = superblock::load(&Source::new(overlay), &Collector::default())?;
    Ok(Some(journal.room(&Geometry::from_superblock(&sb)?)))
}

/// Whether something was synced after the last checkpoint.
fn has_synced(device: &dyn BlockDevice) -> Result<bool, RepairError> {
    let (source, ignored) = (Source::new(device), Collector::default());
    let (sb, _) = superblock::load(&source, &ignored)?;
    let geometry = Geometry::from_superblock(&sb)?;
    let Some(pack) = pack::load(&source, &geometry, &ignored)? else { return Ok(false) };
    Ok(recovery::is_there(&source, &pack, &geometry)?)
}

/// Finds out how the volume on `device` can be put right. Writes nothing.
///
/// # Errors
/// [`RepairError`] if the volume cannot be checked, or nothing is left to begin with.
pub fn plan(device: &PlainArc<dyn BlockDevice>, options: &CheckOptions<'_>) -> Result<Repair, RepairError> {
    plan_with(device, options, false, None)
}

/// The same, for a volume that was left with files that were synced into a journal beside it.
///
/// # Errors
/// As [`plan`], and [`RepairError::OtherJournal`].
pub fn plan_with_journal(
    device: &PlainArc<dyn BlockDevice>,
    options: &CheckOptions<'_>,
    journal: &Journaled,
) -> Result<Repair, RepairError> {
    plan_with(device, options, false, Some(journal))
}

/// The same, without the files that were synced after the last checkpoint: also where nothing else is to be put right
/// the volume gets a new checkpoint, which has nothing of them.
///
/// # Errors
/// As [`plan`].
pub fn plan_without_synced(
    device: &PlainArc<dyn BlockDevice>,
    options: &CheckOptions<'_>,
) -> Result<Repair, RepairError> {
    plan_with(device, options, true, None)
}

/// What was put right may show what was hidden behind it: so the result is repaired in turn, as long as that helps.
#[cfg_attr(feature = "tracing", tracing::instrument(level = "info", name = "plan_repair", skip_all, err))]
fn plan_with(
    device: &PlainArc<dyn BlockDevice>,
    options: &CheckOptions<'_>,
    gives_up_synced: bool,
    journal: Option<&Journaled>,
) -> Result<Repair, RepairError> {
    let mut repair = plan_round(device, options, gives_up_synced, journal)?;
    for _ in 1..MAX_ROUNDS {
        if !repair.may_go_on() {
            break;
        }
        // The journal builds on the checkpoint of the first round.
        let journal = journal.map(Journaled::upon_any).filter(|_| repair.keeps_journal);
        let next = match plan_round(&repair.preview(device), options, gives_up_synced, journal.as_ref()) {
            Err(RepairError::Device(error)) => return Err(error.into()),
            Err(_) => break,
            Ok(next) => next,
        };
        if next.is_empty() || next.after.doubt() >= repair.after.doubt() {
            break;
        }
        repair.go_on_with(next, &**device)?;
    }
    Ok(repair)
}

fn plan_round(
    device: &PlainArc<dyn BlockDevice>,
    options: &CheckOptions<'_>,
    gives_up_synced: bool,
    journal: Option<&Journaled>,
) -> Result<Repair, RepairError> {
    let claim = device.claims().exclusive(CLAIMANT)?;
    let before = judge(&**device, options)?;
    let mut repair = Repair {
        before,
        after: CheckReport::default(),
        actions: Vec::new(),
        changes: Vec::new(),
        moved: Vec::new(),
        zones: BTreeMap::new(),
        witnesses: Vec::new(),
        packs: 0..0,
        brings_back_checkpoint: false,
        gives_up_synced: false,
        keeps_synced: false,
        keeps_journal: false,
        claim: Mutex::new(Some(claim)),
    };
    let is_sound = !repair.before.needs_repair() && repair.before.complete;
    if is_sound && !(gives_up_synced && has_synced(&**device)?) {
        require_fits(journal, &Overlay::new(device.clone()))?;
        repair.keeps_journal = journal.is_some();
        repair.after = repair.before.clone();
        return Ok(repair);
    }
    let beginning = superblocks::begin(device, options, &mut repair)?;
    let gives_up = gives_up_synced && has_synced(&beginning.overlay)?;
    if !repair.changes.is_empty() && !gives_up {
        require_fits(journal, &beginning.overlay)?;
        repair.keeps_journal = journal.is_some();
        return Ok(repair);
    }
    repair.changes.clear();
    require_repairable(&beginning.overlay)?;
    let beginning = lost_checkpoint::begin(beginning, options, gives_up_synced, &mut repair)?;
    let room = require_fits(journal, &beginning.overlay)?;
    if !repair.changes.is_empty() {
        repair.keeps_journal = room.is_some();
        return Ok(repair);
    }
    // Copies that are not in use are no reason to mend a sound volume: that is opened first.
    let is_opened_first = room.is_none() && repair.before.is_consistent() && repair.before.complete;
    let may_keep = !gives_up_synced && !is_opened_first && !repair.brings_back_checkpoint;
    if may_keep && keep::plan(&beginning, options, room.as_ref(), &mut repair)? {
        return Ok(repair);
    }
    repair.gives_up_synced = has_synced(&beginning.overlay)?;
    let Mended { overlay, mut tables, mut state } = passes::mend(&beginning, &Rc::default(), room.as_ref())?;
    let has_room = room.as_ref().is_some_and(|room| room.is_left(&tables, &state));
    let mut sections = match tables.zones.all() {
        [] => None,
        _ => Some(zoned::move_blocks(&overlay, &mut tables, &mut state)?),
    };
    let chain = rebuild::write(&overlay, &mut tables, &mut state, sections.as_mut())?;
    if let Some(sections) = sections {
        overlay.show_zones(sections.afterwards(&tables));
        repair.zones = sections.changes;
    }
    repair.after = judge(&overlay, options)?;
    repair.actions = std::mem::take(&mut state.actions);
    if is_sound {
        repair.actions.push("a new checkpoint, without what was synced after the last one".into());
    }
    let on_zones = |(block, _): &(u64, _)| tables.zones.is_sequential(BlockAddr(*block as u32));
    (repair.moved, repair.changes) = overlay.changes()?.into_iter().partition(on_zones);
    // Zones that are written anew may be those that the journal names blocks in.
    let is_spared = |room: &Room| tables.zones.all().is_empty() && room.is_spared_by(repair.blocks());
    repair.keeps_journal = has_room && room.as_ref().is_some_and(is_spared);
    let packs = [0, 1].map(|pack| tables.geometry.checkpoint_pack(pack));
    repair.packs = packs[0].0.into()..tables.geometry.sit_blkaddr.0.into();
    repair.witnesses = packs.into_iter().chain([chain]).map(|addr| addr.0.into()).collect();
    Ok(repair)
}
