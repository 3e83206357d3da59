//! New files in directories whose names are hashed without case, or encrypted.

use f2fs_format::encryption::no_key_name;
use f2fs_format::hash::dentry_hash;

use super::*;

/// A volume with a new file `/dir/new` that was synced, where another system has made the directory what it is. The
/// checkpoint has `/dir/OLD`.
fn volume(directory: impl Fn(&mut RawInode), file: impl FnOnce(&mut RawInode)) -> PlainArc<MemoryDevice> {
    let (device, fs) = start(Features(0));
    fs.create_dir("/dir", 0o755).unwrap();
    fs.create_file("/dir/OLD", 0o644).unwrap();
    fs.checkpoint().unwrap();
    sync(&fs, "/dir/new", 1);
    drop(fs);
    patch_node(&device, ino(&device, "/dir"), |node| directory(node.inode_mut()));
    change(&device, chain(&device)[0], |node| file(node.inode_mut()));
    for copy in [0, 1] {
        patch_superblock(&device, copy, false, |superblock| {
            let features = Features::ENCRYPT.union(Features::CASEFOLD).0;
            superblock.feature = (superblock.feature.get() | features).into();
        });
    }
    device
}

fn rename(inode: &mut RawInode, name: &[u8]) {
    inode.i_namelen = (name.len() as u32).into();
    inode.i_name[..name.len()].copy_from_slice(name);
}

fn show(device: &PlainArc<MemoryDevice>) -> Result<Vec<Vec<u8>>, FsError> {
    let fs = FileSystem::open(device.clone(), Options::new().read_only(true))?;
    let mut names: Vec<_> = fs.read_dir("/dir").unwrap().map(|entry| entry.unwrap().name).collect();
    names.sort();
    Ok(names)
}

#[test]
fn a_new_file_comes_back_beside_others() {
    let device = volume(|inode| inode.i_flags = flags::CASEFOLD.into(), |_| {});
    assert_eq!(show(&device).unwrap(), [b"OLD".to_vec(), b"new".to_vec()]);
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    assert_eq!(fs.metadata("/dir/NEW").unwrap().ino, fs.metadata("/dir/new").unwrap().ino);
}

/// What stands there would have to go: that cannot be done here.
#[test]
fn a_name_that_another_file_has_is_refused() {
    for name in [&b"OLD"[..], b"old"] {
        let device = volume(|inode| inode.i_flags = flags::CASEFOLD.into(), |inode| rename(inode, name));
        let error = show(&device).unwrap_err();
        let is_refused =
            |error: &FsError| matches!(error, FsError::Unsupported { what, .. } if what.contains("casefolded"));
        assert!(matches!(&error, FsError::Recovery(error) if is_refused(error)), "{error}");
    }
    let device = volume(|inode| inode.i_advise |= advise::ENCRYPT, |inode| rename(inode, b"OLD"));
    assert!(matches!(show(&device), Err(FsError::Recovery(_))));
}

/// It is no text, and may hold what separates names.
#[test]
fn an_encrypted_name_may_be_any_bytes() {
    let name = b"a/b";
    let device = volume(|inode| inode.i_advise |= advise::ENCRYPT, |inode| rename(inode, name));
    let mut expected = [&name[..], b"OLD"].map(|name| no_key_name(dentry_hash(name), name));
    expected.sort();
    assert_eq!(show(&device).unwrap(), expected);
    // Without encryption it is none.
    let device = volume(|inode| inode.i_flags = flags::CASEFOLD.into(), |inode| rename(inode, name));
    assert!(matches!(show(&device), Err(FsError::Recovery(_))));
}

/// The same of the names in a journal.
#[test]
fn a_name_in_a_record_that_another_file_has_is_refused() {
    let device = volume(|inode| inode.i_flags = flags::CASEFOLD.into(), |_| {});
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    let error = journaled::recover(&fs, &[("/dir", "new", Some("/dir/OLD"))]).unwrap_err();
    assert!(matches!(&error, FsError::Unsupported { what, .. } if what.contains("casefolded")), "{error}");
}
