//! Making a file durable.
//!
//! The file's nodes go to the log ([`Volume::sync_file`](f2fs_volume::Volume::sync_file)) where roll-forward can repeat what
//! happened to it, and to a checkpoint where it cannot.

use f2fs_format::hash::dentry_hash;
use f2fs_volume::{FsyncMode, Synced};

use crate::FsError;
use crate::filesystem::Core;
use crate::inode::Inode;
use crate::rename::Place;

impl Core {
    /// Makes a file durable: content, attributes, and the name that it has.
    pub(crate) fn sync(&self, inode: &Inode) -> Result<(), FsError> {
        if self.volume.is_read_only() {
            return Ok(());
        }
        self.balance(inode.ino)?;
        let version = {
            let op = self.volume.begin()?;
            let version = self.volume.footer_version();
            if !self.takes_a_hazardous_name(inode, version) {
                match self.volume.sync_file(&op, &inode.node) {
                    Ok(Synced::Logged) => return Ok(()),
                    Ok(Synced::Must(_)) => {}
                    Err(error) if error.is_no_space() => {}
                    Err(error) => return Err(error.into()),
                }
            }
            version
        };
        self.checkpoint_past(version)
    }

    /// Makes durable what an operation changed that began under a footer version, if no checkpoint did so since.
    pub(crate) fn checkpoint_past(&self, version: u64) -> Result<(), FsError> {
        self.volume.checkpoint_past(version, |op| self.write_directories(op)).map(|_| ())
    }

    /// Whether the file is new and its name one that roll-forward should not restore.
    pub(crate) fn takes_a_hazardous_name(&self, inode: &Inode, version: u64) -> bool {
        if !self.volume.is_new(inode.ino) {
            return false;
        }
        let block = inode.node.read();
        let raw = block.inode();
        let len = (raw.i_namelen.get() as usize).min(raw.i_name.len());
        self.hazards.has(version, raw.i_pino.into(), dentry_hash(&raw.i_name[..len]))
    }

    /// Notes that what a name of a directory meant went elsewhere, or was a directory.
    pub(crate) fn note_moved(&self, place: Place<'_>) {
        self.hazards.note(self.volume.footer_version(), place.parent.ino, Some(place.name.hash()));
        self.note_removal(place.parent);
    }

    /// Notes that a directory lost a name, or that one moved into it: strict syncs bring it along.
    pub(crate) fn note_removal(&self, parent: &Inode) {
        if self.volume.fsync_mode() == FsyncMode::Strict {
            self.hazards.note(self.volume.footer_version(), parent.ino, None);
        }
    }
}
