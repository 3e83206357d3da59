//! The structures at the beginning of a volume, read without opening it. A damaged volume can be examined as well.

use f2fs_device::{BlockDevice, DeviceError};
use f2fs_format::checkpoint::{Checkpoint, CheckpointBlock, CheckpointHeader};
use f2fs_format::superblock::{MAGIC, SuperBlock};
use f2fs_format::{BLOCKS_PER_SEGMENT, Corruption, Geometry, RawBlock};

/// Where mkfs.f2fs puts the first checkpoint pack, unless it aligns the areas to zones.
const USUAL_PACK: u32 = BLOCKS_PER_SEGMENT;

/// Both superblocks and both checkpoint packs as they stand. See [`examine`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Examination {
    /// The superblocks of blocks 0 and 1.
    pub superblocks: [Examined<SuperBlock>; 2],
    /// The areas by the first superblock that makes sense.
    pub geometry: Option<Geometry>,
    /// The heads of the checkpoint packs.
    pub packs: [Examined<CheckpointHeader>; 2],
}

/// A structure as it stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Examined<T> {
    /// The block it begins with.
    pub block: u64,
    /// The structure, unchecked. `None` if the block could not be read.
    pub raw: Option<T>,
    /// Its fault, if it has one.
    pub problem: Option<Problem>,
}

/// The fault of a structure.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It could not be read.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// It contradicts the format.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
}

impl Examination {
    /// Whether any superblock has the magic number of F2FS.
    #[must_use]
    pub fn is_f2fs(&self) -> bool {
        self.superblocks.iter().any(Examined::<SuperBlock>::is_f2fs)
    }
}

impl Examined<SuperBlock> {
    /// Whether it has the magic number of F2FS.
    #[must_use]
    pub fn is_f2fs(&self) -> bool {
        self.raw.is_some_and(|raw| raw.magic.get() == MAGIC)
    }
}

/// Reads both superblocks and the heads of both checkpoint packs, as far as they can be read. The packs are looked for
/// where a sound superblock says, else where a damaged one does, else where mkfs.f2fs puts them. Nothing else is read,
/// and nothing written.
///
/// ```
/// use f2fs_device::{BlockDevice, MemoryDevice};
///
/// let device = MemoryDevice::new(1 << 14);
/// f2fs_volume::format::format(&device, &Default::default())?;
/// device.write_slice(0, &[0; 4096])?;
/// let found = f2fs_volume::examine(&device);
/// assert!(found.superblocks[0].problem.is_some() && found.superblocks[1].problem.is_none());
/// assert!(found.packs[0].problem.is_none());
/// # Ok::<(), f2fs_volume::format::FormatVolumeError>(())
/// ```
#[must_use]
pub fn examine(device: &dyn BlockDevice) -> Examination {
    let superblocks = [0, 1].map(|block| superblock(device, block));
    let geometry = superblocks.iter().find_map(|found| Geometry::from_superblock(&found.raw?).ok());
    let marked = || superblocks.iter().find(|found| found.is_f2fs()).and_then(|found| found.raw);
    let first = match &geometry {
        Some(geometry) => geometry.checkpoint_pack(0).0,
        None => marked().map_or(USUAL_PACK, |raw| raw.cp_blkaddr.get()),
    };
    let packs =
        [0, BLOCKS_PER_SEGMENT].map(|offset| pack(device, u64::from(first) + u64::from(offset), geometry.as_ref()));
    Examination { superblocks, geometry, packs }
}

fn read(device: &dyn BlockDevice, block: u64) -> Result<RawBlock, DeviceError> {
    Ok(*device.read(block, 1)?.block(0))
}

fn superblock(device: &dyn BlockDevice, block: u64) -> Examined<SuperBlock> {
    match read(device, block) {
        Ok(bytes) => {
            let raw = SuperBlock::read(&bytes);
            Examined { block, raw: Some(raw), problem: Geometry::from_superblock(&raw).err().map(Problem::from) }
        }
        Err(error) => Examined { block, raw: None, problem: Some(error.into()) },
    }
}

fn pack(device: &dyn BlockDevice, block: u64, geometry: Option<&Geometry>) -> Examined<CheckpointHeader> {
    let first = match read(device, block) {
        Ok(bytes) => CheckpointBlock::read(&bytes),
        Err(error) => return Examined { block, raw: None, problem: Some(error.into()) },
    };
    let problem = judge(device, block, &first, geometry).err();
    Examined { block, raw: Some(first.header), problem }
}

