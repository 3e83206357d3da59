//! Files that many threads open, remembered open by each processor.
//!
//! To open a file by its name takes a shared lock of the name's stripe and of a block, a reference to the inode, and the
//! count of its handles: lines that all threads write which open the same file. So a processor that opens a file which
//! somebody else has open, by a handle of its own, keeps it open, by that name, for all who open the name there
//! ([`KeptOpen`]). These are counted in a line of the processor's own; the inode counts all of them as one.
//!
//! ```text
//!   open, nobody has a handle of its own  ->  a handle of its own
//!   open, somebody has one                ->  kept open by the processor; the next handles of the name there share that
//!   name removed, replaced                ->  all processors forget it; it is closed with its last handle
//! ```
//!
//! Were all opens counted, those of the processors among them, files that are opened here and there would be kept by ever
//! more processors, and each would put others in their place.
//!
//! # What is guaranteed
//!
//! A name that is remembered means its file. It is noted with its stripe held shared. Whoever takes it from the file
//! holds the stripe exclusively, and has all processors forget the name first ([`forget`](OpenFiles::forget)): a thread
//! that finds it finds it before the name goes.
//!
//! # Locking
//!
//! One mutex a processor, under stripes, for the moment of asking or noting; nothing else is locked under it. What is
//! forgotten is closed without it. Files that are remembered stay open, and in memory: 64 for each processor at most
//! ([`Remembered`]). Those that nobody uses count as closed where the memory of their locks is counted
//! ([`crate::idle`]), and are forgotten when it is too much.

use std::ops::Deref;

use f2fs_sync::atomic::{AtomicU32, Ordering};
use f2fs_sync::{Arc, CachePadded, Mutex, PerCore, protocol_step};

use crate::cached_directory::CachedDirectory;
use crate::inode::Inode;
use crate::remembered::{Known, Remembered};

/// A file that a processor keeps open, once for all.
#[derive(Debug)]
pub(crate) struct KeptOpen {
    pub(crate) inode: Arc<Inode>,
    /// Its handles, and one more while it is remembered; on lines of its own.
    users: CachePadded<AtomicU32>,
}

impl KeptOpen {
    /// A file that was just opened, with one handle.
    pub(crate) fn new(inode: Arc<Inode>) -> Arc<KeptOpen> {
        Arc::new(KeptOpen { inode, users: CachePadded::new(AtomicU32::new(1)) })
    }

    /// One uses it no more; how many are left. The last one has to close the file.
    pub(crate) fn leave(&self) -> u32 {
        self.users.fetch_sub(1, Ordering::AcqRel) - 1
    }

    /// Whether nobody uses it, and it is only remembered.
    fn rests(&self) -> bool {
        self.users.load(Ordering::Relaxed) == 1
    }

    /// Another one uses it, beside one who does.
    fn join(this: &Arc<KeptOpen>) -> Arc<KeptOpen> {
        this.users.fetch_add(1, Ordering::Relaxed);
        Arc::clone(this)
    }
}

/// An open inode.
#[derive(Debug)]
pub(crate) enum Opened {
    /// Its inode counts it alone.
    Own(Arc<Inode>),
    /// It is one of those that were opened on the same processor, which the inode counts as one.
    Shared(Arc<KeptOpen>),
}

impl Deref for Opened {
    type Target = Arc<Inode>;

    #[inline]
    fn deref(&self) -> &Arc<Inode> {
        match self {
            Opened::Own(inode) => inode,
            Opened::Shared(kept) => &kept.inode,
        }
    }
}

/// Files that were remembered, each of which its owner has to leave.
pub(crate) type Forgotten = Vec<Known<Arc<KeptOpen>>>;

/// The files that all processors remember.
#[derive(Debug)]
pub(crate) struct OpenFiles(PerCore<Mutex<Remembered<Arc<KeptOpen>>>>);

impl OpenFiles {
    pub(crate) fn new() -> OpenFiles {
        OpenFiles(PerCore::new(|_| Mutex::default()))
    }

