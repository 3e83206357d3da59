//! A NAT block in memory: everything that is known of it lives here, and nowhere else.
//!
//! # Locking rules
//!
//! ```text
//!             load            change          catch_up              thaw
//!  absent ----------> clean ----------> dirty ------------> flushing ------> clean
//!     ^                 |                 ^                     |  end_checkpoint
//!     +-----------------+                 +---------------------+
//!           evict                               change
//! ```
//!
//! There is no edge from dirty or flushing to absent: entries that are not on the device yet stay in memory.
//!
//! - `marks`, the frame's words and `frame` change with the slot's lock held. One lock protects 455 entries; two
//!   changes meet on it only if they are of the same NAT block.
//! - `version` makes reads of entries free of writes: it is odd while an entry changes or the frame goes, so a reader
//!   that saw the same even number before and after its look has seen one entry, whole, of this block. A reader that
//!   did not takes the lock instead of trying forever.
//! - `free` holds the NIDs that may be handed out now; a set bit is taken by clearing it, without the lock. Bits are
//!   set by the loader (before `known`), and by whoever returns NIDs, by the rules of the policy ([`crate::sharded`],
//!   `baseline/listed.rs`).
//! - A freeze touches no slot. It gets a number (`Table::freezes`), and who changes a slot next, or the checkpoint when it
//!   comes to it, first freezes what is dirty there, if the slot does not know that number yet.
//! - A frozen block owes its checkpoint an image of what it was then. The checkpoint takes it later, unless somebody
//!   changes the block first: then that thread leaves the image behind (`Owed`).
//! - An entry that is NULL while dirty or flushing belongs to a node that was freed since the last durable checkpoint:
//!   its NID is not free yet.

use f2fs_format::nat::NatBlock;
use f2fs_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use f2fs_sync::{Mutex, MutexGuard, protocol_step, protocol_value};

use crate::entry::NatEntry;
use crate::frame::{Frame, FramePool, NONE};
use crate::size::{Bits, ENTRIES, WORDS, bit, count, test};

/// Which entries the device does not have yet.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Changed since the last checkpoint began.
    dirty: Bits,
    /// Part of a checkpoint that began and is not durable yet.
    flushing: Bits,
    /// Part of such a checkpoint as a whole, for entries that only the journal had.
    pinned: bool,
    /// The slot's `version`.
    version: u32,
    /// What a checkpoint that began has not taken yet.
    owed: Owed,
    /// The number of the last freeze that these marks know.
    freezes: u64,
}

/// The image of a block for a checkpoint that began.
#[derive(Debug, Default)]
enum Owed {
    /// None, or it was taken.
    #[default]
    Nothing,
    /// The block as it is.
    Block,
    /// The block as it was before it changed.
    Image(Box<NatBlock>),
}

/// One NAT block.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Slot {
    /// One cache line: allocation touches this and nothing else of the slot.
    free: [AtomicU64; WORDS],
    version: AtomicU32,
    frame: AtomicU32,
    /// The frame was used since the search for a victim last came by.
    used: AtomicBool,
    /// `free` is complete.
    known: AtomicBool,
    marks: Mutex<Marks>,
}

/// The outcome of a look at an entry without the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// The entry.
    Entry(NatEntry),
    /// The block is not in memory.
    Absent,
    /// The entry changed meanwhile.
    Torn,
}

impl Slot {
    pub(crate) fn new() -> Slot {
        Slot {
            free: std::array::from_fn(|_| AtomicU64::new(0)),
            version: AtomicU32::new(0),
            frame: AtomicU32::new(NONE),
            used: AtomicBool::new(false),
            known: AtomicBool::new(false),
            marks: Mutex::new(Marks::default()),
        }
    }

    /// Looks at an entry without writing anything.
    #[inline]
    pub(crate) fn look(&self, pool: &FramePool, index: usize) -> Look {
        let before = self.version.load(Ordering::Acquire);
        if before & 1 != 0 {
            return Look::Torn;
        }
        let Some(frame) = pool.get(self.frame.load(Ordering::Relaxed)) else { return Look::Absent };
        let word = frame.words[index].load(Ordering::Relaxed);
        let version = frame.versions[index].load(Ordering::Relaxed);
        // The loads above must not sink below the second look at the version.
        fence(Ordering::Acquire);
        if protocol_value!("nat_look_once", self.version.load(Ordering::Relaxed), before) != before {
            return Look::Torn;
        }
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        Look::Entry(NatEntry::from_word(word, version))
    }

    /// Waits for the slot's lock.
    #[inline]
    pub(crate) fn lock<'a>(&'a self, pool: &'a FramePool) -> Locked<'a> {
        Locked { slot: self, pool, marks: self.marks.lock() }
    }

