//! The costs of an append: fences, lines and allocations. These numbers are promised.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use f2fs_device_test::pmem::{CountedRegion, LineCounts};
use f2fs_journal::{Create, Entry, Journal, RegionMedium, Uuid};
use f2fs_pmem::MemoryRegion;

type Counted = Journal<RegionMedium<CountedRegion<MemoryRegion>>>;

fn journal(bytes: usize, lanes: usize) -> Counted {
    let region = CountedRegion::new(MemoryRegion::new(bytes).unwrap());
    Journal::create(RegionMedium::new(region), &Create::new(Uuid([1; 16])).lanes(lanes)).unwrap()
}

fn counted(journal: &Counted, work: impl FnOnce()) -> LineCounts {
    let region = journal.medium().region();
    let before = region.counts();
    work();
    region.counts().since(before)
}

/// Lines past the cache, and fences; nothing else.
fn cost(lines: u64, fences: u64) -> LineCounts {
    LineCounts { stored_past_cache: lines, fences, ..LineCounts::default() }
}

#[test]
fn a_record_costs_its_lines_and_one_fence() {
    let journal = journal(1 << 20, 1);
    for (bytes, lines) in [(0, 1), (24, 1), (25, 2), (64, 2), (88, 2), (4096, 65), (65536, 1025)] {
        let payload = vec![7; bytes];
        let append = || {
            journal.append(0, &[&payload]).unwrap();
        };
        assert_eq!(counted(&journal, append), cost(lines, 1), "{bytes} bytes");
        // However it is cut into parts.
        let (first, rest) = payload.split_at(bytes / 3);
        let append = || {
            journal.append(0, &[first, rest]).unwrap();
        };
        assert_eq!(counted(&journal, append), cost(lines, 1), "{bytes} bytes in two parts");
    }
    let entries = [Entry::new(&[b"a"]), Entry::new(&[b"b"]), Entry::new(&[&[1; 4096]])];
    assert_eq!(
        counted(&journal, || {
            journal.append_batch(0, &entries).unwrap();
        }),
        cost(1 + 1 + 65, 1)
    );
}

#[test]
fn a_record_around_the_end_of_its_ring_costs_the_same() {
    let journal = journal(8192 + 4096, 1);
    let payload = [1; 24 + 9 * 64];
    for round in 0..30 {
        assert_eq!(
            counted(&journal, || {
                journal.append(0, &[&payload]).unwrap();
            }),
            cost(10, 1),
            "round {round}"
        );
        journal.truncate_to(&journal.mark()).unwrap();
    }
}

#[test]
fn space_is_taken_back_with_one_fence() {
    for (lanes, lines) in [(1, 5), (2, 5), (4, 5), (16, 8), (128, 36)] {
        let journal = journal(1 << 20, lanes);
        journal.append(0, &[b"a"]).unwrap();
        let mark = journal.mark();
        assert_eq!(counted(&journal, || journal.truncate_with(&mark, b"area").unwrap()), cost(lines, 1));
        assert_eq!(counted(&journal, || drop(journal.mark())), cost(0, 0));
    }
}

#[test]
fn an_append_allocates_nothing() {
    let allocations = |work: &dyn Fn()| allocation_counter::measure(work).count_total;
    assert_ne!(allocations(&|| drop(std::hint::black_box(Box::new(1)))), 0, "the counter counts");
    let journal = journal(1 << 20, 4);
    let payload = [3; 4096];
    let append = || {
        for _ in 0..100 {
            journal.append(0, &[&payload[..100], &payload[100..]]).unwrap();
            let entries = [Entry::new(&[b"a"]), Entry::new(&[b"b"])];
            journal.append_batch(0, &entries).unwrap();
        }
        // Round and round.
        while journal.append(0, &[&payload]).is_ok() {}
    };
    assert_eq!(allocations(&append), 0);
}
