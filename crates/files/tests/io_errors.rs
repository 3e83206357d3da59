//! A device that fails at its n-th operation, for every n of a mixed workload: each operation gives a typed error or
//! succeeds, and the healthy device below holds the last good checkpoint, whole.
//!
//! `F2FS_STRESS=1000` tries every single operation; usually a part of them is tried.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::num::NonZeroUsize;
use std::sync::Arc;

use f2fs_device::{DeviceErrorKind, MemoryDevice, Operation};
use f2fs_device_test::bytes;
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_files::{
    AllocateFlags, FileKind, FileSystem, FsError, NewFile, Options, RenameMode, SetMode, path_from_bytes,
};
use f2fs_test_kit::volumes::{TempPathExt, assert_clean, assert_consistent, formatted, saved, scale};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{VolumeError, VolumeOptions};

fn options() -> Options {
    // Hardly any cache: things are read again and again.
    let small = VolumeOptions::new().node_cache(NonZeroUsize::MIN);
    Options::new().volume(small).inode_cache(NonZeroUsize::MIN)
}

/// A whole tree: paths with kind, size, links, attributes and content.
fn tree(fs: &FileSystem) -> Vec<(Vec<u8>, String)> {
    let mut all = Vec::new();
    let mut pending = vec![b"/".to_vec()];
    while let Some(path) = pending.pop() {
        let at = path_from_bytes(&path);
        let stat = fs.symlink_metadata(at).unwrap();
        let mut content = Vec::new();
        match stat.kind {
            FileKind::Directory => {
                for entry in fs.read_dir(at).unwrap().map(Result::unwrap) {
                    let slash: &[u8] = if path == b"/" { b"" } else { b"/" };
                    pending.push([&path[..], slash, &entry.name].concat());
                }
            }
            FileKind::Regular => {
                content = vec![0; stat.size as usize];
                assert_eq!(fs.open_file(at).unwrap().read_at(&mut content, 0).unwrap(), content.len());
            }
            FileKind::Symlink => content = fs.read_link(at).unwrap(),
            _ => {}
        }
        let sum = content.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        let size = if stat.kind == FileKind::Directory { 0 } else { stat.size };
        let text = format!("{:?} {size} {} {:?} {sum:x}", stat.kind, stat.links, fs.xattrs(at).unwrap());
        all.push((path, text));
    }
    all.sort();
    all
}

/// Tells what may come from a failing device apart from what may not.
#[track_caller]
fn tolerate<T>(result: Result<T, FsError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(FsError::Volume(
            VolumeError::Device(_) | VolumeError::Stopped { .. } | VolumeError::Nat(_) | VolumeError::Segment(_),
        )) => None,
        // An earlier failure left something undone.
        Err(FsError::NotFound | FsError::Exists | FsError::NoAttribute | FsError::NotEmpty) => None,
        Err(error) => panic!("{error}"),
    }
}

struct Run {
    faulty: Arc<FaultDevice>,
    inner: Arc<MemoryDevice>,
    /// The device as it was when the last checkpoint had succeeded.
    good: MemoryDevice,
}

impl Run {
    fn checkpoint(&mut self, fs: &FileSystem, close: bool) {
        let result = if close { fs.close() } else { fs.checkpoint().map(|_| ()) };
        match result {
            Ok(()) => self.good = self.inner.snapshot(),
            Err(_) => {
                if let Some(reason) = fs.volume().stopped() {
                    assert!(!reason.to_string().is_empty());
                    match fs.create_file("/never", 0o644).unwrap_err() {
                        FsError::Volume(VolumeError::Stopped { reason: said }) => assert_eq!(said, *reason),
                        // The path could not be read, which comes first.
                        FsError::Volume(VolumeError::Device(_)) => {}
                        other => panic!("{other}"),
                    }
                    assert!(fs.checkpoint().is_err());
                }
            }
        }
    }

