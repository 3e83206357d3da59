//! Volumes in memory to be damaged, and ways to damage them. Each test uses a part of it.

use std::sync::{Arc, LazyLock};

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_files::{FileSystem, FsError, Options, SetMode};
use f2fs_format::feature::Features;
use f2fs_format::node::NodeBlock;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{Geometry, Nid, RawBlock};
use f2fs_volume::VolumeError;
use f2fs_volume::format::FormatOptions;

use crate::volumes::formatted;

pub fn options() -> FormatOptions {
    FormatOptions::default().with_features(Features::SB_CHECKSUM)
}

/// A volume with a tree, and two valid checkpoint packs, which hold the same.
pub fn volume() -> MemoryDevice {
    static MADE: LazyLock<MemoryDevice> = LazyLock::new(made);
    MADE.snapshot()
}

fn made() -> MemoryDevice {
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    for path in ["/dir", "/dir/below", "/hashed"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    fs.create_file("/small", 0o644).unwrap().write_at(b"inline", 0).unwrap();
    fs.create_file("/large", 0o644).unwrap().write_at(&[7; 5 << 20], 0).unwrap();
    fs.set_xattr("/small", "user.note", b"text", SetMode::Any).unwrap();
    for name in 0..400 {
        fs.create_file(format!("/hashed/{name}"), 0o644).unwrap();
    }
    fs.checkpoint().unwrap();
    fs.create_file("/new", 0o644).unwrap();
    fs.close().unwrap();
    device.snapshot()
}

pub fn read(device: &MemoryDevice, block: u64) -> RawBlock {
    *device.read(block, 1).unwrap().block(0)
}

pub fn geometry(device: &MemoryDevice) -> Geometry {
    Geometry::from_superblock(&SuperBlock::read(&read(device, 0))).unwrap()
}

/// Changes one superblock; with `seal` its checksum stays right.
pub fn patch_superblock(device: &MemoryDevice, copy: u64, seal: bool, change: impl Fn(&mut SuperBlock)) {
    let mut block = read(device, copy);
    let mut sb = SuperBlock::read(&block);
    change(&mut sb);
    if seal {
        sb.crc = sb.compute_crc().into();
    }
    sb.write(&mut block);
    device.write_slice(copy, &block).unwrap();
}

/// Changes every block in the main area that is this node, stale ones as well.
pub fn patch_node(device: &MemoryDevice, ino: Nid, change: impl Fn(&mut NodeBlock)) {
    let geometry = geometry(device);
    let mut found = 0;
    for addr in geometry.main_blkaddr.0..geometry.main_end().0 {
        let block = device.read(addr.into(), 1).unwrap();
        let node = NodeBlock::read(block.block(0));
        if node.nid() == ino && node.ino() == ino {
            let mut node = Box::new(*node);
            change(&mut node);
            device.write_slice(addr.into(), node.as_block()).unwrap();
            found += 1;
        }
    }
    assert!(found > 0, "no block of node {ino}");
}

pub fn ino(device: &MemoryDevice, path: &str) -> Nid {
    let fs = FileSystem::open(Arc::new(device.snapshot()), Options::new().read_only(true)).unwrap();
    fs.symlink_metadata(path).unwrap().ino
}

/// Opens for writing, which must fail, and leave every byte as it was.
#[track_caller]
pub fn refuse(device: &MemoryDevice) -> VolumeError {
    let before = device.snapshot();
    let shared = Arc::new(device.snapshot());
    let error = FileSystem::open(shared.clone(), Options::new()).unwrap_err();
    let again = FileSystem::open(shared.clone(), Options::new().read_only(true)).unwrap_err();
    assert_eq!(error.to_string(), again.to_string(), "reading says the same");
    assert!(shared.to_bytes() == before.to_bytes(), "a failed open wrote something");
    match error {
        FsError::Volume(error) => error,
        other => panic!("{other}"),
    }
}

pub fn open(device: &MemoryDevice) -> FileSystem {
    FileSystem::open(Arc::new(device.snapshot()), Options::new()).unwrap()
}
