//! A volume that is filled up, and the errors that say so.

use std::sync::Arc;
use std::time::Duration;

use f2fs_device::MemoryDevice;
use f2fs_files::{FileSystem, FsError, Options};
use f2fs_volume::VolumeError;

use f2fs_device_test::bytes;
use f2fs_test_kit::volumes::{assert_clean, scale};

pub(crate) const LIMIT: Duration = Duration::from_secs(240);

pub(crate) fn open(device: &Arc<MemoryDevice>) -> FileSystem {
    FileSystem::open(device.clone(), Options::new()).unwrap()
}

/// The numbers in an error that says that space is missing. The request did not fit.
#[track_caller]
pub(crate) fn numbers(error: &FsError) -> (u64, u64) {
    assert!(error.is_no_space(), "{error}");
    let FsError::NoSpace(cause) = error else { panic!("not an error that a user can act on: {error}") };
    match &**cause {
        VolumeError::NoSpace { wanted, available } => {
            assert!(wanted > available, "{error}");
            assert!(error.to_string().contains(&format!("{wanted} blocks wanted, {available} left")), "{error}");
            (*wanted, *available)
        }
        VolumeError::NoNids { used, limit } => {
            assert!(used <= limit, "{error}");
            (1, 0)
        }
        other => panic!("not an error that a user can act on: {other}"),
    }
}

pub(crate) fn rounds() -> usize {
    2 * scale("F2FS_ROUNDS")
}

pub(crate) fn content(name: u64, len: usize) -> Vec<u8> {
    bytes(len, name ^ 0x5eed)
}

pub(crate) fn assert_content(fs: &FileSystem, path: &str, wanted: &[u8]) {
    let mut read = vec![0; wanted.len() + 1];
    let len = fs.open_file(path).unwrap().read_at(&mut read, 0).unwrap();
    assert!(read[..len] == *wanted, "{path}: {len} bytes, {} wanted", wanted.len());
}

/// Creates files in a new directory until nothing fits any more. Returns the sizes that they have, with the error.
pub(crate) fn fill(fs: &FileSystem, dir: &str, len: impl Fn(u64) -> usize) -> (Vec<usize>, FsError) {
    fs.create_dir(dir, 0o755).unwrap();
    fill_directory(fs, dir, len)
}

/// The same in a directory that is there.
pub(crate) fn fill_directory(fs: &FileSystem, dir: &str, len: impl Fn(u64) -> usize) -> (Vec<usize>, FsError) {
    let mut sizes = Vec::new();
    for name in 0.. {
        let file = match fs.create_file(format!("{dir}/{name}"), 0o644) {
            Ok(file) => file,
            Err(error) => return (sizes, error),
        };
        let wanted = content(name, len(name));
        let mut written = 0;
        while written < wanted.len() {
            match file.write_at(&wanted[written..], written as u64) {
                Ok(more) => written += more,
                Err(error) => {
                    assert_eq!(file.size(), written as u64);
                    sizes.push(written);
                    return (sizes, error);
                }
            }
        }
        assert_eq!(file.size(), written as u64);
        sizes.push(written);
    }
    unreachable!("a volume has an end")
}

pub(crate) fn check_round(
    fs: &FileSystem,
    device: &Arc<MemoryDevice>,
    dir: &str,
    sizes: &[usize],
    lens: impl Fn(u64) -> usize,
) {
    for (name, size) in sizes.iter().enumerate() {
        let wanted = content(name as u64, lens(name as u64));
        assert_content(fs, &format!("{dir}/{name}"), &wanted[..*size]);
    }
    fs.checkpoint().unwrap();
    assert_clean(device);
}
