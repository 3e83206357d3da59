//! All pages, found by file and block, and the memory that they may take.
//!
//! The pages lie in buckets by a hash of their key, one or two in each. A bucket has a lock of its own and a cache line
//! of its own, where its first page is described: readers of different pages, as a rule, write different lines, and a
//! hit takes one lock and misses one line beside those of the data.
//!
//! Eviction goes round the buckets (a clock): a clean page that was used since the last round stays for one more.
//!
//! # Locking
//!
//! One reader-writer lock a bucket, held for one copy of a page. Behind it come the lists of frames alone. The budget of
//! pages is exact: a page is inserted with a unit that was taken before, and gives it back when it goes.

use f2fs_device::AlignedBuf;
use f2fs_frames::{Frames, prefer_huge_pages};
use f2fs_sync::atomic::{AtomicUsize, Ordering};
use f2fs_sync::{Budget, CachePadded, RwLock, protocol_value};
use smallvec::SmallVec;

use super::page::{Key, Page, State};

/// Buckets at most: 32 MiB of them. Up to 2 GiB there is one for each page or two.
const MOST_BUCKETS: u64 = 1 << 19;

/// A bucket, on a line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket(RwLock<Pages>);

/// The pages of a bucket.
type Pages = SmallVec<[Page; 1]>;

#[cfg(not(any(loom, shuttle, f2fs_counting, f2fs_manycore)))]
const _: () = assert!(size_of::<Bucket>() == 64, "the first page of a bucket is described in the line of its lock");

/// The outcome of putting data into a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Put {
    /// The page was not there before.
    pub(super) is_new: bool,
    /// It was clean, or not there.
    pub(super) was_clean: bool,
}

/// The pages.
#[derive(Debug)]
pub(crate) struct PageTable {
    buckets: Box<[Bucket]>,
    /// Pages that may still come.
    room: Budget,
    pages: u64,
    /// Memory for pages.
    frames: Frames,
    /// Where eviction goes on.
    hand: CachePadded<AtomicUsize>,
}

impl PageTable {
    /// For so many pages at most.
    pub(super) fn new(pages: u64) -> PageTable {
        let buckets = pages.min(MOST_BUCKETS).checked_ilog2().map_or(0, |log| 1_u64 << log);
        let mut all = Vec::with_capacity(buckets as usize);
        prefer_huge_pages(all.spare_capacity_mut());
        all.resize_with(buckets as usize, Bucket::default);
        PageTable {
            buckets: all.into(),
            room: Budget::new(pages),
            pages,
            frames: Frames::new(pages),
            hand: CachePadded::default(),
        }
    }

    fn bucket(&self, key: Key) -> &RwLock<Pages> {
        // Fibonacci hashing: neighbours scatter.
        let hash = (key.file.rotate_left(32) ^ key.block).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.buckets[(hash >> 32) as usize & (self.buckets.len() - 1)].0
    }

    /// Pages in memory. Stops the counts of all processors for a moment.
    pub(crate) fn len(&self) -> u64 {
        self.pages - self.room.available_exact().min(self.pages)
    }

    /// Takes room for `pages`, for which clean ones may have to go; whether there was so much.
    pub(super) fn take_room(&self, pages: u64) -> bool {
        while !self.room.try_take(pages) {
            if self.evict(pages.max(32)) == 0 {
                return false;
            }
        }
        true
    }

    /// Gives room back that was not needed.
    pub(super) fn give_room(&self, pages: u64) {
        if pages != 0 {
            self.room.give(pages);
        }
    }

    /// Copies a part of a page, from byte `from` of it on; whether it is there.
    #[inline]
    pub(crate) fn read(&self, key: Key, from: usize, out: &mut [u8]) -> bool {
        let bucket = self.bucket(key).read();
        let Some(page) = bucket.iter().find(|page| page.key == key) else { return false };
        out.copy_from_slice(&page.data[from..from + out.len()]);
        page.touch();
        true
    }

    /// Appends a page to a buffer; whether it is there.
    pub(crate) fn push_to(&self, key: Key, out: &mut AlignedBuf) -> bool {
        let bucket = self.bucket(key).read();
        let page = bucket.iter().find(|page| page.key == key);
        let Some((page, data)) = page.and_then(|page| Some((page, page.data.first_chunk()?))) else { return false };
        out.push(data);
        page.touch();
        true
    }

    /// Whether a page is there.
    pub(crate) fn contains(&self, key: Key) -> bool {
        self.bucket(key).read().iter().any(|page| page.key == key)
    }

