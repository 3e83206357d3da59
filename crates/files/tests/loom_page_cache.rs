//! Models of the page cache: a writer, write-back, a truncation, a removal and syncs beside each other, on one or two
//! pages.
//!
//! ```text
//! mutant: cached_size_ahead_of_data, killed by: a_file_grows_while_it_is_synced
//! mutant: cached_written_back_beside_itself, killed by: two_syncs_write_one_page_back
//! mutant: cached_page_outlives_a_range, killed by: a_durable_write_becomes_a_checkpoint_beside_a_cached_one
//! mutant: word_of_blocks_taken_from_others, killed by: two_reserve_blocks_behind_the_end
//! mutant: cached_edge_left_to_a_clean_page, killed by: a_part_of_a_page_is_written_while_pages_are_evicted
//! ```
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod loom_common;

use std::sync::OnceLock;

use f2fs_device::MemoryDevice;
use f2fs_files::{AllocateFlags, FileSystem, Options};
use f2fs_sync::{Arc, model};
use f2fs_volume::models::Image;
use loom_common::{BLOCK, LateDevice, Small, image, options, read, recorded};

/// A page cache of 16 pages.
fn cached() -> Options {
    options().page_cache(16 * 4224)
}

/// `/file` with a block, and `/other`, empty.
fn file() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        image(|fs| {
            fs.create_file("/file", 0o644).unwrap().write_at(&[1; BLOCK], 0).unwrap();
            fs.create_file("/other", 0o644).unwrap();
        })
    })
}

/// `/file` with a block, and `/large` with more of them than the cache has pages.
fn two_files() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        image(|fs| {
            fs.create_file("/file", 0o644).unwrap().write_at(&[1; BLOCK], 0).unwrap();
            fs.create_file("/large", 0o644).unwrap().write_at(&[5; 20 * BLOCK], 0).unwrap();
        })
    })
}

/// What is on a device, opened without a page cache.
fn left(device: MemoryDevice) -> Small {
    Small::on(Arc::new(device))
}

/// The file system with its page cache on a device whose requests happen when somebody waits for them.
fn open() -> Small {
    let device = file().device();
    let fs = Arc::new(FileSystem::open(Arc::new(LateDevice::new(device.clone())), cached()).unwrap());
    Small { device, fs }
}

/// Whatever a sync finds of a write beside it: the size that it makes durable has its data.
#[test]
fn a_file_grows_while_it_is_synced() {
    file();
    let setup = || recorded(file(), cached());
    model::large("a_file_grows_while_it_is_synced", 1, setup, |(device, fs)| {
        let other = Arc::clone(&fs);
        let thread = model::spawn(move || {
            other.open_file("/file").unwrap().write_at(&[2; BLOCK], BLOCK as u64).unwrap();
        });
        let file = fs.open_file("/file").unwrap();
        file.write_at(&[3; BLOCK], 0).unwrap();
        file.sync_all().unwrap();
        let then = device.position();
        thread.join().unwrap();
        model::judge();
        let small = left(device.log().image_at(then, |_, _| false));
        let found = read(&small.fs, "/file");
        assert!(found[..BLOCK] == [3; BLOCK], "what was synced");
        assert!(found[BLOCK..].iter().all(|byte| *byte == 2), "a size ahead of its data: {} bytes", found.len());
    });
}

/// Two syncs meet at one dirty page: it is written once, and counted as clean once.
#[test]
fn two_syncs_write_one_page_back() {
    file();
    let setup = || {
        let small = open();
        small.fs.checkpoint().unwrap();
        small.fs.open_file("/file").unwrap().write_at(&[2; BLOCK], 0).unwrap();
        small
    };
    model::large("two_syncs_write_one_page_back", 1, setup, |small| {
        let other = Arc::clone(&small.fs);
        let thread = model::spawn(move || other.open_file("/file").unwrap().sync_all().unwrap());
        small.fs.open_file("/file").unwrap().sync_all().unwrap();
        thread.join().unwrap();
        model::judge();
        let used = small.used();
        assert_eq!(small.fs.stats().dirty_pages, 0);
        small.fs.open_file("/file").unwrap().write_at(&[3; BLOCK], 0).unwrap();
        assert_eq!(small.fs.stats().dirty_pages, 1, "the page was counted twice");
        let again = small.again();
        assert_eq!(again.used(), used);
        assert!(read(&again.fs, "/file") == [3; BLOCK]);
    });
}

/// A durable write of the first half of a block becomes a checkpoint, since the file has two names; the second half is
/// written into the page cache meanwhile. Both are there, in memory and on the device.
#[test]
fn a_durable_write_becomes_a_checkpoint_beside_a_cached_one() {
    file();
    let setup = || {
        let small = open();
        small.fs.link("/file", "/again").unwrap();
        // Its page is in the cache.
        assert!(read(&small.fs, "/file") == [1; BLOCK]);
        small
    };
    const HALF: usize = BLOCK / 2;
    model::large("a_durable_write_becomes_a_checkpoint_beside_a_cached_one", 1, setup, |small| {
        let other = Arc::clone(&small.fs);
        let thread = model::spawn(move || {
            other.open_file("/again").unwrap().write_at(&[3; HALF], HALF as u64).unwrap();
        });
        small.fs.open_file("/file").unwrap().write_durable(&[2; HALF], 0).unwrap();
        thread.join().unwrap();
        model::judge();
        let both = [[2; HALF], [3; HALF]].concat();
        assert!(read(&small.fs, "/file") == both, "in memory");
        let again = small.again();
        assert!(read(&again.fs, "/file") == both, "on the device");
    });
}

