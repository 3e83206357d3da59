//! A file to which all threads of a storm append: each piece has a place of its own, at what was the end when it came. A
//! thread knows the pieces that it has written.

use f2fs_files::{File, FsError};
use f2fs_sync::atomic::Ordering;

use super::hands::Hands;
use super::promise::{Known, UNIT};
use super::world::World;

/// Its path.
pub(super) const LOG: &str = "/log";
/// Bytes after which it is long enough.
const ENOUGH: u64 = 4 << 20;

/// What a thread has appended.
pub(super) struct Appended {
    pub(super) known: Known,
    /// First unit and number of units.
    pieces: Vec<(u64, u64)>,
}

impl Appended {
    pub(super) fn new(world: &World, file: File) -> Appended {
        Appended { known: Known::shared(file, LOG, world.log.clone(), None), pieces: Vec::new() }
    }
}

impl Hands<'_> {
    /// Appends, reads what it has appended, or makes the file durable.
    pub(super) fn in_appended(&mut self) -> Result<(), FsError> {
        match self.random.below(10) {
            0..5 if self.storm.world.log.least() < ENOUGH => self.append(),
            0..7 => self.read_appended(),
            _ => self.storm.sync(&mut self.appended.known),
        }
    }

    fn append(&mut self) -> Result<(), FsError> {
        let longest = if self.random.chance(10) { 400 } else { 20 };
        let count = 1 + self.random.below_u64(longest);
        let stamp = self.storm.stamp.fetch_add(1, Ordering::Relaxed) + 1;
        let value = |part: u64| stamp << 24 | part;
        let data: Vec<u8> = (0..count).flat_map(|part| value(part).to_le_bytes().repeat(64)).collect();
        let Appended { known, pieces } = &mut self.appended;
        let together = &self.storm.world.log;
        let least = together.least();
        let begun = together.asks_for_more(count * UNIT);
        let Some(file) = &known.handle else { return Ok(()) };
        let result = file.append(&data);
        let most = together.most();
        known.tell(format!("append {count} stamp {stamp:x}: {:?}", result.as_ref().map_err(ToString::to_string)));
        let place = match result {
            Ok(place) => place,
            Err(error) => {
                // It may have begun anywhere behind what was there.
                together.changed(least / UNIT..most / UNIT);
                return Err(error);
            }
        };
        let (first, end) = (place / UNIT, place + count * UNIT);
        if place < least || end > most || place % UNIT != 0 {
            self.storm.wrong(format!("{count} units were appended at {place} of {least} to {most}: {}", known.story()));
            return Ok(());
        }
        together.changed(first..first + count);
        together.made(end, begun);
        (0..count).for_each(|part| known.unit_mut(first + part).made(value(part)));
        pieces.push((first, count));
        Ok(())
    }

    fn read_appended(&mut self) -> Result<(), FsError> {
        let Appended { known, pieces } = &self.appended;
        let Some(file) = &known.handle else { return Ok(()) };
        if pieces.is_empty() {
            return Ok(());
        }
        let &(first, count) = self.random.one_of(pieces);
        let mut bytes = vec![0x55; (count * UNIT) as usize];
        let read = file.read_at(&mut bytes, first * UNIT)?;
        if read != bytes.len() {
            self.storm.wrong(format!("{read} of {count} units of {LOG} at {first}: {}", known.story()));
        }
        if let Some(wrong) = known.contradiction(first, &bytes[..read]) {
            self.storm.wrong(wrong);
        }
        Ok(())
    }
}
