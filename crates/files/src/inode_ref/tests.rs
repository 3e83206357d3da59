//! References by number, beside operations.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use f2fs_device::MemoryDevice;
use f2fs_format::Nid;
use f2fs_sync::PlainArc;
use f2fs_volume::format::{FormatOptions, format};

use crate::{FileKind, FileSystem, FsError, NewFile, Options};

/// Where it has left memory as well: who waits for all operations waits for this one for ever.
#[test]
fn one_that_was_known_before_is_found_beside_an_operation() {
    let device = PlainArc::new(MemoryDevice::new(32 * 1024));
    format(&*device, &FormatOptions::default()).unwrap();
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let [one, gone] = ["one", "gone"].map(|name| {
        fs.root().unwrap().create(name, &NewFile::new(FileKind::Regular, 0o644)).unwrap().metadata().unwrap()
    });
    fs.root().unwrap().remove_file("gone").unwrap();
    fs.checkpoint().unwrap();
    (0..2).for_each(|_| fs.drop_unused());
    let operation = fs.core.volume.begin_read();
    let (sender, receiver) = mpsc::channel();
    let other = fs.clone();
    let found = thread::spawn(move || sender.send(other.inode_again(one.ino, one.generation).map(|found| found.ino())));
    assert_eq!(receiver.recv_timeout(Duration::from_secs(20)).unwrap().unwrap(), one.ino);
    found.join().unwrap().unwrap();
    drop(operation);
    for (ino, generation) in [(one.ino, one.generation + 1), (gone.ino, gone.generation), (Nid(u32::MAX), 0)] {
        assert!(matches!(fs.inode_again(ino, generation), Err(FsError::NotFound)));
    }
}
