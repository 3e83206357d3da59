//! The passes of a repair over a volume, until none of them meets a conflict that is not settled.

use std::collections::HashSet;
use std::rc::Rc;

use super::beginning::Beginning;
use super::journaled::Room;
use super::overlay::Overlay;
use super::state::State;
use super::tables::Tables;
use super::{MAX_PASSES, RepairError, beside, lost, quota_files, walk};

/// A volume whose nodes and entries are put right, and what is known of it. Its tables are not written yet.
pub(super) struct Mended {
    pub(super) overlay: Overlay,
    pub(super) tables: Tables,
    pub(super) state: State,
}

/// Mends all that is reachable. `synced`: blocks of nodes that are kept for roll-forward. `room`: what is kept free.
pub(super) fn mend(
    beginning: &Beginning,
    synced: &Rc<HashSet<u32>>,
    room: Option<&Room>,
) -> Result<Mended, RepairError> {
    let mut state = State::default();
    for pass in 1..=MAX_PASSES {
        let overlay = Overlay::new_on(&beginning.overlay);
        state.begin_pass();
        if let Some(room) = room {
            room.reserve(&mut state);
        }
        beginning.actions.iter().for_each(|action| state.act(|| action.clone()));
        let conflicts = state.conflicts();
        let mut tables = Tables::load(&overlay, synced, &mut state)?;
        walk::walk(&overlay, &mut tables, &mut state)?;
        if state.conflicts() != conflicts {
            continue;
        }
        lost::attach(&overlay, &mut tables, &mut state)?;
        quota_files::fill(&overlay, &mut tables, &mut state)?;
        beside::settle(&tables, &mut state);
        // Without end: better than before, and what is left is found.
        if state.is_too_late() && pass < MAX_PASSES {
            continue;
        }
        return Ok(Mended { overlay, tables, state });
    }
    Err(RepairError::NoCheckpoint("the references contradict each other without end".into()))
}
