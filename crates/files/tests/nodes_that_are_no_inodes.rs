//! A name that leads to a node of a file's data, which looks like an inode; and a root that is no directory.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_device::BlockDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_format::dentry::{DentryViewMut, FileType};
use f2fs_format::feature::Features;
use f2fs_format::hash::dentry_hash;
use f2fs_format::node::NodeBlock;
use f2fs_test_kit::harm::{geometry, ino, patch_node, read, volume};

#[test]
fn a_node_is_not_taken_for_an_inode() {
    let device = volume();
    let (dir, large, geometry) = (ino(&device, "/dir"), ino(&device, "/large"), geometry(&device));
    let (at, mut node) = (geometry.main_blkaddr.0..geometry.main_end().0)
        .map(|addr| (addr, Box::new(*NodeBlock::read(&read(&device, addr.into())))))
        .find(|(_, node)| node.ino() == large && node.nid() != large && node.footer.node_offset() == 1)
        .unwrap();
    // A regular file with one name and no bytes, if it were one.
    let mut inode = NodeBlock::new_box();
    inode.inode_mut().i_mode = 0o100_644.into();
    inode.inode_mut().i_links = 1.into();
    node.body = inode.body;
    device.write_slice(at.into(), node.as_block()).unwrap();
    let target = node.nid();
    patch_node(&device, dir, |node| {
        let mut view = DentryViewMut::inline(node.inode_mut().inline_data_mut(Features::SB_CHECKSUM));
        let slot = view.as_view().find(dentry_hash(b"below"), b"below").unwrap().slot;
        view.set_target(slot, target, FileType::Regular).unwrap();
    });
    for read_only in [true, false] {
        let fs = FileSystem::open(Arc::new(device.snapshot()), Options::new().read_only(read_only)).unwrap();
        for error in [fs.metadata("/dir/below").unwrap_err(), fs.open_file("/dir/below").unwrap_err()] {
            assert!(error.is_corruption() && error.to_string().contains("a directory entry names"), "{error}");
        }
    }
}

#[test]
fn a_root_that_is_no_directory_is_not_opened() {
    let device = volume();
    let root = ino(&device, "/");
    patch_node(&device, root, |node| node.inode_mut().i_mode = 0o100_644.into());
    for read_only in [true, false] {
        let opened = FileSystem::open(Arc::new(device.snapshot()), Options::new().read_only(read_only));
        assert!(opened.is_err(), "read only: {read_only}");
    }
}
