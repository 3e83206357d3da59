//! Blocks behind the end of a file.
//!
//! Roll-forward lets a file reach over all of its blocks, as in Linux, unless its inode says that there are some behind
//! its end. They come in several operations, and a sync may be between two of them: so the inode says it before there are
//! any, and no more when the file has grown over them.

use f2fs_format::inode::{Inode as RawInode, advise};
use f2fs_sync::protocol_step;

use crate::FsError;
use crate::content::Content;
use crate::file_data::FileData;
use crate::inode::Inode;

impl FileData<'_> {
    /// Says in the inode that blocks are reserved behind its end, if a range that ends at `end` has some; whether it said
    /// so before.
    pub(crate) fn begin_behind_end(&self, inode: &Inode, content: &Content, end: u64) -> Result<bool, FsError> {
        let (was_kept, size) = {
            let node = inode.node.read();
            (node.inode().i_advise & advise::KEEP_SIZE != 0, node.inode().i_size.get())
        };
        // What waits in the page cache is not in the inode's size yet.
        if !was_kept && end > content.size().min(size) {
            self.change(|op| {
                let keep = || inode.node.write(op).inode_mut().i_advise |= advise::KEEP_SIZE;
                protocol_step!("blocks_behind_an_end_without_a_word", keep());
                Ok(())
            })?;
        }
        Ok(was_kept)
    }
}

/// There is nothing behind the end of a file but what was there before.
pub(crate) fn end_behind_end(raw: &mut RawInode, was_kept: bool) {
    if !was_kept {
        raw.i_advise &= !advise::KEEP_SIZE;
    }
}
