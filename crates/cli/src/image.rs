//! Opening what the command works on.

use std::path::Path;
use std::sync::Arc;

use f2fs::device::BlockDevice;
use f2fs::uring::Direct;
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

/// The file system of an image.
pub(crate) fn open(image: &Path, access: Access) -> Result<FileSystem, CliError> {
    let volume =
        f2fs::volume::OpenOptions::new().read_only(access != Access::Write).recovery(access != Access::ReadCheckpoint);
    let fs = match FileSystem::open(device(image, access)?, Options::new().volume(volume)) {
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
    let fs = open(image, Access::Write)?;
    let result = change(&fs);
    let closed = fs.close().about(image);
    result.and(closed)
}