    /// Takes the frame away if the slot has that one, it is clean, and it was not used lately.
    pub(crate) fn evict(&self, frame: u32) -> bool {
        let Some(mut marks) = self.marks.try_lock() else { return false };
        // With the pool's lock held by the caller and this one by us, the slot that the pool names has the frame: a
        // loader holds the slot's lock from before it is lent the frame until it is filled. The look costs nothing and
        // asks no more of callers.
        if self.frame.load(Ordering::Relaxed) != frame || marks.is_dirty() {
            return false;
        }
        if self.used.load(Ordering::Relaxed) {
            self.used.store(false, Ordering::Relaxed);
            return false;
        }
        let evict = || self.frame.store(NONE, Ordering::Relaxed);
        protocol_value!("nat_evict_keeps_version", self.change(&mut marks, evict), evict());
        true
    }

    /// Runs a change with the version odd. Whoever has the marks has the lock.
    #[inline]
    fn change(&self, marks: &mut Marks, change: impl FnOnce()) {
        let odd = marks.version.wrapping_add(1);
        marks.version = odd.wrapping_add(1);
        self.version.store(odd, Ordering::Relaxed);
        // The stores of the change must not rise above the odd version.
        fence(Ordering::Release);
        change();
        self.version.store(odd.wrapping_add(1), Ordering::Release);
    }

    /// Whether `free` is complete.
    pub(crate) fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }

    /// Declares `free` complete.
    pub(crate) fn set_known(&self) {
        self.known.store(true, Ordering::Release);
    }

    /// Takes the first free NID's place, if there is one.
    #[inline]
    pub(crate) fn take_first(&self) -> Option<usize> {
        for (word, bits) in self.free.iter().enumerate() {
            let mut seen = bits.load(Ordering::Relaxed);
            while seen != 0 {
                let mask = seen & seen.wrapping_neg();
                seen = protocol_value!("nat_take_without_rmw", bits.fetch_and(!mask, Ordering::AcqRel), {
                    bits.store(seen & !mask, Ordering::Relaxed);
                    seen
                });
                if seen & mask != 0 {
                    return Some(word * crate::size::WORD_BITS + mask.trailing_zeros() as usize);
                }
            }
        }
        None
    }

    /// Takes this NID, if it is free.
    pub(crate) fn take(&self, index: usize) -> bool {
        let (word, mask) = bit(index);
        self.free[word].fetch_and(!mask, Ordering::AcqRel) & mask != 0
    }

    /// Makes a NID free.
    pub(crate) fn put(&self, index: usize) {
        let (word, mask) = bit(index);
        self.free[word].fetch_or(mask, Ordering::AcqRel);
    }

    /// Makes several NIDs free.
    pub(crate) fn put_all(&self, bits: &Bits) {
        for (word, bits) in self.free.iter().zip(bits) {
            if *bits != 0 {
                word.fetch_or(*bits, Ordering::AcqRel);
            }
        }
    }

    /// Whether the NID is free.
    pub(crate) fn is_free(&self, index: usize) -> bool {
        let (word, mask) = bit(index);
        self.free[word].load(Ordering::Acquire) & mask != 0
    }

    /// The free NIDs.
    pub(crate) fn free_bits(&self) -> Bits {
        std::array::from_fn(|word| self.free[word].load(Ordering::Acquire))
    }
}

impl Marks {
    /// Whether the device lacks an entry.
    pub(crate) fn is_dirty(&self) -> bool {
        self.pinned || self.dirty.iter().chain(&self.flushing).any(|word| *word != 0)
    }
}

/// A slot with its lock held.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    slot: &'a Slot,
    pool: &'a FramePool,
    marks: MutexGuard<'a, Marks>,
}

