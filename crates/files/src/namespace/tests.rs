//! What operations on names note for later syncs.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::MemoryDevice;
use f2fs_sync::PlainArc;
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{FsyncMode, VolumeOptions};

use crate::name::Name;
use crate::samples::formatted;
use crate::{FileKind, FileSystem, FsError, NewFile, Options, RenameMode};

mod read_errors;
mod times;
mod ways_up;

fn open(mode: FsyncMode) -> FileSystem {
    let device = formatted(32 * 1024);
    FileSystem::open(device, Options::new().volume(VolumeOptions::new().fsync(mode))).unwrap()
}

/// Whether a new file under a name of a directory, by its path, is made durable by a checkpoint alone.
fn is_careful(fs: &FileSystem, directory: &str, name: &str) -> bool {
    let ino = fs.metadata(directory).unwrap().ino;
    fs.core.hazards.has(&fs.core.volume, ino, Name::new(name.as_bytes()).unwrap().hash())
}

/// Strict syncs bring along what went from a directory or came into it. Others are only careful with a name whose file
/// moved, or that was a directory's.
#[test]
fn names_that_went_are_noted_as_the_syncs_need_it() {
    for mode in [FsyncMode::Posix, FsyncMode::Strict] {
        let fs = open(mode);
        let strict = mode == FsyncMode::Strict;
        for path in ["/a", "/b", "/a/moved", "/a/empty", "/b/empty"] {
            fs.create_dir(path, 0o755).unwrap();
        }
        for path in ["/a/1", "/a/2", "/a/3", "/b/3", "/a/4", "/b/4", "/a/5"] {
            fs.create_file(path, 0o644).unwrap();
        }
        let unnamed = fs.root().unwrap().create_unnamed(&NewFile::new(FileKind::Regular, 0o644)).unwrap();
        let a = fs.inode_at("/a").unwrap();
        // The operation; the names to be careful with in any case; those to be careful with in strict mode.
        type Case<'a> = (&'a dyn Fn(), &'a [(&'a str, &'a str)], &'a [&'a str]);
        let rename = |from: &str, to: &str, mode| fs.rename(from, to, mode).unwrap();
        let cases: [Case<'_>; 7] = [
            (&|| fs.remove_file("/a/1").unwrap(), &[], &["/a"]),
            (&|| rename("/a/2", "/b/2", RenameMode::Replace), &[("/a", "2")], &["/a", "/b"]),
            (&|| rename("/a/3", "/b/3", RenameMode::Replace), &[("/a", "3")], &["/a", "/b"]),
            (&|| rename("/a/4", "/b/4", RenameMode::Exchange), &[("/a", "4"), ("/b", "4")], &["/a", "/b"]),
            (&|| rename("/a/moved", "/b/moved", RenameMode::Replace), &[("/a", "moved")], &["/a", "/b", "/b/moved"]),
            (&|| fs.remove_dir("/a/empty").unwrap(), &[("/a", "empty")], &["/a"]),
            (&|| a.link_over("5", &unnamed).unwrap(), &[], &["/a"]),
        ];
        for (number, (operation, always, strictly)) in cases.into_iter().enumerate() {
            fs.checkpoint().unwrap();
            operation();
            for directory in ["/a", "/b", "/", "/b/empty"].into_iter().chain(strictly.iter().copied()) {
                let all = strict && strictly.contains(&directory);
                assert_eq!(is_careful(&fs, directory, "other"), all, "{mode:?} {number} {directory}");
            }
            for (directory, name) in always {
                assert!(is_careful(&fs, directory, name), "{mode:?} {number} {directory} {name}");
            }
            fs.checkpoint().unwrap();
            assert!(!is_careful(&fs, "/a", "other") && !always.iter().any(|(at, name)| is_careful(&fs, at, name)));
        }
    }
}

/// A file that lost one of several names may have another that no checkpoint has.
#[test]
fn a_name_of_several_that_went_is_noted() {
    let fs = open(FsyncMode::Posix);
    fs.create_file("/one", 0o644).unwrap();
    fs.create_file("/two", 0o644).unwrap();
    fs.checkpoint().unwrap();
    fs.link("/two", "/other").unwrap();
    fs.remove_file("/two").unwrap();
    fs.remove_file("/one").unwrap();
    assert!(is_careful(&fs, "/", "two") && !is_careful(&fs, "/", "one"));
}

/// The directory counts the directories in it, and each operation sets the time of what it changes.
#[test]
fn links_of_directories_are_those_of_the_directories_in_them() {
    let fs = open(FsyncMode::Posix);
    let links = |path: &str| fs.metadata(path).unwrap().links;
    fs.create_dir("/a", 0o755).unwrap();
    fs.create_dir("/b", 0o755).unwrap();
    fs.create_dir("/a/x", 0o755).unwrap();
    fs.create_dir("/a/y", 0o755).unwrap();
    fs.create_file("/a/file", 0o644).unwrap();
    assert_eq!((links("/"), links("/a"), links("/b"), links("/a/x")), (4, 4, 2, 2));
    fs.rename("/a/x", "/b/x", RenameMode::Replace).unwrap();
    assert_eq!((links("/a"), links("/b"), links("/b/x")), (3, 3, 2));
    fs.rename("/a/file", "/b/x", RenameMode::Exchange).unwrap();
    assert_eq!((links("/a"), links("/b"), links("/a/file"), links("/b/x")), (4, 2, 2, 1));
    fs.rename("/a/file", "/a/y", RenameMode::Replace).unwrap();
    assert_eq!((links("/"), links("/a"), links("/a/y")), (4, 3, 2));
    fs.rename("/a/y", "/z", RenameMode::Replace).unwrap();
    fs.remove_dir("/a").unwrap();
    assert_eq!((links("/"), links("/b"), links("/z")), (4, 2, 2));
}

/// A file that has a new name knows where it belongs, and keeps what else is marked of it.
#[test]
fn a_rename_leaves_the_marks_of_a_file() {
    use f2fs_format::inode::advise;
    let fs = open(FsyncMode::Posix);
    fs.create_dir("/d", 0o755).unwrap();
    fs.create_file("/a", 0o644).unwrap();
    fs.create_file("/b", 0o644).unwrap();
    let inode = fs.core.inode(fs.metadata("/a").unwrap().ino).unwrap();
    for (to, name, mode) in [
        ("/d/c", &b"c"[..], RenameMode::Replace),
        ("/b", b"b", RenameMode::Replace),
        ("/d/longer", b"longer", RenameMode::Replace),
    ] {
        let from = ["/a", "/d/c", "/b"].into_iter().find(|path| fs.metadata(path).is_ok_and(|it| it.ino == inode.ino));
        fs.core
            .change(|op| {
                inode.node.write(op).inode_mut().i_advise = advise::COLD | advise::LOST_PINO;
                Ok(())
            })
            .unwrap();
        fs.rename(from.unwrap(), to, mode).unwrap();
        let raw = *inode.node.read().inode();
        let parent = if to.starts_with("/d") { fs.metadata("/d").unwrap().ino } else { fs.root().unwrap().ino() };
        assert_eq!((raw.i_advise, raw.i_pino.get()), (advise::COLD, parent.0));
        assert_eq!(&raw.i_name[..raw.i_namelen.get() as usize], name);
    }
}

/// Names that come and go leave no memory of them.
#[test]
fn names_that_went_are_forgotten() {
    let fs = open(FsyncMode::Posix);
    fs.create_dir("/d", 0o755).unwrap();
    fs.create_file("/f", 0o644).unwrap();
    let directory = fs.inode_at("/d").unwrap();
    let available = || directory.inode().directory().unwrap().names_available();
    let before = available();
    // Each stripe takes some from the budget at once.
    let stripes = f2fs_sync::stripes_here(64) as u64;
    let most = 1500.max(8 * stripes);
    for number in 0..2 * most {
        fs.link("/f", format!("/d/{number}")).unwrap();
        if number >= 300 {
            fs.remove_file(format!("/d/{}", number - 300)).unwrap();
        }
    }
    let taken = before - available();
    assert!((300..most).contains(&taken), "{taken} names are taken, and 300 are there");
}

/// Who has a directory that was removed can make no name in it: what had it would be lost.
#[test]
fn nothing_comes_into_a_directory_that_was_removed() {
    let fs = open(FsyncMode::Posix);
    let root = fs.root().unwrap();
    for path in ["/gone", "/dir"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    let gone = fs.inode_at("/gone").unwrap();
    fs.remove_dir("/gone").unwrap();
    fs.create_file("/file", 0o644).unwrap();
    let file = fs.inode_at("/file").unwrap();
    let new = NewFile::new(FileKind::Regular, 0o644);
    let unnamed = root.create_unnamed(&new).unwrap();
    let files = fs.statfs().valid_inodes;
    let refused = [
        gone.create("x", &new).map(drop),
        gone.create("x", &NewFile::new(FileKind::Directory, 0o755)).map(drop),
        gone.symlink(b"target", "x", &new).map(drop),
        gone.create_unnamed(&new).map(drop),
        gone.link("x", &file),
        gone.link_over("x", &file),
        gone.link_over("x", &unnamed),
        root.rename("file", &gone, "x", RenameMode::Replace),
        root.rename("file", &gone, "x", RenameMode::NoReplace),
        root.rename("dir", &gone, "x", RenameMode::Replace),
        gone.lookup("x").map(drop),
        gone.remove_file("x"),
        gone.remove_dir("x"),
    ];
    for (number, refused) in refused.into_iter().enumerate() {
        assert!(matches!(refused, Err(FsError::NotFound)), "{number}: {refused:?}");
    }
    assert_eq!(fs.read_dir("/").unwrap().count(), 2);
    assert_eq!((file.metadata().unwrap().links, fs.metadata("/dir").unwrap().links), (1, 2));
    assert_eq!(fs.statfs().valid_inodes, files);
}

#[test]
fn a_file_has_no_more_links_than_can_be_counted() {
    let fs = open(FsyncMode::Posix);
    fs.create_file("/f", 0o644).unwrap();
    let inode = fs.core.inode(fs.metadata("/f").unwrap().ino).unwrap();
    let set = |links: u32| {
        fs.core
            .change(|op| {
                inode.node.write(op).inode_mut().i_links = links.into();
                Ok(())
            })
            .unwrap();
    };
    set(u32::MAX);
    assert!(matches!(fs.link("/f", "/g"), Err(FsError::TooManyLinks { limit: u32::MAX })));
    assert!(!fs.exists("/g").unwrap());
    set(u32::MAX - 1);
    fs.link("/f", "/g").unwrap();
    assert_eq!(fs.metadata("/f").unwrap().links, u32::MAX);
    set(2);
}
