//! The ways to open a file: for reading, for writing, for both.

use crate::FsError;

/// The operations that a handle of a file allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Writes go to the end of the file.
    pub(crate) append: bool,
}

impl Access {
    pub(crate) const ALL: Access = Access { read: true, write: true, append: false };

    #[inline]
    pub(crate) fn to_read(self) -> Result<(), FsError> {
        if self.read { Ok(()) } else { Err(FsError::NotOpenFor("reading")) }
    }

    #[inline]
    pub(crate) fn to_write(self) -> Result<(), FsError> {
        if self.write { Ok(()) } else { Err(FsError::NotOpenFor("writing")) }
    }

    /// Whether writes go to the end of the file, whatever place they name.
    #[inline]
    pub(crate) fn places_writes(self) -> Result<bool, FsError> {
        self.to_write().map(|()| self.append)
    }
}
