//! Logs of writes in the format of Linux's device mapper target `log-writes`, which QEMU's `blklogwrites` has, too.
//!
//! ```text
//!  sector 0      sector 1                          ...
//! +------------+ +-------+------------------------+ +-------+------ ...
//! | superblock | | entry | its data (none for a   | | entry |
//! +------------+ +-------+ flush or a discard)    + +-------+------ ...
//!
//! superblock: 8 bytes magic, 8 version, 8 number of entries, 4 size of a sector
//! entry:      8 bytes first sector, 8 sectors, 8 flags, 8 bytes of data within the entry's own sector (marks)
//! ```
//! All numbers are little endian. A write stands in the log when it is complete; a flush behind all writes that it
//! makes durable.

use std::io::{self, Read};

use f2fs_device::{AlignedBuf, BLOCK_SIZE, BlockDevice, MemoryDevice};

use crate::{CrashLog, Event};

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
/// Bytes of a sector of the logs that are written here. Others are read as well.
pub(crate) const SECTOR: usize = 512;

const FLUSH: u64 = 1 << 0;
const FUA: u64 = 1 << 1;
const DISCARD: u64 = 1 << 2;
const MARK: u64 = 1 << 3;

/// The largest entry that is believed (bytes).
const LARGEST: u64 = 1 << 30;

/// The superblock of a log with so many entries.
pub(crate) fn superblock(entries: u64) -> [u8; SECTOR] {
    let mut sector = [0; SECTOR];
    sector[..8].copy_from_slice(&MAGIC.to_le_bytes());
    sector[8..16].copy_from_slice(&VERSION.to_le_bytes());
    sector[16..24].copy_from_slice(&entries.to_le_bytes());
    sector[24..28].copy_from_slice(&(SECTOR as u32).to_le_bytes());
    sector
}

/// The sector that stands before an event's data.
pub(crate) fn entry(event: &Event) -> [u8; SECTOR] {
    let flags = match event {
        Event::Write { durable, .. } => u64::from(*durable) * FUA,
        Event::Discard { .. } => DISCARD,
        Event::Flush | Event::FlushPart { .. } => FLUSH,
    };
    let sectors = (BLOCK_SIZE / SECTOR) as u64;
    let (start, blocks) = event.range();
    let mut sector = [0; SECTOR];
    for (place, value) in sector.chunks_exact_mut(8).zip([start * sectors, blocks * sectors, flags, 0]) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    sector
}

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteLogError {
    /// It could not be read, or ended in the middle.
    #[error("entry {entry} of the log: {source}")]
    Io {
        /// The entry, from 0 on.
        entry: u64,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It has another magic number: it is no such log.
    #[error("not a log of writes: its magic number is {0:#x}")]
    Magic(u64),
    /// A version that there is not, or no sectors.
    #[error(
        "log version {version} with sectors of {sector} bytes is not supported: only version 1 with 512 to 4096 bytes is"
    )]
    Version {
        /// The version.
        version: u64,
        /// Bytes of a sector.
        sector: u32,
    },
    /// A part of a block, or blocks that the device has not.
    #[error("entry {entry}: {bytes} bytes at byte {start} are not whole blocks within a device of {blocks} blocks")]
    Range {
        /// The entry, from 0 on.
        entry: u64,
        /// Its first byte.
        start: u64,
        /// Its bytes.
        bytes: u64,
        /// Blocks of the device.
        blocks: u64,
    },
}

impl CrashLog {
    /// Reads a log of writes to a device that had `blocks` blocks of zeros when it began. Marks are left out. Each
    /// event counts as seen at once by the writer: this format has no more.
    ///
    /// # Errors
    /// [`WriteLogError`].
    pub fn from_write_log(log: impl Read, blocks: u64) -> Result<CrashLog, WriteLogError> {
        CrashLog::from_write_log_on(MemoryDevice::new(blocks), log)
    }

    /// Reads a log of writes to a device whose content at the beginning was that of `base`. See
    /// [`from_write_log`](Self::from_write_log).
    ///
    /// # Errors
    /// [`WriteLogError`].
    pub fn from_write_log_on(base: MemoryDevice, mut log: impl Read) -> Result<CrashLog, WriteLogError> {
        let blocks = base.info().blocks;
        let mut first = [0; SECTOR];
        log.read_exact(&mut first).map_err(|source| WriteLogError::Io { entry: 0, source })?;
        let [magic, version, entries, last] = numbers(&first);
        let sector = last as u32;
        if magic != MAGIC {
            return Err(WriteLogError::Magic(magic));
        }
        if version != VERSION || !sector.is_power_of_two() || !(SECTOR..=BLOCK_SIZE).contains(&(sector as usize)) {
            return Err(WriteLogError::Version { version, sector });
        }
        let mut source = Source { log, sector: u64::from(sector), blocks };
        source.skip(0, u64::from(sector) - SECTOR as u64)?;
        let mut events = Vec::new();
        for entry in 0..entries {
            source.read_entry(entry, &mut events)?;
        }
        Ok(CrashLog::new(base, events))
    }

