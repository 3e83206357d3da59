//! A journal of which a part is damaged, or whose volume had to be repaired.

use f2fs_journal::{LaneEnd, MediumError, Recovered, SharedMedium};

use crate::{JournalArea, JournalTrouble};

/// How a journal is read of which a part is damaged, or whose volume was repaired. By default it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalRescue {
    /// Of a damaged journal, what was synced before the first record that is damaged is brought back, and all behind it
    /// is given up. Otherwise it is refused.
    pub up_to_damage: bool,
    /// The footer version of the checkpoint that the records build on, for a volume that got another one by a repair
    /// since: one that left all blocks alone which the records name.
    pub upon: Option<u64>,
}

impl JournalRescue {
    /// Sets [`up_to_damage`](Self::up_to_damage).
    #[must_use]
    pub fn up_to_damage(self, up_to_damage: bool) -> JournalRescue {
        JournalRescue { up_to_damage, ..self }
    }

    /// Sets [`upon`](Self::upon).
    #[must_use]
    pub fn upon(self, upon: Option<u64>) -> JournalRescue {
        JournalRescue { upon, ..self }
    }
}

/// What the volume wrote into the journal's header.
pub(super) fn area_of(recovered: &Recovered<SharedMedium>) -> Result<JournalArea, JournalTrouble> {
    JournalArea::read(recovered.area()).ok_or(JournalTrouble::Area { bytes: recovered.area().len() })
}

/// The last stamp that is brought back. Records that were acknowledged and are not there are an error, unless what is
/// before them is enough.
pub(super) fn most_wanted(recovered: &Recovered<SharedMedium>, rescue: JournalRescue) -> Result<u64, JournalTrouble> {
    let Some(most) = recovered.whole_up_to() else { return Ok(u64::MAX) };
    // What cannot be read now may be read at the next try.
    let unreadable = recovered.lanes().iter().find_map(|report| match &report.how {
        LaneEnd::Unreadable(MediumError::Device(error)) => Some(MediumError::Device(error.clone())),
        _ => None,
    });
    if let Some(error) = unreadable {
        return Err(f2fs_journal::Error::Medium(error).into());
    }
    if rescue.up_to_damage {
        return Ok(most);
    }
    let mut before = 0;
    recovered.for_each(|found| {
        before += u64::from(found.stamp <= most);
        Ok::<(), JournalTrouble>(())
    })?;
    let mut lanes = recovered.lanes().iter().enumerate().filter(|(_, report)| !report.is_whole());
    let first = lanes.clone().min_by_key(|(_, report)| report.stamp).or_else(|| lanes.next());
    let (lane, position, offset) = first.map_or((0, 0, 0), |(lane, report)| (lane, report.end, report.end_offset));
    let behind: u64 = recovered.lanes().iter().map(|report| report.behind).sum();
    let whole = recovered.records();
    Err(JournalTrouble::Damaged { lane, position, offset, records: before, behind: (whole - before) + behind })
}
