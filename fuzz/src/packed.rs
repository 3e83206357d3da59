//! Volumes as files of some KiB: blocks of metadata and their numbers, deflated. The data of files is zeros.
//!
//! `cargo run --manifest-path fuzz/Cargo.toml --bin pack IMAGE FILE` packs an image. There is one of `mkfs.f2fs` and
//! `sload.f2fs`, and four of Linux 6.12, which `cargo xtask guest fuzz-volumes --keep` leaves in `target/guest/images`:
//! closed, aged, and two that were stopped behind syncs.

use std::sync::{Arc, OnceLock};

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec;

use crate::harness::{Base, Structures};
use f2fs_device_test::SparseDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_format::RawBlock;

/// Bytes of a block.
const BLOCK: usize = 4096;

/// Volumes that were closed, or stopped after a checkpoint.
pub const CLOSED: [&[u8]; 3] =
    [include_bytes!("../volumes/sload"), include_bytes!("../volumes/kernel"), include_bytes!("../volumes/kernel-aged")];
/// Volumes on which files were synced after the last checkpoint.
pub const SYNCED: [&[u8]; 2] =
    [include_bytes!("../volumes/kernel-synced"), include_bytes!("../volumes/kernel-synced-extra")];

static CLOSED_BASES: [OnceLock<Base>; CLOSED.len()] = [const { OnceLock::new() }; CLOSED.len()];
static SYNCED_BASES: [OnceLock<Base>; SYNCED.len()] = [const { OnceLock::new() }; SYNCED.len()];

/// A closed one. Numbers are reduced to how many there are.
pub fn closed(number: usize) -> &'static Base {
    let number = number % CLOSED.len();
    CLOSED_BASES[number].get_or_init(|| Base::from_device(&unpack(CLOSED[number])))
}

/// A synced one. Numbers are reduced to how many there are.
///
/// # Panics
/// If nothing can be rolled forward on it.
pub fn synced(number: usize) -> &'static Base {
    let number = number % SYNCED.len();
    SYNCED_BASES[number].get_or_init(|| {
        let device = unpack(SYNCED[number]);
        let fs = FileSystem::open(Arc::new(device.snapshot()), Options::new().read_only(true)).expect("a sound volume");
        let recovered = fs.recovered();
        assert!(recovered.files > 0 && recovered.nodes > recovered.files, "{recovered:?}");
        Base::stopped(&device)
    })
}

/// The metadata of a volume, packed.
pub fn pack(device: &SparseDevice, blocks: u64) -> Vec<u8> {
    let metadata = Structures::of(device).metadata;
    let mut bytes = blocks.to_le_bytes().to_vec();
    for block in metadata {
        bytes.extend(block.to_le_bytes());
        bytes.extend(device.block(block));
    }
    compress_to_vec(&bytes, 9)
}

/// The volume that was packed.
///
/// # Panics
/// If it is none.
pub fn unpack(packed: &[u8]) -> SparseDevice {
    let bytes = decompress_to_vec(packed).expect("a packed volume");
    let device = SparseDevice::new(number(&bytes[..8]));
    for (at, block) in blocks_of(&bytes) {
        device.put(at, &block);
    }
    device.frozen()
}

/// The blocks of a volume that was packed, and their numbers.
///
/// # Panics
/// If it is none.
pub fn blocks(packed: &[u8]) -> impl Iterator<Item = (u64, RawBlock)> {
    let bytes = decompress_to_vec(packed).expect("a packed volume");
    blocks_of(&bytes).collect::<Vec<_>>().into_iter()
}

fn blocks_of(bytes: &[u8]) -> impl Iterator<Item = (u64, RawBlock)> {
    bytes[8..].chunks(8 + BLOCK).map(|entry| {
        let (at, block) = entry.split_at(8);
        (number(at), block.try_into().expect("a whole block"))
    })
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}
