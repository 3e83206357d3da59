//! Names that lead elsewhere while something is done with what they meant.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::cell::RefCell;

use f2fs_sync::{Arc, PlainArc};

use super::lasting;
use crate::inode::Inode;
use crate::samples::formatted;
use crate::{FileKind, FileSystem, FsError, NewFile, Options, RenameMode};

/// What is done with an inode fails as long as it is freed.
fn with(inode: &Arc<Inode>) -> Result<f2fs_format::Nid, FsError> {
    if inode.life.lock().freed { Err(FsError::Invalid("it is gone")) } else { Ok(inode.ino) }
}

#[test]
fn a_name_is_looked_up_again_if_its_inode_went() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let inodes = ["/gone", "/here"].map(|path| fs.core.inode(fs.create_file(path, 0o644).unwrap().ino()).unwrap());
    let [gone, here] = &inodes;
    gone.life.lock().freed = true;
    let look_up = |found: &[&Arc<Inode>]| {
        let found = RefCell::new(found.iter().map(|inode| Ok(Arc::clone(inode))).collect::<Vec<_>>().into_iter());
        lasting(|| found.borrow_mut().next().expect("a look-up too many"), with)
    };
    assert_eq!(look_up(&[here]).unwrap(), here.ino);
    // Another file took the name.
    assert_eq!(look_up(&[gone, here]).unwrap(), here.ino);
    // On a damaged volume the name still leads to the inode that is freed.
    assert!(matches!(look_up(&[gone, gone]), Err(FsError::Invalid("it is gone"))));
    gone.life.lock().freed = false;
}

/// The longest target, and the terminator that old kernels store behind it.
#[test]
fn a_target_may_fill_its_block() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let target = [b'x'; 4095];
    fs.symlink(&target, "/link", &NewFile::new(FileKind::Symlink, 0o777)).unwrap();
    let ino = fs.symlink_metadata("/link").unwrap().ino;
    for (size, is_sound) in [(4095, true), (4096, true), (4097, false)] {
        let inode = fs.core.inode(ino).unwrap();
        fs.core
            .change(|op| {
                inode.node.write(op).inode_mut().i_size = size.into();
                Ok(())
            })
            .unwrap();
        drop(inode);
        fs.checkpoint().unwrap();
        let again = FileSystem::open(PlainArc::new(device.snapshot()), Options::new().read_only(true)).unwrap();
        match again.read_link("/link") {
            Ok(found) => assert!(is_sound && found == target, "{size}"),
            Err(error) => assert!(!is_sound && error.is_corruption(), "{size}: {error}"),
        }
    }
}

/// A directory that moved has another one above it, whoever went that way before.
#[test]
fn the_way_up_is_looked_up_anew() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    for path in ["/a", "/a/b", "/c"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    fs.create_file("/a/f", 0o644).unwrap();
    fs.create_file("/c/g", 0o644).unwrap();
    for _ in 0..3 {
        assert!(fs.exists("/a/b/../f").unwrap() && fs.exists("/a/b/./../b/../f").unwrap());
    }
    fs.rename("/a/b", "/c/b", RenameMode::Replace).unwrap();
    assert!(fs.exists("/c/b/../g").unwrap() && !fs.exists("/c/b/../f").unwrap());
    assert!(fs.exists("/c/b/./../b/../g").unwrap());
}
