use core::ops::Range;

use f2fs_format::node::NodeBlock;
use rustc_hash::FxHashSet;

use super::*;

/// Pages that a shard keeps of a store that was made with no capacity.
const LEAST: usize = 4;

fn page(nid: u32, ino: u32) -> NodePage {
    let mut block = NodeBlock::new_box();
    (block.footer.nid, block.footer.ino) = (nid.into(), ino.into());
    NodePage::new(block)
}

fn nids(pages: &[Arc<NodePage>]) -> Vec<u32> {
    pages.iter().map(|page| page.nid.0).collect()
}

/// Numbers that fall into the same shard of a small cache.
fn of_one_shard() -> impl Iterator<Item = u32> {
    (5..).filter(|nid| stripe_of(*nid, FEW_SHARDS) == stripe_of(5, FEW_SHARDS))
}

/// A store with a dirty page of each of these nodes of inode 5.
fn dirty(those: &[u32]) -> (NodeStore, Vec<Arc<NodePage>>) {
    let store = NodeStore::new(1 << 20);
    let pages: Vec<_> = those.iter().map(|nid| store.insert(page(*nid, 5))).collect();
    assert!(pages.iter().all(|page| store.mark_dirty(page).is_some()));
    (store, pages)
}

/// Two threads that miss a node both read it: the second thread takes the first one's page, which may have changed
/// since.
#[test]
fn the_page_that_came_first_stays() {
    let store = NodeStore::new(FEW_SHARDS);
    let first = store.insert(page(7, 5));
    assert!(Arc::ptr_eq(&store.insert(page(7, 5)), &first));
    let read = store.insert_read(page(7, 5), || panic!("its node was read before")).unwrap();
    assert!(Arc::ptr_eq(&read, &first) && store.len() == 1);
}

#[test]
fn a_page_of_a_node_that_was_freed_while_it_was_read_is_none() {
    let store = NodeStore::new(1 << 20);
    let mut seen = None;
    let read = store.insert_read(page(7, 5), || {
        seen = store.get(Nid(7));
        true
    });
    assert!(read.is_none() && store.len() == 0);
    assert!(seen.unwrap().removed.load(Ordering::Acquire), "who got it meanwhile can tell");
    // Who made the node anew in between keeps it.
    let read = store.insert_read(page(7, 5), || {
        store.remove(&store.get(Nid(7)).unwrap());
        store.insert(page(7, 5));
        true
    });
    assert!(read.is_none() && !store.get(Nid(7)).unwrap().removed.load(Ordering::Acquire));
    assert!(store.insert_read(page(8, 5), || false).is_some() && store.len() == 2);
}

#[test]
fn pages_that_nobody_uses_any_more_are_dropped() {
    let store = NodeStore::new(0);
    let pages: Vec<_> = of_one_shard().take(12).map(|nid| store.insert(page(nid, 5))).collect();
    store.shrink();
    assert_eq!(store.len(), pages.len(), "all are in use");
    drop(pages);
    store.shrink();
    assert!(store.len() <= LEAST, "{}", store.len());
}

/// However many are read, and also behind a time when many were in use.
#[test]
fn a_shard_keeps_to_its_limit() {
    for ends in [NodeStore::shrink, NodeStore::drop_unused] {
        let store = NodeStore::new(0);
        let most = LEAST + LEAST / 2;
        for nid in of_one_shard().take(100) {
            store.insert(page(nid, 5));
            assert!(store.len() <= most, "{}", store.len());
        }
        let used: Vec<_> = of_one_shard().skip(100).take(100).map(|nid| store.insert(page(nid, 5))).collect();
        assert!(store.len() >= 100);
        drop(used);
        (0..2).for_each(|_| ends(&store));
        assert!(store.len() <= LEAST);
        for nid in of_one_shard().skip(200).take(100) {
            store.insert(page(nid, 5));
            assert!(store.len() <= most, "{}", store.len());
        }
    }
}

