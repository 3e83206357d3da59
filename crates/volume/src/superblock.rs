//! Finding the superblock: two copies, the first good one counts.

use f2fs_device::BlockDevice;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BlockAddr, Corruption, FormatError, Geometry};

use crate::VolumeError;
use crate::blocks::read_block;

/// The superblock in use.
#[derive(Clone, Debug)]
pub(crate) struct LoadedSuperblock {
    pub(crate) raw: SuperBlock,
    pub(crate) geometry: Geometry,
    /// Which copy is in use, and the fault of the other one.
    pub(crate) copy: u32,
    pub(crate) other: Option<Corruption>,
}

impl LoadedSuperblock {
    /// Reads both superblocks and takes the first good one.
    pub(crate) fn copies(device: &dyn BlockDevice) -> Result<LoadedSuperblock, VolumeError> {
        let blocks = device.info().blocks;
        if blocks < 2 {
            return Err(VolumeError::Truncated { volume: 2, device: blocks });
        }
        let read = |copy: u32| -> Result<Result<(SuperBlock, Geometry), Corruption>, VolumeError> {
            let block = read_block(device, BlockAddr(copy))?;
            let raw = SuperBlock::read(block.block(0));
            Ok(Geometry::from_superblock(&raw).map(|geometry| (raw, geometry)))
        };
        match (read(0)?, read(1)?) {
            (Ok((raw, geometry)), second) => Ok(LoadedSuperblock { raw, geometry, copy: 0, other: second.err() }),
            (Err(first), Ok((raw, geometry))) => Ok(LoadedSuperblock { raw, geometry, copy: 1, other: Some(first) }),
            (Err(first), Err(second)) => {
                let block = read_block(device, BlockAddr(0))?;
                Err(match SuperBlock::read(block.block(0)).larger_blocks() {
                    Some(bytes) => FormatError::BlockSize { bytes }.into(),
                    None => VolumeError::NoSuperblock { first, second },
                })
            }
        }
    }
}
