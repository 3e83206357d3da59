//! Writing many blocks.

use std::ops::Range;

use f2fs_device::{AlignedBuf, BlockDevice, Request};
use f2fs_format::{BlockAddr, RawBlock};

use super::FormatVolumeError;

/// Blocks in a request (2 MiB).
const REQUEST: u64 = 512;
/// Requests in flight.
const DEPTH: usize = 8;

/// Writes until it is to stop.
pub(super) struct Writer<'a> {
    pub(super) device: &'a dyn BlockDevice,
    /// Whether it is to stop.
    pub(super) stop: &'a dyn Fn() -> bool,
}

impl Writer<'_> {
    /// An error if it is to stop; something was written.
    pub(super) fn go_on(&self) -> Result<(), FormatVolumeError> {
        if (self.stop)() { Err(FormatVolumeError::Stopped { touched: true }) } else { Ok(()) }
    }

    /// Sends requests, some at a time, and waits for all of them.
    fn run(&self, requests: impl Iterator<Item = Request>) -> Result<(), FormatVolumeError> {
        let mut requests = requests.peekable();
        while requests.peek().is_some() {
            let batch = requests.by_ref().take(DEPTH).collect();
            self.device.execute_all(batch)?.into_iter().try_for_each(|completion| completion.result)?;
            self.go_on()?;
        }
        Ok(())
    }

    /// Writes zeros to ranges of blocks.
    pub(super) fn zero(&self, ranges: impl IntoIterator<Item = Range<u64>>) -> Result<(), FormatVolumeError> {
        let pieces = ranges.into_iter().flat_map(|range| {
            let end = range.end;
            range.step_by(REQUEST as usize).map(move |start| (start, REQUEST.min(end - start)))
        });
        self.run(pieces.map(|(start, blocks)| Request::write(start, AlignedBuf::new(blocks as usize))))
    }

    /// Writes single blocks; neighbours go in one request.
    pub(super) fn blocks(&self, mut blocks: Vec<(BlockAddr, RawBlock)>) -> Result<(), FormatVolumeError> {
        blocks.sort_unstable_by_key(|(addr, _)| *addr);
        let runs = blocks.chunk_by(|(left, _), (right, _)| left.offset(1) == *right).map(|near| {
            let mut buf = AlignedBuf::new(0);
            near.iter().for_each(|(_, block)| buf.push(block));
            Request::write(near[0].0.0.into(), buf)
        });
        self.run(runs)
    }
}
