//! What a thread of a storm does to the contents of its files.

use f2fs_device::AlignedBuf;
use f2fs_files::{AllocateFlags, FsError, WriteSlice};
use f2fs_sync::atomic::Ordering;

use super::hands::Hands;
use super::promise::UNIT;

impl Hands<'_> {
    /// How far an operation goes: mostly not far, so that they meet.
    fn reach(&mut self) -> u64 {
        if self.random.chance(12) { self.storm.world.reach } else { 260 }
    }

    pub(super) fn write(&mut self, at: usize) -> Result<(), FsError> {
        let reach = self.reach();
        let longest = if !self.random.chance(10) {
            24
        } else if reach > 260 {
            6000
        } else {
            400
        };
        let count = 1 + self.random.below_u64(longest);
        let way = self.random.below(8);
        let file = &mut self.files[at];
        let old = file.bytes();
        let first = if way == 2 { old / UNIT } else { self.random.below_u64(reach) };
        let stamp = self.storm.stamp.fetch_add(1, Ordering::Relaxed) + 1;
        let value = |unit: u64| stamp << 24 | unit;
        let data: Vec<u8> = (first..first + count).flat_map(|unit| value(unit).to_le_bytes().repeat(64)).collect();
        let end = (first + count) * UNIT;

        // A long write is several operations: a crash may leave some of them, and a hole where others were to be.
        let grows_from = file.size.least_left().copied().unwrap_or(0) / UNIT;
        for unit in first..first + count {
            file.unit_mut(unit).asked(value(unit));
            if unit >= grows_from {
                file.unit_mut(unit).asked(0);
            }
        }
        for unit in (first..=first + count).filter(|unit| unit * UNIT > old) {
            file.size.asked(unit * UNIT);
        }
        let begun = if way == 1 { file.begin_sync() } else { None };
        let Some(handle) = &file.handle else { return Ok(()) };
        let offset = first * UNIT;
        let (wrote, result) = match way {
            1 => told(handle.write_durable(&data, offset)),
            2 => match handle.append(&data) {
                Ok(place) => {
                    if place != offset {
                        self.storm.wrong(format!("an append to {} at {place}, its end is {offset}", file.ino));
                    }
                    (data.len(), Ok(()))
                }
                Err(error) => (0, Err(error)),
            },
            3 => {
                let place = |part: usize| offset + 5 * UNIT * part as u64;
                let parts = data.chunks(5 * UNIT as usize).enumerate();
                let mut parts: Vec<WriteSlice<'_>> =
                    parts.map(|(part, data)| WriteSlice::new(place(part), data)).collect();
                match handle.write_many(4, &mut parts) {
                    Ok(()) => (data.len(), Ok(())),
                    Err(error) => (0, Err(error)),
                }
            }
            _ => told(handle.write_at(&data, offset)),
        };
        let whole = result.is_ok() && wrote == data.len();
        let size = file.bytes();
        let words = result.as_ref().err().map_or_else(|| "ok".to_owned(), ToString::to_string);
        file.tell(format!("write[{way}] {first}+{count} stamp {stamp:x}: {wrote} {words}, {old} -> {size}"));
        for unit in first..first + count {
            let here = (unit - first + 1) * UNIT;
            if whole || result.is_ok() && here <= wrote as u64 {
                file.unit_mut(unit).made(value(unit));
            } else {
                file.unit_mut(unit).failed(value(unit));
                if unit * UNIT >= old {
                    file.unit_mut(unit).failed(0);
                }
            }
        }
        if whole && size != old.max(end) || size < old || size > old.max(end) {
            self.storm.wrong(format!("{}: {size} bytes after a write of {first}+{count} to {old}", file.ino));
        }
        file.size.made(size);
        if result.is_ok() && wrote == 0 {
            self.storm.wrong(format!("a write to {} wrote nothing, and told no error", file.ino));
        }
        if way == 1 && whole {
            file.synced(begun);
            self.storm.syncs.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    pub(super) fn cut(&mut self, at: usize) -> Result<(), FsError> {
        let reach = self.reach();
        let size = if self.random.chance(3) { 0 } else { self.random.below_u64(reach) * UNIT };
        let file = &mut self.files[at];
        let Some(handle) = &file.handle else { return Ok(()) };
        let old = handle.size();
        file.size.asked(size);
        let behind = file.units_from(size / UNIT);
        behind.iter().for_each(|unit| file.unit_mut(*unit).asked(0));
        let Some(handle) = &file.handle else { return Ok(()) };
        let result = handle.set_len(size);
        let now = handle.size();
        file.tell(format!("cut to {size}: {:?}", result.as_ref().err().map(ToString::to_string)));
        for unit in behind {
            if result.is_ok() { file.unit_mut(unit).made(0) } else { file.unit_mut(unit).failed(0) }
        }
        if now != size && (result.is_ok() || now > old.max(size)) {
            self.storm.wrong(format!("{}: {now} bytes after a cut of {old} to {size}", file.ino));
        }
        file.size.made(now);
        result
    }

    /// A hole, zeros, or room.
    pub(super) fn hole(&mut self, at: usize) -> Result<(), FsError> {
        let reach = self.reach();
        let (first, count, kind) = (self.random.below_u64(reach), 1 + self.random.below_u64(64), self.random.below(3));
        let file = &mut self.files[at];
        let old = file.bytes();
        let grown = if kind == 0 { old } else { old.max((first + count) * UNIT) };
        let emptied = if kind < 2 { first..first + count } else { 0..0 };
        file.size.asked(grown);
        emptied.clone().for_each(|unit| file.unit_mut(unit).asked(0));
        let Some(handle) = &file.handle else { return Ok(()) };
        let (offset, len) = (first * UNIT, count * UNIT);
        let result = match kind {
            0 => handle.punch_hole(offset, len),
            1 => handle.zero_range(offset, len),
            _ => handle.allocate(offset, len, AllocateFlags::NONE),
        };
        let now = handle.size();
        let words = result.as_ref().err().map(ToString::to_string);
        file.tell(format!("{} {first}+{count}: {words:?}", ["punch", "zero", "allocate"][kind]));
        for unit in emptied {
            if result.is_ok() { file.unit_mut(unit).made(0) } else { file.unit_mut(unit).failed(0) }
        }
        if now != grown && (result.is_ok() || now != old) {
            self.storm.wrong(format!("{}: {now} bytes, {old} before and {grown} asked for", file.ino));
        }
        file.size.made(now);
        result
    }

    pub(super) fn read(&mut self, at: usize) -> Result<(), FsError> {
        let reach = self.reach();
        let whole_blocks = self.random.chance(2);
        let first = self.random.below_u64(reach) & if whole_blocks { !7 } else { !0 };
        let count = 1 + self.random.below_u64(64);
        let file = &self.files[at];
        let Some(handle) = &file.handle else { return Ok(()) };
        let (offset, size) = (first * UNIT, handle.size());
        let mut block = AlignedBuf::new((count as usize).div_ceil(8));
        let mut bytes = vec![0x55; (count * UNIT) as usize];
        let (read, asked) = if self.random.chance(3) {
            (handle.read_into(&mut block, offset)?, block.as_bytes())
        } else {
            (handle.read_at(&mut bytes, offset)?, &bytes[..])
        };
        let wanted = size.saturating_sub(offset).min(asked.len() as u64);
        if read as u64 != wanted {
            self.storm.wrong(format!("{}: {read} bytes read at {offset} of {size}: {}", file.ino, file.story()));
        }
        if let Some(wrong) = file.contradiction(first, &asked[..read]) {
            self.storm.wrong(wrong);
        }
        Ok(())
    }
}

/// How much was written, and whether.
pub(super) fn told(result: Result<usize, FsError>) -> (usize, Result<(), FsError>) {
    match result {
        Ok(wrote) => (wrote, Ok(())),
        Err(error) => (0, Err(error)),
    }
}
