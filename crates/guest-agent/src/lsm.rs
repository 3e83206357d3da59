//! The writes of a key-value store that keeps its data in sorted files, as `RocksDB` does with levelled compaction: on
//! a directory, or with the library on zones in memory. No keys are kept: files have sizes and lives, and that is what
//! a file system sees of such a store.
//!
//! - A log is appended to in pieces of 256 KiB, each synced, until it has the size of a file; then it becomes a file of
//!   level 0, and is removed.
//! - Four files of level 0 and all of level 1 are merged into level 1. A level above its size gives one file, in turn,
//!   to the next one, where it is merged with as many files as that level is larger. The last level has all live data,
//!   and merging there keeps its size.
//! - A merge writes its files in one go, each synced at its end, and removes those that went in.
//!
//! What is counted: bytes that the store wrote, and bytes that the device was given meanwhile. The quotient is the
//! write amplification of the file system.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use f2fs_device::{MemoryDevice, ZoneLayout, ZonedDevice};
use f2fs_device_test::{Random, TimingDevice};
use f2fs_files::{FileSystem, Options};
use f2fs_format::feature::Features;
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{AgeThreshold, VictimPolicy, VolumeOptions};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory of the store.
    #[arg(required_unless_present = "zone", conflicts_with = "zone")]
    directory: Option<PathBuf>,
    /// The statistics of its device (`/sys/block/NAME/stat`).
    #[arg(long, requires = "directory")]
    stat: Option<PathBuf>,
    /// Instead of a directory: the library on zones of so many MiB, in memory.
    #[arg(long)]
    zone: Option<u64>,
    /// MiB of that device.
    #[arg(long, default_value_t = 1024, requires = "zone")]
    size: u64,
    /// Its zones without a write pointer.
    #[arg(long, default_value_t = 1, requires = "zone")]
    conventional: u32,
    /// How the library cleans beside the writes: not at all, until it has to; or a section before each file of level 0.
    #[arg(long, value_enum, default_value_t = Cleaning::Needed, requires = "zone")]
    cleaning: Cleaning,
    /// MiB of a file.
    #[arg(long, default_value_t = 4)]
    file: u64,
    /// Share of the room for users that is live data, per cent.
    #[arg(long, default_value_t = 60)]
    live: u64,
    /// MiB of live data, instead of a share.
    #[arg(long)]
    live_mib: Option<u64>,
    /// Data that is put, in multiples of the live data.
    #[arg(long, default_value_t = 1.0)]
    turnover: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Cleaning {
    /// When no section is free: by the fewest valid blocks.
    Needed,
    /// Beforehand, by cost and benefit.
    CostBenefit,
    /// Beforehand, among the oldest.
    AgeThreshold,
}

/// Pieces of the log, and of a file (bytes).
const PIECE: usize = 256 << 10;
const CHUNK: usize = 1 << 20;

/// Where the files are.
trait Store {
    fn append(&mut self, name: &str, offset: u64, bytes: &[u8]) -> anyhow::Result<()>;
    fn sync(&mut self, name: &str) -> anyhow::Result<()>;
    fn remove(&mut self, name: &str) -> anyhow::Result<()>;
    /// Bytes for users, and bytes that the device was given so far.
    fn room(&self) -> anyhow::Result<u64>;
    fn given(&self) -> anyhow::Result<u64>;
    /// Between two files of level 0.
    fn idle(&mut self) -> anyhow::Result<()>;
    fn end(&mut self) -> anyhow::Result<()>;
}

struct Host {
    directory: PathBuf,
    stat: Option<PathBuf>,
}

impl Store for Host {
    fn append(&mut self, name: &str, offset: u64, bytes: &[u8]) -> anyhow::Result<()> {
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(self.directory.join(name))?;
        Ok(file.write_all_at(bytes, offset)?)
    }

    fn sync(&mut self, name: &str) -> anyhow::Result<()> {
        Ok(fs::File::open(self.directory.join(name))?.sync_data()?)
    }

