//! The superblock: 3072 bytes at byte 1024 of blocks 0 and 1.

mod devices;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::feature::Features;
use crate::{RawBlock, crc};

pub use devices::{MAX_DEVICES, MAX_PATH, VolumeDevice};

/// `F2FS_SUPER_MAGIC`.
pub const MAGIC: u32 = crc::SEED;
/// Bytes in front of the superblock in its block.
pub const OFFSET: usize = 1024;
/// Size of the superblock in bytes.
pub const SIZE: usize = 3072;
/// Where the checksum stands in it: what `checksum_offset` says when `sb_checksum` is on.
pub const CHECKSUM_OFFSET: usize = 3068;
/// Entries of the extension list.
pub const MAX_EXTENSIONS: usize = 64;

/// One device of a volume (`struct f2fs_device`).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Device {
    /// Path, zero-terminated; empty for a single-device volume.
    pub path: [u8; 64],
    /// Segments on it.
    pub total_segments: U32,
}

/// The superblock (`struct f2fs_super_block`).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs)] // the names are the header's
pub struct SuperBlock {
    pub magic: U32,
    pub major_ver: U16,
    pub minor_ver: U16,
    pub log_sectorsize: U32,
    pub log_sectors_per_block: U32,
    pub log_blocksize: U32,
    pub log_blocks_per_seg: U32,
    pub segs_per_sec: U32,
    pub secs_per_zone: U32,
    pub checksum_offset: U32,
    pub block_count: U64,
    pub section_count: U32,
    pub segment_count: U32,
    pub segment_count_ckpt: U32,
    pub segment_count_sit: U32,
    pub segment_count_nat: U32,
    pub segment_count_ssa: U32,
    pub segment_count_main: U32,
    pub segment0_blkaddr: U32,
    pub cp_blkaddr: U32,
    pub sit_blkaddr: U32,
    pub nat_blkaddr: U32,
    pub ssa_blkaddr: U32,
    pub main_blkaddr: U32,
    pub root_ino: U32,
    pub node_ino: U32,
    pub meta_ino: U32,
    pub uuid: [u8; 16],
    pub volume_name: [U16; 512],
    pub extension_count: U32,
    pub extension_list: [[u8; 8]; MAX_EXTENSIONS],
    pub cp_payload: U32,
    pub version: [u8; 256],
    pub init_version: [u8; 256],
    pub feature: U32,
    pub encryption_level: u8,
    pub encrypt_pw_salt: [u8; 16],
    pub devs: [Device; 8],
    pub qf_ino: [U32; 3],
    pub hot_ext_count: u8,
    pub s_encoding: U16,
    pub s_encoding_flags: U16,
    pub s_stop_reason: [u8; 32],
    pub s_errors: [u8; 16],
    pub reserved: [u8; 258],
    pub crc: U32,
}

const _: () = assert!(size_of::<SuperBlock>() == SIZE);
const _: () = assert!(core::mem::offset_of!(SuperBlock, volume_name) == 124);
const _: () = assert!(core::mem::offset_of!(SuperBlock, feature) == 2180);
const _: () = assert!(core::mem::offset_of!(SuperBlock, devs) == 2201);
const _: () = assert!(core::mem::offset_of!(SuperBlock, s_stop_reason) == 2762);
const _: () = assert!(core::mem::offset_of!(SuperBlock, crc) == CHECKSUM_OFFSET);

impl SuperBlock {
    /// The superblock in one of the first two blocks of a volume, unchecked.
    #[must_use]
    pub fn read(block: &RawBlock) -> SuperBlock {
        let mut raw = SuperBlock::ZERO;
        raw.as_mut_bytes().copy_from_slice(&block[OFFSET..OFFSET + SIZE]);
        raw
    }

    /// Puts the superblock in its place in a block; the bytes in front of it stay.
    pub fn write(&self, block: &mut RawBlock) {
        block[OFFSET..OFFSET + SIZE].copy_from_slice(self.as_bytes());
    }

    /// All zero.
    pub const ZERO: SuperBlock = zerocopy::transmute!([0u8; SIZE]);

    /// The checksum over everything in front of the checksum field.
    #[must_use]
    pub fn compute_crc(&self) -> u32 {
        crc::checksum(&self.as_bytes()[..CHECKSUM_OFFSET])
    }

    /// Bytes of a block, where this is a sound superblock of a volume with larger blocks than this library reads. Linux
    /// makes and mounts such volumes on machines whose pages are as large.
    #[must_use]
    pub fn larger_blocks(&self) -> Option<u64> {
        let [log_block, log_sector, between] =
            [self.log_blocksize, self.log_sectorsize, self.log_sectors_per_block].map(U32::get);
        let is_sound = self.magic.get() == MAGIC
            && (13..=16).contains(&log_block)
            && (9..=log_block).contains(&log_sector)
            && between == log_block - log_sector;
        let has_checksum = Features(self.feature.get()).contains(Features::SB_CHECKSUM);
        (is_sound && (!has_checksum || self.crc.get() == self.compute_crc())).then(|| 1 << log_block)
    }

    /// The volume label (UTF-16 up to the first zero; what cannot be decoded is replaced).
    #[must_use]
    pub fn label(&self) -> alloc::string::String {
        let units = self.volume_name.iter().map(|unit| unit.get()).take_while(|unit| *unit != 0);
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    }
}
