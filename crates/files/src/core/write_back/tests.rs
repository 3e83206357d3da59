//! How dirty pages are put together, and what is left of them.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{MemoryDevice, Operation};
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_volume::Reason;
use f2fs_volume::format::{FormatOptions, format};

use super::*;
use crate::samples::formatted;
use crate::{FileSystem, Options, Time};

const BLOCK: usize = BLOCK_BYTES as usize;

fn cached() -> FileSystem {
    let device = formatted(32 * 1024);
    FileSystem::open(device, Options::new().page_cache(64 << 20)).unwrap()
}

/// Files with so many dirty pages each; a write of part of a block is not taken past the cache.
fn dirty(fs: &FileSystem, blocks: &[usize]) -> Vec<Arc<Inode>> {
    let file = |(number, blocks): (usize, &usize)| {
        let file = fs.create_file(format!("/{number}"), 0o644).unwrap();
        for block in 0..*blocks {
            file.write_at(&[number as u8 + 1; BLOCK - 1], (block * BLOCK) as u64).unwrap();
        }
        fs.core.inode(file.ino()).unwrap()
    };
    blocks.iter().enumerate().map(file).collect()
}

fn part<'a>(inode: &'a Arc<Inode>) -> Part<'a> {
    Part { inode, content: inode.content().unwrap(), pages: inode.pages().unwrap(), first: 0, last: u64::MAX }
}

fn blocks_of(sent: &Sent<'_>) -> Vec<(u64, u64, u64)> {
    sent.runs.iter().map(|run| (run.first, run.len, run.at)).collect()
}

/// Files share a batch, which is never larger than it may be, and few batches are in memory at a time.
#[test]
fn batches_are_full_and_few() {
    let fs = cached();
    let files = dirty(&fs, &[3, 700, 20, 2000]);
    let (parts, op) = (files.iter().map(part).collect::<Vec<_>>(), fs.core.volume.begin().unwrap());
    let mut flying = VecDeque::new();
    let write_back = WriteBack(&fs.core);
    write_back.send_parts(&op, &parts[..3].iter().collect::<Vec<_>>(), &mut flying).unwrap();
    let sent: Vec<_> = flying.iter().map(blocks_of).collect();
    assert_eq!(sent, [vec![(0, 3, 0), (0, 509, 3)], vec![(509, 191, 0), (0, 20, 191)]]);
    write_back.send_parts(&op, &[&parts[3]], &mut flying).unwrap();
    // Runs of several nodes, one behind the other.
    let sent: Vec<_> = flying.iter().map(blocks_of).collect();
    assert_eq!(sent, [vec![(1024, 512, 0)], vec![(1536, 464, 0)]], "the last two");
    assert_eq!(flying.len(), DEPTH);
    while let Some(sent) = flying.pop_front() {
        assert!(sent.runs.iter().map(|run| run.len).sum::<u64>() <= BATCH as u64);
        write_back.land(&op, sent).unwrap();
    }
    assert_eq!(fs.stats().dirty_pages, 0);
    assert!(parts.iter().all(|part| !part.pages.is_dirty() && part.pages.reserved() == 0));
    for (inode, blocks) in files.iter().zip([3, 700, 20, 2000]) {
        let raw = *inode.node.read().inode();
        assert_eq!(raw.i_size.get(), blocks * BLOCK_BYTES - 1);
        assert!(raw.i_blocks.get() > blocks, "{} of {blocks} blocks are counted", raw.i_blocks.get());
    }
}

/// A part of a file, up to the middle of a run.
#[test]
fn what_is_asked_for_is_written_and_no_more() {
    let fs = cached();
    let files = dirty(&fs, &[40, 1]);
    let (inode, write_back) = (&files[0], WriteBack(&fs.core));
    let left = || {
        let pages = inode.pages().unwrap();
        (0..40).filter(|block| pages.is_dirty_in(*block, *block)).collect::<Vec<u64>>()
    };
    let range = inode.content().unwrap().ranges.exclusive(0, u64::MAX);
    write_back.write_back_range(inode, 10, 12).unwrap();
    assert_eq!(left(), (0..10).chain(13..40).collect::<Vec<_>>());
    write_back.write_back_range(inode, 12, 12).unwrap();
    write_back.write_back_range(inode, 11, 13).unwrap();
    assert_eq!(left(), (0..10).chain(14..40).collect::<Vec<_>>());
    let op = fs.core.volume.begin().unwrap();
    write_back.write_back_within(&op, inode, 39, 50).unwrap();
    write_back.write_back_within(&op, inode, 10, 13).unwrap();
    drop(op);
    assert_eq!(left(), (0..10).chain(14..39).collect::<Vec<_>>());
    drop(range);
    assert_eq!(write_back.write_back_next(inode, 20).unwrap(), 39);
    assert_eq!(left(), (0..10).chain(14..20).collect::<Vec<_>>());
    assert_eq!(fs.stats().dirty_pages, 17);
    // Neither pages that are clean nor their count come back.
    assert_eq!(write_back.write_back_some(u64::MAX).unwrap(), 11, "the first run of each file");
    assert_eq!((left(), fs.stats().dirty_pages), (vec![], 0));
    assert_eq!(write_back.write_back_some(u64::MAX).unwrap(), 0);
}

