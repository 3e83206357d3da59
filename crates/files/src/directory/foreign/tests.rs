//! Names that stand where their bytes do not lead.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::BlockDevice;
use f2fs_format::feature::Features;
use f2fs_format::hash::dentry_hash;
use f2fs_format::inode::flags;
use f2fs_format::superblock::SuperBlock;

use crate::name::Name;
use crate::samples::formatted;
use crate::{FileKind, FileSystem, FsError, Options};

/// A folded name beyond ASCII stands in the bucket of its folded form, on any level, among thousands of others.
#[test]
fn a_folded_name_is_found_in_any_block() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let file = fs.create_file("/f", 0o644).unwrap().ino();
    fs.create_dir("/d", 0o755).unwrap();
    let directory = fs.core.inode(fs.metadata("/d").unwrap().ino).unwrap();
    let mut folded = Vec::new();
    for number in 0..3000 {
        if number % 100 == 0 {
            // As another system puts it there.
            let name = format!("Übermut {number}");
            let stored = Name::stored(name.as_bytes(), dentry_hash(name.to_lowercase().as_bytes()));
            fs.core.change(|op| fs.namespace().add_entry(op, &directory, stored, file, FileKind::Regular)).unwrap();
            folded.push(name);
        }
        fs.link("/f", format!("/d/{number}")).unwrap();
    }
    fs.core
        .change(|op| {
            directory.node.write(op).inode_mut().i_flags = flags::CASEFOLD.into();
            Ok(())
        })
        .unwrap();
    drop(directory);
    fs.close().unwrap();
    drop(fs);
    for copy in [0, 1] {
        let mut block = *device.read(copy, 1).unwrap().block(0);
        let mut superblock = SuperBlock::read(&block);
        superblock.feature = (superblock.feature.get() | Features::CASEFOLD.0).into();
        if Features(superblock.feature.get()).contains(Features::SB_CHECKSUM) {
            superblock.crc = superblock.compute_crc().into();
        }
        superblock.write(&mut block);
        device.write_slice(copy, &block).unwrap();
    }
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    let find = |name: &str| fs.metadata(format!("/d/{name}")).map(|found| found.ino);
    for name in &folded {
        assert_eq!(find(name).unwrap(), file, "{name}");
        let missing = [name.to_lowercase(), name.replace("Über", "Ünter")];
        assert!(missing.iter().all(|name| matches!(find(name), Err(FsError::NotFound))));
    }
    assert_eq!(fs.read_dir("/d").unwrap().count(), 3000 + folded.len());
}