    /// How many events a log had that a [`LoggingDevice`](crate::LoggingDevice) wrote, when it was so many bytes long.
    #[must_use]
    pub fn events_in(&self, bytes: u64) -> usize {
        let mut end = SECTOR as u64;
        let whole = self.events().iter().take_while(|event| {
            let data = if let Event::Write { data, .. } = event { data.as_bytes().len() } else { 0 };
            end += (SECTOR + data) as u64;
            end <= bytes
        });
        whole.count()
    }
}

/// The four numbers that a sector begins with.
fn numbers(sector: &[u8; SECTOR]) -> [u64; 4] {
    let mut numbers = [0; 4];
    for (number, bytes) in numbers.iter_mut().zip(sector.chunks_exact(8)) {
        *number = bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    }
    numbers
}

struct Source<R> {
    log: R,
    sector: u64,
    blocks: u64,
}

impl<R: Read> Source<R> {
    fn skip(&mut self, entry: u64, bytes: u64) -> Result<(), WriteLogError> {
        let copied = io::copy(&mut self.log.by_ref().take(bytes), &mut io::sink());
        let source = match copied {
            Ok(copied) if copied == bytes => return Ok(()),
            Ok(_) => io::ErrorKind::UnexpectedEof.into(),
            Err(error) => error,
        };
        Err(WriteLogError::Io { entry, source })
    }

    fn read_entry(&mut self, entry: u64, events: &mut Vec<Event>) -> Result<(), WriteLogError> {
        let mut head = [0; SECTOR];
        self.log.read_exact(&mut head).map_err(|source| WriteLogError::Io { entry, source })?;
        self.skip(entry, self.sector - SECTOR as u64)?;
        let [first, sectors, flags, _] = numbers(&head);
        if flags & MARK != 0 {
            return Ok(());
        }
        if flags & FLUSH != 0 {
            events.push(Event::Flush);
        }
        if sectors == 0 {
            return Ok(());
        }
        let (start, len) = self.range(entry, first, sectors)?;
        let now = Some(events.len() + 1);
        if flags & DISCARD != 0 {
            events.push(Event::Discard { start, blocks: len, seen: now });
            return Ok(());
        }
        let mut data = AlignedBuf::new(len as usize);
        self.log.read_exact(data.as_bytes_mut()).map_err(|source| WriteLogError::Io { entry, source })?;
        let mut event = Event::write(start, data, flags & FUA != 0);
        event.acknowledge(events.len() + 1);
        events.push(event);
        Ok(())
    }

    /// The blocks of an entry.
    fn range(&self, entry: u64, first: u64, sectors: u64) -> Result<(u64, u64), WriteLogError> {
        let (start, bytes) = (first.saturating_mul(self.sector), sectors.saturating_mul(self.sector));
        let block = BLOCK_SIZE as u64;
        let end = start.saturating_add(bytes);
        let whole = start.is_multiple_of(block) && bytes.is_multiple_of(block);
        if !whole || end > self.blocks.saturating_mul(block) || bytes > LARGEST {
            return Err(WriteLogError::Range { entry, start, bytes, blocks: self.blocks });
        }
        Ok((start / block, bytes / block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log with sectors of 4096 bytes, as the kernel writes it on such devices: a mark, a durable write of block 2, a
    /// flush.
    fn of_large_sectors() -> Vec<u8> {
        let mut log = superblock(3).to_vec();
        log[24..28].copy_from_slice(&4096_u32.to_le_bytes());
        log.resize(4096, 0);
        for (first, sectors, flags, data) in [(0_u64, 0_u64, MARK, None), (2, 1, FUA, Some(7)), (0, 0, FLUSH, None)] {
            let at = log.len();
            log.extend([first, sectors, flags, 3].iter().flat_map(|number| number.to_le_bytes()));
            log.resize(at + 4096, 0);
            log.extend(data.into_iter().flat_map(|byte| [byte; 4096]));
        }
        log
    }

    #[test]
    fn logs_of_others_are_read() {
        let log = CrashLog::from_write_log(&*of_large_sectors(), 4).unwrap();
        let [Event::Write { start: 2, data, durable: true, seen: Some(1) }, Event::Flush] = log.events() else {
            panic!("{:?}", log.events())
        };
        assert_eq!(data.as_bytes(), [7; 4096]);
    }

    #[test]
    fn what_is_no_log_is_refused() {
        let refused = |log: &[u8], blocks| CrashLog::from_write_log(log, blocks).unwrap_err();
        let good = of_large_sectors();
        for len in (0..good.len()).step_by(100) {
            assert!(matches!(refused(&good[..len], 4), WriteLogError::Io { .. }), "{len}");
        }
        assert!(matches!(refused(&[0; 512], 4), WriteLogError::Magic(0)));
        let with = |at: usize, byte: u8| {
            let mut log = of_large_sectors();
            log[at] = byte;
            log
        };
        assert!(matches!(refused(&with(8, 2), 4), WriteLogError::Version { version: 2, sector: 4096 }));
        assert!(matches!(refused(&with(25, 0), 4), WriteLogError::Version { version: 1, sector: 0 }));
        let error = refused(&good, 2);
        assert!(matches!(error, WriteLogError::Range { entry: 1, start: 8192, bytes: 4096, blocks: 2 }), "{error}");
        assert!(matches!(refused(&with(8192 + 15, 0x80), 4), WriteLogError::Range { entry: 1, .. }));
        assert!(matches!(refused(&with(22, 1), 4), WriteLogError::Io { entry: 3, .. }));
    }
}
