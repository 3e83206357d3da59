//! The cache of node blocks, and their write-back.
//!
//! # Locking
//!
//! A shard owns the nodes whose NID falls into it: one reader-writer lock over its map, which is not held while a page
//! is locked or the device is waited for. A hit takes it shared.
//! Two threads that miss the same node both read it; the second one to come back takes the first one's page.
//!
//! A dirty page is never evicted: what bounds their number is the checkpoint ([`NodeStore::dirty`] tells when).

use f2fs_format::Nid;
use f2fs_format::node::NodeBlock;
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{
    Arc, CachePadded, Mutex, RwLock, Spares, cache_stripes_here, protocol_never, protocol_step, protocol_value,
    stripe_of,
};
use rustc_hash::FxHashMap;

use crate::dirty_nodes::DirtyNodes;
use crate::node_page::{AHEAD, DIRTY, NodePage};

/// Shards on a small machine, or of a small cache; a large cache has 1 MiB of them on 128 processors.
const FEW_SHARDS: usize = if cfg!(loom) { 2 } else { 256 };
/// Pages that each shard keeps at least.
const FEW_PAGES: usize = 4;
type Map = FxHashMap<Nid, Arc<NodePage>>;

/// The pages of a shard.
#[derive(Default)]
struct Pages {
    map: Map,
    /// Pages at which the shard looks for some to drop. Pages that cannot be dropped (dirty, in use) raise it, so that
    /// a shard full of such pages is not searched at every insertion.
    crowded_at: usize,
}

#[derive(Default)]
struct Shard {
    pages: RwLock<Pages>,
}

/// The cache.
pub(crate) struct NodeStore {
    shards: Box<[CachePadded<Shard>]>,
    /// Pages that a shard keeps at most, dirty ones aside.
    shard_capacity: usize,
    dirty: DirtyNodes,
    /// Pages that a pass ahead of the checkpoint has taken off the lists and not written yet.
    taken: AtomicU64,
    /// Pages that were written before their checkpoint: they stay in memory until it is durable. Evicting the page
    /// would lose `born` and `unloggable`.
    ahead: Mutex<Vec<Vec<Arc<NodePage>>>>,
    /// Pages that a checkpoint on its way keeps in memory, counted as often as it took them.
    kept: AtomicU64,
    /// The dirty nodes of each inode but its own, by shards of the inode numbers: what a sync of the file looks for. A
    /// node may stand here twice, or be clean again: until the next checkpoint is durable.
    files: Box<[CachePadded<FileNodes>]>,
    /// Pages that left the cache: memory of the next ones. Those of a checkpoint are many, and all at once the C
    /// library takes long to free them, with a lock that each operation waits for.
    spares: Spares<Arc<NodePage>>,
}

/// Spare pages that go from list to list at a time.
const SPARES: usize = 32;

type FileNodes = Mutex<NodesByFile>;
type NodesByFile = FxHashMap<Nid, Vec<Arc<NodePage>>>;

/// The nodes of a checkpoint.
pub(crate) struct TakenNodes {
    /// The pages that the checkpoint has to write.
    pub(crate) dirty: Vec<Arc<NodePage>>,
    /// Those that were written ahead.
    ahead: Vec<Vec<Arc<NodePage>>>,
}

impl core::fmt::Debug for NodeStore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("NodeStore").field("shard_capacity", &self.shard_capacity).finish_non_exhaustive()
    }
}

impl NodeStore {
    /// A cache of about `capacity` clean nodes (4 KiB each).
    pub(crate) fn new(capacity: usize) -> NodeStore {
        let shards = cache_stripes_here(FEW_SHARDS, capacity, FEW_PAGES);
        NodeStore {
            shards: (0..shards).map(|_| CachePadded::new(Shard::default())).collect(),
            shard_capacity: (capacity / shards).max(FEW_PAGES),
            dirty: DirtyNodes::default(),
            taken: AtomicU64::new(0),
            ahead: Mutex::new(Vec::new()),
            kept: AtomicU64::new(0),
            files: (0..shards).map(|_| CachePadded::new(Mutex::default())).collect(),
            spares: Spares::new(SPARES),
        }
    }

    fn shard(&self, nid: Nid) -> &Shard {
        &self.shards[stripe_of(nid.0, self.shards.len())]
    }

    fn files_of(&self, ino: Nid) -> &FileNodes {
        &self.files[stripe_of(ino.0, self.files.len())]
    }

    pub(crate) fn get(&self, nid: Nid) -> Option<Arc<NodePage>> {
        let page = self.shard(nid).pages.read().map.get(&nid).map(Arc::clone)?;
        if !page.used.load(Ordering::Relaxed) {
            page.used.store(true, Ordering::Relaxed);
        }
        Some(page)
    }

    /// Adds a page for a new node, which `fill` makes in a block of zeros; `born`: the version of the names.
    pub(crate) fn insert_new(&self, born: u64, fill: impl FnOnce(&mut NodeBlock)) -> Arc<NodePage> {
        let page = self.blank(fill);
        page.born.store(born, Ordering::Relaxed);
        self.insert_shared(page)
    }

