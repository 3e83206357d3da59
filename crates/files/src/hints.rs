//! Hints and marks of an open file on how soon its data is expected to change.

use f2fs_format::inode::advise;
use f2fs_sync::atomic::Ordering;

use crate::file_data::FileData;
use crate::temperature::{Temperature, WriteHint};
use crate::{File, FsError};

impl File {
    /// Says how long what is written from now on is expected to live: for all handles of the file, until the last one
    /// is closed, as `fcntl(F_SET_RW_HINT)` does. It decides where files without a [`Temperature`] are written.
    pub fn set_write_hint(&self, hint: WriteHint) {
        self.inode().hint.store(hint.number(), Ordering::Relaxed);
    }

    /// The hint that [`set_write_hint`](Self::set_write_hint) set last.
    #[must_use]
    pub fn write_hint(&self) -> WriteHint {
        self.inode().hint()
    }

    /// Marks the file hot or cold, or takes the mark off. Writes from now on go to that log.
    ///
    /// # Errors
    /// [`FsError::Volume`].
    pub fn set_temperature(&self, temperature: Temperature) -> Result<(), FsError> {
        FileData(self.core()).set_temperature(self.inode(), temperature)
    }

    /// The mark of the file.
    #[must_use]
    pub fn temperature(&self) -> Temperature {
        let marks = self.inode().node.read().inode().i_advise;
        if marks & advise::COLD != 0 {
            Temperature::Cold
        } else if marks & advise::HOT != 0 {
            Temperature::Hot
        } else {
            Temperature::Warm
        }
    }
}
