//! Files of a damaged volume that cannot be freed when their last name goes.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_test_kit::harm::{ino, open, patch_node, volume};

/// Its blocks lie below a node that is another file's: that stays.
#[test]
fn who_removes_a_file_is_told_of_the_damage() {
    let device = volume();
    let (root, large) = (ino(&device, "/"), ino(&device, "/large"));
    patch_node(&device, large, |node| node.inode_mut().i_nid[0] = root.into());
    let fs = open(&device);
    let error = fs.remove_file("/large").unwrap_err();
    assert!(error.is_corruption(), "{error}");
    assert!(!fs.exists("/large").unwrap(), "its name went");
    assert_eq!(fs.volume().orphans(), [large]);
    fs.drop_unused();
    assert_eq!(fs.metadata("/").unwrap().ino, root);
    assert!(fs.metadata("/small").is_ok());
}
