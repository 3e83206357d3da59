//! Names that lead elsewhere while something is done with what they meant.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::cell::RefCell;

use f2fs_device::MemoryDevice;
use f2fs_sync::{Arc, PlainArc};
use f2fs_volume::format::{FormatOptions, format};

use super::lasting;
use crate::inode::Inode;
use crate::{FileSystem, FsError, Options};

/// What is done with an inode fails as long as it is freed.
fn with(inode: &Arc<Inode>) -> Result<f2fs_format::Nid, FsError> {
    if inode.life.lock().freed { Err(FsError::Invalid("it is gone")) } else { Ok(inode.ino) }
}

#[test]
fn a_name_is_looked_up_again_if_its_inode_went() {
    let device = PlainArc::new(MemoryDevice::new(32 * 1024));
    format(&*device, &FormatOptions::default()).unwrap();
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
