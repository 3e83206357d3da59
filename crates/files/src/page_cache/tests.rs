//! What the cache promises to files: room, its limits, and pages that never outlive what they stand for.

use super::*;

const BLOCK: usize = BLOCK_SIZE;

fn cache(pages: u64) -> PageCache {
    PageCache::new(pages * PAGE_COST)
}

fn there(cache: &PageCache, pages: &FilePages, block: u64) -> bool {
    cache.table().contains(pages.key(block))
}

#[test]
fn it_takes_no_more_memory_than_it_was_given() {
    for (bytes, pages) in [(0, 0), (1, FEWEST_PAGES), (100 * PAGE_COST + 7, 100)] {
        let cache = PageCache::new(bytes);
        assert_eq!(cache.is_on(), pages != 0);
        assert!(cache.table().take_room(pages) && !cache.table().take_room(1), "{bytes} bytes");
        // Half of it may be dirty.
        let dirty = cache.admit(pages / 2);
        assert!(dirty.is_none() || pages == 0, "no room is left for pages");
        cache.table().give_room(pages);
        let dirty = cache.admit(pages / 2);
        assert!(dirty.is_some() && cache.admit(1).is_none(), "{bytes} bytes");
        assert_eq!((cache.dirty_pages(), cache.table().len()), (pages / 2, pages / 2));
        drop(dirty);
        assert_eq!((cache.dirty_pages(), cache.table().len()), (0, 0));
    }
}

/// A write that finds room for one of both alone takes nothing.
#[test]
fn who_is_not_admitted_takes_nothing() {
    let cache = cache(64);
    assert!(cache.table().take_room(40));
    assert!(cache.admit(25).is_none(), "24 pages are left");
    assert_eq!((cache.dirty_pages(), cache.table().len()), (0, 40));
    let all = cache.admit(24);
    assert!(all.is_some() && cache.admit(1).is_none());
    cache.table().give_room(40);
    assert!(cache.admit(9).is_none(), "8 more may be dirty");
    assert_eq!((cache.dirty_pages(), cache.table().len()), (24, 24));
}

/// Room that a write took and did not need comes back; what it needs stays taken until the page is clean, or gone.
#[test]
fn a_write_keeps_the_room_of_its_pages() {
    let cache = cache(64);
    let pages = cache.new_file();
    let mut room = cache.admit(3).expect("room");
    let mut write = |block, bytes: &[u8]| cache.write(pages.key(block), 0, bytes, true, None, &mut room);
    assert!(write(0, b"new") && !write(0, b"again") && write(1, b"new"));
    drop(room);
    assert_eq!((cache.dirty_pages(), cache.table().len()), (2, 2));
    assert!(cache.table().mark_clean(pages.key(0)));
    cache.give_dirty(1);
    assert_eq!((cache.dirty_pages(), cache.table().len()), (1, 2));
    let mut room = cache.admit(1).expect("room");
    assert!(cache.write(pages.key(0), 0, b"dirty", false, None, &mut room), "a clean page becomes dirty");
    drop(room);
    assert_eq!((cache.dirty_pages(), cache.table().len()), (2, 2));
    assert!(cache.table().remove(pages.key(1)));
    cache.give_dirty(1);
    assert_eq!((cache.dirty_pages(), cache.table().len()), (1, 1));
}

/// More than an eighth of the cache is dirty: so much is written back that a sixteenth is left.
#[test]
fn the_surplus_leaves_half_of_what_may_stay() {
    let cache = cache(64);
    for (dirty, surplus) in [(0, 0), (8, 0), (9, 5), (32, 28)] {
        let _room = cache.admit(dirty).expect("room");
        assert_eq!((cache.dirty_pages(), cache.surplus()), (dirty, surplus));
    }
}

/// One write takes a quarter of what may be dirty at most, and a writer without room writes as much back, but no few
/// pages.
#[test]
fn a_write_is_a_part_of_the_cache() {
    assert_eq!((cache(64).longest_write(), cache(64).share()), (8, 512));
    assert_eq!((cache(8192).longest_write(), cache(8192).share()), (1024, 1024));
    assert_eq!(cache(40_000).longest_write(), 4096);
}

/// Whoever hears the alarm is woken by pages that become dirty, and by no others.
#[test]
fn pages_that_become_dirty_are_told_to_those_who_listen() {
    let cache = cache(16);
    let pages = cache.new_file();
    let rung = |heard: &mut u64| cache.alarm.wait(heard, core::time::Duration::ZERO);
    let (mut heard, mut room) = (0, cache.admit(2).expect("room"));
    cache.write(pages.key(0), 0, b"x", false, None, &mut room);
    assert!(!rung(&mut heard), "nobody listened");
    cache.alarm.listen();
    cache.write(pages.key(0), 0, b"y", false, None, &mut room);
    assert!(!rung(&mut heard), "it was dirty before");
    cache.write(pages.key(1), 0, b"x", false, None, &mut room);
    assert!(rung(&mut heard));
}

