//! One thread of a storm: operations by chance on files of its own, each written down before it is asked for.

use f2fs_device_test::Random;
use f2fs_files::{FsError, RenameMode, SetMode};
use f2fs_sync::atomic::Ordering;
use std::collections::BTreeSet;

use super::Storm;
use super::appended::Appended;
use super::common;
use super::promise::Known;
use super::world::{OWN, SHARED};

/// Files that a thread has at a time.
const MOST_FILES: usize = 14;
const LEAST_FILES: usize = 3;
/// Operations on the files that all threads write, of a hundred.
const SHARED_SHARE: usize = 15;
/// Errors of a volume that is stopped, after which a thread gives up.
const PATIENCE: u32 = 40;

pub(super) struct Hands<'a> {
    pub(super) storm: &'a Storm,
    pub(super) number: u64,
    pub(super) random: Random,
    pub(super) files: Vec<Known>,
    /// Its part of the file that all threads write.
    pub(super) share: Known,
    /// What it has appended to the file to which all append.
    pub(super) appended: Appended,
    /// Files that are not used any more.
    gone: Vec<Known>,
    names: u64,
}

impl<'a> Hands<'a> {
    pub(super) fn new(storm: &'a Storm, seed: u64, number: u64) -> Hands<'a> {
        let random = Random::new(seed.wrapping_mul(1000) + number);
        let [common, log] = storm.world.handles();
        let share = common::share(&storm.world, common, number);
        let appended = Appended::new(&storm.world, log);
        Hands { storm, number, random, files: Vec::new(), share, appended, gone: Vec::new(), names: 0 }
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
        self.files.extend([self.share, self.appended.known]);
        self.files
    }

    fn operation(&mut self) -> Result<(), FsError> {
        if self.random.below(100) < SHARED_SHARE {
            return if self.random.chance(4) { self.in_appended() } else { self.in_common() };
        }
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
            70..80 => self.storm.sync(&mut self.files[at]),
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

    /// A checkpoint, or a cleaning, which writes several.
    fn everything_is_written(&mut self) -> Result<(), FsError> {
        let shared = [&mut self.share, &mut self.appended.known];
        let mut all: Vec<_> = self.files.iter_mut().chain(shared).map(|file| (file.begin_sync(), file)).collect();
        if self.random.chance(3) {
            return self.storm.world.fs.clean().map(drop);
        }
        let result = self.storm.world.fs.checkpoint().map(drop);
        for (begun, file) in &mut all {
            file.tell(format!("checkpoint: {:?}", result.as_ref().err().map(ToString::to_string)));
            if result.is_ok() {
                file.synced(*begun);
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
