//! Blocks that are written, or cannot be, and what is counted of them.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{BlockDevice, MemoryDevice, Operation, ZoneLayout, ZonedDevice};
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_format::BLOCK_BYTES;
use f2fs_format::feature::Features;
use f2fs_sync::atomic::AtomicBool;
use f2fs_sync::{Arc, PlainArc, RwLock};
use f2fs_volume::format::{FormatOptions, format};

use crate::core::Core;
use crate::directory::{Directory, Page};
use crate::inode::Inode;
use crate::{FileSystem, Options};

/// More than a checkpoint writes together; each name is a link of one file.
const BLOCKS: usize = 700;
/// Names that fit into a block.
const IN_BLOCK: usize = 8;

fn name(number: usize) -> String {
    format!("/d/{number:0>200}")
}

struct Fixture {
    memory: PlainArc<MemoryDevice>,
    device: PlainArc<FaultDevice>,
    fs: FileSystem,
    inode: Arc<Inode>,
}

impl Fixture {
    /// A directory with about so many changed blocks.
    fn new(blocks: usize) -> Fixture {
        let memory = PlainArc::new(MemoryDevice::new(32 * 1024));
        Fixture::on(memory.clone(), memory, &FormatOptions::default(), blocks)
    }

    fn on(
        memory: PlainArc<MemoryDevice>,
        inner: PlainArc<dyn BlockDevice>,
        options: &FormatOptions,
        blocks: usize,
    ) -> Fixture {
        format(&*inner, options).unwrap();
        let device = PlainArc::new(FaultDevice::new(inner));
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        fs.create_file("/f", 0o644).unwrap();
        fs.create_dir("/d", 0o755).unwrap();
        // The root has a block of its own.
        fs.checkpoint().unwrap();
        (0..blocks * IN_BLOCK / 2).for_each(|number| fs.link("/f", name(number)).unwrap());
        let inode = fs.core.inode(fs.metadata("/d").unwrap().ino).unwrap();
        Fixture { memory, device, fs, inode }
    }

    fn core(&self) -> &Core {
        &self.fs.core
    }

    fn directory(&self) -> &Directory {
        self.inode.directory().unwrap()
    }

    fn dirty(&self) -> usize {
        self.directory().dirty.lock().len()
    }

    /// A checkpoint ends with no changed block left. Then what is kept free for them is what it was at first, to the
    /// block.
    fn assert_counted(&self, at_first: [u32; 2]) {
        self.fs.checkpoint().unwrap();
        assert_eq!(self.dirty(), 0);
        assert_eq!(kept_free(self.core()), at_first, "the count of changed blocks drifts");
    }

    /// All names are there, for who opens it anew.
    fn assert_there(&self, names: usize) {
        let fs = FileSystem::open(PlainArc::new(self.memory.snapshot()), Options::new()).unwrap();
        assert_eq!(fs.read_dir("/d").unwrap().count(), names);
        for number in (0..names).step_by(61) {
            assert_eq!(fs.metadata(name(number)).unwrap().ino, fs.metadata("/f").unwrap().ino, "{number}");
        }
    }
}

/// What is kept free beside so many more changed blocks as fill whole segments, and one more: it tells how many there
/// are, if there are none or less than none.
pub(crate) fn kept_free(core: &Core) -> [u32; 2] {
    let balance = core.volume.balance();
    [20_480, 20_481].map(|more| {
        balance.add_dirty_dentries(more);
        let goal = balance.cleaning_goal();
        balance.sub_dirty_dentries(more);
        goal
    })
}

fn page(block: u64) -> Arc<Page> {
    let data = RwLock::new(Box::new([0; 4096]));
    Arc::new(Page { block, data, dirty: AtomicBool::new(false), dead: AtomicBool::new(false) })
}

#[test]
fn one_changed_block_shows_in_what_is_kept_free() {
    let fixture = Fixture::new(0);
    fixture.fs.checkpoint().unwrap();
    let (core, none) = (fixture.core(), kept_free(fixture.core()));
    core.volume.balance().add_dirty_dentries(1);
    assert_ne!(kept_free(core), none);
    core.volume.balance().sub_dirty_dentries(2);
    assert_ne!(kept_free(core), none);
    core.volume.balance().add_dirty_dentries(1);
    assert_eq!(kept_free(core), none);
}

