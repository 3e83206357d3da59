//! Entries with invalid names: each is an error by itself in every reader, and never a component of a path; what
//! stands beside it is read, and removed, as ever. The check finds them, and a repair mends them.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_check::repair::plan;
use f2fs_check::{CheckOptions, FindingKind, check};
use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_files::{BadEntry, DirEntry, FileKind, FileSystem, FsError, NewFile, Options};
use f2fs_format::dentry::{DentryLayout, DentryView, ENTRY_SIZE, SLOT_LEN};
use f2fs_format::feature::Features;
use f2fs_format::hash::dentry_hash;
use f2fs_format::inode::inline;
use f2fs_format::node::NodeBlock;
use f2fs_format::{Nid, inode};
use f2fs_test_kit::harm::{geometry, ino, options, read};
use f2fs_test_kit::volumes::{assert_clean, at, formatted};

/// The new name of an entry.
#[derive(Clone, Copy, Debug)]
enum Name {
    Bytes(&'static [u8]),
    /// A length, of whatever bytes.
    Length(u16),
}

use Name::{Bytes, Length};

/// Names, and what is said of each.
const NAMES: [(Name, &str); 13] = [
    (Bytes(b"../evil"), "slash"),
    (Bytes(b"/tmp/ev"), "slash"),
    (Bytes(b"/"), "slash"),
    (Bytes(b"below/x"), "slash"),
    (Bytes(b"plain/"), "slash"),
    (Bytes(b"zero\0byte"), "zero"),
    (Bytes(b"\0"), "zero"),
    (Bytes(b"."), "reserved"),
    (Bytes(b".."), "reserved"),
    (Length(0), "empty"),
    (Length(256), "longer"),
    (Length(300), "longer"),
    (Length(u16::MAX), "longer"),
];

/// Files beside the one whose name is changed, and their content.
fn others(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("beside-{number}")).collect()
}

/// A volume with `/dir`, which holds a file, or a directory with a file, of which the name is changed, among `count`
/// others.
fn damaged(count: usize, name: Name, directory: bool) -> Arc<MemoryDevice> {
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    let len = match name {
        Bytes(bytes) => bytes.len(),
        Length(_) => 20,
    };
    let placeholder = "p".repeat(len);
    let half = count / 2;
    for (index, other) in others(count).iter().enumerate() {
        if index == half {
            let path = format!("/dir/{placeholder}");
            if directory {
                fs.create_dir(&path, 0o700).unwrap();
                fs.create_file(format!("{path}/inner"), 0o600).unwrap();
            } else {
                fs.create_file(&path, 0o644).unwrap().write_at(b"evil", 0).unwrap();
            }
        }
        fs.create_file(format!("/dir/{other}"), 0o644).unwrap().write_at(other.as_bytes(), 0).unwrap();
    }
    fs.close().unwrap();
    drop(fs);
    rename_on_device(&device, ino(&device, "/dir"), placeholder.as_bytes(), name);
    device
}

/// Changes a name where it stands, in a dentry block or in the inode; its hash is that of the new one.
fn rename_on_device(device: &MemoryDevice, dir: Nid, old: &[u8], new: Name) {
    let geometry = geometry(device);
    let mut changed = 0;
    for addr in geometry.main_blkaddr.0..geometry.main_end().0 {
        let mut block = read(device, addr.into());
        let node = NodeBlock::read(&block);
        let is_dir = node.nid() == dir && node.ino() == dir;
        if is_dir && node.inode().i_inline & inline::DENTRY != 0 {
            let mut node = Box::new(*node);
            changed += usize::from(change(node.inode_mut().inline_data_mut(Features::SB_CHECKSUM), old, new));
            block = *node.as_block();
        } else if !is_dir && DentryView::block(&block).find(dentry_hash(old), old).is_some() {
            changed += usize::from(change(&mut block, old, new));
        }
        device.write_slice(addr.into(), &block).unwrap();
    }
    assert!(changed > 0, "{new:?}: the name stands nowhere");
}

fn change(area: &mut [u8], old: &[u8], new: Name) -> bool {
    let layout = if area.len() == 4096 { DentryLayout::BLOCK } else { DentryLayout::of_size(area.len()) };
    let view = match area.first_chunk::<4096>() {
        Some(block) if area.len() == 4096 => DentryView::block(block),
        _ => DentryView::inline(area),
    };
    let Some(slot) = view.find(dentry_hash(old), old).map(|entry| entry.slot) else { return false };
    let entry = layout.entries_at + slot * ENTRY_SIZE;
    match new {
        Bytes(bytes) => {
            let at = layout.names_at + slot * SLOT_LEN;
            area[at..at + bytes.len()].copy_from_slice(bytes);
            area[entry..entry + 4].copy_from_slice(&dentry_hash(bytes).to_le_bytes());
            area[entry + 8..entry + 10].copy_from_slice(&(bytes.len() as u16).to_le_bytes());
        }
        Length(len) => area[entry + 8..entry + 10].copy_from_slice(&len.to_le_bytes()),
    }
    true
}

