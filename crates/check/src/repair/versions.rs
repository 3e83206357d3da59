//! The versions of the NAT, by the summaries.
//!
//! The summary of each data block has the version that its node had in the NAT. If all blocks of a node agree on
//! another one than the NAT says, a bit of that was flipped: it is put back, and the summaries stay as they are.

use std::collections::BTreeMap;

use f2fs_format::{BlockAddr, Nid};

use super::RepairError;
use super::overlay::Overlay;
use super::state::State;
use super::tables::Tables;

/// Puts the versions right.
pub(super) fn mend(overlay: &Overlay, tables: &mut Tables, state: &mut State) -> Result<(), RepairError> {
    // The version that all blocks of a node have so far.
    let mut said: BTreeMap<Nid, Option<u8>> = BTreeMap::new();
    for (addr, claim) in state.blocks.iter().filter(|(_, claim)| !claim.is_node) {
        let Some((segment, offset)) = tables.geometry.locate(BlockAddr(*addr)) else { continue };
        let (nid, slot) = claim.owner;
        let entry = &tables.summary(overlay, segment)?.entries[offset as usize];
        if Nid::from(entry.nid) == nid && entry.ofs_in_node.get() == slot {
            let version = entry.version;
            said.entry(nid).and_modify(|said| *said = said.filter(|said| *said == version)).or_insert(Some(version));
        }
    }
    for (nid, version) in said {
        let mut entry = tables.nat.get(nid);
        if let Some(version) = version.filter(|version| *version != entry.version) {
            let was = entry.version;
            state.act(|| format!("nid {nid}: its version is {version}, as the summaries say, was {was}"));
            entry.version = version;
            tables.nat.set(nid, entry);
        }
    }
    Ok(())
}
