//! `f2fs put` and `f2fs get`: the trees themselves are moved by `f2fs_workload::copy`.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use f2fs::FileKind;
use f2fs_workload::copy::{CopyEvent, CopyOptions, CopyProgress, Watch, copy_in, copy_in_open, copy_out};
use f2fs_workload::shell::Quoted;
use rustix::fs::{OFlags, fcntl_getfl, fstat, stat};

use crate::commands::{names, show};
use crate::error::{CliError, Context, say, say_one_of_many};
use crate::image::{Access, change_by_copying, open_to_copy};
use crate::interrupt::{guarded, is_stopping};
use crate::{medium, progress};

pub(crate) fn put(image: &Path, paths: &[PathBuf], options: &CopyOptions) -> Result<(), CliError> {
    let (sources, last) = split(paths)?;
    change_by_copying(image, |fs| {
        let exists = fs.metadata(last).is_ok_and(|stat| stat.kind == FileKind::Directory);
        each(sources, last, exists, |source, target, tell| {
            if source == Path::new("-") {
                if exists {
                    return Err(CliError::at(last, "is a directory; standard input has no name to be stored under"));
                }
                // What is left of it, by this descriptor: its file may be another user's.
                let name = Path::new("/dev/stdin");
                let input = std::io::stdin().as_fd().try_clone_to_owned().map_err(|error| CliError::at(name, error))?;
                if was_closed(&input) {
                    return Err(CliError::at(name, "is closed; `< /dev/null` makes an empty file"));
                }
                let (input, new) = (File::from(input), names::new(FileKind::Regular, 0o644));
                if medium::volume_files(image).has_open(&input) {
                    return Err(CliError::at(name, "the volume itself lies on it"));
                }
                return copy_in_open(fs, input, name, last, new, tell).map_err(CliError::new);
            }
            // One directory is merged into the other; anything else goes into a directory under its own name.
            let into = exists && (sources.len() > 1 || !source.is_dir());
            copy_in(fs, source, if into { target } else { last }, options, tell).map_err(CliError::new)
        })
    })
}

pub(crate) fn get(image: &Path, access: Access, paths: &[PathBuf], options: &CopyOptions) -> Result<(), CliError> {
    let (sources, last) = split(paths)?;
    let fs = open_to_copy(image, access)?;
    if last == Path::new("-") {
        return sources.iter().try_for_each(|source| show::print(&fs, source));
    }
    let copy = |source: &Path, target: &Path, tell: Watch<'_>| {
        let stat = fs.symlink_metadata(source).about(source)?;
        let into = last.is_dir() && (sources.len() > 1 || stat.kind != FileKind::Directory);
        let target = if into { target } else { last };
        copy_out(&fs, source, target, options, tell).map_err(CliError::new)
    };
    guarded(
        || each(sources, last, last.is_dir(), copy),
        || format!("{} has the files copied until then; the last files may be incomplete", Quoted::path(last)),
    )?
}

/// Whether a process was started without this standard stream. Rust has opened `/dev/null` in its place by now, for
/// reading and writing; whoever wants that file opens it for reading.
fn was_closed(stream: &OwnedFd) -> bool {
    let (Ok(it), Ok(null), Ok(flags)) = (fstat(stream), stat("/dev/null"), fcntl_getfl(stream)) else { return false };
    it.st_rdev == null.st_rdev && flags.contains(OFlags::RDWR)
}

fn split(paths: &[PathBuf]) -> Result<(&[PathBuf], &Path), CliError> {
    match paths.split_last() {
        Some((last, sources)) if !sources.is_empty() => Ok((sources, last)),
        _ => Err(CliError::usage("a source and a destination are needed")),
    }
}

/// Copies each source, into the last path where there are several. A failure is said; the others are copied.
fn each(
    sources: &[PathBuf],
    last: &Path,
    is_directory: bool,
    mut copy: impl FnMut(&Path, &Path, Watch<'_>) -> Result<CopyProgress, CliError>,
) -> Result<(), CliError> {
    if sources.len() > 1 && !is_directory {
        return Err(CliError::at(last, "is not a directory; several sources need one"));
    }
    let mut names = HashSet::new();
    let mut failed = Vec::new();
    for source in sources {
        if is_stopping() {
            break;
        }
        let bar = progress::bytes("copying", 0);
        let tell = |event: CopyEvent<'_>| match event {
            CopyEvent::Progress(progress) => {
                bar.set_length(progress.total_bytes.max(progress.bytes));
                bar.set_position(progress.bytes);
            }
            // A failure after a signal is due to it.
            CopyEvent::Failed(error) | CopyEvent::Lost(error) if !is_stopping() => {
                bar.suspend(|| say_one_of_many(CliError::new(error)));
            }
            _ => {}
        };
        let name = name_of(source);
        let result = if sources.len() > 1 && name.is_some_and(|name| !names.insert(name.to_os_string())) {
            Err(CliError::at(source, "not copied: another source of the same name was copied to the same place"))
        } else {
            copy(source, &name.map_or_else(|| last.to_path_buf(), |name| last.join(name)), &tell)
        };
        bar.finish_and_clear();
        match result {
            Ok(progress) => {
                if progress.failed > 0 {
                    let count = progress.failed;
                    let entries = if count == 1 { "entry was" } else { "entries were" };
                    failed.push(CliError::at(
                        source,
                        format_args!("{count} {entries} not copied, {} were", progress.files),
                    ));
                } else if progress.lost > 0 {
                    let count = progress.lost;
                    let attributes = if count == 1 { "attribute was" } else { "attributes were" };
                    failed.push(CliError::at(
                        source,
                        format_args!("{count} extended {attributes} not copied; {} entries were", progress.files),
                    ));
                }
            }
            Err(error) => failed.push(error),
        }
    }
    if is_stopping() {
        // A failure from here on is due to the signal.
        return Ok(());
    }
    let Some(error) = failed.pop() else { return Ok(()) };
    failed.iter().for_each(say);
    Err(error)
}

/// The last name of a path; none for `/`, `.` and `..`.
fn name_of(path: &Path) -> Option<&OsStr> {
    let ends_in_dot = path.as_os_str().as_bytes().ends_with(b"/.");
    path.file_name().filter(|_| !ends_in_dot)
}
