//! The files that have windows.
//!
//! Each that is read in order has two of 1 MiB ([`crate::stream`]), and keeps them until it is changed, read to its end,
//! or forgotten: so only the last [`MOST`] files have some, 32 MiB in all.
//!
//! # Locking
//!
//! The list has a mutex, taken when a file gets its first window, with no other lock held. The windows of the file that
//! goes are dropped after it is released.

use std::collections::VecDeque;

use f2fs_device::Recycler;
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, Mutex, Weak};

use crate::table::Known;

/// Files that have windows.
const MOST: usize = 16;

/// The files that have windows.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// The latest last.
    files: Mutex<VecDeque<Weak<Known>>>,
    /// What the windows lie in.
    pub(crate) memory: Recycler,
}

impl Streams {
    /// A file gets windows; the one that got them first may lose them.
    pub(crate) fn begin(&self, known: &Arc<Known>) {
        let mut files = self.files.lock();
        let new = Arc::downgrade(known);
        files.retain(|file| file.strong_count() > 0 && !file.ptr_eq(&new));
        files.push_back(new);
        known.stream.listed.store(true, Ordering::Relaxed);
        let gone = if files.len() > MOST { files.pop_front() } else { None };
        let gone = gone.and_then(|file| file.upgrade());
        if let Some(known) = &gone {
            known.stream.listed.store(false, Ordering::Relaxed);
        }
        drop(files);
        if let Some(known) = gone {
            known.stream.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use f2fs_files::{FileSystem, Options};

    use super::*;

    #[test]
    fn so_many_files_have_windows_and_no_more() {
        let device = Arc::new(f2fs_device::MemoryDevice::new(64 * 1024));
        f2fs_volume::format::format(&*device, &Default::default()).unwrap();
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let content = vec![1; 3 << 20];
        let streams = Streams::default();
        let table = crate::table::Table::new(fs.root().unwrap(), 1 << 20);
        let root = fs.root().unwrap();
        let mut all = Vec::new();
        for number in 0..MOST + 4 {
            fs.create_file(format!("/{number}"), 0o644).unwrap().write_at(&content, 0).unwrap();
            let known = table.tell(root.lookup(number.to_string()).unwrap(), 0);
            let read = |offset| {
                let begins = || streams.begin(&known);
                known.stream.read(known.file().unwrap(), offset, 256 << 10, &streams.memory, begins).unwrap()
            };
            read(0);
            let piece = read(256 << 10).expect("it is read in order");
            all.push((known.clone(), piece));
        }
        // A request of a file that has lost its windows is answered late: it gets none again.
        for (known, piece) in &all {
            known.stream.go_on(known.file().unwrap(), piece, &streams.memory);
        }
        let holding: Vec<bool> = all.iter().map(|(known, _)| known.stream.held() > 0).collect();
        assert_eq!(holding, [vec![false; 4], vec![true; MOST]].concat());
        assert_eq!(streams.files.lock().len(), MOST);
    }
}