fn open(device: &Arc<MemoryDevice>, read_only: bool) -> FileSystem {
    FileSystem::open(device.clone(), Options::new().read_only(read_only)).unwrap()
}

/// The entries of a directory, and those that are none.
fn list(fs: &FileSystem, path: &str) -> (Vec<DirEntry>, Vec<BadEntry>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for entry in fs.open_dir(path).unwrap().entries() {
        match entry {
            Ok(entry) => good.push(entry),
            Err(FsError::BadEntry(entry)) => bad.push(entry),
            Err(other) => panic!("{path}: {other}"),
        }
    }
    (good, bad)
}

fn each(mut test: impl FnMut(&str, Name, &str, usize, Arc<MemoryDevice>)) {
    for (name, why) in NAMES {
        // Inline, and in dentry blocks.
        for count in [10, 300] {
            for directory in [false, true] {
                let what = format!("{name:?}, {count} others, {}", if directory { "directory" } else { "file" });
                test(&what, name, why, count, damaged(count, name, directory));
            }
        }
    }
}

/// Each other name is listed, found, and read.
#[track_caller]
fn assert_others(fs: &FileSystem, listed: &[DirEntry], count: usize, what: &str) {
    let mut names: Vec<_> = listed.iter().map(|entry| String::from_utf8(entry.name.clone()).unwrap()).collect();
    names.sort();
    let mut wanted = others(count);
    wanted.sort();
    assert_eq!(names, wanted, "{what}");
    for name in wanted {
        let mut read = vec![0; 100];
        let len = fs.open_file(format!("/dir/{name}")).unwrap().read_at(&mut read, 0).unwrap();
        assert_eq!(read[..len], *name.as_bytes(), "{what}");
    }
}

#[test]
fn such_an_entry_is_an_error_of_its_own() {
    each(|what, name, why, count, device| {
        let dir = ino(&device, "/dir");
        for read_only in [true, false] {
            let fs = open(&device, read_only);
            let (good, bad) = list(&fs, "/dir");
            assert_others(&fs, &good, count, what);
            let [bad] = &bad[..] else { panic!("{what}: {bad:?}") };
            assert!(bad.why.contains(why), "{what}: {bad}");
            assert_eq!((bad.dir, bad.block.is_some()), (dir, count > 100), "{what}");
            assert!(bad.to_string().contains(&format!("slot {}", bad.slot)), "{bad}");
            let len = match name {
                Bytes(bytes) => bytes.len(),
                Length(len) => len.into(),
            };
            assert_eq!(bad.len, len, "{what}");

            // All at once it is the error, and by parts of any length it is passed.
            let error = fs.read_dir("/dir").and_then(Iterator::collect::<Result<Vec<_>, _>>).unwrap_err();
            assert!(error.is_corruption(), "{what}: {error}");
            assert!(matches!(error, FsError::BadEntry(found) if found == *bad), "{what}");
            let opened = fs.open_dir("/dir").unwrap();
            for limit in [1, 3, 1000, usize::MAX] {
                let (mut from, mut seen, mut errors) = (0, 0, 0);
                loop {
                    match opened.read(from, limit) {
                        Ok(part) => match part.last() {
                            Some(last) => (from, seen) = (last.next, seen + part.len()),
                            None => break,
                        },
                        Err(FsError::BadEntry(bad)) => (from, errors) = (bad.next, errors + 1),
                        Err(other) => panic!("{what}: {other}"),
                    }
                }
                assert_eq!((seen, errors), (count + 2, 1), "{what}, {limit} at a time");
            }
        }
    });
}

/// The directory can be used, but for this entry, and is removed but for it.
#[test]
fn what_stands_beside_it_comes_and_goes() {
    each(|what, _, _, count, device| {
        let fs = open(&device, false);
        fs.create_file("/dir/new", 0o644).unwrap();
        fs.rename("/dir/new", "/dir/renamed", f2fs_files::RenameMode::NoReplace).unwrap();
        fs.remove_file("/dir/renamed").unwrap();
        let (good, bad) = list(&fs, "/dir");
        assert_others(&fs, &good, count, what);
        let error = fs.remove_all("/dir").unwrap_err();
        assert!(matches!(&error, FsError::BadEntry(found) if *found == bad[0]), "{what}: {error}");
        assert_eq!(list(&fs, "/dir"), (Vec::new(), bad.clone()), "{what}");
        let error = fs.remove_dir("/dir").unwrap_err();
        assert!(matches!(&error, FsError::BadEntry(found) if *found == bad[0]), "{what}: {error}");
        // One that holds it among others is emptied as far as that goes.
        fs.create_dir("/top", 0o755).unwrap();
        fs.create_file("/top/file", 0o644).unwrap();
        fs.rename("/dir", "/top/dir", f2fs_files::RenameMode::NoReplace).unwrap();
        fs.create_file("/top/later", 0o644).unwrap();
        assert!(matches!(fs.remove_all("/top"), Err(FsError::BadEntry(_))), "{what}");
        assert_eq!(fs.read_dir("/top").unwrap().count(), 1, "{what}");
        fs.close().unwrap();
    });
}

