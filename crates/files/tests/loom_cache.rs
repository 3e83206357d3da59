//! Models of the addresses that a file remembers (`f2fs_extent::AddressCache`), in the roles that its documentation
//! names: those who read blocks, change them and move them, on a whole file system. A cache has lines of two blocks.
//!
//! ```text
//! mutant: cache_change_not_stored, killed by: a_reader_finds_what_a_writer_left
//! mutant: cache_renewed_before_it_is_empty, killed by: two_find_a_block_where_it_was_moved
//! mutant: cache_refreshed, killed by: two_find_a_block_where_it_was_moved
//! mutant: move_counted, killed by: a_block_is_read_while_it_moves
//! mutant: unlocked_read_ignores_writers, killed by: a_block_is_read_while_it_grows
//! mutant: unlocked_read_looks_once, killed by: a_block_is_read_while_it_grows
//! mutant: covering_writer_not_looked_for, killed by: a_block_is_read_while_somebody_appends
//! ```
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod loom_common;

use std::sync::OnceLock;

use f2fs_files::{File, FileSystem, Pace};
use f2fs_sync::{Arc, model};
use f2fs_volume::models::Image;
use loom_common::{BLOCK, Small, image};

/// `/file` has two blocks, alone in a segment that no log is in.
fn image_of_two() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        image(|fs| {
            fs.create_file("/file", 0o644).unwrap().write_at(&[1; 2 * BLOCK], 0).unwrap();
            fs.create_file("/filler", 0o644).unwrap().write_at(&vec![0; 511 * BLOCK], 0).unwrap();
            fs.checkpoint().unwrap();
            fs.remove_file("/filler").unwrap();
        })
    })
}

/// The file system, and the file with the addresses that it remembers.
fn opened() -> (Small, Arc<File>) {
    let small = Small::open(image_of_two());
    let file = Arc::new(small.fs.open_file("/file").unwrap());
    (small, file)
}

/// A block that is read holds one byte only: which one.
fn byte(file: &File, block: usize) -> u8 {
    let mut bytes = [0; BLOCK];
    assert_eq!(file.read_at(&mut bytes, (block * BLOCK) as u64).unwrap(), BLOCK);
    assert!(bytes.iter().all(|byte| *byte == bytes[0]));
    bytes[0]
}

fn write(file: &File, block: usize, byte: u8) {
    file.write_at(&[byte; BLOCK], (block * BLOCK) as u64).unwrap();
}

/// Moves the blocks of the file; what is where they were is gone after the checkpoint.
fn move_blocks(fs: &FileSystem) {
    let step = fs.clean_step(Pace::Urgent).unwrap().expect("the segment is nearly empty");
    assert_eq!(step.segments, 1);
    fs.checkpoint().unwrap();
}

/// A neighbour in the same line fills the writer's cell as well.
#[test]
fn a_reader_finds_what_a_writer_left() {
    image_of_two();
    model::large("a_reader_finds_what_a_writer_left", 2, opened, |(small, file)| {
        let other = Arc::clone(&file);
        let writer = model::spawn(move || write(&other, 1, 9));
        assert_eq!(byte(&file, 0), 1);
        writer.join().unwrap();
        model::judge();
        assert_eq!((byte(&file, 0), byte(&file, 1)), (1, 9));
        drop(small);
    });
}

#[test]
fn two_change_blocks_of_a_line() {
    image_of_two();
    model::large("two_change_blocks_of_a_line", 1, opened, |(small, file)| {
        let other = Arc::clone(&file);
        let writer = model::spawn(move || {
            assert_eq!(byte(&other, 1), 1);
            write(&other, 1, 9);
        });
        write(&file, 0, 8);
        assert_eq!(byte(&file, 0), 8);
        writer.join().unwrap();
        model::judge();
        assert_eq!((byte(&file, 0), byte(&file, 1)), (8, 9));
        drop(small);
    });
}

#[test]
fn a_block_is_read_while_it_moves() {
    image_of_two();
    let setup = || {
        let (small, file) = opened();
        assert_eq!(byte(&file, 0), 1);
        (small, file)
    };
    model::large("a_block_is_read_while_it_moves", 2, setup, |(small, file)| {
        let fs = Arc::clone(&small.fs);
        let mover = model::spawn(move || move_blocks(&fs));
        assert_eq!(byte(&file, 0), 1);
        mover.join().unwrap();
        model::judge();
        assert_eq!((byte(&file, 0), byte(&file, 1)), (1, 1));
    });
}

/// Both notice that blocks were moved, and neither relies on the other before all is forgotten.
#[test]
fn two_find_a_block_where_it_was_moved() {
    image_of_two();
    let setup = || {
        let (small, file) = opened();
        assert_eq!(byte(&file, 0), 1);
        move_blocks(&small.fs);
        (small, file)
    };
    model::large("two_find_a_block_where_it_was_moved", 2, setup, |(small, file)| {
        let other = Arc::clone(&file);
        let reader = model::spawn(move || assert_eq!(byte(&other, 0), 1));
        assert_eq!(byte(&file, 0), 1);
        reader.join().unwrap();
        drop(small);
    });
}

/// `/file` has a block and a half.
fn image_of_one_and_a_half() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        image(|fs| {
            fs.create_file("/file", 0o644).unwrap().write_at(&[1; BLOCK + BLOCK / 2], 0).unwrap();
        })
    })
}

/// A reader of a block that it does not lock, and one that writes its second half: the reader finds the half that was
/// there, or both.
fn read_while_written(name: &str, write: fn(&File)) {
    image_of_one_and_a_half();
    let setup = || {
        let small = Small::open(image_of_one_and_a_half());
        let file = Arc::new(small.fs.open_file("/file").unwrap());
        assert_eq!(file.read_at(&mut [0; BLOCK], BLOCK as u64).unwrap(), BLOCK / 2);
        (small, file)
    };
    model::large(name, 2, setup, move |(small, file)| {
        let other = Arc::clone(&file);
        let reader = model::spawn(move || {
            let mut bytes = [0; BLOCK];
            (other.read_at(&mut bytes, BLOCK as u64).unwrap(), bytes)
        });
        write(&file);
        let (len, bytes) = reader.join().unwrap();
        model::judge();
        assert!(len == BLOCK / 2 || len == BLOCK, "{len}");
        let (old, new) = bytes[..len].split_at(BLOCK / 2);
        assert!(old.iter().all(|byte| *byte == 1) && new.iter().all(|byte| *byte == 9), "what nobody wrote");
        drop(small);
    });
}

#[test]
fn a_block_is_read_while_it_grows() {
    read_while_written("a_block_is_read_while_it_grows", |file| {
        assert_eq!(file.write_at(&[9; BLOCK / 2], (BLOCK + BLOCK / 2) as u64).unwrap(), BLOCK / 2);
    });
}

#[test]
fn a_block_is_read_while_somebody_appends() {
    read_while_written("a_block_is_read_while_somebody_appends", |file| {
        assert_eq!(file.append(&[9; BLOCK / 2]).unwrap(), (BLOCK + BLOCK / 2) as u64);
    });
}
