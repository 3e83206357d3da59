//! What is done to the manager.

use proptest::prelude::*;

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Allocate {
        log: usize,
        count: usize,
    },
    OnLane {
        lane: usize,
        log: usize,
        count: usize,
    },
    Node {
        log: usize,
        lane: usize,
    },
    Free {
        share: u8,
        salt: u64,
    },
    FreeSegment {
        index: usize,
    },
    Checkpoint {
        capacity: usize,
    },
    /// Entries are looked at beforehand.
    Prepare,
    /// A checkpoint that does not become durable; the volume goes on.
    Aborted {
        capacity: usize,
    },
    /// Operations between the two halves.
    Split {
        capacity: usize,
        log: usize,
        count: usize,
        share: u8,
    },
    /// The power fails, in some cases with the areas of a checkpoint written but not its block.
    Crash {
        in_checkpoint: bool,
    },
    Reopen {
        capacity: usize,
    },
    Pressure {
        nodes: u32,
        dents: u32,
    },
    /// A victim is chosen; its blocks are moved, or it is kept marked while others write.
    Clean {
        policy: usize,
        log: usize,
        count: usize,
    },
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let capacity = prop_oneof![Just(0usize), Just(6), 0usize..7];
    prop_oneof![
        8 => (0usize..6, 1usize..1500).prop_map(|(log, count)| Op::Allocate { log, count }),
        4 => (0usize..6, 1usize..20).prop_map(|(log, count)| Op::Allocate { log, count }),
        2 => (3usize..6, 0usize..4).prop_map(|(log, lane)| Op::Node { log, lane }),
        5 => (1usize..4, 0usize..6, 1usize..700).prop_map(|(lane, log, count)| Op::OnLane { lane, log, count }),
        6 => (any::<u8>(), any::<u64>()).prop_map(|(share, salt)| Op::Free { share, salt }),
        3 => (0usize..64).prop_map(|index| Op::FreeSegment { index }),
        4 => capacity.clone().prop_map(|capacity| Op::Checkpoint { capacity }),
        3 => Just(Op::Prepare),
        1 => capacity.clone().prop_map(|capacity| Op::Aborted { capacity }),
        2 => (capacity.clone(), 0usize..6, 1usize..800, any::<u8>())
            .prop_map(|(capacity, log, count, share)| Op::Split { capacity, log, count, share }),
        1 => any::<bool>().prop_map(|in_checkpoint| Op::Crash { in_checkpoint }),
        1 => capacity.prop_map(|capacity| Op::Reopen { capacity }),
        1 => (0u32..2000, 0u32..2000).prop_map(|(nodes, dents)| Op::Pressure { nodes, dents }),
        4 => (0usize..3, 0usize..6, 0usize..1200).prop_map(|(policy, log, count)| Op::Clean { policy, log, count }),
    ]
}
