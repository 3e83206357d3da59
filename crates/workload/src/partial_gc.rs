//! The experiment of "Partial Garbage Collection Technique for Improving Write Performance of Log-Structured File
//! Systems": a long sequential write into an aged volume, with each way of dealing with the valid blocks in its way.
//!
//! Warm and cold files of equal size fill the volume, a block or two at a time in turn; half of them are removed and
//! some blocks of the others are overwritten, which leaves the volume half full and its segments full of holes; then a
//! new file is written. [`Aged::measure`] lets each way write to a copy of the same volume over a device of virtual
//! time.

use std::time::{Duration, Instant};

use f2fs::device::{BlockDevice, MemoryDevice};
use f2fs::format::LogType;
use f2fs::segment::cost::{Card, CostModel, Interior};
use f2fs::sync::PlainArc;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::volume::{Allocation, VolumeOptions, WriteStat};
use f2fs_device_test::{Random, TimingDevice, TimingStat};
use f2fs_files::{FileSystem, FsError, Options};

/// Blocks of one write: the mean request that the paper measured.
pub const REQUEST: usize = 1079;
/// Files of each temperature that grow together.
const STREAMS: usize = 16;
const BLOCK: usize = 4096;

/// Why the experiment could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// The file system refused something.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The volume could not be made.
    #[error(transparent)]
    Format(#[from] f2fs::volume::format::FormatVolumeError),
    /// The new file does not hold what was written to it.
    #[error("block {block} of the new file does not hold what was written")]
    Content {
        /// The block.
        block: u64,
    },
}

/// Lengths of holes and of valid runs in the dirty segments of a log, blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// Mean length of a hole.
    pub hole: f64,
    /// Mean length of a valid run between two holes.
    pub run: f64,
    /// Holes.
    pub holes: u64,
    /// The valid runs, the shortest first.
    pub runs: Vec<u32>,
}

impl Shape {
    /// The share of requests that the best choice saves that rewrites at most `share` blocks for each block that goes
    /// into a hole: a request less for each run, so the shortest runs. No way to choose saves more.
    ///
    /// ```
    /// # let shape = f2fs_workload::partial_gc::Shape { hole: 2.0, run: 2.0, holes: 4, runs: vec![1, 1, 4] };
    /// // Eight blocks go into four holes; three blocks may be rewritten between them.
    /// assert_eq!(shape.most_saved(3.0 / 8.0), 0.5);
    /// ```
    #[must_use]
    pub fn most_saved(&self, share: f64) -> f64 {
        let mut left = share * self.hole * self.holes as f64;
        let fits = |len: &&u32| {
            left -= f64::from(**len);
            left >= 0.0
        };
        self.runs.iter().take_while(fits).count() as f64 / self.holes.max(1) as f64
    }
}

/// An aged volume in memory.
#[derive(Debug)]
pub struct Aged {
    device: MemoryDevice,
    /// The warm data log's segments.
    pub warm: Shape,
    /// The cold data log's segments.
    pub cold: Shape,
    /// Share of the users' blocks in use.
    pub utilisation: f64,
    /// Blocks that the long write has.
    pub blocks: u64,
}

/// The result of a long write.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Time of it: virtual, or measured.
    pub time: Duration,
    /// Causes of what was written.
    pub by_cause: WriteStat,
    /// The device's counts, if it is one of virtual time.
    pub device: TimingStat,
    /// Mean length of the holes that the cold log wrote into at the end, blocks.
    pub cold_hole: f64,
}

impl Written {
    /// Blocks of data written: new, rewritten and moved ones.
    #[must_use]
    pub fn data_blocks(&self) -> u64 {
        let by = &self.by_cause;
        by.user_blocks + by.rewritten_blocks + by.precleaned_blocks + by.moved_data_blocks
    }

    /// Requests that wrote data.
    #[must_use]
    pub fn data_requests(&self) -> u64 {
        self.by_cause.user_requests + self.by_cause.move_requests
    }
}