/// Pages of blocks that go are not written, and leave nothing counted.
#[test]
fn pages_that_are_dropped_give_back_their_room() {
    let fs = cached();
    fs.create_file("/first", 0o644).unwrap();
    fs.checkpoint().unwrap();
    let kept = crate::directory::kept_free(&fs.core);
    let files = dirty(&fs, &[30]);
    let before = fs.statfs().valid_blocks;
    let op = fs.core.volume.begin().unwrap();
    WriteBack(&fs.core).discard_pages(&op, &files[0], 7);
    drop(op);
    assert_eq!(before - fs.statfs().valid_blocks, 23);
    let pages = files[0].pages().unwrap();
    assert_eq!((pages.next_dirty(0), pages.reserved(), fs.stats().dirty_pages), (Some((0, 7)), 7, 7));
    fs.checkpoint().unwrap();
    assert_eq!(fs.stats().dirty_pages, 0);
    assert_eq!(files[0].node.read().inode().i_blocks.get(), 1 + 7);
    assert_eq!(crate::directory::kept_free(&fs.core), kept, "the count of changed blocks drifts");
}

/// When nothing is dirty any more, nothing is overdue.
#[test]
fn what_was_written_back_is_not_overdue() {
    type Write = fn(&FileSystem);
    let writes: [Write; 3] = [
        |fs| assert_eq!(WriteBack(&fs.core).write_back_some(u64::MAX).unwrap(), 8),
        |fs| WriteBack(&fs.core).write_back_ahead(),
        |fs| assert!(fs.core.checkpoint(Reason::Sync).is_ok()),
    ];
    for write in writes {
        let fs = cached();
        let overdue = || fs.core.dirty_files.is_overdue(Time { seconds: i64::MAX, nanoseconds: 0 });
        dirty(&fs, &[3, 5]);
        assert!(overdue());
        write(&fs);
        assert!(!overdue());
        assert_eq!(fs.stats().dirty_pages, 0);
    }
}

/// Whoever has a file open is told that it could not be written, whichever way it was tried; and what could not be written
/// is written by the next try.
#[test]
fn an_error_is_told_on_every_way() {
    type Write = fn(&FileSystem, &Arc<Inode>) -> Result<(), FsError>;
    let writes: [Write; 4] = [
        |fs, _| WriteBack(&fs.core).write_back_some(u64::MAX).map(drop),
        |fs, inode| WriteBack(&fs.core).write_back_file(inode),
        |fs, _| fs.core.checkpoint(Reason::Sync).map(drop),
        |fs, _| {
            let op = fs.core.volume.begin()?;
            WriteBack(&fs.core).write_back_all(&op)
        },
    ];
    for (number, write) in writes.into_iter().enumerate() {
        let memory = MemoryDevice::new(32 * 1024);
        format(&memory, &FormatOptions::default()).unwrap();
        let device = PlainArc::new(FaultDevice::new(PlainArc::new(memory)));
        let fs = FileSystem::open(device.clone(), Options::new().page_cache(64 << 20)).unwrap();
        let files = dirty(&fs, &[3]);
        let open = fs.open_file("/0").unwrap();
        device.arm(FaultRule::on([Operation::Write]));
        let result = write(&fs, &files[0]);
        device.disarm();
        assert!(matches!(result, Err(FsError::WriteBack(_))), "{number}: {result:?}");
        assert_eq!((fs.stats().dirty_pages, fs.core.volume.stopped().is_some()), (3, false), "{number}");
        write(&fs, &files[0]).unwrap();
        assert_eq!(fs.stats().dirty_pages, 0, "{number}");
        assert!(matches!(open.sync_all(), Err(FsError::WriteBack(_))), "{number}: nobody was told");
        open.sync_all().unwrap();
    }
}

/// It cannot be; if it is, nothing is written in its place.
#[test]
fn a_dirty_page_that_is_lost_is_an_error() {
    let fs = cached();
    let files = dirty(&fs, &[3]);
    let pages = files[0].pages().unwrap();
    assert!(fs.core.pages.table().remove(pages.key(1)));
    match WriteBack(&fs.core).write_back_file(&files[0]) {
        Err(FsError::WriteBack(error)) => {
            assert!(matches!(*error, FsError::PageLost { ino, block: 1 } if ino == files[0].ino), "{error}");
        }
        other => panic!("{other:?}"),
    }
}
