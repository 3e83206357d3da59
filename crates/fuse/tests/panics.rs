//! A device that panics below a mount. These tests need root and `/dev/fuse`; elsewhere they say that they were not
//! run.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use f2fs_device::{MemoryDevice, Operation};
use f2fs_device_test::{Fault, FaultDevice, FaultRule};
use f2fs_files::{FileSystem, Options};
use f2fs_fuse::{Mount, MountOptions};
use f2fs_volume::StopCause;

const EIO: Option<i32> = Some(5);
const EROFS: Option<i32> = Some(30);

/// A volume on a device that can panic, mounted on a directory, while `work` is done; then it is unmounted. `None`
/// where nobody may mount.
fn mounted<T>(test: &str, work: impl FnOnce(&Path, &FaultDevice) -> T) -> Option<(FileSystem, T)> {
    let device = Arc::new(FaultDevice::new(Arc::new(MemoryDevice::new(32 * 1024))));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut options = MountOptions::default();
    options.threads = 2;
    let mount = match Mount::new(&fs, dir.path(), options) {
        Ok(mount) => mount,
        Err(error) => {
            assert!(error.is_forbidden(), "{error}");
            eprintln!("NOT RUN: {test}: needs root, who may mount, and /dev/fuse: {error}");
            return None;
        }
    };
    let unmounter = mount.unmounter();
    let ((is_ready, ready), (ended, end)) = (channel(), channel());
    let server = thread::spawn(move || {
        let served = mount.serve_with(|| is_ready.send(()).map_err(std::io::Error::other));
        let _ = ended.send(());
        served
    });
    // Until then the server itself uses the mount.
    ready.recv_timeout(Duration::from_secs(60)).expect("the server becomes ready");
    let done = work(dir.path(), &device);
    device.disarm();
    unmounter.unmount().unwrap();
    end.recv_timeout(Duration::from_secs(60)).expect("the server ends with the mount");
    server.join().unwrap().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    Some((fs, done))
}

#[test]
fn a_panic_in_a_read_is_an_error_of_that_read() {
    let rounds = 10_u64;
    let done = mounted("a_panic_in_a_read_is_an_error_of_that_read", |dir, device| {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(dir.join("f")).unwrap();
        file.set_len(rounds << 22).unwrap();
        for at in 0..rounds {
            file.write_all_at(&[9; 4096], at << 22).unwrap();
        }
        // Dropped from the kernel's cache; more panics than there are threads.
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        for at in 0..rounds {
            device.arm(FaultRule::on([Operation::Read]).for_good().fault(Fault::Panic));
            let mut buffer = [0; 4096];
            let error = file.read_exact_at(&mut buffer, at << 22).unwrap_err();
            assert_eq!(error.raw_os_error(), EIO, "{at}");
            device.disarm();
            file.read_exact_at(&mut buffer, at << 22).unwrap();
            assert_eq!(buffer, [9; 4096]);
        }
        fs::write(dir.join("g"), b"goes on").unwrap();
    });
    let Some((fs, ())) = done else { return };
    assert_eq!(fs.volume().stopped(), None);
    fs.close().unwrap();
}

#[test]
fn a_panic_in_a_change_stops_the_volume_and_not_the_server() {
    let done = mounted("a_panic_in_a_change_stops_the_volume_and_not_the_server", |dir, device| {
        fs::write(dir.join("before"), vec![1; 8192]).unwrap();
        let file = File::create(dir.join("f")).unwrap();
        device.arm(FaultRule::on([Operation::Write]).for_good().fault(Fault::Panic));
        let error = file.write_all_at(&[2; 4096], 0).unwrap_err();
        assert_eq!(error.raw_os_error(), EIO);
        device.disarm();
        // Each change is refused from now on, more often than there are threads; what is there can be read.
        for n in 0..10 {
            let error = File::create(dir.join(format!("{n}"))).unwrap_err();
            assert!(matches!(error.raw_os_error(), EIO | EROFS), "{error}");
            let error = fs::rename(dir.join("before"), dir.join("after")).unwrap_err();
            assert!(matches!(error.raw_os_error(), EIO | EROFS), "{error}");
        }
        assert!(file.sync_all().is_err());
        assert_eq!(fs::read(dir.join("before")).unwrap(), vec![1; 8192]);
        assert_eq!(fs::metadata(dir.join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    });
    let Some((fs, ())) = done else { return };
    assert_eq!(fs.volume().stopped(), Some(&StopCause::Panic));
    assert!(fs.close().is_err());
}

#[test]
fn a_panic_in_a_sync_stops_the_volume_and_not_the_server() {
    let done = mounted("a_panic_in_a_sync_stops_the_volume_and_not_the_server", |dir, device| {
        fs::create_dir(dir.join("d")).unwrap();
        device.arm(FaultRule::on_changes().for_good().fault(Fault::Panic));
        let error = File::open(dir.join("d")).unwrap().sync_all().unwrap_err();
        assert_eq!(error.raw_os_error(), EIO);
        device.disarm();
        assert!(fs::create_dir(dir.join("e")).is_err());
        assert!(dir.join("d").is_dir());
    });
    let Some((fs, ())) = done else { return };
    assert_eq!(fs.volume().stopped(), Some(&StopCause::Panic));
    assert!(fs.close().is_err());
}
