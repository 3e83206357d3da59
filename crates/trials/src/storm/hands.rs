//! One thread of a storm: operations by chance on files of its own, each written down before it is asked for.

use f2fs_device::AlignedBuf;
use f2fs_device_test::Random;
use f2fs_files::{AllocateFlags, FsError, RenameMode, SetMode, WriteSlice};
use f2fs_sync::atomic::Ordering;
use std::collections::BTreeSet;

use super::Storm;
use super::promise::{Known, UNIT};
use super::world::{OWN, SHARED};

/// Files that a thread has at a time.
const MOST_FILES: usize = 14;
const LEAST_FILES: usize = 3;
/// Errors of a volume that is stopped, after which a thread gives up.
const PATIENCE: u32 = 40;

pub(super) struct Hands<'a> {
    storm: &'a Storm,
    number: u64,
    random: Random,
    files: Vec<Known>,
    /// Files that are not used any more.
    gone: Vec<Known>,
    names: u64,
}

impl<'a> Hands<'a> {
    pub(super) fn new(storm: &'a Storm, seed: u64, number: u64) -> Hands<'a> {
        let random = Random::new(seed.wrapping_mul(1000) + number);
        Hands { storm, number, random, files: Vec::new(), gone: Vec::new(), names: 0 }
    }

    /// Does as much as was chosen, and gives what is known of all files.
    pub(super) fn work(mut self) -> Vec<Known> {
        let mut refused = 0;
        for _ in 0..self.storm.world.operations {
            let done = self.operation();
            self.storm.done[usize::from(done.is_err())].fetch_add(1, Ordering::Relaxed);
            refused += u32::from(done.is_err() && self.storm.world.fs.volume().stopped().is_some());
            if refused > PATIENCE {
                break;
            }
        }
        self.files.append(&mut self.gone);
        self.files
    }

    fn operation(&mut self) -> Result<(), FsError> {
        let kind = self.random.below(100);
        if self.files.len() < LEAST_FILES || kind < 8 && self.files.len() < MOST_FILES {
            return self.create();
        }
        let at = self.random.below(self.files.len());
        match kind {
            0..40 => self.write(at),
            40..46 => self.cut(at),
            46..54 => self.hole(at),
            54..62 => self.rename(at),
            62..66 => self.rename_over(at),
            66..70 => self.remove(at),
            70..80 => self.sync(at),
            80 => self.everything_is_written(),
            81..83 => self.sync_directory(),
            83..86 => self.open_again(at),
            86..97 => self.read(at),
            97 => self.list(),
            _ => self.attribute(at),
        }
    }

    fn new_name(&mut self) -> String {
        self.names += 1;
        let (thread, number) = (self.number, self.names);
        match self.random.below(3) {
            0 => format!("{SHARED}/{thread}-{number}"),
            _ => format!("/{thread}/{}/{number}", self.random.below_u64(OWN)),
        }
    }

    fn create(&mut self) -> Result<(), FsError> {
        let name = self.new_name();
        let file = self.storm.world.fs.create_file(&name, 0o644)?;
        self.files.push(Known::new(file, name));
        Ok(())
    }

    /// How far an operation goes: mostly not far, so that they meet.
    fn reach(&mut self) -> u64 {
        if self.random.chance(12) { self.storm.world.reach } else { 260 }
    }

    fn write(&mut self, at: usize) -> Result<(), FsError> {
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
        file.sync_began |= way == 1;
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
            file.synced();
            self.storm.syncs.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    fn cut(&mut self, at: usize) -> Result<(), FsError> {
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
    fn hole(&mut self, at: usize) -> Result<(), FsError> {
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

    fn rename(&mut self, at: usize) -> Result<(), FsError> {
        let Some(from) = self.files[at].path() else { return Ok(()) };
        let to = self.new_name();
        let file = &mut self.files[at];
        file.name.asked(Some(to.clone()));
        let result = self.storm.world.fs.rename(&from, &to, RenameMode::Replace);
        file.tell(format!("rename {from} {to}: {:?}", result.as_ref().err().map(ToString::to_string)));
        if result.is_ok() {
            file.name.made(Some(to));
        } else {
            file.name.failed(Some(to));
        }
        result
    }

    /// A file takes another's place, or both change places.
    fn rename_over(&mut self, at: usize) -> Result<(), FsError> {
        let other = self.random.below(self.files.len());
        let (Some(from), Some(to)) = (self.files[at].path(), self.files[other].path()) else { return Ok(()) };
        if at == other {
            return Ok(());
        }
        let exchange = self.random.chance(2);
        let of_other = exchange.then(|| from.clone());
        self.files[at].name.asked(Some(to.clone()));
        self.files[other].name.asked(of_other.clone());
        let mode = if exchange { RenameMode::Exchange } else { RenameMode::Replace };
        let result = self.storm.world.fs.rename(&from, &to, mode);
        let words = format!("{mode:?} {from} {to}: {:?}", result.as_ref().err().map(ToString::to_string));
        for (file, name) in [(at, Some(to)), (other, of_other)] {
            let file = &mut self.files[file];
            file.tell(words.clone());
            if result.is_ok() { file.name.made(name) } else { file.name.failed(name) }
        }
        if !exchange {
            self.give_up(other);
        }
        result
    }

    fn remove(&mut self, at: usize) -> Result<(), FsError> {
        let Some(path) = self.files[at].path() else { return Ok(()) };
        self.files[at].name.asked(None);
        let result = self.storm.world.fs.remove_file(&path);
        let file = &mut self.files[at];
        file.tell(format!("remove {path}: {:?}", result.as_ref().err().map(ToString::to_string)));
        if result.is_ok() {
            file.name.made(None);
        } else {
            file.name.failed(None);
        }
        // What is open is there.
        let read = if self.random.chance(3) { self.read(at) } else { Ok(()) };
        self.give_up(at);
        result.and(read)
    }

    /// A file whose name was taken away, or may have been.
    fn give_up(&mut self, at: usize) {
        let mut file = self.files.swap_remove(at);
        (file.removed, file.handle) = (true, None);
        self.gone.push(file);
    }

    fn sync(&mut self, at: usize) -> Result<(), FsError> {
        let file = &mut self.files[at];
        file.sync_began = true;
        let Some(handle) = &file.handle else { return Ok(()) };
        let result = handle.sync_all();
        file.tell(format!("sync: {:?}", result.as_ref().err().map(ToString::to_string)));
        if result.is_ok() {
            self.storm.syncs.fetch_add(1, Ordering::Relaxed);
            file.synced();
        }
        result
    }

    /// A checkpoint, or a cleaning, which writes several.
    fn everything_is_written(&mut self) -> Result<(), FsError> {
        self.files.iter_mut().for_each(|file| file.sync_began = true);
        if self.random.chance(3) {
            return self.storm.world.fs.clean().map(drop);
        }
        let result = self.storm.world.fs.checkpoint().map(drop);
        for file in &mut self.files {
            file.tell(format!("checkpoint: {:?}", result.as_ref().err().map(ToString::to_string)));
            if result.is_ok() {
                file.synced();
            }
        }
        result
    }

    fn sync_directory(&mut self) -> Result<(), FsError> {
        self.files.iter_mut().for_each(|file| file.sync_began = true);
        self.storm.world.fs.open_dir(SHARED)?.sync_all()?;
        for file in &mut self.files {
            file.name.synced();
            file.tell("sync of the directory".to_owned());
        }
        Ok(())
    }

    fn open_again(&mut self, at: usize) -> Result<(), FsError> {
        let file = &mut self.files[at];
        let Some(path) = file.path() else { return Ok(()) };
        file.handle = None;
        match self.storm.world.fs.open_file(&path) {
            Ok(handle) if handle.ino() == file.ino => {
                file.handle = Some(handle);
                Ok(())
            }
            Ok(handle) => {
                self.storm.wrong(format!("{path} is {}, and was {}", handle.ino(), file.ino));
                Ok(())
            }
            Err(error) => {
                if matches!(error, FsError::NotFound) {
                    self.storm.wrong(format!("{path} is gone: {}", file.story()));
                }
                let file = self.files.swap_remove(at);
                self.gone.push(file);
                Err(error)
            }
        }
    }

    fn read(&mut self, at: usize) -> Result<(), FsError> {
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
        for (unit, found) in (first..).zip(asked[..read].chunks_exact(UNIT as usize)) {
            if !stamp(found).is_some_and(|stamp| file.unit(unit).is(&stamp)) {
                let wanted = file.unit(unit);
                let found = stamp(found);
                self.storm.wrong(format!(
                    "a reader of {} finds {found:x?} in unit {unit}, not {wanted:x?}: {}",
                    file.ino,
                    file.story()
                ));
                break;
            }
        }
        Ok(())
    }

    fn list(&self) -> Result<(), FsError> {
        let mut seen = BTreeSet::new();
        for entry in self.storm.world.fs.open_dir(SHARED)?.entries() {
            let name = entry?.name;
            if seen.contains(&name) {
                self.storm.wrong(format!("listed twice: {}", name.escape_ascii()));
            }
            seen.insert(name);
        }
        for file in &self.files {
            let path = file.path();
            let name = path.as_deref().and_then(|path| path.strip_prefix(SHARED)).map(|name| &name[1..]);
            if name.is_some_and(|name| !seen.contains(name.as_bytes())) {
                self.storm.wrong(format!("not listed: {path:?}: {}", file.story()));
            }
        }
        Ok(())
    }

    fn attribute(&mut self, at: usize) -> Result<(), FsError> {
        let Some(path) = self.files[at].path() else { return Ok(()) };
        let value = vec![7; self.random.below(300)];
        self.storm.world.fs.set_xattr(path, "user.a", &value, SetMode::Any)
    }
}

/// How much was written, and whether.
fn told(result: Result<usize, FsError>) -> (usize, Result<(), FsError>) {
    match result {
        Ok(wrote) => (wrote, Ok(())),
        Err(error) => (0, Err(error)),
    }
}

/// Who wrote a unit; `None` if several did.
pub(super) fn stamp(unit: &[u8]) -> Option<u64> {
    let (words, _) = unit.as_chunks::<8>();
    let first = words.first()?;
    words.iter().all(|word| word == first).then(|| u64::from_le_bytes(*first))
}
