//! A panic within an operation stops the volume: nothing that is half done becomes a checkpoint, the last checkpoint and what was
//! synced since are there at the next open, and no other thread waits for ever.
//!
//! `F2FS_STRESS=1000` panics in every single request; usually in a part of them.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use f2fs_device::{BlockDevice, MemoryDevice, Operation};
use f2fs_device_test::bytes;
use f2fs_device_test::{Fault, FaultDevice, FaultRule};
use f2fs_files::{
    AllocateFlags, CleanerOptions, FileKind, FileSystem, FsError, Options, Pace, RenameMode, SetMode, Time,
    path_from_bytes,
};
use f2fs_test_kit::volumes::{TempPathExt, assert_consistent, formatted, saved, scale, within};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{OpenOptions, Reason, StopCause, Volume, VolumeError};

const LIMIT: Duration = Duration::from_secs(60);

fn options() -> Options {
    // Hardly any cache: things are read again and again.
    let small = OpenOptions::new().node_cache(NonZeroUsize::MIN);
    Options::new().volume(small).inode_cache(NonZeroUsize::MIN)
}

/// All paths, each with what it is.
fn tree(fs: &FileSystem) -> BTreeMap<Vec<u8>, String> {
    let mut all = BTreeMap::new();
    let mut pending = vec![b"/".to_vec()];
    while let Some(path) = pending.pop() {
        let at = path_from_bytes(&path);
        let stat = fs.symlink_metadata(at).unwrap();
        let mut content = Vec::new();
        if stat.kind == FileKind::Directory {
            for entry in fs.read_dir(at).unwrap().map(Result::unwrap) {
                let slash: &[u8] = if path == b"/" { b"" } else { b"/" };
                pending.push([&path[..], slash, &entry.name].concat());
            }
        } else {
            content = vec![0; stat.size as usize];
            assert_eq!(fs.open_file(at).unwrap().read_at(&mut content, 0).unwrap(), content.len());
        }
        all.insert(path, file(&content, stat.links));
    }
    all
}

fn file(content: &[u8], links: u32) -> String {
    let sum = content.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    format!("{} bytes, {links} links, {sum:x}", content.len())
}

/// A workload, and what it may rely on.
struct Run {
    inner: Arc<MemoryDevice>,
    /// The device as it was when the last checkpoint had succeeded.
    good: MemoryDevice,
    /// Files that were synced since, and not touched again.
    synced: BTreeMap<Vec<u8>, String>,
    /// The one that a sync is about.
    pending: Option<(Vec<u8>, String)>,
}

impl Run {
    fn checkpointed(&mut self) {
        self.good = self.inner.snapshot();
        self.synced.clear();
    }

    fn checkpoint(&mut self, fs: &FileSystem) {
        fs.checkpoint().unwrap();
        self.checkpointed();
    }

    fn sync(&mut self, fs: &FileSystem, path: &str, len: usize, durable: bool) {
        let content = bytes(len, len as u64);
        let new = fs.create_file(path, 0o644).unwrap();
        self.pending = Some((path.into(), file(&content, 1)));
        if durable {
            new.write_durable(&content, 0).unwrap();
        } else {
            new.write_at(&content, 0).unwrap();
            new.sync_all().unwrap();
        }
        self.synced.extend(self.pending.take());
    }

