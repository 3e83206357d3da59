//! Memory of one thread's requests, used again and again: fresh memory costs the kernel as much as a read does.

use f2fs_device::AlignedBuf;

/// Blocks that one request reads at most: 1 MiB.
pub(super) const MAX_RUN: u32 = 256;
/// Blocks that are kept at most: 16 MiB.
const KEPT: usize = 4096;
/// Sizes: 1, 2, 4 blocks and so on.
const SIZES: usize = MAX_RUN.ilog2() as usize + 1;

/// Buffers whose sizes are powers of two, so that none is ever too large or too small.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    waiting: [Vec<AlignedBuf>; SIZES],
    kept: usize,
}

impl Buffers {
    /// Buffers that have so many blocks together, up to [`MAX_RUN`]. Their content is not defined.
    pub(super) fn take(&mut self, blocks: usize) -> Vec<AlignedBuf> {
        let sizes = (0..SIZES).rev().filter(|size| blocks >> size & 1 != 0);
        let mut bufs = Vec::with_capacity(blocks.count_ones() as usize);
        for size in sizes {
            let buf = self.waiting[size].pop();
            self.kept -= buf.as_ref().map_or(0, AlignedBuf::blocks);
            bufs.push(buf.unwrap_or_else(|| AlignedBuf::new(1 << size)));
        }
        bufs
    }

    /// Takes a buffer back.
    pub(super) fn give(&mut self, buf: AlignedBuf) {
        let blocks = buf.blocks();
        if blocks.is_power_of_two()
            && self.kept + blocks <= KEPT
            && let Some(waiting) = self.waiting.get_mut(blocks.ilog2() as usize)
        {
            waiting.push(buf);
            self.kept += blocks;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_back_is_taken_again() {
        let mut buffers = Buffers::default();
        let places = |bufs: &[AlignedBuf]| bufs.iter().map(|buf| buf.as_bytes().as_ptr().addr()).collect::<Vec<_>>();
        for blocks in 1..=MAX_RUN as usize {
            let bufs = buffers.take(blocks);
            assert_eq!(bufs.iter().map(AlignedBuf::blocks).sum::<usize>(), blocks);
            let first = places(&bufs);
            bufs.into_iter().for_each(|buf| buffers.give(buf));
            let bufs = buffers.take(blocks);
            assert_eq!(places(&bufs), first);
            bufs.into_iter().for_each(|buf| buffers.give(buf));
        }
        assert_eq!(buffers.kept, 2 * MAX_RUN as usize - 1);
        (0..100).for_each(|_| buffers.give(AlignedBuf::new(MAX_RUN as usize)));
        buffers.give(AlignedBuf::new(3));
        buffers.give(AlignedBuf::new(2 * MAX_RUN as usize));
        assert!(buffers.kept <= KEPT && buffers.kept > KEPT - MAX_RUN as usize);
    }
}
