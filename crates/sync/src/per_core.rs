//! One value per processor, each on cache lines of its own.

use std::fmt;

use crate::CachePadded;

/// The most slots there are, however many processors the machine has.
const MOST_SLOTS: usize = 128;

/// How many processors this process may use, as it was at the first call: asking costs reading files of control groups,
/// every time. 2 in a loom model.
///
/// Where debug assertions are compiled in, as in tests, the variable `F2FS_PROCESSORS` of the environment says another
/// number, from 1 to 1024: structures are then as large as on such a machine.
#[must_use]
pub fn processors() -> usize {
    imp::available()
}

/// Processors for which a structure's usual number of stripes is meant.
const FEW_PROCESSORS: usize = 16;

/// How many stripes or shards a structure has on this machine that has `few` (a power of two) on one of up to 16
/// processors: in proportion more on larger ones, so that two processors seldom meet in one. A power of two.
#[must_use]
pub fn stripes_here(few: usize) -> usize {
    stripes_for(few, processors())
}

fn stripes_for(few: usize, processors: usize) -> usize {
    few * (processors / FEW_PROCESSORS).max(1).next_power_of_two()
}

/// The same for a cache of `entries` whose shards keep `each` of them at least: a large machine has no more shards than
/// such a cache fills, so that it holds no more there than on a small one.
#[must_use]
pub fn cache_stripes_here(few: usize, entries: usize, each: usize) -> usize {
    cache_stripes_for(few, entries / each.max(1), processors())
}

fn cache_stripes_for(few: usize, filled: usize, processors: usize) -> usize {
    let most = filled.checked_ilog2().map_or(1, |log| 1 << log);
    stripes_for(few, processors).min(most.max(few))
}

/// The stripe of a number, of so many: numbers that follow each other fall into different ones, and so do those that are
/// the same distance apart, as the first numbers of many owners are.
#[inline]
#[must_use]
pub fn stripe_of(number: u32, stripes: usize) -> usize {
    if cfg!(loom) {
        return number as usize % stripes;
    }
    // Multiplied with 2^32 by the golden ratio; the upper bits are the well-mixed ones.
    ((u64::from(number.wrapping_mul(0x9e37_79b9)) * stripes as u64) >> 32) as usize
}

/// One `T` per processor (a slot), each on cache lines of its own, so that threads on different processors that use
/// their own slots write no common line.
///
/// # What is guaranteed
///
/// Nothing but the spreading. [`slot`](PerCore::slot) *prefers* the slot of the processor that the thread runs on; the
/// thread may have moved since, two threads may take turns on one processor, and on a machine with more processors than
/// slots some share one. So a `T` is shared like any other value and must be `Sync` in its own right (an atomic, a
/// lock). Something taken from one slot may be given back to another, unless the caller remembers
/// [`slot_index`](PerCore::slot_index).
///
/// The number of slots is the next power of two at or above the number of processors available to the process, from 1
/// to 128; in a loom model it is 2, and a thread's slot is the parity of its number.
///
/// ```
/// use f2fs_sync::PerCore;
/// use f2fs_sync::atomic::{AtomicU64, Ordering};
///
/// let hits = PerCore::new(|_| AtomicU64::new(0));
/// hits.slot().fetch_add(1, Ordering::Relaxed);
/// assert_eq!(hits.iter().map(|slot| slot.load(Ordering::Relaxed)).sum::<u64>(), 1);
/// ```
pub struct PerCore<T> {
    // The length is a power of two.
    slots: Box<[CachePadded<T>]>,
}

impl<T> PerCore<T> {
    /// One slot per available processor, filled by `init`, which gets the slot's index.
    pub fn new(init: impl FnMut(usize) -> T) -> Self {
        PerCore::with_slots(processors(), init)
    }

    /// At least `slots` slots: the next power of two, from 1 to 128.
    pub fn with_slots(slots: usize, init: impl FnMut(usize) -> T) -> Self {
        let slots = slots.clamp(1, MOST_SLOTS).next_power_of_two();
        PerCore { slots: (0..slots).map(init).map(CachePadded::new).collect() }
    }

    /// The slot of this thread, for now.
    #[inline]
    pub fn slot(&self) -> &T {
        &self.slots[self.slot_index()]
    }

    /// The index of the slot of this thread, for now: below [`slots`](PerCore::slots).
    #[inline]
    pub fn slot_index(&self) -> usize {
        imp::current() & (self.slots.len() - 1)
    }

    /// How many slots there are: a power of two.
    #[inline]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The slot with this index, if it is below [`slots`](PerCore::slots).
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.slots.get(index).map(|slot| &**slot)
    }

    /// All slots, by index. Others may use them meanwhile.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.slots.iter().map(|slot| &**slot)
    }

    /// All slots, by index, without sharing.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut T> {
        self.slots.iter_mut().map(|slot| &mut **slot)
    }
}

