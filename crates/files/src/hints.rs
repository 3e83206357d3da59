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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use f2fs_format::LogType;

    use super::*;
    use crate::samples::formatted;
    use crate::{FileSystem, Options};

    #[test]
    fn a_mark_and_a_hint_are_what_they_were_set_to() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let file = fs.create_file("/f", 0o644).unwrap();
        assert_eq!((file.temperature(), file.write_hint()), (Temperature::Warm, WriteHint::NotSet));
        for (mark, log) in [
            (Temperature::Hot, LogType::HotData),
            (Temperature::Warm, LogType::WarmData),
            (Temperature::Cold, LogType::ColdData),
            (Temperature::Hot, LogType::HotData),
        ] {
            file.set_temperature(mark).unwrap();
            assert_eq!((file.temperature(), file.inode().log()), (mark, log));
        }
        let ino = file.ino();
        drop(file);
        fs.close().unwrap();
        drop(fs);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let file = fs.open_file("/f").unwrap();
        assert_eq!((file.ino(), file.temperature(), file.inode().log()), (ino, Temperature::Hot, LogType::HotData));
        file.set_temperature(Temperature::Warm).unwrap();
        for hint in [WriteHint::Short, WriteHint::Extreme, WriteHint::NotSet] {
            file.set_write_hint(hint);
            assert_eq!(file.write_hint(), hint);
        }
    }
}
