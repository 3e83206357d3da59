//! The nodes that the next checkpoint has to write: a list for each processor, of those that became dirty there.
//!
//! A checkpoint takes the lists with the gate closed, so there are few of them. A processor looks at its own list to
//! see whether all may be too long, and adds all lengths up when its own has become as much longer as would be its part.
//!
//! # Locking
//!
//! Each list has a lock, under which nothing is waited for and no other lock is taken. Its length is written with the
//! lock held, and read without.

use f2fs_sync::atomic::{AtomicU64, Ordering::Relaxed};
use f2fs_sync::{Arc, Mutex, PerCore};

use crate::node_page::NodePage;

/// What became dirty on one processor.
#[derive(Default)]
struct List {
    pages: Mutex<Vec<Arc<NodePage>>>,
    len: AtomicU64,
    /// All lengths are added up when this one is beyond it.
    look_beyond: AtomicU64,
}

/// All lists.
#[derive(Default)]
pub(crate) struct DirtyNodes(PerCore<List>);

impl DirtyNodes {
    /// Adds a page; gives how long this processor's list is then.
    pub(crate) fn add(&self, page: Arc<NodePage>) -> u64 {
        let list = self.0.slot();
        let mut pages = list.pages.lock();
        pages.push(page);
        let len = pages.len() as u64;
        list.len.store(len, Relaxed);
        len
    }

    /// Takes all pages.
    pub(crate) fn take(&self) -> Vec<Arc<NodePage>> {
        let mut all = Vec::new();
        for list in self.0.iter() {
            let mut pages = list.pages.lock();
            all.append(&mut pages);
            list.len.store(0, Relaxed);
            list.look_beyond.store(0, Relaxed);
        }
        all
    }

    /// About how many there are.
    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(|list| list.len.load(Relaxed)).sum()
    }

    /// Whether there are more than `limit`. A processor whose own list is short does not look at the others.
    pub(crate) fn is_beyond(&self, limit: u64) -> bool {
        let (list, lists) = (self.0.slot(), self.0.slots() as u64);
        let here = list.len.load(Relaxed);
        if here <= limit / lists || here <= list.look_beyond.load(Relaxed) {
            return false;
        }
        let all = self.len();
        if all <= limit {
            // If all lists grow alike, there are not more before this one is so long.
            list.look_beyond.store(here + (limit - all) / lists, Relaxed);
        }
        all > limit
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use f2fs_format::node::NodeBlock;

    use super::*;

    #[test]
    fn the_limit_is_noticed_when_it_is_passed() {
        let nodes = DirtyNodes::default();
        let page = Arc::new(NodePage::new(NodeBlock::new_box()));
        for limit in [0, 1, 7, 1000] {
            for len in 1..=limit {
                assert_eq!((nodes.add(page.clone()), nodes.is_beyond(limit)), (len, false));
            }
            // From here on it is noticed until the lists are taken.
            assert!(!nodes.is_beyond(limit));
            nodes.add(page.clone());
            assert!(nodes.is_beyond(limit) && nodes.is_beyond(limit));
            assert_eq!((nodes.len(), nodes.take().len() as u64, nodes.len()), (limit + 1, limit + 1, 0));
        }
    }
}
