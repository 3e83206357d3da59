//! The names that changed since the last checkpoint, or since the last record of names: what the next record of names
//! is about.
//!
//! A note says where a name is that changed, not how: the record has what the name leads to when the record is taken. So
//! the order of the notes does not matter, and each processor keeps its own. Notes of inodes stand beside them: those
//! whose links changed.
//!
//! Notes take 1 MiB for each processor at most. With more, all are dropped, and the next sync of names is a checkpoint.
//!
//! # Locking
//!
//! Each processor's notes have a lock, which is held to add one. They are taken with the gate closed. No other lock is
//! taken meanwhile.

use std::collections::BTreeSet;

use f2fs_format::Nid;
use f2fs_sync::atomic::{AtomicBool, Ordering};
use f2fs_sync::{Mutex, PerCore};

/// Bytes of notes that a processor keeps at most.
const MOST: usize = 1 << 20;

/// The notes.
#[derive(Debug)]
pub(crate) struct NameLog {
    notes: PerCore<Mutex<Vec<u8>>>,
    /// Some were dropped.
    is_lost: AtomicBool,
}

/// The names that changed, and the inodes whose links did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ChangedNames {
    /// The directory's number, and the name.
    pub names: BTreeSet<(Nid, Vec<u8>)>,
    /// Inodes.
    pub inodes: BTreeSet<Nid>,
}

impl NameLog {
    pub(crate) fn new() -> NameLog {
        NameLog { notes: PerCore::new(|_| Mutex::default()), is_lost: AtomicBool::new(false) }
    }

    /// Notes a name of a directory; or, with an empty name, an inode.
    pub(crate) fn note(&self, ino: Nid, name: &[u8]) {
        let Ok(len) = u8::try_from(name.len()) else { return self.lose() };
        if self.is_lost.load(Ordering::Relaxed) {
            return;
        }
        let mut notes = self.notes.slot().lock();
        if notes.len() >= MOST {
            drop(notes);
            return self.lose();
        }
        notes.extend_from_slice(&ino.0.to_le_bytes());
        notes.push(len);
        notes.extend_from_slice(name);
    }

    /// Gives the notes up: until the next checkpoint there is no record of names.
    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::Release);
        self.notes.iter().for_each(|notes| *notes.lock() = Vec::new());
    }

    /// A checkpoint holds all of them. Called with the gate closed.
    pub(crate) fn clear(&self) {
        self.notes.iter().for_each(|notes| notes.lock().clear());
        self.is_lost.store(false, Ordering::Release);
    }

    /// Takes them, with the gate closed; `None` if some were dropped.
    pub(crate) fn take(&self) -> Option<ChangedNames> {
        if self.is_lost.load(Ordering::Acquire) {
            return None;
        }
        let mut changed = ChangedNames::default();
        for notes in self.notes.iter() {
            let mut notes = notes.lock();
            read(&notes, &mut changed);
            notes.clear();
        }
        Some(changed)
    }
}

fn read(mut notes: &[u8], into: &mut ChangedNames) {
    while let Some((ino, rest)) = notes.split_first_chunk() {
        let ino = Nid(u32::from_le_bytes(*ino));
        let Some((len, rest)) = rest.split_first() else { return };
        let Some((name, rest)) = rest.split_at_checked(usize::from(*len)) else { return };
        if name.is_empty() {
            into.inodes.insert(ino);
        } else {
            into.names.insert((ino, name.to_vec()));
        }
        notes = rest;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_once_and_too_many_are_none() {
        let log = NameLog::new();
        log.note(Nid(5), b"one");
        log.note(Nid(5), b"one");
        log.note(Nid(9), &[b'x'; 255]);
        log.note(Nid(7), b"");
        let changed = log.take().unwrap();
        let names: Vec<_> = changed.names.iter().map(|(ino, name)| (ino.0, name.len())).collect();
        assert_eq!((names, changed.inodes.len()), (vec![(5, 3), (9, 255)], 1));
        assert!(log.take().unwrap().names.is_empty(), "taken");
        for _ in 0..=MOST / 260 * 2 {
            log.note(Nid(9), &[b'x'; 255]);
        }
        assert!(log.take().is_none());
        log.note(Nid(5), b"one");
        assert!(log.take().is_none(), "until a checkpoint");
        log.clear();
        log.note(Nid(5), b"one");
        assert_eq!(log.take().unwrap().names.len(), 1);
    }
}
