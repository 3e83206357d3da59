//! Models of a large file that several write: the node that a processor used last (`volume/src/recent_nodes.rs`), and
//! times that change with a write if somebody has looked at them (`files/src/times.rs`).
//!
//! ```text
//! mutant: recent_node_was_removed, killed by: a_node_is_used_again_until_it_is_removed
//! mutant: look_is_not_noted, killed by: two_looks_tell_of_a_write_between_them
//! ```
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod loom_common;

use std::sync::OnceLock;

use f2fs_files::File;
use f2fs_sync::{Arc, model};
use f2fs_volume::models::Image;
use loom_common::{BLOCK, Small, image};

/// Its slot is in a node of its own.
const FAR: u64 = 1000;

/// `/file` has one block, behind those whose slots are in the inode.
fn image_of_one() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| image(|fs| write(&fs.create_file("/file", 0o644).unwrap(), 1)))
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
