//! The ends of files, of nodes and of the volume, and what is asked of files that cannot do it.

use std::cell::Cell;
use std::sync::Arc;

use f2fs_device::AlignedBuf;
use f2fs_device_test::RecordingDevice;
use f2fs_files::{AllocateFlags, File, FileSystem, FsError, Options, SetMode, Temperature, Time};
use f2fs_format::feature::Features;
use f2fs_format::inode::{Extent, advise, flags};
use f2fs_format::node::ADDRS_PER_BLOCK;
use f2fs_format::xattr::{HEADER_SIZE, index};
use f2fs_test_kit::harm::{geometry, ino, patch_node, patch_superblock};
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;

use crate::{BLOCK, STRIDE, content, open};

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_700_000_000) };
}

fn clock() -> Time {
    Time { seconds: NOW.get(), nanoseconds: 0 }
}

/// In a file system that is open for reading a sync has nothing to do, and does nothing.
#[test]
fn a_sync_of_a_file_that_is_only_read_succeeds() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    fs.create_file("/file", 0o644).unwrap().write_at(&[1; 5000], 0).unwrap();
    fs.close().unwrap();
    let fs = open(&device, Options::new().read_only(true));
    let file = fs.open_file("/file").unwrap();
    file.sync_all().unwrap();
    file.sync_data().unwrap();
}

/// A file that stands for one of the volume's devices has what its extent names, whatever its addresses are.
#[test]
fn a_file_that_stands_for_a_device_has_what_its_extent_names() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    for (path, byte) in [("/alias", 1), ("/plain", 2)] {
        fs.create_file(path, 0o644).unwrap().write_at(&[byte; 3 * BLOCK], 0).unwrap();
    }
    fs.close().unwrap();
    let first = Cell::new(0);
    patch_node(&device, ino(&device, "/plain"), |node| first.set(node.inode().i_addr[0].get()));
    let named = Extent { fofs: 0.into(), blk_addr: first.get().into(), len: 2.into() };
    let alias = ino(&device, "/alias");
    patch_node(&device, alias, |node| {
        (node.inode_mut().i_flags, node.inode_mut().i_ext) = (flags::DEVICE_ALIAS.into(), named);
    });
    for copy in [0, 1] {
        patch_superblock(&device, copy, true, |sb| {
            sb.feature = (sb.feature.get() | Features::DEVICE_ALIAS.0).into();
        });
    }
    let read = || -> Result<_, FsError> {
        let fs = FileSystem::open(Arc::new(device.snapshot()), Options::new().read_only(true)).unwrap();
        let (file, mut bytes) = (fs.open_file("/alias").unwrap(), vec![9; 3 * BLOCK]);
        let len = file.read_at(&mut bytes, 0)?;
        Ok((len, file.seek_hole(0)?, bytes))
    };
    let expected = [[2; 2 * BLOCK].as_slice(), &[0; BLOCK]].concat();
    assert_eq!(read().unwrap(), (3 * BLOCK, Some(2 * BLOCK as u64), expected));
    // An extent that is none of the main area's is damage.
    let end = geometry(&device).main_end().0;
    for (fofs, addr, len) in [(1, end - 2, 2), (0, 5, 2), (0, end - 1, 2), (0, u32::MAX, 1), (0, end - 2, u32::MAX)] {
        let extent = Extent { fofs: fofs.into(), blk_addr: addr.into(), len: len.into() };
        patch_node(&device, alias, |node| node.inode_mut().i_ext = extent);
        assert!(read().unwrap_err().is_corruption(), "{extent:?}");
    }
}

/// Who is refused an encrypted file is told which key it takes.
#[test]
fn an_encrypted_file_is_refused_with_its_policy() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    fs.create_file("/secret", 0o644).unwrap().write_at(&[1; 5000], 0).unwrap();
    // Version 2, its key, and a nonce: as an attribute that others cannot set.
    let policy = [&[2, 1, 4, 0, 0, 0, 0, 0][..], &[0xab; 16], &[7; 16]].concat();
    fs.set_xattr("/secret", "user.c", &policy, SetMode::Any).unwrap();
    fs.close().unwrap();
    patch_node(&device, ino(&device, "/secret"), |node| {
        let inode = node.inode_mut();
        inode.i_advise |= advise::ENCRYPT;
        inode.inline_xattr_mut(Features::default())[HEADER_SIZE] = index::ENCRYPTION;
    });
    for copy in [0, 1] {
        patch_superblock(&device, copy, true, |sb| sb.feature = (sb.feature.get() | Features::ENCRYPT.0).into());
    }
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    match fs.open_file("/secret") {
        Err(FsError::Encrypted { policy: Some(policy), .. }) => assert_eq!(policy.key(), [0xab; 16]),
        other => panic!("{other:?}"),
    }
}

