//! Opening what the command works on.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use f2fs::device::BlockDevice;
use f2fs::uring::{Direct, Engine};
use f2fs::{FileSystem, FsError, Options, RecoveryReport};

use crate::args::View;
use crate::error::{CliError, Context};

/// What is done with an image.
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

/// The device below an image.
///
/// A check reads an image file through the page cache, which mostly has it: it was made, copied or checked shortly before. A
/// block device has nothing there, because the kernel drops it with the last close, and F2FS does not use it.
pub(crate) fn device(image: &Path, access: Access) -> Result<Arc<dyn BlockDevice>, CliError> {
    let cached = matches!(access, Access::Check | Access::Repair) && image.is_file();
    let options = f2fs::uring::OpenOptions::new()
        .read_only(!matches!(access, Access::Write | Access::Repair))
        .direct(if cached { Direct::Off } else { Direct::Auto });
    let device = f2fs::uring::UringDevice::open(image, options).map_err(CliError::new)?;
    Ok(device)
}

/// Memory that copying may use for caches; see [`open_to_copy`].
const COPY_NODES: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// The file system of an image.
pub(crate) fn open(image: &Path, access: Access) -> Result<FileSystem, CliError> {
    open_on(image, access, device(image, access)?, Options::new())
}

/// The file system of an image of which everything is read or written once: its caches are small, some 30 MiB, and the transfers
/// go through the page cache, whose read-ahead and write-back make up for files that are smaller than a transfer.
pub(crate) fn open_to_copy(image: &Path, access: Access) -> Result<FileSystem, CliError> {
    let options =
        f2fs::uring::OpenOptions::new().read_only(access != Access::Write).direct(Direct::Off).engine(Engine::Syscalls);
    let device = f2fs::uring::UringDevice::open(image, options).map_err(CliError::new)?;
    let volume = f2fs::volume::OpenOptions::new().node_cache(COPY_NODES).dirty_nodes(2 * COPY_NODES.get() as u64);
    let caches = Options::new().volume(volume).inode_cache(COPY_NODES).dentry_cache(COPY_NODES);
    open_on(image, access, device, caches.address_cache(4 << 20).lock_memory(4 << 20))
}

fn open_on(
    image: &Path,
    access: Access,
    device: Arc<dyn BlockDevice>,
    mut options: Options,
) -> Result<FileSystem, CliError> {
    options.volume = options.volume.read_only(access != Access::Write).recovery(access != Access::ReadCheckpoint);
    let fs = match FileSystem::open(device, options) {
        Err(error @ FsError::Recovery(_)) => {
            return Err(CliError::at(image, format_args!("{error} (--no-recovery shows the checkpoint)")));
        }
        opened => opened.about(image)?,
    };
    let recovered = fs.recovered();
    if recovered.files != 0 {
        let RecoveryReport { files, new_files, .. } = recovered;
        let fate = if access == Access::Write { "recovered" } else { "shown as they will be recovered" };
        eprintln!(
            "f2fs: {}: {files} files synced after the last checkpoint are {fate}, {new_files} of them new",
            image.display()
        );
    }
    if let Some(damage) = &fs.volume().damage().superblock {
        eprintln!("f2fs: {}: the other superblock is damaged: {damage}", image.display());
    }
    if let Some(damage) = &fs.volume().damage().pack {
        eprintln!("f2fs: {}: the other checkpoint pack is damaged: {damage}", image.display());
    }
    Ok(fs)
}

/// Opens an image, changes it, and closes it cleanly, also when the change failed half-way: what was done until then is kept.
pub(crate) fn change(image: &Path, change: impl FnOnce(&FileSystem) -> Result<(), CliError>) -> Result<(), CliError> {
    close_after(image, &open(image, Access::Write)?, change)
}

/// Changes a file system, and closes it cleanly, also when the change failed half-way.
pub(crate) fn close_after(
    image: &Path,
    fs: &FileSystem,
    change: impl FnOnce(&FileSystem) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let result = change(fs);
    let closed = fs.close().about(image);
    result.and(closed)
}
