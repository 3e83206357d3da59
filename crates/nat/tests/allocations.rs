//! The hot paths allocate no memory.
#![allow(clippy::unwrap_used)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::Device;
use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::NatConfig;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting the calls of each thread.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches a thread-local number only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter any more; nobody asks for it either.
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise about `layout` is the one that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from `alloc` above, so from the system's allocator, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(run: impl FnOnce()) -> u64 {
    let before = COUNT.with(Cell::get);
    run();
    COUNT.with(Cell::get) - before
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