    fn work(&mut self, fs: &FileSystem) {
        for round in 0..2 {
            let dir = format!("/dir-{round}");
            fs.create_dir(&dir, 0o755).unwrap();
            for name in 0..6 {
                let file = fs.create_file(format!("{dir}/file-{name}"), 0o644).unwrap();
                file.write_at(&bytes(1 + name as usize * 3000, name), name * 1000).unwrap();
            }
            self.checkpoint(fs);
            self.sync(fs, &format!("/old/synced-{round}"), 30_000, false);
            self.sync(fs, &format!("/old/durable-{round}"), 5000, true);
            fs.set_xattr(format!("{dir}/file-1"), "user.large", &[3; 2500], SetMode::Any).unwrap();
            fs.rename(format!("{dir}/file-2"), format!("{dir}/moved"), RenameMode::Replace).unwrap();
            fs.rename(format!("{dir}/file-3"), format!("{dir}/file-4"), RenameMode::Replace).unwrap();
            fs.rename("/old/a", "/old/b", RenameMode::Exchange).unwrap();
            fs.remove_file(format!("/old/names/{round}")).unwrap();
            // With the handle open when it loses its name.
            let held = fs.open_file(format!("{dir}/file-5")).unwrap();
            fs.remove_file(format!("{dir}/file-5")).unwrap();
            self.checkpoint(fs);
            let large = fs.open_file("/old/large").unwrap();
            large.write_at(&bytes(50_000, round), 1_000_000 + round * 70_000).unwrap();
            large.set_len(900_000 - round * 300_000).unwrap();
            large.allocate(1_200_000, 100_000, AllocateFlags::KEEP_SIZE).unwrap();
            drop(held);
            fs.remove_all(format!("/old/tree-{round}")).unwrap();
            while fs.clean_step(Pace::Urgent).unwrap().is_some_and(|step| step.segments == 0) {}
            fs.clean_step(Pace::Urgent).unwrap();
            self.checkpoint(fs);
            fs.remove_file(format!("{dir}/file-4")).unwrap();
            self.sync(fs, &format!("{dir}/synced"), 100, false);
            fs.clean().unwrap();
            self.checkpoint(fs);
        }
        fs.close().unwrap();
        self.checkpointed();
    }
}

