//! What a processor remembers of names: a small table, in sets of a few ways each.
//!
//! No locks: whoever has a table locks it.

use std::hash::Hasher;

use f2fs_format::Nid;
use f2fs_sync::Arc;
use rustc_hash::FxHasher;

use crate::cached_directory::CachedDirectory;
use crate::inode::Inode;

/// Sets of a table: a power of two.
const SETS: usize = 16;
/// Names of a set: so many on one path may fall into the same.
const WAYS: usize = 4;

/// A name that was looked up, with what it meant. It may be the last to hold its inodes: it is dropped without the lock
/// of the table.
#[derive(Debug)]
pub(crate) struct Known<V> {
    parent: Arc<CachedDirectory>,
    name: Box<[u8]>,
    pub(crate) value: V,
}

impl<V> Known<V> {
    fn is(&self, parent: &Inode, name: &[u8]) -> bool {
        std::ptr::eq::<Inode>(&***self.parent, parent) && *self.name == *name
    }
}

/// The names of one hash.
#[derive(Debug)]
struct Set<V> {
    ways: [Option<Known<V>>; WAYS],
    /// The one that goes next.
    next: usize,
}

/// Up to [`SETS`] times [`WAYS`] names, each in its directory, which stays in memory. The first name takes the memory
/// of the table.
#[derive(Debug)]
pub(crate) struct Remembered<V> {
    sets: Vec<Set<V>>,
}

impl<V> Default for Remembered<V> {
    fn default() -> Remembered<V> {
        Remembered { sets: Vec::new() }
    }
}

impl<V> Remembered<V> {
    /// What is remembered of a name.
    pub(crate) fn get(&self, parent: &Inode, name: &[u8]) -> Option<&V> {
        if self.sets.is_empty() {
            return None;
        }
        let known = self.sets[set_of(parent.ino, name)].ways.iter().flatten().find(|known| known.is(parent, name));
        known.map(|known| &known.value)
    }

    /// Remembers a name, in place of what was known of it, or of another one; gives that.
    #[must_use = "it is dropped without the lock of the table"]
    pub(crate) fn put(&mut self, parent: &Arc<CachedDirectory>, name: &[u8], value: V) -> Option<Known<V>> {
        if self.sets.is_empty() {
            self.sets.resize_with(SETS, || Set { ways: [const { None }; WAYS], next: 0 });
        }
        let set = &mut self.sets[set_of(parent.ino, name)];
        let same = |way: &Option<Known<V>>| way.as_ref().is_some_and(|known| known.is(parent, name));
        let place = set.ways.iter().position(same).or_else(|| set.ways.iter().position(Option::is_none));
        let place = place.unwrap_or_else(|| {
            set.next = (set.next + 1) % WAYS;
            set.next
        });
        set.ways[place].replace(Known { parent: Arc::clone(parent), name: name.into(), value })
    }

    /// Forgets a name; gives what was remembered of it.
    #[must_use = "it is dropped without the lock of the table"]
    pub(crate) fn remove(&mut self, parent: &Inode, name: &[u8]) -> Option<Known<V>> {
        if self.sets.is_empty() {
            return None;
        }
        let ways = &mut self.sets[set_of(parent.ino, name)].ways;
        ways.iter_mut().find(|way| way.as_ref().is_some_and(|known| known.is(parent, name)))?.take()
    }

    /// Forgets all that `goes` chooses.
    pub(crate) fn extract(&mut self, goes: impl Fn(&V) -> bool, gone: &mut Vec<Known<V>>) {
        for way in self.sets.iter_mut().flat_map(|set| &mut set.ways) {
            if way.as_ref().is_some_and(|known| goes(&known.value)) {
                gone.extend(way.take());
            }
        }
    }
}

/// The set of a name in a directory. Directories that were made one after the other have numbers, and often names,
/// that follow each other: the two must not cancel out.
fn set_of(parent: Nid, name: &[u8]) -> usize {
    let mut hash = FxHasher::default();
    hash.write_u32(parent.0);
    hash.write(name);
    hash.finish() as usize % SETS
}
