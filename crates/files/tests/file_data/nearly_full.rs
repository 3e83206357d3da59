//! A volume on which as many blocks are left as a test says.

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{AllocateFlags, File, FileSystem, FsError, Options, WriteSlice};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::VolumeError;
use f2fs_volume::format::FormatOptions;

use crate::{BLOCK, content, open};

/// Blocks that may be given back: they lie in the inode, without a node beside it.
const SPARE: u64 = 600;

pub(crate) struct NearlyFull {
    pub(crate) device: Arc<MemoryDevice>,
    pub(crate) fs: FileSystem,
    /// A file of ones: one block, unless a test asked for more.
    pub(crate) file: File,
    spare: File,
}

impl NearlyFull {
    pub(crate) fn new(options: Options) -> NearlyFull {
        NearlyFull::with_blocks(options, 1)
    }

    fn with_blocks(options: Options, blocks: u64) -> NearlyFull {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device, options);
        let create = |path: &str, blocks: u64| {
            let file = fs.create_file(path, 0o644).unwrap();
            file.write_at(&vec![1; blocks as usize * BLOCK], 0).unwrap();
            file
        };
        let (file, spare, filler) = (create("/file", blocks), create("/spare", SPARE), create("/filler", 1));
        for len in [1 << 20, BLOCK] {
            while filler.append(&vec![2; len]).is_ok() {}
        }
        while fs.create_file(format!("/{}", fs.statfs().valid_inodes), 0o600).is_ok() {}
        fs.checkpoint().unwrap();
        let full = NearlyFull { device, fs, file, spare };
        assert_eq!(full.left(), 0);
        full
    }

    /// Gives blocks back until so many are left.
    pub(crate) fn leave(&self, blocks: u64) {
        let more = blocks - self.left();
        self.spare.set_len(self.spare.size() - more * BLOCK as u64).unwrap();
        assert_eq!(self.left(), blocks);
    }

    pub(crate) fn left(&self) -> u64 {
        let stat = self.fs.statfs();
        stat.user_blocks - stat.valid_blocks
    }
}

/// The blocks that were wanted and those that were left.
#[track_caller]
pub(crate) fn numbers(error: &FsError) -> (u64, u64) {
    let FsError::NoSpace(cause) = error else { panic!("{error}") };
    let VolumeError::NoSpace { wanted, available } = **cause else { panic!("{error}") };
    (wanted, available)
}

/// What fits of a write is written, block by block, wherever it begins.
#[test]
fn a_write_takes_the_blocks_that_are_left() {
    for cache in [0, 8 << 20] {
        let full = NearlyFull::new(Options::new().page_cache(cache));
        let file = &full.file;
        full.leave(3);
        // From the middle of the block that is there.
        let (from, data) = (BLOCK as u64 - 100, [7; 10 * BLOCK]);
        assert_eq!(file.write_at(&data, from).unwrap(), 100 + 3 * BLOCK, "{cache}");
        assert_eq!((full.left(), file.size()), (0, 4 * BLOCK as u64));
        assert!(file.write_at(&data, 4 * BLOCK as u64).unwrap_err().is_no_space());
        assert!(file.write_at(&data[..100], 4 * BLOCK as u64).unwrap_err().is_no_space());
        assert_eq!((full.left(), file.size()), (0, 4 * BLOCK as u64));
        // From the middle of a hole.
        full.leave(1);
        assert_eq!(file.write_at(&data, 9 * BLOCK as u64 + 1000).unwrap(), BLOCK - 1000, "{cache}");
        assert_eq!((full.left(), file.size()), (0, 10 * BLOCK as u64));
        // Over what is there, and two holes, of which one gets a block.
        full.leave(1);
        assert_eq!(file.write_at(&[8; 4 * BLOCK], 2 * BLOCK as u64).unwrap(), 3 * BLOCK, "{cache}");
        full.fs.checkpoint().unwrap();
        let mut wanted = vec![1; BLOCK];
        wanted[BLOCK - 100..].fill(7);
        wanted.resize(2 * BLOCK, 7);
        wanted.resize(5 * BLOCK, 8);
        wanted.resize(9 * BLOCK + 1000, 0);
        wanted.resize(10 * BLOCK, 7);
        assert!(content(file) == wanted, "{cache}");
        assert_eq!(file.metadata().unwrap().blocks, 1 + 6);
        let again = open(&Arc::new(full.device.snapshot()), Options::new());
        assert!(content(&again.open_file("/file").unwrap()) == wanted, "{cache}");
    }
}

/// An append that does not fit leaves nothing behind, in the cache or past it: neither room nor bytes.
#[test]
fn an_append_that_does_not_fit_takes_nothing() {
    for cache in [0, 8 << 20] {
        let full = NearlyFull::new(Options::new().page_cache(cache));
        let file = &full.file;
        full.leave(5);
        for len in [10 * BLOCK, 10 * BLOCK - 100, 6 * BLOCK, 5 * BLOCK + 1] {
            let (wanted, available) = numbers(&file.append(&vec![7; len]).unwrap_err());
            assert!(wanted == len.div_ceil(BLOCK) as u64 && available == 5, "{cache}: {wanted}, {available}");
            assert_eq!((full.left(), file.size(), full.fs.stats().dirty_pages), (5, BLOCK as u64, 0), "{cache}");
        }
        assert_eq!(file.append(&[7; 5 * BLOCK]).unwrap(), BLOCK as u64);
        assert_eq!((full.left(), file.size()), (0, 6 * BLOCK as u64));
        let mut wanted = vec![1; BLOCK];
        wanted.resize(6 * BLOCK, 7);
        assert!(content(file) == wanted);
    }
}

