//! Files that Linux has compressed: what stands in plain is read, a cluster that does not is told by its number.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_files::{FileSystem, FsError, Options};
use f2fs_format::BlockAddr;
use f2fs_format::feature::Features;
use f2fs_format::inode::{EXTRA_SIZE, flags};
use f2fs_test_kit::harm::{ino, patch_node, patch_superblock};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

const BLOCK: u64 = 4096;

#[test]
fn a_compressed_cluster_is_told_by_its_number() {
    let device = formatted(64, &FormatOptions::default().with_features(Features::EXTRA_ATTR));
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_file("/file", 0o644).unwrap().write_at(&[7; 5 * 4 * BLOCK as usize], 0).unwrap();
    fs.close().unwrap();
    // Clusters of four blocks, of which the third one stands compressed.
    patch_node(&device, ino(&device, "/file"), |node| {
        let inode = node.inode_mut();
        let words = usize::from(inode.extra_mut().i_extra_isize.get()) / 4;
        inode.i_addr.copy_within(words..words + 20, EXTRA_SIZE / 4);
        inode.i_addr[words..EXTRA_SIZE / 4].fill(0.into());
        inode.i_addr[EXTRA_SIZE / 4 + 8] = BlockAddr::COMPRESS.0.into();
        inode.i_flags = flags::COMPR.into();
        let extra = inode.extra_mut();
        extra.i_extra_isize = (EXTRA_SIZE as u16).into();
        extra.i_log_cluster_size = 2;
    });
    for copy in [0, 1] {
        patch_superblock(&device, copy, true, |sb| {
            sb.feature = (sb.feature.get() | Features::COMPRESSION.0).into();
        });
    }
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    let file = fs.open_file("/file").unwrap();
    let mut data = vec![0; BLOCK as usize];
    for block in 0..20 {
        match file.read_at(&mut data, block * BLOCK) {
            Ok(len) => assert!(!(8..12).contains(&block) && data[..len] == [7; BLOCK as usize], "block {block}"),
            Err(FsError::Compressed { cluster, .. }) => assert_eq!((cluster, block / 4), (2, 2), "block {block}"),
            Err(other) => panic!("block {block}: {other}"),
        }
    }
}
