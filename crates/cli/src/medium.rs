//! Opening the file or block device below an image, through the kernel or as memory that is mapped. A replacement of
//! this module decides where all images lie: the fuzz targets keep them in memory.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use f2fs::device::{BlockDevice, KeptError, KeptZones};
use f2fs::files::path_from_bytes;
use f2fs::format::feature::Features;
use f2fs::format::superblock::{MAGIC, SuperBlock};
use f2fs::journal::{DeviceMedium, RegionMedium, SharedMedium};
use f2fs::pmem::{MappedRegion, PmemDevice};
use f2fs::uring::{Direct, Engine, Holder, NvmeDevice, OpenError, OpenOptions, UringDevice};
use f2fs::volume::devices::{DevicesError, assemble};
use f2fs::{JournalOptions, JournalRescue};
use f2fs_workload::copy::VolumeFiles;
use f2fs_workload::shell::Quoted;
use rustix::fs::fstat;

use crate::args::journal::JournalChoice;
use crate::closing::once_closed;
use crate::error::CliError;
use crate::image::Access;
use crate::journal_file::JournalFile;

/// The choice on the command line, for the whole run.
static CHOICE: OnceLock<Choice> = OnceLock::new();

/// Where images lie.
#[derive(Debug, Default)]
struct Choice {
    /// `--pmem`.
    pmem: bool,
    /// `--device`, as often as it was given.
    others: Vec<PathBuf>,
    /// `--journal` and its options.
    journal: JournalChoice,
    /// `--page-cache`, in bytes, if it was given.
    page_cache: Option<u64>,
}

/// Takes `--pmem`, `--device`, `--page-cache` and the journal, once, before anything is opened.
pub(crate) fn choose(pmem: bool, others: &[PathBuf], journal: &JournalChoice, page_cache: Option<u64>) {
    // It is called once, so that nothing is there yet.
    let _ = CHOICE.set(Choice { pmem, others: others.to_vec(), journal: journal.clone(), page_cache });
}

/// The journal that the command line names, if this image is opened as a file system.
pub(crate) fn journal(image: &Path, access: Access) -> Result<Option<JournalOptions>, CliError> {
    let Some(path) = journal_path() else { return Ok(None) };
    expect_another(image, path)?;
    let medium = journal_at(path, access != Access::Write)?;
    Ok(Some(JournalOptions::new(medium, choice().journal.journal_mode.into()).rescue(rescue())))
}

/// `--up-to-damage`.
pub(crate) fn rescue() -> JournalRescue {
    JournalRescue::default().up_to_damage(choice().journal.up_to_damage)
}

/// The path of `--journal`, if it is not `none`.
pub(crate) fn journal_path() -> Option<&'static Path> {
    choice().journal.journal.as_deref().filter(|path| *path != Path::new("none"))
}

/// The journal of the command line and its mode, behind the words for a device.
pub(crate) fn journal_shown() -> Option<String> {
    let mode = choice().journal.journal_mode.name();
    journal_path().map(|path| format!(", journal {} ({mode})", Quoted::path(path)))
}

/// `--device`, as often as it was given.
pub(crate) fn others() -> &'static [PathBuf] {
    &choice().others
}

/// `--pmem`.
pub(crate) fn pmem() -> bool {
    choice().pmem
}

/// `--page-cache`, in bytes.
pub(crate) fn page_cache() -> u64 {
    page_cache_or(0)
}

/// The same, or another default.
pub(crate) fn page_cache_or(default: u64) -> u64 {
    choice().page_cache.unwrap_or(default)
}

/// Whether `--page-cache` was given.
pub(crate) fn has_page_cache() -> bool {
    choice().page_cache.is_some()
}

/// `--without-journal`.
pub(crate) fn without_journal() -> bool {
    choice().journal.without_journal
}

