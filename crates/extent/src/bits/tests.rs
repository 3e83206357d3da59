use super::*;

const A: Bits = Bits::DIRTY;
const B: Bits = Bits::NEW;
const C: Bits = Bits::USER_0;

fn range(first: u64, last: u64) -> BlockRange {
    BlockRange::new(first, last).expect("a range of blocks")
}

impl ExtentBits {
    fn chunk_is_there(&self, number: u64) -> bool {
        self.chunks.get().is_some_and(|chunks| chunks.get(number).is_some())
    }

    /// Looks at blocks that have no bits, in every way.
    fn look(&self, block: u64) {
        assert_eq!(self.get(block), Bits::NONE);
        assert!(!self.test_any(block..=block, Bits::ALL) && !self.test_all(block..=block, A));
        assert!(self.test_all(block..=block, Bits::NONE));
        assert_eq!((self.count(block..=block, A), self.count(block..block + 3, Bits::NONE)), (0, 3));
        assert_eq!(self.clear(block..=block, Bits::ALL), 0);
    }
}

#[test]
fn a_look_at_nothing_takes_no_memory() {
    let bits = ExtentBits::new();
    assert_eq!(bits.bytes(), size_of::<ExtentBits>());
    [0, 5000, 1 << 40].into_iter().for_each(|block| bits.look(block));
    assert_eq!(bits.bytes(), size_of::<ExtentBits>());
    // The same when all that the map had has gone into chunks.
    bits.set(0..2 * CHUNK_BLOCKS, A);
    bits.set(5..=5, B);
    bits.set(CHUNK_BLOCKS..=CHUNK_BLOCKS, B);
    let bytes = bits.bytes();
    bits.look(1 << 20);
    assert_eq!(bits.bytes(), bytes);
}

#[test]
fn each_run_of_the_map_is_counted_as_memory() {
    let bits = ExtentBits::new();
    for run in 0..100 {
        let first = run * 4 * CHUNK_BLOCKS;
        bits.set(first..first + 2 * CHUNK_BLOCKS, A);
    }
    let least = 100 * size_of::<(u64, u64, Bits)>();
    assert!((least..8 * least).contains(&(bits.bytes() - size_of::<ExtentBits>())), "{} bytes", bits.bytes());
}

#[test]
fn what_a_short_change_touches_moves_into_a_chunk() {
    let bits = ExtentBits::new();
    bits.set(0..3 * CHUNK_BLOCKS, A);
    assert!((0..3).all(|number| !bits.chunk_is_there(number)));
    assert_eq!(bits.set(CHUNK_BLOCKS + 5..CHUNK_BLOCKS + 7, B), 2);
    assert_eq!([0, 1, 2].map(|number| bits.chunk_is_there(number)), [false, true, false]);
    assert_eq!(bits.runs.lock().len(), 2, "the map has the rest");
    assert_eq!(bits.count(.., A), u128::from(3 * CHUNK_BLOCKS));
    assert_eq!(
        bits.iter().map(|run| run.range).collect::<Vec<_>>(),
        [
            range(0, CHUNK_BLOCKS + 4),
            range(CHUNK_BLOCKS + 5, CHUNK_BLOCKS + 6),
            range(CHUNK_BLOCKS + 7, 3 * CHUNK_BLOCKS - 1)
        ]
    );
}

#[test]
fn readers_are_told_of_every_change_of_several_words() {
    let bits = ExtentBits::new();
    let versions = || {
        let chunks = bits.chunks.get().expect("there are two");
        [0, 1].map(|number| chunks.get(number).expect("it was made").version())
    };
    bits.set(0..8, A);
    bits.set(CHUNK_BLOCKS..CHUNK_BLOCKS + 8, A);
    assert_eq!(versions(), [0, 0], "one word");
    bits.set(7..9, A);
    assert_eq!(versions(), [2, 0]);
    bits.clear(CHUNK_BLOCKS - 1..=CHUNK_BLOCKS, A);
    assert_eq!(versions(), [4, 2]);
    bits.convert(.., B, A);
    assert_eq!(versions(), [6, 4]);
    assert_eq!((bits.count(.., A), bits.count(0..2 * CHUNK_BLOCKS, B)), (0, u128::from(2 * CHUNK_BLOCKS)));
}

/// Another thread holds the lock of the map and that of the chunk, for a change of several words that has not begun.
#[test]
fn one_word_is_changed_and_any_are_read_without_a_lock() {
    let bits = ExtentBits::new();
    bits.set(0..100, A);
    let Some(Short::Chunk(chunk, _)) = bits.short(range(0, 99)) else { panic!("it has a chunk") };
    let locks = (bits.runs.lock(), chunk.lock());
    assert_eq!(bits.set(8..=10, B), 3);
    assert_eq!(bits.convert(9..=9, C, A), 1);
    assert_eq!((bits.get(8), bits.get(9)), (A | B, B | C));
    assert!(bits.test_all(0..9, A) && bits.test_any(0..100, C));
    assert!(!bits.test_any(0..100, Bits::USER_2) && !bits.test_any(10..100, C) && !bits.test_any(0..9, C));
    assert!(!bits.test_all(0..10, A) && !bits.test_all(8..9, A | C));
    assert_eq!(bits.count(0..100, A), 99);
    drop(locks);
}

