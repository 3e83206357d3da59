//! A file system with a journal for its syncs ([`f2fs_volume::JournalMode`]), and the note on the volume that there is
//! one.
//!
//! The note is an extended attribute of the root, which Linux and fsck.f2fs keep and do not look at. Its value is the
//! journal's identity.
//!
//! ```text
//!   open:   records brought back ─> note ─> a checkpoint ─> syncs go to the journal
//!   close:  no more records, syncs are checkpoints ─> note gone ─> the last checkpoint
//! ```
//!
//! So a volume has the note from the first sync that went to the journal until it is closed. An opening without the
//! journal sees the note: this library then does not write to it, unless it is told to give up the journal's content.

use f2fs_device::BlockDevice;
use f2fs_format::xattr::SetMode;
use f2fs_journal::{Create, Journal, SharedMedium, Uuid};
use f2fs_sync::{Arc, PlainArc};
use f2fs_volume::{FoundJournal, JournalTrouble, Reason, Volume, VolumeOptions};

use crate::core::Core;
use crate::error::{BadAttribute, FsError};
use crate::inode::Inode;
use crate::options::JournalOptions;
use crate::xattr::{Attributes, JOURNAL_NOTE};

/// Makes a journal for the volume on `device` on a medium: all of it is the journal's. `force`: whatever is there is
/// written over.
///
/// # Errors
/// [`VolumeError::Journal`](f2fs_volume::VolumeError::Journal) if the medium is too small, is for reading only, fails,
/// or holds something and `force` is not given; those of [`Volume::open`] if there is no volume on the device.
pub fn create_journal(device: PlainArc<dyn BlockDevice>, medium: SharedMedium, force: bool) -> Result<(), FsError> {
    let volume = Volume::open(device, &VolumeOptions::new().read_only(true))?;
    let create = Create::new(Uuid(volume.superblock().uuid)).force(force);
    Journal::create(medium, &create).map_err(JournalTrouble::from)?;
    Ok(())
}

/// Names what has no room.
fn without_room(error: FsError) -> FsError {
    match error {
        FsError::Attribute { why: BadAttribute::NoRoom, size: needed, limit: free } => {
            FsError::NoRoomForJournal { needed, free }
        }
        error => error,
    }
}

/// The journal of a file system that is being opened or closed.
#[derive(Clone, Copy)]
pub(crate) struct Attachment<'a>(pub(crate) &'a Core);

