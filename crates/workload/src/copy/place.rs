//! The place of one entry in the volume.
//!
//! Where its name is free the entry is made under it, and taken away again if it cannot be filled. Where another file has
//! the name, the entry is made without one and gets it when it is whole: whatever happens on the way, the name leads to
//! the old file or to the new one.

use std::path::Path;

use f2fs::{FileKind, FsError, InodeRef, NewFile};

use super::{CopyError, incomplete, volume};

/// Where an entry is to be.
pub(super) struct Place<'a> {
    /// The directory.
    pub(super) into: &'a InodeRef,
    /// The name in it.
    pub(super) name: &'a [u8],
    /// The whole path, for messages.
    pub(super) to: &'a Path,
}

impl Place<'_> {
    /// Makes a file that is neither directory nor symbolic link, and fills it.
    pub(super) fn make<T>(
        &self,
        new: &NewFile,
        fill: impl FnOnce(&InodeRef) -> Result<T, CopyError>,
    ) -> Result<T, CopyError> {
        match self.into.create(self.name, new) {
            Ok(made) => fill(&made).map_err(|error| self.undo(error)),
            Err(FsError::Exists) => {
                self.expect_file()?;
                let made = self.into.create_unnamed(new).map_err(volume(self.to)).map_err(kept)?;
                let filled = fill(&made)
                    .and_then(|done| self.into.link_over(self.name, &made).map(|()| done).map_err(volume(self.to)));
                filled.map_err(kept)
            }
            Err(error) => Err(volume(self.to)(error)),
        }
    }

    /// Makes a symbolic link. What is small enough to be made at once replaces another file by coming after it.
    pub(super) fn symlink(&self, target: &[u8], new: &NewFile) -> Result<InodeRef, CopyError> {
        let make = || self.into.symlink(target, self.name, new);
        let made = make().or_else(|error| match error {
            FsError::Exists => {
                self.into.remove_file(self.name)?;
                make()
            }
            error => Err(error),
        });
        made.map_err(volume(self.to))
    }

    /// Gives a file that was copied before this name as well.
    pub(super) fn link(&self, file: &InodeRef) -> Result<(), CopyError> {
        self.into.link_over(self.name, file).map_err(volume(self.to))
    }

    /// A directory is not replaced, and nothing is made in vain.
    fn expect_file(&self) -> Result<(), CopyError> {
        match self.into.lookup(self.name) {
            Ok(found) if found.kind() == FileKind::Directory => Err(volume(self.to)(FsError::IsDirectory)),
            Ok(_) | Err(FsError::NotFound) => Ok(()),
            Err(error) => Err(volume(self.to)(error)),
        }
    }

    /// Removes a file that was copied in part, so that nobody takes it for the whole.
    fn undo(&self, error: CopyError) -> CopyError {
        match self.into.remove_file(self.name) {
            Ok(()) => error,
            Err(_) => incomplete(self.to, error),
        }
    }
}

fn kept(error: CopyError) -> CopyError {
    CopyError::Kept { source: Box::new(error) }
}
