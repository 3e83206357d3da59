//! Directories that grow out of their inode where their hash table begins wide.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::MemoryDevice;
use f2fs_format::feature::Features;
use f2fs_format::hash::dentry_hash;
use f2fs_sync::{Arc, PlainArc};
use f2fs_volume::format::{FormatOptions, format};

use crate::inode::Inode;
use crate::samples::formatted;
use crate::{FileSystem, FsError, Options};

/// Buckets of the first level, of two blocks each.
const BUCKETS: u32 = 1 << 9;

/// Names of 200 letters that belong into these buckets.
fn names(mut fits: impl FnMut(u32) -> bool) -> impl Iterator<Item = String> {
    (0..).map(|number| format!("{number:0>200}")).filter(move |name| fits(dentry_hash(name.as_bytes()) % BUCKETS))
}

/// An inode addresses 864 blocks of its own: the last bucket that lies in front of that is 431.
#[test]
fn a_directory_whose_first_level_its_inode_does_not_reach_stays_in_the_inode() {
    const LAST: u32 = 431;
    for (bucket, fits) in [(LAST, true), (LAST + 1, false)] {
        let device = PlainArc::new(MemoryDevice::new(32 * 1024));
        format(&*device, &FormatOptions::default().with_features(Features::EXTRA_ATTR)).unwrap();
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        fs.create_file("/f", 0o644).unwrap();
        fs.create_dir("/d", 0o755).unwrap();
        let inode = fs.core.inode(fs.metadata("/d").unwrap().ino).unwrap();
        assert_eq!(inode.node.read().inode().layout(fs.core.volume.features()).address_count(), 864);
        fs.core
            .change(|op| {
                inode.node.write(op).inode_mut().i_dir_level = 9;
                Ok(())
            })
            .unwrap();
        drop(inode);
        fs.close().unwrap();
        drop(fs);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let mut made = Vec::new();
        let refused =
            names(|here| here == bucket).take(1).chain(names(|here| here < LAST)).take(100).find_map(|name| {
                match fs.link("/f", format!("/d/{name}")) {
                    Ok(()) => made.push(name),
                    Err(error) => return Some(error),
                }
                None
            });
        match refused {
            Some(FsError::Unsupported { what, .. }) => assert!(!fits && what.contains("dir_level"), "{what}"),
            Some(error) => panic!("{error}"),
            None => assert!(fits),
        }
        assert!(made.len() > 5);
        assert_eq!(fs.read_dir("/d").unwrap().count(), made.len(), "what is not written yet is listed");
        fs.close().unwrap();
        let fs = FileSystem::open(device, Options::new()).unwrap();
        assert_eq!(fs.read_dir("/d").unwrap().count(), made.len());
        assert!(made.iter().all(|name| fs.exists(format!("/d/{name}")).unwrap()));
        assert!(fs.core.volume.stopped().is_none());
    }
}

/// A directory with names of `len` letters, in blocks of its own.
fn hashed(names: usize, len: usize) -> (FileSystem, Arc<Inode>) {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    fs.create_file("/f", 0o644).unwrap();
    fs.create_dir("/d", 0o755).unwrap();
    (0..names).for_each(|number| fs.link("/f", format!("/d/{number:0>len$}")).unwrap());
    let inode = fs.core.inode(fs.metadata("/d").unwrap().ino).unwrap();
    assert!(inode.directory().unwrap().is_hashed());
    (fs, inode)
}

/// Two names may find at once that the inode is full.
#[test]
fn a_directory_grows_out_of_its_inode_once() {
    let (fs, inode) = hashed(20, 200);
    let before = *inode.node.read().inode();
    fs.core.change(|op| inode.directory()?.convert(op)).unwrap();
    let after = *inode.node.read().inode();
    assert_eq!((after.i_size, after.i_blocks, after.i_addr), (before.i_size, before.i_blocks, before.i_addr));
    assert_eq!(fs.read_dir("/d").unwrap().count(), 20);
}

/// Levels that were full when a name was looked for need not be when the next one comes.
#[test]
fn a_directory_becomes_no_deeper_while_there_is_room() {
    let (fs, inode) = hashed(2000, 20);
    let directory = inode.directory().unwrap();
    let depth = directory.depth();
    assert!(depth > 2);
    for number in 0..20 {
        let name = format!("x{number}");
        // What the stripe believes.
        directory.names(dentry_hash(name.as_bytes())).write().room_at(1, depth);
        fs.link("/f", format!("/d/{name}")).unwrap();
        assert_eq!(directory.depth(), depth);
    }
}

/// In a new block of a name everything else is free, and the listing goes on behind it.
#[test]
fn names_are_listed_before_they_are_written() {
    for names in [8, 9, 24, 25, 26, 40, 200] {
        let (fs, inode) = hashed(names, 200);
        assert_eq!(fs.read_dir("/d").unwrap().count(), names);
        let last = inode.directory().unwrap().dirty.lock().keys().max().copied().unwrap();
        assert_eq!(fs.metadata("/d").unwrap().size, (last + 1) * 4096);
        assert_eq!(last > 0, names > 8, "the first block has room for eight");
        let dirty = inode.directory().unwrap().dirty.lock().len() as u64;
        assert_eq!(dirty, inode.directory().unwrap().blocks());
    }
}

/// Who lists a directory in parts goes on behind the last name that it was given, though the directory grows meanwhile.
#[test]
fn names_keep_their_places_when_a_directory_grows_out_of_its_inode() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    fs.create_file("/f", 0o644).unwrap();
    fs.create_dir("/d", 0o755).unwrap();
    let inode = fs.core.inode(fs.metadata("/d").unwrap().ino).unwrap();
    let directory = inode.directory().unwrap();
    let link = |number: usize| fs.link("/f", format!("/d/{number:0>100}")).unwrap();
    (0..10).for_each(link);
    // Gaps.
    for number in [0, 3, 4] {
        fs.remove_file(format!("/d/{number:0>100}")).unwrap();
    }
    let list = || directory.list(&fs.core.volume, 0, usize::MAX).unwrap().entries;
    let before = list();
    assert!(!directory.is_hashed());
    fs.core.change(|op| directory.convert(op)).unwrap();
    assert!(directory.is_hashed());
    assert_eq!(list(), before);
    (20..60).for_each(link);
    assert!(before.iter().all(|entry| list().contains(entry)));
}

#[test]
fn a_directory_that_leaves_memory_gives_back_its_names() {
    let (fs, inode) = hashed(300, 20);
    let shared = Arc::clone(&inode.directory().unwrap().shared);
    let taken = || crate::directory::names::NAMES - shared.names.available_exact();
    assert!(taken() >= 300);
    fs.close().unwrap();
    drop((inode, fs));
    assert_eq!(taken(), 0);
}
