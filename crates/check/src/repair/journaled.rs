//! What was synced into a journal beside the volume: a repair leaves room for it.
//!
//! To the checkpoint all of it is not there: neither the new inodes, nor the blocks that the nodes name. So a repair gives
//! neither the numbers nor the blocks to anybody else, and the journal can be brought back behind it, whether the
//! repair ends with a checkpoint of its own or not.

use std::collections::BTreeSet;

use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Geometry, Nid, SegmentNo};
use f2fs_sync::PlainArc;

use super::RepairError;
use super::overlay::Overlay;
use super::state::State;
use super::synced::Synced;
use super::tables::Tables;
use crate::report::Collector;
use crate::source::Source;
use crate::{pack, superblock};

/// The synced nodes that a journal holds.
#[derive(Debug)]
pub struct Journaled {
    volume: [u8; 16],
    /// `None`: it was found before that they fit.
    checkpoints: Option<Vec<u64>>,
    nodes: PlainArc<[Box<NodeBlock>]>,
}

impl Journaled {
    /// `volume`: the UUID of the volume that the journal belongs to. `checkpoints`: the footer versions of those that the
    /// nodes may build on.
    #[must_use]
    pub fn new(volume: [u8; 16], checkpoints: Vec<u64>, nodes: Vec<Box<NodeBlock>>) -> Journaled {
        Journaled { volume, checkpoints: Some(checkpoints), nodes: nodes.into() }
    }

    /// The same on any checkpoint.
    pub(super) fn upon_any(&self) -> Journaled {
        Journaled { volume: self.volume, checkpoints: None, nodes: PlainArc::clone(&self.nodes) }
    }

    /// Whether the journal is that of this volume, as it is.
    pub(super) fn require_fits(&self, overlay: &Overlay) -> Result<(), RepairError> {
        let Some(checkpoints) = &self.checkpoints else { return Ok(()) };
        let (source, ignored) = (Source::new(overlay), Collector::default());
        let (sb, _) = superblock::load(&source, &ignored)?;
        let geometry = Geometry::from_superblock(&sb)?;
        let pack = pack::load(&source, &geometry, &ignored)?;
        let found = pack.map(|pack| pack.block.footer_version());
        if sb.uuid == self.volume && found.is_some_and(|found| checkpoints.contains(&found)) {
            return Ok(());
        }
        Err(RepairError::OtherJournal { builds_on: checkpoints.first().copied(), found })
    }

    /// What it needs on the volume.
    pub(super) fn room(&self, geometry: &Geometry) -> Room {
        let synced = Synced::of_nodes(self.nodes.iter().map(|node| &**node), geometry);
        let nids = self.nodes.iter().flat_map(|node| [node.nid(), node.ino()]).collect();
        let segments = synced.named().filter_map(|addr| geometry.locate(BlockAddr(addr))).map(|at| at.0).collect();
        Room { synced, nids, segments }
    }
}

/// What a journal needs on the volume.
#[derive(Debug)]
pub(super) struct Room {
    synced: Synced,
    /// Numbers of nodes that are its own, or are to be.
    nids: BTreeSet<Nid>,
    segments: BTreeSet<SegmentNo>,
}

impl Room {
    /// Keeps all of it from being given to somebody else, in a pass of the repair.
    pub(super) fn reserve(&self, state: &mut State) {
        state.spoken_for.extend(&self.segments);
        state.reserved_nids.extend(self.nids.iter().map(|nid| nid.0));
    }

    /// Whether the repair left room for it. `tables`: its SIT as it was.
    pub(super) fn is_left(&self, tables: &Tables, state: &State) -> bool {
        self.synced.fits(tables, state)
    }

    /// Whether no block that it names is among these.
    pub(super) fn is_spared_by(&self, changed: impl Iterator<Item = u64>) -> bool {
        self.synced.is_spared_by(changed)
    }
}
