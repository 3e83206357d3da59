//! Ageing: a volume is filled, and then overwritten here and there for many times its size.
//!
//! The content of every block follows from its file, its place and how often it was written, so that nothing has to be
//! kept to compare with. Unclean stops come in between: the file system is dropped without being closed. After the next
//! opening it must be in the state of its last checkpoint. The driver notices checkpoints by their version, and
//! remembers the content of the blocks then.
//!
//! ```
//! use std::sync::Arc;
//! use f2fs_device::MemoryDevice;
//! use f2fs_files::Options;
//! use f2fs_workload::ageing::{Plan, age};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Arc::new(MemoryDevice::new((64 << 20) >> 12));
//! f2fs_volume::format::format(&*device, &Default::default())?;
//! let report = age(&device, &Options::new(), &Plan::new(0.5, 0.1))?;
//! assert!(report.updates > 0);
//! # Ok(())
//! # }
//! ```

use std::time::{Duration, Instant};

use f2fs::device::BlockDevice;
use f2fs::sync::PlainArc;
use f2fs::volume::{VictimPolicy, VolumeStat, WriteStat};
use f2fs_device_test::Random;
use f2fs_files::{File, FileSystem, FsError, Options};

/// Files that the blocks are spread over.
const FILES: u32 = 8;
const BLOCK: usize = 4096;
/// Blocks that are overwritten before another section is emptied, if sections are.
pub const CLEANING: u64 = 400;

/// The plan for a volume.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Share of the blocks for users that are in use, 0 to 1.
    pub utilisation: f64,
    /// Blocks overwritten in all, in multiples of the blocks for users.
    pub turnover: f64,
    /// Unclean stops, spread over the run.
    pub stops: u32,
    /// Seed of the random choices.
    pub seed: u64,
    /// Whether a section is emptied now and then, and how it is chosen.
    pub cleaning: Option<VictimPolicy>,
}

impl Plan {
    /// So full, and so many times its size overwritten; two unclean stops.
    #[must_use]
    pub fn new(utilisation: f64, turnover: f64) -> Plan {
        Plan { utilisation, turnover, stops: 2, seed: 1, cleaning: None }
    }

    /// Sets the number of unclean stops.
    #[must_use]
    pub fn stops(mut self, stops: u32) -> Plan {
        self.stops = stops;
        self
    }

    /// Empties a section, chosen so, after as many overwrites as [`CLEANING`] says: while writes go on, as in the
    /// background.
    #[must_use]
    pub fn cleaning(mut self, policy: VictimPolicy) -> Plan {
        self.cleaning = Some(policy);
        self
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Plan {
        self.seed = seed;
        self
    }
}

/// The result of ageing.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Blocks that the files have.
    pub blocks: u32,
    /// Blocks overwritten.
    pub updates: u64,
    /// Time of the overwriting.
    pub elapsed: Duration,
    /// The volume at the end.
    pub stat: VolumeStat,
    /// The blocks written while overwriting, by causes.
    pub written: WriteStat,
}

impl Report {
    /// Blocks written for each block overwritten.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        self.written.written_blocks() as f64 / self.updates.max(1) as f64
    }
}

/// Why ageing ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgeingError {
    /// The file system refused something.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A block does not hold what was written to it.
    #[error("file {file}, block {block}: does not hold what write number {version} wrote")]
    Content {
        /// The file.
        file: u32,
        /// The block of the file.
        block: u32,
        /// How often it had been written.
        version: u32,
    },
}

/// A number below `limit`.
fn below(random: &mut Random, limit: u32) -> u32 {
    (((random.next() >> 32) * u64::from(limit.max(1))) >> 32) as u32
}

/// The content that the `version`-th writing of a block puts there.
fn fill(data: &mut [u8], file: u32, block: u32, version: u32) {
    Random::new(u64::from(file) << 56 ^ u64::from(block) << 28 ^ u64::from(version)).fill(data);
}

struct Run<'a, D> {
    device: &'a PlainArc<D>,
    options: &'a Options,
    fs: FileSystem,
    files: Vec<File>,
    /// How often each block was written, by file and block.
    versions: Vec<u32>,
    /// The same at the last checkpoint, and its version.
    durable: (u64, Vec<u32>),
    per_file: u32,
    /// Summed over the openings so far.
    written: Vec<WriteStat>,
}