    /// A page that nobody else has.
    fn blank(&self, fill: impl FnOnce(&mut NodeBlock)) -> Arc<NodePage> {
        #[cfg(not(any(loom, shuttle)))]
        if let Some(mut page) = self.spares.take()
            && let Some(own) = Arc::get_mut(&mut page)
        {
            own.begin_again(fill);
            return page;
        }
        let mut block = NodeBlock::new_box();
        fill(&mut block);
        Arc::new(NodePage::new(block))
    }

    /// Adds a page that was read or made; returns the one that is in the cache now.
    pub(crate) fn insert(&self, page: NodePage) -> Arc<NodePage> {
        self.insert_shared(Arc::new(page))
    }

    fn insert_shared(&self, page: Arc<NodePage>) -> Arc<NodePage> {
        let shard = self.shard(page.nid);
        let mut pages = shard.pages.write();
        let mut evicted = Vec::new();
        if pages.map.len() >= pages.crowded_at.max(self.shard_capacity) {
            evicted = evict(&mut pages.map);
            pages.crowded_at = pages.map.len() + pages.map.len() / 2;
        }
        let page = pages.map.entry(page.nid).or_insert(page).clone();
        drop(pages);
        drop(evicted);
        page
    }

    /// Marks a page dirty. Called under its write lock. If the page joins the dirty ones of this processor: how many
    /// these are.
    pub(crate) fn mark_dirty(&self, page: &Arc<NodePage>) -> Option<u64> {
        match page.set_dirty() {
            DIRTY => return None,
            AHEAD => protocol_never!("node_ahead_changes_in_place", {
                page.set_ahead();
                return None;
            }),
            _ => {}
        }
        if page.nid != page.ino {
            self.files_of(page.ino).lock().entry(page.ino).or_default().push(page.clone());
        }
        self.list(page)
    }

    /// Puts a page on a list, unless it is on one; gives how long that is then.
    fn list(&self, page: &Arc<NodePage>) -> Option<u64> {
        if page.listed.swap(true, Ordering::AcqRel) {
            // A sync has written it since the last checkpoint.
            return None;
        }
        Some(self.dirty.add(Arc::clone(page)))
    }

    /// A sync of the page failed: it has to be synced again, and written by the next checkpoint, whatever its state
    /// was.
    pub(crate) fn set_dirty_again(&self, page: &Arc<NodePage>) {
        page.set_dirty();
        self.list(page);
    }

    /// Takes the lists of dirty pages, to write them before their checkpoint while operations run. Pages that are not
    /// written are [put back](Self::put_back), and in the end all are [kept](Self::keep).
    pub(crate) fn take_for_ahead(&self) -> Vec<Arc<NodePage>> {
        // Counted before the lists are empty: what is dirty has its room kept free at any moment.
        self.taken.store(self.dirty.len(), Ordering::Relaxed);
        let all = self.dirty.take();
        self.taken.store(all.len() as u64, Ordering::Relaxed);
        // An operation that changes a page from here on lists it again; who did so before has its change seen when the
        // page is written.
        for page in &all {
            page.listed.swap(false, Ordering::AcqRel);
        }
        self.kept.fetch_add(all.len() as u64, Ordering::Relaxed);
        all
    }

    /// So many of the taken pages were written, or put back.
    pub(crate) fn pass_over(&self, pages: u64) {
        self.taken.fetch_sub(pages, Ordering::Relaxed);
    }

    /// Lists pages again that were taken and still have to be written.
    pub(crate) fn put_back(&self, pages: &[Arc<NodePage>]) {
        for page in pages.iter().filter(|page| page.is_to_be_written()) {
            self.list(page);
        }
    }

    /// Pages that a checkpoint on its way keeps in memory, about.
    pub(crate) fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Keeps pages in memory until their checkpoint is durable.
    pub(crate) fn keep(&self, pages: Vec<Arc<NodePage>>) {
        self.ahead.lock().push(pages);
    }

    /// Takes a freed node out of the cache. An inode leaves the dirty ones as well; another node stays in memory among
    /// those of its file until the checkpoint, and counts.
    pub(crate) fn remove(&self, page: &NodePage) {
        page.removed.store(true, Ordering::Release);
        self.shard(page.nid).pages.write().map.remove(&page.nid);
        if page.nid == page.ino && page.listed.load(Ordering::Acquire) {
            self.dirty.leave(page);
        }
    }

    /// Adds a page that was read, unless there is one, or `freed` says then that its node is gone.
    pub(crate) fn insert_read(&self, page: NodePage, freed: impl FnOnce() -> bool) -> Option<Arc<NodePage>> {
        let page = Arc::new(page);
        let kept = self.insert_shared(page.clone());
        if Arc::ptr_eq(&kept, &page) && protocol_value!("node_read_and_freed_stays", freed(), false) {
            page.removed.store(true, Ordering::Release);
            let mut pages = self.shard(page.nid).pages.write();
            if pages.map.get(&page.nid).is_some_and(|here| Arc::ptr_eq(here, &page)) {
                pages.map.remove(&page.nid);
            }
            return None;
        }
        Some(kept)
    }

