//! Opening the file or block device below an image. What replaces this module decides where all images lie: the fuzz targets keep
//! them in memory.

use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use f2fs::device::BlockDevice;
use f2fs::uring::{Direct, Engine, OpenError, UringDevice};

use crate::error::CliError;
use crate::image::Access;

/// The device below an image.
///
/// A check reads an image file through the page cache, which mostly has it: it was made, copied or checked shortly before. A
/// block device has nothing there, because the kernel drops it with the last close, and F2FS does not use it.
pub(crate) fn device(image: &Path, access: Access) -> Result<Arc<dyn BlockDevice>, CliError> {
    let cached = matches!(access, Access::Check | Access::Repair) && image.is_file();
    let options = f2fs::uring::OpenOptions::new()
        .read_only(!matches!(access, Access::Write | Access::Repair))
        .direct(if cached { Direct::Off } else { Direct::Auto });
    let device = UringDevice::open(image, options).map_err(|error| cannot_open(&error))?;
    Ok(device)
}

/// The same for one who reads or writes everything once: through the page cache, whose read-ahead and write-back make up for files
/// that are smaller than a transfer.
pub(crate) fn open_to_copy(image: &Path, access: Access) -> Result<Arc<dyn BlockDevice>, CliError> {
    let options =
        f2fs::uring::OpenOptions::new().read_only(access != Access::Write).direct(Direct::Off).engine(Engine::Syscalls);
    let device = UringDevice::open(image, options).map_err(|error| cannot_open(&error))?;
    Ok(device)
}

/// Why a file or device could not be opened or made, as who runs the command can help it.
pub(crate) fn cannot_open(error: &OpenError) -> CliError {
    match error {
        OpenError::Io { path, source, .. } => CliError::at(path, reason(path, source)),
        other => CliError::new(other),
    }
}

fn reason(path: &Path, error: &io::Error) -> String {
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
