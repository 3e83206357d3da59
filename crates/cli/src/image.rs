//! Opening what the command works on.

use std::path::Path;
use std::sync::Arc;

use f2fs::device::BlockDevice;
use f2fs::{FileSystem, Options};

use crate::error::{CliError, Context};

/// What is done with an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The device below an image.
pub(crate) fn device(image: &Path, access: Access) -> Result<Arc<dyn BlockDevice>, CliError> {
    let options = f2fs::uring::OpenOptions::new().read_only(access == Access::Read);
    let device = f2fs::uring::UringDevice::open(image, options).map_err(CliError::new)?;
    Ok(device)
}

/// The file system of an image.
pub(crate) fn open(image: &Path, access: Access) -> Result<FileSystem, CliError> {
    let options = Options::new().read_only(access == Access::Read);
    let fs = FileSystem::open(device(image, access)?, options).about(image)?;
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
