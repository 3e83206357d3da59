//! What operations on the data leave in the inode.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::Operation;
use f2fs_device_test::{FaultDevice, FaultRule, HeldDevice};
use f2fs_format::BLOCK_SIZE;
use f2fs_format::inode::{Inode as RawInode, advise, inline};
use f2fs_format::node::ADDRS_PER_BLOCK;
use f2fs_sync::PlainArc;
use f2fs_volume::tree::find_slot;

use super::*;
use crate::samples::formatted;
use crate::{AllocateFlags, File, FileKind, FileSystem, FsError, NewFile, Options};

const STRIDE: u64 = (ADDRS_PER_BLOCK * BLOCK_SIZE) as u64;

fn open(options: Options) -> FileSystem {
    FileSystem::open(formatted(32 * 1024), options).unwrap()
}

fn keeps_size(file: &File) -> bool {
    file.inode().node.read().inode().i_advise & advise::KEEP_SIZE != 0
}

/// Changes the inode of a file, as Linux may have left it.
fn patch(fs: &FileSystem, file: &File, change: impl Fn(&mut RawInode)) {
    let op = fs.core.volume.begin().unwrap();
    change(file.inode().node.write(&op).inode_mut());
}

/// Data stands in the inode as long as it fits there, to the last byte.
#[test]
fn what_fits_into_the_inode_stays_there() {
    let fs = open(Options::new());
    let probe = fs.create_file("/probe", 0o644).unwrap();
    let room = probe.inode().node.read().inode().layout(fs.core.volume.features()).inline_data_size();
    for (len, stays) in [(room - 1, true), (room, true), (room + 1, false)] {
        let file = |how: &str| fs.create_file(format!("/{how}-{len}"), 0o644).unwrap();
        let [written, cut, durable, pieces] = ["write", "cut", "durable", "pieces"].map(file);
        written.write_at(&vec![7; len], 0).unwrap();
        cut.set_len(len as u64).unwrap();
        durable.write_durable(&vec![7; len], 0).unwrap();
        pieces.append(&vec![7; len - 10]).unwrap();
        pieces.append(&[7; 10]).unwrap();
        for file in [&written, &cut, &durable, &pieces] {
            assert_eq!((file.metadata().unwrap().inline, file.size()), (stays, len as u64), "{len}");
        }
        // As Linux asks for it.
        for (file, marks) in [(&written, inline::DATA | inline::DATA_EXIST), (&cut, inline::DATA)] {
            let found = file.inode().node.read().inode().i_inline & (inline::DATA | inline::DATA_EXIST);
            assert_eq!(found, if stays { marks } else { 0 }, "{len}");
        }
        let mut found = vec![0; len];
        assert_eq!(written.read_at(&mut found, 0).unwrap(), len);
        assert!(found.iter().all(|byte| *byte == 7));
        let target = [&b"/t".repeat(len)[..len]].concat();
        fs.symlink(&target, format!("/link-{len}"), &NewFile::new(FileKind::Symlink, 0o777)).unwrap();
        let stat = fs.symlink_metadata(format!("/link-{len}")).unwrap();
        assert_eq!((stat.inline, stat.blocks), (stays, 1 + u64::from(!stays)), "{len}");
        assert!(fs.read_link(format!("/link-{len}")).unwrap() == target);
    }
}

/// The word that blocks are reserved behind the end is there as long as some are.
#[test]
fn the_inode_says_whether_blocks_are_reserved_behind_the_end() {
    let fs = open(Options::new());
    for flags in [AllocateFlags::NONE, AllocateFlags::ZERO_RANGE] {
        let file = fs.create_file(format!("/{flags:?}"), 0o644).unwrap();
        file.write_at(&[7; 5000], 0).unwrap();
        file.allocate(0, 100_000, flags).unwrap();
        assert!(!keeps_size(&file), "{flags:?}: it has grown over them");
        file.allocate(0, 50_000, flags).unwrap();
        assert!(!keeps_size(&file), "{flags:?}: within the file");
        file.allocate(0, 100_000, flags | AllocateFlags::KEEP_SIZE).unwrap();
        assert!(!keeps_size(&file), "{flags:?}: to its end");
        file.allocate(200_000, 10, flags | AllocateFlags::KEEP_SIZE).unwrap();
        assert!(keeps_size(&file), "{flags:?}: behind its end");
        file.allocate(0, 150_000, flags).unwrap();
        assert!(keeps_size(&file) && file.size() == 150_000, "{flags:?}: those are behind it still");
        file.set_len(300_000).unwrap();
        assert!(keeps_size(&file), "{flags:?}: who grows keeps them");
        file.set_len(300_000).unwrap();
        assert!(!keeps_size(&file), "{flags:?}: they went");
    }
}

