//! The last component of a path, `.` and `..` and slashes behind it: as Linux judges it, which is asked beside.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use f2fs_files::{FileKind, FileSystem, FsError, NewFile, Options, RenameMode};
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;
use rustix::fs::{AtFlags, CWD, FileType, Mode, RenameFlags};

/// Paths below the directory of a case.
const PATHS: [&str; 34] = [
    "file",
    "file/",
    "file//",
    "file/.",
    "file/..",
    "dir",
    "dir/",
    "dir//",
    "dir/.",
    "dir/..",
    "dir/./",
    "dir/../",
    "dir/file",
    "dir/file/",
    "dir/sub/..",
    "dir/sub/.",
    "dir/../dir",
    "dir/../dir/",
    "empty",
    "empty/",
    "empty/.",
    "empty/..",
    "none",
    "none/",
    "none/.",
    "none/..",
    "to-dir",
    "to-dir/",
    "to-dir/.",
    "to-dir/..",
    "to-file/",
    "dangling",
    "dangling/",
    "to-empty/",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Create,
    MakeDir,
    MakePipe,
    Link,
    LinkFrom,
    Symlink,
    Unlink,
    RemoveDir,
    Open,
    Metadata,
    SymlinkStat,
    ReadLink,
    List,
}

const OPS: [Op; 13] = [
    Op::Create,
    Op::MakeDir,
    Op::MakePipe,
    Op::Link,
    Op::LinkFrom,
    Op::Symlink,
    Op::Unlink,
    Op::RemoveDir,
    Op::Open,
    Op::Metadata,
    Op::SymlinkStat,
    Op::ReadLink,
    Op::List,
];

/// The error number. Every error that a path can run into has one of these.
fn errno(error: &FsError) -> i32 {
    use rustix::io::Errno;
    let possible = [
        Errno::NOENT,
        Errno::EXIST,
        Errno::NOTDIR,
        Errno::ISDIR,
        Errno::PERM,
        Errno::NOTEMPTY,
        Errno::BUSY,
        Errno::INVAL,
    ];
    let number = error.raw_os_error();
    assert!(possible.iter().any(|errno| errno.raw_os_error() == number), "{error}");
    number
}

fn ours<T>(result: Result<T, FsError>) -> Result<(), i32> {
    result.map(drop).map_err(|error| errno(&error))
}

fn theirs<T>(result: io::Result<T>) -> Result<(), i32> {
    result.map(drop).map_err(|error| error.raw_os_error().unwrap())
}

/// The same tree in a directory of the volume and in one of the host.
struct Both<'a> {
    fs: &'a FileSystem,
    here: String,
    host: PathBuf,
}

