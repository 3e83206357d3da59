//! The real tools, on volumes that are clean, torn and damaged.

#![allow(clippy::unwrap_used)]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use f2fs_oracle::{OracleError, fsck, mkfs_sized};

const SIZE: u64 = 64 << 20;
const BLOCK: u64 = 4096;

/// A little-endian word of the first superblock copy.
fn superblock_u32(image: &Path, offset: u64) -> u64 {
    let mut word = [0; 4];
    fs::File::open(image).unwrap().read_exact_at(&mut word, 1024 + offset).unwrap();
    u64::from(u32::from_le_bytes(word))
}

fn overwrite(image: &Path, offset: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(image).unwrap().write_all_at(bytes, offset).unwrap();
}

#[test]
fn a_fresh_volume_is_clean_and_left_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("fresh.img");
    let output = mkfs_sized(&image, SIZE, &["-l", "fresh", "-O", "extra_attr,inode_checksum,lost_found"]).unwrap();
    assert!(output.contains("format successful"), "{output}");
    let before = fs::read(&image).unwrap();
    f2fs_oracle::assert_clean(&image);
    assert!(before == fs::read(&image).unwrap(), "a dry run wrote to the volume");
}

#[test]
fn a_lost_nat_block_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("nat.img");
    mkfs_sized(&image, SIZE, &[]).unwrap();
    // nat_blkaddr stands at byte 84 of the superblock.
    let nat = superblock_u32(&image, 84);
    overwrite(&image, nat * BLOCK, &[0; 4096]);
    let report = fsck(&image).unwrap();
    assert!(!report.is_accepted(), "{}", report.output);
    assert_ne!(report.status, Some(0));
}

#[test]
fn a_torn_superblock_is_accepted_but_not_clean() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("torn.img");
    mkfs_sized(&image, SIZE, &[]).unwrap();
    overwrite(&image, 1024, &[0; 4]);
    let report = fsck(&image).unwrap();
    assert!(report.is_accepted() && !report.is_clean(), "{report}\n{}", report.output);
    f2fs_oracle::assert_accepted(&image);
}

#[test]
fn something_else_is_not_a_volume() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("zero.img");
    fs::File::create(&image).unwrap().set_len(SIZE).unwrap();
    assert!(!fsck(&image).unwrap().is_accepted());
    assert!(!fsck(dir.path().join("absent.img")).unwrap().is_accepted());
}

#[test]
fn a_size_too_small_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = mkfs_sized(dir.path().join("small.img"), 1 << 20, &[]).unwrap_err();
    assert!(matches!(error, OracleError::Refused { .. }), "{error}");
}
