//! A reference to a directory that many threads go through.
//!
//! Its count of references stands on lines of its own, which threads on other processors do not write, as a rule: each
//! processor makes one for itself ([`crate::path_cache`]). Without the padding those of two processors could be
//! neighbours in one line.

use std::ops::Deref;

use f2fs_sync::{Arc, CachePadded};

use crate::inode::Inode;

/// A directory, counted apart from the inode.
#[derive(Debug)]
pub(crate) struct CachedDirectory(CachePadded<Arc<Inode>>);

impl CachedDirectory {
    pub(crate) fn new(inode: Arc<Inode>) -> Arc<CachedDirectory> {
        Arc::new(CachedDirectory(CachePadded::new(inode)))
    }
}

impl Deref for CachedDirectory {
    type Target = Arc<Inode>;

    fn deref(&self) -> &Arc<Inode> {
        &self.0
    }
}