/// What was read is found again, without what stands behind the end of the file.
#[test]
fn blocks_that_were_read_are_kept() {
    let cache = cache(16);
    let (pages, other) = (cache.new_file(), cache.new_file());
    let mut found = [9; BLOCK];
    for (size, left) in [(3 * BLOCK as u64 + 100, 100), (4 * BLOCK as u64, BLOCK), (100 * BLOCK as u64, BLOCK), (5, 0)]
    {
        cache.keep(&pages, 3, &[7; BLOCK], size);
        assert!(cache.table().read(pages.key(3), 0, &mut found));
        assert!(found[..left].iter().all(|byte| *byte == 7) && found[left..].iter().all(|byte| *byte == 0), "{size}");
        assert!(!cache.table().read(other.key(3), 0, &mut found), "of another file");
        // Once more: it takes no more room.
        cache.keep(&pages, 3, &[8; BLOCK], size);
        assert_eq!(cache.table().len(), 1);
        assert!(cache.table().read(pages.key(3), 0, &mut found) && found[..left].iter().all(|byte| *byte == 7));
        cache.drop_clean(&pages, 0, u64::MAX);
        assert!(!there(&cache, &pages, 3) && cache.table().len() == 0);
    }
}

/// A page that cannot be kept for want of room is left out: no memory beyond the limit.
#[test]
fn without_room_nothing_is_kept() {
    let cache = cache(16);
    let pages = cache.new_file();
    assert!(cache.table().take_room(16));
    cache.keep(&pages, 0, &[7; BLOCK], BLOCK as u64);
    assert!(!there(&cache, &pages, 0) && cache.table().len() == 16);
}

/// Clean pages of a range go, wherever it ends; others and dirty ones stay.
#[test]
fn clean_pages_of_a_range_are_dropped() {
    let size = 100 * BLOCK as u64;
    for (first, last) in [(0, 0), (5, 5), (2, u64::MAX), (6, 9)] {
        let cache = cache(16);
        let (pages, other) = (cache.new_file(), cache.new_file());
        [0, 1, 2, 5].into_iter().for_each(|block| cache.keep(&pages, block, &[7; BLOCK], size));
        cache.keep(&other, first, &[7; BLOCK], size);
        let mut room = cache.admit(1).expect("room");
        cache.write(pages.key(3), 0, b"dirty", true, None, &mut room);
        pages.dirtied(3, 1, 1);
        cache.drop_clean(&pages, first, last);
        for block in [0, 1, 2, 5] {
            let stays = !(first..=last).contains(&block);
            assert_eq!(there(&cache, &pages, block), stays, "block {block} of {first} ..= {last}");
        }
        assert!(there(&cache, &pages, 3) && there(&cache, &other, first));
    }
    // The last block that came may be a dirty one.
    let cache = cache(16);
    let pages = cache.new_file();
    let mut room = cache.admit(1).expect("room");
    cache.write(pages.key(7), 0, b"dirty", true, None, &mut room);
    pages.dirtied(7, 1, 1);
    cache.table().mark_clean(pages.key(7));
    cache.drop_clean(&pages, 7, 7);
    assert!(!there(&cache, &pages, 7));
}

/// The dirty blocks of a file, the space that is counted for them, and whether the file is listed.
#[test]
fn a_file_knows_its_dirty_blocks() {
    let pages = cache(16).new_file();
    let clean = |pages: &FilePages| {
        assert!(!pages.is_dirty() && !pages.is_dirty_in(0, u64::MAX) && pages.reserved() == 0);
        assert_eq!((pages.next_dirty(0), pages.dirty_run(5), pages.dirty_span(0, 10)), (None, None, None));
        assert_eq!(pages.still_dirty(), 0);
    };
    clean(&pages);
    assert!(pages.dirtied(5, 3, 2), "to be listed");
    assert!(!pages.dirtied(7, 3, 1), "it is on the list");
    assert!(pages.is_dirty() && pages.reserved() == 3);
    for (first, last, dirty) in [(0, 4, false), (0, 5, true), (9, 9, true), (9, 20, true), (10, 20, false)] {
        assert_eq!(pages.is_dirty_in(first, last), dirty, "{first} ..= {last}");
    }
    assert_eq!((pages.dirty_run(4), pages.dirty_run(5), pages.dirty_run(9)), (None, Some(5), Some(1)));
    assert_eq!((pages.next_dirty(0), pages.dirty_span(0, 3)), (Some((5, 5)), Some((5, 7))));
    assert_eq!(pages.still_dirty(), 5);
    pages.remove(5, 4, 2);
    assert!(pages.is_dirty() && pages.reserved() == 1 && pages.still_dirty() == 1);
    assert!(!pages.dirtied(20, 1, 0), "it stayed on the list");
    assert_eq!(pages.still_dirty(), 2);
    pages.remove(9, 1, 1);
    pages.remove(20, 1, 0);
    clean(&pages);
    assert!(pages.dirtied(0, 1, 0), "it was taken off the list");
    assert_eq!(pages.reserved(), 0);
}