/// Nothing is read at the end of a file and behind it, and holes are zeros however often they are read.
#[test]
fn reads_at_the_end_and_of_holes() {
    for cache in [0, 1 << 20] {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device, Options::new().page_cache(cache));
        let file = fs.create_file("/file", 0o644).unwrap();
        for size in [0, 100, 5000, 3 * BLOCK] {
            file.set_len(0).unwrap();
            file.write_at(&vec![7; size], 0).unwrap();
            for behind in [0, 1, BLOCK as u64] {
                let at = size as u64 + behind;
                assert_eq!(file.read_at(&mut [1; 100], at).unwrap(), 0, "{size} {behind}");
                assert_eq!(file.read_into(&mut AlignedBuf::new(1), at).unwrap(), 0, "{size} {behind}");
                assert_eq!((file.seek_data(at).unwrap(), file.seek_hole(at).unwrap()), (None, None));
            }
        }
        file.write_at(&[7; BLOCK], 9 * BLOCK as u64).unwrap();
        for _ in 0..3 {
            let (mut one, mut two) = ([1; 100], [1; 2 * BLOCK]);
            file.read_at(&mut one, 5 * BLOCK as u64 + 10).unwrap();
            file.read_at(&mut two, 4 * BLOCK as u64).unwrap();
            assert!(one == [0; 100] && two == [0; 2 * BLOCK], "{cache}");
        }
    }
}

/// Into memory of the device: from any place, and no more than the file has is asked of the device.
#[test]
fn reads_into_memory_take_what_there_is() {
    let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    let data = f2fs_device_test::bytes(2 * BLOCK + 1000, 1);
    file.write_at(&data, 0).unwrap();
    content(&file);
    for (offset, blocks, wanted) in
        [(0, 2, 2), (0, 8, 3), (BLOCK, 8, 2), (BLOCK, 4, 2), (2 * BLOCK, 1, 1), (100, 2, 3), (5000, 1, 2)]
    {
        let mut into = AlignedBuf::new(blocks);
        let before = device.counts().blocks_read;
        let read = file.read_into(&mut into, offset as u64).unwrap();
        assert_eq!(read, (data.len() - offset).min(blocks * BLOCK), "{offset}");
        assert!(into.as_bytes()[..read] == data[offset..][..read], "{offset}");
        let asked = device.counts().blocks_read - before;
        assert!(asked <= wanted, "{asked} blocks of {wanted} from {offset} on");
    }
}

/// A change of what stands in the inode changes the times, as any other does.
#[test]
fn a_change_within_the_inode_changes_the_times() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new().clock(clock));
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[7; 50], 0).unwrap();
    for (size, left) in [(20, 20), (40, 20), (40, 20)] {
        NOW.set(NOW.get() + 100);
        file.set_len(size).unwrap();
        let stat = file.metadata().unwrap();
        assert_eq!((stat.modified, stat.changed, stat.inline), (clock(), clock(), true), "{size}");
        let mut wanted = vec![7; left];
        wanted.resize(size as usize, 0);
        assert_eq!(content(&file), wanted);
    }
    NOW.set(NOW.get() + 100);
    file.punch_hole(5, 10).unwrap();
    let stat = file.metadata().unwrap();
    assert_eq!((stat.modified, stat.changed, stat.inline), (clock(), clock(), true), "a hole");
    assert!(content(&file)[..20] == [[7; 5], [0; 5], [0; 5], [7; 5]].concat());
    for write in [|file: &File| drop(file.write_at(b"x", 3)), |file: &File| drop(file.append(b"x"))] {
        NOW.set(NOW.get() + 100);
        write(&file);
        let stat = file.metadata().unwrap();
        assert_eq!((stat.modified, stat.changed, stat.inline), (clock(), clock(), true), "a write");
    }
    assert_eq!(file.size(), 41);
}