/// A journal's medium: a block device through the kernel, a file that is only read by calls, all else as memory that is
/// mapped.
pub(crate) fn journal_at(path: &Path, read_only: bool) -> Result<SharedMedium, CliError> {
    expect_no_output(path)?;
    if path.metadata().is_ok_and(|file| file.file_type().is_block_device()) {
        let device = UringDevice::open(path, OpenOptions::new().read_only(read_only));
        let device = device.map_err(|error| cannot_open(&error))?;
        return Ok(Arc::new(DeviceMedium::new(device).map_err(|error| CliError::at(path, error))?));
    }
    let options = f2fs::pmem::OpenOptions::new().read_only(read_only).touch(!read_only);
    let region = MappedRegion::open(path, options).map_err(|error| cannot_map(&error))?;
    if read_only && path.is_file() {
        let file = File::open(path).map_err(|error| CliError::at(path, reason(path, &error)))?;
        return Ok(JournalFile::medium(file, region));
    }
    Ok(Arc::new(RegionMedium::new(region)))
}

fn choice() -> &'static Choice {
    CHOICE.get_or_init(Choice::default)
}

/// Whether an image is mapped: because the command line says so, or because it is a character device and no NVMe
/// namespace: then it is memory or nothing.
fn is_mapped(image: &Path) -> bool {
    let character = || image.metadata().is_ok_and(|file| file.file_type().is_char_device());
    choice().pmem || (character() && !NvmeDevice::is_at(image))
}

/// Opens an image that exists. If `f2fs zones` made the file, it has the zones that the file keeps.
pub(crate) fn open(image: &Path, read_only: bool, how: OpenOptions) -> Result<Arc<dyn BlockDevice>, CliError> {
    let device = open_plain(image, read_only, how)?;
    // A volume that is not zoned has all of its file: what its last block says is some user's.
    if is_zoned(&*device) == Some(false) { Ok(device) } else { with_zones(image, device) }
}

/// Gives a file the zones that it keeps, if it keeps any.
fn with_zones(image: &Path, device: Arc<dyn BlockDevice>) -> Result<Arc<dyn BlockDevice>, CliError> {
    let failed = |error: KeptError| CliError::at(image, error);
    if image.is_file() && KeptZones::are_on(&device).map_err(|error| CliError::at(image, error))? {
        return Ok(Arc::new(KeptZones::open(device).map_err(failed)?));
    }
    Ok(device)
}

/// Whether the volume on a device is zoned; `None` if there is no superblock.
fn is_zoned(device: &dyn BlockDevice) -> Option<bool> {
    let copy = |block| device.read(block, 1).ok()?.as_blocks().first().map(|block| SuperBlock::read(&block.0));
    let found = [0, 1].into_iter().filter_map(copy).find(|superblock| superblock.magic.get() == MAGIC)?;
    Some(Features(found.feature.get()).contains(Features::BLKZONED))
}

/// Opens an image that is there, for its blocks alone; `how` is for one that is not mapped.
pub(crate) fn open_plain(image: &Path, read_only: bool, how: OpenOptions) -> Result<Arc<dyn BlockDevice>, CliError> {
    expect_no_output(image)?;
    if is_mapped(image) {
        let options = f2fs::pmem::OpenOptions::new().read_only(read_only);
        return Ok(PmemDevice::open(image, options).map_err(|error| cannot_map(&error))?);
    }
    once_closed(image, || f2fs::uring::open(image, how.read_only(read_only))).map_err(|error| cannot_open(&error))
}

/// Makes a file of so many bytes, and opens it.
pub(crate) fn create(image: &Path, bytes: u64) -> Result<Arc<dyn BlockDevice>, CliError> {
    if image.is_symlink() && image.metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Err(CliError::at(image, "is a symbolic link, and what it leads to is missing"));
    }
    if !is_mapped(image) {
        let device = UringDevice::create(image, bytes, OpenOptions::new()).map_err(|error| cannot_open(&error))?;
        return Ok(device);
    }
    let made = File::create_new(image).map_err(|error| CliError::at(image, reason(image, &error)))?;
    let opened = made.set_len(bytes).map_err(|error| CliError::at(image, reason(image, &error)));
    opened.and_then(|()| open(image, false, OpenOptions::new())).inspect_err(|_| {
        // It was made here a moment ago.
        let _ = std::fs::remove_file(image);
    })
}

