//! Segment states, allocated on first use.
//!
//! A main area of 16 TiB has eight million segments, and most of them may never have held a block. A segment is
//! therefore one *word* of 32 bits, and a state of its own only once it holds valid blocks or is about to:
//!
//! ```text
//!   word    0 | log (3) | mtime (28)      idle: no valid block, no log in it, free
//!           1 | number of the state (31)  used: its state is in the chunks
//!
//!   chunks  [ 64 states ] [ 64 states ] [ - ] [ - ] ...      filled in the order in which segments are first used
//! ```
//!
//! A segment that was used keeps its state: what is freed is used again soon. Numbers of states are dense, so that the
//! victim index can use arrays. These grow with the segments in use, and not with the device.
//!
//! # Locking rules
//!
//! - A word changes once, from idle to used, with `next` held: so a segment never gets two states, nor a state two
//!   segments.
//! - The state is written first, under its own lock, and the word after it (release). A thread that reads a used word
//!   (acquire) finds the chunk and the state.
//! - An idle word says all there is to know about its segment. A thread that finds one acts as if it had locked the
//!   segment at that moment, found it free and unlocked it.
//! - `next` is the last lock of every order, except for that of a state that no word names yet.

use f2fs_format::sit::RawSitEntry;
use f2fs_format::{LogType, SegmentNo};
use f2fs_sync::atomic::{AtomicU32, Ordering};
use f2fs_sync::{Mutex, MutexGuard, OnceLock, protocol_never};

use crate::SegmentError;
use crate::segment::Segment;

/// States of a chunk.
const CHUNK: usize = if cfg!(loom) { 2 } else { 64 };
/// The bit of a word that says that the rest is the number of a state.
const USED: u32 = 1 << 31;
/// Bits of the time in an idle word.
const MTIME_BITS: u32 = 28;
/// The greatest time that fits, seconds: eight years of use. The time of an empty segment decides nothing, so a greater
/// one becomes this one.
const MTIME_MAX: u64 = (1 << MTIME_BITS) - 1;

type Chunk = [State; CHUNK];

/// A state behind its lock, on cache lines of its own: neighbours in a chunk belong to logs and lanes that have nothing
/// to do with each other.
#[derive(Debug)]
#[repr(align(64))]
struct State(Mutex<Segment>);

/// The words and the states.
#[derive(Debug)]
pub(crate) struct States {
    words: Box<[AtomicU32]>,
    chunks: Box<[OnceLock<Box<Chunk>>]>,
    /// The number of the next state.
    next: Mutex<u32>,
}

/// The word of a segment without a valid block.
fn idle_word(log: LogType, mtime: u64) -> u32 {
    u32::from(log.number()) << MTIME_BITS | mtime.min(MTIME_MAX) as u32
}

/// The state that an idle word stands for.
fn idle_state(word: u32, number: u32) -> Segment {
    let log = LogType::from_number((word >> MTIME_BITS) as u8).unwrap_or(LogType::HotData);
    Segment::idle(log, u64::from(word) & MTIME_MAX, number)
}

/// A segment as it was found.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// It has a state, which is locked.
    Used(MutexGuard<'a, Segment>),
    /// It has none.
    Idle(Segment),
}

impl Found<'_> {
    pub(crate) fn state(&self) -> &Segment {
        match self {
            Found::Used(guard) => guard,
            Found::Idle(state) => state,
        }
    }
}

impl States {
    /// Segments of which none was ever used.
    pub(crate) fn new(segments: u32) -> States {
        let chunks = (segments as usize).div_ceil(CHUNK);
        States {
            words: (0..segments).map(|_| AtomicU32::new(0)).collect(),
            chunks: (0..chunks).map(|_| OnceLock::new()).collect(),
            next: Mutex::new(0),
        }
    }

    /// Segments.
    pub(crate) fn segments(&self) -> u32 {
        self.words.len() as u32
    }

    /// Segments with a state.
    pub(crate) fn used(&self) -> u32 {
        *self.next.lock()
    }

    /// The state with this number; `None` if there is none.
    #[inline]
    fn numbered(&self, number: u32) -> Option<&Mutex<Segment>> {
        let chunk = self.chunks.get(number as usize / CHUNK)?.get()?;
        Some(&chunk[number as usize % CHUNK].0)
    }

    /// The lock of a segment's state, if it has one.
    #[inline]
    pub(crate) fn get(&self, segment: SegmentNo) -> Option<&Mutex<Segment>> {
        let word = self.words[segment.index()].load(Ordering::Acquire);
        if word & USED == 0 {
            return None;
        }
        self.numbered(word & !USED)
    }

