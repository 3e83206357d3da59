//! The hot paths allocate no memory.
#![allow(clippy::unwrap_used)]

mod common;

use common::Device;
use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::NatConfig;

fn allocations(run: impl FnOnce()) -> u64 {
    allocation_counter::measure(run).count_total
}

#[test]
fn allocating_binding_reading_and_freeing_allocate_nothing() {
    assert_ne!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 0, "the counter counts");
    let device = Device::new(20);
    let nat = device.open(NatConfig::new(20));
    nat.free_nids().unwrap(); // reads the table
    // Through several NAT blocks, refills included.
    let count = allocations(|| {
        for n in 0..5000 {
            let nid = nat.allocate().unwrap().unwrap();
            nat.bind(nid, nid, BlockAddr::NEW).unwrap();
            nat.bind(nid, nid, BlockAddr(1000 + n)).unwrap();
            assert!(nat.get(nid).unwrap().is_bound());
            nat.balance();
            nat.free(nid).unwrap();
        }
        let nid = nat.allocate().unwrap().unwrap();
        nat.cancel(nid);
        assert!(nat.get(Nid(9000)).unwrap().addr.is_null());
    });
    assert_eq!(count, 0);
}