/// A mark is a change of the inode, not of the content.
#[test]
fn a_mark_changes_the_time_of_the_inode() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new().clock(clock));
    let file = fs.create_file("/file", 0o644).unwrap();
    let before = file.metadata().unwrap().modified;
    NOW.set(NOW.get() + 100);
    file.set_temperature(Temperature::Hot).unwrap();
    let stat = file.metadata().unwrap();
    assert_eq!((stat.changed, stat.modified), (clock(), before));
}

/// A cut to the size that the file has frees what is reserved behind its end, and writes nothing.
#[test]
fn a_cut_to_the_same_size_frees_what_is_reserved() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[7; 5000], 0).unwrap();
    let before = fs.stats();
    file.allocate(1 << 20, 1 << 20, AllocateFlags::KEEP_SIZE).unwrap();
    assert_eq!(fs.stats().valid_blocks, before.valid_blocks + 256);
    file.set_len(5000).unwrap();
    let after = fs.stats();
    assert_eq!((after.valid_blocks, after.user_blocks_written), (before.valid_blocks, before.user_blocks_written));
    assert!(content(&file) == [7; 5000]);
}

/// A file that grows keeps what is reserved behind its end, however far away that is.
#[test]
fn a_file_that_grows_keeps_what_is_reserved() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[7; 5000], 0).unwrap();
    file.allocate(100 * STRIDE, 3 * BLOCK as u64, AllocateFlags::KEEP_SIZE).unwrap();
    let before = fs.stats().valid_blocks;
    for size in [6000, 20_000, 10 * STRIDE] {
        file.set_len(size).unwrap();
        assert_eq!((file.size(), fs.stats().valid_blocks), (size, before));
    }
    file.set_len(9 * STRIDE).unwrap();
    assert!(fs.stats().valid_blocks <= before - 3, "a cut does not");
}

/// A range that ends with a node, or with the first block of one, gets all of its blocks and no node beyond them.
#[test]
fn ranges_that_end_where_a_node_does() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    // So many blocks stand below the inode: one more needs a node.
    let probe = fs.create_file("/probe", 0o644).unwrap();
    let needs_a_node = |blocks: &u64| {
        probe.allocate(0, (blocks + 1) * BLOCK as u64, AllocateFlags::NONE).unwrap();
        probe.metadata().unwrap().blocks > 1 + blocks + 1
    };
    let first = (800..).find(needs_a_node).unwrap();
    let node = ADDRS_PER_BLOCK as u64;
    for flags in [AllocateFlags::NONE, AllocateFlags::ZERO_RANGE, AllocateFlags::KEEP_SIZE] {
        for (end, nodes) in
            [(first, 0), (first + 1, 1), (first + node, 1), (first + node + 1, 2), (first + 2 * node, 2)]
        {
            let file = fs.create_file("/file", 0o644).unwrap();
            file.allocate(10 * BLOCK as u64, (end - 10) * BLOCK as u64, flags).unwrap();
            assert_eq!(file.metadata().unwrap().blocks, 1 + nodes + end - 10, "{flags:?} to {end}");
            file.punch_hole(10 * BLOCK as u64, (end - 10) * BLOCK as u64).unwrap();
            let size = if flags == AllocateFlags::KEEP_SIZE { 0 } else { end * BLOCK as u64 };
            let left = if size == 0 { end - 10 } else { 0 };
            assert_eq!((file.size(), file.metadata().unwrap().blocks), (size, 1 + nodes + left), "{flags:?} to {end}");
            drop(file);
            fs.remove_file("/file").unwrap();
        }
    }
    drop(probe);
    fs.close().unwrap();
    assert_clean(&device);
}

