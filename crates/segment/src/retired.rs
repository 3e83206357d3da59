//! Summaries of segments that the logs have left, until a checkpoint has written them to the SSA.
//!
//! # Locking
//!
//! One mutex protects the summaries and the number of the flush. It is held to put one in, to take or copy one, and to
//! copy all for a checkpoint; nothing is locked under it.

use std::collections::BTreeMap;

use f2fs_format::SegmentNo;
use f2fs_format::summary::SummaryBlock;
use f2fs_sync::Mutex;

/// The summaries, behind a lock that is taken once for a segment.
///
/// Each carries the number of the flush that will write it first. A summary that was taken out and put back between the
/// two halves of a checkpoint is newer than the one that the checkpoint wrote, and stays.
#[derive(Debug)]
pub(crate) struct Retired(Mutex<Summaries>);

#[derive(Debug)]
struct Summaries {
    by_segment: BTreeMap<SegmentNo, (u64, Box<SummaryBlock>)>,
    flush: u64,
}

impl Retired {
    pub(crate) fn new() -> Retired {
        Retired(Mutex::new(Summaries { by_segment: BTreeMap::new(), flush: 0 }))
    }

    /// Keeps a summary.
    pub(crate) fn put(&self, segment: SegmentNo, summary: Box<SummaryBlock>) {
        let mut summaries = self.0.lock();
        let flush = summaries.flush;
        summaries.by_segment.insert(segment, (flush, summary));
    }

    /// Hands a summary out, to a log that takes its segment again.
    pub(crate) fn take(&self, segment: SegmentNo) -> Option<Box<SummaryBlock>> {
        self.0.lock().by_segment.remove(&segment).map(|(_, summary)| summary)
    }

    /// A copy of a summary.
    pub(crate) fn get(&self, segment: SegmentNo) -> Option<Box<SummaryBlock>> {
        self.0.lock().by_segment.get(&segment).map(|(_, summary)| summary.clone())
    }

    /// Copies of all, in the order of their segments, and the number of this flush.
    pub(crate) fn begin_flush(&self) -> (u64, Vec<(SegmentNo, Box<SummaryBlock>)>) {
        let mut summaries = self.0.lock();
        let flush = summaries.flush;
        summaries.flush += 1;
        let copies = summaries.by_segment.iter().map(|(segment, (_, summary))| (*segment, summary.clone())).collect();
        (flush, copies)
    }

    /// The blocks of that flush are durable.
    pub(crate) fn end_flush(&self, flush: u64) {
        self.0.lock().by_segment.retain(|_, (first, _)| *first > flush);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use f2fs_format::Nid;
    use f2fs_format::summary::Summary;

    fn of(nid: u32) -> Box<SummaryBlock> {
        let mut block = SummaryBlock::new_box();
        block.entries[0] = Summary::new(Nid(nid), 0, 0);
        block
    }

    fn numbers(copies: &[(SegmentNo, Box<SummaryBlock>)]) -> Vec<u32> {
        copies.iter().map(|(segment, _)| segment.0).collect()
    }

    #[test]
    fn a_summary_stays_until_the_flush_that_writes_it_is_durable() {
        let retired = Retired::new();
        retired.put(SegmentNo(3), of(1));
        retired.put(SegmentNo(2), of(1));
        // A flush that fails is followed by one that has all of it.
        assert_eq!(numbers(&retired.begin_flush().1), [2, 3]);
        let (flush, copies) = retired.begin_flush();
        assert_eq!(numbers(&copies), [2, 3]);
        // Taken out and put back, and put in for the first time, in between.
        assert!(retired.take(SegmentNo(3)).is_some() && retired.take(SegmentNo(3)).is_none());
        retired.put(SegmentNo(3), of(2));
        retired.put(SegmentNo(9), of(2));
        retired.end_flush(flush);
        assert!(retired.get(SegmentNo(2)).is_none());
        assert_eq!(retired.get(SegmentNo(3)).unwrap().entries[0], Summary::new(Nid(2), 0, 0));
        let (flush, copies) = retired.begin_flush();
        assert_eq!(numbers(&copies), [3, 9]);
        retired.end_flush(flush);
        assert!(retired.begin_flush().1.is_empty());
    }
}