/// The volume before the workload.
fn prepared() -> MemoryDevice {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    for path in ["/old", "/old/names", "/old/a", "/old/b", "/old/tree-0", "/old/tree-1"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    for name in 0..150 {
        fs.create_file(format!("/old/names/{name}"), 0o644).unwrap();
    }
    for round in 0..2 {
        for name in 0..5 {
            let path = format!("/old/tree-{round}/{name}");
            fs.create_file(path, 0o644).unwrap().write_at(&[5; 9000], 0).unwrap();
        }
    }
    fs.create_file("/old/large", 0o644).unwrap().write_at(&bytes(2 << 20, 1), 0).unwrap();
    fs.close().unwrap();
    device.snapshot()
}

fn text(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map_or_else(|| panic.downcast_ref::<&str>().unwrap(), String::as_str)
}

#[track_caller]
fn assert_stopped<T>(result: Result<T, FsError>) {
    match result.err() {
        Some(FsError::Volume(VolumeError::Stopped { reason: StopCause::Panic })) => {}
        other => panic!("instead of saying that it was stopped by a panic: {other:?}"),
    }
}

/// All that changes is refused, from another thread too, and what is read is there: nothing is left locked.
fn assert_all_refused(fs: &FileSystem) {
    let fs = fs.clone();
    within(LIMIT, move || {
        assert_stopped(fs.create_file("/never", 0o644));
        assert_stopped(fs.create_dir("/old/never", 0o755));
        assert_stopped(fs.checkpoint());
        assert_stopped(fs.clean());
        assert_stopped(fs.clean_step(Pace::Urgent));
        assert_stopped(fs.rename("/old/names", "/elsewhere", RenameMode::Replace));
        let large = fs.open_file("/old/large").unwrap();
        assert_stopped(large.write_at(b"x", 0));
        assert_stopped(large.set_len(5));
        assert_stopped(large.sync_all());
        large.read_at(&mut [0; 100_000], 0).unwrap();
        assert!(fs.read_dir("/old/names").unwrap().all(|entry| entry.is_ok()));
        drop(large);
        assert_stopped(fs.close());
    });
}

/// Panics in one operation of the workload and judges what is left. Tells how many operations there were, and what stopped.
fn run(base: &MemoryDevice, rule: FaultRule, fsck: bool) -> (u64, Option<bool>) {
    let inner = Arc::new(base.snapshot());
    let faulty = Arc::new(FaultDevice::new(inner.clone()));
    let mut run = Run { inner: inner.clone(), good: base.snapshot(), synced: BTreeMap::new(), pending: None };
    let fs = FileSystem::open(faulty.clone(), options()).unwrap();
    let before = faulty.operations();
    faulty.arm(rule);
    let panic = catch_unwind(AssertUnwindSafe(|| run.work(&fs))).err();
    let operations = faulty.operations() - before;
    let Some(panic) = panic else {
        drop(fs);
        assert_consistent(&*inner);
        return (operations, None);
    };
    assert!(text(&*panic).contains("the device panics"), "{}", text(&*panic));
    let stopped = fs.volume().stopped().cloned();
    if stopped.is_some() {
        assert_eq!(stopped, Some(StopCause::Panic));
        assert_all_refused(&fs);
    } else {
        // Where nothing is being changed yet, the operation just does not happen.
        assert!(text(&*panic).ends_with("in a read"), "not stopped: {}", text(&*panic));
        let (fs, expected) = (fs.clone(), tree(&fs));
        within(LIMIT, move || {
            fs.create_file("/after", 0o644).unwrap().write_at(&[1; 9000], 0).unwrap();
            fs.remove_file("/after").unwrap();
            fs.rename("/old/large", "/old/l", RenameMode::Replace).unwrap();
            fs.rename("/old/l", "/old/large", RenameMode::Replace).unwrap();
            fs.checkpoint().unwrap();
            assert_eq!(tree(&fs), expected);
        });
        run.checkpointed();
        run.pending = None;
    }
    let last = tree(&fs);
    drop(fs);
    // A process that starts anew.
    let after = Arc::new(inner.snapshot());
    assert_consistent(&*after);
    if fsck {
        f2fs_oracle::assert_accepted(saved(&after).path());
    }
    let [good, there] = [&run.good, &*after].map(|image| {
        let checkpoint = OpenOptions::new().recovery(false).read_only(true);
        FileSystem::open(Arc::new(image.snapshot()), Options::new().volume(checkpoint)).unwrap()
    });
    let version = |fs: &FileSystem| fs.volume().last_checkpoint().version;
    let mut expected = if version(&there) == version(&good) {
        let mut expected = tree(&good);
        expected.append(&mut run.synced);
        expected
    } else {
        // The panic came when a checkpoint was durable already: what was freed is discarded then.
        assert_eq!(version(&there), version(&good) + 1);
        last
    };
    let now = FileSystem::open(after.clone(), Options::new()).unwrap();
    let mut found = tree(&now);
    if let Some((path, file)) = run.pending
        && found.get(&path) == Some(&file)
    {
        // The panic came when it was durable already.
        expected.insert(path, file);
    }
    // Directories have no content; that of their links does not matter here.
    for tree in [&mut found, &mut expected] {
        tree.retain(|_, file| !file.starts_with("0 bytes"));
    }
    assert_eq!(found, expected, "after {}", text(&*panic));
    now.create_file("/goes on", 0o644).unwrap().write_at(&[7; 9000], 0).unwrap();
    now.close().unwrap();
    assert_consistent(&*after);
    (operations, Some(stopped.is_some()))
}

fn sweep(operations: &[Operation], wanted: usize) {
    let base = prepared();
    let on = || FaultRule::on(operations.iter().copied());
    let (total, _) = run(&base, on().after(u64::MAX), true);
    let step = (total as usize / (wanted * scale("F2FS_STRESS")).max(1)).max(1);
    let (mut panics, mut stops) = (0, 0);
    for (index, n) in (0..total).step_by(step).enumerate() {
        let (_, stopped) = run(&base, on().after(n).fault(Fault::Panic), index % 10 == 0);
        panics += u64::from(stopped.is_some());
        stops += u64::from(stopped == Some(true));
        if stopped.is_none() {
            break; // there are no more operations of this kind
        }
    }
    println!("{operations:?}: {panics} panics, {stops} of them stop, every {step} of {total} operations");
    assert!(stops > 0);
}

#[test]
fn a_write_panics() {
    sweep(&[Operation::Write], 60);
}

#[test]
fn a_durable_write_a_flush_or_a_discard_panics() {
    // There are few of them: none is left out.
    sweep(&[Operation::WriteFua, Operation::Flush, Operation::Discard], 100_000);
}

#[test]
fn a_read_panics() {
    sweep(&[Operation::Read], 60);
}

#[test]
fn a_device_that_panics_for_good_ends_no_process() {
    let inner = Arc::new(prepared());
    let fs = FileSystem::open(inner.clone(), Options::new()).unwrap();
    fs.open_file("/old/large").unwrap().write_at(b"far behind, in a node of its own", 8 << 20).unwrap();
    let expected = tree(&fs);
    fs.close().unwrap();
    drop(fs);
    let faulty = Arc::new(FaultDevice::new(inner.clone()));
    let fs = FileSystem::open(faulty.clone(), options()).unwrap();
    // Its blocks are freed when the last handle goes: while the thread unwinds. The node has to be read for that.
    let held = fs.open_file("/old/large").unwrap();
    fs.remove_file("/old/large").unwrap();
    faulty.arm(FaultRule::on_all().for_good().fault(Fault::Panic));
    let panic = catch_unwind(AssertUnwindSafe(move || {
        let _held = held;
        panic!("of something else");
    }));
    assert_eq!(text(&*panic.unwrap_err()), "of something else");
    assert!(faulty.faults() > 0);
    assert_eq!(fs.volume().stopped(), Some(&StopCause::Panic));
    drop(fs);
    assert_eq!(tree(&FileSystem::open(inner, Options::new()).unwrap()), expected);
}

#[test]
fn threads_that_sync_get_an_answer() {
    for fault in [Operation::Flush, Operation::Write] {
        for after in [0, 3, 20] {
            let inner = formatted(64, &FormatOptions::default());
            let faulty = Arc::new(FaultDevice::new(inner.clone()));
            let fs = FileSystem::open(faulty.clone(), Options::new()).unwrap();
            fs.create_dir("/d", 0o755).unwrap();
            fs.checkpoint().unwrap();
            faulty.arm(FaultRule::on([fault]).after(after).fault(Fault::Panic));
            let start = Arc::new(Barrier::new(8));
            let threads: Vec<_> = (0..8u64)
                .map(|thread| {
                    let (fs, start) = (fs.clone(), start.clone());
                    std::thread::spawn(move || {
                        start.wait();
                        let mut synced = Vec::new();
                        for round in 0..50u64 {
                            let path = format!("/d/{thread}-{round}");
                            let content = bytes(5000, thread * 100 + round);
                            let written = catch_unwind(AssertUnwindSafe(|| {
                                let file = fs.create_file(&path, 0o644)?;
                                file.write_at(&content, 0)?;
                                file.sync_all()
                            }));
                            match written {
                                Ok(Ok(())) => synced.push((path, content)),
                                Ok(Err(FsError::Volume(VolumeError::Stopped { .. }))) => return (synced, false),
                                // The flush of others panicked: the device says so to those who come later.
                                Ok(Err(FsError::Volume(VolumeError::Device(_)))) => return (synced, false),
                                Ok(Err(error)) => panic!("{error}"),
                                Err(panic) => {
                                    assert!(text(&*panic).contains("the device panics"));
                                    return (synced, true);
                                }
                            }
                        }
                        (synced, false)
                    })
                })
                .collect();
            let all: Vec<_> = within(LIMIT, move || threads.into_iter().map(|thread| thread.join().unwrap()).collect());
            assert_eq!(all.iter().filter(|(_, panicked)| *panicked).count(), 1, "{fault} after {after}");
            assert_eq!(fs.volume().stopped(), Some(&StopCause::Panic));
            drop(fs);
            let fs = FileSystem::open(inner, Options::new()).unwrap();
            for (path, content) in all.iter().flat_map(|(synced, _)| synced) {
                let mut found = vec![0; content.len()];
                fs.open_file(path).unwrap().read_at(&mut found, 0).unwrap();
                assert!(found == *content, "{path} was synced");
            }
        }
    }
}

#[test]
fn the_leader_of_a_sync_stops_the_volume_before_its_operation_ends() {
    // The next group begins when this one is over: while the operation that led it may still be there.
    let faulty = Arc::new(FaultDevice::new(formatted(64, &FormatOptions::default())));
    let fs = FileSystem::open(faulty.clone(), Options::new()).unwrap();
    let ino = fs.create_file("/f", 0o644).unwrap().ino();
    fs.close().unwrap();
    drop(fs);
    let volume = Volume::open(faulty.clone(), &OpenOptions::new()).unwrap();
    // The first sync after an opening is a checkpoint.
    volume.checkpoint(Reason::Sync).unwrap();
    let operation = volume.begin().unwrap();
    let inode = volume.node(ino).unwrap();
    inode.write(&operation).inode_mut().i_uid = 7.into();
    faulty.arm(FaultRule::on([Operation::Write]).fault(Fault::Panic));
    let panic = catch_unwind(AssertUnwindSafe(|| volume.sync_file(&operation, &inode))).unwrap_err();
    assert!(text(&*panic).contains("the device panics in a write"));
    assert_eq!(volume.stopped(), Some(&StopCause::Panic));
    drop(operation);
    assert!(matches!(volume.begin(), Err(VolumeError::Stopped { .. })));
}

#[test]
fn a_page_that_is_half_changed_is_read_only_on_a_stopped_volume() {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let nid = fs.create_file("/f", 0o644).unwrap().ino();
    fs.close().unwrap();
    drop(fs);
    let volume = Volume::open(device, &OpenOptions::new()).unwrap();
    let operation = volume.begin().unwrap();
    let node = volume.node(nid).unwrap();
    std::thread::scope(|scope| {
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let mut page = node.write(&operation);
            page.inode_mut().i_size = 12345.into();
            let (read, waits) = std::sync::mpsc::channel();
            scope.spawn({
                let (volume, node) = (&volume, &node);
                move || {
                    read.send(()).unwrap();
                    // It gets the page when the panic lets go of it, and not before the volume was stopped.
                    assert_eq!(node.read().inode().i_size.get(), 12345);
                    assert_eq!(volume.stopped(), Some(&StopCause::Panic));
                }
            });
            waits.recv().unwrap();
            panic!("half way");
        }));
        assert_eq!(text(&*panic.unwrap_err()), "half way");
        // By the page alone: the operation is still there.
        assert_eq!(volume.stopped(), Some(&StopCause::Panic));
    });
    drop(operation);
}