/// Blocks that were reserved behind the end before stay there, whatever is reserved in front of them: a crash behind a sync
/// does not move the end to them.
#[test]
fn what_was_reserved_behind_the_end_stays_behind_it() {
    for flags in [AllocateFlags::NONE, AllocateFlags::ZERO_RANGE] {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device, Options::new());
        let file = fs.create_file("/file", 0o644).unwrap();
        file.write_at(&[7; 5000], 0).unwrap();
        file.sync_all().unwrap();
        file.allocate(1 << 20, 1 << 20, AllocateFlags::KEEP_SIZE).unwrap();
        file.allocate(0, 20_000, flags).unwrap();
        file.sync_all().unwrap();
        let before = file.metadata().unwrap();
        let again = open(&Arc::new(device.snapshot()), Options::new());
        let after = again.metadata("/file").unwrap();
        assert_eq!((before.size, after.size, after.blocks), (20_000, 20_000, before.blocks), "{flags:?}");
    }
}

/// The last block of the main area is one like any other; what lies behind it is damage.
#[test]
fn addresses_at_the_end_of_the_volume() {
    let base = formatted(64, &FormatOptions::default());
    let fs = open(&base, Options::new());
    fs.create_file("/file", 0o644).unwrap().write_at(&[7; 3 * BLOCK], 0).unwrap();
    fs.close().unwrap();
    drop(fs);
    let geometry = geometry(&base);
    let end = geometry.main_blkaddr.0 + geometry.main_segments * 512;
    let begin = geometry.main_blkaddr.0;
    for first in [end - 3, end - 2, end, begin - 2, begin] {
        let fits = |block: u32| (begin..end).contains(&(first + block));
        let device = Arc::new(base.snapshot());
        patch_node(&device, ino(&device, "/file"), |node| {
            for index in 0..3 {
                node.inode_mut().i_addr[index] = (first + index as u32).into();
            }
        });
        for cache in [0, 1 << 20] {
            let options = Options::new().read_only(true).page_cache(cache);
            let fs = FileSystem::open(Arc::new(device.snapshot()), options).unwrap();
            let file = fs.open_file("/file").unwrap();
            let mut all = vec![0; 3 * BLOCK];
            for _ in 0..2 {
                assert_eq!(file.read_at(&mut all, 0).is_ok(), (0..3).all(fits), "{first} of {end}, {cache}");
                for (block, part) in all.chunks_mut(BLOCK).enumerate() {
                    let read = file.read_at(part, (block * BLOCK) as u64);
                    assert_eq!(read.is_ok(), fits(block as u32), "{first} of {end}, {cache}");
                }
            }
        }
    }
}

/// Data that was synced in the inode and leaves it: its own nodes do not make that durable, a checkpoint does. Of a file
/// that was never synced they do.
#[test]
fn a_synced_file_that_outgrows_its_inode_takes_a_checkpoint() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    // The first sync is a checkpoint.
    fs.create_file("/first", 0o644).unwrap().sync_all().unwrap();
    for synced in [true, false] {
        let file = fs.create_file(format!("/{synced}"), 0o644).unwrap();
        file.write_at(&[7; 100], 0).unwrap();
        if synced {
            file.sync_all().unwrap();
        }
        let before = fs.statfs().written.checkpoints;
        file.write_at(&[8; 5000], 50).unwrap();
        file.sync_all().unwrap();
        assert_eq!(fs.statfs().written.checkpoints - before, u64::from(synced));
        let again = open(&Arc::new(device.snapshot()), Options::new());
        let found = content(&again.open_file(format!("/{synced}")).unwrap());
        assert!(found[..50] == [7; 50] && found[50..] == [8; 5000]);
    }
}

/// To the greatest size, and no byte further.
#[test]
fn ranges_end_at_the_greatest_size() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    let Err(FsError::FileTooLarge { limit, .. }) = file.set_len(u64::MAX) else { panic!("no limit") };
    for flags in [AllocateFlags::NONE, AllocateFlags::ZERO_RANGE, AllocateFlags::PUNCH_HOLE.keep_size(true)] {
        assert!(matches!(file.allocate(limit - 10, 11, flags), Err(FsError::FileTooLarge { .. })), "{flags:?}");
        assert!(matches!(file.allocate(limit, 1, flags), Err(FsError::FileTooLarge { .. })), "{flags:?}");
        assert_eq!(file.size(), 0, "{flags:?}");
        file.allocate(limit - 10, 10, flags).unwrap();
        let grown = if flags.contains(AllocateFlags::KEEP_SIZE) { 0 } else { limit };
        assert_eq!(file.size(), grown, "{flags:?}");
        file.set_len(0).unwrap();
    }
    type Write = fn(&File) -> Result<(), FsError>;
    let writes: [Write; 2] =
        [|file| file.append(&[7; 10]).map(drop), |file| file.write_durable(&[7; 10], file.size()).map(drop)];
    for write in writes {
        file.set_len(limit - 10).unwrap();
        write(&file).unwrap();
        assert_eq!(file.size(), limit);
        assert!(matches!(write(&file), Err(FsError::FileTooLarge { .. })));
        let mut found = [1; 20];
        assert_eq!(file.read_at(&mut found, limit - 20).unwrap(), 20);
        assert!(found[..10] == [0; 10] && found[10..] == [7; 10]);
    }
    file.set_len(limit).unwrap();
    assert!(matches!(file.set_len(limit + 1), Err(FsError::FileTooLarge { .. })));
}