#[test]
fn a_checkpoint_leaves_what_fits() {
    let large = NodeStore::new(100 * FEW_SHARDS);
    assert_eq!(large.shard_capacity, 100 * FEW_SHARDS / large.shards.len());
    let store = NodeStore::new(0);
    of_one_shard().take(LEAST).for_each(|nid| drop(store.insert(page(nid, 5))));
    (0..3).for_each(|_| store.shrink());
    assert_eq!(store.len(), LEAST);
}

/// Of the nodes that leave with a checkpoint, new ones get the memory, and half of what is left goes with the next one.
#[test]
fn the_memory_of_pages_is_used_again() {
    let store = NodeStore::new(0);
    let leaves = |nids: Range<usize>| {
        let used: Vec<_> =
            of_one_shard().skip(nids.start).take(nids.len()).map(|nid| store.insert(page(nid, 5))).collect();
        let places: FxHashSet<*const NodePage> = used.iter().map(Arc::as_ptr).collect();
        drop(used);
        store.take_out();
        places
    };
    let places = leaves(0..100);
    let kept = store.spares.len();
    assert!(kept >= 100 - LEAST && store.len() <= LEAST, "{kept}");
    let new = store.insert_new(7, |block| (block.footer.nid, block.footer.ino) = (9999.into(), 9999.into()));
    assert!(places.contains(&Arc::as_ptr(&new)) && store.spares.len() == kept - 1);
    assert_eq!((new.nid, new.born.load(Ordering::Relaxed), new.is_unsynced()), (Nid(9999), 7, false));
    assert!(store.get(Nid(9999)).is_some_and(|found| Arc::ptr_eq(&found, &new)));
    for _ in 0..3 {
        let before = store.spares.len();
        store.take_out();
        // But for what this processor keeps for itself.
        assert!(store.spares.len() <= before / 2 + SPARES, "{before}");
    }
    for ends in [NodeStore::shrink, NodeStore::drop_unused] {
        leaves(100..200);
        assert!(!store.spares.is_empty());
        ends(&store);
        assert!(store.spares.is_empty());
    }
}

/// Below the limit as well; what is used between stays.
#[test]
fn pages_that_are_unused_between_two_times_are_dropped() {
    let store = NodeStore::new(1 << 20);
    (5..1005).for_each(|nid| drop(store.insert(page(nid, 5))));
    let held = store.get(Nid(7)).unwrap();
    store.mark_dirty(&store.get(Nid(11)).unwrap());
    store.drop_unused();
    assert_eq!(store.len(), 1000, "all are new");
    drop(store.get(Nid(9)));
    store.drop_unused();
    assert!([7, 9, 11].iter().all(|nid| store.get(Nid(*nid)).is_some()));
    assert_eq!(store.len(), 3);
    let room: usize = store.shards.iter().map(|shard| shard.pages.read().map.capacity()).sum();
    assert!(room < 100, "room for {room}");
    drop(held);
}

#[test]
fn a_page_is_listed_once_and_stands_with_its_file() {
    let (store, pages) = dirty(&[5, 9, 7]);
    assert!(pages.iter().all(|page| store.mark_dirty(page).is_none()));
    assert_eq!((store.dirty(), store.listed(), store.been_listed()), (3, 3, 3));
    assert!(store.is_dirty_beyond(2) && !store.is_dirty_beyond(3));
    assert_eq!(nids(&store.take_file(Nid(5))), [7, 9], "without the inode");
    assert!(store.take_file(Nid(5)).is_empty());
    // Once, although it stands there twice; not what is clean or gone meanwhile.
    store.put_file(Nid(5), vec![pages[1].clone(), pages[2].clone()]);
    store.put_file(Nid(5), vec![pages[1].clone()]);
    pages[2].set_clean();
    assert_eq!(nids(&store.take_file(Nid(5))), [9]);
    store.put_file(Nid(5), vec![pages[1].clone(), pages[2].clone()]);
    pages[1].removed.store(true, Ordering::Release);
    assert!(store.take_file(Nid(5)).is_empty());
    store.put_file(Nid(5), Vec::new());
    assert!(store.files_of(Nid(5)).lock().is_empty());
    // A sync that has written it changes nothing for the next checkpoint: it is listed no second time.
    assert!(store.mark_dirty(&pages[2]).is_none());
    assert_eq!(nids(&store.take_file(Nid(5))), [7]);
    assert_eq!(store.dirty(), 3);
}

