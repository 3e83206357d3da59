//! Extended attributes: their order, where those lie that do not fit into the inode, and names that are there twice.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_device::BlockDevice;
use f2fs_files::{FileSystem, FsError, Options, SetMode};
use f2fs_format::feature::Features;
use f2fs_format::node::{NodeBlock, XATTR_NODE_OFFSET, mark};
use f2fs_test_kit::harm::{geometry, ino, open, patch_node, volume};
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;

#[test]
fn they_are_listed_by_their_names() {
    let fs = FileSystem::open(formatted(64, &FormatOptions::default()), Options::new()).unwrap();
    fs.create_file("/file", 0o644).unwrap();
    let names: [&[u8]; 5] = [b"user.c", b"trusted.b", b"user.a", b"security.z", b"user.b"];
    for name in names {
        fs.set_xattr("/file", name, name, SetMode::Create).unwrap();
    }
    let mut sorted = names.map(|name| (name.to_vec(), name.to_vec()));
    sorted.sort();
    assert_eq!(fs.xattrs("/file").unwrap(), sorted);
    fs.remove_xattr("/file", "user.b").unwrap();
    for missing in ["user.b", "user.none"] {
        assert!(matches!(fs.remove_xattr("/file", missing), Err(FsError::NoAttribute)));
    }
    assert_eq!(fs.xattrs("/file").unwrap().len(), 4);
}

/// Of two entries with one name the first is what the name means; a list has it alone.
#[test]
fn a_name_that_is_there_twice_is_listed_once() {
    let device = Arc::new(volume());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.set_xattr("/small", "user.nota", b"second", SetMode::Any).unwrap();
    fs.close().unwrap();
    drop(fs);
    patch_node(&device, ino(&device, "/small"), |node| {
        let area = node.inode_mut().inline_xattr_mut(Features::SB_CHECKSUM);
        if let Some(at) = area.windows(4).position(|name| name == b"nota") {
            area[at + 3] = b'e';
        }
    });
    let fs = open(&device);
    assert_eq!(fs.xattrs("/small").unwrap(), [(b"user.note".to_vec(), b"text".to_vec())]);
    assert_eq!(fs.xattr("/small", "user.note").unwrap(), b"text");
}

/// A node of a directory's goes to the log of hot nodes, that of a file to another one: its footer says which.
#[test]
fn their_node_is_as_warm_as_its_inode() {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    fs.create_file("/file", 0o644).unwrap();
    for path in ["/dir", "/file"] {
        let before = fs.metadata(path).unwrap().blocks;
        fs.set_xattr(path, "user.large", &[7; 3000], SetMode::Any).unwrap();
        assert_eq!(fs.metadata(path).unwrap().blocks, before + 1);
    }
    fs.close().unwrap();
    drop(fs);
    let geometry = geometry(&device);
    let cold = |path: &str| -> Vec<bool> {
        let ino = ino(&device, path);
        (geometry.main_blkaddr.0..geometry.main_end().0)
            .map(|addr| Box::new(*NodeBlock::read(device.read(addr.into(), 1).unwrap().block(0))))
            .filter(|node| node.ino() == ino && node.nid() != ino && node.footer.node_offset() == XATTR_NODE_OFFSET)
            .map(|node| node.footer.has_mark(mark::COLD))
            .collect()
    };
    assert_eq!((cold("/dir"), cold("/file")), (vec![false], vec![true]));
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    for path in ["/dir", "/file"] {
        let before = fs.metadata(path).unwrap().blocks;
        assert_eq!(fs.xattr(path, "user.large").unwrap(), [7; 3000]);
        fs.remove_xattr(path, "user.large").unwrap();
        assert_eq!(fs.metadata(path).unwrap().blocks, before - 1);
    }
    fs.close().unwrap();
    drop(fs);
    assert_clean(&device);
}

/// Of a damaged volume: a file that names another one's node for its attributes does not take that along when it goes.
#[test]
fn a_node_of_another_file_stays_when_the_file_goes() {
    let device = volume();
    let (root, small) = (ino(&device, "/"), ino(&device, "/small"));
    patch_node(&device, small, |node| node.inode_mut().i_xattr_nid = root.into());
    let fs = open(&device);
    let names = fs.read_dir("/").unwrap().count();
    fs.remove_file("/small").unwrap();
    assert_eq!(fs.volume().orphans(), [small], "it cannot be freed");
    fs.checkpoint().unwrap();
    fs.create_file("/another", 0o644).unwrap();
    fs.drop_unused();
    assert_eq!((fs.metadata("/").unwrap().ino, fs.read_dir("/").unwrap().count()), (root, names));
}

/// `system.advise` stands in the inode's own words, and is not set as an attribute.
#[test]
fn the_advice_is_no_attribute_that_can_be_set() {
    let fs = FileSystem::open(formatted(64, &FormatOptions::default()), Options::new()).unwrap();
    fs.create_file("/file", 0o644).unwrap();
    for mode in [SetMode::Any, SetMode::Create, SetMode::Replace] {
        let refused = fs.set_xattr("/file", "system.advise", &[1], mode);
        assert!(matches!(refused, Err(FsError::WrongKind { .. })), "{refused:?}");
    }
    assert!(matches!(fs.xattr("/file", "system.advise"), Err(FsError::NoAttribute)));
    assert_eq!(fs.xattrs("/file").unwrap(), []);
}
