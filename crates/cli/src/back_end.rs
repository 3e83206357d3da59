//! Which device an image is opened as: a file or block device through the kernel, or memory that is mapped.

use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use f2fs::device::BlockDevice;
use f2fs::pmem::{OpenError, PmemDevice};
use f2fs::uring::{OpenOptions, UringDevice};

use crate::error::CliError;
use crate::image::{cannot_open, reason};

/// What the command line says, for the whole run.
static PMEM: OnceLock<bool> = OnceLock::new();

/// Takes `--pmem`, once, before anything is opened.
pub(crate) fn choose(pmem: bool) {
    // It is called once, so that nothing is there yet.
    let _ = PMEM.set(pmem);
}

/// Whether an image is mapped: because the command line says so, or because it is a character device, which is memory or nothing.
fn is_mapped(image: &Path) -> bool {
    let character = || image.metadata().is_ok_and(|file| file.file_type().is_char_device());
    PMEM.get().copied().unwrap_or(false) || character()
}

/// Opens an image that is there; `how` is for one that is not mapped.
pub(crate) fn open(image: &Path, read_only: bool, how: OpenOptions) -> Result<Arc<dyn BlockDevice>, CliError> {
    if is_mapped(image) {
        let options = f2fs::pmem::OpenOptions::new().read_only(read_only);
        return Ok(PmemDevice::open(image, options).map_err(|error| cannot_map(&error))?);
    }
    Ok(UringDevice::open(image, how.read_only(read_only)).map_err(|error| cannot_open(&error))?)
}

/// Makes a file of so many bytes, and opens it.
pub(crate) fn create(image: &Path, bytes: u64) -> Result<Arc<dyn BlockDevice>, CliError> {
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

fn cannot_map(error: &OpenError) -> CliError {
    match error {
        OpenError::Io { path, source, .. } => CliError::at(path, reason(path, source)),
        other => CliError::new(other),
    }
}
