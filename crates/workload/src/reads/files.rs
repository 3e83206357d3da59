//! The files that are read: their making, and the volume that they are in.

use f2fs::device::BlockDevice;
use f2fs::sync::PlainArc;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{File, FileSystem, Options, RangeLock, ReadSlice};

use super::error::ReadsError;
use super::measured::Measured;
use super::setting::{BLOCK, Setting};
use super::work;

/// Blocks written or read at a time when a file is made or warmed: 1 MiB.
const PIECE: u64 = 256;
/// The most threads.
const MOST_THREADS: usize = 4096;

/// The files of a volume: `/reads-0` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Files {
    /// How many.
    pub count: usize,
    /// Bytes of all together; each has an equal part of whole blocks, at least one.
    pub bytes: u64,
}

impl Files {
    /// Blocks of each file.
    pub(super) fn blocks(self) -> u64 {
        (self.bytes / BLOCK / self.count.max(1) as u64).max(1)
    }

    /// Opens a volume that these files were [prepared](prepare) on, and reads each of them once.
    ///
    /// # Errors
    /// [`ReadsError`], for example if a file is not there.
    pub fn open(self, device: PlainArc<dyn BlockDevice>, table: RangeLock) -> Result<Volume, ReadsError> {
        let options = Options::new().range_lock(table);
        let fs = FileSystem::open(device, options).map_err(ReadsError::volume("open"))?;
        let files = (0..self.count).map(|file| fs.open_file(path(file))).collect::<Result<Vec<_>, _>>();
        let volume =
            Volume { files: files.map_err(ReadsError::volume("open a file"))?, fs, table, blocks: self.blocks() };
        volume.warm()?;
        Ok(volume)
    }
}

fn path(file: usize) -> String {
    format!("/reads-{file}")
}

/// The first bytes of a block.
pub(super) fn stamp(file: usize, block: u64) -> u64 {
    (((file as u64) << 40) | block) ^ 0x5bd1_e995_97f4_a7c1
}

/// Formats the device (**its content is lost**) and makes the files. `progress` gets the bytes of each piece that was
/// written.
///
/// # Errors
/// [`ReadsError`], for example if the volume is too small for the files.
pub fn prepare(device: PlainArc<dyn BlockDevice>, files: Files, progress: &dyn Fn(u64)) -> Result<(), ReadsError> {
    format(&*device, &FormatOptions::default().forced())?;
    fill(device, files, progress)
}

/// As [`prepare`], on a new volume that the caller has made.
///
/// # Errors
/// [`ReadsError`], for example if the volume is too small for the files.
pub fn fill(device: PlainArc<dyn BlockDevice>, files: Files, progress: &dyn Fn(u64)) -> Result<(), ReadsError> {
    let fs = FileSystem::open(device, Options::new()).map_err(ReadsError::volume("open"))?;
    let mut piece = vec![0; (PIECE * BLOCK) as usize];
    for number in 0..files.count {
        let file = fs.create_file(path(number), 0o644).map_err(ReadsError::volume("create a file"))?;
        let blocks = files.blocks();
        for first in (0..blocks).step_by(PIECE as usize) {
            let piece = &mut piece[..(PIECE.min(blocks - first) * BLOCK) as usize];
            for (block, at) in piece.chunks_exact_mut(BLOCK as usize).zip(first..) {
                block[..8].copy_from_slice(&stamp(number, at).to_le_bytes());
            }
            let wrote = file.write_at(piece, first * BLOCK);
            let written = match wrote {
                Ok(written) => written,
                Err(error) if error.is_no_space() => 0,
                Err(error) => return Err(ReadsError::volume("write a file")(error)),
            };
            if written < piece.len() {
                let (written, wanted) = (first * BLOCK + written as u64, blocks * BLOCK);
                return Err(ReadsError::Full { path: path(number), written, wanted });
            }
            progress(written as u64);
        }
    }
    fs.close().map_err(ReadsError::volume("close"))
}

/// An open volume with the files.
#[derive(Debug)]
pub struct Volume {
    pub(super) fs: FileSystem,
    pub(super) files: Vec<File>,
    table: RangeLock,
    /// Of each file.
    pub(super) blocks: u64,
}

impl Volume {
    /// Reads every file once, so that nodes and addresses are in memory.
    fn warm(&self) -> Result<(), ReadsError> {
        let mut bytes = vec![0; (PIECE * BLOCK) as usize * 4];
        for file in &self.files {
            for first in (0..self.blocks).step_by(PIECE as usize * 4) {
                let pieces = bytes.chunks_exact_mut((PIECE * BLOCK) as usize).enumerate();
                let mut reads: Vec<_> =
                    pieces.map(|(at, buf)| ReadSlice::new((first + at as u64 * PIECE) * BLOCK, buf)).collect();
                file.read_many(4, &mut reads).map_err(ReadsError::volume("read a file"))?;
            }
        }
        Ok(())
    }

    /// Measures.
    ///
    /// # Errors
    /// [`ReadsError`] if the setting is not for this volume, or a read fails or is wrong.
    pub fn measure(&self, setting: &Setting) -> Result<Measured, ReadsError> {
        if setting.threads == 0 || setting.threads > MOST_THREADS {
            return Err(ReadsError::Setting("a measurement needs 1 to 4096 threads"));
        }
        if setting.depth == 0 || setting.depth > 65_536 {
            return Err(ReadsError::Setting("a depth is 1 to 65536"));
        }
        if setting.reads == 0 {
            return Err(ReadsError::Setting("a measurement needs at least one read"));
        }
        if setting.table != self.table {
            return Err(ReadsError::Setting("the volume was opened with another lock table"));
        }
        if self.files.is_empty() {
            return Err(ReadsError::Setting("there is no file to read"));
        }
        work::race(self, setting)
    }

    /// Closes the volume.
    ///
    /// # Errors
    /// [`ReadsError::Volume`] if the device fails.
    pub fn close(self) -> Result<(), ReadsError> {
        drop(self.files);
        self.fs.close().map_err(ReadsError::volume("close"))
    }
}