/// Blocks are reserved in front of a page that waits, and so behind the end that the inode knows, while others are reserved
/// behind the end of the file: those are no part of the file after a power cut.
#[test]
fn two_reserve_blocks_behind_the_end() {
    file();
    let setup = || {
        let (device, fs) = recorded(file(), cached());
        fs.open_file("/file").unwrap().write_at(&[2; BLOCK], 4 * BLOCK as u64).unwrap();
        (device, fs)
    };
    model::large("two_reserve_blocks_behind_the_end", 1, setup, |(device, fs)| {
        let reserve = |fs: &FileSystem, block: u64, flags| {
            fs.open_file("/file").unwrap().allocate(block * BLOCK as u64, BLOCK as u64, flags).unwrap();
        };
        let other = Arc::clone(&fs);
        let thread = model::spawn(move || reserve(&other, 8, AllocateFlags::KEEP_SIZE));
        reserve(&fs, 2, AllocateFlags::NONE);
        thread.join().unwrap();
        model::judge();
        fs.open_file("/file").unwrap().sync_all().unwrap();
        let small = left(device.log().image_at(device.position(), |_, _| false));
        assert_eq!(small.fs.metadata("/file").unwrap().size, 5 * BLOCK as u64, "its size");
    });
}

/// A file with a dirty page is removed while it is written back: its page and its blocks go, once.
#[test]
fn a_file_is_removed_while_it_is_written_back() {
    file();
    let setup = || {
        let small = open();
        small.fs.checkpoint().unwrap();
        let used = small.used();
        small.fs.create_file("/new", 0o644).unwrap().write_at(&[2; BLOCK], 0).unwrap();
        (small, used)
    };
    model::large("a_file_is_removed_while_it_is_written_back", 1, setup, |(small, used)| {
        let fs = Arc::clone(&small.fs);
        let thread = model::spawn(move || {
            let _ = fs.checkpoint().unwrap();
        });
        small.fs.remove_file("/new").unwrap();
        thread.join().unwrap();
        model::judge();
        assert_eq!(small.fs.stats().dirty_pages, 0);
        small.fs.open_file("/file").unwrap().write_at(&[3; BLOCK], 0).unwrap();
        assert_eq!(small.fs.stats().dirty_pages, 1, "the page was counted twice");
        assert_eq!(small.used(), used);
        let again = small.again();
        assert_eq!(again.used(), used);
        assert!(!again.fs.exists("/new").unwrap() && read(&again.fs, "/file") == [3; BLOCK]);
    });
}

/// A dirty page is cut off while it is written back: what was cut off does not come back when the file grows, neither
/// in memory nor after a crash.
#[test]
fn a_dirty_file_is_cut_while_it_is_synced() {
    file();
    let setup = || {
        let small = open();
        small.fs.checkpoint().unwrap();
        small.fs.open_file("/file").unwrap().write_at(&[2; 2 * BLOCK], 0).unwrap();
        small
    };
    model::large("a_dirty_file_is_cut_while_it_is_synced", 1, setup, |small| {
        let other = Arc::clone(&small.fs);
        let thread = model::spawn(move || other.open_file("/file").unwrap().sync_all().unwrap());
        small.fs.open_file("/file").unwrap().set_len(BLOCK as u64).unwrap();
        thread.join().unwrap();
        model::judge();
        small.fs.open_file("/file").unwrap().set_len(2 * BLOCK as u64).unwrap();
        let mut expected = vec![2; BLOCK];
        expected.resize(2 * BLOCK, 0);
        assert!(read(&small.fs, "/file") == expected);
        assert_eq!(small.fs.stats().dirty_pages, 0);
        assert!(read(&small.again().fs, "/file") == expected);
    });
}

/// A part of a block is written whose page is clean, while another thread needs room and evicts all clean pages: the
/// rest of the block stays.
#[test]
fn a_part_of_a_page_is_written_while_pages_are_evicted() {
    two_files();
    let setup = || {
        let fs = Arc::new(FileSystem::open(two_files().device(), cached()).unwrap());
        let large = fs.open_file("/large").unwrap();
        // There is room for the writer's page, and for no other.
        for block in (1..15).map(|number| number * 7 % 20) {
            large.read_at(&mut [0; BLOCK], block * BLOCK as u64).unwrap();
        }
        // What the cache has of a file goes with the last handle.
        let file = fs.open_file("/file").unwrap();
        file.read_at(&mut [0; BLOCK], 0).unwrap();
        assert_eq!(fs.stats().cached_pages, 15);
        (fs, file, large)
    };
    model::large("a_part_of_a_page_is_written_while_pages_are_evicted", 1, setup, |(fs, file, large)| {
        let thread = model::spawn(move || {
            large.read_at(&mut [0; BLOCK], 19 * BLOCK as u64).unwrap();
        });
        file.write_at(&[2; 100], 0).unwrap();
        thread.join().unwrap();
        model::judge();
        let found = read(&fs, "/file");
        assert!(found[..100] == [2; 100] && found[100..] == [1; BLOCK - 100], "the rest of the block is lost");
    });
}
