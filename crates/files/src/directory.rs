//! Directories: names to inode numbers.
//!
//! A small directory stands inline in its inode; a larger one is a sparse file of dentry blocks, a multi-level hash
//! table ([`f2fs_format::hash`]). Dentry blocks are kept in memory and written at the checkpoint, so that a thousand
//! names that are created in one block cost one write.
//!
//! # Locking
//!
//! - **Stripes** (outer, before the gate): a name belongs to the stripe of its hash. Whoever changes a name holds the
//!   stripe exclusively from the look-up to the end of the change; look-ups hold it shared. So names in different
//!   stripes do not meet. Whoever removes a directory holds all of its stripes.
//! - **Pages** (inner): one reader-writer lock over each dentry block, for the moment of looking or changing. One page
//!   is locked at a time, and node pages come after it. The inode's own page takes this part for an inline directory.
//! - **Names of a stripe** (inner, [`names`]): what the stripe knows of the places of its names. One reader-writer
//!   lock, in the stripe's own line, for the moment of asking or noting; under it the budget's alone is taken.
//! - **The map of pages** is split into [`PAGE_SHARDS`] shards, one reader-writer lock each, held only to look up or
//!   insert.
//!
//! Names in different stripes of a directory write no common line, but where their entries stand in one dentry block,
//! and where a block begins or ends. Other changes (times, dirty marks) are noted in the stripe, or only if it is not
//! noted yet.
//!
//! ```text
//!   inline --convert--> hashed            (never back; `hashed` says so without the inode's page)
//!   page:  clean --change--> dirty --write_back--> clean      (beside operations, `write_ahead`: clean from when it is copied)
//!            \------------- last entry goes ------------> dead   (its block is a hole; look again)
//! ```

mod change;
mod foreign;
mod learn;
mod lookup;
mod names;
mod page;
mod shared;
mod write_back;

use f2fs_format::Nid;
use f2fs_format::dentry::FileType;
use f2fs_format::inode::{self as raw, Inode as RawInode, inline};
use f2fs_sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use f2fs_sync::{Arc, Mutex, RwLock, RwLockWriteGuard, Stamp};
use f2fs_volume::Node;
use rustc_hash::FxHashMap;

use crate::form::Form;
use crate::stat::{self, Time};
use names::Names;
use page::Page;

pub(crate) use lookup::{Located, RawEntry};
pub(crate) use shared::Directories;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use write_back::tests::kept_free;

/// Shards of a directory's map of pages ([`stripes_here`](f2fs_sync::stripes_here)).
const PAGE_SHARDS: usize = if cfg!(loom) { 2 } else { 16 };
/// Stripes of a directory's names ([`stripes_here`](f2fs_sync::stripes_here)).
const STRIPES: usize = if cfg!(loom) { 2 } else { 64 };

/// One shard of the pages of a directory, by the number of the block; on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct PageMap(RwLock<FxHashMap<u64, Arc<Page>>>);

/// A stripe of the names of a directory, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe {
    /// Held exclusively to change a name, shared to look one up.
    lock: RwLock<()>,
    names: RwLock<Names>,
    /// Nanoseconds since 1970 of the stripe's last change that the inode does not know of yet; 0: none.
    touched: AtomicI64,
}

/// A stripe that took two would have twice the lines that a shared directory moves between processors.
#[cfg(not(any(loom, shuttle, f2fs_counting, f2fs_manycore)))]
const _: () = assert!(size_of::<Stripe>() == 64);

/// The run-time state of a directory.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Its inode's node, which holds the names of an inline directory and the addresses of a hashed one.
    node: Node,
    /// The state that it shares with all directories.
    shared: Arc<Directories>,
    stripes: Box<[Stripe]>,
    /// Invalidated before a name of a subdirectory goes, with its stripe held exclusively: see [`crate::path_cache`].
    pub(crate) moved: Stamp,
    /// There are no entries in the inode, and never will be again.
    hashed: AtomicBool,
    /// The directory was removed; nothing can be created in it. Changed with all stripes held.
    dead: AtomicBool,
    /// Levels of the hash table in use (`i_current_depth`), written back with the pages.
    depth: AtomicU32,
    dir_level: u8,
    form: Form,
    pages: Box<[PageMap]>,
    /// Pages that differ from the device, by the number of the block.
    dirty: Mutex<FxHashMap<u64, Arc<Page>>>,
    /// Whether the directory is on the file system's list of those to write back.
    pub(crate) queued: AtomicBool,
}

/// The inode that a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) ino: Nid,
    pub(crate) file_type: Option<FileType>,
}