    fn remove(&mut self, name: &str) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.directory.join(name))?)
    }

    fn room(&self) -> anyhow::Result<u64> {
        let stat = rustix::fs::statvfs(&self.directory)?;
        Ok(stat.f_bavail * stat.f_frsize)
    }

    fn given(&self) -> anyhow::Result<u64> {
        let Some(path) = &self.stat else { return Ok(0) };
        let text = fs::read_to_string(path)?;
        let sectors = text.split_whitespace().nth(6).context("no count of sectors written")?;
        Ok(sectors.parse::<u64>()? * 512)
    }

    fn idle(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> anyhow::Result<()> {
        Ok(rustix::fs::syncfs(fs::File::open(&self.directory)?)?)
    }
}

struct Library {
    fs: FileSystem,
    medium: Arc<TimingDevice<MemoryDevice>>,
    cleaning: Cleaning,
}

impl Library {
    fn new(args: &Args, zone: u64) -> anyhow::Result<Library> {
        let medium = Arc::new(TimingDevice::new(MemoryDevice::new(args.size << 8), |_| 0.0));
        let layout = ZoneLayout::new(zone << 8).with_conventional(args.conventional);
        let device = Arc::new(ZonedDevice::new(medium.clone(), layout)?);
        format(&*device, &FormatOptions::default().with_features(Features::BLKZONED))?;
        let fs = FileSystem::open(device, Options::new().volume(VolumeOptions::new().lanes(1)))?;
        Ok(Library { fs, medium, cleaning: args.cleaning })
    }
}

impl Store for Library {
    fn append(&mut self, name: &str, offset: u64, bytes: &[u8]) -> anyhow::Result<()> {
        let path = format!("/{name}");
        let file = if offset == 0 { self.fs.create_file(&path, 0o644)? } else { self.fs.open_file(&path)? };
        let written = file.write_at(bytes, offset)?;
        anyhow::ensure!(written == bytes.len(), "{written} of {} bytes were written", bytes.len());
        Ok(())
    }

    fn sync(&mut self, name: &str) -> anyhow::Result<()> {
        Ok(self.fs.open_file(format!("/{name}"))?.sync_data()?)
    }

    fn remove(&mut self, name: &str) -> anyhow::Result<()> {
        Ok(self.fs.remove_file(format!("/{name}"))?)
    }

    fn room(&self) -> anyhow::Result<u64> {
        let stat = self.fs.statfs();
        Ok((stat.user_blocks - stat.valid_blocks) * 4096)
    }

    fn given(&self) -> anyhow::Result<u64> {
        Ok(self.medium.stat().writes.blocks * 4096)
    }

    fn idle(&mut self) -> anyhow::Result<()> {
        let policy = match self.cleaning {
            Cleaning::Needed => return Ok(()),
            Cleaning::CostBenefit => VictimPolicy::CostBenefit,
            Cleaning::AgeThreshold => VictimPolicy::AgeThreshold(AgeThreshold::default().threshold(0)),
        };
        // Whether there was a section to clean is all the same.
        let _ = self.fs.clean_step_by(policy)?;
        Ok(())
    }

    fn end(&mut self) -> anyhow::Result<()> {
        Ok(self.fs.checkpoint().map(drop)?)
    }
}

/// The files of a level, the oldest first, and how many it may have.
struct Level {
    files: Vec<String>,
    most: usize,
}

struct Tree<'a> {
    store: &'a mut dyn Store,
    levels: Vec<Level>,
    file: u64,
    /// Files that were made.
    made: u64,
    /// Bytes that the store wrote.
    wrote: u64,
    data: Vec<u8>,
    random: Random,
}

