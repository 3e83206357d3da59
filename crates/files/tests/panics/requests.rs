//! One request of a workload panics.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use f2fs_device::{MemoryDevice, Operation};
use f2fs_device_test::{Fault, FaultDevice, FaultRule};
use f2fs_files::{FileSystem, Options, RenameMode};
use f2fs_volume::{StopCause, VolumeOptions};

use crate::judge::{LIMIT, assert_all_refused, options, text, tree};
use crate::work::{Run, prepared};
use f2fs_test_kit::volumes::{TempPathExt, assert_consistent, saved, scale, within};

/// Panics in one operation of the workload and judges what is left. Tells how many operations there were, and what
/// stopped.
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
    // A process that starts again.
    let after = Arc::new(inner.snapshot());
    assert_consistent(&*after);
    if fsck {
        f2fs_oracle::assert_accepted(saved(&after).path());
    }
    let [good, there] = [&run.good, &*after].map(|image| {
        let checkpoint = VolumeOptions::new().recovery(false).read_only(true);
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