    fn open(&self) -> Option<FileSystem> {
        match FileSystem::open(self.faulty.clone(), options()) {
            Ok(fs) => Some(fs),
            Err(FsError::Volume(VolumeError::Device(_) | VolumeError::Nat(_) | VolumeError::Segment(_))) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The workload. It goes on after errors.
    fn work(&mut self) {
        let Some(fs) = self.open() else { return };
        let link = NewFile::new(FileKind::Symlink, 0o777);
        for round in 0..2 {
            let dir = format!("/dir-{round}");
            tolerate(fs.create_dir(&dir, 0o755));
            for name in 0..8 {
                if let Some(file) = tolerate(fs.create_file(format!("{dir}/file-{name}"), 0o644)) {
                    tolerate(file.write_at(&bytes(1 + name as usize * 1500, name), name * 1000));
                }
            }
            tolerate(fs.create_dir(format!("{dir}/below"), 0o755));
            tolerate(fs.symlink(&[b'x'; 4000], format!("{dir}/link"), &link));
            tolerate(fs.set_xattr(format!("{dir}/file-1"), "user.large", &[3; 2500], SetMode::Any));
            self.checkpoint(&fs, false);
            tolerate(fs.rename(format!("{dir}/file-2"), format!("{dir}/below/moved"), RenameMode::Replace));
            tolerate(fs.rename(format!("{dir}/file-3"), format!("{dir}/file-4"), RenameMode::Replace));
            tolerate(fs.rename("/old/deep", format!("{dir}/deep"), RenameMode::Replace));
            tolerate(fs.rename(format!("{dir}/below"), "/old/other", RenameMode::Exchange));
            tolerate(fs.link(format!("{dir}/file-5"), format!("/old/hard-{round}")));
            tolerate(fs.remove_file(format!("/old/names/{round}")));
            tolerate(fs.create_file(format!("/old/names/new-{round}"), 0o600).map(drop));
            if let Some(file) = tolerate(fs.open_file("/old/large")) {
                tolerate(file.write_at(&bytes(50_000, round), 5_000_000 + round * 70_000));
                tolerate(file.set_len(4_500_000 - round * 1_000_000));
                tolerate(file.allocate(6_000_000, 100_000, AllocateFlags::KEEP_SIZE));
                tolerate(file.read_at(&mut vec![0; 100_000], 4_000_000));
            }
            tolerate(fs.remove_file(format!("{dir}/file-1")));
            tolerate(fs.remove_xattr("/old/names", "user.note"));
            tolerate(fs.remove_all(format!("/old/tree-{round}")));
            tolerate(fs.read_dir("/old/names").and_then(Iterator::collect::<Result<Vec<_>, _>>));
            self.checkpoint(&fs, false);
        }
        self.checkpoint(&fs, true);
        drop(fs);
        let Some(fs) = self.open() else { return };
        tolerate(fs.remove_file("/old/large"));
        tolerate(fs.remove_all("/dir-1"));
        self.checkpoint(&fs, true);
    }
}

/// The volume before the workload: everything that it removes, changes or reads.
fn prepared() -> MemoryDevice {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    for path in ["/old", "/old/names", "/old/deep", "/old/deep/deeper", "/old/other", "/old/tree-0", "/old/tree-1"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    for name in 0..300 {
        fs.create_file(format!("/old/names/{name}"), 0o644).unwrap();
    }
    for round in 0..2 {
        for name in 0..5 {
            fs.create_dir(format!("/old/tree-{round}/{name}"), 0o755).unwrap();
            fs.create_file(format!("/old/tree-{round}/{name}/file"), 0o644).unwrap().write_at(&[5; 9000], 0).unwrap();
        }
    }
    fs.create_file("/old/large", 0o644).unwrap().write_at(&bytes(5 << 20, 1), 0).unwrap();
    fs.set_xattr("/old/names", "user.note", b"text", SetMode::Any).unwrap();
    fs.close().unwrap();
    device.snapshot()
}

/// Runs the workload with a rule and judges what is left.
fn run(base: &MemoryDevice, rule: Option<FaultRule>, fsck: bool) -> (u64, u64) {
    let inner = Arc::new(base.snapshot());
    let faulty = Arc::new(FaultDevice::new(inner.clone()));
    let mut run = Run { faulty: faulty.clone(), inner: inner.clone(), good: base.snapshot() };
    if let Some(rule) = rule {
        faulty.arm(rule);
    }
    run.work();
    // A device that works again, and a process that starts again.
    let after = Arc::new(inner.snapshot());
    assert_consistent(&*after);
    if fsck {
        f2fs_oracle::assert_accepted(saved(&after).path());
    }
    let now = FileSystem::open(after, Options::new()).unwrap();
    let good = FileSystem::open(Arc::new(run.good.snapshot()), Options::new()).unwrap();
    assert_eq!(now.volume().last_checkpoint().version, good.volume().last_checkpoint().version);
    assert_eq!(tree(&now), tree(&good));
    (faulty.operations(), faulty.faults())
}

fn sweep(operations: impl Fn(u64) -> FaultRule, wanted: usize) {
    let base = prepared();
    let (total, _) = run(&base, None, true);
    let step = (total as usize / (wanted * scale("F2FS_STRESS")).max(1)).max(1);
    let mut failed = 0;
    for (index, n) in (0..total).step_by(step).enumerate() {
        let (_, faults) = run(&base, Some(operations(n)), index % 10 == 0);
        failed += u64::from(faults > 0);
    }
    println!("{failed} runs with failures, every {step} of {total} operations");
    assert!(failed > 0);
}

#[test]
fn any_operation_fails_once() {
    sweep(|n| FaultRule::on_all().after(n), 30);
}

#[test]
fn reads_fail_once() {
    sweep(|n| FaultRule::on([Operation::Read]).after(n), 30);
}

#[test]
fn everything_fails_from_some_point_on() {
    sweep(|n| FaultRule::on_all().after(n).for_good(), 20);
}

#[test]
fn writes_and_flushes_fail_from_some_point_on() {
    sweep(|n| FaultRule::on_changes().after(n).for_good(), 20);
}

/// A checkpoint that fails stops the volume; its error says which operation of the device it was.
#[test]
fn a_checkpoint_that_fails_stops_the_volume() {
    // The first write of this checkpoint is the root's dentry block, the second one a node.
    for (operation, after) in
        [(Operation::Write, 1), (Operation::Flush, 0), (Operation::Flush, 1), (Operation::WriteFua, 0)]
    {
        let inner = Arc::new(prepared());
        let faulty = Arc::new(FaultDevice::new(inner.clone()));
        let fs = FileSystem::open(faulty.clone(), Options::new()).unwrap();
        let version = fs.volume().last_checkpoint().version;
        fs.create_file("/lost", 0o644).unwrap();
        faulty.arm(FaultRule::on([operation]).after(after));
        match fs.checkpoint().unwrap_err() {
            FsError::Volume(VolumeError::Device(error)) => {
                assert_eq!((error.operation, &error.kind), (operation, &DeviceErrorKind::from_errno(5)));
            }
            other => panic!("{other}"),
        }
        for (index, result) in [
            fs.create_file("/x", 0o644).map(|_| ()),
            fs.remove_file("/lost"),
            fs.checkpoint().map(|_| ()),
            fs.close(),
            fs.open_file("/old/large").unwrap().write_at(b"x", 0).map(|_| ()),
        ]
        .into_iter()
        .enumerate()
        {
            match result.expect_err(&format!("change {index} after a failed {operation}")) {
                FsError::Volume(VolumeError::Stopped { reason }) => {
                    assert!(reason.to_string().contains("os error 5"), "{reason}");
                }
                other => panic!("{other}"),
            }
        }
        assert!(fs.exists("/lost").unwrap(), "what is in memory can still be read");
        drop(fs);
        let fs = FileSystem::open(inner.clone(), Options::new()).unwrap();
        assert_eq!(fs.volume().last_checkpoint().version, version);
        assert!(!fs.exists("/lost").unwrap());
        fs.close().unwrap();
        assert_clean(&inner);
    }
}

/// As long as only dentry blocks were written nothing is lost: the checkpoint can be tried again.
#[test]
fn a_checkpoint_that_fails_early_can_be_tried_again() {
    let inner = Arc::new(prepared());
    let faulty = Arc::new(FaultDevice::new(inner.clone()));
    let fs = FileSystem::open(faulty.clone(), Options::new()).unwrap();
    fs.create_file("/kept", 0o644).unwrap();
    faulty.arm(FaultRule::on([Operation::Write]));
    assert!(matches!(fs.checkpoint().unwrap_err(), FsError::Volume(VolumeError::Device(_))));
    assert_eq!(fs.volume().stopped(), None);
    fs.create_file("/another", 0o644).unwrap();
    fs.close().unwrap();
    assert_clean(&inner);
    let fs = FileSystem::open(inner, Options::new()).unwrap();
    assert!(fs.exists("/kept").unwrap() && fs.exists("/another").unwrap());
}

/// Blocks of the files below: each lies in a direct node of its own.
const SPREAD: u64 = 20;
const STRIDE: u64 = 5 << 20;

/// Writes a file with a block every 5 MiB.
fn spread(fs: &FileSystem, path: &str) {
    let file = fs.create_file(path, 0o644).unwrap();
    for number in 0..SPREAD {
        file.write_at(&[7; 4096], number * STRIDE).unwrap();
    }
}

/// Calls `with` with a file system on a copy of `base` of which one read fails, the next one, the one after it, and so
/// on, until none fails any more. Returns how many did.
fn each_read_fails(
    base: &MemoryDevice,
    options: &Options,
    mut with: impl FnMut(u64, &FaultDevice, &FileSystem),
) -> u64 {
    for n in 0.. {
        let inner = Arc::new(base.snapshot());
        let faulty = Arc::new(FaultDevice::new(inner.clone()));
        let fs = FileSystem::open(faulty.clone(), options.clone()).unwrap();
        with(n, &faulty, &fs);
        let failed = faulty.faults() > 0;
        faulty.disarm();
        fs.close().unwrap();
        drop(fs);
        assert_clean(&inner);
        let fs = FileSystem::open(inner.clone(), Options::new()).unwrap();
        assert!(fs.volume().orphans().is_empty(), "read {n}");
        fs.close().unwrap();
        assert_consistent(&*inner);
        if !failed {
            return n;
        }
    }
    unreachable!("a read has a number");
}

/// What a cut did not reach for an error is there, and what it cut off does not come back.
#[test]
fn a_cut_that_fails_leaves_the_size_that_the_blocks_have() {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    spread(&fs, "/a");
    fs.close().unwrap();
    let cached = options().page_cache(1 << 20);
    for (options, grows) in [(options(), true), (options(), false), (cached.clone(), true), (cached, false)] {
        let failed = each_read_fails(&device, &options, |n, faulty, fs| {
            let file = fs.open_file("/a").unwrap();
            // Dirty pages, if there is a cache: one over a block, and one over a hole.
            for block in [SPREAD - 2, SPREAD - 1] {
                file.write_at(&[7; 4096], block * STRIDE + (block % 2) * 8192).unwrap();
            }
            let old = file.size();
            faulty.arm(FaultRule::on([Operation::Read]).after(n));
            let size = match file.set_len(1000) {
                Ok(()) => 1000,
                Err(error) => {
                    assert!(error.device().is_some(), "{error}");
                    file.size()
                }
            };
            faulty.disarm();
            assert_eq!(size, file.size());
            assert!(size == 1000 || faulty.faults() > 0);
            if grows {
                file.set_len(old).unwrap();
            }
            for number in 0..SPREAD {
                let at = number * STRIDE;
                let mut found = vec![0xff; 4096];
                let len = file.read_at(&mut found, at).unwrap();
                let (left, end) = (size.saturating_sub(at).min(4096), file.size().saturating_sub(at).min(4096));
                assert_eq!(len as u64, end, "read {n}, block {number}");
                let wanted = |index: u64| if index < left { 7 } else { 0 };
                assert!((0..end).all(|index| found[index as usize] == wanted(index)), "read {n}, block {number}");
            }
        });
        assert!(failed >= 10, "{failed}");
    }
}

/// The name is gone: that its blocks could not be freed yet is no error of who removed it.
#[test]
fn a_name_that_went_is_no_error() {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    spread(&fs, "/a");
    fs.create_file("/b", 0o644).unwrap();
    fs.create_dir("/d", 0o755).unwrap();
    for name in 0..200 {
        fs.create_file(format!("/d/{name:0200}"), 0o644).unwrap();
    }
    for name in 0..200 {
        fs.remove_file(format!("/d/{name:0200}")).unwrap();
    }
    fs.create_dir("/e", 0o755).unwrap();
    fs.close().unwrap();
    type Change = fn(&FileSystem) -> Result<(), FsError>;
    let changes: [(&str, Change, bool); 4] = [
        ("/a", |fs| fs.remove_file("/a"), false),
        ("/b", |fs| fs.rename("/b", "/a", RenameMode::Replace), false),
        ("/d", |fs| fs.remove_dir("/d"), true),
        ("/e", |fs| fs.rename("/e", "/d", RenameMode::Replace), true),
    ];
    for (gone, change, directory) in changes {
        let mut orphans = 0;
        each_read_fails(&device, &options(), |n, faulty, fs| {
            faulty.arm(FaultRule::on([Operation::Read]).after(n));
            let result = change(fs);
            faulty.disarm();
            assert_eq!(result.is_ok(), !fs.exists(gone).unwrap(), "{gone}, read {n}: {result:?}");
            let listed = fs.volume().orphans().len();
            assert!(listed == 0 || result.is_ok(), "{gone}, read {n}: {result:?}");
            orphans += listed;
            fs.checkpoint().unwrap();
        });
        // All of a directory was read before, to see that it is empty.
        assert!(orphans > 0 || directory, "{gone}");
    }
}
