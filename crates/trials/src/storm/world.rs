//! A volume with options by chance, on devices that fail by chance.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use f2fs_device::{MemoryDevice, Operation};
use f2fs_device_test::{Fault, FaultDevice, FaultRule, Random, RecordingDevice, UnorderedDevice};
use f2fs_files::{
    Cleaner, CleanerOptions, File, FileSystem, Flusher, FlusherOptions, FsError, JournalMode, JournalOptions, Options,
    create_journal,
};
use f2fs_format::feature::Features;
use f2fs_journal::DeviceMedium;
use f2fs_sync::Mutex;
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{Allocation, CostModel, FsyncMode, VolumeOptions};

use super::appended::LOG;
use super::common::{COMMON, Stripes};
use super::promise::Known;
use super::together::Together;

/// How a volume ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The power goes.
    Cut,
    /// It is closed, on a device that may be whole again.
    Close { healed: bool, synced: bool },
}

/// What goes wrong on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Nothing,
    /// It is gone after so many operations.
    Dies(u64),
    /// One in so many reads fails.
    Reads(u64),
    /// One in so many writes fails, or is torn.
    Writes(u64),
    Flushes(u64),
    /// Reads, writes and discards.
    Many,
}

impl Trouble {
    fn new(random: &mut Random) -> Trouble {
        match random.below(8) {
            0 | 1 => Trouble::Nothing,
            2 | 3 => Trouble::Dies(1 + random.below_u64(8000)),
            4 => Trouble::Reads(*random.one_of(&[3000, 300, 30])),
            5 => Trouble::Writes(*random.one_of(&[10_000, 1000, 100])),
            6 => Trouble::Flushes(*random.one_of(&[2000, 200])),
            _ => Trouble::Many,
        }
    }

    fn arm(self, device: &FaultDevice, random: &mut Random) {
        let mut by_chance = |operations: &[Operation], one_in: u64| {
            let mut at = 0;
            for _ in 0..200 {
                at += random.below_u64(2 * one_in);
                let rule = FaultRule::on(operations.iter().copied()).after(at);
                let torn = operations.contains(&Operation::Write) && random.chance(2);
                device.arm(if torn { rule.fault(Fault::Torn(random.below_u64(4))) } else { rule });
            }
        };
        match self {
            Trouble::Nothing => {}
            Trouble::Dies(after) => device.arm(FaultRule::on_all().after(after).for_good()),
            Trouble::Reads(one_in) => by_chance(&[Operation::Read], one_in),
            Trouble::Writes(one_in) => by_chance(&[Operation::Write, Operation::WriteFua], one_in),
            Trouble::Flushes(one_in) => by_chance(&[Operation::Flush], one_in),
            Trouble::Many => {
                by_chance(&[Operation::Read], 1000);
                by_chance(&[Operation::Write, Operation::WriteFua], 1000);
                by_chance(&[Operation::Discard], 10);
            }
        }
    }
}

/// A device, and all that happened on it.
#[derive(Debug)]
struct Side {
    recorder: Arc<RecordingDevice>,
    faults: Arc<FaultDevice>,
    trouble: Trouble,
}

impl Side {
    fn new(device: MemoryDevice, random: &mut Random) -> Side {
        let recorder = Arc::new(RecordingDevice::new(device));
        let faults = Arc::new(FaultDevice::new(recorder.clone()));
        Side { recorder, faults, trouble: Trouble::new(random) }
    }

    /// What is on it when the power goes: all that was sent, or what was flushed and some of the rest.
    fn left(&self, random: &mut Random) -> MemoryDevice {
        if random.chance(2) {
            return self.recorder.snapshot();
        }
        let survives = 1 + random.below(3);
        self.recorder.log().image_at(self.recorder.position(), |_, _| random.below(4) < survives)
    }
}

/// What is left of a volume, and of its journal.
pub(super) struct Left {
    pub(super) volume: MemoryDevice,
    pub(super) journal: Option<MemoryDevice>,
}

/// A volume that is open, with all that was chosen for it.
pub(super) struct World {
    pub(super) fs: FileSystem,
    /// Without the journal.
    pub(super) options: Options,
    pub(super) strict: bool,
    pub(super) threads: u64,
    /// How all threads write one file, and what they know of its size.
    pub(super) stripes: Stripes,
    pub(super) common: Arc<Together>,
    /// The same of the file to which all append.
    pub(super) log: Arc<Together>,
    /// Handles of both for each thread.
    handles: Mutex<Vec<[File; 2]>>,
    /// How far writes go, in units.
    pub(super) reach: u64,
    /// Operations of each thread.
    pub(super) operations: u64,
    pub(super) end: End,
    volume: Side,
    journal: Option<(JournalMode, Side)>,
    cleaner: bool,
    flusher: bool,
    seed: u64,
    said: String,
}

