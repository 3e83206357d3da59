//! The files that the results of a measurement are written to.
//!
//! A file that is there keeps its content until there is something to put in its place: the new content is written
//! beside it, and takes its name.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write, stderr, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, fchown};
use std::path::{Path, PathBuf, absolute};

use f2fs::format::superblock::MAGIC;

use crate::error::{CliError, Context};

/// Where the superblock's magic number stands.
const MAGIC_AT: u64 = 1024;

/// Whether what is written to one path is lost with the other: both lead to one file or block device, by whatever names.
/// What is missing is made under its name. Character devices, as /dev/null is, take everything.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => {
            (one.dev(), one.ino()) == (other.dev(), other.ino()) && !one.file_type().is_char_device()
        }
        (Err(_), Err(_)) => matches!((absolute(one), absolute(other)), (Ok(one), Ok(other)) if one == other),
        _ => false,
    }
}

/// Refuses a file or block device that holds an F2FS volume.
pub(super) fn expect_no_volume(path: &Path) -> Result<(), CliError> {
    let kind = path.metadata().map(|found| found.file_type());
    if !kind.is_ok_and(|kind| kind.is_file() || kind.is_block_device()) {
        return Ok(());
    }
    // What cannot be read is no business of the measurement; whether it can be written is seen later.
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut magic, MAGIC_AT));
    if read.is_ok() && u32::from_le_bytes(magic) == MAGIC {
        return Err(CliError::at(path, "holds an F2FS volume, and is not overwritten with results"));
    }
    Ok(())
}

/// A file for results.
#[derive(Debug)]
pub(super) struct ResultFile<'a> {
    path: &'a Path,
    /// What is written to as it is: a device, a pipe, our own output; or the new file, from the first results on.
    open: Option<File>,
}

impl<'a> ResultFile<'a> {
    /// Whether it can be written is better known now than after an hour. Nothing is written, and no file is left.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn new(path: &'a Path) -> Result<ResultFile<'a>, CliError> {
        let mut result = ResultFile { path, open: our_own(path) };
        match path.metadata() {
            _ if result.open.is_some() => {}
            Ok(found) => {
                let file = File::options().write(true).open(path).about(path)?;
                if !found.is_file() {
                    result.open = Some(file);
                }
            }
            Err(_) => {
                let (beside, _) = beside(path).about(path)?;
                fs::remove_file(beside).about(path)?;
            }
        }
        Ok(result)
    }

    /// The same, where one is wanted.
    pub(super) fn at(path: Option<&'a Path>) -> Result<Option<ResultFile<'a>>, CliError> {
        path.map(ResultFile::new).transpose()
    }

    /// Adds to it. What an earlier run left there goes with the first call.
    pub(super) fn add(&mut self, text: &str) -> Result<(), CliError> {
        match &mut self.open {
            Some(file) => file.write_all(text.as_bytes()).about(self.path),
            None => {
                self.open = Some(replace(self.path, text).about(self.path)?);
                Ok(())
            }
        }
    }
}

/// Our own standard output or error, if the path leads there. Opened once more, it would be written from its beginning.
fn our_own(path: &Path) -> Option<File> {
    let wanted = path.metadata().ok()?;
    let ours = [stdout().as_fd().try_clone_to_owned(), stderr().as_fd().try_clone_to_owned()];
    ours.into_iter().filter_map(|fd: io::Result<OwnedFd>| fd.ok().map(File::from)).find(|file| {
        file.metadata().is_ok_and(|found| {
            !found.file_type().is_char_device() && (found.dev(), found.ino()) == (wanted.dev(), wanted.ino())
        })
    })
}

/// A new file in the directory of another one.
fn beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(ErrorKind::IsADirectory)?);
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    let file = File::create_new(&beside)?;
    Ok((beside, file))
}

/// Makes this the content of a file, and returns it for more.
fn replace(path: &Path, text: &str) -> io::Result<File> {
    // A symbolic link stays one.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let (beside, mut file) = match beside(path) {
        Ok(made) => made,
        // The file is the user's, and its directory is not.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return overwrite(path, text),
        Err(error) => return Err(error),
    };
    let replaced = (|| {
        if let Ok(old) = path.metadata() {
            // Its owner is kept where the system lets us.
            let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        fs::rename(&beside, path)
    })();
    match replaced {
        Ok(()) => Ok(file),
        Err(error) => {
            fs::remove_file(&beside)?;
            // Another file system is mounted on it.
            if error.kind() == ErrorKind::ResourceBusy { overwrite(path, text) } else { Err(error) }
        }
    }
}

fn overwrite(path: &Path, text: &str) -> io::Result<File> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn names_of_one_file_are_the_same() {
        let place = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| place.path().join(name));
        assert!(is_same(&a, &place.path().join("./a")) && !is_same(&a, &b), "none of them is there");
        fs::write(&a, "").unwrap();
        assert!(!is_same(&a, &b), "one is there");
        fs::hard_link(&a, &b).unwrap();
        std::os::unix::fs::symlink(&a, &c).unwrap();
        assert!(is_same(&a, &b) && is_same(&a, &c));
        assert!(is_same(place.path(), place.path()), "it need not be a regular file");
        assert!(!is_same(Path::new("/dev/null"), Path::new("/dev/null")));
    }

    #[test]
    fn a_file_is_replaced_with_the_first_results() {
        let place = tempfile::tempdir().unwrap();
        let [old, link, new] = ["old", "link", "new"].map(|name| place.path().join(name));
        fs::write(&old, "old").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&old, &link).unwrap();
        for path in [&link, &new] {
            let mut file = ResultFile::new(path).unwrap();
            assert_eq!(fs::read_to_string(&old).unwrap(), "old");
            assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2, "nothing is left before");
            file.add("1\n").unwrap();
            file.add("2\n").unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), "1\n2\n");
            fs::write(&old, "old").unwrap();
        }
        assert!(link.is_symlink());
        assert_eq!(fs::metadata(&old).unwrap().mode() & 0o777, 0o640);
        assert!(ResultFile::new(&place.path().join("none/file")).is_err());
        assert!(ResultFile::new(place.path()).is_err());
    }
}