/// The devices of a volume that is there, as one. Where no superblock says which they are, the first alone.
fn open_volume(image: &Path, read_only: bool, how: &OpenOptions) -> Result<Arc<dyn BlockDevice>, CliError> {
    let first = open(image, read_only, *how)?;
    let others = &choice().others;
    each_once(image)?;
    // The other devices have no superblock: the first one's says what their last blocks are.
    let open_other = if is_zoned(&*first) == Some(true) { open } else { open_plain };
    let mut names = Vec::new();
    let assembled = assemble(Arc::clone(&first), others.len(), |index, device| {
        names.push(path_from_bytes(&device.path).file_name().map(OsStr::to_owned));
        open_other(&others[index - 1], read_only, *how)
    });
    match assembled {
        Ok(device) => {
            expect_order(image, others, &names)?;
            Ok(device)
        }
        Err(DevicesError::Volume(_)) => Ok(first),
        Err(DevicesError::Open { source, .. }) => Err(source),
        Err(DevicesError::Count { recorded, .. }) if others.is_empty() && !recorded.is_empty() => {
            let words =
                recorded.iter().flat_map(|path| ["--device".into(), Quoted::path(path_from_bytes(path)).to_string()]);
            let words: Vec<String> = words.collect();
            let count = recorded.len() + 1;
            Err(CliError::at(
                image,
                format_args!(
                    "the volume lies on {count} devices; when it was made the others were: {}",
                    words.join(" ")
                ),
            ))
        }
        Err(error) => Err(CliError::at(image, error)),
    }
}

/// Refuses files that have the names of each other: they hold nothing but data, so nothing else says that they are in
/// another order than when the volume was made. The kernel names block devices anew each time, so these may.
fn expect_order(image: &Path, others: &[PathBuf], recorded: &[Option<OsString>]) -> Result<(), CliError> {
    let place = |name: &OsStr| {
        let mut places = recorded.iter().enumerate().filter(|(_, one)| one.as_deref() == Some(name));
        let first = places.next().map(|(at, _)| at);
        first.filter(|_| places.next().is_none())
    };
    for (at, other) in others.iter().enumerate().filter(|(_, other)| other.is_file()) {
        let Some(made) = other.file_name().and_then(place).filter(|made| *made != at) else { continue };
        let (number, made) = (at + 2, made + 2);
        let what = format!("is given as device {number} of {}, and was made as device {made}", Quoted::path(image));
        return Err(CliError::at(other, what));
    }
    Ok(())
}

/// The image and the devices of `--device` are different ones.
fn each_once(image: &Path) -> Result<(), CliError> {
    let paths = std::iter::once(image).chain(choice().others.iter().map(PathBuf::as_path));
    f2fs::uring::each_once(paths).map_err(|error| cannot_open(&error))
}

/// All devices that the command line names, for a new volume.
pub(crate) fn whole(image: &Path) -> Result<Arc<dyn BlockDevice>, CliError> {
    whole_with(image, open(image, false, OpenOptions::new())?)
}

/// The same with another device in the place of the first.
pub(crate) fn whole_with(image: &Path, first: Arc<dyn BlockDevice>) -> Result<Arc<dyn BlockDevice>, CliError> {
    let others = &choice().others;
    if others.is_empty() {
        return Ok(first);
    }
    each_once(image)?;
    let mut devices = vec![first];
    for other in others {
        devices.push(open(other, false, OpenOptions::new())?);
    }
    Ok(Arc::new(f2fs::volume::devices::whole(devices).map_err(CliError::new)?))
}

