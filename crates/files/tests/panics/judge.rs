//! The state that a panic leaves.

use std::any::Any;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use f2fs_files::{FileKind, FileSystem, FsError, Options, Pace, RenameMode, path_from_bytes};
use f2fs_volume::{StopCause, VolumeError, VolumeOptions};

use f2fs_test_kit::volumes::within;

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn options() -> Options {
    // Hardly any cache: things are read again and again.
    let small = VolumeOptions::new().node_cache(NonZeroUsize::MIN);
    Options::new().volume(small).inode_cache(NonZeroUsize::MIN)
}

/// All paths, each with what it is.
pub(crate) fn tree(fs: &FileSystem) -> BTreeMap<Vec<u8>, String> {
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

pub(crate) fn file(content: &[u8], links: u32) -> String {
    let sum = content.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    format!("{} bytes, {links} links, {sum:x}", content.len())
}

pub(crate) fn text(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map_or_else(|| panic.downcast_ref::<&str>().unwrap(), String::as_str)
}

#[track_caller]
pub(crate) fn assert_stopped<T>(result: Result<T, FsError>) {
    match result.err() {
        Some(FsError::Volume(VolumeError::Stopped { reason: StopCause::Panic })) => {}
        other => panic!("instead of saying that it was stopped by a panic: {other:?}"),
    }
}

/// All that changes is refused, from another thread too, and what is read is there: nothing is left locked.
pub(crate) fn assert_all_refused(fs: &FileSystem) {
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
