//! Paths that lead to one device.

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::OpenError;

/// Refuses a path that leads to the same file or device as an earlier one: by the same name, a link, or another node of
/// the device. A volume on several devices has each of them once. Locks keep two writers apart, but not two readers.
///
/// Paths that lead nowhere are passed over: opening them says so.
///
/// # Errors
/// [`OpenError::Twice`], with the later path.
pub fn each_once<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<(), OpenError> {
    let mut seen = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let Ok(metadata) = path.metadata() else { continue };
        let identity = identity(&metadata);
        if seen.contains(&identity) {
            return Err(OpenError::Twice { path: path.into() });
        }
        seen.push(identity);
    }
    Ok(())
}

/// The kind of a device and its number, or the file system of a file and its inode.
fn identity(metadata: &Metadata) -> (char, u64, u64) {
    let kind = metadata.file_type();
    if kind.is_block_device() {
        ('b', metadata.rdev(), 0)
    } else if kind.is_char_device() {
        ('c', metadata.rdev(), 0)
    } else {
        ('f', metadata.dev(), metadata.ino())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_names_of_one_file_are_one() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other, link, hard] = ["one", "other", "link", "hard"].map(|name| dir.path().join(name));
        std::fs::write(&one, "").unwrap();
        std::fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        std::fs::hard_link(&one, &hard).unwrap();
        let missing = dir.path().join("missing");
        each_once([&one, &other, &missing, &missing]).unwrap();
        for again in [&one, &link, &hard] {
            let refused = each_once([&one, &other, again]).unwrap_err();
            assert!(matches!(&refused, OpenError::Twice { path } if path == again), "{refused}");
        }
    }
}
