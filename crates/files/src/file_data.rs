//! The data of a file: reading and writing it, its size, its holes, and making it durable.

use core::ops::Deref;

use crate::core::Core;

pub(crate) mod allocate;
mod append;
mod behind_end;
pub(crate) mod block_map;
pub(crate) mod cached;
pub(crate) mod copy_range;
pub(crate) mod durable;
pub(crate) mod holes;
mod mark;
pub(crate) mod read;
pub(crate) mod read_many;
pub(crate) mod readable;
pub(crate) mod resize;
mod room;
pub(crate) mod sync;
mod sync_names;
pub(crate) mod write;
pub(crate) mod write_many;
pub(crate) mod zeroing;

/// The data of files. Each operation is told the inode.
#[derive(Clone, Copy)]
pub(crate) struct FileData<'a>(pub(crate) &'a Core);

impl Deref for FileData<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        self.0
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
