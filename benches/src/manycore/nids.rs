//! Workloads on the table of nodes alone.

use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::{Nat, NatConfig};
use f2fs_sync::PlainArc;
use f2fs_sync::manycore::{self, Machine, Outcome, Pace};

use super::{Subject, Workload};
use crate::filled::Filled;

/// NAT blocks of the table: 455,000 node IDs.
const BLOCKS: u32 = 1000;
/// Free ones where they are short.
const FEW: u32 = 300;
const NIDS: u32 = BLOCKS * Nat::ENTRIES_PER_BLOCK as u32;

/// Plays one of them.
pub(super) fn play(subject: &Subject, machine: &Machine, pace: &Pace, cores: usize, laps: u64) -> Outcome {
    manycore::boot(machine);
    let short = subject.workload == Workload::NidsShort;
    let bound = if short { NIDS - FEW } else { 3 };
    let config = NatConfig::new(BLOCKS).policy(subject.policy);
    let source = PlainArc::new(Filled { bound });
    let nat = Nat::new(config, source, vec![0; BLOCKS as usize / 8 + 1], &[]).expect("the table is whole");
    nat.load_all(1, &|_| {}).expect("nothing fails");
    nat.balance();
    // Each core's own NAT blocks, as the directories of FxMark have them.
    let stride = NIDS / 128;
    manycore::run(machine, pace, cores, laps / 8, |core| {
        for lap in 0..laps as u32 {
            if short {
                nat.free(Nid(3 + core as u32 * stride + lap)).expect("it is bound");
                nat.balance();
            } else {
                let nid = nat.allocate().expect("nothing is read").expect("there are many");
                nat.bind(nid, nid, BlockAddr(7)).expect("it is free");
                nat.balance();
                nat.free(nid).expect("it is bound");
                nat.balance();
            }
            manycore::lap();
        }
    })
}
