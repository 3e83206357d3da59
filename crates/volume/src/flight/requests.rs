//! Requests that write a flight's blocks.

use f2fs_device::{AlignedBuf, Op as DeviceOp, Recycler, Request};
use f2fs_format::{BLOCK_SIZE, BlockAddr};
use f2fs_segment::Run;

use crate::blocks::read_each;
use crate::write_stat::Count;
use crate::{Volume, VolumeError};

/// Requests that write `data` to `runs`, and the content of `rewrites` once more to its own place: neighbours are
/// one request. The operation that took the runs must still be held when they are done.
///
/// A rewritten block was written before the last durable checkpoint and is not written by anybody else: it was valid when
/// its run was chosen, so that its place is taken, even if it is freed meanwhile, until the end of a checkpoint whose
/// freeze waits for this operation. (One that was free before may be in the frozen state of a checkpoint that ends now.)
pub(super) fn requests_for(
    volume: &Volume,
    runs: &[Run],
    rewrites: &[Run],
    data: AlignedBuf,
) -> Result<Vec<Request>, VolumeError> {
    if rewrites.is_empty() {
        return Ok(split_by_runs(&volume.recycler, runs, data));
    }
    let addrs: Vec<BlockAddr> = rewrites.iter().flat_map(|run| (0..run.len).map(|at| run.addr.offset(at))).collect();
    let mut old = volume.recycler.take_stale(addrs.len());
    read_each::<VolumeError>(&*volume.device, &addrs, |index, block| {
        old.block_mut(index).copy_from_slice(block);
        Ok(())
    })?;
    volume.written.add(Count::Rewritten, addrs.len() as u64);
    Ok(join(&volume.recycler, (runs, &data), (rewrites, &old)))
}

/// Requests for new and rewritten runs together: what follows each other on the device is one request, up to a segment.
fn join(recycler: &Recycler, fresh: (&[Run], &AlignedBuf), old: (&[Run], &AlignedBuf)) -> Vec<Request> {
    let mut parts: Vec<(Run, &[u8])> = [fresh, old].into_iter().flat_map(|(runs, data)| parts(runs, data)).collect();
    parts.sort_unstable_by_key(|(run, _)| run.addr);
    let follows = |(before, _): &(Run, &[u8]), (run, _): &(Run, &[u8])| before.addr.offset(before.len) == run.addr;
    parts
        .chunk_by(follows)
        .map(|piece| {
            let blocks: u32 = piece.iter().map(|(run, _)| run.len).sum();
            let mut buf = recycler.take_stale(blocks as usize);
            let mut at = 0;
            for (_, bytes) in piece {
                buf.as_bytes_mut()[at..at + bytes.len()].copy_from_slice(bytes);
                at += bytes.len();
            }
            Request::write(u64::from(piece[0].0.addr.0), buf)
        })
        .collect()
}

/// One request a run. A single run takes the buffer as it is.
pub(super) fn split_by_runs(recycler: &Recycler, runs: &[Run], data: AlignedBuf) -> Vec<Request> {
    if let [run] = runs {
        return vec![Request::vectored(DeviceOp::Write, u64::from(run.addr.0), vec![data])];
    }
    parts(runs, &data)
        .map(|(run, part)| {
            let mut buf = recycler.take_stale(part.len() / BLOCK_SIZE);
            buf.as_bytes_mut().copy_from_slice(part);
            Request::write(u64::from(run.addr.0), buf)
        })
        .collect()
}

/// Each run, with its bytes of the data.
fn parts<'a>(runs: &'a [Run], data: &'a AlignedBuf) -> impl Iterator<Item = (Run, &'a [u8])> {
    let mut rest = data.as_bytes();
    runs.iter().map(move |run| {
        let (part, tail) = rest.split_at((run.len as usize * BLOCK_SIZE).min(rest.len()));
        rest = tail;
        (*run, part)
    })
}