#[test]
fn a_checkpoint_takes_what_is_to_be_written() {
    let (store, pages) = dirty(&[5, 6, 7, 8, 9]);
    pages[1].set_clean(); // synced in the log
    pages[2].set_journaled();
    pages[3].removed.store(true, Ordering::Release);
    pages[4].set_journaled();
    pages[4].removed.store(true, Ordering::Release);
    let taken = store.take_dirty();
    let mut dirty = nids(&taken.dirty);
    dirty.sort_unstable();
    assert_eq!(dirty, [5, 7]);
    assert_eq!((store.dirty(), store.been_listed(), store.kept()), (0, 0, 5));
    assert!(pages.iter().all(|page| !page.is_journaled()));
    // What changes from here on is the next one's.
    assert!(store.mark_dirty(&pages[1]).is_some());
    pages[0].set_clean();
    pages[2].set_clean();
    store.settle(taken);
    assert_eq!((store.dirty(), store.kept()), (1, 0));
    assert_eq!(nids(&store.take_file(Nid(5))), [6]);
}

/// A file's list of nodes does not keep those in memory that no sync has to write.
#[test]
fn a_durable_checkpoint_keeps_no_page() {
    let (store, pages) = dirty(&[6, 7, 8]);
    let taken = store.take_dirty();
    pages[0].set_clean();
    pages[1].removed.store(true, Ordering::Release);
    store.settle(taken);
    assert_eq!(pages.iter().map(Arc::strong_count).collect::<Vec<_>>(), [2, 2, 3], "one stands in the cache");
    pages[2].set_clean();
    store.settle(store.take_dirty());
    assert!(store.files.iter().all(|files| files.lock().is_empty()));
}

#[test]
fn a_sync_that_failed_leaves_its_pages_as_if_they_had_just_changed() {
    let (store, pages) = dirty(&[5]);
    pages[0].set_journaled();
    store.set_dirty_again(&pages[0]);
    assert!(pages[0].is_unsynced() && store.dirty() == 1, "still listed");
    drop(store.take_dirty());
    pages[0].set_clean();
    store.set_dirty_again(&pages[0]);
    assert_eq!(nids(&store.take_dirty().dirty), [5], "listed anew");
}

#[test]
fn pages_written_ahead_are_kept_until_their_checkpoint_is_durable() {
    let (store, pages) = dirty(&[5, 6, 7, 8]);
    let taken = store.take_for_ahead();
    assert_eq!((store.dirty(), store.listed(), store.kept()), (4, 0, 4), "their room is kept free");
    // One is written, one changes after that, one changed and is left, one is gone.
    pages[0].set_ahead();
    pages[1].set_ahead();
    assert!(store.mark_dirty(&pages[1]).is_some());
    pages[3].removed.store(true, Ordering::Release);
    store.put_back(&taken);
    store.pass_over(4);
    assert_eq!((store.dirty(), store.listed()), (2, 2));
    pages[0].journaled.store(true, Ordering::Release);
    store.keep(taken);
    let frozen = store.take_dirty();
    let mut dirty = nids(&frozen.dirty);
    dirty.sort_unstable();
    assert_eq!((dirty, store.kept()), (vec![6, 7], 6));
    assert_eq!(Arc::strong_count(&pages[0]), 3, "in the cache, and for the checkpoint");
    store.settle(frozen);
    assert_eq!((Arc::strong_count(&pages[0]), store.kept()), (2, 0));
    assert!(!pages[0].is_unsynced() && !pages[0].is_journaled());
}

#[test]
fn a_freed_node_is_gone_and_only_an_inode_leaves_the_list() {
    let (store, pages) = dirty(&[5, 6]);
    pages.iter().for_each(|page| store.remove(page));
    assert!(pages.iter().all(|page| page.removed.load(Ordering::Acquire)) && store.len() == 0);
    assert_eq!((store.dirty(), store.been_listed()), (1, 2), "the inode counts, and takes no memory");
    assert_eq!(Arc::strong_count(&pages[0]), 1);
    assert!(store.take_dirty().dirty.is_empty());
}
