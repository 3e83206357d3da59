//! One segment: its maps, counts, age and phase.
//!
//! ```text
//!              a log takes it                 the log leaves it
//!      Free ------------------> Current ----------+-----------------> Full     512 valid
//!       ^                        ^                |                    | a block is freed
//!       | end of a checkpoint    | SSR            |                    v
//!       | that began after       +------------- Dirty <----------------+      1..=511 valid
//!       |                                         | its last block is freed
//!       +---------------- Prefree <---------------+                          0 valid
//! ```
//!
//! Roll-forward adds two edges (see `recover`): Free to Prefree, for a segment that holds blocks of the chain, and from
//! there to Dirty or Full.
//!
//! The cleaner and SSR choose among the *dirty* ones. *Prefree* segments hold nothing that is valid now, but the last
//! durable checkpoint may still point into them: they are not used, discarded or reset before the next one is durable.

use f2fs_format::sit::RawSitEntry;
use f2fs_format::{BLOCKS_PER_SEGMENT, LogType, SegmentNo};
use f2fs_sync::protocol_never;
use zerocopy::little_endian::U64;

use crate::SegmentError;
use crate::map::BlockMap;

/// The role of a segment for the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// No block is valid, now or in the last checkpoint: a log may take it.
    Free,
    /// A log writes into it.
    Current,
    /// Some blocks are valid.
    Dirty,
    /// All blocks are valid.
    Full,
    /// No block is valid now; free once a checkpoint that knows this is durable.
    Prefree,
}

impl Phase {
    /// The name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Free => "free",
            Phase::Current => "current",
            Phase::Dirty => "dirty",
            Phase::Full => "full",
            Phase::Prefree => "prefree",
        }
    }
}

/// A segment's state, as a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// The segment.
    pub segment: SegmentNo,
    /// The log that wrote it last, as in its SIT entry.
    pub log: LogType,
    /// Its role for the allocator.
    pub phase: Phase,
    /// Blocks that are valid now.
    pub valid: u32,
    /// Blocks that are valid now or were in the last durable checkpoint: not to be written.
    pub taken: u32,
    /// Mean time of its blocks' last change, seconds.
    pub mtime: u64,
    /// Which blocks are valid now.
    pub valid_map: BlockMap,
    /// Which blocks are valid now or were since the last durable checkpoint.
    pub taken_map: BlockMap,
    /// Whether a cleaner has marked it.
    pub victim: bool,
}

impl SegmentInfo {
    /// A segment as its SIT entry describes it, for an owner that does not open the whole table. `stands`: whether a
    /// log stands in it.
    ///
    /// # Errors
    /// [`SegmentError::BadType`], [`SegmentError::BadCount`].
    pub fn from_entry(segment: SegmentNo, entry: &RawSitEntry, stands: bool) -> Result<SegmentInfo, SegmentError> {
        let state = Segment::from_entry(segment, entry)?;
        let phase = if stands { Phase::Current } else { state.phase };
        Ok(SegmentInfo { phase, ..state.info(segment) })
    }
}

/// The state behind a segment's lock.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Valid now (`cur_valid_map`).
    pub(crate) valid_map: BlockMap,
    /// Valid now, in the last durable checkpoint, or since (`ckpt_valid_map`). A superset of `valid_map`.
    pub(crate) taken_map: BlockMap,
    /// Seconds.
    pub(crate) mtime: u64,
    /// Blocks in `valid_map`.
    pub(crate) valid: u16,
    /// Blocks in `taken_map`.
    pub(crate) taken: u16,
    pub(crate) log: LogType,
    pub(crate) phase: Phase,
    /// The number of the checkpoint that was last begun when a block was last taken.
    pub(crate) last_take: u64,
    /// The SIT entry differs from what the last checkpoint wrote.
    pub(crate) dirty: bool,
    /// Waits in a list of the victim index for being looked at.
    pub(crate) queued: bool,
    /// A cleaner empties it.
    pub(crate) victim: bool,
    /// The number of this state, for the victim index. Dense, and the segment's for good.
    pub(crate) number: u32,
}

