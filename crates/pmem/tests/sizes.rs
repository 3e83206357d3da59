//! Every offset, start and length that a caller can hand in, at the ends of what its type holds: a result or an error,
//! no panic, and no memory by what was asked for.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{AlignedBuf, BlockDevice, DeviceErrorKind, Request};
use f2fs_device_test::pmem::SimulatedRegion;
use f2fs_pmem::{MemoryRegion, PersistentRegion, PmemDevice, RegionError};

const BLOCKS: u64 = 8;
const BYTES: usize = 8 * 4096 + 100;

const SIZES: [u64; 14] = [
    0,
    1,
    7,
    8,
    9,
    4096,
    u32::MAX as u64,
    u32::MAX as u64 + 1,
    (1 << 52) - 1,
    1 << 52,
    i64::MAX as u64,
    i64::MAX as u64 + 1,
    u64::MAX - 1,
    u64::MAX,
];

fn regions() -> Vec<std::sync::Arc<dyn PersistentRegion>> {
    vec![std::sync::Arc::new(MemoryRegion::new(BYTES).unwrap()), std::sync::Arc::new(SimulatedRegion::new(BYTES))]
}

#[test]
fn offsets_and_lengths_of_regions() {
    for region in regions() {
        assert_eq!((region.len(), region.is_empty()), (BYTES, false));
        for offset in SIZES.map(|size| size as usize) {
            for bytes in [0, 1, 63, 64, 65, 4096, BYTES, BYTES + 1] {
                let what = format!("{region:?}, {bytes} at {offset}");
                let inside = offset.checked_add(bytes).is_some_and(|end| end <= BYTES);
                let mut memory = vec![9; bytes];
                for result in [
                    region.store(offset, &memory),
                    region.store_nontemporal(offset, &memory),
                    region.load(offset, &mut memory),
                ] {
                    let refused = RegionError::OutOfRange { offset, bytes, region: BYTES };
                    assert_eq!(result, if inside { Ok(()) } else { Err(refused) }, "{what}");
                }
                assert!(memory.iter().all(|byte| *byte == 9), "{what}");
            }
            for bytes in SIZES.map(|size| size as usize) {
                let inside = offset.checked_add(bytes).is_some_and(|end| end <= BYTES);
                assert_eq!(region.write_back(offset, bytes).is_ok(), inside, "{bytes} at {offset}");
            }
        }
        region.fence();
        region.sync().unwrap();
    }
    for size in SIZES {
        if let Ok(region) = MemoryRegion::new(size as usize) {
            assert!(size > 0 && region.len() == size as usize);
        }
    }
    assert!(SimulatedRegion::new(0).is_empty());
}

#[test]
fn starts_and_lengths_of_devices() {
    for region in regions() {
        let device = PmemDevice::new(region);
        assert_eq!(device.info().blocks, BLOCKS, "the tail is left out");
        for start in SIZES {
            for blocks in SIZES {
                let inside = start.checked_add(blocks).is_some_and(|end| end <= BLOCKS);
                let what = format!("{blocks} from {start}");
                match device.read(start, blocks as usize) {
                    Ok(read) => assert!(inside && read.blocks() as u64 == blocks, "{what}"),
                    Err(error) => {
                        assert!(
                            !inside && error.kind == DeviceErrorKind::OutOfRange { device_blocks: BLOCKS },
                            "{what}"
                        );
                    }
                }
                let refused = device.discard(start, blocks).unwrap_err().kind;
                assert_eq!(refused == DeviceErrorKind::Unsupported, inside, "{what}: {refused}");
            }
            for blocks in [0, 1, BLOCKS, BLOCKS + 1] {
                let inside = start.checked_add(blocks).is_some_and(|end| end <= BLOCKS);
                let buf = || AlignedBuf::new(blocks as usize);
                for result in [
                    device.write(start, buf()),
                    device.write_fua(start, buf()),
                    device.write_from(start, &mut buf()),
                    device.read_into(start, &mut buf()),
                ] {
                    assert_eq!(result.is_ok(), inside, "{blocks} at {start}: {result:?}");
                }
            }
        }
        for depth in SIZES {
            let mut queue = device.queue(depth as usize);
            SIZES.iter().for_each(|start| queue.push(Request::read(*start, AlignedBuf::new(1))));
            assert_eq!(std::iter::from_fn(|| queue.next_completion()).count(), SIZES.len(), "{depth}");
        }
        device.flush().unwrap();
    }
}