impl<'a> Locked<'a> {
    /// The entries, if the block is in memory.
    #[inline]
    pub(crate) fn frame(&self) -> Option<&'a Frame> {
        self.pool.get(self.slot.frame.load(Ordering::Relaxed))
    }

    /// Lends the slot a frame, filled with these entries. The slot must have none.
    pub(crate) fn fill(&mut self, number: u32, frame: &Frame, entries: &[NatEntry; ENTRIES]) {
        self.slot.change(&mut self.marks, || {
            for (index, entry) in entries.iter().enumerate() {
                frame.words[index].store(entry.word(), Ordering::Relaxed);
                frame.versions[index].store(entry.version, Ordering::Relaxed);
            }
            self.slot.frame.store(number, Ordering::Relaxed);
            self.slot.used.store(true, Ordering::Relaxed);
        });
    }

    /// An entry of the frame.
    #[inline]
    pub(crate) fn entry(&self, frame: &Frame, index: usize) -> NatEntry {
        NatEntry::from_word(frame.words[index].load(Ordering::Relaxed), frame.versions[index].load(Ordering::Relaxed))
    }

    /// Changes an entry and marks it dirty; tells whether the block had nothing dirty before.
    #[inline]
    pub(crate) fn set(&mut self, frame: &Frame, index: usize, entry: NatEntry) -> bool {
        if matches!(self.marks.owed, Owed::Block) {
            protocol_step!("nat_change_leaves_no_image", self.marks.owed = Owed::Image(self.image(frame)));
        }
        self.slot.change(&mut self.marks, || {
            frame.words[index].store(entry.word(), Ordering::Relaxed);
            frame.versions[index].store(entry.version, Ordering::Relaxed);
        });
        let (word, mask) = bit(index);
        let marked = self.marks.dirty[word] & mask != 0;
        // Only an entry that was clean can be the block's first.
        let first = !marked && self.marks.dirty.iter().all(|word| *word == 0);
        self.marks.dirty[word] |= mask;
        first
    }

    /// Whether the device lacks this entry's present state. With a NULL entry: whether the NID was freed since the last
    /// durable checkpoint.
    #[inline]
    pub(crate) fn is_pending(&self, index: usize) -> bool {
        let pending = test(&self.marks.dirty, index) || test(&self.marks.flushing, index);
        protocol_value!("nat_pending_forgotten", pending, false)
    }

    /// The entries changed since the last checkpoint began, or left from one that began and never ended.
    pub(crate) fn dirty(&self) -> Bits {
        std::array::from_fn(|word| self.marks.dirty[word] | self.marks.flushing[word])
    }

    /// Freezes what is dirty if there was a freeze since the last change, whose number is `freezes`.
    #[inline]
    pub(crate) fn catch_up(&mut self, freezes: u64) {
        if self.marks.freezes < freezes {
            self.freeze(freezes);
        }
    }

    #[cold]
    fn freeze(&mut self, freezes: u64) {
        self.marks.freezes = freezes;
        let dirty = self.dirty();
        if count(&dirty) != 0 {
            self.marks.flushing = dirty;
            self.marks.dirty = [0; WORDS];
            self.owe();
        }
    }

    /// The entries that the checkpoint takes which began last.
    pub(crate) fn flushing(&self) -> Bits {
        self.marks.flushing
    }

    /// A checkpoint may need the block as it is now.
    pub(crate) fn owe(&mut self) {
        self.marks.owed = Owed::Block;
    }

    /// The block as it was when the checkpoint began.
    pub(crate) fn take_owed(&mut self, frame: &Frame) -> Box<NatBlock> {
        match std::mem::take(&mut self.marks.owed) {
            Owed::Image(image) => image,
            Owed::Block | Owed::Nothing => self.image(frame),
        }
    }

    /// The checkpoint does not need the block.
    pub(crate) fn forgive(&mut self) {
        self.marks.owed = Owed::Nothing;
    }

    /// The block as it is to stand on the device.
    fn image(&self, frame: &Frame) -> Box<NatBlock> {
        let mut image = Box::new(NatBlock::ZERO);
        for (index, entry) in image.entries.iter_mut().enumerate().take(ENTRIES) {
            *entry = self.entry(frame, index).into();
        }
        image
    }

    /// A checkpoint writes the block although nothing of it changed: it stays in memory until the device has it.
    pub(crate) fn pin(&mut self) {
        self.marks.pinned = true;
    }

    /// A checkpoint was given up: its entries are dirty again. Tells whether any is.
    pub(crate) fn unfreeze(&mut self) -> bool {
        self.marks.dirty = self.dirty();
        self.marks.flushing = [0; WORDS];
        self.marks.pinned = false;
        self.forgive();
        count(&self.marks.dirty) != 0
    }

    /// The checkpoint is durable. Gives the NIDs that it frees.
    pub(crate) fn thaw(&mut self) -> Bits {
        let mut freed = [0; WORDS];
        if let Some(frame) = self.frame() {
            for index in crate::size::members(self.marks.flushing) {
                // Changed again since: then the next checkpoint decides.
                let again = protocol_value!("nat_thaw_of_changed", test(&self.marks.dirty, index), false);
                if !self.entry(frame, index).is_bound() && !again {
                    let (word, mask) = bit(index);
                    freed[word] |= mask;
                }
            }
        }
        self.marks.flushing = [0; WORDS];
        self.marks.pinned = false;
        freed
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
