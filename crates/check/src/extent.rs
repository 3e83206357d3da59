//! The extent that an inode caches, compared with the addresses as they come by.

use f2fs_format::BlockAddr;
use f2fs_format::inode::Extent;

/// Watches the addresses of a file, in any order, for those that the cached extent promises.
#[derive(Debug)]
pub(super) struct ExtentWatch {
    first: u64,
    addr: u64,
    len: u64,
    matched: u64,
    wrong: bool,
}

impl ExtentWatch {
    pub(super) fn new(extent: &Extent) -> ExtentWatch {
        let [first, addr, len] = [extent.fofs, extent.blk_addr, extent.len].map(|raw| u64::from(raw.get()));
        ExtentWatch { first, addr, len, matched: 0, wrong: false }
    }

    /// File block `block` is at `addr`. Holes need not be shown: an extent has none.
    pub(super) fn see(&mut self, block: u64, addr: BlockAddr) {
        if let Some(index) = block.checked_sub(self.first).filter(|index| *index < self.len) {
            if u64::from(addr.0) == self.addr + index {
                self.matched += 1;
            } else {
                self.wrong = true;
            }
        }
    }

    /// Blocks of the extent, if the file does not have all of them at the promised addresses.
    pub(super) fn broken(&self) -> Option<u64> {
        (self.wrong || self.matched != self.len).then_some(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_the_extent_must_be_where_it_says() {
        let extent = |fofs: u32, addr: u32, len: u32| {
            let mut watch = ExtentWatch::new(&Extent { fofs: fofs.into(), blk_addr: addr.into(), len: len.into() });
            for (block, addr) in [(0, 100), (1, 101), (2, 0), (3, 200)] {
                watch.see(block, BlockAddr(addr));
            }
            watch.broken()
        };
        assert_eq!([extent(0, 0, 0), extent(0, 100, 2), extent(1, 101, 1), extent(3, 200, 1)], [None; 4]);
        assert_eq!(extent(0, 100, 3), Some(3), "a hole at its end");
        assert_eq!(extent(0, 101, 2), Some(2), "shifted");
        assert_eq!(extent(3, 200, 2), Some(2), "beyond the file");
        assert_eq!(extent(u32::MAX, u32::MAX, u32::MAX), Some(u64::from(u32::MAX)));
    }
}