/// What is reserved behind the end is no part of a hole that begins there.
#[test]
fn a_hole_behind_the_end_leaves_what_is_reserved() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[7; 2 * BLOCK], 0).unwrap();
    file.allocate(0, 10 * BLOCK as u64, AllocateFlags::KEEP_SIZE).unwrap();
    for (offset, blocks) in [(2, 11), (5, 11), (1, 9)] {
        file.punch_hole(offset * BLOCK as u64, 2 * BLOCK as u64).unwrap();
        assert_eq!(file.metadata().unwrap().blocks, blocks, "from block {offset} on");
    }
}

/// Only blocks of which a part stays are written again, and those that are reserved are zeros already.
#[test]
fn holes_and_cuts_write_no_more_than_they_must() {
    type Change = fn(&File);
    const B: u64 = BLOCK as u64;
    let changes: [(&str, Change, u64); 10] = [
        ("whole blocks", |file| file.punch_hole(2 * B, 3 * B).unwrap(), 0),
        ("zeros of whole blocks", |file| file.zero_range(2 * B, 3 * B).unwrap(), 0),
        ("a part", |file| file.punch_hole(6 * B + 5, 10).unwrap(), 1),
        ("two parts", |file| file.zero_range(6 * B + 5, 2 * B).unwrap(), 2),
        ("a part of a reserved block", |file| file.punch_hole(22 * B + 5, 10).unwrap(), 0),
        ("a part of a hole", |file| file.zero_range(32 * B + 5, 10).unwrap(), 0),
        ("a cut within a hole", |file| file.set_len(35 * B + 5).unwrap(), 0),
        ("a cut within a reserved block", |file| file.set_len(25 * B + 5).unwrap(), 0),
        ("a cut within a block", |file| file.set_len(6 * B + 100).unwrap(), 1),
        ("a cut between two blocks", |file| file.set_len(6 * B).unwrap(), 0),
    ];
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[7; 10 * BLOCK], 0).unwrap();
    file.allocate(20 * B, 10 * B, AllocateFlags::NONE).unwrap();
    file.set_len(40 * B).unwrap();
    for (what, change, blocks) in changes {
        let before = fs.stats().user_blocks_written;
        change(&file);
        assert_eq!(fs.stats().user_blocks_written - before, blocks, "{what}");
    }
    let found = content(&file);
    let zero = |at: usize| (2 * BLOCK..5 * BLOCK).contains(&at);
    assert!(found.len() == 6 * BLOCK);
    assert!(found.iter().enumerate().all(|(at, byte)| *byte == if zero(at) { 0 } else { 7 }));
}

/// Data that leaves the inode has zeros behind it, whatever the memory held before.
#[test]
fn data_that_leaves_the_inode_brings_nothing_along() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let other = fs.create_file("/other", 0o644).unwrap();
    for round in 0..10 {
        let file = fs.create_file(format!("/{round}"), 0o644).unwrap();
        file.write_at(&[7; 100], 0).unwrap();
        // Memory that is used again holds ones.
        other.write_at(&[1; 20 * BLOCK], 0).unwrap();
        content(&other);
        file.set_len(6000).unwrap();
        let found = content(&file);
        assert!(found[..100] == [7; 100] && found[100..] == [0; 5900], "{round}");
        assert!(!file.metadata().unwrap().inline);
    }
}