fn options(allocation: Allocation) -> Options {
    // One lane, so that writes that follow each other in time do so on the device.
    Options::new().volume(VolumeOptions::new().allocation(allocation).lanes(1))
}

/// Fills a formatted volume and makes holes; gives the blocks that a long write should have.
///
/// # Errors
/// [`ExperimentError`].
pub fn make_holes<D: BlockDevice>(device: &PlainArc<D>, seed: u64) -> Result<u64, ExperimentError> {
    let fs = FileSystem::open(device.clone(), options(Allocation::ssr()))?;
    let mut random = Random::new(seed);
    let names = |temperature: &str| (0..STREAMS).map(|index| format!("/{index}.{temperature}")).collect::<Vec<_>>();
    let (warm, cold) = (names("txt"), names("jpg"));
    let mut files = Vec::new();
    for name in warm.iter().chain(&cold) {
        files.push((fs.create_file(name, 0o644)?, 0u64));
    }
    let stat = fs.statfs();
    // All but the room that nodes and the cleaner need to go on.
    let end = stat.valid_blocks + (stat.user_blocks - stat.valid_blocks) * 97 / 100;
    let data = vec![0xa5; 2 * BLOCK];
    while fs.statfs().valid_blocks < end {
        for half in [0, STREAMS] {
            let (file, size) = &mut files[half + random.below(STREAMS)];
            let len = (1 + random.below(2)) * BLOCK;
            *size += file.write_at(&data[..len], *size)? as u64;
        }
    }
    fs.checkpoint()?;
    let sizes: Vec<u64> = files.iter().map(|(_, size)| *size).collect();
    drop(files);
    // Every other file goes; a tenth of the blocks of the rest goes elsewhere.
    for (index, name) in warm.iter().chain(&cold).enumerate() {
        if index % 2 == 0 {
            fs.remove_file(name)?;
        }
    }
    fs.checkpoint()?;
    for (index, name) in warm.iter().chain(&cold).enumerate().filter(|(index, _)| index % 2 == 1) {
        let file = fs.open_file(name)?;
        let blocks = (sizes[index] / BLOCK as u64) as usize;
        for _ in 0..blocks / 10 {
            file.write_at(&data[..BLOCK], random.below(blocks) as u64 * BLOCK as u64)?;
        }
    }
    let stat = fs.statfs();
    fs.close()?;
    Ok((stat.user_blocks - stat.valid_blocks) * 35 / 100)
}

/// The shape of a log's dirty segments.
fn shape(fs: &FileSystem, log: LogType) -> Shape {
    let (mut holes, mut hole_blocks, mut runs) = (0u64, 0u64, Vec::new());
    for number in 0..fs.volume().geometry().main_segments {
        let Ok(info) = fs.volume().segment(f2fs::format::SegmentNo(number)) else { continue };
        if info.log != log || info.valid == 0 || info.valid == 512 {
            continue;
        }
        for (_, len) in info.taken_map.runs(false) {
            holes += 1;
            hole_blocks += u64::from(len);
        }
        for (start, len) in info.taken_map.runs(true) {
            // The runs at the ends lie between a hole and another segment.
            if start != 0 && start + len != 512 {
                runs.push(len);
            }
        }
    }
    runs.sort_unstable();
    let mean = |blocks: u64, count: u64| blocks as f64 / count.max(1) as f64;
    let run_blocks = runs.iter().map(|len| u64::from(*len)).sum();
    Shape { hole: mean(hole_blocks, holes), run: mean(run_blocks, runs.len() as u64), holes, runs }
}