fn cannot_map(error: &f2fs::pmem::OpenError) -> CliError {
    match error {
        f2fs::pmem::OpenError::Io { path, source, .. } => CliError::at(path, reason(path, source)),
        f2fs::pmem::OpenError::NotMemory { path, kind } if !choice().pmem => CliError::at(
            path,
            format_args!(
                "is a {kind}, not a regular file, a block device, an NVMe namespace (/dev/ng*) or persistent memory \
                 (/dev/dax*)"
            ),
        ),
        f2fs::pmem::OpenError::AlreadyOpen { path } => match Holder::of(path) {
            Some(holder) => CliError::at(path, format_args!("in use by {holder}")),
            None => CliError::new(error),
        },
        other => CliError::new(other),
    }
}

/// Refuses an image as its own journal.
pub(crate) fn expect_another(image: &Path, journal: &Path) -> Result<(), CliError> {
    match is_same(image, journal) {
        true => Err(CliError::at(journal, "is the image itself, and cannot be its journal")),
        false => Ok(()),
    }
}

/// Refuses what the output of this command goes to: that would be written over it.
fn expect_no_output(path: &Path) -> Result<(), CliError> {
    let is_kept = |file: &Metadata| file.is_file() || file.file_type().is_block_device();
    let Some(found) = path.metadata().ok().filter(is_kept) else { return Ok(()) };
    match fstat(io::stdout()) {
        Ok(output) if (output.st_dev, output.st_ino) == (found.dev(), found.ino()) => {
            Err(CliError::at(path, "is the standard output of this command, which would write over it"))
        }
        _ => Ok(()),
    }
}

/// All that a volume lies on.
pub(crate) fn volume_files(image: &Path) -> VolumeFiles {
    let others = choice().others.iter().map(PathBuf::as_path);
    VolumeFiles::at([image].into_iter().chain(others).chain(journal_path()))
}

/// Whether both paths lead to one file.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    identity(one).is_some_and(|found| Some(found) == identity(other))
}

/// The device below an image.
///
/// A check reads an image file through the page cache, which mostly has it: it was made, copied or checked shortly
/// before. A block device has nothing there, because the kernel drops it with the last close, and F2FS does not use it.
pub(crate) fn device(image: &Path, access: Access) -> Result<Arc<dyn BlockDevice>, CliError> {
    let cached = matches!(access, Access::Check | Access::Repair) && image.is_file();
    let options = OpenOptions::new().direct(if cached { Direct::Off } else { Direct::Auto });
    open_volume(image, !matches!(access, Access::Write | Access::Repair), &options)
}

/// The same for a command that reads or writes everything once: through the page cache, whose read-ahead and write-back
/// make up for files that are smaller than a transfer.
pub(crate) fn open_to_copy(image: &Path, access: Access) -> Result<Arc<dyn BlockDevice>, CliError> {
    let options = OpenOptions::new().direct(Direct::Off).engine(Engine::Syscalls);
    open_volume(image, access != Access::Write, &options)
}

/// Why a file or device could not be opened or made, in words that help the user.
pub(crate) fn cannot_open(error: &OpenError) -> CliError {
    match error {
        OpenError::Io { path, source, .. } => CliError::at(path, reason(path, source)),
        other => {
            let text = other.to_string();
            let path = format!("{}: ", other.path().display());
            CliError::at(other.path(), text.strip_prefix(&path).unwrap_or(&text))
        }
    }
}

pub(crate) fn reason(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file or device".into(),
        ErrorKind::PermissionDenied => {
            let is_device = path.metadata().is_ok_and(|file| file.file_type().is_block_device());
            let who =
                if is_device { "a block device belongs to root and to its group" } else { "see its owner and mode" };
            format!("permission denied: {who}")
        }
        ErrorKind::ReadOnlyFilesystem => "lies on a file system that is mounted for reading only".into(),
        _ => error.to_string(),
    }
}
