//! `f2fs mkdir`, `rm`, `mv`, `ln`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use f2fs::{FileKind, FileSystem, FsError, NewFile, RenameMode};
use f2fs_workload::shell::Quoted;

use crate::error::{CliError, Context, Failures};
use crate::image::change;

/// Who calls the command: what it makes belongs to this user and group.
pub(crate) fn caller() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// Something new of the caller's.
pub(crate) fn new(kind: FileKind, permissions: u16) -> NewFile {
    let (uid, gid) = caller();
    NewFile::new(kind, permissions).owner(uid, gid)
}

fn new_directory() -> NewFile {
    new(FileKind::Directory, 0o755)
}

pub(crate) fn mkdir(image: &Path, paths: &[PathBuf], parents: bool) -> Result<(), CliError> {
    each(image, paths, |fs, path| {
        if parents {
            return make_all(fs, path);
        }
        fs.create(path, &new_directory()).about(path).map(|_| ())
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
        match fs.create(&here, &new_directory()) {
            Ok(_) => {}
            Err(FsError::Exists) if fs.metadata(&here).is_ok_and(|stat| stat.kind == FileKind::Directory) => {}
            Err(FsError::Exists) => return Err(CliError::at(&here, "exists, and is not a directory")),
            Err(error) => return Err(CliError::at(&here, error)),
        }
    }
    Ok(())
}

pub(crate) fn rm(image: &Path, paths: &[PathBuf], recursive: bool, force: bool) -> Result<(), CliError> {
    each(image, paths, |fs, path| match if recursive { fs.remove_all(path) } else { fs.remove_file(path) } {
        Err(FsError::NotFound) if force => Ok(()),
        // -r would not remove the root.
        Err(FsError::IsDirectory) if !recursive && path.file_name().is_some() => {
            Err(CliError::at(path, "is a directory (-r removes it)"))
        }
        Err(FsError::NotEmpty) if recursive && path.components().next_back() == Some(Component::ParentDir) => {
            Err(CliError::at(path, "a path that ends in `..` cannot be removed"))
        }
        removed => removed.about(path),
    })
}

pub(crate) fn mv(image: &Path, from: &Path, to: &Path, no_clobber: bool, exchange: bool) -> Result<(), CliError> {
    let mode = match (no_clobber, exchange) {
        (true, _) => RenameMode::NoReplace,
        (_, true) => RenameMode::Exchange,
        _ => RenameMode::Replace,
    };
    change(image, |fs| {
        let target = if mode == RenameMode::Exchange { to.to_path_buf() } else { below(fs, from, to) };
        match fs.rename(from, &target, mode) {
            // Which of the two it is about is not in the error.
            Err(error) if fs.symlink_metadata(from).is_ok() => {
                let (from, to) = (Quoted::path(from), Quoted::path(&target));
                Err(CliError::new(format_args!("{from} to {to}: {error}")))
            }
            renamed => renamed.about(from),
        }
    })
}

pub(crate) fn ln(image: &Path, target: &Path, path: &Path, symbolic: bool) -> Result<(), CliError> {
    change(image, |fs| {
        let path = &*below(fs, target, path);
        if symbolic {
            fs.symlink(target.as_os_str().as_bytes(), path, &new(FileKind::Symlink, 0o777)).about(path)?;
            return Ok(());
        }
        match fs.symlink_metadata(target).about(target)?.kind {
            FileKind::Directory => Err(CliError::at(target, "is a directory, which cannot have another name")),
            _ => fs.link(target, path).about(path),
        }
    })
}

/// `to`, or the name of `from` below it if `to` is a directory, as mv and ln take it.
fn below(fs: &FileSystem, from: &Path, to: &Path) -> PathBuf {
    match from.file_name() {
        Some(name) if fs.metadata(to).is_ok_and(|stat| stat.kind == FileKind::Directory) => to.join(name),
        _ => to.to_path_buf(),
    }
}

/// Changes each path. Failures are reported, and the other paths are changed.
fn each(
    image: &Path,
    paths: &[PathBuf],
    mut act: impl FnMut(&FileSystem, &Path) -> Result<(), CliError> + Send,
) -> Result<(), CliError> {
    change(image, |fs| {
        let mut failures = Failures::default();
        for path in paths {
            failures.note(act(fs, path))?;
        }
        failures.result()
    })
}
