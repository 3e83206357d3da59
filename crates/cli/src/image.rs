//! Opening the volume that the command works on.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use f2fs::device::BlockDevice;
use f2fs::volume::VolumeOptions;
use f2fs::volume::format::{Signature, recognise};
use f2fs::{
    FileSystem, FsError, GivenUp, JournalOptions, JournalTrouble, Options, PassedOver, RecoveryReport, Time,
    VolumeError,
};
use f2fs_workload::shell::Quoted;

use crate::args::View;
use crate::error::{CliError, say};
use crate::interrupt::guarded;
use crate::medium;

pub(crate) use crate::medium::device;

/// How an image is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// With what was synced after the last checkpoint, in memory.
    Read,
    /// The last checkpoint as it is.
    ReadCheckpoint,
    Write,
    /// The metadata in turn, without changing it.
    Check,
    /// The same, to put it right.
    Repair,
}

impl From<View> for Access {
    fn from(view: View) -> Access {
        if view.no_recovery { Access::ReadCheckpoint } else { Access::Read }
    }
}

/// The content of a device without a good superblock, in words: another file system, only zeros. `None` if it is not
/// known.
pub(crate) fn foreign(device: &dyn BlockDevice) -> Option<String> {
    /// Blocks at the front that are looked at: 1 MiB.
    const FRONT: u64 = 256;
    match recognise(device) {
        Ok(Some(Signature::F2fs { .. })) | Err(_) => None,
        Ok(Some(other)) => Some(format!("holds {other}, not an F2FS volume")),
        Ok(None) => {
            let front = device.read(0, FRONT.min(device.info().blocks) as usize).ok()?;
            let zeros = front.as_bytes().iter().all(|byte| *byte == 0);
            let what = if zeros {
                "it begins with zeros only; `f2fs format` makes a volume"
            } else {
                "neither superblock has its magic number"
            };
            Some(format!("is not an F2FS volume: {what}"))
        }
    }
}

/// Memory that copying may use for caches; see [`open_to_copy`].
const COPY_NODES: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// The file system of an image.
pub(crate) fn open(image: &Path, access: Access) -> Result<FileSystem, CliError> {
    open_with(image, access, medium::journal(image, access)?)
}

/// The file system of an image that is mounted, with these options and this clock.
pub(crate) fn open_to_mount(
    image: &Path,
    access: Access,
    options: Options,
    clock: fn() -> Time,
) -> Result<FileSystem, CliError> {
    let options = options.clock(clock);
    open_on(image, access, &device(image, access)?, options, medium::journal(image, access)?)
}

/// The same with this journal, whatever the command line says.
pub(crate) fn open_with(image: &Path, access: Access, journal: Option<JournalOptions>) -> Result<FileSystem, CliError> {
    open_on(image, access, &device(image, access)?, Options::new(), journal)
}

/// The file system of an image to look at every inode of it once: none is kept. The blocks of directories are, since names
/// are looked up in any order. Reads go through the page cache: inodes that were made together lie side by side, and its
/// read-ahead brings them at once.
pub(crate) fn open_to_list(image: &Path, access: Access) -> Result<FileSystem, CliError> {
    let device = medium::open_to_copy(image, access)?;
    let options = Options::new().volume(VolumeOptions::new().node_cache(COPY_NODES)).inode_cache(COPY_NODES);
    open_on(image, access, &device, options, medium::journal(image, access)?)
}

/// The file system of an image of which everything is read or written once: its caches are small, some 30 MiB, and the
/// transfers go through the page cache, whose read-ahead and write-back make up for files that are smaller than a
/// transfer.
pub(crate) fn open_to_copy(image: &Path, access: Access) -> Result<FileSystem, CliError> {
    let device = medium::open_to_copy(image, access)?;
    let volume = VolumeOptions::new().node_cache(COPY_NODES).dirty_nodes(2 * COPY_NODES.get() as u64);
    let caches = Options::new().volume(volume).inode_cache(COPY_NODES).dentry_cache(COPY_NODES);
    open_on(image, access, &device, caches.address_cache(4 << 20).lock_memory(4 << 20), medium::journal(image, access)?)
}

