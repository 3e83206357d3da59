//! Volumes on several devices, on zones, or with a journal on another device: each device has its own cache, and the
//! log of all of them is one.
//!
//! A cut then falls between the flushes of single devices as well, and what was not flushed on one of them survives or
//! not whatever happened on the others. Of a zone a cut leaves what was written up to some place, since the last flush
//! at least.

use std::path::{Path, PathBuf};

use f2fs_device::{BlockDevice, Claims, KeptZones, MemoryDevice, SpannedDevice};
use f2fs_device_test::{RecordedPart, RecordingDevice};
use f2fs_files::{JournalMode, JournalOptions, Options};
use f2fs_format::superblock::{Device, SuperBlock};
use f2fs_format::{BLOCK_SIZE, BLOCKS_PER_SEGMENT};
use f2fs_journal::{DeviceMedium, Gather, Medium, MediumError, SMALLEST_GRAIN, SharedMedium};
use f2fs_sync::{Arc, Mutex};

use crate::base::BaseKind;

/// A recorded device as several of so many blocks.
pub(crate) fn on_parts(recorder: &Arc<RecordingDevice>, blocks: &[u64]) -> Result<Arc<dyn BlockDevice>, &'static str> {
    let mut end = 0;
    let part = |blocks: &u64| {
        let start = end;
        end += blocks;
        (Arc::new(RecordedPart::new(recorder.clone(), start..end)) as Arc<dyn BlockDevice>, *blocks)
    };
    let whole = SpannedDevice::new(blocks.iter().map(part).collect());
    whole.map(|whole| Arc::new(whole) as _).map_err(|_| "the devices do not make one")
}

/// Blocks of the journal that lies behind the volume, if there is one.
pub(crate) const JOURNAL_BLOCKS: u64 = 80;

/// A recorded device as those that its superblock names, with its zones if it has some, or as it is.
pub(crate) fn laid_out(recorder: &Arc<RecordingDevice>) -> Result<Arc<dyn BlockDevice>, &'static str> {
    let image = recorder.snapshot();
    if KeptZones::are_on(&image.snapshot()).is_ok_and(|zones| zones) {
        let zones = KeptZones::open(recorder.clone()).map_err(|_| "the zones are damaged")?;
        return Ok(Arc::new(zones));
    }
    match &parts(&image)?[..] {
        [] => match journal_start(&image) {
            None => Ok(recorder.clone()),
            Some(blocks) => Ok(Arc::new(RecordedPart::new(recorder.clone(), 0..blocks))),
        },
        parts => on_parts(recorder, parts),
    }
}

/// The parts of a recorded device that the volume and its journal lie in, if there is a journal.
pub(crate) fn beside_journal(recorder: &Arc<RecordingDevice>) -> Option<[Arc<RecordedPart>; 2]> {
    let start = journal_start(&recorder.snapshot())?;
    Some([0..start, start..start + JOURNAL_BLOCKS].map(|blocks| Arc::new(RecordedPart::new(recorder.clone(), blocks))))
}

/// These options, with the journal that lies behind the volume, if there is one. As much data may wait in memory as the
/// volume's own options say.
pub(crate) fn with_journal(recorder: &Arc<RecordingDevice>, options: &Options) -> Result<Options, &'static str> {
    let options = options.clone();
    let Some(medium) = journal(recorder)? else { return Ok(options) };
    let image = recorder.snapshot();
    let mode = if is_on(&image, BaseKind::has_data_in_journal) { JournalMode::Journal } else { JournalMode::Ordered };
    let waits = options.volume.write_behind * BLOCK_SIZE as u64;
    Ok(options.journal(JournalOptions::new(medium, mode).write_behind(waits)))
}

/// The medium of the journal that lies behind the volume.
pub(crate) fn journal(recorder: &Arc<RecordingDevice>) -> Result<Option<SharedMedium>, &'static str> {
    let image = recorder.snapshot();
    let Some(start) = journal_start(&image) else { return Ok(None) };
    let part = RecordedPart::new(recorder.clone(), start..start + JOURNAL_BLOCKS);
    if is_on(&image, BaseKind::has_journal_in_memory) {
        return Ok(Some(Arc::new(LineMedium { part, writes: Mutex::new(()), claims: Claims::new() })));
    }
    let medium = DeviceMedium::new(part).map_err(|_| "the journal is in use")?;
    Ok(Some(Arc::new(medium)))
}

/// Whether this volume began as one of those bases.
fn is_on(image: &MemoryDevice, those: fn(BaseKind) -> bool) -> bool {
    let uuid = SuperBlock::read(&image.block(0).0).uuid;
    BaseKind::ALL.into_iter().any(|kind| those(kind) && uuid == [kind as u8; 16])
}

