//! The checkpoint that a repair begins with, where the newest one has lost its first block.

use f2fs_format::{Geometry, LogType};

use super::beginning::Beginning;
use super::overlay::Overlay;
use super::{Repair, RepairError, has_synced};
use crate::finding::{FindingKind, Severity};
use crate::pack::Lost;
use crate::report::{CheckReport, Collector};
use crate::source::Source;
use crate::{CheckOptions, judge, superblock};

/// Puts the first block back if the volume is whole then, or if it is not whole without either; says in `repair` when
/// nothing else has to be done.
pub(super) fn begin(
    beginning: Beginning,
    options: &CheckOptions<'_>,
    gives_up_synced: bool,
    repair: &mut Repair,
) -> Result<Beginning, RepairError> {
    let Some((geometry, lost)) = find(&beginning.overlay)? else { return Ok(beginning) };
    let Beginning { overlay: as_it_is, mut actions } = beginning;
    let overlay = Overlay::new_on(&as_it_is);
    let (start, version) = (geometry.checkpoint_pack(lost.index), lost.version());
    overlay.put(start, lost.end.as_block());
    let after = judge(&overlay, options)?;
    let sound = after.is_consistent() && after.complete;
    if !sound && is_sound_without(&repair.before) {
        actions.push(format!("checkpoint {version:#x} is given up: the volume is damaged with it, and whole without"));
        return Ok(Beginning { overlay: as_it_is, actions });
    }
    repair.brings_back_checkpoint = true;
    actions.push(format!("pack {}: the first block of checkpoint {version:#x} is put back", lost.index));
    let has_synced = has_synced(&overlay)?;
    if sound && !after.needs_repair() && !(gives_up_synced && has_synced) {
        repair.after = after;
        repair.actions.clone_from(&actions);
        repair.changes = overlay.changes()?;
        let (segment, offset) = (
            lost.end.header.cur_node_segno[LogType::WarmNode.index() % 3],
            lost.end.header.cur_node_blkoff[LogType::WarmNode.index() % 3],
        );
        let chain = geometry.block_at(segment.into(), offset.get().into());
        let packs = [0, 1].map(|pack| geometry.checkpoint_pack(pack));
        repair.witnesses = packs.into_iter().chain([chain]).map(|addr| addr.0.into()).collect();
    } else if has_synced {
        actions.push("what was synced after it is given up".into());
    }
    Ok(Beginning { overlay, actions })
}

fn find(overlay: &Overlay) -> Result<Option<(Geometry, Lost)>, RepairError> {
    let source = Source::new(overlay);
    let (sb, _) = superblock::load(&source, &Collector::default())?;
    // Superblocks that have to be mended first are rare enough.
    let Ok(geometry) = Geometry::from_superblock(&sb) else { return Ok(None) };
    Ok(Lost::find(&source, &geometry)?.map(|lost| (geometry, lost)))
}

/// Whether nothing else is wrong with the checkpoint in force.
fn is_sound_without(before: &CheckReport) -> bool {
    let harmless = |kind: FindingKind| kind == FindingKind::LostCheckpoint || kind.severity() == Severity::Torn;
    before.complete && before.findings.iter().all(|finding| harmless(finding.kind))
}