/// A pack begins and ends with the same checkpoint block.
fn judge(
    device: &dyn BlockDevice,
    block: u64,
    first: &CheckpointBlock,
    geometry: Option<&Geometry>,
) -> Result<(), Problem> {
    first.verify()?;
    let total = first.header.cp_pack_total_block_count.get();
    Corruption::check_range("checkpoint cp_pack_total_block_count", total.into(), 3, BLOCKS_PER_SEGMENT.into())?;
    let last = CheckpointBlock::read(&read(device, block + u64::from(total) - 1)?);
    last.verify()?;
    let version = |block: &CheckpointBlock| block.header.checkpoint_ver.get();
    Corruption::check_equal("checkpoint version at the end of the pack", version(first), version(&last))?;
    if let Some(geometry) = geometry {
        Checkpoint::from_header(&first.header, geometry)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use f2fs_device::MemoryDevice;

    use super::*;
    use crate::format::{FormatOptions, format};

    fn volume() -> MemoryDevice {
        let device = MemoryDevice::new(1 << 14);
        format(&device, &FormatOptions::default().with_label("left")).unwrap();
        device
    }

    #[test]
    fn a_sound_volume_is_shown() {
        let found = examine(&volume());
        assert!(found.is_f2fs() && found.geometry.is_some());
        assert!(found.superblocks.iter().all(|found| found.problem.is_none()));
        assert_eq!(found.superblocks[1].raw.unwrap().label(), "left");
        assert!(found.packs[0].problem.is_none());
        assert_eq!((found.packs[0].block, found.packs[1].block), (512, 1024));
    }

    #[test]
    fn each_damage_is_named_and_the_rest_is_read() {
        // Both superblocks have an invalid block size: the packs are found all the same.
        let device = volume();
        for block in 0..2 {
            let mut bytes = read(&device, block).unwrap();
            let mut raw = SuperBlock::read(&bytes);
            raw.log_blocksize = 99.into();
            raw.write(&mut bytes);
            device.write_slice(block, &bytes).unwrap();
        }
        let found = examine(&device);
        assert!(found.is_f2fs() && found.geometry.is_none());
        let problem = found.superblocks[1].problem.as_ref().unwrap().to_string();
        assert!(problem.contains("log_blocksize") && problem.contains("99"), "{problem}");
        assert!(found.packs[0].problem.is_none());

        // Without any superblock, where they usually are.
        device.write_slice(0, &[0; 2 * 4096]).unwrap();
        let found = examine(&device);
        assert!(!found.is_f2fs());
        assert!(found.packs[0].problem.is_none());

        // The block at the end of the pack is gone, then the one at its start.
        let device = volume();
        let total = u64::from(examine(&device).packs[0].raw.unwrap().cp_pack_total_block_count.get());
        device.write_slice(512 + total - 1, &[0; 4096]).unwrap();
        assert!(examine(&device).packs[0].problem.is_some());
        device.write_slice(512, &[0; 4096]).unwrap();
        let found = examine(&device);
        assert!(found.packs[0].problem.is_some() && found.superblocks[0].problem.is_none());

        // A byte of the block at its start flipped, where nothing else would show it.
        let device = volume();
        let mut first = CheckpointBlock::read(&read(&device, 512).unwrap());
        first.header.elapsed_time = (first.header.elapsed_time.get() + 1).into();
        device.write_slice(512, first.as_block()).unwrap();
        let problem = examine(&device).packs[0].problem.as_ref().unwrap().to_string();
        assert!(problem.contains("checksum"), "{problem}");

        // It is that of another checkpoint: the pack was not written to its end.
        let device = volume();
        let mut last = CheckpointBlock::read(&read(&device, 512 + total - 1).unwrap());
        last.header.checkpoint_ver = (last.header.checkpoint_ver.get() + 1).into();
        last.seal();
        device.write_slice(512 + total - 1, last.as_block()).unwrap();
        let problem = examine(&device).packs[0].problem.as_ref().unwrap().to_string();
        assert!(problem.contains("end of the pack"), "{problem}");
    }

    #[test]
    fn a_device_that_ends_early_is_read_up_to_there() {
        let found = examine(&MemoryDevice::new(1));
        assert!(found.superblocks[0].raw.is_some() && found.superblocks[1].raw.is_none());
        assert!(matches!(found.packs[0].problem, Some(Problem::Device(_))));
    }

    #[test]
    fn a_pack_has_as_many_blocks_as_it_can() {
        for total in [2, 513] {
            let device = volume();
            let mut first = CheckpointBlock::read(&read(&device, 512).unwrap());
            first.header.cp_pack_total_block_count = total.into();
            first.seal();
            device.write_slice(512, first.as_block()).unwrap();
            let problem = examine(&device).packs[0].problem.as_ref().map(Problem::to_string);
            let told = problem.as_ref().is_some_and(|problem| problem.contains("cp_pack_total_block_count"));
            assert!(told, "{total}: {problem:?}");
        }
    }

    /// Blocks that both checkpoints agree on, and the superblock does not.
    #[test]
    fn a_pack_that_does_not_fit_the_volume_is_told() {
        let device = volume();
        let total = examine(&device).packs[0].raw.unwrap().cp_pack_total_block_count.get();
        for at in [512, 512 + u64::from(total) - 1] {
            let mut block = CheckpointBlock::read(&read(&device, at).unwrap());
            block.header.user_block_count = u64::MAX.into();
            block.seal();
            device.write_slice(at, block.as_block()).unwrap();
        }
        assert!(examine(&device).packs[0].problem.is_some());
        // Its end is damaged.
        let device = volume();
        let at = 512 + u64::from(total) - 1;
        let mut block = CheckpointBlock::read(&read(&device, at).unwrap());
        block.header.elapsed_time = (block.header.elapsed_time.get() + 1).into();
        device.write_slice(at, block.as_block()).unwrap();
        let problem = examine(&device).packs[0].problem.as_ref().unwrap().to_string();
        assert!(problem.contains("checksum"), "{problem}");
    }
}