impl Tree<'_> {
    fn write(&mut self, name: &str, piece: usize, sync_each: bool) -> anyhow::Result<()> {
        let mut at = 0;
        while at < self.file {
            let len = piece.min((self.file - at) as usize);
            // Different bytes in each block, so that nothing can be saved.
            self.data[..8].copy_from_slice(&self.wrote.to_le_bytes());
            self.store.append(name, at, &self.data[..len])?;
            self.wrote += len as u64;
            at += len as u64;
            if sync_each {
                self.store.sync(name)?;
            }
        }
        self.store.sync(name)
    }

    fn name(&mut self) -> String {
        self.made += 1;
        format!("{:06}.sst", self.made)
    }

    /// Merges files into a level: as many come out as the level then has room for, at most as went in.
    fn merge(&mut self, gone: &[String], into: usize, files: usize) -> anyhow::Result<()> {
        for _ in 0..files {
            let name = self.name();
            self.write(&name, CHUNK, false)?;
            self.levels[into].files.push(name);
        }
        gone.iter().try_for_each(|name| self.store.remove(name))
    }

    /// Puts as much data as a file has.
    fn put(&mut self) -> anyhow::Result<()> {
        self.store.idle()?;
        let log = format!("{:06}.log", self.made);
        self.write(&log, PIECE, true)?;
        let name = self.name();
        self.write(&name, CHUNK, false)?;
        self.levels[0].files.push(name);
        self.store.remove(&log)?;
        if self.levels[0].files.len() >= self.levels[0].most {
            let mut gone = std::mem::take(&mut self.levels[0].files);
            let new = gone.len();
            gone.append(&mut self.levels[1].files);
            let files = gone.len().min(self.levels[1].most + new);
            self.merge(&gone, 1, files)?;
        }
        for level in 1..self.levels.len() {
            self.shrink(level)?;
        }
        Ok(())
    }

    /// Gives files of a level to the next one until it has its size again. In the last one, new data replaces old data.
    fn shrink(&mut self, level: usize) -> anyhow::Result<()> {
        while self.levels[level].files.len() > self.levels[level].most {
            let Some(below) = self.levels.get(level + 1) else {
                let old = self.random.below(self.levels[level].files.len());
                let name = self.levels[level].files.remove(old);
                self.store.remove(&name)?;
                continue;
            };
            let overlap = (below.files.len() / self.levels[level].most.max(1)).min(below.files.len());
            let first = self.random.below(below.files.len() - overlap + 1);
            let mut gone: Vec<String> = self.levels[level + 1].files.drain(first..first + overlap).collect();
            gone.push(self.levels[level].files.remove(0));
            let files = gone.len();
            self.merge(&gone, level + 1, files)?;
        }
        Ok(())
    }
}

/// Fills the store, puts data, and says what was written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut store: Box<dyn Store> = match (&args.directory, args.zone) {
        (Some(directory), _) => Box::new(Host { directory: directory.clone(), stat: args.stat.clone() }),
        (None, zone) => Box::new(Library::new(args, zone.context("--zone is missing")?)?),
    };
    let file = args.file << 20;
    let room = store.room()?;
    let live = (args.live_mib.map_or(room / 100 * args.live, |live| live << 20) / file) as usize;
    // Each level has a fourth of the files of the next one.
    let levels = [4, live / 16, live / 4, live - live / 16 - live / 4];
    let levels: Vec<Level> = levels.into_iter().map(|most| Level { files: Vec::new(), most: most.max(2) }).collect();
    let data = f2fs_device_test::bytes(CHUNK, 1);
    let (last, random) = (levels.len() - 1, Random::new(7));
    let mut tree = Tree { store: &mut *store, levels, file, made: 0, wrote: 0, data, random };
    for level in 1..=last {
        tree.merge(&[], level, tree.levels[level].most)?;
    }
    tree.store.end()?;
    let (filled, before) = (tree.wrote, tree.store.given()?);
    for _ in 0..(live as f64 * args.turnover) as usize {
        tree.put()?;
    }
    tree.store.end()?;
    let (wrote, given) = (tree.wrote - filled, tree.store.given()? - before);
    println!(
        "lsm room {} MiB, live {} MiB, store {} MiB, device {} MiB, amplification {:.3}",
        room >> 20,
        live as u64 * args.file,
        wrote >> 20,
        given >> 20,
        given as f64 / wrote as f64
    );
    Ok(())
}