/// Longer than one operation writes: what the first operations wrote goes again.
#[test]
fn a_long_append_that_does_not_fit_takes_nothing() {
    let device = formatted(128, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    file.append(&[1; 100]).unwrap();
    let left = || fs.statfs().user_blocks - fs.statfs().valid_blocks;
    let before = left();
    let (wanted, available) = numbers(&file.append(&vec![2; (before as usize + 10) * BLOCK]).unwrap_err());
    assert!(wanted == before + 10 && available < before && available > 4000, "{wanted} of {available}");
    assert_eq!((left(), content(&file)), (before - 1, vec![1; 100]), "its data left the inode");
    fs.close().unwrap();
}

/// A durable write, many writes and those that are copied as well.
#[test]
fn other_ways_of_writing_take_what_is_left() {
    let full = NearlyFull::new(Options::new());
    let file = &full.file;
    let before = content(file);
    assert!(file.write_durable(&[7; BLOCK], BLOCK as u64).unwrap_err().is_no_space());
    assert!(content(file) == before);
    full.leave(2);
    assert_eq!(file.write_durable(&[7; 3 * BLOCK], BLOCK as u64).unwrap(), 2 * BLOCK);
    full.leave(2);
    let data = [8; 3 * BLOCK];
    let mut writes = [WriteSlice::new(3 * BLOCK as u64, &data[..BLOCK]), WriteSlice::new(4 * BLOCK as u64, &data)];
    let error = file.write_many(4, &mut writes).unwrap_err();
    assert_eq!(numbers(&error), (3, 1));
    assert_eq!((writes[0].written, writes[1].written), (BLOCK, BLOCK));
    let mut wanted = before;
    wanted.resize(3 * BLOCK, 7);
    wanted.resize(5 * BLOCK, 8);
    assert!(content(file) == wanted && full.left() == 0);
}

/// What was reserved behind the end of a file stays when an append does not fit.
#[test]
fn an_append_that_does_not_fit_leaves_what_is_reserved() {
    let full = NearlyFull::new(Options::new());
    let file = &full.file;
    full.leave(3);
    file.allocate(40 * BLOCK as u64, 3 * BLOCK as u64, AllocateFlags::KEEP_SIZE).unwrap();
    let blocks = file.metadata().unwrap().blocks;
    assert!(file.append(&[7; 5 * BLOCK]).unwrap_err().is_no_space());
    assert_eq!((file.metadata().unwrap().blocks, full.left(), file.size()), (blocks, 0, BLOCK as u64));
    // They need no more room when they are written.
    assert_eq!(file.write_at(&[7; 3 * BLOCK], 40 * BLOCK as u64).unwrap(), 3 * BLOCK);
}

/// Zeros and allocations are whole or nothing.
#[test]
fn zeros_that_do_not_fit_leave_the_file_as_it_was() {
    let full = NearlyFull::new(Options::new());
    let (file, block) = (&full.file, BLOCK as u64);
    file.set_len(30 * block + 10).unwrap();
    full.leave(5);
    let before = (content(file), file.metadata().unwrap().blocks);
    for flags in [AllocateFlags::ZERO_RANGE, AllocateFlags::NONE] {
        for (offset, len) in [(0, 20 * block), (10, 20 * block), (block, 6 * block), (9 * block, 900 * block)] {
            let error = file.allocate(offset, len, flags).unwrap_err();
            let (wanted, available) = numbers(&error);
            assert!(wanted > 5 && available == 5, "{wanted} of {available}");
            let after = (content(file), file.metadata().unwrap().blocks);
            assert!(after == before && full.left() == 5, "{flags:?}, {len} from {offset}");
        }
        file.allocate(block, 5 * block, flags).unwrap();
        assert!(content(file) == before.0 && full.left() == 0);
        file.punch_hole(block, 5 * block).unwrap();
        assert_eq!(full.left(), 5);
    }
}

/// A range whose blocks fit, and not the node that they need.
#[test]
fn zeros_whose_node_does_not_fit_leave_the_file_as_it_was() {
    // As many as stand below the inode.
    let blocks = {
        let fs = open(&formatted(64, &FormatOptions::default()), Options::new());
        let probe = fs.create_file("/probe", 0o644).unwrap();
        let needs_a_node = |blocks: &u64| {
            probe.allocate(0, (blocks + 1) * BLOCK as u64, AllocateFlags::NONE).unwrap();
            probe.metadata().unwrap().blocks > 1 + blocks + 1
        };
        (800..).find(needs_a_node).unwrap()
    };
    let full = NearlyFull::with_blocks(Options::new(), blocks);
    full.leave(5);
    for more in [5, 6, 7] {
        let error = full.file.zero_range(0, (blocks + more) * BLOCK as u64).unwrap_err();
        let (wanted, available) = numbers(&error);
        assert!(wanted > 5 && available == 5, "{more}: {wanted}");
        assert!(content(&full.file) == vec![1; blocks as usize * BLOCK] && full.left() == 5, "{more}");
    }
    full.file.zero_range(0, (blocks + 4) * BLOCK as u64).unwrap();
    assert!(content(&full.file) == vec![0; (blocks as usize + 4) * BLOCK] && full.left() == 0);
}
