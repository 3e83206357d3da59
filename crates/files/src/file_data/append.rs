//! Writing at the end of a file: all of it, or nothing.
//!
//! What does not fit is taken back in the operation that wrote it, so that no checkpoint has a part of it. Only what is
//! longer than one operation writes can have a part on the device, as any other long write.
//!
//! # Locking
//!
//! Everything from the end of the file on is locked exclusively, to the end of the call.

use f2fs_format::BLOCK_BYTES;
use f2fs_sync::{Arc, protocol_step};
use f2fs_volume::Op;

use crate::FsError;
use crate::content::Content;
use crate::file_data::FileData;
use crate::file_data::resize::Before;
use crate::file_data::write::Amount;
use crate::inode::Inode;

impl FileData<'_> {
    /// Writes all of `buf` at the end of the file, or nothing; returns where.
    pub(crate) fn append(&self, inode: &Arc<Inode>, buf: &[u8]) -> Result<u64, FsError> {
        self.balance()?;
        let content = self.content(inode);
        // Wherever the end is, it is in one block more at most.
        let room = self.admit(BLOCK_BYTES - 1, buf.len());
        let (_range, offset) = content.lock_end();
        let written = self.write_locked(inode, content, offset, buf, Amount::All, room)?;
        if written < buf.len() {
            // There was room for the first of several operations.
            self.truncate_locked(inode, content, offset)?;
            let blocks = |bytes: usize| (bytes as u64).div_ceil(BLOCK_BYTES);
            let (wanted, available) = (blocks(buf.len()), blocks(written).min(blocks(buf.len()) - 1));
            return Err(f2fs_volume::VolumeError::NoSpace { wanted, available }.into());
        }
        Ok(offset)
    }

    /// Writes chunks of `buf` from byte `done` of it on, and counts them there; on an error none of them is left.
    pub(super) fn write_whole(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        content: &Content,
        offset: u64,
        buf: &[u8],
        done: &mut usize,
    ) -> Result<(), FsError> {
        let (begun, before) = (*done, Before::new(inode, content));
        self.write_some(op, inode, content, offset, buf, Amount::All, done).or_else(|error| {
            if *done > begun {
                protocol_step!("append_leaves_its_first_chunks", {
                    *done = begun;
                    self.take_back(op, inode, content, offset + begun as u64, &before)?;
                });
            }
            Err(error)
        })
    }

    /// Frees what this operation wrote behind `end`, which is the size of the file.
    fn take_back(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        content: &Content,
        end: u64,
        before: &Before,
    ) -> Result<(), FsError> {
        let keep = end.div_ceil(BLOCK_BYTES);
        if !end.is_multiple_of(BLOCK_BYTES) {
            self.zero_tail(op, inode, content, end)?;
        }
        let result = self.cut_last(op, inode, content, keep, before);
        content.cache.forget(keep);
        result
    }
}