impl Both<'_> {
    fn new<'a>(fs: &'a FileSystem, host: &Path, case: usize) -> Both<'a> {
        let both = Both { fs, here: format!("/{case}"), host: host.join(case.to_string()) };
        for dir in ["", "/dir", "/dir/sub", "/empty"] {
            fs.create_dir(format!("{}{dir}", both.here), 0o755).unwrap();
            fs::create_dir(both.host.join(dir.trim_start_matches('/'))).unwrap();
        }
        for file in ["file", "dir/file"] {
            fs.create_file(format!("{}/{file}", both.here), 0o644).unwrap();
            fs::write(both.host.join(file), b"").unwrap();
        }
        let link = NewFile::new(FileKind::Symlink, 0o777);
        for (name, target) in [("to-dir", "dir"), ("to-file", "file"), ("dangling", "none"), ("to-empty", "empty")] {
            fs.symlink(target.as_bytes(), format!("{}/{name}", both.here), &link).unwrap();
            std::os::unix::fs::symlink(target, both.host.join(name)).unwrap();
        }
        both
    }

    fn ours(&self, op: Op, path: &str) -> Result<(), i32> {
        let (fs, at) = (self.fs, format!("{}/{path}", self.here));
        match op {
            Op::Create => ours(fs.create_file(at, 0o644)),
            Op::MakeDir => ours(fs.create_dir(at, 0o755)),
            Op::MakePipe => ours(fs.create(at, &NewFile::new(FileKind::Fifo, 0o644))),
            Op::Link => ours(fs.link(format!("{}/file", self.here), at)),
            Op::LinkFrom => ours(fs.link(at, format!("{}/new", self.here))),
            Op::Symlink => ours(fs.symlink(b"target", at, &NewFile::new(FileKind::Symlink, 0o777))),
            Op::Unlink => ours(fs.remove_file(at)),
            Op::RemoveDir => ours(fs.remove_dir(at)),
            Op::Open => ours(fs.open_file(at)),
            Op::Metadata => ours(fs.metadata(at)),
            Op::SymlinkStat => ours(fs.symlink_metadata(at)),
            Op::ReadLink => ours(fs.read_link(at)),
            Op::List => ours(fs.read_dir(at).and_then(Iterator::collect::<Result<Vec<_>, _>>)),
        }
    }

    fn theirs(&self, op: Op, path: &str) -> Result<(), i32> {
        // Not `join`, which would take slashes away.
        let at = format!("{}/{path}", self.host.display());
        let in_host = |name: &str| self.host.join(name);
        let permissions = Mode::from_raw_mode(0o644);
        match op {
            Op::Create => theirs(fs::OpenOptions::new().write(true).create_new(true).open(at)),
            Op::MakeDir => theirs(fs::create_dir(at)),
            Op::MakePipe => theirs(rustix::fs::mknodat(CWD, at, FileType::Fifo, permissions, 0).map_err(Into::into)),
            Op::Link => theirs(fs::hard_link(in_host("file"), at)),
            Op::LinkFrom => {
                theirs(rustix::fs::linkat(CWD, at, CWD, in_host("new"), AtFlags::empty()).map_err(Into::into))
            }
            Op::Symlink => theirs(std::os::unix::fs::symlink("target", at)),
            Op::Unlink => theirs(fs::remove_file(at)),
            Op::RemoveDir => theirs(fs::remove_dir(at)),
            // For writing, as ours: a directory cannot be opened for that.
            Op::Open => theirs(fs::OpenOptions::new().write(true).open(at)),
            Op::Metadata => theirs(fs::metadata(at)),
            Op::SymlinkStat => theirs(fs::symlink_metadata(at)),
            Op::ReadLink => theirs(fs::read_link(at)),
            Op::List => theirs(fs::read_dir(at)),
        }
    }

    /// Everything below, with its kind.
    fn our_tree(&self) -> BTreeMap<Vec<u8>, char> {
        let (mut tree, mut pending) = (BTreeMap::new(), vec![Vec::new()]);
        while let Some(at) = pending.pop() {
            let path = [self.here.as_bytes(), b"/", &at].concat();
            for entry in self.fs.read_dir(f2fs_test_kit::volumes::at(&path)).unwrap().map(Result::unwrap) {
                let below = [&at[..], b"/", &entry.name].concat();
                let kind = entry.kind.unwrap();
                tree.insert(below.clone(), kind.letter());
                if kind == FileKind::Directory {
                    pending.push(below);
                }
            }
        }
        tree
    }

    fn their_tree(&self) -> BTreeMap<Vec<u8>, char> {
        use std::os::unix::fs::FileTypeExt;
        let (mut tree, mut pending) = (BTreeMap::new(), vec![(self.host.clone(), Vec::new())]);
        while let Some((path, at)) = pending.pop() {
            for entry in fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                let below = [&at[..], b"/", entry.file_name().as_bytes()].concat();
                let kind = entry.file_type().unwrap();
                let letter = match kind {
                    kind if kind.is_dir() => 'd',
                    kind if kind.is_symlink() => 'l',
                    kind if kind.is_fifo() => 'p',
                    _ => 'f',
                };
                tree.insert(below.clone(), letter);
                if kind.is_dir() {
                    pending.push((entry.path(), below));
                }
            }
        }
        tree
    }
}

