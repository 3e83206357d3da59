//! The guards that stop the volume, one by one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use f2fs_device::Operation;
use f2fs_device_test::{Fault, FaultDevice, FaultRule};
use f2fs_files::{FileSystem, Options};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{Reason, StopCause, Volume, VolumeError, VolumeOptions};

use crate::judge::text;
use f2fs_test_kit::volumes::formatted;

#[test]
fn the_leader_of_a_sync_stops_the_volume_before_its_operation_ends() {
    // The next group begins when this one is over: while the operation that led it may still be there.
    let faulty = Arc::new(FaultDevice::new(formatted(64, &FormatOptions::default())));
    let fs = FileSystem::open(faulty.clone(), Options::new()).unwrap();
    let ino = fs.create_file("/f", 0o644).unwrap().ino();
    fs.close().unwrap();
    drop(fs);
    let volume = Volume::open(faulty.clone(), &VolumeOptions::new()).unwrap();
    // The first sync after an opening is a checkpoint.
    volume.checkpoints().write(Reason::Sync).unwrap();
    let operation = volume.begin().unwrap();
    let inode = volume.nodes().get(ino).unwrap();
    inode.write(&operation).inode_mut().i_uid = 7.into();
    faulty.arm(FaultRule::on([Operation::Write]).fault(Fault::Panic));
    let panic = catch_unwind(AssertUnwindSafe(|| volume.syncs().file(&operation, &inode))).unwrap_err();
    assert!(text(&*panic).contains("the device panics in a write"));
    assert_eq!(volume.stopped(), Some(&StopCause::Panic));
    drop(operation);
    assert!(matches!(volume.begin(), Err(VolumeError::Stopped { .. })));
}

#[test]
fn a_page_that_is_half_changed_is_read_only_on_a_stopped_volume() {
    // A page that is let go of too early is not read at once each time.
    (0..20).for_each(|_| half_changed());
}

fn half_changed() {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let nid = fs.create_file("/f", 0o644).unwrap().ino();
    fs.close().unwrap();
    drop(fs);
    let volume = Volume::open(device, &VolumeOptions::new()).unwrap();
    let operation = volume.begin().unwrap();
    let node = volume.nodes().get(nid).unwrap();
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
