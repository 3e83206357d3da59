//! Making a file durable.
//!
//! The file's nodes go to the log ([`Syncs::file`](f2fs_volume::Syncs::file)) if roll-forward can repeat
//! the changes of the file, and else to a checkpoint.

use f2fs_format::hash::dentry_hash;
use f2fs_sync::{Arc, protocol_step};
use f2fs_volume::Synced;

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
        self.balance(inode.ino)?;
        protocol_step!("cached_sync_leaves_dirty", WriteBack(self).write_back_file(inode)?);
        let epoch = {
            let op = self.volume.begin()?;
            let epoch = self.volume.epoch();
            if !self.takes_a_hazardous_name(inode, epoch) {
                match self.volume.syncs().file(&op, &inode.node) {
                    Ok(Synced::Logged) => return Ok(()),
                    Ok(Synced::Must(_)) => {}
                    Err(error) if error.is_no_space() => {}
                    Err(error) => return Err(error.into()),
                }
            }
            epoch
        };
        self.checkpoint_past(epoch)
    }

    /// Makes durable what an operation changed of an epoch, if no checkpoint did so since.
    pub(crate) fn checkpoint_past(&self, epoch: u64) -> Result<(), FsError> {
        WriteBack(self).write_back_ahead();
        let ahead = || self.dirty_directories.write_ahead(&self.volume);
        self.volume.checkpoints().write_past(epoch, ahead, |op| self.write_above(op)).map(|_| ())
    }

    /// Whether the file is new and its name one that roll-forward should not restore.
    pub(crate) fn takes_a_hazardous_name(&self, inode: &Inode, epoch: u64) -> bool {
        if !self.volume.nodes().is_new(inode.ino) {
            return false;
        }
        let block = inode.node.read();
        let raw = block.inode();
        let len = (raw.i_namelen.get() as usize).min(raw.i_name.len());
        self.hazards.has(epoch, raw.i_pino.into(), dentry_hash(&raw.i_name[..len]))
    }
}