#[test]
fn the_check_finds_them_and_a_repair_mends_them() {
    each(|what, _, _, count, device| {
        let image: Arc<dyn BlockDevice> = Arc::new(device.snapshot().read_only());
        let report = check(&*device, &CheckOptions::default()).unwrap();
        let kinds = [FindingKind::Dentry, FindingKind::Dots];
        assert!(kinds.into_iter().any(|kind| report.has(kind)), "{what}: {report}");
        let repair = plan(&image, &CheckOptions::default()).unwrap();
        repair.apply(&*device).unwrap();
        assert_clean(&device);
        let fs = open(&device, false);
        let (good, bad) = list(&fs, "/dir");
        assert_eq!(bad, [], "{what}");
        let beside = good.iter().filter(|entry| entry.name.starts_with(b"beside-")).count();
        assert!(beside + 1 >= count, "{what}: {beside}");
        fs.remove_all("/dir").unwrap();
        fs.close().unwrap();
        assert_clean(&device);
    });
}

/// A repair gives no inode such a name, if the inode itself says that it has it.
#[test]
fn a_repair_trusts_no_name_of_an_inode() {
    for own in [&b".."[..], b".", b"a/b", b"", b"a\0b"] {
        let device = damaged(10, Bytes(b"../evil"), false);
        let evil = {
            let fs = open(&device, true);
            list(&fs, "/dir").1[0].ino
        };
        f2fs_test_kit::harm::patch_node(&device, evil, |node| {
            let inode = node.inode_mut();
            inode.i_name = [0; inode::NAME_LEN];
            inode.i_name[..own.len()].copy_from_slice(own);
            inode.i_namelen = (own.len() as u32).into();
        });
        let image: Arc<dyn BlockDevice> = Arc::new(device.snapshot().read_only());
        plan(&image, &CheckOptions::default()).unwrap().apply(&*device).unwrap();
        assert_clean(&device);
        let fs = open(&device, false);
        assert_eq!(list(&fs, "/dir").1, [], "{own:?}");
        fs.close().unwrap();
    }
}

/// A link whose target stands on the volume as zero bytes leads nowhere.
#[test]
fn an_empty_target_is_an_error() {
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    fs.symlink(b"target", "/dir/link", &NewFile::new(FileKind::Symlink, 0o777)).unwrap();
    fs.close().unwrap();
    drop(fs);
    f2fs_test_kit::harm::patch_node(&device, ino(&device, "/dir/link"), |node| {
        node.inode_mut().inline_data_mut(Features::SB_CHECKSUM)[..6].fill(0);
    });
    let fs = open(&device, true);
    assert!(matches!(fs.read_link("/dir/link"), Err(FsError::NoTarget)));
    assert!(matches!(fs.metadata("/dir/link"), Err(FsError::NoTarget)));
    assert!(!fs.exists("/dir/link/below").unwrap());
    assert!(fs.read_dir(at(b"/dir/link/")).and_then(Iterator::collect::<Result<Vec<_>, _>>).is_err());
}

/// A name that a sync put into the inode is judged before it becomes one.
#[test]
fn roll_forward_makes_no_such_name() {
    for own in [&b"../evil"[..], b"/tmp/ev", b".", b"..", b"", b"zero\0by"] {
        let device = formatted(64, &options());
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        fs.create_dir("/dir", 0o755).unwrap();
        fs.create_file("/dir/first", 0o644).unwrap().sync_all().unwrap();
        let file = fs.create_file("/dir/regular", 0o644).unwrap();
        file.sync_all().unwrap();
        let synced = file.ino();
        // A crash.
        let device = Arc::new(device.snapshot());
        let recovered = FileSystem::open(Arc::new(device.snapshot()), Options::new().read_only(true)).unwrap();
        assert_eq!(recovered.recovered().new_files, 1);
        f2fs_test_kit::harm::patch_node(&device, synced, |node| {
            let inode = node.inode_mut();
            inode.i_name = [0; inode::NAME_LEN];
            inode.i_name[..own.len()].copy_from_slice(own);
            inode.i_namelen = (own.len() as u32).into();
        });
        for read_only in [true, false] {
            let options = Options::new().read_only(read_only);
            let error = FileSystem::open(Arc::new(device.snapshot()), options).unwrap_err();
            let FsError::Recovery(error) = error else { panic!("{own:?}: {error}") };
            assert!(matches!(*error, FsError::Name(_)), "{own:?}: {error}");
        }
    }
}