const FULL: u16 = BLOCKS_PER_SEGMENT as u16;

impl Segment {
    /// A free segment without a valid block, which `log` wrote last.
    pub(crate) const fn idle(log: LogType, mtime: u64, number: u32) -> Segment {
        Segment {
            valid_map: BlockMap::EMPTY,
            taken_map: BlockMap::EMPTY,
            mtime,
            valid: 0,
            taken: 0,
            log,
            phase: Phase::Free,
            last_take: 0,
            dirty: false,
            queued: false,
            victim: false,
            number,
        }
    }

    /// A segment from its entry; not yet current. Its number is to be set.
    pub(crate) fn from_entry(segment: SegmentNo, entry: &RawSitEntry) -> Result<Segment, SegmentError> {
        let log = entry.log_type().ok_or(SegmentError::BadType { segment, found: entry.type_number() })?;
        let valid_map = BlockMap::from_bytes(&entry.valid_map);
        let (count, mapped) = (entry.valid_blocks(), valid_map.count());
        if count != mapped {
            return Err(SegmentError::BadCount { segment, count, mapped });
        }
        let mut state = Segment {
            valid_map,
            taken_map: valid_map,
            valid: count as u16,
            taken: count as u16,
            ..Segment::idle(log, entry.mtime.get(), u32::MAX)
        };
        if count != 0 {
            state.phase = state.phase_without_log();
        }
        Ok(state)
    }

    /// The entry for the table.
    pub(crate) fn entry(&self) -> RawSitEntry {
        let mut entry = RawSitEntry::ZERO;
        entry.set_blocks(self.log, self.valid.into());
        entry.valid_map = self.valid_map.to_bytes();
        entry.mtime = U64::new(self.mtime);
        entry
    }

    /// The phase of a segment with these counts that no log holds and that was in use.
    pub(crate) fn phase_without_log(&self) -> Phase {
        match self.valid {
            0 => Phase::Prefree,
            FULL => Phase::Full,
            _ => Phase::Dirty,
        }
    }

    pub(crate) fn info(&self, segment: SegmentNo) -> SegmentInfo {
        SegmentInfo {
            segment,
            log: self.log,
            phase: self.phase,
            valid: self.valid.into(),
            taken: self.taken.into(),
            mtime: self.mtime,
            valid_map: self.valid_map,
            taken_map: self.taken_map,
            victim: self.victim,
        }
    }

    /// Brings `mtime` nearer to `now` by the weight of `blocks` changed blocks (`update_segment_mtime`), as if they had
    /// been changed one after the other beside `valid` others.
    pub(crate) fn touch(&mut self, now: u64, valid: u16, blocks: u32) {
        if self.mtime == 0 {
            self.mtime = now;
        } else if self.mtime != now {
            let weight = u64::from(blocks);
            let all = u64::from(valid) + weight;
            if now > self.mtime {
                self.mtime += ((now - self.mtime).saturating_mul(weight) / all).min(now - self.mtime);
            } else {
                self.mtime -= (self.mtime - now).saturating_mul(weight).div_ceil(all).min(self.mtime - now);
            }
        }
    }

    /// Takes a run of blocks: valid now, and not to be written again before a checkpoint has seen them freed.
    pub(crate) fn take(&mut self, start: u32, len: u32, now: u64) {
        self.touch(now, self.valid, len);
        self.valid_map.insert(start, len);
        self.taken_map.insert(start, len);
        self.valid += len as u16;
        self.taken += len as u16;
    }

