//! One measurement, from format to check.

use std::num::NonZeroUsize;

use f2fs::check::{CheckOptions, check};
use f2fs::device::BlockDevice;
use f2fs::nat::NatStats;
use f2fs::sync::PlainArc;
use f2fs::volume::VolumeOptions;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{FileSystem, JournalOptions, Options, create_journal};

use super::error::FxmarkError;
use super::measured::{Fill, Measured};
use super::observer::Observer;
use super::race::race;
use super::setting::Setting;
use super::system::ROOT;

/// Formats the device (**its content is lost**), prepares a workload, runs it, checks that every operation left its
/// trace, and closes the volume.
///
/// # Errors
/// [`FxmarkError`], for example if the volume is too small for the files.
#[allow(clippy::needless_pass_by_value)] // the file system keeps it
pub fn run(
    device: PlainArc<dyn BlockDevice>,
    setting: &Setting,
    observer: &dyn Observer,
) -> Result<Measured, FxmarkError> {
    setting.validate().map_err(FxmarkError::Setting)?;
    format(&*device, &FormatOptions::default().forced())?;
    measure(&device, setting, options(setting), observer)
}

/// As [`run`], with a journal that is made anew on its medium, and into which files are synced. `force`: what is on the
/// medium is lost; else it has to be empty.
///
/// # Errors
/// [`FxmarkError`].
#[allow(clippy::needless_pass_by_value)] // the file system keeps it
pub fn run_journaled(
    device: PlainArc<dyn BlockDevice>,
    journal: JournalOptions,
    force: bool,
    setting: &Setting,
    observer: &dyn Observer,
) -> Result<Measured, FxmarkError> {
    setting.validate().map_err(FxmarkError::Setting)?;
    format(&*device, &FormatOptions::default().forced())?;
    create_journal(device.clone(), journal.medium.clone(), force).map_err(FxmarkError::volume("make the journal"))?;
    measure(&device, setting, options(setting).journal(journal), observer)
}

/// As [`run`], on a new, empty volume that the caller has made: on several devices, say, or on zones.
///
/// # Errors
/// [`FxmarkError`].
#[allow(clippy::needless_pass_by_value)] // the file system keeps it
pub fn run_formatted(
    device: PlainArc<dyn BlockDevice>,
    setting: &Setting,
    observer: &dyn Observer,
) -> Result<Measured, FxmarkError> {
    setting.validate().map_err(FxmarkError::Setting)?;
    measure(&device, setting, options(setting), observer)
}

/// Measures on a new, empty volume, opened with these options.
fn measure(
    device: &PlainArc<dyn BlockDevice>,
    setting: &Setting,
    options: Options,
    observer: &dyn Observer,
) -> Result<Measured, FxmarkError> {
    let fs = FileSystem::open(device.clone(), options).map_err(FxmarkError::volume("open"))?;
    fs.create_dir(ROOT, 0o755).map_err(FxmarkError::volume("mkdir"))?;
    observer.begin(setting, setting.prepared_files());

    let (before, work) = race(&fs, setting, observer, || ready(&fs, setting))?;
    let after = State::of(&fs);
    let scans = (after.nat.scans - before.1.nat.scans, after.nat.scan_time.saturating_sub(before.1.nat.scan_time));
    let mut measured = Measured::new(setting, before.0, work, scans);
    measured.checkpoints = after.version - before.1.version;
    measured.left(before.1.inodes, after.inodes)?;
    observer.end(&measured);
    fs.close().map_err(FxmarkError::volume("close"))?;
    if setting.verify {
        let report = check(&**device, &CheckOptions::default())?;
        if !report.is_clean() {
            return Err(FxmarkError::Unsound { report: Box::new(report) });
        }
    }
    Ok(measured)
}

/// What a measurement changes.
struct State {
    inodes: i64,
    nat: NatStats,
    version: u64,
}

impl State {
    fn of(fs: &FileSystem) -> State {
        let volume = fs.volume();
        let version = volume.last_checkpoint().version;
        State { inodes: fs.statfs().valid_inodes as i64, nat: volume.nat_stats(), version }
    }
}

/// Nodes and inodes of the files stay in memory, with some of the directories' as well; and no checkpoint comes because
/// of the number of dirty nodes, which is this library's own limit: one in the middle would fill the lists of free
/// NIDs.
fn options(setting: &Setting) -> Options {
    let nodes = setting.files.saturating_mul(9) / 8 + 65_536;
    let cached = NonZeroUsize::MIN.saturating_add(usize::try_from(nodes).unwrap_or(usize::MAX));
    let volume = VolumeOptions::new().nid_policy(setting.policy).node_cache(cached).dirty_nodes(u64::MAX);
    Options::new()
        .volume(volume)
        .directory_lock(setting.directory_lock)
        .inode_cache(cached)
        .page_cache(setting.page_cache)
}

/// All files are there: brings the volume into the state in which the workload begins.
fn ready(fs: &FileSystem, setting: &Setting) -> Result<(Fill, State), FxmarkError> {
    fs.checkpoint().map_err(FxmarkError::volume("checkpoint"))?;
    let volume = fs.volume();
    if let Some(left) = setting.nids_left() {
        fs.hold_nids(left).map_err(FxmarkError::volume("hold NIDs"))?;
    }
    let stat = fs.statfs();
    let fill = Fill {
        nids: stat.max_nodes,
        used_nids: stat.valid_nodes,
        free_nids: volume.allocatable_nids().map_err(FxmarkError::volume("count NIDs"))?,
        cached_nat_entries: volume.nat_stats().cached_entries as u64,
        blocks: stat.valid_blocks as f64 / (stat.user_blocks.max(1)) as f64,
    };
    Ok((fill, State::of(fs)))
}