/// Persistent memory that is recorded as the blocks of a device: a journal there has grains of a line, and each write
/// of lines is one of the blocks that they lie in. Lanes may meet in a block, so writes are done one after the other.
#[derive(Debug)]
struct LineMedium {
    part: RecordedPart,
    writes: Mutex<()>,
    claims: Claims,
}

impl LineMedium {
    /// The blocks that bytes lie in.
    fn blocks(offset: u64, bytes: usize) -> (u64, usize) {
        let first = offset / BLOCK_SIZE as u64;
        (first, ((offset + bytes as u64).div_ceil(BLOCK_SIZE as u64) - first) as usize)
    }
}

impl Medium for LineMedium {
    fn grain(&self) -> usize {
        SMALLEST_GRAIN
    }

    fn bytes(&self) -> u64 {
        self.part.info().bytes()
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        let (first, count) = Self::blocks(offset, into.len());
        let from = (offset % BLOCK_SIZE as u64) as usize;
        into.copy_from_slice(&self.part.read(first, count)?.as_bytes()[from..from + into.len()]);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        let mut lines: Vec<u8> = bytes.slices().flatten().copied().collect();
        lines.resize(lines.len().next_multiple_of(SMALLEST_GRAIN), 0);
        let (first, count) = Self::blocks(offset, lines.len());
        let _alone = self.writes.lock();
        let mut blocks = self.part.read(first, count)?;
        let from = (offset % BLOCK_SIZE as u64) as usize;
        blocks.as_bytes_mut()[from..from + lines.len()].copy_from_slice(&lines);
        Ok(self.part.write(first, blocks)?)
    }

    fn persist(&self) -> Result<(), MediumError> {
        Ok(self.part.flush()?)
    }
}

/// Where the journal begins: behind the blocks that the superblock counts.
pub(crate) fn journal_start(image: &MemoryDevice) -> Option<u64> {
    let blocks = SuperBlock::read(&image.block(0).0).block_count.get();
    (image.info().blocks.checked_sub(JOURNAL_BLOCKS) == Some(blocks)).then_some(blocks)
}

/// The blocks of each device that the superblock names.
fn parts(image: &MemoryDevice) -> Result<Vec<u64>, &'static str> {
    let devices = SuperBlock::read(&image.block(0).0).devices();
    let devices = devices.map_err(|_| "the superblock names devices that cannot be")?;
    Ok(devices.into_iter().map(|device| device.blocks).collect())
}

/// Saves an image as files in a directory, one for each device, with their paths in both superblocks, so that fsck.f2fs
/// finds them. Gives the path of the first.
pub(crate) fn save(image: &MemoryDevice, directory: &Path) -> Result<PathBuf, String> {
    let path = |index: usize| directory.join(format!("disk{index}"));
    let parts = parts(image)?;
    let image = image.snapshot();
    for at in 0..if parts.is_empty() { 0 } else { 2 } {
        let mut block = image.block(at);
        let mut superblock = SuperBlock::read(&block.0);
        for (index, entry) in superblock.devs.iter_mut().take(parts.len()).enumerate() {
            *entry = Device::new(path(index).as_os_str().as_encoded_bytes(), entry.total_segments.get());
        }
        superblock.write(&mut block.0);
        image.set_block(at, &block);
    }
    let mut start = 0;
    let whole = journal_start(&image).unwrap_or(image.info().blocks);
    for (index, blocks) in (if parts.is_empty() { vec![whole] } else { parts }).into_iter().enumerate() {
        let file = std::fs::File::create(path(index)).map_err(|error| error.to_string())?;
        file.set_len(blocks * BLOCK_SIZE as u64).map_err(|error| error.to_string())?;
        write_blocks(&image, start..start + blocks, &file).map_err(|error| error.to_string())?;
        start += blocks;
    }
    Ok(path(0))
}

/// Writes the blocks that are not zeros, a segment at a time.
fn write_blocks(image: &MemoryDevice, blocks: std::ops::Range<u64>, file: &std::fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    let step = u64::from(BLOCKS_PER_SEGMENT);
    for at in blocks.clone().step_by(step as usize) {
        let count = step.min(blocks.end - at) as usize;
        let buf = image.read(at, count).map_err(std::io::Error::other)?;
        if buf.as_bytes().iter().any(|byte| *byte != 0) {
            file.write_all_at(buf.as_bytes(), (at - blocks.start) * BLOCK_SIZE as u64)?;
        }
    }
    Ok(())
}
