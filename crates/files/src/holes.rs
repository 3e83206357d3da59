//! Where a file has data.

use core::ops::Range;

use f2fs_format::BLOCK_SIZE;

use crate::FsError;
use crate::filesystem::Core;
use crate::inode::Inode;

const BLOCK: u64 = BLOCK_SIZE as u64;
/// Blocks after which a range of data ends although data follows: 64 MiB, so that one call asks few nodes.
const LONGEST: u64 = 16_384;

impl Core {
    /// The first bytes at or behind `offset` that are no hole. Every step locks the block that it begins with, so that no node on
    /// the way to it goes, and passes the gate by itself.
    pub(crate) fn next_data(&self, inode: &Inode, offset: u64) -> Result<Option<Range<u64>>, FsError> {
        let content = inode.content(self);
        let mut block = offset / BLOCK;
        let mut found: Option<Range<u64>> = None;
        while found.as_ref().is_none_or(|found| found.end - found.start < LONGEST) {
            let Some(_readable) = content.lock_to_read(block * BLOCK, 1) else { break };
            let _gate = self.volume.begin_read();
            let size = content.size();
            if content.is_inline() {
                return Ok((offset < size).then_some(offset..size));
            }
            content.cache.refresh(self.volume.moves(inode.ino));
            let run = self.find_run(inode, content, block, (size - 1) / BLOCK)?;
            match &mut found {
                None if run.addr.is_real() => found = Some(block..block + run.len),
                Some(found) if run.addr.is_real() => found.end = block + run.len,
                Some(_) => break,
                None => {}
            }
            block += run.len;
        }
        // It may have been cut meanwhile.
        let size = content.size();
        Ok(found
            .map(|found| (found.start * BLOCK).max(offset)..(found.end * BLOCK).min(size))
            .filter(|found| found.start < found.end))
    }
}