/// Names come and go in the inode, in new blocks, in blocks on the device, and with the directory.
#[test]
fn changed_blocks_are_counted_once_and_no_more_when_they_are_written_or_gone() {
    let fixture = Fixture::new(0);
    fixture.fs.checkpoint().unwrap();
    let at_first = kept_free(fixture.core());
    let names = 40 * IN_BLOCK;
    let add = |numbers: std::ops::Range<usize>| numbers.for_each(|n| fixture.fs.link("/f", name(n)).unwrap());
    let remove = |numbers: std::ops::Range<usize>| numbers.for_each(|n| fixture.fs.remove_file(name(n)).unwrap());
    add(0..names);
    assert_eq!(fixture.dirty() as u64, fixture.directory().blocks());
    fixture.assert_counted(at_first);
    // Blocks that are freed, some as they were on the device and others changed before.
    remove(0..names / 2);
    fixture.assert_counted(at_first);
    add(0..names / 2);
    remove(0..names);
    assert_eq!(fixture.dirty() as u64, fixture.directory().blocks(), "freed blocks are none");
    fixture.assert_counted(at_first);
    let stat = fixture.fs.metadata("/d").unwrap();
    assert_eq!(stat.blocks - 1, fixture.directory().blocks(), "the inode, and the first block with two names");
    add(0..names);
    remove(0..names);
    fixture.fs.remove_dir("/d").unwrap();
    fixture.assert_counted(at_first);
    let report = f2fs_check::check(&fixture.memory.snapshot(), &f2fs_check::CheckOptions::default()).unwrap();
    assert!(report.is_clean(), "nothing is left of the directory: {report}");
}

#[test]
fn what_is_written_ahead_is_left_to_no_checkpoint() {
    let fixture = Fixture::new(BLOCKS);
    let (directory, names) = (fixture.directory(), BLOCKS * IN_BLOCK / 2);
    let (dirty, clean) = (fixture.dirty() as u64, directory.shared.blocks());
    assert!(dirty > super::AHEAD as u64 && dirty == directory.blocks());
    let before = fixture.fs.write_stat();
    fixture.core().dirty_directories.write_ahead(&fixture.core().volume).unwrap();
    let written = fixture.fs.write_stat().minus(&before);
    assert_eq!((written.user_blocks, fixture.dirty()), (dirty, 0));
    assert!(!directory.has_changed_blocks());
    assert_eq!(directory.shared.blocks() - clean, dirty, "they may be dropped from memory now");
    let before = fixture.fs.write_stat();
    fixture.fs.checkpoint().unwrap();
    assert_eq!(fixture.fs.write_stat().minus(&before).user_blocks, 0);
    fixture.assert_there(names);
}

#[test]
fn blocks_that_a_checkpoint_writes_may_be_dropped_from_memory() {
    let fixture = Fixture::new(10);
    let (directory, op) = (fixture.directory(), fixture.core().volume.begin().unwrap());
    let (dirty, clean) = (fixture.dirty() as u64, directory.shared.blocks());
    directory.write_back(&op).unwrap();
    assert_eq!((directory.shared.blocks() - clean, fixture.dirty()), (dirty, 0));
    assert_eq!(directory.blocks(), dirty, "they are not dropped before they are too many");
    directory.shrink(0);
    assert_eq!(directory.blocks(), 0);
}

