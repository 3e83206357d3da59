//! Blocks that the cleaner moves while their addresses are remembered.

use f2fs_device::AlignedBuf;
use f2fs_files::{File, FileSystem, Options, Pace, ReadSlice};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

use crate::{BLOCK, open};

const BLOCKS: usize = 1000;

/// A way to read all of a file.
type Way = fn(&File, &mut [u8]);

fn by_pieces(file: &File, all: &mut [u8], len: usize) {
    for (number, piece) in all.chunks_mut(len).enumerate() {
        assert_eq!(file.read_at(piece, (number * len) as u64).unwrap(), piece.len());
    }
}

fn byte(block: usize) -> u8 {
    1 + (block % 250) as u8
}

/// A file whose addresses are known; then its blocks are moved, and their old places are written over.
fn moved(cache: u64) -> (FileSystem, File) {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let [file, other] = ["/file", "/other"].map(|path| fs.create_file(path, 0o644).unwrap());
    for block in 0..BLOCKS {
        file.write_at(&[byte(block); BLOCK], (block * BLOCK) as u64).unwrap();
        other.write_at(&[0xfe; 3 * BLOCK], (block * 3 * BLOCK) as u64).unwrap();
    }
    drop((file, other));
    fs.close().unwrap();
    let fs = open(&device, Options::new().page_cache(cache));
    let [file, other] = ["/file", "/other"].map(|path| fs.open_file(path).unwrap());
    by_pieces(&file, &mut vec![0; BLOCKS * BLOCK], 100 * BLOCK);
    other.set_len(0).unwrap();
    fs.checkpoint().unwrap();
    for _ in 0..20 {
        fs.clean_step(Pace::Urgent).unwrap();
    }
    fs.checkpoint().unwrap();
    let moved = fs.stats().moved_data_blocks;
    assert!(moved > 700, "{moved} blocks moved: the test shows nothing");
    while other.append(&[0xff; 256 * BLOCK]).is_ok() {}
    (fs, file)
}

fn assert_found(what: &str, all: &[u8]) {
    let wrong = all.chunks(BLOCK).enumerate().position(|(block, data)| data.iter().any(|found| *found != byte(block)));
    assert_eq!(wrong, None, "{what}: the first block that is not the file's");
}

/// Each way to read looks for blocks that were moved since it remembers where they are.
#[test]
fn reads_find_blocks_that_were_moved() {
    let ways: [(&str, Way); 5] = [
        ("a block at a time", |file, all| by_pieces(file, all, BLOCK)),
        ("some blocks at a time", |file, all| by_pieces(file, all, 3 * BLOCK)),
        ("many blocks at a time", |file, all| by_pieces(file, all, 600 * BLOCK)),
        ("into memory of the device", |file, all| {
            for (number, piece) in all.chunks_mut(BLOCK).enumerate() {
                let mut into = AlignedBuf::new(1);
                assert_eq!(file.read_into(&mut into, (number * BLOCK) as u64).unwrap(), BLOCK);
                piece.copy_from_slice(into.as_bytes());
            }
        }),
        ("many reads", |file, all| {
            let pieces = all.chunks_mut(2 * BLOCK).enumerate();
            let mut reads: Vec<_> =
                pieces.map(|(number, piece)| ReadSlice::new((number * 2 * BLOCK) as u64, piece)).collect();
            file.read_many(8, &mut reads).unwrap();
        }),
    ];
    for (what, way) in ways {
        let (_fs, file) = moved(0);
        let mut all = vec![0; BLOCKS * BLOCK];
        way(&file, &mut all);
        assert_found(what, &all);
    }
}

/// So do reads into the page cache, and writes of parts of blocks.
#[test]
fn the_page_cache_finds_blocks_that_were_moved() {
    // Few pages: those of the file went long ago.
    let (_fs, file) = moved(1);
    let mut all = vec![0; BLOCKS * BLOCK];
    by_pieces(&file, &mut all, BLOCK);
    assert_found("through the cache", &all);
    for cache in [0, 1] {
        let (_fs, file) = moved(cache);
        for block in (0..BLOCKS).step_by(50) {
            file.write_at(&[byte(block); 10], (block * BLOCK + 7) as u64).unwrap();
        }
        by_pieces(&file, &mut all, BLOCK);
        assert_found("over parts of blocks", &all);
    }
}
