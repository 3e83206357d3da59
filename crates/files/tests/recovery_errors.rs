//! A device that fails while what was synced is recovered: the open says what the device said, and not that what was
//! synced cannot be recovered; the next open, on a device that works, recovers it.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::num::NonZeroUsize;
use std::sync::Arc;

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_device_test::bytes;
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_files::{FileSystem, FsError, Options};
use f2fs_format::BlockAddr;
use f2fs_format::node::NodeBlock;
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{VolumeError, VolumeOptions};

fn options() -> Options {
    Options::new().volume(VolumeOptions::new().node_cache(NonZeroUsize::MIN)).inode_cache(NonZeroUsize::MIN)
}

/// A volume that was dropped after syncs of files, old and new, whose numbers lie in several blocks of the NAT.
fn synced() -> MemoryDevice {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), options()).unwrap();
    for name in 0..1200 {
        fs.create_file(format!("/old-{name}"), 0o644).unwrap();
    }
    fs.checkpoint().unwrap();
    for name in ["/old-0", "/old-700", "/old-1199", "/new-0", "/new-1"] {
        let file = if name.starts_with("/new") { fs.create_file(name, 0o644) } else { fs.open_file(name) }.unwrap();
        file.write_at(&bytes(6000, name.len() as u64), 0).unwrap();
        file.sync_all().unwrap();
    }
    drop(fs);
    device.snapshot()
}

#[test]
fn a_read_that_fails_during_recovery_is_the_devices_error() {
    let image = synced();
    let (mut tables, mut index) = (0, 0);
    loop {
        let device = Arc::new(FaultDevice::new(Arc::new(image.snapshot())));
        device.arm(FaultRule::on_all().after(index));
        let result = FileSystem::open(device.clone(), options());
        if device.faults() == 0 {
            break;
        }
        match result {
            Ok(_) => {}
            // One of two copies cannot be read, nor can the other be used.
            Err(FsError::Volume(VolumeError::NoSuperblock { .. } | VolumeError::NoCheckpoint { .. })) => {}
            Err(error) => {
                assert!(error.device().is_some() && !error.is_corruption(), "request {index}: {error:?}");
                tables += u32::from(matches!(error, FsError::Volume(VolumeError::Nat(_))));
            }
        }
        let fs = FileSystem::open(Arc::new(image.snapshot()), options()).unwrap();
        let mut found = vec![0; 6000];
        for name in ["/old-700", "/new-1"] {
            assert_eq!(fs.open_file(name).unwrap().read_at(&mut found, 0).unwrap(), 6000);
            assert!(found == bytes(6000, name.len() as u64), "request {index}: {name}");
        }
        index += 1;
    }
    assert!(index > 20 && tables > 0, "{index} requests, of them {tables} for blocks of the NAT");
}

/// An address that means a cluster of compressed blocks, on a volume that has none.
#[test]
fn a_cluster_in_a_synced_node_is_refused_without_the_feature() {
    let device = synced();
    let fs = FileSystem::open(Arc::new(device.snapshot()), options().read_only(true)).unwrap();
    let (ino, features) = (fs.metadata("/new-0").unwrap().ino, fs.volume().geometry().features);
    drop(fs);
    let mut patched = 0;
    for addr in 0..device.info().blocks {
        let mut node = *NodeBlock::read(device.read(addr, 1).unwrap().block(0));
        if node.nid() == ino && node.ino() == ino {
            assert!(node.address(1, features).is_some_and(BlockAddr::is_real));
            node.set_address(1, BlockAddr::COMPRESS, features);
            device.write_slice(addr, node.as_block()).unwrap();
            patched += 1;
        }
    }
    assert!(patched > 0);
    for read_only in [true, false] {
        let result = FileSystem::open(Arc::new(device.snapshot()), options().read_only(read_only));
        let error = result.unwrap_err().to_string();
        assert!(error.contains("address in a synced node") && error.contains("4294967294"), "{error}");
    }
}
