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