impl Directory {
    /// The directory that an inode is. Its known state is on the device.
    pub(crate) fn new(node: &Node, form: Form, shared: &Arc<Directories>) -> Directory {
        let block = node.read();
        let inode = block.inode();
        shared.came();
        Directory {
            stripes: (0..shared.stripes()).map(|_| Stripe::default()).collect(),
            moved: Stamp::new(),
            hashed: AtomicBool::new(!is_inline(inode)),
            dead: AtomicBool::new(false),
            depth: AtomicU32::new(inode.i_current_depth.get().max(1)),
            dir_level: inode.i_dir_level.min(31),
            form,
            pages: (0..shared.page_shards()).map(|_| PageMap::default()).collect(),
            dirty: Mutex::default(),
            queued: AtomicBool::new(false),
            node: node.clone(),
            shared: shared.clone(),
        }
    }

    /// Knows all of its names from here on. For a directory that was just made and has no name yet but `.` and `..`.
    pub(crate) fn begin(&mut self) {
        self.stripes.iter_mut().for_each(|stripe| stripe.names.get_mut().begin());
    }

    /// The number of the stripe that a name with this hash belongs to.
    pub(crate) fn stripe_of(&self, hash: u32) -> usize {
        hash as usize & (self.stripes.len() - 1)
    }

    pub(crate) fn stripe(&self, index: usize) -> &RwLock<()> {
        &self.stripes[index].lock
    }

    /// The known names of this hash's stripe.
    fn names(&self, hash: u32) -> &RwLock<Names> {
        &self.stripes[self.stripe_of(hash)].names
    }

    /// Names that may still be known.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn names_available(&self) -> u64 {
        self.shared.names.available_exact()
    }

    /// Notes a name that was added, at its place unless the directory is inline.
    fn note(&self, hash: u32, place: Option<(u64, usize)>) {
        self.names(hash).write().note(hash, place, &self.shared.names);
    }

    /// All stripes, exclusively: nothing in the directory moves.
    pub(crate) fn lock_all(&self) -> Vec<RwLockWriteGuard<'_, ()>> {
        self.stripes.iter().map(|stripe| stripe.lock.write()).collect()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// Marks the directory removed. Call with all stripes held.
    pub(crate) fn set_dead(&self, dead: bool) {
        self.dead.store(dead, Ordering::Release);
    }

    /// Whether its names stand in blocks of their own, which a checkpoint has to write.
    pub(crate) fn is_hashed(&self) -> bool {
        self.hashed.load(Ordering::Acquire)
    }

    fn depth(&self) -> u32 {
        self.depth.load(Ordering::Acquire)
    }

    /// The last change that the inode does not know of yet.
    pub(crate) fn touched(&self) -> Option<Time> {
        let touched = self.stripes.iter().map(|stripe| stripe.touched.load(Ordering::SeqCst)).max();
        touched.filter(|nanos| *nanos != 0).map(|nanos| Time {
            seconds: nanos.div_euclid(1_000_000_000),
            nanoseconds: nanos.rem_euclid(1_000_000_000) as u32,
        })
    }

    /// Notes a change of a name with this hash.
    fn touch(&self, hash: u32, now: Time) {
        // Ordered before the look whether the directory is queued: a thread that takes it off the queue, and then
        // misses this, is seen there.
        self.stripes[self.stripe_of(hash)].touched.fetch_max(nanos(now), Ordering::SeqCst);
    }

    /// Tells the inode of the last change; its page is locked. Times that are set later, with the same lock held, stay.
    pub(crate) fn settle_touch(&self, raw: &mut RawInode) {
        if let Some(time) = self.touched() {
            let (_, modified, changed) = stat::times(raw);
            stat::set_modified(raw, modified.max(time));
            stat::set_changed(raw, changed.max(time));
            self.forget_touch_until(time);
        }
    }

    /// Forgets the changes that are no later than this, which the inode knows of by now.
    fn forget_touch_until(&self, time: Time) {
        for stripe in &self.stripes {
            let seen = stripe.touched.load(Ordering::Relaxed);
            if seen != 0 && seen <= nanos(time) {
                // One that changes at this moment is noted again.
                let _ = stripe.touched.compare_exchange(seen, 0, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }

    fn shard(&self, block: u64) -> &RwLock<FxHashMap<u64, Arc<Page>>> {
        &self.pages[block as usize & (self.pages.len() - 1)].0
    }
}

fn nanos(time: Time) -> i64 {
    time.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(time.nanoseconds))
}

impl Drop for Directory {
    fn drop(&mut self) {
        let budget = &self.shared.names;
        self.stripes.iter_mut().for_each(|stripe| stripe.names.get_mut().forget(budget));
    }
}

fn is_inline(inode: &raw::Inode) -> bool {
    inode.i_inline & inline::DENTRY != 0
}
