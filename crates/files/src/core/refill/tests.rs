//! A device that looks, at every read of the node address table, whether the directory is locked at that moment.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::ops::Range;

use f2fs_device::{BlockDevice, Claims, DeviceError, DeviceInfo, MemoryDevice, Operation, Request, Ticket};
use f2fs_sync::{Arc, Mutex};
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::{FormatOptions, format};

use crate::filesystem::FileSystem;
use crate::inode::Inode;
use crate::name::Name;
use crate::namespace::Namespace;
use crate::options::DirectoryLock;
use crate::options::Options;
use crate::{FileKind, FsError, NewFile, RenameMode};

/// NIDs that the list may hold without anybody looking for more.
const ENOUGH: usize = 455;
/// Entries in memory from which on Linux looks for free NIDs.
const MANY: u64 = 100_000;

/// A lock that has to be held: a directory, and the number of the stripe.
type Lock = (Arc<Inode>, usize);

/// The requests that the device got.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Blocks of the table that were read with all locks held.
    inside: usize,
    /// Those that were read with one of them free.
    outside: usize,
}

#[derive(Default)]
struct Watch {
    table: Range<u64>,
    locks: Vec<Lock>,
    seen: Seen,
}

struct Watching {
    inner: MemoryDevice,
    watch: Mutex<Watch>,
}

impl std::fmt::Debug for Watching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watching")
    }
}

impl BlockDevice for Watching {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let mut watch = self.watch.lock();
        for request in &requests {
            if request.op.operation() == Operation::Read && watch.table.contains(&request.start) {
                let is_held = |(inode, stripe): &Lock| inode.directory().unwrap().stripe(*stripe).try_write().is_none();
                let blocks = request.blocks() as usize;
                if watch.locks.iter().all(is_held) {
                    watch.seen.inside += blocks;
                } else {
                    watch.seen.outside += blocks;
                }
            }
        }
        drop(watch);
        self.inner.submit(requests)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }
}

/// An open volume whose node address table is mostly unread.
struct Volume {
    device: Arc<Watching>,
    fs: FileSystem,
}

impl Volume {
    fn open(policy: &str, lock: DirectoryLock) -> Volume {
        let inner = MemoryDevice::new(1 << 18);
        format(&inner, &FormatOptions::default()).unwrap();
        let device = Arc::new(Watching { inner, watch: Mutex::default() });
        let volume = VolumeOptions::new().nid_policy(policy.parse().unwrap());
        let fs = FileSystem::open(device.clone(), Options::new().volume(volume).directory_lock(lock)).unwrap();
        for directory in ["/a", "/b", "/a/empty"] {
            fs.create_dir(directory, 0o755).unwrap();
        }
        for name in ["old", "second", "third", "moved", "over"] {
            fs.create_file(format!("/a/{name}"), 0o644).unwrap();
        }
        let free = fs.core.volume.nids().allocatable().unwrap();
        fs.core.volume.nids().hold(free - MANY).unwrap();
        Volume { device, fs }
    }

    /// The device's requests in an operation that begins with a short list; these names are what it changes.
    fn watch(&self, names: &[(&str, &str)], operation: impl FnOnce(&FileSystem) -> Result<(), FsError>) -> Seen {
        let (core, geometry) = (&self.fs.core, self.fs.core.volume.geometry());
        let (free, listed) = (core.volume.nids().allocatable().unwrap(), core.volume.nids().stats().listed);
        core.volume.nids().hold(free - (listed + 1).saturating_sub(ENOUGH) as u64).unwrap();
        assert!(core.volume.nids().stats().listed < ENOUGH);
        let root = core.inode(geometry.root_ino).unwrap();
        let locks = names.iter().map(|(directory, name)| {
            let inode = Namespace(core).child(&root, directory.as_bytes()).unwrap();
            let stripe = inode.directory().unwrap().stripe_of(Name::new(name.as_bytes()).unwrap().hash());
            (inode, stripe)
        });
        let first = u64::from(geometry.nat_blkaddr.0);
        let table = first..first + u64::from(geometry.nat_segments) * 512;
        *self.device.watch.lock() = Watch { table, locks: locks.collect(), seen: Seen::default() };
        operation(&self.fs).unwrap();
        std::mem::take(&mut *self.device.watch.lock()).seen
    }
}

/// A scan of NAT blocks, with the locks held that Linux holds. Without these locks, a thread that waits for the scan
/// would not wait for the directory, and the baselines would be faster than Linux.
#[test]
fn a_baseline_scans_inside_the_directorys_lock() {
    for lock in [DirectoryLock::Whole, DirectoryLock::Bucket] {
        // With `lazy` no block is read on the way of an operation, and the device sees nothing.
        for policy in ["kernel-scan", "clue:optimistic+heuristic"] {
            let volume = Volume::open(policy, lock);
            let soft = NewFile::new(FileKind::Symlink, 0o777);
            let check = |what: &str, names: &[(&str, &str)], operation: &dyn Fn(&FileSystem) -> Result<(), FsError>| {
                let seen = volume.watch(names, operation);
                assert_eq!(seen, Seen { inside: 8, outside: 0 }, "{what}, {policy}, {lock:?}");
            };
            check("create", &[("a", "new")], &|fs| fs.create_file("/a/new", 0o644).map(drop));
            check("mkdir", &[("a", "dir")], &|fs| fs.create_dir("/a/dir", 0o755).map(drop));
            check("symlink", &[("a", "soft")], &|fs| fs.symlink(b"old", "/a/soft", &soft).map(drop));
            check("link", &[("a", "hard")], &|fs| fs.link("/a/old", "/a/hard"));
            check("unlink", &[("a", "old")], &|fs| fs.remove_file("/a/old"));
            check("the last unlink", &[("a", "second")], &|fs| fs.remove_file("/a/second"));
            check("rmdir", &[("a", "empty")], &|fs| fs.remove_dir("/a/empty"));
            check("rename", &[("a", "moved"), ("b", "moved")], &|fs| {
                fs.rename("/a/moved", "/b/moved", RenameMode::Replace)
            });
            check("rename over", &[("b", "moved"), ("a", "over")], &|fs| {
                fs.rename("/b/moved", "/a/over", RenameMode::Replace)
            });
            let file = volume.fs.inode_at("/a/third").unwrap();
            let directory = volume.fs.inode_at("/a").unwrap();
            check("link over", &[("a", "over")], &|_| directory.link_over("over", &file));
            let unnamed = NewFile::new(FileKind::Regular, 0o644);
            check("a file without a name", &[], &|_| directory.create_unnamed(&unnamed).map(drop));
        }
    }
}

/// The default policy looks for nothing on the way of an unlink, inside or outside.
#[test]
fn the_default_policy_scans_for_no_unlink() {
    let volume = Volume::open("sharded", DirectoryLock::Whole);
    assert_eq!(volume.watch(&[("a", "old")], |fs| fs.remove_file("/a/old")), Seen::default());
}

/// A write makes no new node here, and Linux would not look for NIDs either.
#[test]
fn a_plain_write_scans_for_nothing() {
    let volume = Volume::open("kernel-scan", DirectoryLock::Whole);
    let file = volume.fs.open_file("/a/third").unwrap();
    assert_eq!(volume.watch(&[], |_| file.write_at(b"text", 0).map(drop)), Seen::default());
}