    /// Takes the dirty nodes of an inode, its own aside.
    pub(crate) fn take_file(&self, ino: Nid) -> Vec<Arc<NodePage>> {
        let mut pages = self.files_of(ino).lock().remove(&ino).unwrap_or_default();
        pages.retain(|page| page.is_unsynced() && !page.removed.load(Ordering::Acquire));
        pages.sort_unstable_by_key(|page| page.nid);
        pages.dedup_by_key(|page| page.nid);
        pages
    }

    /// Puts back what [`take_file`](Self::take_file) gave and was not written.
    pub(crate) fn put_file(&self, ino: Nid, pages: Vec<Arc<NodePage>>) {
        if !pages.is_empty() {
            self.files_of(ino).lock().entry(ino).or_default().extend(pages);
        }
    }

    /// About how many pages became dirty since the last checkpoint, and were not written ahead of the next one.
    pub(crate) fn dirty(&self) -> u64 {
        protocol_value!("taken_nodes_have_no_room", self.listed() + self.taken.load(Ordering::Relaxed), self.listed())
    }

    /// About how many of them are on the lists: no pass ahead of a checkpoint has taken them.
    pub(crate) fn listed(&self) -> u64 {
        self.dirty.len()
    }

    /// The same, with those that are freed by now.
    pub(crate) fn been_listed(&self) -> u64 {
        self.dirty.been()
    }

    /// Whether more than `limit` pages became dirty, those that are freed by now included. Cheap to ask before each
    /// operation.
    pub(crate) fn is_dirty_beyond(&self, limit: u64) -> bool {
        self.dirty.is_beyond(limit)
    }

    /// Takes the lists of dirty pages. Called with the gate closed.
    pub(crate) fn take_dirty(&self) -> TakenNodes {
        let mut all = self.dirty.take();
        self.kept.fetch_add(all.len() as u64, Ordering::Relaxed);
        all.retain(|page| {
            protocol_step!("node_stays_listed", page.listed.store(false, Ordering::Release));
            let journaled = page.journaled.swap(false, Ordering::AcqRel);
            let journaled = protocol_value!("journaled_node_left_out", journaled, false);
            page.is_to_be_written() || (journaled && !page.removed.load(Ordering::Acquire))
        });
        TakenNodes { dirty: all, ahead: core::mem::take(&mut *self.ahead.lock()) }
    }

    /// A checkpoint is durable: its pages need not be kept any more. Called before syncs go on.
    pub(crate) fn settle(&self, taken: TakenNodes) {
        for page in taken.ahead.into_iter().flatten() {
            page.journaled.store(false, Ordering::Release);
            page.settle_ahead();
        }
        self.kept.store(0, Ordering::Relaxed);
        for nodes in &self.files {
            // Those that became dirty since the freeze stay.
            nodes.lock().retain(|_, pages| {
                pages.retain(|page| page.is_unsynced() && !page.removed.load(Ordering::Acquire));
                !pages.is_empty()
            });
        }
    }

    /// Drops clean pages of shards that are above their capacity.
    pub(crate) fn shrink(&self) {
        self.take_out();
        self.spares.drop_all();
    }

    /// Takes clean pages out of shards that are above their capacity, and keeps their memory for nodes to come. Of what
    /// was kept the last time, and that nobody took since, half is dropped.
    pub(crate) fn take_out(&self) {
        self.spares.drop_beyond(self.spares.len() / 2);
        for shard in &self.shards {
            let mut pages = shard.pages.write();
            let mut evicted = [Vec::new(), Vec::new()];
            // The second round takes those that were spared for having been used.
            for round in &mut evicted {
                if pages.map.len() > self.shard_capacity {
                    *round = evict(&mut pages.map);
                }
            }
            pages.crowded_at = 0;
            drop(pages);
            self.spares.give_all(evicted.into_iter().flatten());
        }
    }

    /// Drops clean pages that nobody used since the last time.
    pub(crate) fn drop_unused(&self) {
        for shard in &self.shards {
            let mut pages = shard.pages.write();
            let evicted = evict(&mut pages.map);
            pages.crowded_at = 0;
            // A map does not give back by itself what it had room for.
            pages.map.shrink_to_fit();
            drop(pages);
            drop(evicted);
        }
        self.spares.drop_all();
    }

    /// Pages in the cache.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.pages.read().map.len()).sum()
    }
}

/// Takes out clean pages that nobody holds, those used since the last round excepted. They are dropped without the lock:
/// their memory may take longer to give back than to find.
#[must_use]
fn evict(map: &mut Map) -> Vec<Arc<NodePage>> {
    let stays = |page: &Arc<NodePage>| {
        page.is_unsynced() || Arc::strong_count(page) > 1 || page.used.swap(false, Ordering::Relaxed)
    };
    map.extract_if(|_, page| !stays(page)).map(|(_, page)| page).collect()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
