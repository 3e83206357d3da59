//! Every count and number that a caller can hand in, at the ends of what its type holds: an answer or an error, no
//! panic.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{Device, ENTRIES};
use f2fs_format::nat::RawNatEntry;
use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::{Nat, NatConfig, Policy};

const SIZES: [u64; 9] = [0, 1, 2, 454, 455, u32::MAX as u64 - 1, u32::MAX as u64, i64::MAX as u64, u64::MAX];

fn policies() -> [Policy; 3] {
    [Policy::Sharded, Policy::KernelScan, Policy::CLUE]
}

#[test]
fn configurations() {
    for policy in policies() {
        for size in SIZES {
            let device = Device::new(3);
            let config = NatConfig::new(3)
                .policy(policy)
                .cached_blocks(size as usize)
                .lanes(size as usize)
                .balance_entries(size as usize)
                .next_free_nid(Nid(size as u32));
            for config in [config.clone(), config.valid_nodes(size)] {
                let Ok(nat) = Nat::new(config, device.memory.clone(), device.bitmap.clone(), &[]) else { continue };
                nat.balance();
                let nid = nat.allocate().unwrap();
                if let Some(nid) = nid {
                    nat.bind(nid, nid, BlockAddr(7)).unwrap();
                }
                let _ = nat.free_nids();
                for capacity in SIZES.map(|size| size as usize) {
                    let flush = nat.begin_checkpoint(capacity).unwrap();
                    assert!(flush.blocks.len() <= 3);
                    nat.end_checkpoint();
                }
                assert!(nat.next_free_nid().0 < nat.max_nid());
                let _ = nat.stats();
            }
        }
    }
}

/// Tables of any length: more than a volume can have is an error, not memory.
#[test]
fn tables() {
    for blocks in SIZES.map(|size| size as u32) {
        for bitmap in [0, 1, 100] {
            let device = Device::new(1);
            let made = Nat::new(NatConfig::new(blocks), device.memory.clone(), vec![0; bitmap], &[]);
            if u64::from(blocks) > 8 * bitmap as u64 || blocks == 0 {
                assert!(made.is_err(), "{blocks} blocks, {bitmap} bytes");
            }
        }
        for nid in SIZES.map(|nid| Nid(nid as u32)) {
            let device = Device::new(1);
            let journal = [(nid, RawNatEntry::default())];
            let made = Nat::new(NatConfig::new(1), device.memory.clone(), vec![0], &journal);
            assert_eq!(made.is_ok(), nid.0 < ENTRIES, "{nid}");
        }
    }
}

#[test]
fn numbers() {
    for policy in policies() {
        let device = Device::new(2);
        let nat = device.open(NatConfig::new(2).policy(policy));
        for nid in SIZES.map(|nid| Nid(nid as u32)) {
            let there = nid.0 < nat.max_nid();
            assert_eq!(nat.get(nid).is_ok(), there, "{nid}");
            nat.cancel(nid);
            assert!(there || nat.reserve(nid).is_err(), "{nid}");
            for number in SIZES.map(|number| number as u32) {
                let bound = nat.bind(nid, Nid(number), BlockAddr(number));
                assert!(there || bound.is_err(), "{nid}");
            }
            assert!(there || nat.free(nid).is_err(), "{nid}");
            let _ = nat.free(nid);
        }
    }
}