std::thread_local! {
    static CLOCK_PANICS: Cell<bool> = const { Cell::new(false) };
}

fn clock() -> Time {
    assert!(!CLOCK_PANICS.get(), "the clock panics");
    Time { seconds: 1_000_000_000, nanoseconds: 0 }
}

#[test]
fn a_clock_that_panics_stops_the_volume_and_no_other_thread() {
    type Change = fn(&FileSystem) -> Result<(), FsError>;
    let changes: [Change; 7] = [
        |fs| fs.create_file("/new", 0o644).map(drop),
        |fs| fs.open_file("/file")?.write_at(&[1; 9000], 0).map(drop),
        |fs| fs.open_file("/file")?.write_durable(&[1; 9000], 0).map(drop),
        |fs| fs.open_file("/file")?.set_len(10),
        |fs| fs.rename("/file", "/dir/moved", RenameMode::Replace),
        |fs| fs.remove_file("/file"),
        |fs| fs.set_xattr("/file", "user.a", b"x", SetMode::Any),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let device = formatted(64, &FormatOptions::default());
        let fs = FileSystem::open(device.clone(), Options::new().clock(clock)).unwrap();
        fs.create_dir("/dir", 0o755).unwrap();
        fs.create_file("/file", 0o644).unwrap().write_at(&[7; 20_000], 0).unwrap();
        fs.checkpoint().unwrap();
        let start = Arc::new(Barrier::new(4));
        let others: Vec<_> = (0..3)
            .map(|thread| {
                let (fs, start) = (fs.clone(), start.clone());
                std::thread::spawn(move || {
                    start.wait();
                    for round in 0.. {
                        let result = fs.create_file(format!("/dir/{thread}-{round}"), 0o644).and_then(|file| {
                            file.write_at(b"x", 0)?;
                            fs.open_file("/file")?.write_at(b"y", 5000 * (thread + 1))?;
                            if round % 8 == 0 { fs.checkpoint().map(drop) } else { file.sync_all() }
                        });
                        match result {
                            Err(FsError::Volume(VolumeError::Stopped { reason: StopCause::Panic })) => return,
                            // The change may have been made before the panic.
                            Ok(()) | Err(FsError::NotFound) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        start.wait();
        CLOCK_PANICS.set(true);
        let panicked = catch_unwind(AssertUnwindSafe(|| change(&fs)));
        CLOCK_PANICS.set(false);
        assert!(text(&*panicked.unwrap_err()).contains("the clock panics"), "{number}");
        within(LIMIT, move || others.into_iter().for_each(|thread| thread.join().unwrap()));
        assert_stopped(fs.create_file("/never", 0o644));
        assert!(!fs.exists("/never").unwrap());
        drop(fs);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        assert_eq!(fs.metadata("/file").unwrap().size, 20_000, "{number}");
        fs.close().unwrap();
        assert_consistent(&*device);
    }
}

#[test]
fn a_cleaner_that_panics_says_so() {
    let inner = formatted(128, &FormatOptions::default());
    let faulty = Arc::new(FaultDevice::new(inner.clone()));
    let fs = FileSystem::open(faulty.clone(), Options::new()).unwrap();
    for name in 0..20 {
        fs.create_file(format!("/{name}"), 0o644).unwrap().write_at(&bytes(1 << 20, name), 0).unwrap();
    }
    (0..20).step_by(2).for_each(|name| fs.remove_file(format!("/{name}")).unwrap());
    fs.checkpoint().unwrap();
    faulty.arm(FaultRule::on([Operation::Write]).fault(Fault::Panic));
    let cleaner = fs.start_cleaner(CleanerOptions::default());
    cleaner.urge();
    within(LIMIT, move || {
        while cleaner.failed().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(cleaner.failed().as_deref(), Some("the cleaner panicked"));
        cleaner.urge();
        drop(cleaner);
    });
    assert_stopped(fs.create_file("/never", 0o644));
    assert_stopped(fs.checkpoint());
    drop(fs);
    assert_consistent(&*inner);
    assert!(FileSystem::open(inner, Options::new()).unwrap().exists("/1").unwrap());
}

#[test]
fn an_operation_while_a_thread_unwinds_stops_nothing() {
    struct Last(FileSystem);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.create_file("/last words", 0o644).unwrap().write_at(b"x", 0).unwrap();
            self.0.checkpoint().unwrap();
        }
    }
    let fs = FileSystem::open(formatted(64, &FormatOptions::default()), Options::new()).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _last = Last(fs.clone());
        panic!("somewhere else");
    }));
    assert!(panicked.is_err());
    assert_eq!(fs.volume().stopped(), None);
    assert!(fs.exists("/last words").unwrap());
    fs.close().unwrap();
    assert_eq!(fs.volume().stopped(), Some(&StopCause::Closed));
}

#[test]
fn an_open_that_panics_lets_the_device_go() {
    let inner = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(inner.clone(), Options::new()).unwrap();
    let file = fs.create_file("/synced", 0o644).unwrap();
    fs.checkpoint().unwrap();
    file.write_at(b"text", 0).unwrap();
    file.sync_all().unwrap();
    drop((file, fs));
    for n in 0..u64::MAX {
        let image = Arc::new(inner.snapshot());
        let faulty = Arc::new(FaultDevice::new(image.clone()));
        faulty.arm(FaultRule::on_all().after(n).fault(Fault::Panic));
        let device: Arc<dyn BlockDevice> = faulty.clone();
        let opened = catch_unwind(AssertUnwindSafe(|| FileSystem::open(device, Options::new())));
        let whole = opened.is_ok();
        drop(opened);
        faulty.disarm();
        let fs = FileSystem::open(image.clone(), Options::new()).unwrap();
        let mut found = [0; 4];
        fs.open_file("/synced").unwrap().read_at(&mut found, 0).unwrap();
        assert_eq!(&found, b"text");
        fs.close().unwrap();
        assert_consistent(&*image);
        if whole {
            assert!(n > 20, "{n}");
            return;
        }
    }
}
