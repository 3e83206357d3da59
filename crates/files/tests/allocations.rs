//! Reading blocks whose addresses are known allocates nothing, touches no node, and needs little memory a file.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use allocation_counter::measure;
use f2fs_device::MemoryDevice;
use f2fs_files::{FileSystem, Options, RangeLock};

#[test]
fn short_reads_of_known_blocks_allocate_nothing() {
    let device = Arc::new(MemoryDevice::new(32 * 1024));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    let fs = FileSystem::open(device, Options::new().range_lock(RangeLock::Extent)).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[3; 4 << 20], 0).unwrap();
    let mut page = [0; 4096];
    let mut pages = [0; 4 * 4096];
    let read = |n: u64, page: &mut [u8]| {
        let len = page.len();
        assert_eq!(file.read_at(page, n * 37 % 1000 * 4096).unwrap(), len);
    };
    // Once around: the addresses become known, and the lock table has its lines.
    for n in 0..1000 {
        read(n, &mut page);
        read(n, &mut pages);
    }
    assert_ne!(measure(|| drop(std::hint::black_box(Box::new(1)))).count_total, 0, "the counter counts");
    let mut allocations = || {
        let round = || {
            for n in 0..1000 {
                read(n, &mut page);
                read(n, &mut pages);
            }
        };
        measure(round).count_total
    };
    // A thread that is moved to another processor makes what that keeps, once.
    let rounds: Vec<u64> = (0..5).map(|_| allocations()).collect();
    assert!(rounds.contains(&0), "{rounds:?}");
    assert!(page == [3; 4096]);
}
