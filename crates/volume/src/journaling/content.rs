//! The content of a journal whose volume is not open.

use f2fs_format::node::NodeBlock;
use f2fs_journal::{Journal, SharedMedium};

use super::found::JournaledNodes;
use super::rescue::{JournalRescue, area_of, most_wanted};
use crate::JournalTrouble;
use crate::journal::record;

/// What a journal holds, for somebody who cannot open its volume, or has not yet.
#[derive(Debug)]
#[non_exhaustive]
pub struct JournalContent {
    /// The UUID of its volume.
    pub volume: [u8; 16],
    /// Its own identity.
    pub id: [u8; 16],
    /// The footer versions of the checkpoints that its volume may be at: the one that the records build on, or, if there
    /// are none, those that the journal knows of.
    pub checkpoints: Vec<u64>,
    /// What was synced since that checkpoint.
    pub nodes: JournaledNodes,
}

impl JournalContent {
    /// Reads it. Nothing is written.
    ///
    /// # Errors
    /// [`JournalTrouble`]; with [`up_to_damage`](JournalRescue::up_to_damage) a damaged record is none.
    pub fn read(medium: SharedMedium, rescue: JournalRescue) -> Result<JournalContent, JournalTrouble> {
        let recovered = Journal::open(medium, None)?;
        let area = area_of(&recovered)?;
        let most = most_wanted(&recovered, rescue)?;
        let mut last = None;
        recovered.for_each(|found| {
            let wrong = JournalTrouble::Record { lane: found.lane, position: found.position };
            if found.stamp <= most {
                last = Some(record::read(found.payload).ok_or(wrong)?.version);
            }
            Ok::<(), JournalTrouble>(())
        })?;
        let known = || [area.base, area.next].into_iter().filter(|version| *version != 0);
        let checkpoints: Vec<u64> = last.map_or_else(|| known().collect(), |version| vec![version]);
        let nodes = match last {
            Some(version) => JournaledNodes::read(&recovered, version, area, most)?,
            None => JournaledNodes::default(),
        };
        Ok(JournalContent { volume: recovered.owner().0, id: recovered.id(), checkpoints, nodes })
    }

    /// The node blocks, each as it was last synced.
    pub fn blocks(&self) -> impl Iterator<Item = Box<NodeBlock>> + '_ {
        self.nodes.chain().into_iter().filter_map(|node| self.nodes.node(node.addr))
    }
}
