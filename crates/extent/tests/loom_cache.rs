//! Models of the address cache, in the roles that its module documentation names: blocks of a "device" with their content, a
//! slot under a page's lock, ranges locked in a table, a gate that a checkpoint closes. Lines have 2 blocks.
//!
//! ```text
//! mutant: cache_change_not_stored, killed by: a_reader_finds_what_a_writer_left
//! mutant: cache_fills_a_chunk_of_its_own, killed by: two_fills_and_a_change_meet_in_one_chunk
//! mutant: cache_renewed_before_it_is_empty, killed by: a_moved_block_is_not_read_after_its_place_was_used_again
//! ```
#![cfg(loom)]

use f2fs_extent::{AddressCache, CacheBudget, ExtentTable};
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::model::{bounded, exhaustive};
use f2fs_sync::{Arc, Gate, RwLock, thread};

/// A file of two blocks, one line of cells, and what is below it. A block of the device holds the number of the file block whose content it has;
/// 100 for none.
struct File {
    table: ExtentTable,
    cache: AddressCache,
    page: RwLock<[u32; 2]>,
    device: [AtomicU64; 16],
    gate: Gate,
    moves: AtomicU64,
}

impl File {
    /// Block n is at address 4 + n.
    fn new() -> File {
        File {
            table: ExtentTable::new(),
            cache: AddressCache::new(Arc::new(CacheBudget::new(1 << 20))),
            page: RwLock::new([4, 5]),
            device: core::array::from_fn(|at| AtomicU64::new(if (4..6).contains(&at) { at as u64 - 4 } else { 100 })),
            gate: Gate::new(),
            moves: AtomicU64::new(0),
        }
    }

    /// The address of a block, by the cache, or by the page, which fills the cache.
    fn address(&self, block: u64) -> u32 {
        self.cache.refresh(self.moves.load(Ordering::Acquire));
        if let Some(run) = self.cache.run(block, block) {
            return run.addr;
        }
        let page = self.page.read();
        self.cache.fill(0, page.iter().copied());
        page[block as usize]
    }

    /// What a reader of the block sees; nobody writes it, so that its range does not matter.
    fn read(&self, block: u64) -> u64 {
        let _gate = self.gate.enter();
        let addr = self.address(block);
        self.device[addr as usize].load(Ordering::Relaxed)
    }

    /// Changes the slot of a block.
    fn change(&self, block: u64, addr: u32) {
        let mut page = self.page.write();
        page[block as usize] = addr;
        self.cache.store(block, addr);
    }
}

#[test]
fn a_reader_finds_what_a_writer_left() {
    exhaustive("a_reader_finds_what_a_writer_left", || {
        let file = Arc::new(File::new());
        let other = Arc::clone(&file);
        let writer = thread::spawn(move || {
            let _range = other.table.exclusive(1..=1);
            other.change(1, 9);
        });
        {
            // A neighbour in the same page fills the writer's cell as well.
            let _range = file.table.shared(0..=0);
            assert_eq!(file.address(0), 4);
        }
        writer.join().unwrap();
        let _range = file.table.shared(1..=1);
        assert_eq!(file.address(1), 9);
    });
}

#[test]
fn two_fills_and_a_change_meet_in_one_chunk() {
    bounded("two_fills_and_a_change_meet_in_one_chunk", 3, || {
        let file = Arc::new(File::new());
        let other = Arc::clone(&file);
        // Each has a range of its own; the table's models show that that holds.
        let one = thread::spawn(move || {
            assert_eq!(other.address(0), 4);
            // What it filled can be found: the chunk is the one that everybody uses.
            assert!(other.cache.run(0, 0).is_some());
            other.change(0, 9);
        });
        assert_eq!(file.address(1), 5);
        assert!(file.cache.run(1, 1).is_some());
        one.join().unwrap();
        assert_eq!((file.address(0), file.address(1)), (9, 5));
    });
}

#[test]
fn a_moved_block_is_not_read_after_its_place_was_used_again() {
    bounded("a_moved_block_is_not_read_after_its_place_was_used_again", 3, || {
        let file = Arc::new(File::new());
        assert_eq!(file.read(0), 0);
        let other = Arc::clone(&file);
        let mover = thread::spawn(move || {
            {
                let _gate = other.gate.enter();
                other.device[9].store(0, Ordering::Relaxed);
                other.page.write()[0] = 9;
                other.moves.fetch_add(1, Ordering::Release);
            }
            // A checkpoint, after which the old place belongs to somebody else.
            let _closed = other.gate.close();
            other.device[4].store(100, Ordering::Relaxed);
        });
        let reader = Arc::clone(&file);
        let reader = thread::spawn(move || assert_eq!(reader.read(0), 0));
        assert_eq!(file.read(0), 0);
        reader.join().unwrap();
        mover.join().unwrap();
        assert_eq!(file.read(0), 0);
    });
}
