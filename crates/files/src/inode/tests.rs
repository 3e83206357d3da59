//! What an inode can be, and what it cannot.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::MemoryDevice;
use f2fs_format::node::NodeBlock;
use f2fs_format::path::max_file_blocks;
use f2fs_sync::PlainArc;
use f2fs_volume::format::{FormatOptions, format};

use super::*;
use crate::{FileSystem, NewFile, Options};

const KINDS: [FileKind; 7] = [
    FileKind::Regular,
    FileKind::Directory,
    FileKind::Symlink,
    FileKind::BlockDevice,
    FileKind::CharDevice,
    FileKind::Fifo,
    FileKind::Socket,
];

fn file_system(features: Features) -> FileSystem {
    let device = PlainArc::new(MemoryDevice::new(32 * 1024));
    format(&*device, &FormatOptions::default().with_features(features)).unwrap();
    FileSystem::open(device, Options::new()).unwrap()
}

/// Whether an inode of this kind, with one name and this change, is accepted.
fn is_good(fs: &FileSystem, kind: FileKind, change: impl FnOnce(&mut raw::Inode)) -> bool {
    let mut node = NodeBlock::new_box();
    let inode = node.inode_mut();
    (inode.i_mode, inode.i_links) = ((kind.to_mode() | 0o644).into(), 1.into());
    change(inode);
    match check(&fs.core.volume, Nid(77), inode) {
        Ok(found) => {
            assert_eq!(found, kind);
            true
        }
        Err(error) => {
            assert!(error.is_corruption(), "{error}");
            false
        }
    }
}

#[test]
fn content_in_the_inode_is_that_of_its_kind() {
    let fs = file_system(Features(0));
    for kind in KINDS {
        assert!(is_good(&fs, kind, |_| {}), "{kind:?}");
        let data = matches!(kind, FileKind::Regular | FileKind::Symlink);
        assert_eq!(is_good(&fs, kind, |inode| inode.i_inline = inline::DATA), data, "{kind:?}");
        let names = kind == FileKind::Directory;
        assert_eq!(is_good(&fs, kind, |inode| inode.i_inline = inline::DENTRY), names, "{kind:?}");
        assert!(!is_good(&fs, kind, |inode| inode.i_inline = inline::DENTRY | inline::DATA), "{kind:?}");
        assert!(is_good(&fs, kind, |inode| inode.i_inline = inline::XATTR), "{kind:?}");
    }
    assert!(!is_good(&fs, FileKind::Regular, |inode| inode.i_mode = 0o644.into()));
}

#[test]
fn sizes_and_depths_have_limits() {
    let fs = file_system(Features(0));
    let layout = NodeBlock::ZERO.inode().layout(Features(0));
    let (room, longest) = (layout.inline_data_size() as u64, max_file_blocks(layout.addresses()) * 4096);
    for (kind, inline, most) in [
        (FileKind::Regular, inline::DATA, room),
        (FileKind::Symlink, inline::DATA, room),
        (FileKind::Regular, 0, longest),
        (FileKind::Directory, 0, longest),
        (FileKind::Symlink, 0, 4096),
    ] {
        for (size, good) in [(most, true), (most + 1, false), (u64::MAX, false)] {
            let change = |inode: &mut raw::Inode| (inode.i_inline, inode.i_size) = (inline, size.into());
            assert_eq!(is_good(&fs, kind, change), good, "{kind:?} {inline} {size}");
        }
    }
    let deepest = f2fs_format::hash::MAX_DEPTH;
    for kind in KINDS {
        let with = |depth: u32| is_good(&fs, kind, |inode| inode.i_current_depth = depth.into());
        assert_eq!([deepest, deepest + 1].map(with), [true, kind != FileKind::Directory], "{kind:?}");
    }
}

#[test]
fn extra_attributes_are_whole_words_of_a_volume_that_has_them() {
    let features = Features::EXTRA_ATTR.union(Features::FLEXIBLE_INLINE_XATTR);
    let (with, fixed, without) = (file_system(features), file_system(Features::EXTRA_ATTR), file_system(Features(0)));
    let extra = |size: u16, xattr: u16| {
        move |inode: &mut raw::Inode| {
            inode.i_inline = inline::EXTRA_ATTR;
            (inode.extra_mut().i_extra_isize, inode.extra_mut().i_inline_xattr_size) = (size.into(), xattr.into());
        }
    };
    let largest = EXTRA_SIZE as u16;
    for size in 0..2 * largest {
        let good = size >= 4 && size <= largest && size % 4 == 0;
        assert_eq!(is_good(&with, FileKind::Regular, extra(size, 50)), good, "{size}");
        assert!(!is_good(&without, FileKind::Regular, extra(size, 50)), "{size}");
    }
    let most = raw::MAX_INLINE_XATTR_WORDS as u16;
    for (words, good) in [(0, true), (most, true), (most + 1, false), (u16::MAX, false)] {
        assert_eq!(is_good(&with, FileKind::Regular, extra(largest, words)), good, "{words}");
        assert!(is_good(&fixed, FileKind::Regular, extra(largest, words)), "it does not say so there");
    }
}

