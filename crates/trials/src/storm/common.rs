//! A file that all threads of a storm write: each in stripes of its own, which lie between those of the others, within a
//! block or across blocks. So a thread knows what its stripes hold, whatever the others do to the same blocks. The file
//! keeps its size.

use f2fs_files::{FileSystem, FsError};
use f2fs_sync::atomic::Ordering;

use super::contents::told;
use super::hands::Hands;
use super::promise::{Known, UNIT};
use super::world::World;

/// Its path.
pub(super) const COMMON: &str = "/common";
/// Stripes of each thread.
const STRIPES: u64 = 60;

/// Which units are whose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stripes {
    /// Units of a stripe.
    pub(super) units: u64,
    pub(super) threads: u64,
}

impl Stripes {
    /// Whose a unit is.
    pub(super) fn owner(self, unit: u64) -> u64 {
        unit / self.units % self.threads
    }

    /// The first unit of a thread's stripe.
    fn first(self, thread: u64, stripe: u64) -> u64 {
        (stripe * self.threads + thread) * self.units
    }

    fn bytes(self) -> u64 {
        STRIPES * self.threads * self.units * UNIT
    }

    /// Makes the file; it is durable with the next checkpoint.
    pub(super) fn make(self, fs: &FileSystem) -> Result<(), FsError> {
        fs.create_file(COMMON, 0o644)?.set_len(self.bytes())
    }
}

/// What a thread knows of the file, with a handle of its own.
pub(super) fn share(world: &World, thread: u64) -> Known {
    let mut known = Known::new(world.common(), COMMON.to_owned());
    known.size.made(world.stripes.bytes());
    known.synced();
    known.share = Some((world.stripes, thread));
    known
}

impl Hands<'_> {
    /// Does something in a stripe of its own, or makes the file durable.
    pub(super) fn in_common(&mut self) -> Result<(), FsError> {
        let stripes = self.storm.world.stripes;
        let stripe = self.random.below_u64(STRIPES);
        let from = self.random.below_u64(stripes.units);
        let count = 1 + self.random.below_u64(stripes.units - from);
        let first = stripes.first(self.number, stripe) + from;
        match self.random.below(10) {
            0..6 => self.write_in_common(first, count),
            6 => self.empty_in_common(first, count),
            7 => self.read_in_common(first, count),
            _ => self.sync(None),
        }
    }

    fn write_in_common(&mut self, first: u64, count: u64) -> Result<(), FsError> {
        let durable = self.random.chance(6);
        let stamp = self.storm.stamp.fetch_add(1, Ordering::Relaxed) + 1;
        let value = |unit: u64| stamp << 24 | unit;
        let data: Vec<u8> = (first..first + count).flat_map(|unit| value(unit).to_le_bytes().repeat(64)).collect();
        let known = &mut self.share;
        (first..first + count).for_each(|unit| known.unit_mut(unit).asked(value(unit)));
        known.sync_began |= durable;
        let Some(file) = &known.handle else { return Ok(()) };
        let wrote = if durable { file.write_durable(&data, first * UNIT) } else { file.write_at(&data, first * UNIT) };
        let (wrote, result) = told(wrote);
        let words = result.as_ref().err().map(ToString::to_string);
        known.tell(format!("write {first}+{count} stamp {stamp:x}, durable {durable}: {wrote} {words:?}"));
        for unit in first..first + count {
            if result.is_ok() && (unit - first + 1) * UNIT <= wrote as u64 {
                known.unit_mut(unit).made(value(unit));
            } else {
                known.unit_mut(unit).failed(value(unit));
            }
        }
        if durable && wrote == data.len() {
            self.storm.syncs.fetch_add(1, Ordering::Relaxed);
            known.synced();
        }
        result
    }

    /// A hole, or zeros.
    fn empty_in_common(&mut self, first: u64, count: u64) -> Result<(), FsError> {
        let hole = self.random.chance(2);
        let known = &mut self.share;
        (first..first + count).for_each(|unit| known.unit_mut(unit).asked(0));
        let Some(file) = &known.handle else { return Ok(()) };
        let (offset, len) = (first * UNIT, count * UNIT);
        let result = if hole { file.punch_hole(offset, len) } else { file.zero_range(offset, len) };
        known.tell(format!("empty {first}+{count}: {:?}", result.as_ref().err().map(ToString::to_string)));
        for unit in first..first + count {
            if result.is_ok() { known.unit_mut(unit).made(0) } else { known.unit_mut(unit).failed(0) }
        }
        result
    }

    fn read_in_common(&mut self, first: u64, count: u64) -> Result<(), FsError> {
        let mut bytes = vec![0x55; (count * UNIT) as usize];
        let known = &self.share;
        let Some(file) = &known.handle else { return Ok(()) };
        let read = file.read_at(&mut bytes, first * UNIT)?;
        if read != bytes.len() {
            self.storm.wrong(format!("{read} of {} bytes of {COMMON}: {}", bytes.len(), known.story()));
        }
        if let Some(wrong) = known.contradiction(first, &bytes[..read]) {
            self.storm.wrong(wrong);
        }
        Ok(())
    }
}
