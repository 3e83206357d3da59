//! Copying a range of one file to another file of the volume, or to another place of the same one.

use f2fs_sync::Arc;

use crate::FsError;
use crate::file_data::FileData;
use crate::inode::Inode;

/// Bytes that are read and written at a time.
const PIECE: u64 = 1 << 20;

impl FileData<'_> {
    /// Copies; returns how many bytes. No lock is held from one piece to the next, so that two copies in opposite
    /// directions cannot wait for each other.
    pub(crate) fn copy_range(
        &self,
        from: &Arc<Inode>,
        offset: u64,
        to: &Arc<Inode>,
        to_offset: u64,
        len: u64,
    ) -> Result<u64, FsError> {
        let limit = self.content(to).limit();
        let size = self.content(from).size();
        let len = len.min(size.saturating_sub(offset));
        if len == 0 {
            return Ok(0);
        }
        if to_offset >= limit {
            return Err(FsError::FileTooLarge { size: to_offset.saturating_add(len), limit });
        }
        let len = len.min(limit - to_offset);
        if from.ino == to.ino && offset < to_offset + len && to_offset < offset + len {
            return Err(FsError::Invalid("source and destination of the copy overlap"));
        }
        let mut buf = Vec::new();
        let mut done = 0;
        while done < len {
            let at = offset + done;
            let data = self.next_data(from, at)?;
            // A file that was cut meanwhile has nothing more.
            let end = offset + len.min(self.content(from).size().saturating_sub(offset));
            if end <= at {
                break;
            }
            let start = data.as_ref().map_or(end, |data| data.start.min(end));
            if start > at {
                let hole = start - at;
                self.punch_hole(to, to_offset + done, hole)?;
                self.grow_to(to, to_offset + done + hole)?;
                done += hole;
                continue;
            }
            let piece = data.map_or(end, |data| data.end.min(end)) - at;
            buf.resize(piece.min(PIECE) as usize, 0);
            let read = self.read_at(from, at, &mut buf)?;
            let bytes = buf.get(..read).unwrap_or_default();
            let written = match self.write_at(to, to_offset + done, bytes) {
                Err(error) if error.is_no_space() && done > 0 => break,
                written => written?,
            };
            // If not all was written, the next round meets the reason: no space, or the end of a file that was cut.
            done += written as u64;
        }
        Ok(done)
    }

    /// Lets the file reach to byte `size`, by a hole, if it does not yet.
    fn grow_to(&self, inode: &Arc<Inode>, size: u64) -> Result<(), FsError> {
        let content = self.content(inode);
        if content.size() >= size {
            return Ok(());
        }
        let _range = content.lock_from(content.size());
        if content.size() < size { self.truncate_locked(inode, content, size) } else { Ok(()) }
    }
}
