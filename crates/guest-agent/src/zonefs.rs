//! `guest-agent zonefs`: makes the file system zonefs, which shows each zone as a file. It is a block at the begin of the
//! device and nothing else; Debian 12 has no package with its mkfs.
//!
//! Source of the layout: `struct zonefs_super` in the kernel's `fs/zonefs/zonefs.h`.

use std::path::PathBuf;

use anyhow::ensure;
use f2fs_device::{AlignedBuf, BlockDevice};
use f2fs_format::crc;
use f2fs_uring::{OpenOptions, UringDevice};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The zoned device. Its first zone is overwritten.
    device: PathBuf,
}

/// `ZONEFS_MAGIC`.
const MAGIC: u32 = 0x5a4f_4653;
/// Where the checksum stands, of all 4096 bytes with zeros in its place.
const CHECKSUM: usize = 4;
/// Where the identity stands, which must not be all zeros.
const UUID: usize = 72;

/// Writes the superblock.
///
/// # Errors
///
/// If the device cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let device = UringDevice::open(&args.device, OpenOptions::new())?;
    ensure!(device.info().blocks > 0, "{} is empty", args.device.display());
    let mut buf = AlignedBuf::new(1);
    buf.as_bytes_mut().copy_from_slice(&superblock());
    device.write(0, buf)?;
    device.flush()?;
    Ok(())
}

/// No features: each conventional zone is a file of its own.
fn superblock() -> [u8; 4096] {
    let mut block = [0; 4096];
    block[..4].copy_from_slice(&MAGIC.to_le_bytes());
    block[UUID..UUID + 16].copy_from_slice(b"f2fs guest-agent");
    let checksum = crc::update(u32::MAX, &block);
    block[CHECKSUM..CHECKSUM + 4].copy_from_slice(&checksum.to_le_bytes());
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_covers_the_block_with_zeros_in_its_place() {
        let mut block = superblock();
        assert_eq!(&block[..4], b"SFOZ");
        let stored = u32::from_le_bytes([block[4], block[5], block[6], block[7]]);
        block[4..8].fill(0);
        assert_eq!(stored, crc::update(u32::MAX, &block));
    }
}