/// The identity of the journal that a volume was left with by a crash: files were synced into it. `None` also where the
/// root cannot be read; then a journal cannot be brought back either.
pub(crate) fn journal_left(image: &Path) -> Option<String> {
    let options = Options::new().volume(VolumeOptions::new().read_only(true).recovery(false));
    FileSystem::open(device(image, Access::Check).ok()?, options).ok()?.missing_journal().ok()?
}

/// The files that were synced after the last checkpoint of a volume.
pub(crate) enum SyncedSince {
    /// So many.
    Files(u64),
    /// They contradict the checkpoint, or each other.
    Damaged(FsError),
    /// Nobody knows: the volume does not open.
    Unknown,
}

/// Brings them back in memory. Nothing is printed.
pub(crate) fn synced_since(image: &Path) -> SyncedSince {
    device(image, Access::Check).map_or(SyncedSince::Unknown, |device| synced_on(&device))
}

/// The same of a volume on this device.
pub(crate) fn synced_on(device: &Arc<dyn BlockDevice>) -> SyncedSince {
    let open = |recovery| {
        let mut options = Options::new().volume(VolumeOptions::new().read_only(true).recovery(recovery));
        options.without_journal = medium::without_journal();
        FileSystem::open(Arc::clone(device), options)
    };
    match open(true) {
        Ok(fs) => SyncedSince::Files(fs.recovered().files),
        Err(error) if open(false).is_ok() => SyncedSince::Damaged(error),
        Err(_) => SyncedSince::Unknown,
    }
}

/// The ways out where a journal is damaged.
pub(crate) const OF_DAMAGE: &str = "--up-to-damage brings back those in front, and gives up those behind; \
                                    --without-journal, with no --journal, gives up all";

fn open_on(
    image: &Path,
    access: Access,
    device: &Arc<dyn BlockDevice>,
    mut options: Options,
    journal: Option<JournalOptions>,
) -> Result<FileSystem, CliError> {
    options.journal = journal.filter(|_| access != Access::ReadCheckpoint);
    options.without_journal = medium::without_journal();
    options.page_cache = medium::page_cache();
    options.volume =
        options.volume.read_only(access != Access::Write).recovery(access != Access::ReadCheckpoint).newest_only(true);
    let fs = FileSystem::open(Arc::clone(device), options).map_err(|error| not_opened(image, &**device, error))?;
    let shown = Quoted::path(image);
    let recovered = fs.recovered();
    if recovered.files != 0 {
        let RecoveryReport { files, new_files, .. } = recovered;
        let how = if access == Access::Write { "recovered" } else { "shown as they will be recovered" };
        say(format_args!("{shown}: {files} files synced after the last checkpoint are {how}, {new_files} of them new"));
    }
    tell_left_out(image, &fs);
    // Where it cannot be read, whatever is done with the root says so.
    if access == Access::Read
        && let Ok(Some(journal)) = fs.missing_journal()
    {
        say(format_args!("{shown}: what was synced into the journal {journal} is not shown: --journal names it"));
    }
    if let Some(damage) = &fs.volume().damage().superblock {
        say(format_args!("{shown}: the other superblock is damaged: {damage}"));
    }
    if let Some(newer) = fs.volume().damage().newer {
        say(format_args!(
            "{shown}: what is shown is older than checkpoint {newer:#x}, which lost its first block: `f2fs check --repair` brings it back"
        ));
    } else if let Some(damage) = &fs.volume().damage().pack {
        say(format_args!("{shown}: the other checkpoint pack is damaged: {damage}"));
    }
    Ok(fs)
}

