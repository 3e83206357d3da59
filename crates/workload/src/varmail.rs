//! The files of a mail server, as Filebench's Varmail has them, and how fast they are with a journal in different
//! places.
//!
//! A thousand files of some 16 KiB lie in one directory. Each thread does this again and again:
//!
//! ```text
//!   remove a file | make one, append, sync | open one, read it all, append, sync | open one, read it all
//! ```
//!
//! A file that a thread has open is not chosen by another. An append has 1 byte to 16 KiB. Opening, closing, reading,
//! and so on count as an operation each: 13 in a round, as in Filebench.
//!
//! [`model`] runs this for many threads in virtual time, on the models of an SSD and of persistent memory, so that the
//! outcome depends on nothing else that the machine does. [`measure`] runs it with real threads on real devices: with
//! the library, or in a directory of a file system of the kernel ([`Mails`]). Both run the same rounds ([`Worker`]).
//!
//! # Locking
//!
//! The names are under one lock, which is held to choose one and for nothing else.

mod directory;
mod mails;
mod measure;
mod model;

use std::time::Duration;

use f2fs::sync::Mutex;
use f2fs_device_test::Random;

pub use directory::Directory;
pub use mails::Mails;
pub use measure::measure;
pub use model::{Model, Place, model};

/// Files at the beginning.
const FILES: u32 = 1000;
/// Bytes of a file on average.
const MEAN: u64 = 16 << 10;

/// The names of the files: those that are there and nobody has open, and those that are free.
#[derive(Debug)]
pub struct Names {
    lists: Mutex<(Vec<u32>, Vec<u32>)>,
}

impl Names {
    fn take(&self, random: &mut Random) -> Option<u32> {
        let mut lists = self.lists.lock();
        let at = random.below(lists.0.len());
        (at < lists.0.len()).then(|| lists.0.swap_remove(at))
    }

    fn free(&self, random: &mut Random) -> Option<u32> {
        let mut lists = self.lists.lock();
        let at = random.below(lists.1.len());
        (at < lists.1.len()).then(|| lists.1.swap_remove(at))
    }

    fn is_there(&self, number: u32) {
        self.lists.lock().0.push(number);
    }

    fn is_free(&self, number: u32) {
        self.lists.lock().1.push(number);
    }
}

/// Makes the files, and makes them durable.
///
/// # Errors
/// Those of the file system.
pub fn prepare<M: Mails>(mails: &M, seed: u64) -> Result<Names, M::Error> {
    let mut random = Random::new(seed);
    mails.begin()?;
    let mut data = vec![0; 2 * MEAN as usize];
    for number in 0..FILES {
        let bytes = 1 + random.below(2 * MEAN as usize);
        data[..bytes].fill(number as u8);
        mails.append(&mails.create(number)?, &data[..bytes])?;
    }
    mails.make_durable()?;
    Ok(Names { lists: Mutex::new(((0..FILES).collect(), (FILES..2 * FILES).collect())) })
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Operations; 13 in a round.
    pub operations: u64,
    /// Of them: syncs.
    pub syncs: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

/// A run, and its time: virtual, or measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The work that was done.
    pub work: Work,
    /// How long it took.
    pub time: Duration,
    /// The mean time of a sync.
    pub sync: Duration,
    /// Checkpoints meanwhile.
    pub checkpoints: u64,
}

impl Measured {
    /// Operations a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.work.operations as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// MB (10^6 bytes) read and written in a second.
    #[must_use]
    pub fn bandwidth(&self) -> f64 {
        self.work.bytes as f64 / 1e6 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// One thread's part.
#[derive(Debug)]
pub struct Worker<'a, M: Mails> {
    mails: &'a M,
    names: &'a Names,
    random: Random,
    step: usize,
    /// The file that is open.
    file: Option<(u32, M::File)>,
    buffer: Vec<u8>,
    /// Its counts.
    pub work: Work,
}

/// The operations of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Remove,
    Create,
    Open,
    Read,
    Append,
    Sync,
    Close,
}

const ROUND: [Step; 13] = [
    Step::Remove,
    Step::Create,
    Step::Append,
    Step::Sync,
    Step::Close,
    Step::Open,
    Step::Read,
    Step::Append,
    Step::Sync,
    Step::Close,
    Step::Open,
    Step::Read,
    Step::Close,
];

impl<'a, M: Mails> Worker<'a, M> {
    /// The worker with this number; each does something else.
    #[must_use]
    pub fn new(mails: &'a M, names: &'a Names, number: u64) -> Worker<'a, M> {
        let random = Random::new(0x6d61_696c ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let buffer = vec![number as u8 | 1; 4 * MEAN as usize];
        Worker { mails, names, random, step: 0, file: None, buffer, work: Work::default() }
    }

    /// Whether the next operation is a sync.
    #[must_use]
    pub fn is_to_sync(&self) -> bool {
        ROUND[self.step] == Step::Sync
    }

    /// Whether the next operation begins a round.
    #[must_use]
    pub fn is_to_begin(&self) -> bool {
        self.step == 0
    }

    /// Does the next operation.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn step(&mut self) -> Result<(), M::Error> {
        let step = ROUND[self.step];
        self.step = (self.step + 1) % ROUND.len();
        self.work.operations += 1;
        match step {
            Step::Remove => {
                if let Some(number) = self.names.take(&mut self.random) {
                    self.mails.remove(number)?;
                    self.names.is_free(number);
                }
            }
            Step::Create => {
                if let Some(number) = self.names.free(&mut self.random) {
                    self.file = Some((number, self.mails.create(number)?));
                }
            }
            Step::Open => self.open()?,
            Step::Read => self.read()?,
            Step::Append => {
                if let Some((_, file)) = &self.file {
                    let bytes = 1 + self.random.below(MEAN as usize);
                    self.mails.append(file, &self.buffer[..bytes])?;
                    self.work.bytes += bytes as u64;
                }
            }
            Step::Sync => {
                if let Some((_, file)) = &self.file {
                    self.mails.sync(file)?;
                    self.work.syncs += 1;
                }
            }
            Step::Close => {
                if let Some((number, _)) = self.file.take() {
                    self.names.is_there(number);
                }
            }
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), M::Error> {
        if let Some(number) = self.names.take(&mut self.random) {
            self.file = Some((number, self.mails.open(number)?));
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), M::Error> {
        let Some((_, file)) = &self.file else { return Ok(()) };
        let mut at = 0;
        loop {
            let read = self.mails.read_at(file, &mut self.buffer, at)? as u64;
            at += read;
            if read == 0 {
                break;
            }
        }
        self.work.bytes += at;
        Ok(())
    }
}

impl Work {
    fn plus(self, other: Work) -> Work {
        Work {
            operations: self.operations + other.operations,
            syncs: self.syncs + other.syncs,
            bytes: self.bytes + other.bytes,
        }
    }
}
