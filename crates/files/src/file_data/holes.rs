//! Where a file has data.

use core::ops::Range;

use f2fs_format::BLOCK_BYTES;
use f2fs_sync::Arc;

use crate::FsError;
use crate::core::write_back::WriteBack;
use crate::file_data::FileData;
use crate::inode::Inode;

/// Blocks after which a range of data ends although data follows: 64 MiB, so that one call asks few nodes.
const LONGEST: u64 = 16_384;

/// The goal of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seek {
    Data,
    /// The end of the file is one.
    Hole,
}

impl FileData<'_> {
    /// The first byte at or behind `offset` that is data or hole, as asked for; `None` if the file ends before.
    pub(crate) fn seek(&self, inode: &Arc<Inode>, offset: u64, what: Seek) -> Result<Option<u64>, FsError> {
        // The nodes say where data is, once it is there.
        WriteBack(self).write_back_file(inode)?;
        self.seek_within(inode, offset, what, u64::MAX)
    }

    /// The same; behind `most` blocks what is looked for counts as found. Every step locks the block that it begins
    /// with, so that no node on the way to it goes, and passes the gate by itself.
    fn seek_within(&self, inode: &Inode, offset: u64, what: Seek, most: u64) -> Result<Option<u64>, FsError> {
        let content = self.content(inode);
        let first = offset / BLOCK_BYTES;
        let mut block = first;
        let end = |size: u64| (offset < size && what == Seek::Hole).then_some(size);
        loop {
            let Some(_readable) = content.lock_to_read(block * BLOCK_BYTES, 1) else { return Ok(end(content.size())) };
            let _gate = self.volume.begin_read();
            let size = content.size();
            if content.is_inline() {
                return Ok(end(size).or_else(|| (offset < size).then_some(offset)));
            }
            content.cache.refresh(self.volume.moves(inode.ino));
            let run = self.find_run(inode, content, block, (size - 1) / BLOCK_BYTES)?;
            if run.addr.is_real() == (what == Seek::Data) || block - first >= most {
                let found = (block * BLOCK_BYTES).max(offset);
                return Ok((found < size).then_some(found));
            }
            block += run.len;
        }
    }

    /// The first bytes at or behind `offset` that are no hole.
    pub(crate) fn next_data(&self, inode: &Arc<Inode>, offset: u64) -> Result<Option<Range<u64>>, FsError> {
        let Some(start) = self.seek(inode, offset, Seek::Data)? else { return Ok(None) };
        // It may have been cut meanwhile.
        let end = self.seek_within(inode, start, Seek::Hole, LONGEST)?;
        Ok(end.map(|end| start..end).filter(|found| !found.is_empty()))
    }
}