/// Why the volume of an image does not open, with what helps.
pub(crate) fn not_opened(image: &Path, device: &dyn BlockDevice, error: FsError) -> CliError {
    match &error {
        FsError::Recovery(cause) if matches!(**cause, FsError::SyncedFile { .. }) => CliError::at(
            image,
            format_args!(
                "{error} (`f2fs check --repair --journal` repairs the volume, and brings back all that is whole)"
            ),
        ),
        FsError::Recovery(_) => CliError::at(image, format_args!("{error} (--no-recovery shows the checkpoint)")),
        FsError::OtherJournal { .. } => {
            CliError::at(image, format_args!("{error}: --without-journal gives up the files that were synced into it"))
        }
        FsError::Volume(VolumeError::Journal(JournalTrouble::Journal(of_journal))) => {
            CliError::at(medium::journal_path().unwrap_or(image), of_journal)
        }
        FsError::Volume(VolumeError::Journal(JournalTrouble::Damaged { .. })) => {
            CliError::at(image, format_args!("{error}: {OF_DAMAGE}"))
        }
        FsError::JournalMissing { .. } => CliError::at(
            image,
            format_args!("{error}: --journal names it, --without-journal gives up the files that were synced into it"),
        ),
        FsError::Volume(VolumeError::LostCheckpoint { .. }) => {
            CliError::at(image, format_args!("{error}: `f2fs check --repair` brings it back"))
        }
        FsError::Volume(VolumeError::Truncated { volume, .. }) if image.is_file() => {
            let bytes = volume.saturating_mul(4096);
            let shown = Quoted::path(image);
            CliError::at(
                image,
                format_args!(
                    "{error} (of a copy of it, `truncate -s {bytes} {shown}` makes one with zeros at its end)"
                ),
            )
        }
        FsError::Volume(VolumeError::NoSuperblock { .. }) => match foreign(device) {
            Some(what) => CliError::at(image, what),
            None => CliError::at(image, format_args!("{error} (f2fs inspect shows what is left)")),
        },
        _ => CliError::at(image, error),
    }
}

/// Says what an opening did not bring back of a journal.
pub(crate) fn tell_left_out(image: &Path, fs: &FileSystem) {
    let shown = Quoted::path(image);
    for PassedOver { ino, reason, .. } in fs.passed_over() {
        say(format_args!("{shown}: inode {ino} is not as it was synced into the journal: {reason}"));
    }
    let GivenUp { records, inos, .. } = fs.given_up();
    if *records != 0 {
        let inos: Vec<String> = inos.iter().map(ToString::to_string).collect();
        let inos = inos.join(", ");
        say(format_args!(
            "{shown}: {records} records behind the damage in the journal are given up, of the inodes {inos}"
        ));
    }
}

/// Opens an image, changes it, and closes it cleanly, also when the change failed half-way: what was done until then is
/// kept.
pub(crate) fn change(
    image: &Path,
    change: impl FnOnce(&FileSystem) -> Result<(), CliError> + Send,
) -> Result<(), CliError> {
    change_with(image, || open(image, Access::Write), "", change)
}

/// As [`change`], with caches as for [`open_to_copy`].
pub(crate) fn change_by_copying(
    image: &Path,
    change: impl FnOnce(&FileSystem) -> Result<(), CliError> + Send,
) -> Result<(), CliError> {
    change_with(image, || open_to_copy(image, Access::Write), "; the last files may be incomplete", change)
}

/// Changes a file system, and closes it cleanly, also when the change failed half-way or a signal came. No operation is
/// left half done: closing waits for those on their way, and refuses the others. `unfinished` says what else a signal
/// leaves.
fn change_with(
    image: &Path,
    open: impl FnOnce() -> Result<FileSystem, CliError> + Send,
    unfinished: &str,
    change: impl FnOnce(&FileSystem) -> Result<(), CliError> + Send,
) -> Result<(), CliError> {
    let shown = Quoted::path(image);
    let fs = guarded(open, || format!("{shown} is as it was at its last checkpoint"))??;
    let result = guarded(
        || change(&fs),
        || match fs.close() {
            Ok(()) => format!("{shown} is closed, and holds all changes made until then{unfinished}"),
            Err(error) => format!("{shown} is as it was at its last checkpoint: {error}"),
        },
    )?;
    match (result, fs.close()) {
        (result, Ok(())) => result,
        (Ok(()), Err(error)) => Err(CliError::at(image, error)),
        (Err(first), Err(error)) => {
            first.report();
            let what = format!("is as it was at its last checkpoint, since it could not be closed: {error}");
            Err(CliError::at(image, what))
        }
    }
}
