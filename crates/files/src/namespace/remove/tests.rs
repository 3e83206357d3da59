//! Files without a name that are still open, up to as many as a checkpoint pack lists; and trees that others fill.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_format::Nid;
use f2fs_volume::VolumeError;

use super::{Emptied, MOST_ROUNDS};
use crate::name::Name;
use crate::samples::formatted;
use crate::{FileKind, FileSystem, FsError, NewFile, Options, RenameMode};

/// The checkpoint pack lists so many orphans and no more: whatever may make another one is refused before it changes
/// anything.
#[test]
fn no_room_for_another_orphan() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let data: Vec<u8> = (0..10_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
    let held = fs.create_file("/held", 0o644).unwrap();
    held.write_at(&data, 0).unwrap();
    fs.create_file("/other", 0o644).unwrap();
    fs.create_file("/sixth", 0o644).unwrap().write_at(&data, 0).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    fs.create_dir("/from", 0o755).unwrap();
    let mut listed = Vec::new();
    let limit = loop {
        let op = fs.core.volume.begin().unwrap();
        match fs.core.volume.orphan_room() {
            Ok(room) => {
                // Numbers that no inode has.
                let ino = Nid(1 << 20 | listed.len() as u32);
                fs.core.volume.add_orphan(&op, room, ino);
                listed.push(ino);
            }
            Err(VolumeError::TooManyOrphans { limit }) => break limit,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(listed.len() as u64, limit);
    let refused = |result: Result<(), FsError>| match result {
        Err(FsError::NoSpace(cause)) => match *cause {
            VolumeError::TooManyOrphans { limit: told } => assert_eq!(told, limit),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    refused(fs.remove_file("/held"));
    refused(fs.remove_dir("/dir"));
    refused(fs.rename("/other", "/held", RenameMode::Replace));
    refused(fs.rename("/from", "/dir", RenameMode::Replace));
    // A rename that makes no orphan goes on.
    fs.rename("/other", "/third", RenameMode::Replace).unwrap();
    fs.create_file("/fourth", 0o644).unwrap();
    fs.link("/fourth", "/fifth").unwrap();
    let blocks = fs.statfs().valid_blocks;
    fs.open_file("/sixth").unwrap().set_len(0).unwrap();
    assert!(fs.statfs().valid_blocks < blocks);
    fs.checkpoint().unwrap();
    assert_eq!(fs.core.volume.stopped(), None);
    let mut kept = vec![0; data.len()];
    held.read_at(&mut kept, 0).unwrap();
    assert_eq!(kept, data);
    // Room for one is room for one after the other, where nothing keeps them.
    let op = fs.core.volume.begin().unwrap();
    assert!(fs.core.volume.remove_orphan(&op, listed.pop().unwrap()));
    drop(op);
    fs.remove_file("/sixth").unwrap();
    fs.remove_file("/fifth").unwrap();
    fs.remove_file("/fourth").unwrap();
    let op = fs.core.volume.begin().unwrap();
    assert!(listed.iter().all(|ino| fs.core.volume.remove_orphan(&op, *ino)));
    drop(op);
    fs.rename("/from", "/dir", RenameMode::Replace).unwrap();
    fs.rename("/third", "/held", RenameMode::Replace).unwrap();
    fs.remove_dir("/dir").unwrap();
    assert_eq!(fs.core.volume.orphans(), [held.ino()]);
    drop(held);
    assert_eq!(fs.core.volume.orphans(), []);
    fs.close().unwrap();
    let image = tempfile::NamedTempFile::new().unwrap();
    device.save(image.path()).unwrap();
    f2fs_oracle::assert_clean(image.path());
}

/// Who followed a symbolic link may read it when it has gone. Its block may be another file's by then.
#[test]
fn a_link_that_went_leads_to_no_block() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let target = [b'x'; 4000];
    fs.symlink(&target, "/link", &NewFile::new(FileKind::Symlink, 0o777)).unwrap();
    fs.checkpoint().unwrap();
    let namespace = fs.namespace();
    let link = namespace.child(&namespace.root().unwrap(), b"link").unwrap();
    assert_eq!(namespace.read_link_target(&link).unwrap(), target);
    fs.remove_file("/link").unwrap();
    assert!(matches!(namespace.read_link_target(&link), Err(FsError::NoTarget)));
}

/// Others may go on making names for ever, and removing always gets on: the directories of a tree have the rounds
/// together.
#[test]
fn a_tree_is_gone_through_anew_so_often_and_no_more() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let root = fs.namespace().root().unwrap();
    let mut emptied = [(); 2].map(|()| Emptied::new(root.clone(), Vec::new(), root.clone()));
    let mut left = MOST_ROUNDS;
    assert!(!emptied[0].begin_anew(&mut left), "nothing was removed");
    assert_eq!(left, MOST_ROUNDS);
    for round in 0..MOST_ROUNDS {
        let here = &mut emptied[round as usize % 2];
        (here.position, here.progress) = (7, true);
        assert!(here.begin_anew(&mut left));
        assert_eq!((here.position, here.progress), (0, false));
    }
    emptied[0].progress = true;
    assert!(!emptied[0].begin_anew(&mut left), "there is no end");
}

/// Whoever meets a directory for the second time asks whether it was moved, or leads to itself.
#[test]
fn a_directory_that_was_moved_leads_to_none_of_those_above() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    for path in ["/a", "/a/b", "/a/b/c"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    let (namespace, root) = (fs.namespace(), fs.namespace().root().unwrap());
    let inode = |path: &str| fs.core.inode(fs.metadata(path).unwrap().ino).unwrap();
    let (a, b, c) = (inode("/a"), inode("/a/b"), inode("/a/b/c"));
    assert!(namespace.is_moved(&a, b"b", &b).unwrap(), "it is there, and not above");
    assert!(namespace.is_moved(&root, b"a", &b).unwrap() && namespace.is_moved(&root, b"b", &b).unwrap());
    // A name that leads back up.
    fs.core.change(|op| namespace.add_entry(op, &c, Name::new(b"loop")?, a.ino, FileKind::Directory)).unwrap();
    assert!(!namespace.is_moved(&c, b"loop", &a).unwrap());
    assert!(!namespace.is_moved(&c, b".", &c).unwrap());
    assert!(fs.remove_all("/a").unwrap_err().is_corruption());
}

/// A damaged name leads to a directory elsewhere: nothing there goes. Nor does what is above, where it leads up.
#[test]
fn what_is_named_here_and_lies_elsewhere_stays() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    for path in ["/top", "/top/d", "/top/d/e", "/other"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    fs.create_file("/other/file", 0o644).unwrap();
    fs.create_file("/file", 0o644).unwrap();
    let parent = fs.core.inode(fs.metadata("/top/d").unwrap().ino).unwrap();
    let lead_to = |path: &str| {
        let ino = fs.metadata(path).unwrap().ino;
        let op = fs.core.volume.begin().unwrap();
        let name = Name::new(b"e").unwrap();
        assert!(fs.namespace().redirect_entry(&op, &parent, name, ino, FileKind::Directory).unwrap());
    };
    for path in ["/other", "/"] {
        lead_to(path);
        for tree in ["/top", "/top/d/e"] {
            let error = fs.remove_all(tree).unwrap_err();
            assert!(error.is_corruption(), "{error}");
        }
        for path in ["/top/d", "/other/file", "/file"] {
            fs.metadata(path).unwrap();
        }
    }
}