/// An allocation over the end that fails takes its word back, and leaves that of others.
#[test]
fn an_allocation_that_fails_takes_its_word_back() {
    let keep_size = [AllocateFlags::NONE, AllocateFlags::KEEP_SIZE];
    for (kept, flags) in [false, true].into_iter().flat_map(|kept| keep_size.map(|flags| (kept, flags))) {
        let memory = formatted(32 * 1024);
        {
            let fs = FileSystem::open(memory.clone(), Options::new()).unwrap();
            let file = fs.create_file("/file", 0o644).unwrap();
            file.write_at(&[7; 10], 0).unwrap();
            file.write_at(&[7; 10], STRIDE).unwrap();
            if kept {
                file.allocate(3 * STRIDE, 10, AllocateFlags::KEEP_SIZE).unwrap();
            }
            drop(file);
            fs.close().unwrap();
        }
        let device = PlainArc::new(FaultDevice::new(memory));
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let file = fs.open_file("/file").unwrap();
        let blocks = || (file.metadata().unwrap().blocks, fs.statfs().valid_blocks, file.size(), keeps_size(&file));
        let before = blocks();
        assert_eq!(before.3, kept);
        device.arm(FaultRule::on([Operation::Read]));
        assert!(file.allocate(0, STRIDE + 50_000, flags).is_err());
        assert_eq!((blocks(), device.faults()), (before, 1), "{flags:?}");
    }
}

/// Linux keeps in the inode where the longest piece of the file lies: whoever moves blocks forgets it.
#[test]
fn the_longest_piece_is_forgotten() {
    type Change = fn(&File) -> Result<(), FsError>;
    let changes: [(&str, Change); 5] = [
        ("a write", |file| file.write_at(&[8; 5000], 100).map(drop)),
        ("an append", |file| file.append(&[8; 5000]).map(drop)),
        ("a durable write", |file| file.write_durable(&[8; 5000], 100).map(drop)),
        ("a cut", |file| file.set_len(5000)),
        ("a hole", |file| file.punch_hole(0, 5000)),
    ];
    for cache in [0, 1 << 20] {
        let fs = open(Options::new().page_cache(cache));
        for (what, change) in changes {
            let file = fs.create_file(format!("/{what}"), 0o644).unwrap();
            file.write_at(&[7; 100_000], 0).unwrap();
            fs.checkpoint().unwrap();
            patch(&fs, &file, |raw| raw.i_ext.len = 5.into());
            change(&file).unwrap();
            assert_eq!(file.inode().node.read().inode().i_ext.len.get(), 0, "{what}, {cache}");
        }
    }
}

