//! Blocks that were read together, in the order of their addresses.
//!
//! Addresses that follow each other become one request, and so do those with a few others between them: to transfer
//! [`MAX_GAP`] blocks takes no longer than to ask once more. A read-ahead holds the bytes that a read would return. A
//! block that it does not hold is read when it is asked for. So neither a verdict nor an error depends on it: a block
//! that cannot be read, and that nothing refers to, harms nobody.

use f2fs_device::{AlignedBuf, Ticket};
use f2fs_format::{BlockAddr, RawBlock};

use super::buffers::{Buffers, MAX_RUN};

/// Blocks that nobody asked for, between two that were, in one request at most.
const MAX_GAP: u32 = 2;

/// Blocks in memory, in runs that ascend. Runs may overlap: each has the blocks as they are.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    runs: Vec<(BlockAddr, AlignedBuf)>,
    /// Blocks of the longest run.
    longest: u32,
}

/// Where a block is in an [`Ahead`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    run: u32,
    block: u32,
}

/// No blocks.
pub(super) static NOTHING: Ahead = Ahead { runs: Vec::new(), longest: 0 };

impl Ahead {
    /// Puts runs in.
    pub(super) fn add(&mut self, runs: impl Iterator<Item = (BlockAddr, AlignedBuf)>) {
        self.runs.extend(runs);
        self.runs.sort_unstable_by_key(|(start, _)| *start);
        self.longest = self.runs.iter().map(|(_, buf)| buf.blocks() as u32).max().unwrap_or(0);
    }

    /// Gives the memory back.
    pub(super) fn recycle(self, buffers: &mut Buffers) {
        self.runs.into_iter().for_each(|(_, buf)| buffers.give(buf));
    }

    /// Where a block is.
    pub(super) fn find(&self, addr: BlockAddr) -> Option<Spot> {
        let behind = self.runs.partition_point(|(start, _)| *start <= addr);
        let near = self.runs[..behind].iter().enumerate().rev();
        let near = near.take_while(|(_, (start, _))| addr.0 - start.0 < self.longest);
        let holds =
            |(_, (start, buf)): &(usize, &(BlockAddr, AlignedBuf))| ((addr.0 - start.0) as usize) < buf.blocks();
        let (run, (start, _)) = near.into_iter().find(holds)?;
        Some(Spot { run: run as u32, block: addr.0 - start.0 })
    }

    /// The block at a place that [`find`](Self::find) gave.
    pub(super) fn at(&self, spot: Spot) -> &RawBlock {
        self.runs[spot.run as usize].1.block(spot.block as usize)
    }

    /// A block, if it is here.
    pub(super) fn get(&self, addr: BlockAddr) -> Option<&RawBlock> {
        self.find(addr).map(|spot| self.at(spot))
    }
}

/// A read-ahead on its way.
#[derive(Debug)]
pub(super) struct Coming(pub(super) Ticket);

impl Coming {
    /// Waits for it and adds the blocks that could be read.
    pub(super) fn arrive(self, ahead: &mut Ahead) {
        let read = self.0.wait().into_iter().filter(|completion| completion.result.is_ok());
        ahead.add(read.flat_map(|completion| {
            let mut next = completion.request.start;
            completion.request.bufs.into_iter().map(move |buf| {
                let start = next;
                next += buf.blocks() as u64;
                (BlockAddr(start as u32), buf)
            })
        }));
    }
}

/// The runs that bring these blocks: the first block of each, and how many. Sorts the addresses.
pub(super) fn runs(addrs: &mut [BlockAddr]) -> Vec<(BlockAddr, u32)> {
    addrs.sort_unstable();
    let mut runs: Vec<(BlockAddr, u32)> = Vec::new();
    for addr in addrs {
        match runs.last_mut() {
            Some((start, len)) if addr.0 - start.0 <= *len + MAX_GAP && addr.0 - start.0 < MAX_RUN => {
                *len = (*len).max(addr.0 - start.0 + 1);
            }
            _ => runs.push((*addr, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_bridge_small_gaps_only() {
        let joined = |addrs: &[u32]| {
            let mut addrs: Vec<BlockAddr> = addrs.iter().copied().map(BlockAddr).collect();
            runs(&mut addrs).into_iter().map(|(start, len)| (start.0, len)).collect::<Vec<_>>()
        };
        assert_eq!(joined(&[]), []);
        assert_eq!(joined(&[9, 7, 8, 7]), [(7, 3)]);
        assert_eq!(joined(&[10, 10 + MAX_GAP + 1]), [(10, MAX_GAP + 2)]);
        assert_eq!(joined(&[10, 10 + MAX_GAP + 2]), [(10, 1), (10 + MAX_GAP + 2, 1)]);
        let long: Vec<u32> = (0..2 * MAX_RUN + 1).collect();
        assert_eq!(joined(&long), [(0, MAX_RUN), (MAX_RUN, MAX_RUN), (2 * MAX_RUN, 1)]);
        assert_eq!(joined(&[u32::MAX, u32::MAX - 1]), [(u32::MAX - 1, 2)]);
    }

    #[test]
    fn blocks_are_found_in_runs_that_overlap() {
        let run = |start: u32, blocks: u32| {
            let bytes: Vec<u8> = (start..start + blocks).flat_map(|block| [block as u8; 4096]).collect();
            (BlockAddr(start), AlignedBuf::from_bytes(&bytes))
        };
        let mut ahead = Ahead::default();
        assert!(ahead.get(BlockAddr(5)).is_none() && NOTHING.get(BlockAddr(0)).is_none());
        ahead.add([run(30, 2), run(10, 9)].into_iter());
        ahead.add([run(12, 1), run(12, 3), run(40, 1)].into_iter());
        for addr in 0..60 {
            let there = (10..19).contains(&addr) || (30..32).contains(&addr) || addr == 40;
            assert_eq!(ahead.get(BlockAddr(addr)).map(|block| block[0]), there.then_some(addr as u8), "{addr}");
        }
    }
}
