//! Memory for the entries of NAT blocks, lent to the blocks that are cached.
//!
//! A frame is never freed or moved once it exists, only lent to another block. So a reader may look into one that has
//! just been taken away. It then reads entries of another block, and the version of its own block's slot tells it so
//! ([`Slot`](crate::slot::Slot)).
//!
//! # Locking rules
//!
//! - The words of a frame are written with the lock of the slot that has it held.
//! - The pool's own lock protects which slot has which frame. It is taken with a slot's lock held. With it held, other
//!   slots' locks are only tried, never waited for.

use f2fs_sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use f2fs_sync::{Mutex, OnceLock};

use crate::size::ENTRIES;

/// "No frame".
pub(crate) const NONE: u32 = u32::MAX;

/// The entries of one NAT block: inode and address as one word, and the version.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) words: [AtomicU64; ENTRIES],
    pub(crate) versions: [AtomicU8; ENTRIES],
}

impl Frame {
    fn new() -> Box<Frame> {
        Box::new(Frame {
            words: std::array::from_fn(|_| AtomicU64::new(0)),
            versions: std::array::from_fn(|_| AtomicU8::new(0)),
        })
    }
}

/// Which frames are in use.
#[derive(Debug)]
struct Lending {
    /// The slot that has each frame made so far.
    holders: Vec<u32>,
    /// Where the search for a frame to take away goes on.
    hand: usize,
}

/// All frames.
#[derive(Debug)]
pub(crate) struct FramePool {
    frames: Box<[OnceLock<Box<Frame>>]>,
    lending: Mutex<Lending>,
    /// Frames made so far: changed with `lending` held.
    made: AtomicUsize,
    limit: usize,
}

impl FramePool {
    /// A pool for a table of `blocks`, that prefers to hold at most `limit` frames.
    pub(crate) fn new(blocks: u32, limit: usize) -> FramePool {
        FramePool {
            frames: (0..blocks).map(|_| OnceLock::new()).collect(),
            lending: Mutex::new(Lending { holders: Vec::new(), hand: 0 }),
            made: AtomicUsize::new(0),
            limit: limit.max(1),
        }
    }

    /// The frame with this number, if there is one.
    #[inline]
    pub(crate) fn get(&self, frame: u32) -> Option<&Frame> {
        self.frames.get(frame as usize)?.get().map(|frame| &**frame)
    }

    /// A frame for the slot. Beyond the limit, other frames are asked for, one at a time, going round:
    /// `take_from(holder, frame)` tells whether that slot gave that frame up. If none does, the pool grows.
    pub(crate) fn lend(&self, slot: u32, take_from: impl Fn(u32, u32) -> bool) -> (u32, &Frame) {
        let mut lending = self.lending.lock();
        let lending = &mut *lending;
        let made = lending.holders.len();
        if made >= self.limit {
            // Twice round: the first time may only take the mark of recent use away.
            for _ in 0..(2 * made).min(256) {
                lending.hand = (lending.hand + 1) % made;
                let holder = lending.holders[lending.hand];
                if holder != slot && take_from(holder, lending.hand as u32) {
                    lending.holders[lending.hand] = slot;
                    return (lending.hand as u32, self.frames[lending.hand].get_or_init(Frame::new));
                }
            }
        }
        lending.holders.push(slot);
        self.made.store(made + 1, Ordering::Relaxed);
        (made as u32, self.frames[made].get_or_init(Frame::new))
    }

    /// Frames in use.
    pub(crate) fn in_use(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    #[test]
    fn a_full_pool_asks_every_holder_twice_and_grows_if_none_gives() {
        let pool = FramePool::new(10, 3);
        let asked = RefCell::new(Vec::new());
        let lend = |slot: u32, gives: bool| {
            asked.borrow_mut().clear();
            let (number, frame) = pool.lend(slot, |holder, number| {
                asked.borrow_mut().push((holder, number));
                gives
            });
            assert!(std::ptr::eq(frame, pool.get(number).expect("it was lent")));
            number
        };
        let set = |pairs: &[(u32, u32)]| pairs.iter().copied().collect::<BTreeSet<_>>();
        assert!(pool.get(0).is_none() && pool.in_use() == 0);
        for (slot, number) in [(20, 0), (21, 1), (22, 2)] {
            assert_eq!(lend(slot, true), number);
            assert!(asked.borrow().is_empty(), "there is room for {slot}");
        }
        // Each gives its frame to another one.
        let mut given = Vec::new();
        for slot in [30, 31, 32] {
            let number = lend(slot, true);
            assert_eq!(*asked.borrow(), [(20 + number, number)]);
            given.push((slot, number));
        }
        assert_eq!(given.iter().map(|pair| pair.1).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1, 2]));
        assert_eq!(pool.in_use(), 3);
        // None gives. The second time one might have: the first time takes the mark of its use away.
        assert_eq!(lend(40, false), 3);
        assert_eq!(asked.borrow().len(), 6);
        assert_eq!(set(&asked.borrow()), set(&given));
        assert_eq!(pool.in_use(), 4);
    }
}
