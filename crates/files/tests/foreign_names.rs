//! Names of encrypted and of casefolded directories, which other systems made: they are found as they are shown, and as
//! nothing else.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::BTreeMap;
use std::sync::Arc;

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_files::{FileKind, FileSystem, FsError, NewFile, Options};
use f2fs_format::Nid;
use f2fs_format::dentry::{DentryLayout, DentryView, ENTRY_SIZE};
use f2fs_format::encryption::no_key_name;
use f2fs_format::feature::Features;
use f2fs_format::hash::dentry_hash;
use f2fs_format::inode::{Inode, advise, flags};
use f2fs_test_kit::harm::{geometry, ino, options, patch_node, patch_superblock, read};
use f2fs_test_kit::volumes::{at, formatted};

/// As many names as stand in the inode, and as many as take several levels of blocks.
const COUNTS: [usize; 2] = [5, 600];

/// A volume with these names in `/dir`, which another system changed afterwards.
fn volume(names: &[Vec<u8>], change: impl Fn(&mut Inode)) -> Arc<MemoryDevice> {
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    for name in names {
        fs.create_file(at(&[b"/dir/", &name[..]].concat()), 0o644).unwrap();
    }
    fs.close().unwrap();
    drop(fs);
    patch_node(&device, ino(&device, "/dir"), |node| change(node.inode_mut()));
    allow(&device);
    device
}

/// Says in both superblocks that another system may have made what is there.
fn allow(device: &MemoryDevice) {
    for copy in [0, 1] {
        patch_superblock(device, copy, true, |superblock| {
            let features = Features::ENCRYPT.union(Features::CASEFOLD).0;
            superblock.feature = (superblock.feature.get() | features).into();
        });
    }
}

fn open(device: &Arc<MemoryDevice>) -> FileSystem {
    FileSystem::open(device.clone(), Options::new().read_only(true)).unwrap()
}

fn find(fs: &FileSystem, name: &[u8]) -> Result<Nid, FsError> {
    fs.metadata(at(&[b"/dir/", name].concat())).map(|found| found.ino)
}

#[track_caller]
fn is_missing(fs: &FileSystem, name: &[u8]) {
    let found = find(fs, name);
    assert!(matches!(found, Err(FsError::NotFound)), "{}: {found:?}", String::from_utf8_lossy(name));
}

/// What a listing shows, with the inodes.
fn listed(fs: &FileSystem) -> BTreeMap<Vec<u8>, Nid> {
    fs.read_dir("/dir").unwrap().map(Result::unwrap).map(|entry| (entry.name, entry.ino)).collect()
}

#[test]
fn encrypted_names_are_found_by_the_text_that_stands_for_them() {
    for count in COUNTS {
        // Ciphertexts of all lengths; of the long ones the text has a digest.
        let names: Vec<Vec<u8>> =
            (0..count).map(|number| format!("{number:0>len$}", len = 16 + number * 60 % 230).into_bytes()).collect();
        let device = volume(&names, |inode| inode.i_advise |= advise::ENCRYPT);
        let fs = open(&device);
        let listed = listed(&fs);
        assert_eq!(listed.len(), count);
        for name in &names {
            let hash = dentry_hash(name);
            let shown = no_key_name(hash, name);
            assert_eq!(find(&fs, &shown).unwrap(), listed[&shown], "{name:?}");
            is_missing(&fs, &no_key_name(hash ^ 2, name));
            is_missing(&fs, &no_key_name(hash, &[&name[1..], b"?"].concat()));
            is_missing(&fs, name);
        }
        // What cannot be changed is found first.
        let refused = fs.remove_file(at(&[b"/dir/", &no_key_name(dentry_hash(&names[0]), &names[0])[..]].concat()));
        assert!(matches!(refused, Err(FsError::ReadOnly)), "{refused:?}");
        // The directory itself has no such text.
        is_missing(&fs, &no_key_name(0, b"."));
        assert_eq!(find(&fs, b".").unwrap(), fs.metadata("/dir").unwrap().ino);
    }
}

