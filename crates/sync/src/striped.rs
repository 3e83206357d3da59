//! A fixed number of locks for any number of things.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::CachePadded;

/// A power of two of `T`s (locks, shards of a map), each on cache lines of its own, chosen by the hash of a key.
///
/// Two keys may share a stripe: whoever needs two at once takes them by [`pair`](Striped::pair), in the order of their
/// indices, and takes one only if they are the same.
///
/// ```
/// use f2fs_sync::{Mutex, Striped};
///
/// let names = Striped::new(64, |_| Mutex::new(0));
/// *names.stripe(&"a name").lock() += 1;
///
/// let (first, second) = names.pair(&"a name", &"another");
/// let _first = first.lock();
/// let _second = second.map(Mutex::lock);
/// ```
pub struct Striped<T> {
    // The length is a power of two.
    stripes: Box<[CachePadded<T>]>,
}

impl<T> Striped<T> {
    /// At least `stripes` stripes (the next power of two, from 1 to 2^20), filled by `init`, which gets the stripe's
    /// index.
    pub fn new(stripes: usize, init: impl FnMut(usize) -> T) -> Self {
        let stripes = stripes.clamp(1, 1 << 20).next_power_of_two();
        Striped { stripes: (0..stripes).map(init).map(CachePadded::new).collect() }
    }

    /// The stripe of a key.
    pub fn stripe<K: Hash + ?Sized>(&self, key: &K) -> &T {
        &self.stripes[self.index(key)]
    }

    /// The index of a key's stripe: below [`stripes`](Striped::stripes).
    pub fn index<K: Hash + ?Sized>(&self, key: &K) -> usize {
        let mut hasher = Folded(0);
        key.hash(&mut hasher);
        // The product's upper half is the well-mixed one.
        let mixed = hasher.finish() >> 32;
        mixed as usize & (self.stripes.len() - 1)
    }

    /// The stripes of two keys, the one with the lower index first; only one if both keys have the same.
    pub fn pair<K: Hash + ?Sized>(&self, a: &K, b: &K) -> (&T, Option<&T>) {
        let (a, b) = (self.index(a), self.index(b));
        let (low, high) = (a.min(b), a.max(b));
        (&self.stripes[low], (low != high).then(|| &*self.stripes[high]))
    }

    /// How many stripes there are: a power of two.
    pub fn stripes(&self) -> usize {
        self.stripes.len()
    }

    /// The stripe with this index, if it is below [`stripes`](Striped::stripes).
    pub fn get(&self, index: usize) -> Option<&T> {
        self.stripes.get(index).map(|stripe| &**stripe)
    }

    /// All stripes, by index: the order in which to lock several.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.stripes.iter().map(|stripe| &**stripe)
    }

    /// All stripes, by index, without sharing.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut T> {
        self.stripes.iter_mut().map(|stripe| &mut **stripe)
    }
}

impl<T: fmt::Debug> fmt::Debug for Striped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Multiplies by 2^64 / the golden ratio after each word: a few cycles, and neighbouring keys fall far apart. It is the
/// same in every process, and not meant against an adversary: keys that collide share a lock, nothing worse.
struct Folded(u64);

impl Folded {
    fn fold(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(31) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.fold(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.fold(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.fold(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.fold(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_spread() {
        fn spread<K: Hash>(what: &str, keys: u32, key: impl Fn(u32) -> K) {
            let striped = Striped::new(60, |index| index);
            assert_eq!(striped.stripes(), 64);
            let mut used = [0_u32; 64];
            (0..keys).for_each(|number| used[striped.index(&key(number))] += 1);
            let even = keys / 64;
            assert!(used.iter().all(|count| (even / 2..=even * 3 / 2).contains(count)), "{what}: {used:?}");
        }
        spread("u8", 256, |key| key as u8);
        spread("u32", 6400, |key| key);
        spread("u64", 6400, u64::from);
        spread("usize", 6400, |key| key as usize);
        spread("names", 6400, |key| format!("file{key:05}").into_bytes());
        spread("numbers of an owner", 6400, |key| (7_u32, key));
        spread("long names of an owner", 6400, |key| (7_u32, format!("file{key:05}.txt")));
    }

    #[test]
    fn stripes_are_had_by_index() {
        let striped = Striped::new(3, |index| index);
        assert_eq!(
            (0..5).map(|index| striped.get(index).copied()).collect::<Vec<_>>(),
            [Some(0), Some(1), Some(2), Some(3), None]
        );
        assert_eq!(*striped.stripe(&5_u32), striped.index(&5_u32));
    }

    #[test]
    fn pairs_come_in_order() {
        let striped = Striped::new(8, |index| index);
        for a in 0..50_u64 {
            for b in 0..50_u64 {
                let (first, second) = striped.pair(&a, &b);
                assert!(second.is_none_or(|second| first < second));
                assert_eq!(second.is_none(), striped.stripe(&a) == striped.stripe(&b));
            }
        }
    }
}