/// A cut in several operations takes the size and that piece along with each, so that a crash between two of them
/// leaves a file that is whole.
#[test]
fn each_step_of_a_long_cut_takes_the_size_along() {
    const NODES: u64 = 70;
    let fs = open(Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    for node in 0..NODES {
        file.write_at(&[7; 10], node * STRIDE).unwrap();
    }
    patch(&fs, &file, |raw| raw.i_ext.len = 5.into());
    let (inode, content) = (file.inode(), fs.core.content(file.inode()));
    FileData(&fs.core).truncate_to_last_step(inode, content, 1).unwrap();
    let node = inode.node.read();
    let (raw, left) = (node.inode(), (NODES - 1) * STRIDE);
    assert_eq!((raw.i_ext.len.get(), raw.i_size.get()), (0, content.size()));
    assert!(content.size() < left && content.size() > 20 * STRIDE, "{}", content.size() / STRIDE);
}

/// A checkpoint has to write the dirty pages: as many segments are kept free for them as for other dirty blocks.
#[test]
fn room_for_dirty_pages_is_kept() {
    let fs = open(Options::new().page_cache(64 << 20));
    let goal = || fs.core.volume.balance().cleaning_goal();
    let file = fs.create_file("/file", 0o644).unwrap();
    let mut goals = vec![goal()];
    for piece in 0..150 {
        file.write_at(&[7; 100_001], piece * 100_001).unwrap();
        goals.push(goal());
    }
    assert!(fs.stats().dirty_pages > 3600);
    assert!(goals.is_sorted() && goals[150] >= goals[0] + 4, "{goals:?}");
    file.sync_all().unwrap();
    assert_eq!((fs.stats().dirty_pages, goal()), (0, goals[0]));
    // Pages that go with their file need none either.
    file.write_at(&[8; 500_001], 0).unwrap();
    file.set_len(0).unwrap();
    assert_eq!((fs.stats().dirty_pages, goal()), (0, goals[0]));
}

/// A hole that ends with a node is no longer than that.
#[test]
fn a_hole_ends_with_its_node_where_data_follows() {
    for cache in [0, 1 << 20] {
        let fs = open(Options::new().page_cache(cache));
        let file = fs.create_file("/file", 0o644).unwrap();
        let features = fs.core.volume.features();
        let first = u64::from(file.inode().node.read().inode().layout(features).addresses().inode);
        let node = ADDRS_PER_BLOCK as u64;
        let blocks = [0, first, first + node, first + 3 * node - 1, first + 3 * node];
        for block in blocks {
            file.write_at(&[1 + (block % 200) as u8; BLOCK_SIZE], block * BLOCK_SIZE as u64).unwrap();
        }
        let mut all = vec![9; file.size() as usize];
        for _ in 0..2 {
            assert_eq!(file.read_at(&mut all, 0).unwrap(), all.len());
            for (block, found) in (0..).zip(all.chunks(BLOCK_SIZE)) {
                let byte = if blocks.contains(&block) { 1 + (block % 200) as u8 } else { 0 };
                assert!(found.iter().all(|found| *found == byte), "block {block}, {cache}");
            }
        }
    }
}

/// A cut that meets damage on its way leaves the size that the blocks have, and the word of those behind the end.
#[test]
fn a_cut_that_fails_leaves_what_it_did_not_reach() {
    for kept in [false, true] {
        let fs = open(Options::new());
        let file = fs.create_file("/file", 0o644).unwrap();
        file.write_at(&[7; 10 * BLOCK_SIZE], 0).unwrap();
        if kept {
            file.allocate(20 * BLOCK_SIZE as u64, 10, AllocateFlags::KEEP_SIZE).unwrap();
        }
        fs.checkpoint().unwrap();
        // A block that is nobody's.
        let free = fs.core.volume.geometry().main_end().0 - 1;
        patch(&fs, &file, |raw| raw.i_addr[4] = free.into());
        assert!(file.set_len(100).is_err());
        assert_eq!(file.inode().node.read().inode().i_size.get(), file.size(), "{kept}");
        assert!(file.size() > 100 && file.size() <= 10 * BLOCK_SIZE as u64, "{kept}: {}", file.size());
        assert_eq!(keeps_size(&file), kept);
    }
}

/// The size is that of the blocks in front of what was freed, also where it waits in the page cache and that in the
/// inode is less.
#[test]
fn a_cut_that_fails_leaves_the_size_of_the_page_cache() {
    const BLOCK: u64 = BLOCK_SIZE as u64;
    let fs = open(Options::new().page_cache(1 << 20));
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[7; BLOCK_SIZE], 0).unwrap();
    fs.checkpoint().unwrap();
    // In a node a block behind the end, and in the next one a page that is still to be written.
    file.allocate(1000 * BLOCK, 10, AllocateFlags::KEEP_SIZE).unwrap();
    let first = u64::from(fs.core.content(file.inode()).addresses.inode);
    file.write_at(&[8; BLOCK_SIZE], (first + 2 * ADDRS_PER_BLOCK as u64 - 5) * BLOCK).unwrap();
    let slot = find_slot(&fs.core.volume, &file.inode().node, 1000).unwrap().unwrap();
    {
        let op = fs.core.volume.begin().unwrap();
        let free = fs.core.volume.geometry().main_end().0 - 1;
        slot.node.write(&op).slots_mut()[slot.index] = free.into();
    }
    assert!(file.set_len(100).is_err());
    let i_size = file.inode().node.read().inode().i_size.get();
    assert_eq!((i_size, file.size()), (BLOCK, first * BLOCK));
    assert_eq!(fs.stats().dirty_pages, 0);
}

/// A durable write that fails gives back the size that it asked for, but not what another thread wrote behind it.
#[test]
fn a_durable_write_that_fails_leaves_what_others_wrote_behind_it() {
    const BLOCK: u64 = BLOCK_SIZE as u64;
    for beside in [false, true] {
        let faulty = PlainArc::new(FaultDevice::new(formatted(32 * 1024)));
        let held = PlainArc::new(HeldDevice::new(faulty.clone()));
        let fs = FileSystem::open(held.clone(), Options::new()).unwrap();
        let file = fs.create_file("/file", 0o644).unwrap();
        file.write_at(&[1; 2 * BLOCK_SIZE], 0).unwrap();
        file.sync_all().unwrap();
        held.hold_next(Operation::Write);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| file.write_durable(&[2; 2 * BLOCK_SIZE], 2 * BLOCK));
            held.wait_until_held();
            if beside {
                file.write_at(&[3; BLOCK_SIZE], 6 * BLOCK).unwrap();
            }
            faulty.arm(FaultRule::on([Operation::Write]));
            held.release();
            assert!(writer.join().unwrap().is_err());
        });
        let blocks = if beside { 7 } else { 2 };
        let mut wanted = vec![1; 2 * BLOCK_SIZE];
        if beside {
            wanted.resize(6 * BLOCK_SIZE, 0);
            wanted.resize(7 * BLOCK_SIZE, 3);
        }
        let mut found = vec![9; wanted.len()];
        assert_eq!(file.read_at(&mut found, 0).unwrap(), wanted.len());
        let i_size = file.inode().node.read().inode().i_size.get();
        assert_eq!((i_size, file.size(), found == wanted), (blocks * BLOCK, blocks * BLOCK, true), "{beside}");
    }
}
