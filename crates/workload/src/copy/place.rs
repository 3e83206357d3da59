//! The place of one entry in the volume.
//!
//! A large file, and one whose name another has, is made without a name and gets it when it is whole: whatever happens on
//! the way, also to the volume, the name leads to the old file or to the new one. Everything else is made under its name,
//! and taken away again if it cannot be filled.

use std::path::Path;

use f2fs::{FileKind, FsError, InodeRef, NewFile};

use super::{CopyError, incomplete, volume};

/// Bytes of a file that takes long enough for a checkpoint to come in between. Smaller ones are not worth the detour.
const LARGE: u64 = 1 << 20;

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
    /// Makes a file that is neither directory nor symbolic link, and fills it with so many bytes.
    pub(super) fn make<T>(
        &self,
        new: &NewFile,
        bytes: u64,
        fill: impl FnOnce(&InodeRef) -> Result<T, CopyError>,
    ) -> Result<T, CopyError> {
        if bytes >= LARGE {
            return self.make_unnamed(new, fill);
        }
        match self.into.create(self.name, new) {
            Ok(made) => fill(&made).map_err(|error| self.undo(error)),
            Err(FsError::Exists) => self.make_unnamed(new, fill),
            Err(error) => Err(volume(self.to)(error)),
        }
    }

    fn make_unnamed<T>(
        &self,
        new: &NewFile,
        fill: impl FnOnce(&InodeRef) -> Result<T, CopyError>,
    ) -> Result<T, CopyError> {
        let replaces = self.expect_file()?;
        let made = self.into.create_unnamed(new).map_err(volume(self.to));
        let filled = made.and_then(|made| {
            let done = fill(&made)?;
            self.into.link_over(self.name, &made).map(|()| done).map_err(volume(self.to))
        });
        filled.map_err(|error| if replaces { kept(error) } else { error })
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

    /// Whether there is something that is to be replaced. A directory is not, and nothing is made in vain.
    fn expect_file(&self) -> Result<bool, CopyError> {
        match self.into.lookup(self.name) {
            Ok(found) if found.kind() == FileKind::Directory => Err(volume(self.to)(FsError::IsDirectory)),
            Ok(_) => Ok(true),
            Err(FsError::NotFound) => Ok(false),
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
