//! Models of a file that several write: places of what is appended, blocks behind its end, the node that a processor used last (`volume/src/recent_nodes.rs`), and
//! times that change with a write if somebody has looked at them (`files/src/times.rs`).
//!
//! ```text
//! mutant: recent_node_was_removed, killed by: a_node_is_used_again_until_it_is_removed
//! mutant: blocks_behind_an_end_without_a_word, killed by: blocks_are_reserved_behind_the_end_beside_a_sync
//! mutant: look_is_not_noted, killed by: two_looks_tell_of_a_write_between_them
//! mutant: append_end_seen_before_its_lock, killed by: two_appends_have_places_of_their_own
//! mutant: cut_without_its_lock, killed by: a_node_is_used_again_until_it_is_removed
//! ```
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod loom_common;

use std::sync::OnceLock;

use f2fs_files::{AllocateFlags, File};
use f2fs_sync::{Arc, model};
use f2fs_volume::models::Image;
use loom_common::{BLOCK, Small, image, options, recorded};

/// Its slot is in a node of its own.
const FAR: u64 = 1000;

/// `/file` has one block, behind those whose slots are in the inode.
fn image_of_one() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| image(|fs| write(&fs.create_file("/file", 0o644).unwrap(), 1)))
}

/// `/file` is one block long.
fn short_file() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        image(|fs| {
            fs.create_file("/file", 0o644).unwrap().write_at(&[1; BLOCK], 0).unwrap();
        })
    })
}

fn write(file: &File, byte: u8) {
    assert_eq!(file.write_at(&[byte; BLOCK], FAR * BLOCK as u64).unwrap(), BLOCK);
}

fn read(file: &File) -> u8 {
    let mut bytes = [0; BLOCK];
    assert_eq!(file.read_at(&mut bytes, FAR * BLOCK as u64).unwrap(), BLOCK);
    assert!(bytes.iter().all(|byte| *byte == bytes[0]));
    bytes[0]
}

#[test]
fn a_node_is_used_again_until_it_is_removed() {
    image_of_one();
    let setup = || {
        let small = Small::open(image_of_one());
        let file = Arc::new(small.fs.open_file("/file").unwrap());
        write(&file, 2);
        (small, file)
    };
    model::large("a_node_is_used_again_until_it_is_removed", 2, setup, |(small, file)| {
        let other = Arc::clone(&file);
        let cutter = model::spawn(move || other.set_len(0).unwrap());
        write(&file, 3);
        cutter.join().unwrap();
        write(&file, 4);
        model::judge();
        assert_eq!(read(&file), 4);
        drop(file);
        let small = small.again();
        assert_eq!(read(&small.fs.open_file("/file").unwrap()), 4);
    });
}

#[test]
fn two_looks_tell_of_a_write_between_them() {
    image_of_one();
    let setup = || {
        let small = Small::open(image_of_one());
        let file = Arc::new(small.fs.open_file("/file").unwrap());
        write(&file, 2);
        assert_eq!(read(&file), 2);
        (small, file)
    };
    model::large("two_looks_tell_of_a_write_between_them", 2, setup, |(small, file)| {
        let other = Arc::clone(&file);
        let writer = model::spawn(move || write(&other, 3));
        let first = file.metadata().unwrap().modified;
        let found = read(&file);
        writer.join().unwrap();
        model::judge();
        let second = file.metadata().unwrap().modified;
        assert_eq!(read(&file), 3);
        assert!(found == 3 || first != second, "the file changed, and its times did not");
        drop(small);
    });
}

#[test]
fn two_appends_have_places_of_their_own() {
    const HALF: usize = BLOCK / 2;
    short_file();
    let setup = || {
        let small = Small::open(short_file());
        let file = Arc::new(small.fs.open_file("/file").unwrap());
        (small, file)
    };
    model::large("two_appends_have_places_of_their_own", 2, setup, |(small, file)| {
        let other = Arc::clone(&file);
        let thread = model::spawn(move || other.append(&[2; HALF]).unwrap());
        let mine = file.append(&[3; HALF]).unwrap();
        let places = [thread.join().unwrap(), mine];
        model::judge();
        let mut bytes = vec![0; BLOCK + 2 * HALF];
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
        for (place, byte) in places.into_iter().zip([2, 3]) {
            assert!(bytes[place as usize..][..HALF].iter().all(|found| *found == byte), "places {places:?}");
        }
        drop(small);
    });
}

/// Blocks are reserved behind the end of a file while it is synced: what roll-forward makes of the file has the old size
/// or the new one, however far the reservation was.
#[test]
fn blocks_are_reserved_behind_the_end_beside_a_sync() {
    const END: u64 = 3 * BLOCK as u64 - 100;
    short_file();
    for keep_size in [true, false] {
        let setup = || recorded(short_file(), options());
        let name = "blocks_are_reserved_behind_the_end_beside_a_sync";
        model::large(name, 1, setup, move |(device, fs)| {
            let other = Arc::clone(&fs);
            let thread = model::spawn(move || {
                let flags = AllocateFlags::NONE.keep_size(keep_size);
                other.open_file("/file").unwrap().allocate(2 * BLOCK as u64, END - 2 * BLOCK as u64, flags).unwrap();
            });
            let file = fs.open_file("/file").unwrap();
            file.write_at(&[2; BLOCK], 0).unwrap();
            file.sync_all().unwrap();
            let then = device.position();
            thread.join().unwrap();
            model::judge();
            let small = Small::on(Arc::new(device.log().image_at(then, |_, _| false)));
            let size = small.fs.metadata("/file").unwrap().size;
            assert!(size == BLOCK as u64 || !keep_size && size == END, "a size of {size} bytes");
        });
    }
}