impl World {
    pub(super) fn new(seed: u64) -> Result<World, String> {
        let random = &mut Random::new(seed);
        let words = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
        let form = form(random);
        let (mib, device) = formatted(*random.one_of(&[64, 96, 160]), &form)?;
        let strict = random.chance(2);
        let options = options(random, strict);
        let volume = Side::new(device, random);
        let mut said = format!("{mib} MiB, {form:?}, {options:?}, {:?}", volume.trouble);

        let with_journal = random.chance(3);
        let journal = with_journal.then(|| {
            let mode = *random.one_of(&[JournalMode::Ordered, JournalMode::Journal]);
            let blocks = *random.one_of(&[512, 2048]);
            (mode, Side::new(MemoryDevice::new(blocks), random))
        });
        let mut with = options.clone();
        if let Some((mode, side)) = &journal {
            let medium = DeviceMedium::new(side.faults.clone()).map_err(|error| words("journal", &error))?;
            let medium = Arc::new(medium);
            create_journal(volume.recorder.clone(), medium.clone(), false).map_err(|error| words("journal", &error))?;
            with = with.journal(JournalOptions::new(medium, *mode));
            said += &format!(", journal {mode:?} {:?}", side.trouble);
        }
        let unordered = UnorderedDevice::new(volume.faults.clone(), seed);
        let fs = FileSystem::open(Arc::new(unordered), with).map_err(|error| words("open", &error))?;
        let threads = 2 + random.below_u64(5);
        let made = directories(threads).iter().try_for_each(|path| fs.create_dir(path, 0o755).map(drop));
        let stripes = Stripes { units: *random.one_of(&[1, 3, 8, 20]), threads };
        let made = made.and_then(|()| fs.create_file(COMMON, 0o644)?.set_len(stripes.bytes()));
        let made = made.and_then(|()| fs.create_file(LOG, 0o644).map(drop));
        made.and_then(|()| fs.checkpoint().map(drop)).map_err(|error| words("directories", &error))?;
        let handles = (0..threads).map(|_| Ok([fs.open_file(COMMON)?, fs.open_file(LOG)?]));
        let handles: Result<_, FsError> = handles.collect();
        let handles = handles.map_err(|error| words("shared files", &error))?;
        volume.trouble.arm(&volume.faults, random);
        if let Some((_, side)) = &journal {
            side.trouble.arm(&side.faults, random);
        }
        let end = match random.below(4) {
            0 | 1 => End::Cut,
            _ => End::Close { healed: random.chance(2), synced: random.chance(2) },
        };
        let reach = if random.chance(6) { LARGE } else { 9000 };
        let (cleaner, flusher) = (random.chance(3), random.chance(3));
        said += &format!(", {threads} threads, cleaner {cleaner}, flusher {flusher}, {end:?}");
        let operations = 100 + random.below_u64(500);
        Ok(World {
            fs,
            options,
            strict,
            threads,
            stripes,
            common: Arc::new(Together::new(stripes.bytes())),
            log: Arc::default(),
            handles: Mutex::new(handles),
            reach,
            operations,
            end,
            volume,
            journal,
            cleaner,
            flusher,
            seed,
            said,
        })
    }

    /// Handles of the file that all threads write, and of the one to which all append: each gets them once.
    pub(super) fn handles(&self) -> [File; 2] {
        self.handles.lock().pop().expect("handles for each thread")
    }

    /// What was chosen, for people.
    pub(super) fn describe(&self) -> &str {
        &self.said
    }

    pub(super) fn faults(&self) -> u64 {
        self.volume.faults.faults() + self.journal.as_ref().map_or(0, |(_, side)| side.faults.faults())
    }

    /// Whether the device of the journal has failed.
    pub(super) fn journal_failed(&self) -> bool {
        self.journal.as_ref().is_some_and(|(_, side)| side.faults.faults() > 0)
    }

    pub(super) fn journal_mode(&self) -> Option<JournalMode> {
        self.journal.as_ref().map(|(mode, _)| *mode)
    }