#[test]
fn every_operation_judges_the_end_of_a_path_as_linux_does() {
    let device = formatted(128, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let host = tempfile::tempdir().unwrap();
    let mut case = 0;
    for op in OPS {
        for path in PATHS {
            case += 1;
            let both = Both::new(&fs, host.path(), case);
            let name = format!("{op:?} {path:?}");
            assert_eq!(both.ours(op, path), both.theirs(op, path), "{name}");
            assert_eq!(both.our_tree(), both.their_tree(), "{name}");
            fs.remove_all(&both.here).unwrap();
            fs::remove_dir_all(&both.host).unwrap();
        }
    }
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn every_rename_judges_the_ends_of_both_paths_as_linux_does() {
    let device = formatted(128, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let host = tempfile::tempdir().unwrap();
    let modes = [
        (RenameMode::Replace, RenameFlags::empty()),
        (RenameMode::NoReplace, RenameFlags::NOREPLACE),
        (RenameMode::Exchange, RenameFlags::EXCHANGE),
    ];
    let mut both = Both::new(&fs, host.path(), 0);
    let mut case = 0;
    for (mode, flags) in modes {
        for from in PATHS {
            for to in PATHS {
                let name = format!("{mode:?} {from:?} {to:?}");
                let path = |at: &str| format!("{}/{at}", both.here);
                let done = ours(fs.rename(path(from), path(to), mode));
                let path = |at: &str| format!("{}/{at}", both.host.display());
                let asked = rustix::fs::renameat_with(CWD, path(from), CWD, path(to), flags);
                assert_eq!(done, theirs(asked.map_err(Into::into)), "{name}");
                if done.is_ok() {
                    assert_eq!(both.our_tree(), both.their_tree(), "{name}");
                    fs.remove_all(&both.here).unwrap();
                    fs::remove_dir_all(&both.host).unwrap();
                    case += 1;
                    both = Both::new(&fs, host.path(), case);
                }
            }
        }
        assert_eq!(both.our_tree(), both.their_tree(), "{mode:?}, all that failed since");
    }
    assert!(case > 100, "{case} renames did something");
    fs.close().unwrap();
    assert_clean(&device);
}

/// Cases that cannot be asked of the host without harm.
#[test]
fn the_root_is_neither_made_nor_moved_nor_removed() {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device, Options::new()).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    fs.create_file("/file", 0o644).unwrap();
    let link = NewFile::new(FileKind::Symlink, 0o777);
    for root in ["/", "//", "///"] {
        assert!(matches!(fs.create_file(root, 0o644).unwrap_err(), FsError::Exists | FsError::IsDirectory), "{root:?}");
        assert!(matches!(fs.create_dir(root, 0o755), Err(FsError::Exists)), "{root:?}");
        assert!(matches!(fs.symlink(b"x", root, &link), Err(FsError::Exists)), "{root:?}");
        assert!(matches!(fs.link("/file", root), Err(FsError::Exists)), "{root:?}");
        assert!(matches!(fs.remove_file(root), Err(FsError::IsDirectory)), "{root:?}");
        assert!(matches!(fs.remove_dir(root), Err(FsError::Busy)), "{root:?}");
        assert!(matches!(fs.remove_all(root), Err(FsError::Busy)), "{root:?}");
        for mode in [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange] {
            assert!(matches!(fs.rename(root, "/new", mode), Err(FsError::Busy)), "{root:?}");
            let onto = fs.rename("/dir", root, mode);
            assert!(matches!(onto, Err(FsError::Busy | FsError::Exists)), "{root:?}");
        }
        assert_eq!(fs.read_dir(root).unwrap().count(), 2);
    }
}

/// Whatever is refused is refused before anything is removed.
#[test]
fn what_cannot_be_removed_keeps_all_that_is_in_it() {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let host = tempfile::tempdir().unwrap();
    let both = Both::new(&fs, host.path(), 1);
    let whole = both.our_tree();
    fs.create_dir("/t", 0o755).unwrap();
    let link = NewFile::new(FileKind::Symlink, 0o777);
    fs.symlink(b"/", "/to-root", &link).unwrap();
    let refused = [
        "/",
        "//",
        "",
        ".",
        "./",
        "/.",
        "/./",
        "/..",
        "..",
        "../",
        "/../..",
        "/t/..",
        "/t/../",
        "/t/../.",
        "/1/.",
        "/1/./",
        "/1/dir/..",
        "/1/dir/sub/..",
        "/1/dir/sub/../..",
        "/1/to-dir/",
        "/1/to-dir/.",
        "/1/to-dir/..",
        "/to-root/",
        "/to-root/.",
        "/to-root//",
        "/1/file/",
        "/1/file/.",
        "/1/none",
        "/1/none/",
        "/1/none/..",
        "/1/dangling/",
        "/none/1",
    ];
    for path in refused {
        let error = fs.remove_all(path).expect_err(path);
        assert!(errno(&error) > 0, "{path:?}: {error}");
        assert_eq!(both.our_tree(), whole, "{path:?}");
        assert_eq!(fs.read_dir("/").unwrap().count(), 3, "{path:?}");
    }
    // A link is removed, not what it leads to.
    fs.remove_all("/1/to-dir").unwrap();
    assert_eq!(both.our_tree().len(), whole.len() - 1);
    fs.remove_all("/1/dir/").unwrap();
    assert_eq!(both.our_tree().len(), whole.len() - 4);
    fs.close().unwrap();
    assert_clean(&device);
}
