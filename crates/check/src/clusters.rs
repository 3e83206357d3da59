//! The clusters of a compressed file, as its addresses come by.

use f2fs_format::BlockAddr;
use f2fs_format::compression::Compression;

/// The kind of an address slot of a compressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// One as in other files.
    Block,
    /// The first slot of a compressed cluster, and whether it counts as a block of the file.
    Head {
        /// Not if what was saved was given to the volume.
        counted: bool,
    },
    /// It has the mark of such a slot, and is not the first of a cluster.
    Misplaced,
}

/// Counts what the compressed clusters save.
#[derive(Debug)]
pub(super) struct Clusters {
    blocks: u64,
    released: bool,
    /// The cluster that the last mark began.
    compressed: Option<u64>,
    saved: u64,
}

impl Clusters {
    pub(super) fn new(compression: Compression) -> Clusters {
        let (blocks, released) = (compression.cluster_blocks() as u64, compression.released);
        Clusters { blocks, released, compressed: None, saved: 0 }
    }

    /// File block `block` is at `addr`. Blocks come in their order; holes need not be shown.
    pub(super) fn see(&mut self, block: u64, addr: BlockAddr) -> Slot {
        let cluster = block / self.blocks;
        if addr == BlockAddr::COMPRESS {
            if !block.is_multiple_of(self.blocks) {
                return Slot::Misplaced;
            }
            self.compressed = Some(cluster);
            self.saved += self.blocks;
            return Slot::Head { counted: !self.released };
        }
        if self.compressed == Some(cluster) && addr.is_real() {
            self.saved = self.saved.saturating_sub(1);
        }
        Slot::Block
    }

    /// The right value of `i_compr_blocks`: a cluster's blocks but those that hold its data. `None` once they were
    /// released: while that goes on the field falls cluster by cluster.
    pub(super) fn saved(&self) -> Option<u64> {
        (!self.released).then_some(self.saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(released: bool) -> (Vec<Slot>, Option<u64>) {
        let mut clusters = Clusters::new(Compression { algorithm: 1, log_cluster_size: 2, saved_blocks: 0, released });
        let head = BlockAddr::COMPRESS;
        let slots = [
            (0, head),
            (1, BlockAddr(9)),
            (2, BlockAddr::NEW),
            (3, BlockAddr::NEW),
            (4, BlockAddr(7)),
            (6, head),
            (8, head),
        ]
        .map(|(block, addr)| clusters.see(block, addr));
        (slots.to_vec(), clusters.saved())
    }

    #[test]
    fn heads_and_savings() {
        use Slot::{Block, Head, Misplaced};
        let head = Head { counted: true };
        assert_eq!(seen(false), (vec![head, Block, Block, Block, Block, Misplaced, head], Some(3 + 4)));
        let (slots, saved) = seen(true);
        assert_eq!((slots[0], saved), (Head { counted: false }, None));
    }
}