    /// What runs beside the threads until it is dropped.
    pub(super) fn background(&self) -> (Option<Cleaner>, Option<Flusher>) {
        let often = CleanerOptions::default()
            .interval(Duration::from_millis(5))
            .urgent_interval(Duration::from_millis(1))
            .low_mark(30);
        let cleaner = self.cleaner.then(|| self.fs.start_cleaner(often).expect("a thread"));
        (cleaner, self.flusher.then(|| self.fs.start_flusher(FlusherOptions::default()).expect("a thread")))
    }

    /// Closes the volume; says whether it could be.
    pub(super) fn close(&self, files: &mut [Known]) -> bool {
        let End::Close { healed, synced } = self.end else { return false };
        if healed {
            self.volume.faults.disarm();
        }
        for file in files.iter_mut().filter(|file| !file.removed && synced) {
            // What it does not make durable, the close may.
            let _ = file.sync();
        }
        let begun: Vec<_> = files.iter_mut().map(Known::begin_sync).collect();
        // What failed once need not do so again.
        let closed = (0..2).any(|_| self.fs.close().is_ok());
        if closed {
            for (file, begun) in files.iter_mut().zip(begun).filter(|(file, _)| !file.removed) {
                file.synced(begun);
            }
        }
        closed
    }

    pub(super) fn left(&self) -> Left {
        let random = &mut Random::new(self.seed ^ 0x5eed);
        let journal = self.journal.as_ref().map(|(_, side)| side.left(random));
        Left { volume: self.volume.left(random), journal }
    }
}

/// A write may go so far in a volume of large files (units).
const LARGE: u64 = 12_000;

/// The directory that all threads make names in.
pub(super) const SHARED: &str = "/shared";
/// Directories of each thread.
pub(super) const OWN: u64 = 3;

fn directories(threads: u64) -> Vec<String> {
    let own = |thread| {
        let below = (0..OWN).map(move |number| format!("/{thread}/{number}"));
        std::iter::once(format!("/{thread}")).chain(below)
    };
    std::iter::once(SHARED.to_owned()).chain((0..threads).flat_map(own)).collect()
}

/// A volume of so many MiB, or of as many as its form takes: large sections and reserves need more.
fn formatted(least: u64, form: &FormatOptions) -> Result<(u64, MemoryDevice), String> {
    let mut mib = least;
    loop {
        let device = MemoryDevice::new(mib * 256);
        match format(&device, form) {
            Ok(_) => return Ok((mib, device)),
            Err(_) if mib < 512 => mib += 32,
            Err(error) => return Err(format!("format: {error}")),
        }
    }
}

fn form(random: &mut Random) -> FormatOptions {
    let mut form = FormatOptions::default();
    if random.chance(3) {
        form = form.with_sections(*random.one_of(&[2, 4]), 1);
    }
    if random.chance(3) {
        form.overprovision = Some(*random.one_of(&[10.0, 30.0]));
    }
    if random.chance(3) {
        form = form.with_features(Features(0));
    }
    form.heap ^= random.chance(4);
    form
}

fn options(random: &mut Random, strict: bool) -> Options {
    let count = |number: usize| NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN);
    let allocations = [
        Allocation::ssr(),
        Allocation::partial(CostModel::nvme()),
        Allocation::partial(CostModel::nvme()).at_most(0.05),
        Allocation::selective_greedy(CostModel::nvme()),
        Allocation::selective_optimal(CostModel::nvme()),
        Allocation::selective_optimal(CostModel::nvme()).at_most(0.27),
    ];
    let mut volume = VolumeOptions::new()
        .fsync(if strict { FsyncMode::Strict } else { FsyncMode::Posix })
        .lanes(*random.one_of(&[0, 1, 2, 8, 100]))
        .threads(*random.one_of(&[0, 1, 4]))
        .discard(random.chance(2))
        .allocation(random.one_of(&allocations).clone());
    if random.chance(2) {
        volume = volume.node_cache(count(*random.one_of(&[1, 7, 100])));
    }
    if random.chance(2) {
        volume = volume.dirty_nodes(*random.one_of(&[0, 1, 20, 300]));
    }
    if random.chance(2) {
        volume = volume.nodes_left_to_freeze(*random.one_of(&[0, 3]));
    }
    Options::new()
        .volume(volume)
        .page_cache(*random.one_of(&[0, 1, 8192, 256 << 10, 4 << 20]))
        .inode_cache(count(*random.one_of(&[4, 1000])))
        .dentry_cache(count(*random.one_of(&[2, 1000])))
}
