//! Blocks behind the end of a file.
//!
//! Roll-forward lets a file reach over all of its blocks, as in Linux, unless its inode says that there are some behind
//! its end. They come in several operations, and a sync may be between two of them: so the inode says it before there are
//! any, and no more when the file has grown over them.
//!
//! # Locking
//!
//! The caller holds the range. Who holds all of the file behind it, to the end of all, takes the word back: nobody else
//! puts blocks there meanwhile. Others leave it, also if they gave it: a size that waits in the page cache is not in the
//! inode yet, so ranges in front of it may be behind the end of the inode.

use f2fs_format::inode::{Inode as RawInode, advise};
use f2fs_sync::{protocol_step, protocol_value};

use crate::FsError;
use crate::content::Content;
use crate::file_data::FileData;
use crate::inode::Inode;

/// What becomes of the word when the range is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BehindEnd {
    /// It stays: it was there before, or others may need it.
    Stays,
    /// It was given for this range alone.
    Ends,
}

impl BehindEnd {
    /// The file has grown over the blocks, or they are gone.
    pub(crate) fn end(self, raw: &mut RawInode) {
        if self == BehindEnd::Ends {
            raw.i_advise &= !advise::KEEP_SIZE;
        }
    }
}

impl FileData<'_> {
    /// Says in the inode that blocks are reserved behind its end, if a range that ends at `end` has some. `alone`: the
    /// caller holds everything behind the range as well.
    pub(crate) fn begin_behind_end(
        &self,
        inode: &Inode,
        content: &Content,
        end: u64,
        alone: bool,
    ) -> Result<BehindEnd, FsError> {
        let (was_kept, size) = {
            let node = inode.node.read();
            (node.inode().i_advise & advise::KEEP_SIZE != 0, node.inode().i_size.get())
        };
        if was_kept || end <= content.size().min(size) {
            return Ok(BehindEnd::Stays);
        }
        self.change(|op| {
            let keep = || inode.node.write(op).inode_mut().i_advise |= advise::KEEP_SIZE;
            protocol_step!("blocks_behind_an_end_without_a_word", keep());
            Ok(())
        })?;
        let ends = protocol_value!("word_of_blocks_taken_from_others", alone, true);
        Ok(if ends { BehindEnd::Ends } else { BehindEnd::Stays })
    }
}
