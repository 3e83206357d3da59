//! A table against a naive one, and what goes where there is no room.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::BTreeMap;

use super::*;

const BLOCK: usize = 4096;

fn key(file: u64, block: u64) -> Key {
    Key { file, block }
}

/// Puts in a clean page with room of its own.
fn keep(table: &PageTable, key: Key, byte: u8) {
    assert!(table.take_room(1));
    assert!(table.insert_clean(key, &[byte; BLOCK]));
}

#[derive(Clone)]
struct Model {
    data: Vec<u8>,
    dirty: bool,
    reserved: bool,
}

/// Everything but eviction: pages of two files, with all that is done to them.
#[test]
fn it_is_pages_by_file_and_block() {
    let table = PageTable::new(64);
    let mut model: BTreeMap<(u64, u64), Model> = BTreeMap::new();
    let mut seed = 1_u64;
    let mut below = |end: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % end
    };
    for step in 0..3000_u64 {
        let (file, block, byte) = (1 + below(2), below(20), step as u8);
        let at = key(file, block);
        let page = model.get(&(file, block)).cloned();
        match below(7) {
            0 | 1 => {
                let (from, hole) = (below(4096) as usize, below(2) == 0);
                let bytes = vec![byte; 1 + below((BLOCK - from) as u64) as usize];
                let base = vec![byte ^ 0x55; BLOCK];
                let base = (below(2) == 0).then_some(&base[..]);
                assert!(page.is_some() || table.take_room(1));
                let put = table.write(at, from, &bytes, hole, base);
                let was_clean = page.as_ref().is_none_or(|page| !page.dirty);
                assert_eq!(put, Put { is_new: page.is_none(), was_clean }, "{step}");
                let reserved = if was_clean { hole } else { page.as_ref().is_some_and(|page| page.reserved) };
                let begin = || base.map_or(vec![0; BLOCK], <[u8]>::to_vec);
                let mut data = page.map_or_else(begin, |page| page.data);
                data[from..from + bytes.len()].copy_from_slice(&bytes);
                model.insert((file, block), Model { data, dirty: true, reserved });
            }
            2 => {
                assert!(table.take_room(1));
                let taken = table.insert_clean(at, &[byte; BLOCK]);
                assert_eq!(taken, page.is_none(), "what is there is not older than the device");
                if taken {
                    model.insert((file, block), Model { data: vec![byte; BLOCK], dirty: false, reserved: false });
                } else {
                    table.give_room(1);
                }
            }
            3 => {
                let was_hole = page.as_ref().is_some_and(|page| page.dirty && page.reserved);
                assert_eq!(table.mark_clean(at), was_hole, "{step}");
                if let Some(page) = model.get_mut(&(file, block)) {
                    (page.dirty, page.reserved) = (false, false);
                }
            }
            4 => {
                let was_hole = page.as_ref().is_some_and(|page| page.dirty && page.reserved);
                assert_eq!(table.remove(at), was_hole, "{step}");
                model.remove(&(file, block));
            }
            5 => {
                // Within a few blocks, and more than there are buckets.
                let last = block + [0, 3, 1000][below(3) as usize];
                table.drop_clean(file, block, last);
                model.retain(|(f, b), page| page.dirty || *f != file || !(block..=last).contains(b));
            }
            _ => {
                let (from, len) = (below(4096) as usize, below(4096) as usize);
                let mut out = vec![0; len.min(BLOCK - from)];
                assert_eq!(table.read(at, from, &mut out), page.is_some());
                assert!(page.is_none_or(|page| out[..] == page.data[from..][..out.len()]));
            }
        }
        assert_eq!(table.len(), model.len() as u64, "{step}");
        if step % 10 == 0 {
            for at in (1..3).flat_map(|file| (0..20).map(move |block| (file, block))) {
                let page = model.get(&at);
                assert_eq!(table.contains(key(at.0, at.1)), page.is_some());
                let mut all = AlignedBuf::new(0);
                assert_eq!(table.push_to(key(at.0, at.1), &mut all), page.is_some());
                assert_eq!(all.as_bytes(), page.map_or(&[][..], |page| &page.data), "{step}, {at:?}");
            }
        }
    }
}

/// Pages that somebody read, copied or wrote since eviction came by stay for one more round; no more goes than is needed.
#[test]
fn what_was_used_stays_longer() {
    let table = PageTable::new(256);
    (0..256).for_each(|block| keep(&table, key(1, block), block as u8));
    let used = |block: u64| block % 8 < 3;
    for block in (0..256).filter(|block| used(*block)) {
        let at = key(1, block);
        match block % 8 {
            0 => assert!(table.read(at, 0, &mut [0; 10])),
            1 => assert!(table.push_to(at, &mut AlignedBuf::new(0))),
            _ => {
                table.write(at, 0, b"x", false, None);
                table.mark_clean(at);
            }
        }
    }
    assert!(table.take_room(1));
    let gone = 256 + 1 - table.len();
    assert!((32..64).contains(&gone), "{gone} of 256 went for one");
    assert!((0..256).all(|block| !used(block) || table.contains(key(1, block))), "used pages went first");
    // Those that nobody uses again go in the end, and then there is no room.
    for _ in 1..256 {
        assert!(table.take_room(1));
    }
    assert_eq!(table.len(), 256);
    assert!(!table.take_room(1));
    assert!((0..256).all(|block| !table.contains(key(1, block))));
    table.give_room(256);
    assert_eq!(table.len(), 0);
}

#[test]
fn dirty_pages_never_make_room() {
    let table = PageTable::new(16);
    for block in 0..8 {
        assert!(table.take_room(1));
        table.write(key(1, block), 0, &[7; BLOCK], true, None);
        keep(&table, key(2, block), 9);
    }
    assert!(table.take_room(8), "the clean ones go");
    assert!(!table.take_room(1), "nothing is left that may go");
    for block in 0..8 {
        let mut found = [0; BLOCK];
        assert!(table.read(key(1, block), 0, &mut found) && found == [7; BLOCK]);
        assert!(!table.contains(key(2, block)));
    }
}

/// A file may be cut to nothing though its end is far away: only pages that are there are looked at.
#[test]
fn a_range_without_end_costs_no_more_than_the_table_has() {
    let table = PageTable::new(16);
    keep(&table, key(1, 5), 1);
    keep(&table, key(1, 1 << 60), 1);
    keep(&table, key(2, 1 << 60), 1);
    table.drop_clean(1, 6, u64::MAX);
    assert!(table.contains(key(1, 5)) && !table.contains(key(1, 1 << 60)) && table.contains(key(2, 1 << 60)));
    assert_eq!(table.len(), 2);
}

/// The pages of a file that is read from its start on lie in different buckets, and so do those of many small files.
#[test]
fn neighbours_scatter() {
    for by_file in [false, true] {
        let table = PageTable::new(512);
        for n in 0..512 {
            keep(&table, if by_file { key(n, 0) } else { key(3, n) }, 0);
        }
        let longest = table.buckets.iter().map(|bucket| bucket.0.read().len()).max();
        assert!(longest <= Some(8), "{longest:?} pages in one bucket");
    }
}

#[test]
fn memory_of_pages_that_went_is_used_again() {
    let table = PageTable::new(16);
    let rounds = |count: u64| {
        for block in 0..count {
            assert!(table.take_room(1));
            table.write(key(1, block), 0, b"x", false, None);
            table.remove(key(1, block));
            keep(&table, key(1, block), 1);
            table.drop_clean(1, block, block);
        }
    };
    rounds(1);
    let taken = allocation_counter::measure(|| rounds(400));
    assert!(taken.count_total < 100, "{taken:?}");
}
