//! How much memory a table takes.

use crate::frame::Frame;
use crate::nat::Nat;
use crate::size::ENTRIES;
use crate::slot::Slot;

impl Nat {
    /// Bytes of memory per NID when every block is cached: entries, free NIDs, marks and locks of a block, the number
    /// and the owner of its frame, and its bits in the sets of blocks, divided by the NIDs of a block.
    ///
    /// The policies that keep a list take memory beyond that for each NID that is listed.
    #[must_use]
    pub fn bytes_per_nid() -> f64 {
        let frame = size_of::<Frame>() + size_of::<f2fs_sync::OnceLock<Box<Frame>>>() + size_of::<u32>();
        // Three sets (dirty, spare, unread) of one bit and a 64th.
        let sets = 3.0 * (1.0 + 1.0 / 64.0) / 8.0;
        ((size_of::<Slot>() + frame) as f64 + sets) / ENTRIES as f64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_nid_takes_less_than_16_bytes() {
        let bytes = Nat::bytes_per_nid();
        assert!((9.0..10.0).contains(&bytes), "{bytes:.2} bytes per NID");
        // The memory that stays when the entries are given up, as the crate's documentation says.
        assert!(size_of::<Slot>() as f64 / (ENTRIES as f64) < 0.6);
    }

    #[test]
    fn allocation_touches_one_line_of_a_slot() {
        assert_eq!(align_of::<Slot>(), 64);
        assert_eq!(size_of::<Slot>() % 64, 0);
    }
}
