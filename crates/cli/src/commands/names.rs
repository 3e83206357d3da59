//! `f2fs mkdir`, `rm`, `mv`, `ln`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use f2fs::{FileKind, FileSystem, FsError, NewFile, RenameMode};

use crate::error::{CliError, Context};
use crate::image::change;

/// Permissions of directories that the command makes.
pub(crate) const DIRECTORY_MODE: u16 = 0o755;

pub(crate) fn mkdir(image: &Path, paths: &[PathBuf], parents: bool) -> Result<(), CliError> {
    change(image, |fs| {
        for path in paths {
            if parents {
                make_all(fs, path)?;
            } else {
                fs.create_dir(path, DIRECTORY_MODE).about(path)?;
            }
        }
        Ok(())
    })
}

/// Makes a directory and those on the way that are missing.
pub(crate) fn make_all(fs: &FileSystem, path: &Path) -> Result<(), CliError> {
    let mut here = PathBuf::new();
    for part in path.components() {
        here.push(part);
        if here.file_name().is_none() {
            continue;
        }
        match fs.create_dir(&here, DIRECTORY_MODE) {
            Ok(_) => {}
            Err(FsError::Exists) if fs.stat(&here).about(&here)?.kind == FileKind::Directory => {}
            Err(error) => return Err(CliError::at(&here, error)),
        }
    }
    Ok(())
}

pub(crate) fn rm(image: &Path, paths: &[PathBuf], recursive: bool) -> Result<(), CliError> {
    change(image, |fs| {
        for path in paths {
            if recursive { fs.remove_all(path) } else { fs.unlink(path) }.about(path)?;
        }
        Ok(())
    })
}

pub(crate) fn mv(image: &Path, from: &Path, to: &Path, no_clobber: bool, exchange: bool) -> Result<(), CliError> {
    let mode = match (no_clobber, exchange) {
        (true, _) => RenameMode::NoReplace,
        (_, true) => RenameMode::Exchange,
        _ => RenameMode::Replace,
    };
    change(image, |fs| {
        // Onto a directory means into it, as mv does.
        let into = mode != RenameMode::Exchange
            && fs.stat(to).is_ok_and(|stat| stat.kind == FileKind::Directory)
            && from.file_name().is_some();
        let target = match from.file_name() {
            Some(name) if into => to.join(name),
            _ => to.to_path_buf(),
        };
        fs.rename(from, &target, mode).about(from)
    })
}

pub(crate) fn ln(image: &Path, target: &Path, path: &Path, symbolic: bool) -> Result<(), CliError> {
    change(image, |fs| {
        if symbolic {
            let new = NewFile::new(FileKind::Symlink, 0o777);
            fs.symlink(target.as_os_str().as_bytes(), path, &new).about(path)?;
            Ok(())
        } else {
            fs.link(target, path).about(path)
        }
    })
}