/// Their content is ciphertext: of a file nothing is handed out, of a link the text that stands for its target.
#[test]
fn encrypted_files_and_links_are_not_taken_for_plain_ones() {
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_file("/file", 0o644).unwrap().write_at(&[7; 9000], 0).unwrap();
    fs.symlink(&[0xa5; 18], "/link", &NewFile::new(FileKind::Symlink, 0o777)).unwrap();
    fs.close().unwrap();
    drop(fs);
    for path in ["/file", "/link"] {
        patch_node(&device, ino(&device, path), |node| {
            let inode = node.inode_mut();
            inode.i_advise |= advise::ENCRYPT;
            if path == "/link" {
                // Behind the length of the ciphertext.
                inode.inline_data_mut(Features::SB_CHECKSUM)[..2].copy_from_slice(&16_u16.to_le_bytes());
            }
        });
    }
    allow(&device);
    let fs = open(&device);
    assert_eq!(fs.metadata("/file").unwrap().size, 9000);
    let error = fs.open_file("/file").and_then(|file| file.read_at(&mut [0; 10], 0)).unwrap_err();
    assert!(matches!(error, FsError::Encrypted { policy: None, .. }), "{error}");
    let shown = no_key_name(0, &[0xa5; 16]);
    assert_eq!(fs.read_link("/link").unwrap(), shown);
    assert_eq!(fs.symlink_metadata("/link").unwrap().size, shown.len() as u64);
}

#[test]
fn casefolded_names_are_found_in_small_and_capital_letters() {
    for count in COUNTS {
        let names: Vec<Vec<u8>> = (0..count).map(|number| format!("name {number} of them").into_bytes()).collect();
        let device = volume(&names, |inode| inode.i_flags = flags::CASEFOLD.into());
        let fs = open(&device);
        let listed = listed(&fs);
        assert_eq!(
            listed.keys().collect::<Vec<_>>(),
            names.iter().collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        );
        for name in &names {
            for asked in
                [name.clone(), name.to_ascii_uppercase(), [&name[..1].to_ascii_uppercase(), &name[1..]].concat()]
            {
                assert_eq!(find(&fs, &asked).unwrap(), listed[name], "{}", String::from_utf8_lossy(&asked));
            }
            is_missing(&fs, &[&name[..], b"x"].concat());
        }
    }
}

/// Names beyond ASCII are found by their exact bytes, whether they stand where those lead, or, as their folded form
/// has another hash, elsewhere.
#[test]
fn folded_names_beyond_ascii_are_found_by_their_bytes() {
    for count in COUNTS {
        let mut names: Vec<Vec<u8>> = (0..count).map(|number| format!("größe {number}").into_bytes()).collect();
        let (at_home, elsewhere) = ("Ärger".as_bytes(), "Übermut".as_bytes());
        names.extend([at_home.to_vec(), elsewhere.to_vec()]);
        let device = volume(&names, |inode| inode.i_flags = flags::CASEFOLD.into());
        let before = listed(&open(&device));
        rehash(&device, elsewhere, dentry_hash("übermut".as_bytes()));
        let fs = open(&device);
        assert_eq!(listed(&fs), before);
        for name in &names {
            assert_eq!(find(&fs, name).unwrap(), before[name], "{}", String::from_utf8_lossy(name));
        }
        is_missing(&fs, "ärger".as_bytes());
        is_missing(&fs, "übermut".as_bytes());
    }
}

/// Changes the hash of an entry where it stands.
fn rehash(device: &MemoryDevice, name: &[u8], hash: u32) {
    let (geometry, dir) = (geometry(device), ino(device, "/dir"));
    let mut changed = 0;
    for addr in geometry.main_blkaddr.0..geometry.main_end().0 {
        let mut block = read(device, addr.into());
        if let Some(found) = DentryView::block(&block).find(dentry_hash(name), name) {
            let entry = DentryLayout::BLOCK.entries_at + found.slot * ENTRY_SIZE;
            block[entry..entry + 4].copy_from_slice(&hash.to_le_bytes());
            device.write_slice(addr.into(), &block).unwrap();
            changed += 1;
        }
    }
    if changed == 0 {
        patch_node(device, dir, |node| {
            let area = node.inode_mut().inline_data_mut(Features::SB_CHECKSUM);
            let slot = DentryView::inline(area).find(dentry_hash(name), name).unwrap().slot;
            let entry = DentryLayout::of_size(area.len()).entries_at + slot * ENTRY_SIZE;
            area[entry..entry + 4].copy_from_slice(&hash.to_le_bytes());
        });
    }
}