impl<D: BlockDevice> Run<'_, D> {
    fn open_files(&mut self) -> Result<(), FsError> {
        self.files = (0..FILES).map(|file| self.fs.open_file(format!("/{file}"))).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Writes `len` blocks of a file. A checkpoint that comes with it is written before its first block is.
    fn write(&mut self, file: u32, block: u32, len: u32) -> Result<(), FsError> {
        let at = (file * self.per_file + block) as usize;
        let before: Vec<u32> = self.versions[at..at + len as usize].to_vec();
        let mut data = vec![0; len as usize * BLOCK];
        for (index, part) in data.chunks_mut(BLOCK).enumerate() {
            self.versions[at + index] += 1;
            fill(part, file, block + index as u32, self.versions[at + index]);
        }
        let mut done = 0;
        while done < data.len() {
            let offset = u64::from(block) * BLOCK as u64 + done as u64;
            done += self.files[file as usize].write_at(&data[done..], offset)?;
        }
        let version = self.fs.volume().last_checkpoint().version;
        if version != self.durable.0 {
            let mut durable = self.versions.clone();
            durable[at..at + len as usize].copy_from_slice(&before);
            self.durable = (version, durable);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), AgeingError> {
        let (mut data, mut wanted) = (vec![0; 64 * BLOCK], vec![0; BLOCK]);
        for file in 0..FILES {
            for block in (0..self.per_file).step_by(64) {
                let read = self.files[file as usize].read_at(&mut data, u64::from(block) * BLOCK as u64)?;
                for (block, part) in (block..self.per_file).zip(data[..read].chunks(BLOCK)) {
                    let version = self.versions[(file * self.per_file + block) as usize];
                    fill(&mut wanted, file, block, version);
                    if part != &wanted[..part.len()] {
                        return Err(AgeingError::Content { file, block, version });
                    }
                }
            }
        }
        Ok(())
    }

    /// Drops everything unclosed, and goes on from the last checkpoint.
    fn stop(mut self) -> Result<Self, AgeingError> {
        self.written.push(self.fs.write_stat());
        self.files.clear();
        // A device is opened once: the volume goes before it comes again.
        drop(self.fs);
        self.fs = FileSystem::open(self.device.clone(), self.options.clone())?;
        self.versions.clone_from(&self.durable.1);
        self.open_files()?;
        self.check()?;
        Ok(self)
    }
}

/// Fills an empty volume with files as far as the plan says, overwrites them, checks every block, and closes.
///
/// # Errors
/// [`AgeingError`].
pub fn age<D: BlockDevice>(device: &PlainArc<D>, options: &Options, plan: &Plan) -> Result<Report, AgeingError> {
    let fs = FileSystem::open(device.clone(), options.clone())?;
    let stat = fs.statfs();
    let room = (stat.user_blocks as f64 * plan.utilisation.clamp(0.0, 1.0)) as u64;
    // A node for about a thousand blocks, and the inodes.
    let blocks = room.saturating_sub(stat.valid_blocks + u64::from(FILES)) * 1000 / 1003;
    let per_file = ((blocks / u64::from(FILES)) as u32).max(1);
    for file in 0..FILES {
        fs.create_file(format!("/{file}"), 0o644)?;
    }
    fs.checkpoint()?;
    let versions = vec![0; (FILES * per_file) as usize];
    let durable = (fs.volume().last_checkpoint().version, versions.clone());
    let mut run = Run { device, options, fs, files: Vec::new(), versions, durable, per_file, written: Vec::new() };
    run.open_files()?;
    // All files grow together, so that each segment holds parts of all.
    for block in (0..per_file).step_by(16) {
        for file in 0..FILES {
            run.write(file, block, 16.min(per_file - block))?;
        }
    }
    run.fs.checkpoint()?;
    run.durable = (run.fs.volume().last_checkpoint().version, run.versions.clone());

    let first = run.fs.write_stat();
    let begin = Instant::now();
    let goal = (stat.user_blocks as f64 * plan.turnover) as u64;
    let mut random = Random::new(plan.seed);
    let mut updates = 0;
    let mut stops = 0;
    while updates < goal {
        // Mostly single blocks, now and then a longer piece.
        let len = if below(&mut random, 16) == 0 { 1 + below(&mut random, 32) } else { 1 }.min(per_file);
        let (file, block) = (below(&mut random, FILES), below(&mut random, per_file - len + 1));
        run.write(file, block, len)?;
        updates += u64::from(len);
        if let Some(policy) = plan.cleaning
            && updates / CLEANING > (updates - u64::from(len)) / CLEANING
        {
            run.fs.clean_step_by(policy)?;
        }
        if stops < plan.stops && updates * (u64::from(plan.stops) + 1) > goal * (u64::from(stops) + 1) {
            stops += 1;
            run = run.stop()?;
        }
    }
    run.fs.checkpoint()?;
    let elapsed = begin.elapsed();
    run.check()?;
    run.written.push(run.fs.write_stat());
    let written = run.written.iter().fold(WriteStat::default(), |sum, part| sum.plus(part)).minus(&first);
    let stat = run.fs.statfs();
    run.files.clear();
    run.fs.close()?;
    Ok(Report { blocks: FILES * per_file, updates, elapsed, stat, written })
}
