//! Mounts that cannot be as they are asked for, and servers that fail. These tests need root and `/dev/fuse`; elsewhere
//! they say that they were not run.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use f2fs_device::MemoryDevice;
use f2fs_files::Options;

use super::*;

fn file_system() -> FileSystem {
    let device = Arc::new(MemoryDevice::new(32 * 1024));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    FileSystem::open(device, Options::new()).unwrap()
}

/// `None` where nobody may mount.
fn unless_forbidden<T>(test: &str, mounted: Result<T, MountError>) -> Option<T> {
    match mounted {
        Ok(mounted) => return Some(mounted),
        Err(error) => assert!(error.is_forbidden(), "{error}"),
    }
    eprintln!("NOT RUN: {test}: needs root, who may mount, and /dev/fuse");
    None
}

fn is_mounted(dir: &Path) -> bool {
    fs::read_to_string("/proc/mounts").unwrap().contains(dir.to_str().unwrap())
}

/// Serves a mount on another thread until `work` is done, which unmounts it.
fn served<T>(mount: Mount, work: impl FnOnce(Unmounter) -> T) -> (io::Result<()>, T) {
    let unmounter = mount.unmounter();
    let ((is_ready, ready), (ended, end)) = (channel(), channel());
    let server = thread::spawn(move || {
        let served = mount.serve_with(|| is_ready.send(()).map_err(io::Error::other));
        let _ = ended.send(());
        served
    });
    // Until then the server itself uses the mount.
    ready.recv_timeout(Duration::from_secs(60)).expect("the server becomes ready");
    let done = work(unmounter);
    end.recv_timeout(Duration::from_secs(60)).expect("the server ends with the mount");
    (server.join().unwrap(), done)
}

#[test]
fn what_is_no_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"kept").unwrap();
    match Mount::new(&file_system(), &file, MountOptions::default()) {
        Err(error) if error.is_forbidden() => {
            eprintln!("NOT RUN: what_is_no_directory_is_refused: needs root, who may mount, and /dev/fuse");
        }
        Err(MountError::Refused(error)) => assert_eq!(error.kind(), ErrorKind::NotADirectory),
        other => panic!("{other:?}"),
    }
    assert!(!is_mounted(&file));
    assert_eq!(fs::read(&file).unwrap(), b"kept");
}

/// The kernel says nothing of the root of such a mount.
#[test]
fn a_mount_whose_root_gives_errors_can_be_unmounted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().canonicalize().unwrap().join("file");
    fs::write(&file, b"kept").unwrap();
    let options = MountOptions::default();
    for lazily in [false, true] {
        let placed = Place::mount_on_anything(file.clone(), &options).map_err(MountError::Refused);
        let mount = placed.and_then(|placed| Mount::at(&file_system(), placed, options.clone()));
        let Some(mount) = unless_forbidden("a_mount_whose_root_gives_errors_can_be_unmounted", mount) else { return };
        let (_, result) = served(mount, |unmounter| {
            while fs::metadata(&file).is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
            if lazily { unmounter.detach() } else { unmounter.unmount() }
        });
        result.unwrap();
        assert!(!is_mounted(&file));
        assert_eq!(fs::read(&file).unwrap(), b"kept");
    }
}

#[test]
fn any_number_of_threads_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let options = MountOptions { threads: usize::MAX, ..MountOptions::default() };
    let mount = Mount::new(&file_system(), dir.path(), options);
    let Some(mount) = unless_forbidden("any_number_of_threads_is_taken", mount) else { return };
    let (served, ()) = served(mount, |unmounter| {
        fs::write(dir.path().join("file"), b"there").unwrap();
        unmounter.unmount().unwrap();
    });
    served.unwrap();
    assert!(!is_mounted(dir.path()));
}

/// Of mounts with many threads, one in twenty meets it: a file that was just closed is given back while it is unmounted.
#[test]
fn a_request_that_the_end_of_the_mount_cuts_off_is_no_error() {
    use rustix::io::Errno;
    unless_cut_off(Errno::CONNABORTED.into()).unwrap();
    for error in [Errno::IO, Errno::NODEV, Errno::CONNRESET] {
        assert_eq!(unless_cut_off(error.into()).unwrap_err().raw_os_error(), Some(error.raw_os_error()));
    }
}

/// A program uses what nobody serves any more: it is unmounted, and there is nothing left to do.
#[test]
fn what_is_not_served_any_more_is_unmounted() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&file_system(), dir.path(), MountOptions::default());
    let Some(mount) = unless_forbidden("what_is_not_served_any_more_is_unmounted", mount) else { return };
    let unmounter = mount.unmounter();
    let used = rustix::fs::open(dir.path(), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    drop(mount);
    assert!(!is_mounted(dir.path()));
    unmounter.unmount().unwrap();
    unmounter.detach().unwrap();
    unmounter.write_back(Duration::ZERO).unwrap();
    drop(used);
}

/// A mount that was taken off its directory while a program uses it.
#[test]
fn what_was_detached_is_busy_until_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&file_system(), dir.path(), MountOptions::default());
    let Some(mount) = unless_forbidden("what_was_detached_is_busy_until_it_ends", mount) else { return };
    let (served, unmounter) = served(mount, |unmounter| {
        let file = fs::File::create(dir.path().join("file")).unwrap();
        let busy = |result: io::Result<()>| assert_eq!(result.unwrap_err().raw_os_error(), Some(16));
        busy(unmounter.unmount());
        unmounter.detach().unwrap();
        busy(unmounter.unmount());
        unmounter.detach().unwrap();
        drop(file);
        unmounter
    });
    served.unwrap();
    unmounter.unmount().unwrap();
    unmounter.write_back(Duration::ZERO).unwrap();
}
