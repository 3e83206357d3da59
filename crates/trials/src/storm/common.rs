//! A file that all threads of a storm write: each in stripes of its own, which lie between those of the others, within a
//! block or across blocks. So a thread knows what its stripes hold, whatever the others do to the same blocks. The file
//! grows while they work, and any of them may cut it.

use f2fs_files::{File, FsError};
use f2fs_sync::atomic::Ordering;

use super::contents::told;
use super::hands::Hands;
use super::promise::{Known, UNIT};
use super::world::World;

/// Its path.
pub(super) const COMMON: &str = "/common";
/// Stripes of each thread: at first, and at most.
const STRIPES: u64 = 30;
const MOST_STRIPES: u64 = 120;

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

    /// The first size of the file.
    pub(super) fn bytes(self) -> u64 {
        STRIPES * self.threads * self.units * UNIT
    }

    /// How many stripes a thread has in a file of so many bytes.
    fn stripes_of(self, bytes: u64) -> u64 {
        bytes / (self.threads * self.units * UNIT)
    }
}

/// What a thread knows of the file, with a handle of its own.
pub(super) fn share(world: &World, file: File, thread: u64) -> Known {
    Known::shared(file, COMMON, world.common.clone(), Some((world.stripes, thread)))
}

impl Hands<'_> {
    /// Does something in a stripe of its own, or makes the file durable.
    pub(super) fn in_common(&mut self) -> Result<(), FsError> {
        let stripes = self.storm.world.stripes;
        // One that is there, or the one behind them, with which it grows.
        let there = stripes.stripes_of(self.storm.world.common.least()).max(1);
        let stripe = if self.random.chance(4) { there } else { self.random.below_u64(there) };
        let stripe = stripe.min(MOST_STRIPES);
        let from = self.random.below_u64(stripes.units);
        let count = 1 + self.random.below_u64(stripes.units - from);
        let first = stripes.first(self.number, stripe) + from;
        self.share.take_in_cuts();
        match self.random.below(20) {
            0..11 => self.write_in_common(first, count),
            11..13 => self.empty_in_common(first, count),
            13..16 => self.read_in_common(first, count),
            16 => self.cut_common(),
            _ => self.storm.sync(&mut self.share),
        }
    }

    /// Sets its size, which others may be writing behind.
    fn cut_common(&mut self) -> Result<(), FsError> {
        let together = &self.storm.world.common;
        let units = together.most() / UNIT;
        let bytes = (units / 4 + self.random.below_u64(units)).min(units) * UNIT;
        let known = &mut self.share;
        let Some(file) = &known.handle else { return Ok(()) };
        let cut = together.begins_cut(bytes);
        let result = file.set_len(bytes);
        together.ends_cut(cut, result.is_ok());
        known.tell(format!("cut to {}: {:?}", bytes / UNIT, result.as_ref().err().map(ToString::to_string)));
        result
    }

    fn write_in_common(&mut self, first: u64, count: u64) -> Result<(), FsError> {
        let durable = self.random.chance(6);
        let stamp = self.storm.stamp.fetch_add(1, Ordering::Relaxed) + 1;
        let value = |unit: u64| stamp << 24 | unit;
        let data: Vec<u8> = (first..first + count).flat_map(|unit| value(unit).to_le_bytes().repeat(64)).collect();
        let known = &mut self.share;
        (first..first + count).for_each(|unit| known.unit_mut(unit).asked(value(unit)));
        let begun = if durable { known.begin_sync() } else { None };
        let together = &self.storm.world.common;
        let before = together.asks((first + count) * UNIT);
        let Some(file) = &known.handle else { return Ok(()) };
        let wrote = if durable { file.write_durable(&data, first * UNIT) } else { file.write_at(&data, first * UNIT) };
        let (wrote, result) = told(wrote);
        let words = result.as_ref().err().map(ToString::to_string);
        known.tell(format!("write {first}+{count} stamp {stamp:x}, durable {durable}: {wrote} {words:?}"));
        known.changed(first..first + count);
        if wrote > 0 {
            together.made(first * UNIT + wrote as u64, before);
        }
        for unit in first..first + count {
            if result.is_ok() && (unit - first + 1) * UNIT <= wrote as u64 {
                known.unit_mut(unit).made(value(unit));
            } else {
                known.unit_mut(unit).failed(value(unit));
            }
        }
        if durable && wrote == data.len() {
            self.storm.syncs.fetch_add(1, Ordering::Relaxed);
            known.synced(begun);
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
        let together = &self.storm.world.common;
        let before = together.asks(if hole { 0 } else { offset + len });
        let result = if hole { file.punch_hole(offset, len) } else { file.zero_range(offset, len) };
        known.changed(first..first + count);
        if !hole && result.is_ok() {
            together.made(offset + len, before);
        }
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
        let (offset, together) = (first * UNIT, &self.storm.world.common);
        let least = together.least();
        let read = file.read_at(&mut bytes, offset)?;
        let size = file.size();
        let least = least.min(known.least_if_cut());
        let range = |bytes: u64| bytes.saturating_sub(offset).min(count * UNIT);
        if !(range(least)..=range(together.most())).contains(&(read as u64)) || size < least || size > together.most() {
            let words = format!("{read} bytes of {COMMON} at {offset}, size {size}, {least} to {}", together.most());
            self.storm.wrong(format!("{words}: {}", known.story()));
        }
        if let Some(wrong) = known.contradiction(first, &bytes[..read]) {
            self.storm.wrong(wrong);
        }
        Ok(())
    }
}
