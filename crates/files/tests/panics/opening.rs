//! Panics while a volume is opened, and while its last handle goes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use f2fs_device::BlockDevice;
use f2fs_device_test::{Fault, FaultDevice, FaultRule};
use f2fs_files::{FileSystem, Options};
use f2fs_volume::StopCause;
use f2fs_volume::format::FormatOptions;

use crate::judge::{options, text, tree};
use crate::work::prepared;
use f2fs_test_kit::volumes::{assert_consistent, formatted};

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
