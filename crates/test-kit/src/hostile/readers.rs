//! Readers.

use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use f2fs_check::{CheckError, CheckOptions, CheckReport, check};
use f2fs_device::BlockDevice;
use f2fs_files::{FileKind, FileSystem, InodeRef, Metadata, Options, path_from_bytes};

/// Paths looked at in one volume at most.
const PATHS: usize = 400;
/// Bytes read of one file at most, from either end.
const BYTES: usize = 1 << 20;

/// Of so many paths looked at in a walk one is looked at by its path again; the others by what was found under it.
const BY_PATH: usize = 8;

/// Hands out what can be reached from the root, 400 paths at most, and a file that has several names once.
pub fn each_path(fs: &FileSystem, mut look: impl FnMut(&Path, &Metadata)) {
    each_inode(fs, |path, stat, _| look(path, stat));
}

/// The same, with what is found under the path. Each name is looked up once, in the directory that it stands in: most
/// of the time of a walk are look-ups.
fn each_inode(fs: &FileSystem, mut look: impl FnMut(&Path, &Metadata, &InodeRef)) {
    let Ok(root) = fs.root() else { return };
    // The directory, the path, and where the name begins in it. The root has no name.
    let mut pending = vec![(Rc::new(root), b"/".to_vec(), 1)];
    let mut seen = HashSet::new();
    for _ in 0..PATHS {
        let Some((parent, path, name)) = pending.pop() else { return };
        let found = match &path[name..] {
            [] => Ok(parent),
            name => parent.lookup(name).map(Rc::new),
        };
        let Ok(inode) = found else { continue };
        let Ok(stat) = inode.metadata() else { continue };
        if stat.kind != FileKind::Directory && !seen.insert(stat.ino) {
            continue;
        }
        look(path_from_bytes(&path), &stat, &inode);
        if stat.kind == FileKind::Directory {
            let Ok(dir) = inode.open_dir() else { continue };
            for entry in dir.read(0, 300).unwrap_or_default() {
                if entry.name != b"." && entry.name != b".." {
                    let slash: &[u8] = if path == b"/" { b"" } else { b"/" };
                    let before = path.len() + slash.len();
                    pending.push((inode.clone(), [&path[..], slash, &entry.name].concat(), before));
                }
            }
        }
    }
}

/// Looks at everything that can be reached, within bounds.
pub fn walk(fs: &FileSystem) {
    let mut buffer = vec![0; 20_000];
    let mut number = 0;
    each_inode(fs, |at, stat, inode| {
        number += 1;
        let by_path = number % BY_PATH == 0;
        if by_path {
            let _ = (fs.symlink_metadata(at), fs.xattrs(at));
        } else {
            let _ = inode.xattrs();
        }
        match stat.kind {
            FileKind::Symlink => drop((fs.read_link(at), fs.metadata(at))),
            FileKind::Directory if by_path => drop(fs.open_dir(at)),
            FileKind::Regular => {
                let opened = if by_path { fs.open_file(at) } else { inode.open_file() };
                let Ok(file) = opened else { return };
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

/// Opens for reading, walks, and checks. Gives what the check found.
pub fn open_and_check<D: BlockDevice>(device: &Arc<D>) -> Result<CheckReport, CheckError> {
    if let Ok(fs) = FileSystem::open(device.clone(), Options::new().read_only(true)) {
        walk(&fs);
        let _ = fs.volume().last_checkpoint();
        let _ = fs.statfs();
    }
    let report = check(&**device, &CheckOptions::new().threads(0))?;
    // Its text as well.
    assert_eq!(report.to_string().is_empty(), report.is_clean());
    Ok(report)
}