    /// The file that a name in `parent` means, if that was noted here, for one more handle.
    pub(crate) fn get(&self, parent: &Inode, name: &[u8]) -> Option<Arc<KeptOpen>> {
        self.0.slot().lock().get(parent, name).map(KeptOpen::join)
    }

    /// Remembers what a name in `parent` means. The caller holds the name's stripe.
    pub(crate) fn note(&self, parent: &Arc<CachedDirectory>, name: &[u8], file: &Arc<KeptOpen>) -> Forgotten {
        file.inode.remembered.store(true, Ordering::Relaxed);
        let file = KeptOpen::join(file);
        let old = self.0.slot().lock().put(parent, name, file);
        old.into_iter().collect()
    }

    /// Forgets the names of `inode` under which nobody uses it.
    pub(crate) fn forget_resting(&self, inode: &Inode) -> Forgotten {
        let mut forgotten = Vec::new();
        if inode.remembered.load(Ordering::Relaxed) {
            for slot in self.0.iter() {
                // With the lock held nobody joins.
                let rests = |file: &Arc<KeptOpen>| std::ptr::eq::<Inode>(&*file.inode, inode) && file.rests();
                slot.lock().extract(rests, &mut forgotten);
            }
        }
        forgotten
    }

    /// Forgets a name of `inode`, which is about to go. The caller holds the name's stripe exclusively.
    pub(crate) fn forget(&self, parent: &Inode, name: &[u8], inode: &Inode) -> Forgotten {
        let mut forgotten = Vec::new();
        // Who noted it held the stripe before.
        if inode.remembered.load(Ordering::Relaxed) {
            protocol_step!(
                "open_files_remember_what_went",
                forgotten.extend(self.0.iter().filter_map(|slot| slot.lock().remove(parent, name)))
            );
        }
        forgotten
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use super::*;
    use crate::samples::formatted;
    use crate::{File, FileSystem, Options};

    fn kept(file: &File) -> Option<&Arc<KeptOpen>> {
        match &file.handle.inode {
            Opened::Own(_) => None,
            Opened::Shared(kept) => Some(kept),
        }
    }

    #[test]
    fn those_who_open_a_name_on_one_processor_share_what_it_keeps_open() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let own = fs.create_file("/a", 0o644).unwrap();
        assert!(kept(&own).is_none());
        // This thread may go to another processor in between.
        let shared = || {
            let (one, other) = (fs.open_file("/a").unwrap(), fs.open_file("/a").unwrap());
            let (one, other) = (kept(&one).unwrap(), kept(&other).unwrap());
            // The two, and one more while it is remembered.
            Arc::ptr_eq(one, other) && one.users.load(Ordering::Relaxed) == 3 && !one.rests()
        };
        assert!((0..100).any(|_| shared()));
        // Nobody has it open by a handle of its own: the next one who does is not counted with the processors.
        drop(fs.create_file("/b", 0o644).unwrap());
        let (first, second) = (fs.open_file("/b").unwrap(), fs.open_file("/b").unwrap());
        assert!(kept(&first).is_none() && kept(&second).is_some());
        let last = Arc::clone(kept(&fs.open_file("/a").unwrap()).unwrap());
        assert!(last.rests(), "{:?}", last.users);
    }

    /// Names of one directory do not put each other out.
    #[test]
    fn many_names_of_a_directory_are_remembered() {
        const NAMES: usize = 8;
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let paths: Vec<_> = (0..NAMES).map(|number| format!("/file {number}")).collect();
        let _own: Vec<_> = paths.iter().map(|path| fs.create_file(path, 0o644).unwrap()).collect();
        // This thread may go to another processor in between.
        let all = || {
            let first: Vec<_> = paths.iter().map(|path| fs.open_file(path).unwrap()).collect();
            let second: Vec<_> = paths.iter().map(|path| fs.open_file(path).unwrap()).collect();
            first.iter().zip(&second).all(|(one, other)| Arc::ptr_eq(kept(one).unwrap(), kept(other).unwrap()))
        };
        assert!((0..100).any(|_| all()));
    }
}
