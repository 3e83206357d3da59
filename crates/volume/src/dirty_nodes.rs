//! The nodes that the next checkpoint has to write: a list for each processor, of those that became dirty there.
//!
//! A checkpoint takes the lists with the gate closed, so there are few of them. An inode that is freed before leaves its
//! list: files that come and go between two checkpoints take no memory until the second one.
//!
//! A processor looks at its own list to see whether all may be too long, and adds all lengths up when its own has become
//! as much longer as would be its part. What left the lists counts there: its NID is free with the next checkpoint only.
//!
//! # Locking
//!
//! Each list has a lock, under which nothing is waited for and no other lock is taken. Its lengths, and the places of its
//! pages, are written with the lock held, and read without.

use f2fs_sync::atomic::{AtomicU64, Ordering::Relaxed};
use f2fs_sync::{Arc, Mutex, PerCore};

use crate::node_page::NodePage;

/// What became dirty on one processor.
#[derive(Default)]
struct List {
    pages: Mutex<Vec<Arc<NodePage>>>,
    len: AtomicU64,
    /// Pages that left it since it was taken.
    left: AtomicU64,
    /// All lengths are added up when this one is beyond it.
    look_beyond: AtomicU64,
}

/// All lists.
#[derive(Default)]
pub(crate) struct DirtyNodes(PerCore<List>);

/// A list and a place in it, as a number.
fn place(list: usize, index: usize) -> u64 {
    (list as u64) << 32 | index as u64
}

impl DirtyNodes {
    /// Adds a page; gives how long this processor's list is then.
    pub(crate) fn add(&self, page: Arc<NodePage>) -> u64 {
        let slot = self.0.slot_index();
        let Some(list) = self.0.get(slot) else { return 0 };
        let mut pages = list.pages.lock();
        page.listed_at.store(place(slot, pages.len()), Relaxed);
        pages.push(page);
        let len = pages.len() as u64;
        list.len.store(len, Relaxed);
        len
    }

    /// Takes a page off its list, if it is still there.
    pub(crate) fn leave(&self, page: &NodePage) {
        let at = page.listed_at.load(Relaxed);
        let Some(list) = self.0.get((at >> 32) as usize) else { return };
        let index = (at & u64::from(u32::MAX)) as usize;
        let mut pages = list.pages.lock();
        // A checkpoint may have taken the list meanwhile, or another page have moved.
        if !pages.get(index).is_some_and(|here| core::ptr::eq(&**here, page)) {
            return;
        }
        let left = pages.swap_remove(index);
        if let Some(moved) = pages.get(index) {
            moved.listed_at.store(at, Relaxed);
        }
        list.len.store(pages.len() as u64, Relaxed);
        list.left.store(list.left.load(Relaxed) + 1, Relaxed);
        drop(pages);
        drop(left);
    }

    /// Takes all pages.
    pub(crate) fn take(&self) -> Vec<Arc<NodePage>> {
        let mut all = Vec::new();
        for list in self.0.iter() {
            let mut pages = list.pages.lock();
            all.append(&mut pages);
            list.len.store(0, Relaxed);
            list.left.store(0, Relaxed);
            list.look_beyond.store(0, Relaxed);
        }
        all
    }

    /// About how many there are.
    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(|list| list.len.load(Relaxed)).sum()
    }

    /// About how many there were since the lists were taken.
    pub(crate) fn been(&self) -> u64 {
        self.0.iter().map(List::been).sum()
    }

    /// Whether there were more than `limit` since the lists were taken. A processor whose own list is short does not
    /// look at the others.
    pub(crate) fn is_beyond(&self, limit: u64) -> bool {
        let (list, lists) = (self.0.slot(), self.0.slots() as u64);
        let here = list.been();
        if here <= limit / lists || here <= list.look_beyond.load(Relaxed) {
            return false;
        }
        let all = self.been();
        if all <= limit {
            // If all lists grow alike, there are not more before this one is so long.
            list.look_beyond.store(here + (limit - all) / lists, Relaxed);
        }
        all > limit
    }
}

impl List {
    fn been(&self) -> u64 {
        self.len.load(Relaxed) + self.left.load(Relaxed)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use f2fs_format::node::NodeBlock;

    use super::*;

    /// Pages leave their lists in any order, and count as dirty no more.
    #[test]
    fn what_leaves_is_gone() {
        let nodes = DirtyNodes::default();
        let pages: Vec<_> = (0..100).map(|_| Arc::new(NodePage::new(NodeBlock::new_box()))).collect();
        for page in &pages {
            nodes.add(page.clone());
        }
        let mut random = f2fs_device_test::Random::new(3);
        let mut stay: Vec<_> = pages.iter().collect();
        for left in 1..=60 {
            let gone = stay.swap_remove(random.below(stay.len()));
            nodes.leave(gone);
            nodes.leave(gone);
            assert_eq!((nodes.len(), nodes.been(), Arc::strong_count(gone)), (100 - left, 100, 1));
        }
        let address = |page: &Arc<NodePage>| Arc::as_ptr(page);
        let (mut taken, mut stay) = (nodes.take(), stay.into_iter().map(address).collect::<Vec<_>>());
        taken.sort_unstable_by_key(address);
        stay.sort_unstable();
        assert_eq!(taken.iter().map(address).collect::<Vec<_>>(), stay);
        // What was taken is not on a list.
        nodes.leave(&taken[0]);
        assert_eq!((nodes.len(), nodes.been()), (0, 0));
    }

    #[test]
    fn the_limit_is_noticed_when_it_is_passed() {
        let nodes = DirtyNodes::default();
        let page = Arc::new(NodePage::new(NodeBlock::new_box()));
        for limit in [0, 1, 7, 1000] {
            for len in 1..=limit {
                assert_eq!((nodes.add(page.clone()), nodes.is_beyond(limit)), (len, false));
            }
            // From here on it is noticed until the lists are taken, also if pages leave them.
            assert!(!nodes.is_beyond(limit));
            nodes.add(page.clone());
            assert!(nodes.is_beyond(limit) && nodes.is_beyond(limit));
            nodes.leave(&page);
            assert!(nodes.is_beyond(limit));
            nodes.add(page.clone());
            assert_eq!((nodes.len(), nodes.take().len() as u64, nodes.len()), (limit + 1, limit + 1, 0));
            // Nobody waits with a look for what there was before.
            assert!(nodes.0.iter().all(|list| list.look_beyond.load(Relaxed) == 0));
        }
    }
}