impl Attachment<'_> {
    /// The journal that the options name, if it and the volume belong together.
    ///
    /// # Errors
    /// [`VolumeError::Journal`](f2fs_volume::VolumeError::Journal); [`FsError::OtherJournal`], and
    /// [`FsError::JournalMissing`] if there is none and the file system is opened for writing.
    pub(crate) fn find(self) -> Result<Option<FoundJournal>, FsError> {
        let core = self.0;
        let left = self.note()?;
        let Some(JournalOptions { medium, mode, rescue, .. }) = &core.options.journal else {
            return match left {
                Some(journal) if !core.volume.is_read_only() && !core.options.without_journal => {
                    Err(FsError::JournalMissing { journal })
                }
                _ => Ok(None),
            };
        };
        let left = left.filter(|_| !core.options.without_journal);
        let found = FoundJournal::rescue(&core.volume, medium.clone(), *mode, *rescue)?;
        let id = Uuid(found.id()).to_string();
        match left {
            Some(expected) if expected != id => return Err(FsError::OtherJournal { expected, found: id }),
            Some(_) => found.check_needed(&core.volume)?,
            None => {}
        }
        Ok(Some(found))
    }

    /// Lets syncs go to the journal, or takes away the note of one that was given up; `changed`: files were brought
    /// back. Writes a checkpoint if anything changed. The file system is open for writing.
    pub(crate) fn begin(self, found: Option<FoundJournal>, changed: bool) -> Result<(), FsError> {
        let core = self.0;
        let changed = match found {
            Some(found) => {
                let id = Uuid(found.id()).to_string();
                // Before the checkpoint that is announced in it.
                core.volume.journal().attach(found)?;
                if self.note()?.as_ref() != Some(&id) {
                    let set = Attributes(core).any_set(&self.root()?, JOURNAL_NOTE, id.as_bytes(), SetMode::Any);
                    set.map_err(without_room)?;
                }
                true
            }
            None => self.remove_note()? || changed,
        };
        if changed {
            // Before anything else is changed: from here on the recovered files do not hang on the chain, or on the
            // journal.
            core.checkpoint(Reason::Sync)?;
        }
        Ok(())
    }

    /// Nothing goes to the journal any more. The checkpoint that follows makes the volume one without a journal.
    pub(crate) fn end(self) -> Result<(), FsError> {
        if self.0.options.journal.is_some() && !self.0.volume.is_read_only() {
            let op = self.0.volume.begin()?;
            self.0.volume.journal().retire(&op);
            drop(op);
            self.remove_note()?;
        }
        Ok(())
    }

    fn root(self) -> Result<Arc<Inode>, FsError> {
        self.0.inode(self.0.volume.geometry().root_ino)
    }

    /// The identity of the journal that the volume was left with, if nothing was said of a journal.
    pub(crate) fn missing(self) -> Result<Option<String>, FsError> {
        let options = &self.0.options;
        if options.journal.is_some() || options.without_journal { Ok(None) } else { self.note() }
    }

    /// The identity of the journal that the volume was left with.
    fn note(self) -> Result<Option<String>, FsError> {
        match Attributes(self.0).any_get(&*self.root()?, JOURNAL_NOTE) {
            Ok(value) => Ok(Some(String::from_utf8_lossy(&value).escape_default().to_string())),
            Err(FsError::NoAttribute) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the note away; tells whether there was one. A volume without one is not touched, not even to make room.
    fn remove_note(self) -> Result<bool, FsError> {
        if self.note()?.is_none() {
            return Ok(false);
        }
        match Attributes(self.0).any_remove(&self.root()?, JOURNAL_NOTE) {
            Ok(()) => Ok(true),
            Err(FsError::NoAttribute) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use f2fs_device::MemoryDevice;
    use f2fs_device_test::RecordingDevice;
    use f2fs_journal::RegionMedium;
    use f2fs_pmem::MemoryRegion;

    use f2fs_volume::{JournalMode, Need};

    use super::*;
    use crate::samples::formatted;
    use crate::{FileSystem, Options};

    fn volume() -> (PlainArc<MemoryDevice>, SharedMedium) {
        let device = formatted(32 * 1024);
        let medium = PlainArc::new(RegionMedium::new(MemoryRegion::new(1 << 20).unwrap()));
        create_journal(device.clone(), medium.clone(), false).unwrap();
        (device, medium)
    }

    fn with(medium: &SharedMedium) -> Options {
        Options::new().journal(JournalOptions::new(medium.clone(), JournalMode::Ordered))
    }

    /// It writes nothing, and leaves the note to those who write.
    #[test]
    fn who_only_reads_a_volume_with_its_journal_can_close_it() {
        let (device, medium) = volume();
        let fs = FileSystem::open(device.clone(), with(&medium)).unwrap();
        fs.create_file("/f", 0o644).unwrap().sync_all().unwrap();
        drop(fs); // a crash
        let before = device.to_bytes();
        let fs = FileSystem::open(device.clone(), with(&medium).read_only(true)).unwrap();
        assert!(fs.exists("/f").unwrap());
        fs.close().unwrap();
        drop(fs);
        assert!(device.to_bytes() == before);
        assert!(matches!(FileSystem::open(device.clone(), Options::new()), Err(FsError::JournalMissing { .. })));
        let fs = FileSystem::open(device, with(&medium)).unwrap();
        assert!(fs.exists("/f").unwrap());
    }

    /// The note goes in an operation like any other, in front of which a checkpoint may be due.
    #[test]
    fn a_journal_is_detached_while_a_checkpoint_is_due() {
        let (device, medium) = volume();
        let few = VolumeOptions::new().dirty_nodes(64);
        let fs = FileSystem::open(device.clone(), with(&medium).volume(few)).unwrap();
        let mut files = 0..100_000;
        while fs.core.volume.balance().need() != Need::Checkpoint {
            fs.create_file(format!("/{}", files.next().unwrap()), 0o644).unwrap();
        }
        fs.detach_journal().unwrap();
        drop(fs); // a crash
        let fs = FileSystem::open(device, Options::new()).unwrap();
        assert_eq!(fs.read_dir("/").unwrap().count(), files.start);
    }

    /// Who reads a volume without its journal is told which one is missing, unless it was given up.
    #[test]
    fn a_missing_journal_is_named() {
        let (device, medium) = volume();
        let missing = |options: Options| {
            FileSystem::open(device.clone(), options.read_only(true)).unwrap().missing_journal().unwrap()
        };
        assert_eq!(missing(Options::new()), None, "it has none yet");
        let fs = FileSystem::open(device.clone(), with(&medium)).unwrap();
        fs.create_file("/f", 0o644).unwrap().sync_all().unwrap();
        drop(fs); // a crash
        let Err(FsError::JournalMissing { journal }) = FileSystem::open(device.clone(), Options::new()) else {
            panic!("it is opened for writing")
        };
        assert_eq!(missing(Options::new()), Some(journal));
        assert_eq!(missing(Options::new().without_journal(true)), None);
        assert_eq!(missing(with(&medium)), None);
        assert_eq!(missing(with(&medium).without_journal(true)), None);
        drop(FileSystem::open(device.clone(), Options::new().without_journal(true)).unwrap());
        assert_eq!(missing(Options::new()), None, "the note is gone");
    }

    /// As much data of syncs waits in memory as was asked for; then all of it is written.
    #[test]
    fn data_waits_in_memory_up_to_its_limit() {
        for (bytes, waits) in [(0, false), (8 * 4096, false), (64 << 20, true)] {
            let memory = formatted(32 * 1024);
            let device = PlainArc::new(RecordingDevice::new(memory.snapshot()));
            let medium = PlainArc::new(RegionMedium::new(MemoryRegion::new(64 << 20).unwrap()));
            create_journal(device.clone(), medium.clone(), false).unwrap();
            let journal = JournalOptions::new(medium, JournalMode::Journal).write_behind(bytes);
            let fs = FileSystem::open(device.clone(), Options::new().journal(journal)).unwrap();
            let file = fs.create_file("/f", 0o644).unwrap();
            file.write_at(&[1; 32 * 4096], 0).unwrap();
            fs.checkpoint().unwrap();
            let before = device.counts().writes;
            for block in 0..24 {
                file.write_at(&[2; 4096], block * 4096).unwrap();
                file.sync_all().unwrap();
            }
            assert_eq!(device.counts().writes == before, waits, "{bytes} bytes may wait");
        }
    }
}