impl<T: Default> Default for PerCore<T> {
    fn default() -> Self {
        PerCore::new(|_| T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for PerCore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(not(any(loom, shuttle, f2fs_counting, f2fs_manycore)))]
mod imp {
    use std::cell::Cell;
    use std::sync::OnceLock;

    /// The number of uses after which a thread asks again which processor it runs on. Asking costs 3 ns where the
    /// kernel maps the answer into the process and some 100 ns where it does not, and threads stay for milliseconds.
    const TRUSTED_USES: u32 = 64;

    thread_local! {
        /// The processor that this thread was last seen on, and for how many uses that is still trusted.
        static PROCESSOR: Cell<(usize, u32)> = const { Cell::new((0, 0)) };
    }

    /// The processor that this thread runs on, or ran on a moment ago.
    #[inline]
    pub(super) fn current() -> usize {
        PROCESSOR.with(|known| {
            let (processor, uses) = known.get();
            if uses > 0 {
                known.set((processor, uses - 1));
                return processor;
            }
            let processor = rustix::thread::sched_getcpu();
            known.set((processor, TRUSTED_USES - 1));
            processor
        })
    }

    pub(super) fn available() -> usize {
        static AVAILABLE: OnceLock<usize> = OnceLock::new();
        *AVAILABLE.get_or_init(|| {
            let told = if cfg!(debug_assertions) { std::env::var_os("F2FS_PROCESSORS") } else { None };
            let told =
                told.and_then(|number| number.to_str()?.parse().ok()).filter(|number| (1..=1024).contains(number));
            told.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::PerCore;

        /// A number that no processor of a machine has.
        const ELSEWHERE: usize = 1_000_001;

        #[test]
        fn a_thread_asks_where_it_runs_once_in_so_many_uses() {
            PROCESSOR.set((ELSEWHERE, 2));
            assert_eq!((current(), current()), (ELSEWHERE, ELSEWHERE));
            assert_ne!(current(), ELSEWHERE, "it asked");
            let (_, trusted) = PROCESSOR.get();
            PROCESSOR.set((ELSEWHERE, trusted));
            let uses = (0..).take_while(|_| current() == ELSEWHERE).count();
            assert_eq!(uses as u32 + 1, TRUSTED_USES);
        }

        #[test]
        fn more_processors_than_slots_share_them() {
            for slots in [1, 2, 4, 128] {
                let per_core = PerCore::with_slots(slots, |index| index);
                for processor in [0, 1, 2, 3, 4, 127, 128, 255, ELSEWHERE] {
                    PROCESSOR.set((processor, 2));
                    assert_eq!((per_core.slot_index(), *per_core.slot()), (processor % slots, processor % slots));
                }
            }
        }

        #[test]
        fn the_processors_are_those_of_this_process() {
            let told = std::env::var("F2FS_PROCESSORS").ok().and_then(|number| number.parse().ok());
            let told = told.filter(|number| (1..=1024).contains(number));
            let here = || std::thread::available_parallelism().map_or(1, usize::from);
            assert_eq!(crate::processors(), told.unwrap_or_else(here));
        }
    }
}

#[cfg(any(f2fs_counting, f2fs_manycore))]
mod imp {
    pub(super) use crate::watched_half::{processor as current, processors as available};
}

#[cfg(any(loom, shuttle))]
mod imp {
    pub(super) use crate::model_half::thread_number as current;

    pub(super) fn available() -> usize {
        2
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_number_of_slots_is_a_bounded_power_of_two() {
        for (asked, got) in [(0, 1), (1, 1), (2, 2), (3, 4), (65, 128), (1000, 128)] {
            assert_eq!(PerCore::with_slots(asked, |_| 0).slots(), got, "{asked} slots asked for");
        }
        let slots = PerCore::<AtomicUsize>::default().slots();
        assert!(slots.is_power_of_two() && slots >= imp::available().min(MOST_SLOTS));
    }

    #[test]
    fn large_machines_have_more_stripes() {
        for (processors, stripes) in [(1, 64), (16, 64), (31, 64), (32, 128), (48, 256), (64, 256), (128, 512)] {
            assert_eq!(stripes_for(64, processors), stripes, "{processors} processors");
        }
        assert_eq!(stripes_here(64), stripes_for(64, processors()));
    }

    #[test]
    fn a_small_cache_has_no_more_stripes_on_a_large_machine() {
        for (entries, processors, stripes) in [
            (0, 1, 256),
            (0, 128, 256),
            (2047, 256, 256),
            (2048, 256, 512),
            (4095, 256, 512),
            (65_536, 16, 256),
            (65_536, 128, 2048),
            (65_536, 256, 4096),
            (usize::MAX, 256, 4096),
        ] {
            assert_eq!(cache_stripes_for(256, entries / 4, processors), stripes, "{entries}, {processors} processors");
        }
        assert_eq!(cache_stripes_here(256, 65_536, 4), cache_stripes_for(256, 16_384, processors()));
        assert_eq!(cache_stripes_here(256, 7, 0), 256);
    }

    #[test]
    fn numbers_are_spread_whatever_their_distance() {
        for distance in [1, 2, 3, 64, 255, 256, 455, 2048, 2049] {
            let mut used = [0_u32; 2048];
            for owner in 0..128 {
                used[stripe_of(3 + owner * distance, used.len())] += 1;
            }
            let most = used.iter().max().copied().unwrap_or(0);
            assert!(most <= 3, "{most} of 128 numbers in one stripe of 2048, {distance} apart");
        }
        assert!((0..10_000).all(|number| stripe_of(number, 2) < 2 && stripe_of(number, 1) == 0));
    }

    #[test]
    fn slots_are_padded_and_in_order() {
        let mut per_core = PerCore::with_slots(4, |index| index);
        assert_eq!(per_core.iter().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
        let address = |index| std::ptr::from_ref(per_core.get(index).expect("there are four")).addr();
        assert!(address(1) - address(0) >= 64);
        assert!(per_core.get(4).is_none());
        per_core.iter_mut().for_each(|slot| *slot += 1);
        assert_eq!(format!("{per_core:?}"), "[1, 2, 3, 4]");
    }

    #[test]
    fn every_use_lands_in_some_slot() {
        let per_core = PerCore::new(|_| AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        assert!(per_core.slot_index() < per_core.slots());
                        per_core.slot().fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(per_core.iter().map(|slot| slot.load(Ordering::Relaxed)).sum::<usize>(), 4000);
    }
}
