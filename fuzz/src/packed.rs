//! Volumes as files of some KiB: blocks of metadata and their numbers, deflated. What stood in the data of files is zeros.
//!
//! `cargo run --manifest-path fuzz/Cargo.toml --bin pack IMAGE FILE` packs an image. There is one of `mkfs.f2fs` and `sload.f2fs`, and
//! none of the kernel yet: inputs that mean one with a chain of synced nodes get one that was made here.

use std::sync::OnceLock;

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec;

use f2fs_device_test::SparseDevice;
use crate::harness::{Base, Structures};

/// Bytes of a block.
const BLOCK: usize = 4096;

/// Volumes that were closed, or stopped after a checkpoint.
pub const CLOSED: [&[u8]; 1] = [include_bytes!("../volumes/sload")];
/// Volumes on which files were synced after the last checkpoint.
pub const SYNCED: [&[u8]; 0] = [];

static CLOSED_BASES: [OnceLock<Base>; CLOSED.len()] = [const { OnceLock::new() }; CLOSED.len()];
static SYNCED_BASES: [OnceLock<Base>; SYNCED.len()] = [const { OnceLock::new() }; SYNCED.len()];

fn get(packed: &[&[u8]], bases: &'static [OnceLock<Base>], number: usize) -> Option<&'static Base> {
    let number = number.checked_rem(packed.len())?;
    Some(bases[number].get_or_init(|| Base::from_device(&unpack(packed[number]))))
}

/// A closed one. Numbers are reduced to how many there are.
pub fn closed(number: usize) -> Option<&'static Base> {
    get(&CLOSED, &CLOSED_BASES, number)
}

/// A synced one. Numbers are reduced to how many there are.
pub fn synced(number: usize) -> Option<&'static Base> {
    get(&SYNCED, &SYNCED_BASES, number)
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
    let (blocks, bytes) = bytes.split_at(8);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let device = SparseDevice::new(number(blocks));
    for entry in bytes.chunks(8 + BLOCK) {
        let (block, bytes) = entry.split_at(8);
        device.put(number(block), bytes.try_into().expect("a whole block"));
    }
    device.frozen()
}