    /// Frees a run of blocks that are all valid. The mean time is the same as if they were freed one by one.
    pub(crate) fn free(&mut self, start: u32, len: u32, now: u64) {
        self.touch(now, (self.valid + 1).saturating_sub(len as u16), len);
        self.valid_map.remove(start, len);
        self.valid -= len as u16;
        protocol_never!("segment_ssr_over_checkpointed", {
            self.taken_map.remove(start, len);
            self.taken = self.taken_map.count() as u16;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Segment {
        Segment::from_entry(SegmentNo(0), &RawSitEntry::ZERO).unwrap()
    }

    #[test]
    fn freeing_leaves_the_checkpointed_map_alone() {
        let mut segment = empty();
        segment.take(3, 4, 10);
        segment.free(5, 1, 20);
        assert_eq!((segment.valid, segment.taken), (3, 4));
        assert!(!segment.valid_map.contains(5) && segment.taken_map.contains(5));
        assert_eq!(segment.entry().valid_blocks(), 3);
        assert_eq!(segment.mtime, 12); // (4 * 10 + 20) / 5
    }

    #[test]
    fn mtime_is_the_kernels_mean() {
        for (mtime, valid, now) in [(1000u64, 10u16, 5000u64), (5000, 10, 1000), (7, 511, 8), (9, 0, 3), (100, 3, 99)] {
            let mut segment = empty();
            (segment.mtime, segment.valid) = (mtime, valid);
            segment.touch(now, valid, 1);
            assert_eq!(segment.mtime, (mtime * u64::from(valid) + now) / (u64::from(valid) + 1));
        }
        let mut segment = empty();
        segment.mtime = u64::MAX;
        segment.touch(1, 500, 12);
        segment.touch(u64::MAX, 500, 12);
    }

    #[test]
    fn a_run_ages_a_segment_like_its_blocks() {
        let (mut one_by_one, mut at_once) = (empty(), empty());
        for segment in [&mut one_by_one, &mut at_once] {
            segment.take(0, 400, 1_000_000);
        }
        (0..100).for_each(|at| one_by_one.free(at, 1, 5_000_000));
        at_once.free(0, 100, 5_000_000);
        assert_eq!((one_by_one.valid, one_by_one.valid_map), (at_once.valid, at_once.valid_map));
        // Rounding down a hundred times.
        assert!(at_once.mtime.abs_diff(one_by_one.mtime) <= 100, "{} {}", at_once.mtime, one_by_one.mtime);
    }

    #[test]
    fn contradictions_in_an_entry_are_named() {
        let mut entry = RawSitEntry::ZERO;
        entry.set_blocks(LogType::WarmData, 2);
        entry.valid_map[0] = 0x80;
        let error = Segment::from_entry(SegmentNo(9), &entry).unwrap_err();
        assert!(matches!(error, SegmentError::BadCount { segment: SegmentNo(9), count: 2, mapped: 1 }));
        entry.vblocks.set(6 << 10 | 1);
        let error = Segment::from_entry(SegmentNo(9), &entry).unwrap_err();
        assert!(matches!(error, SegmentError::BadType { found: 6, .. }));
    }

    #[test]
    fn an_entry_alone_says_what_its_segment_is() {
        let mut entry = RawSitEntry::ZERO;
        let phase = |entry: &RawSitEntry, stands| SegmentInfo::from_entry(SegmentNo(9), entry, stands).unwrap().phase;
        assert_eq!((phase(&entry, false), phase(&entry, true)), (Phase::Free, Phase::Current));
        entry.set_blocks(LogType::ColdNode, 1);
        entry.valid_map[1] = 0x80;
        entry.mtime.set(77);
        assert_eq!((phase(&entry, false), phase(&entry, true)), (Phase::Dirty, Phase::Current));
        let info = SegmentInfo::from_entry(SegmentNo(9), &entry, false).unwrap();
        assert_eq!(
            (info.segment, info.log, info.valid, info.taken, info.mtime),
            (SegmentNo(9), LogType::ColdNode, 1, 1, 77)
        );
        assert!(info.valid_map.contains(8) && info.taken_map == info.valid_map && !info.victim);
        let state = Segment::from_entry(SegmentNo(9), &entry).unwrap();
        assert_eq!(state.entry(), entry, "as it was read, it is written");
        entry.set_blocks(LogType::ColdNode, 512);
        entry.valid_map = [0xff; 64];
        assert_eq!(phase(&entry, false), Phase::Full);
    }
}