/// Where there is no room beside operations, the blocks are left to the checkpoint. On zones nothing is written into
/// holes.
#[test]
fn what_finds_no_room_ahead_is_written_by_the_checkpoint() {
    let zoned = || ZonedDevice::new(MemoryDevice::new(128 << 8), ZoneLayout::new(512).with_conventional(8)).unwrap();
    let options = FormatOptions::default().with_features(Features::BLKZONED);
    let on_zones = |blocks| Fixture::on(PlainArc::new(MemoryDevice::new(1)), PlainArc::new(zoned()), &options, blocks);
    let at_first = kept_free(on_zones(0).core());
    let fixture = on_zones(2 * BLOCKS);
    let (core, balance, dirty) = (fixture.core(), fixture.core().volume.balance(), fixture.dirty());
    let before = fixture.fs.write_stat();
    let op = core.volume.begin().unwrap();
    // So much is kept for others. What is left of the segment that is being written is there for anybody.
    balance.add_dirty_dentries(1 << 20);
    assert!(!fixture.directory().write_ahead(&op).unwrap(), "there was room");
    balance.sub_dirty_dentries(1 << 20);
    drop(op);
    let left = fixture.dirty();
    assert!(left > 0 && (dirty - left).is_multiple_of(super::AHEAD), "{left} of {dirty}");
    assert!(fixture.directory().dirty.lock().values().all(|page| page.dirty.load(super::Ordering::Acquire)));
    fixture.assert_counted(at_first);
    assert_eq!(fixture.fs.write_stat().minus(&before).user_blocks, dirty as u64);
    fixture.directory().shrink(0);
    assert_eq!(fixture.fs.read_dir("/d").unwrap().count(), BLOCKS * IN_BLOCK);
}

/// A write of the first or of a later part fails: what is not written stays changed, in the next try as well.
#[test]
fn what_could_not_be_written_is_written_by_the_next_try() {
    let at_first = kept_free(Fixture::new(0).core());
    type Write = fn(&Fixture) -> bool;
    let writes: [(Write, usize, usize); 2] = [
        (
            |fixture| fixture.directory().write_back(&fixture.core().volume.begin().unwrap()).is_err(),
            super::CHUNK,
            2 * BLOCKS,
        ),
        (
            |fixture| fixture.directory().write_ahead(&fixture.core().volume.begin().unwrap()).is_err(),
            super::AHEAD,
            BLOCKS,
        ),
    ];
    for (write, chunk, blocks) in writes {
        let mut parts = Vec::new();
        // How many requests a part takes depends on the processors that run this: another round may see another part.
        let of_all = |parts: &[usize]| parts.contains(&0) && parts.iter().any(|part| *part > 0);
        for _ in 0..8 {
            for requests in 0.. {
                let fixture = Fixture::new(blocks);
                let dirty = fixture.dirty();
                assert!(dirty > chunk, "{dirty}");
                fixture.device.arm(FaultRule::on([Operation::Write]).after(requests));
                let failed = write(&fixture);
                assert_eq!(failed, fixture.device.faults() == 1);
                fixture.device.disarm();
                let left = fixture.dirty();
                assert!(left == 0 || (dirty - left).is_multiple_of(chunk), "{left} of {dirty} are left");
                assert_eq!(left > 0, failed);
                parts.extend(failed.then_some((dirty - left) / chunk));
                fixture.assert_counted(at_first);
                fixture.assert_there(blocks * IN_BLOCK / 2);
                if !failed {
                    break;
                }
            }
            if of_all(&parts) {
                break;
            }
        }
        assert!(of_all(&parts), "{parts:?}");
    }
}

/// Others may free a block while it is being written ahead; and of a directory that is being removed no place is found.
#[test]
fn a_block_that_is_gone_is_not_written_and_not_left() {
    let fixture = Fixture::new(4);
    let (core, directory) = (fixture.core(), fixture.directory());
    let op = core.volume.begin().unwrap();
    let pages = directory.take_dirty(&core.volume);
    let before = fixture.fs.write_stat();
    pages[0].dead.store(true, super::Ordering::Release);
    assert!(directory.write_chunk_ahead(&op, &pages[..1]).unwrap());
    directory.put_back(&core.volume, &pages[0]);
    assert!(!directory.has_changed_blocks());
    pages[0].dead.store(false, super::Ordering::Release);
    let nowhere = page(1 << 20);
    assert!(directory.write_chunk_ahead(&op, std::slice::from_ref(&nowhere)).unwrap());
    assert_eq!(directory.take_dirty(&core.volume).iter().map(|page| page.block).collect::<Vec<_>>(), [1 << 20]);
    assert_eq!(fixture.fs.write_stat().minus(&before).user_blocks, 0);
    for _ in 0..2 {
        pages.iter().for_each(|page| directory.put_back(&core.volume, page));
    }
    assert_eq!(fixture.dirty(), pages.len());
    drop(op);
    fixture.assert_counted(kept_free(Fixture::new(0).core()));
    fixture.assert_there(2 * IN_BLOCK);
}

