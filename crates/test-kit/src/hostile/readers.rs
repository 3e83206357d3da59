//! Readers.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use f2fs_check::{CheckOptions, check};
use f2fs_device::BlockDevice;
use f2fs_files::{FileKind, FileSystem, Metadata, Options, path_from_bytes};

/// Paths looked at in one volume at most.
const PATHS: usize = 400;
/// Bytes read of one file at most, from either end.
const BYTES: usize = 1 << 20;

/// Hands out what can be reached from the root, 400 paths at most, and a file that has several names once.
pub fn each_path(fs: &FileSystem, mut look: impl FnMut(&Path, &Metadata)) {
    let mut pending = vec![b"/".to_vec()];
    let mut seen = HashSet::new();
    for _ in 0..PATHS {
        let Some(path) = pending.pop() else { return };
        let at = path_from_bytes(&path);
        let Ok(stat) = fs.symlink_metadata(at) else { continue };
        if stat.kind != FileKind::Directory && !seen.insert(stat.ino) {
            continue;
        }
        look(at, &stat);
        if stat.kind == FileKind::Directory {
            let Ok(dir) = fs.open_dir(at) else { continue };
            for entry in dir.read(0, 300).unwrap_or_default() {
                if entry.name != b"." && entry.name != b".." {
                    let slash: &[u8] = if path == b"/" { b"" } else { b"/" };
                    pending.push([&path[..], slash, &entry.name].concat());
                }
            }
        }
    }
}

/// Looks at everything that can be reached, within bounds.
pub fn walk(fs: &FileSystem) {
    let mut buffer = vec![0; 20_000];
    each_path(fs, |at, stat| {
        let _ = fs.xattrs(at);
        match stat.kind {
            FileKind::Symlink => drop((fs.read_link(at), fs.metadata(at))),
            FileKind::Regular => {
                let Ok(file) = fs.open_file(at) else { return };
                for offset in [0, 3_990_000, stat.size.saturating_sub(10_000)] {
                    let _ = file.read_at(&mut buffer, offset);
                }
            }
            _ => {}
        }
    });
}

/// Opens for reading, and reads all that can be read, within bounds. A second reading shows the same.
pub fn read_everything<D: BlockDevice>(device: &Arc<D>) {
    let Ok(fs) = FileSystem::open(device.clone(), Options::new().read_only(true)) else { return };
    let mut left = 16 * BYTES as u64;
    let mut buffer = vec![0; 64 << 10];
    let mut again = buffer.clone();
    each_path(&fs, |at, stat| {
        for (name, value) in fs.xattrs(at).unwrap_or_default() {
            // One that is listed is there.
            assert_eq!(fs.xattr(at, &name).ok(), Some(value));
        }
        if let Ok(target) = fs.read_link(at) {
            assert_eq!(fs.read_link(at).ok(), Some(target));
        }
        if stat.kind == FileKind::Directory
            && let Ok(entries) = fs.read_dir(at).and_then(Iterator::collect::<Result<Vec<_>, _>>)
        {
            assert_eq!(
                fs.read_dir(at).and_then(Iterator::collect::<Result<Vec<_>, _>>).ok().map(|again| again.len()),
                Some(entries.len())
            );
        }
        let Ok(file) = fs.open_file(at) else { return };
        let (end, bytes) = (stat.size, BYTES as u64);
        let pieces = (0..bytes).step_by(buffer.len()).chain((end.saturating_sub(bytes)..end).step_by(buffer.len()));
        for offset in pieces {
            if offset >= end || left == 0 {
                break;
            }
            let [one, two] = [&mut buffer, &mut again].map(|buffer| file.read_at(buffer, offset));
            match (one, two) {
                (Ok(one), Ok(two)) => {
                    assert!(buffer[..one] == again[..two], "two readings differ at {offset}");
                    left = left.saturating_sub(one as u64);
                }
                (one, two) => assert_eq!(one.is_ok(), two.is_ok(), "at {offset}"),
            }
        }
    });
}

/// Opens for reading, walks, and checks.
pub fn open_and_check<D: BlockDevice>(device: &Arc<D>) {
    if let Ok(fs) = FileSystem::open(device.clone(), Options::new().read_only(true)) {
        walk(&fs);
        let _ = fs.volume().last_checkpoint();
        let _ = fs.statfs();
    }
    if let Ok(report) = check(&**device, &CheckOptions::new().threads(0)) {
        // Its text as well.
        assert_eq!(report.to_string().is_empty(), report.is_clean());
    }
}
