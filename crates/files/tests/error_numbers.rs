//! Errors have the numbers that Linux gives: each operation is done here and in a directory of the host, and must fail
//! alike.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use f2fs_device::{BlockDevice, MemoryDevice, Operation};
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_files::{AllocateFlags, FileSystem, FsError, NewFile, Options, RenameMode, SetMode};

fn formatted() -> Arc<MemoryDevice> {
    let device = Arc::new(MemoryDevice::new((64 << 20) >> 12));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    device
}

/// The number of both, which must be the same.
#[track_caller]
fn same<T, U>(what: &str, host: io::Result<T>, here: Result<U, FsError>) {
    let host = host.map(drop).unwrap_err();
    let here = here.map(drop).unwrap_err();
    assert_eq!(Some(here.raw_os_error()), host.raw_os_error(), "{what}: {here}, on the host: {host}");
    let kind = here.kind();
    assert_eq!(kind, host.kind(), "{what}");
    assert_eq!(io::Error::from(here).kind(), kind, "{what}");
}

#[test]
fn failures_have_the_numbers_of_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let fs = FileSystem::open(formatted(), Options::new()).unwrap();
    let host = |path: &str| dir.path().join(path.trim_start_matches('/'));
    let owner = NewFile::new(f2fs_files::FileKind::Symlink, 0o777);
    for path in ["/full", "/full/dir", "/empty"] {
        fs::create_dir(host(path)).unwrap();
        fs.create_dir(path, 0o755).unwrap();
    }
    fs::write(host("/file"), "x").unwrap();
    fs.create_file("/file", 0o644).unwrap().write_at(b"x", 0).unwrap();
    for (path, target) in [("/around", "back"), ("/back", "around")] {
        symlink(target, host(path)).unwrap();
        fs.symlink(target.as_bytes(), path, &owner).unwrap();
    }

    let long = format!("/{}", "n".repeat(256));
    same("open nothing", fs::File::open(host("/none")), fs.open_file("/none"));
    same("open below a file", fs::File::open(host("/file/x")), fs.open_file("/file/x"));
    same("open in a circle", fs::File::open(host("/around")), fs.open_file("/around"));
    same("open a long name", fs::File::open(host(&long)), fs.open_file(&long));
    same("create in nothing", fs::File::create_new(host("/none/x")), fs.create_file("/none/x", 0o644));
    same("create what is there", fs::File::create_new(host("/file")), fs.create_file("/file", 0o644));
    same("create a long name", fs::File::create_new(host(&long)), fs.create_file(&long, 0o644));
    same("make a directory twice", fs::create_dir(host("/full")), fs.create_dir("/full", 0o755));
    same("remove a full directory", fs::remove_dir(host("/full")), fs.remove_dir("/full"));
    same("remove a file as a directory", fs::remove_dir(host("/file")), fs.remove_dir("/file"));
    same("remove by a dot", fs::remove_dir(host("/empty/.")), fs.remove_dir("/empty/."));
    same("remove by two dots", fs::remove_dir(host("/full/dir/..")), fs.remove_dir("/full/dir/.."));
    same("link to a directory", fs::hard_link(host("/empty"), host("/x")), fs.link("/empty", "/x"));
    same("unlink a directory", fs::remove_file(host("/empty")), fs.remove_file("/empty"));
    same("unlink nothing", fs::remove_file(host("/none")), fs.remove_file("/none"));
    let rename = |from, to| fs.rename(from, to, RenameMode::Replace);
    same("rename into itself", fs::rename(host("/full"), host("/full/dir/x")), rename("/full", "/full/dir/x"));
    same("rename over a full one", fs::rename(host("/empty"), host("/full")), rename("/empty", "/full"));
    same("rename a file over a directory", fs::rename(host("/file"), host("/empty")), rename("/file", "/empty"));
    same("rename a directory over a file", fs::rename(host("/empty"), host("/file")), rename("/empty", "/file"));
    same("rename by a dot", fs::rename(host("/full/."), host("/x")), rename("/full/.", "/x"));
    same("read a link that is none", fs::read_link(host("/file")), fs.read_link("/file"));
    same("a link to nothing", symlink("", host("/x")), fs.symlink(b"", "/x", &owner));
    let longest = "t".repeat(4096);
    same("a link too far", symlink(&longest, host("/x")), fs.symlink(longest.as_bytes(), "/x", &owner));
    same("an empty path", fs::metadata(""), fs.metadata(""));
    same("open an empty path", fs::File::open(""), fs.open_file(""));
    same("create an empty path", fs::File::create_new(""), fs.create_file("", 0o644));
    same("make an empty path", fs::create_dir(""), fs.create_dir("", 0o755));
    same("remove an empty path", fs::remove_dir(""), fs.remove_dir(""));
    same("unlink an empty path", fs::remove_file(""), fs.remove_file(""));
    same("rename an empty path", fs::rename("", host("/x")), rename("", "/x"));
    same("rename to an empty path", fs::rename(host("/file"), ""), rename("/file", ""));
    same("list a file", fs::read_dir(host("/file")), fs.read_dir("/file"));
    fs.close().unwrap();
}

#[test]
fn attributes_have_the_numbers_of_the_host() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "").unwrap();
    let fs = FileSystem::open(formatted(), Options::new()).unwrap();
    fs.create_file("/file", 0o644).unwrap();
    let long = format!("user.{}", "n".repeat(251));
    let host = |name: &str, flags| rustix::fs::setxattr(&path, name, b"v", flags).map_err(io::Error::from);
    let none = rustix::fs::XattrFlags::empty();
    same("a long name", host(&long, none), fs.set_xattr("/file", &long, b"v", SetMode::Any));
    same("no prefix", host("abc.x", none), fs.set_xattr("/file", "abc.x", b"v", SetMode::Any));
    let replace = rustix::fs::XattrFlags::REPLACE;
    same("replace none", host("user.none", replace), fs.set_xattr("/file", "user.none", b"v", SetMode::Replace));
    let mut value = [0; 10];
    let got = rustix::fs::getxattr(&path, "user.none", &mut value).map_err(io::Error::from);
    same("get none", got, fs.xattr("/file", "user.none"));
}

#[test]
fn a_volume_that_is_full_or_for_reading_can_be_matched() {
    let device = formatted();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    let full = file.allocate(0, 1 << 30, AllocateFlags::NONE).unwrap_err();
    assert!(matches!(full, FsError::NoSpace(_)), "{full}");
    assert_eq!((full.raw_os_error(), full.kind()), (28, io::ErrorKind::StorageFull));
    drop(file);
    fs.close().unwrap();
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    let refused = fs.remove_file("/file").unwrap_err();
    assert!(matches!(refused, FsError::ReadOnly), "{refused}");
    assert_eq!((refused.raw_os_error(), refused.kind()), (30, io::ErrorKind::ReadOnlyFilesystem));
}

#[test]
fn the_number_of_the_device_is_handed_on() {
    let device = Arc::new(FaultDevice::new(formatted() as Arc<dyn BlockDevice>));
    let fs = FileSystem::open(device.clone(), Options::new().read_only(true)).unwrap();
    device.arm(FaultRule::on([Operation::Read]).for_good());
    let error = fs
        .read_dir("/")
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .and_then(|_| fs.open_file("/x").map(drop))
        .unwrap_err();
    assert_eq!((error.raw_os_error(), error.is_corruption()), (5, false), "{error}");
}
