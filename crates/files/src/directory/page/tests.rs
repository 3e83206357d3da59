//! Blocks of a directory that are made, shown, and are not to be had.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use super::*;
use crate::inode::Inode;
use crate::samples::formatted;
use crate::{FileSystem, Options};

/// A directory with some blocks, all of them on the device.
fn directory() -> (FileSystem, Arc<Inode>) {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    fs.create_file("/f", 0o644).unwrap();
    fs.create_dir("/d", 0o755).unwrap();
    (0..20).for_each(|number| fs.link("/f", format!("/d/{number:0>200}")).unwrap());
    fs.checkpoint().unwrap();
    let inode = fs.core.inode(fs.metadata("/d").unwrap().ino).unwrap();
    (fs, inode)
}

#[test]
fn a_block_is_made_once_and_shown_while_it_is_there() {
    const BLOCK: u64 = 100;
    let (fs, inode) = directory();
    let (directory, volume) = (inode.directory().unwrap(), &fs.core.volume);
    let op = volume.begin().unwrap();
    let (used, before) = (fs.statfs().valid_blocks, fs.metadata("/d").unwrap());
    assert!(directory.page(volume, BLOCK).unwrap().is_none(), "a hole");
    let slot = directory.make_block(&op, BLOCK).unwrap().unwrap();
    assert!(directory.make_block(&op, BLOCK).unwrap().is_none(), "it is there");
    let after = fs.metadata("/d").unwrap();
    assert_eq!((fs.statfs().valid_blocks - used, after.blocks - before.blocks), (1, 1));
    assert_eq!(after.size, (BLOCK + 1) * 4096);
    assert!(directory.make_block(&op, BLOCK - 1).unwrap().is_some());
    assert_eq!(fs.metadata("/d").unwrap().size, (BLOCK + 1) * 4096, "a block in front of the end");
    let page = directory.show(volume, &slot, BLOCK).unwrap();
    assert!(Arc::ptr_eq(&page, &directory.show(volume, &slot, BLOCK).unwrap()));
    assert!(Arc::ptr_eq(&page, &directory.page(volume, BLOCK).unwrap().unwrap()));
    assert!(directory.free_page(&op, &page).unwrap() && page.is_dead());
    assert!(directory.show(volume, &slot, BLOCK).is_none(), "others have filled and freed it since");
    assert!(directory.page(volume, BLOCK).unwrap().is_none());
    assert_eq!((fs.statfs().valid_blocks - used, fs.metadata("/d").unwrap().blocks - before.blocks), (1, 1));
}

/// A log may be about to write to it.
#[test]
fn a_block_that_is_not_in_use_is_not_read() {
    let (fs, inode) = directory();
    let (directory, volume) = (inode.directory().unwrap(), &fs.core.volume);
    directory.shrink(0);
    assert!(directory.page(volume, 0).unwrap().is_some());
    directory.shrink(0);
    let free = BlockAddr(volume.geometry().main_end().0 - 1);
    let op = volume.begin().unwrap();
    assert!(inode.node.write(&op).set_address(0, free, volume.features()));
    let error = directory.page(volume, 0).unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains(&free.0.to_string()), "{error}");
}

/// The mark of a compressed cluster is neither a block nor a hole. A hole would be filled, and this one never is: who
/// made a name tried for ever.
#[test]
fn the_mark_of_a_compressed_cluster_is_an_error() {
    let (fs, inode) = directory();
    let (directory, volume) = (inode.directory().unwrap(), &fs.core.volume);
    directory.shrink(0);
    let op = volume.begin().unwrap();
    (0..directory_blocks(&fs)).for_each(|slot| {
        assert!(inode.node.write(&op).set_address(slot, BlockAddr::COMPRESS, volume.features()));
    });
    let named = |error: FsError| {
        assert!(error.is_corruption() && error.to_string().contains(&BlockAddr::COMPRESS.0.to_string()), "{error}");
    };
    named(directory.page(volume, 0).unwrap_err());
    named(directory.page_or_new(&op, 0).map(|_| ()).unwrap_err());
    drop(op);
    named(fs.create_file("/d/new", 0o644).unwrap_err());
    named(fs.metadata(format!("/d/{:0>200}", 7)).unwrap_err());
    named(fs.remove_file(format!("/d/{:0>200}", 7)).unwrap_err());
}

/// How many blocks the directory of the tests has.
fn directory_blocks(fs: &FileSystem) -> usize {
    usize::try_from(fs.metadata("/d").unwrap().size / 4096).unwrap()
}

/// Where a bucket lies behind all that an inode can address there is no name.
#[test]
fn a_block_beyond_all_is_a_hole() {
    let (fs, inode) = directory();
    assert!(inode.directory().unwrap().page(&fs.core.volume, 1 << 40).unwrap().is_none());
}
