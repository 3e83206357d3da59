//! Files that are kept open on damaged volumes.

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{FileSystem, Options, RenameMode};
use f2fs_format::dentry::{DentryLayout, DentryView, ENTRY_SIZE};
use f2fs_format::feature::Features;
use f2fs_format::hash::dentry_hash;
use f2fs_test_kit::harm::{ino, options, patch_node};
use f2fs_test_kit::volumes::{assert_clean, formatted};

use super::{content, make, opened};

/// The file has the names `/a` and `/b`, and counts one link.
fn one_link_and_two_names() -> Arc<MemoryDevice> {
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    make(&fs, "/a", "both");
    fs.link("/a", "/b").unwrap();
    fs.close().unwrap();
    drop(fs);
    patch_node(&device, ino(&device, "/a"), |node| node.inode_mut().i_links = 1.into());
    device
}

#[test]
fn a_file_with_a_name_too_many_ends_once() {
    for (first, second) in [("/a", "/b"), ("/b", "/a")] {
        let device = one_link_and_two_names();
        for handles in [false, true] {
            let device = Arc::new(device.snapshot());
            let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
            let before = fs.statfs().valid_inodes;
            let files = [opened(&fs, "/a"), opened(&fs, "/b")];
            let files = handles.then_some(files);
            fs.remove_file(first).unwrap();
            assert!(fs.open_file(first).is_err());
            let again = fs.open_file(second);
            if let Ok(file) = &again {
                assert_eq!(content(file), "both");
            }
            fs.remove_file(second).unwrap();
            drop((again, files));
            assert!(fs.volume().orphans().is_empty());
            assert_eq!(fs.statfs().valid_inodes, before - 1);
            fs.close().unwrap();
            assert_clean(&device);
        }
    }
}

/// Its second name moves: the file ends while that goes on.
#[test]
fn a_file_that_ends_as_its_name_moves_is_no_deadlock() {
    let device = one_link_and_two_names();
    let fs = FileSystem::open(device.clone(), Options::new().page_cache(1 << 20)).unwrap();
    drop([opened(&fs, "/a"), opened(&fs, "/b")]);
    fs.remove_file("/a").unwrap();
    let _ = fs.rename("/b", "/c", RenameMode::Replace);
    let _ = fs.open_file("/c").map(|file| content(&file));
    let _ = fs.remove_file("/c");
    assert!(fs.volume().orphans().is_empty());
    let _ = fs.close();
}

/// The `..` of a directory leads to a file: it is no name of that file which anybody takes away.
#[test]
fn a_way_up_to_a_file_keeps_it_not() {
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    make(&fs, "/a", "x");
    fs.create_dir("/d", 0o755).unwrap();
    fs.close().unwrap();
    drop(fs);
    let file = ino(&device, "/a");
    patch_node(&device, ino(&device, "/d"), |node| {
        let area = node.inode_mut().inline_data_mut(Features::SB_CHECKSUM);
        let slot = DentryView::inline(area).find(dentry_hash(b".."), b"..").unwrap().slot;
        let entry = DentryLayout::of_size(area.len()).entries_at + slot * ENTRY_SIZE;
        area[entry + 4..entry + 8].copy_from_slice(&file.0.to_le_bytes());
    });
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let inodes = fs.statfs().valid_inodes;
    drop(opened(&fs, "/a"));
    let up: Vec<_> = (0..4).map(|_| fs.open_file("/d/..")).collect();
    assert!(up.iter().all(|file| file.as_ref().is_ok_and(|file| content(file) == "x")), "{up:?}");
    drop(up);
    fs.remove_file("/a").unwrap();
    assert_eq!((fs.volume().orphans(), fs.statfs().valid_inodes), (vec![], inodes - 1));
}
