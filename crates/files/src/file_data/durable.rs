//! Writes that are durable by themselves: `O_DSYNC`, without the wait between the data and the node that names it.
//!
//! ```text
//!   write_at, sync          data ──────► node ──────► flush ──────►
//!   write_durable           data ──────► flush ──────►
//!                           node ────►
//! ```
//!
//! A short write is not sent by the thread that makes it: the leader of its group of syncs sends the data of all, and
//! their nodes, as few requests, since what threads are given at the same time stands side by side.
//!
//! A write that one request of the log cannot take along (into data in the inode, more than a segment, on a full
//! volume) is written and synced in turn.

use f2fs_format::BlockAddr;
use f2fs_format::inode::Inode as RawInode;
use f2fs_sync::{Arc, protocol_step};
use f2fs_volume::{MustCheckpoint, Next, Piece, Synced};

use crate::FsError;
use crate::content::Content;
use crate::core::write_back::WriteBack;
use crate::file_data::FileData;
use crate::file_data::read::blocks_of;
use crate::file_data::write::{Amount, CHUNK, wrote};
use crate::inode::Inode;

impl FileData<'_> {
    /// [`write_at`](Self::write_at) and [`sync_all`](crate::File::sync_all).
    pub(crate) fn write_durable(&self, inode: &Arc<Inode>, offset: u64, buf: &[u8]) -> Result<usize, FsError> {
        self.balance()?;
        let content = self.content(inode);
        let mut written = 0;
        // The file is to be durable, with what else was written.
        WriteBack(self).write_back_file(inode)?;
        if !buf.is_empty() {
            let range = content.lock_to_write(offset, buf.len() as u64);
            let (first, last) = blocks_of(offset, buf.len());
            let past = self.past_cache(inode, first, last)?;
            if self.goes_at_once(content, offset, buf) {
                match self.write_with_sync(inode, content, Piece { offset, buf })? {
                    Sent::Durable => return Ok(buf.len()),
                    Sent::Unsynced(epoch, reason) => {
                        // Others go on beside the checkpoint: no page with the old content is left to them.
                        protocol_step!("cached_page_outlives_a_range", drop(past));
                        drop(range);
                        return self.sync_otherwise(inode, epoch, reason).map(|()| buf.len());
                    }
                    Sent::Nothing => {}
                }
            }
            written = self.write_locked(inode, content, offset, buf, Amount::Part, None)?;
        }
        self.sync(inode).map(|()| written)
    }

    fn goes_at_once(&self, content: &Content, offset: u64, buf: &[u8]) -> bool {
        let end = offset.saturating_add(buf.len() as u64);
        if content.is_inline() || end > content.limit() {
            return false;
        }
        let (first, last) = blocks_of(offset, buf.len());
        last - first < CHUNK
    }

    /// The caller has the blocks exclusively.
    fn write_with_sync(&self, inode: &Arc<Inode>, content: &Content, piece: Piece<'_>) -> Result<Sent, FsError> {
        let op = self.volume.begin()?;
        let epoch = self.volume.epoch();
        if self.takes_a_hazardous_name(inode) {
            return Ok(Sent::Nothing);
        }
        let flight = match self.start_write(&op, inode, content, &[piece], Next::Sync) {
            Err(error) if error.is_no_space() => return Ok(Sent::Nothing),
            flight => flight?,
        };
        let (file, end, now, mut before) = (inode.clone(), flight.end(), self.now(), u64::MAX);
        let of_inode = move |raw: &mut RawInode, done| {
            let size = raw.i_size.get();
            if done {
                before = size;
                wrote(&file, raw, end, now);
            } else if before < end && size == end {
                // Nobody wrote behind it meanwhile.
                if let Some(content) = file.content() {
                    content.take_back_size(raw, end, before);
                }
            }
        };
        // With the page locked: see the rules of the cache.
        let named = |block, addr: BlockAddr| content.cache.store(block, addr.0);
        let synced = self.volume.syncs().flight(&op, &inode.node, flight, of_inode, named);
        Ok(match synced? {
            Synced::Logged => {
                self.call_for_room();
                Sent::Durable
            }
            Synced::Must(reason) => Sent::Unsynced(epoch, reason),
        })
    }
}

/// The outcome of a write.
enum Sent {
    /// It does not go like that.
    Nothing,
    /// It is on the device, and found there.
    Durable,
    /// It is the file's. Its own nodes do not make it durable, for this reason; the checkpoint of this epoch does.
    Unsynced(u64, MustCheckpoint),
}