    /// Puts in the content of the device, unless there is a page; returns whether the room that the caller took is
    /// used. The caller holds the block's range: nobody writes it meanwhile.
    pub(crate) fn insert_clean(&self, key: Key, data: &[u8]) -> bool {
        let mut bucket = self.bucket(key).write();
        if bucket.iter().any(|page| page.key == key) {
            return false;
        }
        let mut frame = self.frames.take();
        frame.copy_from_slice(data);
        bucket.push(Page::new(key, State::Clean, frame));
        true
    }

    /// Writes `bytes` into a page from byte `from` of it on, and makes it dirty. A page that is not there begins as
    /// `base` says. `hole`: the block's place was counted for this page. The caller has the block exclusively, and room
    /// for a page.
    pub(super) fn write(&self, key: Key, from: usize, bytes: &[u8], hole: bool, base: Option<&[u8]>) -> Put {
        let mut bucket = self.bucket(key).write();
        if let Some(page) = bucket.iter_mut().find(|page| page.key == key) {
            page.data[from..from + bytes.len()].copy_from_slice(bytes);
            page.touch();
            let was_clean = !page.is_dirty();
            if was_clean {
                page.state = State::Dirty { reserved: hole };
            }
            return Put { is_new: false, was_clean };
        }
        let mut frame = self.frames.take();
        begin(&mut frame, from, bytes, base);
        bucket.push(Page::new(key, State::Dirty { reserved: hole }, frame));
        Put { is_new: true, was_clean: true }
    }

    /// A page was written to the device; whether its block was a hole before.
    pub(crate) fn mark_clean(&self, key: Key) -> bool {
        let mut bucket = self.bucket(key).write();
        match bucket.iter_mut().find(|page| page.key == key) {
            Some(page) => core::mem::replace(&mut page.state, State::Clean) == State::Dirty { reserved: true },
            None => false,
        }
    }

    /// Drops a page, whatever its state; whether a place on the device was counted for it.
    pub(crate) fn remove(&self, key: Key) -> bool {
        let removed = {
            let mut bucket = self.bucket(key).write();
            bucket.iter().position(|page| page.key == key).map(|at| bucket.swap_remove(at))
        };
        let Some(page) = removed else { return false };
        self.frames.give(page.data);
        self.room.give(1);
        page.state == State::Dirty { reserved: true }
    }

    /// Drops the clean pages of blocks `first ..= last` of a file.
    pub(super) fn drop_clean(&self, file: u64, first: u64, last: u64) {
        let goes = |page: &Page| page.key.file == file && (first..=last).contains(&page.key.block) && !page.is_dirty();
        let sweep = |bucket: &RwLock<Pages>| {
            if bucket.read().iter().any(goes) {
                self.give_room(self.drop_those(&mut bucket.write(), |page| goes(page)));
            }
        };
        // A long range is a look at all pages.
        if last - first >= self.buckets.len() as u64 {
            self.buckets.iter().for_each(|bucket| sweep(&bucket.0));
        } else {
            (first..=last).for_each(|block| sweep(self.bucket(Key { file, block })));
        }
    }

    /// Drops clean pages, about `most`; how many. Two rounds: in the first, pages that were used lose their mark.
    fn evict(&self, most: u64) -> u64 {
        let mut gone = 0;
        for _ in 0..2 * self.buckets.len() {
            let at = self.hand.fetch_add(1, Ordering::Relaxed) & (self.buckets.len() - 1);
            let goes = |page: &mut Page| {
                !protocol_value!("cached_dropped_while_dirty", page.is_dirty(), false) && !page.was_used()
            };
            let dropped = self.drop_those(&mut self.buckets[at].0.write(), goes);
            self.give_room(dropped);
            gone += dropped;
            if gone >= most {
                break;
            }
        }
        gone
    }

    /// Drops pages of a bucket; how many.
    fn drop_those(&self, bucket: &mut Pages, mut goes: impl FnMut(&mut Page) -> bool) -> u64 {
        let before = bucket.len();
        let mut at = 0;
        while let Some(page) = bucket.get_mut(at) {
            if goes(page) {
                self.frames.give(bucket.swap_remove(at).data);
            } else {
                at += 1;
            }
        }
        (before - bucket.len()) as u64
    }
}

/// Gives a new page its content: `base`, or zeros, with `bytes` from byte `from` on. Each byte is written once.
fn begin(page: &mut [u8], from: usize, bytes: &[u8], base: Option<&[u8]>) {
    let end = from + bytes.len();
    page[from..end].copy_from_slice(bytes);
    match base {
        Some(base) => {
            page[..from].copy_from_slice(&base[..from]);
            page[end..].copy_from_slice(&base[end..]);
        }
        None => {
            page[..from].fill(0);
            page[end..].fill(0);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