#[test]
fn runs_go_on_over_the_borders_of_chunks() {
    let bits = ExtentBits::new();
    let border = CHUNK_BLOCKS;
    for (first, last) in [(border - 1, border + 4), (border - 3, border), (border - 1, border)] {
        bits.set(first..border, A);
        bits.set(border..=last, A);
        assert!(bits.chunk_is_there(0) && bits.chunk_is_there(1));
        for block in first..=last {
            assert_eq!(bits.run_at(block), Run { range: range(first, last), bits: A });
        }
        assert_eq!(bits.run_at(first - 1).range, range(0, first - 1));
        assert_eq!(bits.run_at(last + 1).range, range(last + 1, u64::MAX));
        bits.clear(.., A);
    }
}

#[test]
fn a_gap_between_chunks_ends_with_them() {
    let bits = ExtentBits::new();
    bits.set(3..=8, A);
    bits.set(5 * CHUNK_BLOCKS + 7..=5 * CHUNK_BLOCKS + 9, B);
    for block in [9, CHUNK_BLOCKS - 1, CHUNK_BLOCKS, 2 * CHUNK_BLOCKS + 11, 5 * CHUNK_BLOCKS + 6] {
        assert_eq!(bits.run_at(block), Run { range: range(9, 5 * CHUNK_BLOCKS + 6), bits: Bits::NONE }, "{block}");
        assert_eq!(bits.find_with(block, A | B).map(|run| run.range.first()), Some(5 * CHUNK_BLOCKS + 7), "{block}");
    }
    assert_eq!(bits.run_at(9 * CHUNK_BLOCKS).range, range(5 * CHUNK_BLOCKS + 10, u64::MAX));
}

#[test]
fn what_has_none_of_the_bits_goes_on_over_gaps_that_a_run_follows() {
    let bits = ExtentBits::new();
    for (first, last, what) in [(10, 14, A), (20, 24, B), (30, 34, A), (40, 44, C), (50, 54, B)] {
        bits.set(first..=last, what);
    }
    let without = |from, what| bits.find_without(from, what).map(|found| (found.first(), found.last()));
    assert_eq!(without(0, A), Some((0, 9)));
    assert_eq!(without(12, A), Some((15, 29)), "to the next one with the bit, and no further");
    assert_eq!(without(30, A), Some((35, 54)), "to the last run");
    assert_eq!(without(21, A | C), Some((20, 29)), "from where its run begins");
    assert_eq!(without(45, B), Some((45, 49)));
    assert_eq!(without(60, B), Some((55, u64::MAX)), "nothing follows");
    bits.set(55.., B);
    assert_eq!(without(50, B), None);
}

#[test]
fn blocks_about_the_last_chunk_are_like_others() {
    let bits = ExtentBits::new();
    for block in [CHUNKED_BLOCKS - 1, CHUNKED_BLOCKS, u64::MAX] {
        assert_eq!(bits.set(block..=block, A), 1);
        assert_eq!((bits.get(block), bits.count(.., A)), (A, 1));
        assert_eq!(bits.run_at(block), Run { range: BlockRange::one(block), bits: A });
        assert_eq!(bits.find_with(0, A).map(|run| run.range), Some(BlockRange::one(block)));
        assert_eq!(bits.clear(block - 1..=block, A), 1);
    }
    assert_eq!(bits.set(CHUNKED_BLOCKS - 2..CHUNKED_BLOCKS + 2, A), 4);
    assert_eq!(bits.run_at(CHUNKED_BLOCKS).range, range(CHUNKED_BLOCKS - 2, CHUNKED_BLOCKS + 1));
    assert_eq!(bits.find_without(CHUNKED_BLOCKS - 1, A), Some(range(CHUNKED_BLOCKS + 2, u64::MAX)));
}

#[test]
fn blocks_in_a_row_are_found_whatever_else_they_have() {
    let bits = ExtentBits::new();
    for (first, last, what) in [(10, 14, A), (15, 19, B), (20, 29, C), (40, 44, A), (45, 45, A | C), (46, 50, C)] {
        bits.set(first..=last, what);
    }
    let contiguous = |from, what| bits.find_contiguous(from, what).map(|found| (found.first(), found.last()));
    assert_eq!(contiguous(0, A), Some((10, 14)));
    assert_eq!(contiguous(0, A | B), Some((10, 19)));
    assert_eq!(contiguous(12, A | B | C), Some((10, 29)), "from where its run begins");
    assert_eq!(contiguous(15, A), Some((40, 45)));
    assert_eq!(contiguous(30, C), Some((45, 50)));
    assert_eq!((contiguous(51, Bits::ALL), contiguous(0, Bits::USER_2)), (None, None));

    let first =
        |from, to, what| bits.first_contiguous(range(from, to), what).map(|found| (found.first(), found.last()));
    assert_eq!(first(0, 100, A), Some((10, 14)));
    assert_eq!(first(12, 13, A), Some((12, 13)));
    assert_eq!(first(15, 45, A), Some((40, 45)), "to the last block of the range");
    assert_eq!(first(15, 44, A), Some((40, 44)));
    assert_eq!(first(15, 100, A | C), Some((45, 45)), "both bits");
    assert_eq!((first(15, 39, A), first(46, 100, A)), (None, None));
}
