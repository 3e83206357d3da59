//! Whether data or names stand in the inode, as the attributes of a file tell it.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_files::{FileKind, FileSystem, NewFile, Options};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

#[test]
fn what_is_small_stands_in_the_inode_until_it_grows() {
    let fs = FileSystem::open(formatted(64, &FormatOptions::default()), Options::new()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    let inline = |path: &str| {
        let about = fs.metadata(path).unwrap();
        (about.inline, about.blocks)
    };
    file.write_at(b"small", 0).unwrap();
    assert_eq!((inline("/file"), inline("/dir")), ((true, 1), (true, 1)));
    file.write_at(&[7; 8192], 0).unwrap();
    for name in 0..30 {
        fs.create(format!("/dir/{name:0>200}"), &NewFile::new(FileKind::Fifo, 0o644)).unwrap();
    }
    assert_eq!(inline("/file"), (false, 3));
    let (names_inline, blocks) = inline("/dir");
    assert!(!names_inline && blocks > 2, "{blocks}");
    assert!(!inline(&format!("/dir/{:0>200}", 7)).0, "a pipe has no content");
}