    /// A segment as it is, without giving it a state.
    #[inline]
    pub(crate) fn find(&self, segment: SegmentNo) -> Found<'_> {
        let word = self.words[segment.index()].load(Ordering::Acquire);
        if word & USED == 0 {
            return Found::Idle(idle_state(word, u32::MAX));
        }
        self.numbered(word & !USED)
            .map_or_else(|| Found::Idle(idle_state(0, u32::MAX)), |state| Found::Used(state.lock()))
    }

    /// Locks a segment; one that has no state is given one.
    #[inline]
    pub(crate) fn lock(&self, segment: SegmentNo) -> MutexGuard<'_, Segment> {
        match self.get(segment) {
            Some(state) => state.lock(),
            None => self.begin(segment).lock(),
        }
    }

    /// Gives a segment a state.
    #[cold]
    fn begin(&self, segment: SegmentNo) -> &Mutex<Segment> {
        let mut next = self.next.lock();
        let word = self.words[segment.index()].load(Ordering::Relaxed);
        if word & USED != 0
            && let Some(state) = self.numbered(word & !USED)
        {
            return state;
        }
        let number = *next;
        protocol_never!("segment_state_numbered_twice", {
            drop(next);
            next = self.next.lock();
        });
        *next = number + 1;
        protocol_never!(
            "segment_state_named_early",
            self.words[segment.index()].store(USED | number, Ordering::Release)
        );
        let state = self.fill(number, idle_state(word, number));
        self.words[segment.index()].store(USED | number, Ordering::Release);
        state
    }

    /// Writes the state with this number.
    fn fill(&self, number: u32, state: Segment) -> &Mutex<Segment> {
        let chunk = self.chunks[number as usize / CHUNK].get_or_init(|| {
            Box::new(core::array::from_fn(|_| State(Mutex::new(Segment::idle(LogType::HotData, 0, u32::MAX)))))
        });
        let slot = &chunk[number as usize % CHUNK].0;
        *slot.lock() = state;
        slot
    }

    /// Takes over the entries of the segments from `first` on, each of which is loaded once. Tells how many valid
    /// blocks they have, by log.
    pub(crate) fn load(&self, first: SegmentNo, entries: &[RawSitEntry]) -> Result<[u64; 6], SegmentError> {
        let mut valid = [0; 6];
        let mut used: Vec<(usize, Segment)> = Vec::new();
        for (number, entry) in (u64::from(first.0)..).zip(entries) {
            let segment = SegmentNo(u32::try_from(number).unwrap_or(u32::MAX));
            let Some(word) = self.words.get(segment.index()) else {
                return Err(SegmentError::OutsideTable { segment, segments: self.segments() });
            };
            let known = word.load(Ordering::Relaxed);
            if known == 0 && *entry == RawSitEntry::ZERO {
                continue;
            }
            if known != 0 {
                return Err(SegmentError::LoadedTwice { segment });
            }
            let state = Segment::from_entry(segment, entry)?;
            if state.valid == 0 {
                word.store(idle_word(state.log, state.mtime), Ordering::Relaxed);
            } else {
                valid[state.log.index()] += u64::from(state.valid);
                used.push((segment.index(), state));
            }
        }
        let number = {
            let mut next = self.next.lock();
            let number = *next;
            if u64::from(number) + used.len() as u64 > self.words.len() as u64 {
                return Err(SegmentError::LoadedTwice { segment: first });
            }
            *next += used.len() as u32;
            number
        };
        for (number, (index, mut state)) in (number..).zip(used) {
            state.number = number;
            self.fill(number, state);
            self.words[index].store(USED | number, Ordering::Release);
        }
        Ok(valid)
    }

    /// The segments with a state, in ascending order, each locked while it is visited.
    pub(crate) fn each_used(&self, mut visit: impl FnMut(SegmentNo, &mut Segment)) {
        for segment in (0..self.segments()).map(SegmentNo) {
            if let Some(state) = self.get(segment) {
                visit(segment, &mut state.lock());
            }
        }
    }

    /// The entry of a segment for the table.
    pub(crate) fn entry(&self, segment: SegmentNo) -> RawSitEntry {
        self.find(segment).state().entry()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads find a segment without a state, and both come to give it one.
    #[test]
    fn who_comes_second_gets_the_state_that_is_there() {
        let states = States::new(200);
        for number in 0..100 {
            states.begin(SegmentNo(199 - number)).lock().valid = number as u16;
        }
        assert_eq!(states.used(), 100);
        for number in 0..100 {
            let segment = SegmentNo(199 - number);
            for state in [states.begin(segment), states.get(segment).unwrap()] {
                let state = state.lock();
                assert_eq!((state.valid, state.number), (number as u16, number));
            }
        }
        assert_eq!(states.used(), 100);
        assert!(states.get(SegmentNo(99)).is_none());
    }

    #[test]
    fn an_idle_segment_keeps_its_log_and_its_time() {
        let states = States::new(3);
        let mut entry = RawSitEntry::ZERO;
        entry.set_blocks(LogType::WarmNode, 0);
        for (segment, mtime, kept) in [(0, 77, 77), (1, MTIME_MAX, MTIME_MAX), (2, u64::MAX, MTIME_MAX)] {
            entry.mtime.set(mtime);
            states.load(SegmentNo(segment), &[entry]).unwrap();
            let found = states.find(SegmentNo(segment));
            assert_eq!((found.state().log, found.state().mtime), (LogType::WarmNode, kept));
            // Also with a state of its own.
            assert_eq!(states.lock(SegmentNo(segment)).mtime, kept);
            assert_eq!(states.entry(SegmentNo(segment)).log_type(), Some(LogType::WarmNode));
        }
    }
}
