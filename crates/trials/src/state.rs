//! One state of a volume, after a crash or a fault, and what is looked at in it.
//!
//! ```text
//!   image -> check -> open (recovers) -> walk -> judge          every state
//!                                                  '-> use -> close -> check -> open, walk, compare      some of them
//! ```

use f2fs_check::{CheckOptions, CheckReport, FindingKind, check};
use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_device_test::RecordingDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_format::BLOCKS_PER_SEGMENT;
use f2fs_format::node::NodeBlock;
use f2fs_sync::Arc;
use f2fs_volume::{Volume, VolumeError, VolumeOptions};

use crate::judge::Expectation;
use crate::op::Op;
use crate::record::{Recording, Source, record_on};
use crate::several;
use crate::tree::{Known, Tree};

/// The verdict of a check on the caller's own pool of threads.
pub(crate) fn verdict(image: &MemoryDevice) -> Result<CheckReport, String> {
    let options = CheckOptions::new().threads(0);
    let recorder = Arc::new(RecordingDevice::new(image.snapshot()));
    check(&*several::laid_out(&recorder)?, &options).map_err(|error| format!("the check gives no verdict: {error}"))
}

/// Whether the check finds nothing that contradicts the last checkpoint. Blocks behind the end of a file are Linux's
/// alone: here a file that was cut is synced by a checkpoint.
pub(crate) fn consistent(image: &MemoryDevice) -> Result<(), String> {
    let report = verdict(image)?;
    if report.is_consistent() && report.complete && !report.has(FindingKind::BehindEnd) {
        Ok(())
    } else {
        Err(format!("the check finds, before anything is opened:\n{report}"))
    }
}

/// A volume that was opened.
pub(crate) struct Opened {
    /// The file system.
    pub(crate) fs: FileSystem,
    /// The version of the checkpoint that it was found at.
    pub(crate) version: u64,
    /// Its contents.
    pub(crate) tree: Tree,
}

/// Opens a volume and reads all of it; `known`: what may be found.
pub(crate) fn open(device: Arc<dyn BlockDevice>, options: Options, known: &Known) -> Result<Opened, String> {
    let fs = FileSystem::open(device, options).map_err(|error| format!("it does not open: {error}"))?;
    // Opening writes checkpoints of what was found: after a roll-forward, with a journal, of orphans on a full volume.
    let version = fs.volume().last_checkpoint().version - fs.statfs().written.checkpoints;
    let tree = Tree::walk_among(&fs, known).map_err(|error| format!("it cannot be read: {error}"))?;
    Ok(Opened { fs, version, tree })
}

/// Checks a state, opens it, and compares it with what may be there.
pub(crate) fn look(image: &MemoryDevice, expectation: &Expectation<'_>) -> Result<(), String> {
    consistent(image)?;
    let recorder = Arc::new(RecordingDevice::new(image.snapshot()));
    let options = several::with_journal(&recorder, &expectation.recording.options)?;
    let opened = open(several::laid_out(&recorder)?, options, expectation.recording.known())?;
    expectation.judge(opened.version, &opened.tree)
}

/// The same, and goes on: a new file, changes of old ones, a file made durable, a close; then it is checked and
/// compared again. Gives the recording of the recovery and the use, and the state afterwards. `depth`: crashes before.
pub(crate) fn look_and_use(
    image: &MemoryDevice,
    expectation: &Expectation<'_>,
    depth: u64,
) -> Result<(Recording, MemoryDevice), String> {
    consistent(image)?;
    let options = &expectation.recording.options;
    let device = Arc::new(RecordingDevice::new(image.snapshot()));
    let with_journal = several::with_journal(&device, options)?;
    let Opened { fs, version, tree } = open(several::laid_out(&device)?, with_journal, expectation.recording.known())?;
    expectation.judge(version, &tree)?;

    let timeless = expectation.recording.timeless;
    let mut ops = after_crash(depth).into_iter().filter(|op| !(timeless && matches!(op, Op::SetTimes(..))));
    let source: Source<'_> = Box::new(move |tree| ops.find(|op| op.fits(tree)));
    let mut recording = record_on(&device, &fs, &tree, 0x5eed << 20, &mut [("/".to_owned(), source)], true)
        .map_err(|error| format!("used after the crash: {error}"))?;
    (recording.options, recording.timeless) = (options.clone(), timeless);
    drop(fs);
    let after = device.snapshot();
    let report = verdict(&after)?;
    if !report.is_clean() {
        return Err(format!("the check finds, after it was used and closed:\n{report}"));
    }
    let last = recording.lanes[0].history(recording.lanes[0].steps.len());
    let closed = Arc::new(RecordingDevice::new(after.snapshot()));
    let with_journal = several::with_journal(&closed, options)?;
    let found = open(several::laid_out(&closed)?, with_journal.read_only(true), recording.known())
        .map_err(|error| format!("used and closed: {error}"))?
        .tree;
    if found != *last {
        return Err(format!("used and closed, it holds something else:\n{}", found.difference(last)));
    }
    Ok((recording, after))
}

fn after_crash(depth: u64) -> Vec<Op> {
    let new = format!("/after-{depth}");
    vec![
        Op::Create(new.clone()),
        Op::Write(new.clone(), 0, 5000),
        Op::Write("/A/foo".into(), 1000, 9000),
        Op::Rename("/B/baz".into(), format!("/A/moved-{depth}")),
        Op::Sync(new.clone()),
        Op::Unlink("/A/bar".into()),
        Op::Truncate(new.clone(), 100),
        Op::SetMode(new.clone(), 0o640),
        Op::SetTimes(new.clone(), 86_400),
        // The first sync after an opening is a checkpoint; this one is not.
        Op::Sync(new),
    ]
}

/// The verdict of fsck.f2fs on a state; `closed`: it must find nothing at all.
pub(crate) fn judged_by_fsck(image: &MemoryDevice, closed: bool) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let first = several::save(image, directory.path())?;
    let report = f2fs_oracle::fsck(first).map_err(|error| error.to_string())?;
    let good = if closed { report.is_clean() } else { report.is_accepted() };
    if good || !closed && chain_leaves_fsck_behind(image)? {
        return Ok(());
    }
    Err(format!("fsck.f2fs finds{}:\n{report}", if closed { " after the use" } else { "" }))
}

/// Whether synced nodes stand, or name blocks, where fsck.f2fs 1.15 takes the volume to have ended. Following a chain
/// it counts the segments of the main area from the first segment of the metadata on (`MAX_BLKADDR`), and gives up at
/// what lies behind.
fn chain_leaves_fsck_behind(image: &MemoryDevice) -> Result<bool, String> {
    let options = VolumeOptions::new().read_only(true).recovery(false);
    let device = several::laid_out(&Arc::new(RecordingDevice::new(image.snapshot())))?;
    let volume = Volume::open(device, &options).map_err(|error| error.to_string())?;
    let (geometry, features) = (volume.geometry(), volume.features());
    let end = geometry.segment0_blkaddr.offset(geometry.main_segments * BLOCKS_PER_SEGMENT);
    for synced in volume.recovery().synced_nodes().map_err(|error: VolumeError| error.to_string())? {
        let node = *NodeBlock::read(&image.block(u64::from(synced.addr.0)).0);
        let mut named = node.addresses(features);
        if synced.addr >= end || named.any(|addr| addr.is_real() && addr >= end) {
            return Ok(true);
        }
    }
    Ok(false)
}
