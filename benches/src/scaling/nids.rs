//! Workloads on the table of nodes alone.

use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::{Nat, NatConfig};
use f2fs_sync::PlainArc;

use super::{Subject, Work, Workload};
use crate::filled::Filled;

/// NAT blocks of the table at least: 455,000 node IDs.
const BLOCKS: u32 = 1000;
/// NAT blocks for each core at least: a node ID that was freed is not free again before a checkpoint, and a core does up to
/// 4000 operations.
const BLOCKS_EACH: u32 = 10;
/// Free ones where they are short.
const FEW: u32 = 300;

/// The table.
pub(super) struct Nids {
    nat: Nat,
    short: bool,
    /// Node IDs of each core, in NAT blocks of its own, as the directories of FxMark have them.
    stride: u32,
}

impl Nids {
    pub(super) fn new(subject: &Subject, cores: usize) -> Nids {
        let short = subject.workload == Workload::NidsShort;
        let blocks = BLOCKS.max(cores as u32 * BLOCKS_EACH);
        let nids = blocks * Nat::ENTRIES_PER_BLOCK as u32;
        let bound = if short { nids - FEW } else { 3 };
        let config = NatConfig::new(blocks).policy(subject.policy);
        let source = PlainArc::new(Filled { bound });
        let nat = Nat::new(config, source, vec![0; blocks as usize / 8 + 1], &[]).expect("the table is whole");
        nat.load_all(1, &|_| {}).expect("nothing fails");
        nat.balance();
        Nids { nat, short, stride: nids / cores.max(1) as u32 }
    }
}

impl Work for Nids {
    fn operation(&self, core: usize, lap: u64) {
        let nat = &self.nat;
        let nid = if self.short {
            Nid(3 + core as u32 * self.stride + lap as u32)
        } else {
            let nid = nat.allocate().expect("nothing is read").expect("there are many");
            nat.bind(nid, nid, BlockAddr(7)).expect("it is free");
            nat.balance();
            nid
        };
        nat.free(nid).expect("it is bound");
        nat.balance();
    }
}
