//! One measurement, from format to check.

use std::num::NonZeroUsize;

use f2fs::check::{CheckOptions, check};
use f2fs::device::BlockDevice;
use f2fs::sync::PlainArc;
use f2fs::volume::VolumeOptions;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{FileSystem, Options};

use super::error::FxmarkError;
use super::line::StartLine;
use super::measured::{Fill, Measured};
use super::names::ROOT;
use super::observer::Observer;
use super::prepare::prepare;
use super::setting::Setting;
use super::work::{Work, work};

/// The most threads.
const MOST_THREADS: usize = 4096;

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
    validate(setting)?;
    format(&*device, &FormatOptions::default().forced())?;
    run_formatted(device, setting, observer)
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
    validate(setting)?;
    let fs = FileSystem::open(device.clone(), options(setting)).map_err(FxmarkError::volume("open"))?;
    fs.create_dir(ROOT, 0o755).map_err(FxmarkError::volume("mkdir"))?;
    observer.begin(setting, setting.prepared_files());

    let measured = race(&fs, setting, observer)?;
    observer.end(&measured);
    fs.close().map_err(FxmarkError::volume("close"))?;
    if setting.verify {
        let report = check(&*device, &CheckOptions::default())?;
        if !report.is_clean() {
            return Err(FxmarkError::Unsound { report: Box::new(report) });
        }
    }
    Ok(measured)
}

/// Nodes and inodes of the files stay in memory, with some of the directories' as well; and no checkpoint comes because
/// of the number of dirty nodes, which is this library's own limit: one in the middle would fill the lists of free
/// NIDs.
fn options(setting: &Setting) -> Options {
    let nodes = setting.files.saturating_mul(9) / 8 + 65_536;
    let cached = NonZeroUsize::MIN.saturating_add(usize::try_from(nodes).unwrap_or(usize::MAX));
    let volume = VolumeOptions::new().nid_policy(setting.policy).node_cache(cached).dirty_nodes(u64::MAX);
    Options::new().volume(volume).directory_lock(setting.directory_lock).inode_cache(cached)
}

/// Prepares, starts and awaits the workers.
fn race(fs: &FileSystem, setting: &Setting, observer: &dyn Observer) -> Result<Measured, FxmarkError> {
    let line = StartLine::new();
    std::thread::scope(|scope| {
        let mut workers = Vec::with_capacity(setting.threads);
        let mut refused = None;
        for worker in 0..setting.threads {
            let arrival = line.worker();
            let begun = std::thread::Builder::new().name(format!("fxmark-{worker}")).spawn_scoped(scope, move || {
                prepare(fs, setting, worker, observer)?;
                arrival.arrive().then(|| work(fs, setting, worker)).transpose()
            });
            match begun {
                Ok(handle) => workers.push(handle),
                Err(source) => {
                    // Its arrival was dropped with the closure, so nobody waits for it.
                    refused = Some(FxmarkError::Thread { thread: worker, source });
                    break;
                }
            }
        }
        let all = line.all_ready(workers.len() + usize::from(refused.is_some()));
        let ready = if all { ready(fs, setting).map(Some) } else { Ok(None) };
        let inodes = fs.statfs().valid_inodes as i64;
        let before = fs.volume().nat_stats();
        let version = fs.volume().last_checkpoint().version;
        if all && ready.is_ok() {
            observer.start();
        }
        line.release(all && ready.is_ok());
        let ended: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        let after = fs.volume().nat_stats();
        let checkpoints = fs.volume().last_checkpoint().version - version;
        if let Some(refused) = refused {
            return Err(refused);
        }
        let ready = ready?;
        let work: Vec<Option<Work>> = ended.into_iter().collect::<Result<_, _>>()?;
        let Some(fill) = ready else {
            return Err(FxmarkError::Setting("a worker failed without an error"));
        };
        let scans = (after.scans - before.scans, after.scan_time.saturating_sub(before.scan_time));
        let mut measured = Measured::new(setting, fill, work.into_iter().flatten(), scans);
        measured.checkpoints = checkpoints;
        left_their_trace(fs, &measured, inodes)?;
        Ok(measured)
    })
}

/// All files are there: brings the volume into the state in which the workload begins.
fn ready(fs: &FileSystem, setting: &Setting) -> Result<Fill, FxmarkError> {
    fs.checkpoint().map_err(FxmarkError::volume("checkpoint"))?;
    let volume = fs.volume();
    if let Some(left) = setting.nids_left() {
        fs.hold_nids(left).map_err(FxmarkError::volume("hold NIDs"))?;
    }
    let stat = fs.statfs();
    Ok(Fill {
        nids: stat.max_nodes,
        used_nids: stat.valid_nodes,
        free_nids: volume.allocatable_nids().map_err(FxmarkError::volume("count NIDs"))?,
        cached_nat_entries: volume.nat_stats().cached_entries as u64,
        blocks: stat.valid_blocks as f64 / (stat.user_blocks.max(1)) as f64,
    })
}

/// Checks that the count of inodes shows the files that were made or unlinked.
fn left_their_trace(fs: &FileSystem, measured: &Measured, before: i64) -> Result<(), FxmarkError> {
    let (workload, operations) = (measured.setting.workload, measured.operations);
    let expected = before + workload.inodes() * operations as i64;
    let found = fs.statfs().valid_inodes as i64;
    if found == expected && operations == measured.setting.files {
        return Ok(());
    }
    Err(FxmarkError::Inodes { workload, operations, expected, found })
}

/// Whether a setting can be measured at all.
fn validate(setting: &Setting) -> Result<(), FxmarkError> {
    if setting.threads == 0 || setting.threads > MOST_THREADS {
        return Err(FxmarkError::Setting("a measurement needs 1 to 4096 threads"));
    }
    if setting.files == 0 {
        return Err(FxmarkError::Setting("a measurement needs at least one file"));
    }
    Ok(())
}