/// Only a file that the checkpoint lists has no name.
#[test]
fn an_inode_without_a_name_is_an_orphan() {
    let fs = file_system(Features(0));
    assert!(!is_good(&fs, FileKind::Regular, |inode| inode.i_links = 0.into()));
    let orphan = fs.root().unwrap().create_unnamed(&NewFile::new(FileKind::Regular, 0o644)).unwrap();
    let node = orphan.inode().node.read();
    assert_eq!(node.inode().i_links.get(), 0);
    assert_eq!(check(&fs.core.volume, orphan.ino(), node.inode()).unwrap(), FileKind::Regular);
    assert!(check(&fs.core.volume, Nid(orphan.ino().0 + 1000), node.inode()).unwrap_err().is_corruption());
}

/// A device file without a name has its number in memory alone: in the inode it would be taken for a block's.
#[test]
fn the_number_of_a_device_without_a_name_is_kept_aside() {
    for features in [Features(0), Features::EXTRA_ATTR] {
        for (major, minor) in [(5, 6), (0xfff, 0xf_ffff)] {
            let device = PlainArc::new(MemoryDevice::new(32 * 1024));
            format(&*device, &FormatOptions::default().with_features(features)).unwrap();
            let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
            let root = fs.root().unwrap();
            let new = NewFile::new(FileKind::CharDevice, 0o600).device(major, minor);
            let number = |found: Metadata| found.device.map(|device| (device.major, device.minor));
            let made = root.create_unnamed(&new).unwrap();
            let words = || {
                let node = made.inode().node.read();
                let inode = node.inode();
                let at = words_at(inode);
                assert_eq!(at != 0, features != Features(0), "behind the extra attributes");
                [inode.i_addr[at].get(), inode.i_addr[at + 1].get()]
            };
            assert_eq!((number(made.metadata().unwrap()), words()), (Some((major, minor)), [0, 0]));
            root.link("device", &made).unwrap();
            assert_eq!(number(made.metadata().unwrap()), Some((major, minor)));
            assert_ne!(words(), [0, 0]);
            root.remove_file("device").unwrap();
            assert_eq!(
                (number(made.metadata().unwrap()), words()),
                (Some((major, minor)), [0, 0]),
                "open, and no name"
            );
            root.create("other", &new).unwrap();
            drop((made, root));
            fs.close().unwrap();
            drop(fs);
            let fs = FileSystem::open(device, Options::new()).unwrap();
            assert_eq!(number(fs.metadata("/other").unwrap()), Some((major, minor)));
        }
    }
}

/// A file is freed within one operation if it has no nodes beside its inode.
#[test]
fn a_file_is_small_as_long_as_the_inode_names_its_blocks() {
    let fs = file_system(Features(0));
    let file = fs.create_file("/f", 0o644).unwrap();
    let inode = &file.handle.inode;
    assert!(is_inline(&inode.node) && !inode.has_blocks() && inode.is_small());
    file.write_at(&[1; 8192], 0).unwrap();
    assert!(!is_inline(&inode.node) && inode.has_blocks() && inode.is_small());
    file.write_at(&[1; 4096], 2000 * 4096).unwrap();
    assert!(inode.has_blocks() && !inode.is_small());
    file.set_len(8192).unwrap();
    assert!(inode.is_small());
    let fifo = fs.root().unwrap().create("p", &NewFile::new(FileKind::Fifo, 0o644)).unwrap();
    assert!(!fifo.inode().has_blocks() && fifo.inode().is_small());
}

/// The time of creation is one of the extra attributes, if they reach so far, and the volume has it.
#[test]
fn a_time_of_creation_is_shown_where_there_is_one() {
    let with = Features::EXTRA_ATTR.union(Features::INODE_CRTIME);
    for (features, sizes) in [(with, [(36, true), (24, true), (20, false)]), (Features::EXTRA_ATTR, [(36, false); 3])] {
        let fs = file_system(features);
        let file = fs.create_file("/f", 0o644).unwrap();
        for (size, shown) in sizes {
            let changed = fs.core.change(|op| {
                file.handle.inode.node.write(op).inode_mut().extra_mut().i_extra_isize = size.into();
                Ok(())
            });
            changed.unwrap();
            assert_eq!(file.metadata().unwrap().created.is_some(), shown, "{features:?} {size}");
        }
    }
}

/// Who found a name that went meanwhile has nothing to look at.
#[test]
fn an_inode_that_was_freed_has_no_attributes() {
    let fs = file_system(Features(0));
    let ino = fs.create_file("/f", 0o644).unwrap().ino();
    let inode = fs.core.inode(ino).unwrap();
    assert_eq!(inode.stat(Features(0)).unwrap().ino, ino);
    fs.remove_file("/f").unwrap();
    assert!(matches!(inode.stat(Features(0)), Err(FsError::NotFound)));
}

#[test]
fn a_file_that_fs_verity_protects_says_so() {
    let fs = file_system(Features(0));
    let file = fs.create_file("/f", 0o644).unwrap();
    for (marks, protected) in [(0, false), (advise::VERITY, true), (!advise::VERITY & advise::COLD, false)] {
        let changed = fs.core.change(|op| {
            file.handle.inode.node.write(op).inode_mut().i_advise = marks;
            Ok(())
        });
        changed.unwrap();
        assert_eq!(file.metadata().unwrap().verity, protected, "{marks}");
    }
}
