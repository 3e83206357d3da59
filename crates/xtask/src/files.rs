//! What the chores do with files and directories beyond `fs_err`, whose errors name the file.

use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::Result;

/// Makes a file of so many bytes, all of them holes. What was in it is gone.
///
/// # Errors
///
/// If it cannot be made.
pub(crate) fn make_sparse(path: impl AsRef<Path>, bytes: u64) -> Result<()> {
    Ok(fs::File::create(path.as_ref())?.set_len(bytes)?)
}

/// Removes a directory with all that is in it, if it is there.
///
/// # Errors
///
/// If something in it cannot be removed.
pub(crate) fn remove_dir(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    if path.exists() {
        fs::remove_dir_all(path)?;
    }
    Ok(())
}

/// The paths of what is in a directory, sorted.
///
/// # Errors
///
/// If it cannot be listed.
pub(crate) fn entries(path: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(path.as_ref())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file() {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let file = dir.path().join("file");
        fs::write(&file, "text").expect("it can be written");
        // Nothing can be made or found below a file.
        let below = file.join("below");
        for error in [
            make_sparse(&below, 1).expect_err("it is no directory"),
            entries(&below).expect_err("it is no directory"),
            fs::read_to_string(&below).expect_err("it is no directory").into(),
        ] {
            assert!(error.to_string().contains(&below.display().to_string()), "{error:#}");
        }
        assert_eq!(entries(dir.path()).expect("it is there"), [file]);
    }

    #[test]
    fn what_is_not_there_need_not_be_removed() {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        remove_dir(dir.path().join("nothing")).expect("it is not there");
        fs::create_dir_all(dir.path().join("some/more")).expect("it can be made");
        remove_dir(dir.path().join("some")).expect("it can be removed");
        assert!(entries(dir.path()).expect("it is there").is_empty());
    }
}
