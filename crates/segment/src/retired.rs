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
