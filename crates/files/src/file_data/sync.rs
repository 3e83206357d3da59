//! Making a file durable.
//!
//! The file's nodes go to the log ([`Syncs::file`](f2fs_volume::Syncs::file)), or to the journal, if an
//! opening can repeat the changes of the file from them. With a journal, names that changed go to a record of all
//! ([`Syncs::names`](f2fs_volume::Syncs::names)). What is left is a checkpoint.

use f2fs_format::hash::dentry_hash;
use f2fs_sync::{Arc, protocol_step};
use f2fs_volume::{MustCheckpoint, Synced};

use crate::FsError;
use crate::core::write_back::WriteBack;
use crate::file_data::FileData;
use crate::inode::Inode;

impl FileData<'_> {
    /// Makes a file durable: content, attributes, and the name that it has.
    pub(crate) fn sync(&self, inode: &Arc<Inode>) -> Result<(), FsError> {
        if self.volume.is_read_only() {
            return Ok(());
        }
        self.balance()?;
        protocol_step!("cached_sync_leaves_dirty", WriteBack(self).write_back_file(inode)?);
        let (epoch, reason) = {
            let op = self.volume.begin()?;
            let reason = if self.takes_a_hazardous_name(inode) {
                MustCheckpoint::Renamed
            } else {
                match self.volume.syncs().file(&op, &inode.node) {
                    Ok(Synced::Logged) => {
                        drop(op);
                        self.call_for_room();
                        return Ok(());
                    }
                    Ok(Synced::Must(reason)) => reason,
                    Err(error) if error.is_no_space() => MustCheckpoint::Room,
                    Err(error) => return Err(error.into()),
                }
            };
            (self.volume.epoch(), reason)
        };
        self.sync_otherwise(inode, epoch, reason)
    }

    /// Wakes who writes checkpoints in the background, if the journal needs one.
    pub(crate) fn call_for_room(&self) {
        if self.volume.journal().is_due() {
            self.call_who_attends();
        }
    }

    /// Makes an inode durable, for which its own nodes do not do, with what an operation changed of an epoch: by a
    /// record of names if there is a journal and they are the reason, else by a checkpoint.
    pub(crate) fn sync_otherwise(&self, inode: &Arc<Inode>, epoch: u64, reason: MustCheckpoint) -> Result<(), FsError> {
        if reason.is_of_names() && self.volume.journal().is_open() && self.sync_names(inode)? == Synced::Logged {
            self.call_for_room();
            return Ok(());
        }
        self.checkpoint_past(epoch)
    }

    /// Makes durable what an operation changed of an epoch, if no checkpoint did so since.
    pub(crate) fn checkpoint_past(&self, epoch: u64) -> Result<(), FsError> {
        WriteBack(self).write_back_ahead();
        let ahead = || self.dirty_directories.write_ahead(&self.volume);
        self.volume.checkpoints().write_past(epoch, ahead, |op| self.write_above(op)).map(|_| ())
    }

    /// Whether the file is new and its name one that roll-forward should not restore.
    pub(crate) fn takes_a_hazardous_name(&self, inode: &Inode) -> bool {
        if !self.volume.nodes().is_new(inode.ino) {
            return false;
        }
        let block = inode.node.read();
        let raw = block.inode();
        let len = (raw.i_namelen.get() as usize).min(raw.i_name.len());
        self.hazards.has(&self.volume, raw.i_pino.into(), dentry_hash(&raw.i_name[..len]))
    }
}