/// Writes a new file of `blocks` blocks, and a checkpoint. The clock of `time` is read before and after.
fn write_long<D: BlockDevice>(
    device: &PlainArc<D>,
    allocation: Allocation,
    blocks: u64,
    time: impl Fn() -> (Duration, TimingStat),
) -> Result<Written, ExperimentError> {
    let fs = FileSystem::open(device.clone(), options(allocation))?;
    // The pattern's period is no divisor of a block.
    let pattern: Vec<u8> = (0..REQUEST * BLOCK).map(|at| (at % 251) as u8).collect();
    // Runs are moved out of the way before the first operation that writes.
    let before = fs.write_stat();
    let (start, seen) = time();
    let file = fs.create_file("/new", 0o644)?;
    let mut done = 0;
    while done < blocks {
        let len = (blocks - done).min(REQUEST as u64) as usize;
        let mut written = 0;
        while written < len * BLOCK {
            written += file.write_at(&pattern[written..len * BLOCK], done * BLOCK as u64 + written as u64)?;
        }
        done += len as u64;
    }
    let cold_hole = fs.volume().mean_hole(LogType::ColdData);
    fs.checkpoint()?;
    let (end, seen_after) = time();
    let by_cause = fs.write_stat().minus(&before);
    let mut found = vec![0; BLOCK];
    for block in (0..blocks).step_by(7) {
        file.read_at(&mut found, block * BLOCK as u64)?;
        let at = block as usize % REQUEST * BLOCK;
        if found != pattern[at..at + BLOCK] {
            return Err(ExperimentError::Content { block });
        }
    }
    drop(file);
    fs.close()?;
    Ok(Written { time: end - start, by_cause, device: seen_after.since(&seen), cold_hole })
}

impl Aged {
    /// An aged volume of so many MiB.
    ///
    /// # Errors
    /// [`ExperimentError`].
    pub fn new(mib: u64, seed: u64) -> Result<Aged, ExperimentError> {
        let device = PlainArc::new(MemoryDevice::new((mib << 20) >> 12));
        format(&*device, &FormatOptions::default())?;
        let blocks = make_holes(&device, seed)?;
        let fs = FileSystem::open(device.clone(), Options::new().read_only(true))?;
        let stat = fs.statfs();
        Ok(Aged {
            device: device.snapshot(),
            warm: shape(&fs, LogType::WarmData),
            cold: shape(&fs, LogType::ColdData),
            utilisation: stat.valid_blocks as f64 / stat.user_blocks as f64,
            blocks,
        })
    }

    /// The volume.
    #[must_use]
    pub fn device(&self) -> &MemoryDevice {
        &self.device
    }

    /// A long write to a copy of the volume, on a device with the costs of `model`. Exactly repeatable.
    ///
    /// # Errors
    /// [`ExperimentError`].
    pub fn measure(
        &self,
        allocation: Allocation,
        model: CostModel,
    ) -> Result<(Written, MemoryDevice), ExperimentError> {
        let device =
            PlainArc::new(TimingDevice::new(self.device.snapshot(), move |blocks| model.seconds(blocks as f64)));
        let written = write_long(&device, allocation, self.blocks, || {
            let stat = device.stat();
            (stat.time(), stat)
        })?;
        Ok((written, device.inner().snapshot()))
    }
}

/// The same on a device of one's own, in measured time: it is formatted, made full of holes, and written to.
///
/// # Errors
/// [`ExperimentError`].
pub fn measure_on<D: BlockDevice>(
    device: &PlainArc<D>,
    allocation: Allocation,
    seed: u64,
) -> Result<Written, ExperimentError> {
    format(&**device, &FormatOptions::default().forced())?;
    let blocks = make_holes(device, seed)?;
    let begin = Instant::now();
    write_long(device, allocation, blocks, || (begin.elapsed(), TimingStat::default()))
}

/// The costs of the first published card, which `f2fs ublk add --slow card-a` imitates.
#[must_use]
pub fn card_a() -> CostModel {
    CostModel::card(Card::A, Interior::LogLog)
}

/// A long write of so many blocks to an aged volume that a device has, in measured time.
///
/// # Errors
/// [`ExperimentError`].
pub fn write_on<D: BlockDevice>(
    device: &PlainArc<D>,
    allocation: Allocation,
    blocks: u64,
) -> Result<Written, ExperimentError> {
    let begin = Instant::now();
    write_long(device, allocation, blocks, || (begin.elapsed(), TimingStat::default()))
}
