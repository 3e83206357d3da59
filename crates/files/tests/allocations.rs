//! Reading blocks whose addresses are known allocates nothing, touches no node, and needs little memory a file.
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{FileSystem, Options, RangeLock};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting the calls of each thread.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches a thread-local number only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter any more; nobody asks for it either.
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise about `layout` is the one that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from `alloc` above, so from the system's allocator, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn short_reads_of_known_blocks_allocate_nothing() {
    let device = Arc::new(MemoryDevice::new(32 * 1024));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    let fs = FileSystem::open(device, Options::new().range_lock(RangeLock::Extent)).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(0, &[3; 4 << 20]).unwrap();
    let mut page = [0; 4096];
    let mut pages = [0; 4 * 4096];
    let read = |n: u64, page: &mut [u8]| {
        let len = page.len();
        assert_eq!(file.read_at(n * 37 % 1000 * 4096, page).unwrap(), len);
    };
    // Once around: the addresses become known, and the lock table has its lines.
    (0..1000).for_each(|n| read(n, &mut page));
    let before = COUNT.with(Cell::get);
    for n in 0..1000 {
        read(n, &mut page);
        read(n, &mut pages);
    }
    assert_eq!(COUNT.with(Cell::get), before);
    assert!(page == [3; 4096]);
}