/// Many of the blocks of a large directory, where they are clean and nobody uses them.
#[test]
fn a_directory_gives_back_what_is_above_its_limit() {
    let fixture = Fixture::new(200);
    let (core, directory) = (fixture.core(), fixture.directory());
    let (all, shards) = (directory.blocks(), directory.pages.len());
    directory.shrink(0);
    assert_eq!(directory.blocks(), all, "what is changed stays");
    let op = core.volume.begin().unwrap();
    directory.write_back(&op).unwrap();
    let most = directory.pages.iter().map(|shard| shard.0.read().len()).max().unwrap();
    directory.shrink(most * shards);
    assert_eq!(directory.blocks(), all, "there are no more than the limit");
    directory.shrink((most - 1) * shards);
    assert!((1..all).contains(&directory.blocks()) || shards == 1 || most == 1, "a part of the map goes");
    let held = directory.page(&core.volume, 0).unwrap().unwrap();
    directory.shrink(0);
    assert_eq!(directory.blocks(), 1, "one is in use");
    assert!(Arc::ptr_eq(&held, &directory.page(&core.volume, 0).unwrap().unwrap()));
    drop(held);
    directory.shrink(0);
    assert_eq!(directory.blocks(), 0);
    // What comes from the device is counted.
    let before = directory.shared.blocks();
    drop(op);
    assert_eq!(fixture.fs.read_dir("/d").unwrap().count(), 200 * IN_BLOCK / 2);
    assert_eq!((directory.shared.blocks() - before, directory.blocks()), (all, all));
    assert_eq!(fixture.fs.metadata("/d").unwrap().blocks, all + 1);
    assert!(fixture.fs.metadata("/d").unwrap().size >= all * BLOCK_BYTES);
}

/// A look at a name, or a change, makes room if there are more blocks in memory than there may be; of directories that
/// are in use blocks go as well.
#[test]
fn more_blocks_than_there_may_be_go_with_the_next_operation() {
    const LIMIT: u64 = 20;
    let fixture = Fixture::new(BLOCKS);
    fixture.fs.checkpoint().unwrap();
    let limit = std::num::NonZeroUsize::new(LIMIT as usize).unwrap();
    let options = Options::new().dentry_cache(limit);
    let fs = FileSystem::open(PlainArc::new(fixture.memory.snapshot()), options).unwrap();
    let held = fs.inode_at("/d").unwrap();
    let directory = held.inode().directory().unwrap();
    let operations: [&dyn Fn(); 2] = [&|| drop(held.lookup(&name(7)[3..]).unwrap()), &|| fs.core.balance().unwrap()];
    for operation in operations {
        let listed = directory.list(&fs.core.volume, 0, usize::MAX).unwrap();
        assert_eq!(listed.entries.len(), BLOCKS * IN_BLOCK / 2 + 2);
        assert!(directory.blocks() > LIMIT && directory.shared.blocks() > LIMIT);
        operation();
        assert!(directory.blocks() <= LIMIT, "{} blocks", directory.blocks());
        assert!(directory.shared.blocks() <= LIMIT, "{} are counted", directory.shared.blocks());
    }
}

/// Of blocks that were clean before a checkpoint no more stay than so many; those that it writes itself stay until the
/// next.
#[test]
fn a_huge_directory_is_not_kept_in_memory() {
    let fixture = Fixture::new(10);
    let (directory, op) = (fixture.directory(), fixture.core().volume.begin().unwrap());
    let dirty = fixture.dirty() as u64;
    let all = 2 * super::KEEP as u64;
    (1000..1000 + all).for_each(|block| drop(directory.shard(block).write().insert(block, page(block))));
    directory.write_back(&op).unwrap();
    assert_eq!(directory.blocks(), dirty, "of {all} more");
}
