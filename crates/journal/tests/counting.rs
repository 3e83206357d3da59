//! Lines that an append writes, and whether other threads write them too.
#![cfg(f2fs_counting)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use f2fs_journal::{Create, Journal, RegionMedium, Uuid};
use f2fs_pmem::MemoryRegion;
use f2fs_sync::counting::Footprint;

#[test]
fn appends_of_different_threads_write_no_common_line() {
    for threads in [1, 8] {
        let medium = RegionMedium::new(MemoryRegion::new(64 << 20).unwrap());
        let journal = Journal::create(medium, &Create::new(Uuid([1; 16])).lanes(16)).unwrap();
        let footprint = Footprint::measure(threads, 200, |thread, number| {
            let payload = [thread as u8; 4096];
            {
                journal.append(number as u64, &[&payload]).unwrap();
            };
        });
        assert!(footprint.common.is_empty(), "{threads} threads: {:#?}", footprint.common);
        assert_eq!(footprint.shared, 0.0);
        // The lane: its lock, and what the lock protects.
        assert!((1.0..=2.0).contains(&footprint.lines), "{threads} threads write {} lines", footprint.lines);
        println!("{threads} threads: {} lines written, {} moved", footprint.lines, footprint.moved);
    }
}

/// A judge that cannot see a common line would pass anything.
#[test]
fn one_lane_for_all_is_seen() {
    let medium = RegionMedium::new(MemoryRegion::new(64 << 20).unwrap());
    let journal = Journal::create(medium, &Create::new(Uuid([1; 16])).lanes(1)).unwrap();
    let footprint = Footprint::measure(8, 200, |_, number| {
        journal.append(number as u64, &[b"a"]).unwrap();
    });
    assert_ne!(footprint.global().count(), 0);
}
