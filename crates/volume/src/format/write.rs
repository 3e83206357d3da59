//! Writing many blocks.

use std::ops::Range;

use f2fs_device::{AlignedBuf, BlockDevice, DeviceError, Request};
use f2fs_format::{BlockAddr, RawBlock};

/// Blocks in a request (2 MiB).
const REQUEST: u64 = 512;
/// Requests in flight.
const DEPTH: usize = 8;

/// Sends requests, some at a time, and waits for all of them.
fn run(device: &dyn BlockDevice, requests: impl Iterator<Item = Request>) -> Result<(), DeviceError> {
    let mut requests = requests.peekable();
    while requests.peek().is_some() {
        let batch = requests.by_ref().take(DEPTH).collect();
        for completion in device.submit(batch).wait() {
            completion.result?;
        }
    }
    Ok(())
}

/// Writes zeros to ranges of blocks.
pub(super) fn zero(device: &dyn BlockDevice, ranges: impl IntoIterator<Item = Range<u64>>) -> Result<(), DeviceError> {
    let pieces = ranges.into_iter().flat_map(|range| {
        let end = range.end;
        range.step_by(REQUEST as usize).map(move |start| (start, REQUEST.min(end - start)))
    });
    run(device, pieces.map(|(start, blocks)| Request::write(start, AlignedBuf::new(blocks as usize))))
}

/// Writes single blocks; neighbours go in one request.
pub(super) fn blocks(device: &dyn BlockDevice, mut blocks: Vec<(BlockAddr, RawBlock)>) -> Result<(), DeviceError> {
    blocks.sort_unstable_by_key(|(addr, _)| *addr);
    let runs = blocks.chunk_by(|(left, _), (right, _)| left.offset(1) == *right).map(|near| {
        let mut buf = AlignedBuf::new(0);
        near.iter().for_each(|(_, block)| buf.push(block));
        Request::write(near[0].0.0.into(), buf)
    });
    run(device, runs)
}
