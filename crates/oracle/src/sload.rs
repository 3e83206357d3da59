//! Volumes filled by `sload.f2fs`.

use std::ffi::OsStr;
use std::path::Path;

use crate::mkfs::PACKAGE;
use crate::{OracleError, process};

/// Copies a host directory into an existing volume with `sload.f2fs -f DIRECTORY PATH` and returns its output. Takes
/// directories, regular files, hard links, symbolic links and special files along; neither owners nor attributes.
///
/// # Errors
///
/// [`OracleError::Refused`] when the tool ends with another status than 0, and what [`fsck`](crate::fsck) gives.
pub fn sload(path: impl AsRef<Path>, directory: impl AsRef<Path>) -> Result<String, OracleError> {
    let args: [&OsStr; 3] = ["-f".as_ref(), directory.as_ref().as_os_str(), path.as_ref().as_os_str()];
    let finished = process::run("sload.f2fs", PACKAGE, &args)?;
    if finished.status.success() {
        return Ok(finished.output);
    }
    let status = finished.status.to_string();
    Err(OracleError::Refused { tool: "sload.f2fs", status, output: finished.output })
}
