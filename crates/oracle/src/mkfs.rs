//! Volumes made by `mkfs.f2fs`.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

use crate::{OracleError, process};

/// The Debian package of all the tools used here.
pub(crate) const PACKAGE: &str = "f2fs-tools";

/// Runs `mkfs.f2fs -f ARGS PATH` on an existing file or device and returns its output.
///
/// # Errors
///
/// [`OracleError::Refused`] when the tool ends with another status than 0, and what [`fsck`](crate::fsck) gives.
pub fn mkfs(path: impl AsRef<Path>, args: &[&str]) -> Result<String, OracleError> {
    let mut all: Vec<&OsStr> = vec!["-f".as_ref()];
    all.extend(args.iter().map(|arg| OsStr::new(*arg)));
    all.push(path.as_ref().as_os_str());
    let finished = process::run("mkfs.f2fs", PACKAGE, &all)?;
    if finished.status.success() {
        return Ok(finished.output);
    }
    let status = finished.status.to_string();
    Err(OracleError::Refused { tool: "mkfs.f2fs", status, output: finished.output })
}

/// Creates `path` again as a sparse file of `bytes` bytes and runs [`mkfs`] on it.
///
/// # Errors
///
/// [`OracleError::Create`], and what [`mkfs`] gives.
pub fn mkfs_sized(path: impl AsRef<Path>, bytes: u64, args: &[&str]) -> Result<String, OracleError> {
    let path = path.as_ref();
    File::create(path).and_then(|file| file.set_len(bytes)).map_err(|source| OracleError::Create {
        path: path.to_owned(),
        bytes,
        source,
    })?;
    mkfs(path, args)
}
