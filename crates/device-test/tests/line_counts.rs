//! Lines and fences of each operation of a device: these numbers are what it costs.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use f2fs_device::{AlignedBuf, BlockDevice};
use f2fs_device_test::pmem::{CountedRegion, LineCounts, SimulatedRegion};
use f2fs_pmem::{PersistentRegion, PmemDevice};

#[test]
fn lines_and_fences_of_an_operation() {
    let device = PmemDevice::new(CountedRegion::new(SimulatedRegion::new(8 << 20)));
    let counted = |operation: &dyn Fn()| {
        let before = device.region().counts();
        operation();
        device.region().counts().since(before)
    };
    for blocks in [1_usize, 64, 65, 512] {
        let lines = 64 * blocks as u64;
        let none = LineCounts::default();
        let written = LineCounts {
            stored_past_cache: lines - blocks as u64,
            stored: blocks as u64,
            written_back: blocks as u64,
            fences: blocks.div_ceil(64) as u64 + 1,
            ..none
        };
        assert_eq!(counted(&|| device.write(7, AlignedBuf::new(blocks)).unwrap()), written);
        assert_eq!(counted(&|| device.write_fua(7, AlignedBuf::new(blocks)).unwrap()), written);
        assert_eq!(counted(&|| drop(device.read(7, blocks).unwrap())), LineCounts { loaded: lines, ..none });
    }
    assert_eq!(counted(&|| device.flush().unwrap()), LineCounts { fences: 1, ..LineCounts::default() });
    let parts = counted(&|| device.region().store_nontemporal(60, &[1; 70]).unwrap());
    assert_eq!((parts.stored, parts.stored_past_cache, parts.written_back), (2, 1, 2));
}
