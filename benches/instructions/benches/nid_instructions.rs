//! Instructions and nanoseconds per operation of the NID allocator, on one thread without contention.
//!
//! `cargo bench -p f2fs-instructions --bench nid_instructions` prints one line for each operation. It fails if the
//! sharded policy takes more than 250 instructions for allocating and freeing a NID.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use f2fs::format::{BlockAddr, Nid};
use f2fs::nat::{EmptySource, Nat, NatConfig, Policy};

/// NAT blocks: 91 000 NIDs.
const BLOCKS: u32 = 200;
const NIDS: u32 = BLOCKS * 455;
/// The bound for allocating and freeing a NID under `sharded`.
const MOST_INSTRUCTIONS: f64 = 250.0;

const CASES: [&str; 6] = ["nothing", "get", "allocate", "allocate+bind", "allocate+bind+free", "allocate+cancel"];

fn open(policy: Policy) -> Nat {
    let config = NatConfig::new(BLOCKS).policy(policy);
    let nat = Nat::new(config, Arc::new(EmptySource), vec![0; BLOCKS as usize / 8 + 1], &[]).unwrap();
    // Reads the whole table, on this thread: other threads would be counted too, and never twice alike.
    nat.free_nids().unwrap();
    nat
}

fn operations(nat: &Nat, case: &str, count: u64) {
    for n in 0..count {
        if case == "nothing" {
            std::hint::black_box(n);
            continue;
        }
        if case == "get" {
            std::hint::black_box(nat.get(Nid(n as u32 * 7 % NIDS)).unwrap());
            continue;
        }
        let nid = nat.allocate().unwrap().unwrap();
        if case == "allocate+cancel" {
            nat.cancel(nid);
        } else if case != "allocate" {
            nat.bind(nid, nid, BlockAddr(7)).unwrap();
            if case == "allocate+bind+free" {
                nat.free(nid).unwrap();
            }
        }
    }
}

/// The shortest of several runs, per operation.
fn nanoseconds(policy: Policy, case: &str) -> f64 {
    const COUNT: u64 = 80_000;
    let mut best = Duration::MAX;
    for _ in 0..15 {
        let nat = open(policy);
        let start = Instant::now();
        operations(&nat, case, COUNT);
        best = best.min(start.elapsed());
    }
    best.as_nanos() as f64 / COUNT as f64
}

fn policies() -> Vec<Policy> {
    #[cfg(feature = "baselines")]
    let baselines = [Policy::KernelScan, Policy::CLUE];
    #[cfg(not(feature = "baselines"))]
    let baselines = [];
    baselines.into_iter().chain([Policy::Sharded]).collect()
}

fn main() {
    if f2fs_instructions::counted(|case, count| {
        let (policy, case) = case.split_once('/').unwrap();
        operations(&open(policy.parse().unwrap()), case, count);
    }) {
        return;
    }
    println!("{:<14} {:<20} {:>14} {:>8}", "policy", "operation", "instructions", "ns");
    let mut too_many = false;
    for policy in policies() {
        let mut bound = 0.0;
        for case in CASES {
            let count = f2fs_instructions::per_operation(&format!("{policy}/{case}")).unwrap();
            println!("{:<14} {case:<20} {count:>14.1} {:>8.1}", policy.to_string(), nanoseconds(policy, case));
            match case {
                "allocate+bind" => bound -= count,
                "allocate" | "allocate+bind+free" => bound += count,
                _ => {}
            }
        }
        println!("{:<14} {:<20} {bound:>14.1}", policy.to_string(), "allocate + free");
        too_many |= policy == Policy::Sharded && bound > MOST_INSTRUCTIONS;
    }
    assert!(!too_many, "allocating and freeing a NID takes more than {MOST_INSTRUCTIONS} instructions");
}
