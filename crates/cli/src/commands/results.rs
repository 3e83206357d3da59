//! The files that the results of a measurement are written to.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, absolute};

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

#[cfg(test)]
mod tests {
    use std::fs;

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
}
