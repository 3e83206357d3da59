//! Errors of write-back, told to each handle of the file once (Linux's `errseq_t`, `lib/errseq.c`).
//!
//! Any thread may write pages back, and their writer may have closed the file by then. So an error is kept with the
//! file: the next sync through each handle that was open then fails with it, once. An error that nobody has seen is
//! also told to a handle that is opened later.
//!
//! # Locking
//!
//! One mutex, taken for a note, or if something was noted since the handle looked; last in every order.

use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{Mutex, PlainArc, protocol_step};

use crate::FsError;

/// The errors of a file.
#[derive(Debug, Default)]
pub(crate) struct ErrorSequence {
    /// How many were noted.
    noted: AtomicU64,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    error: Option<PlainArc<FsError>>,
    /// How many had been noted when one was told.
    told: u64,
}

/// The errors that a handle has been told.
#[derive(Debug, Default)]
pub(crate) struct Seen(AtomicU64);

impl ErrorSequence {
    /// Notes an error.
    pub(crate) fn note(&self, error: PlainArc<FsError>) {
        let mut last = self.last.lock();
        last.error = Some(error);
        protocol_step!("cached_error_told_to_nobody", self.noted.fetch_add(1, Ordering::AcqRel));
    }

    /// The errors that a newly opened handle counts as told: all but one that nobody has seen.
    pub(crate) fn opened(&self) -> Seen {
        let last = self.last.lock();
        let noted = self.noted.load(Ordering::Acquire);
        Seen(AtomicU64::new(if noted > last.told { last.told } else { noted }))
    }

    /// The last error, if there was one since the handle was told.
    pub(crate) fn next(&self, seen: &Seen) -> Option<PlainArc<FsError>> {
        if self.noted.load(Ordering::Acquire) == seen.0.load(Ordering::Relaxed) {
            return None;
        }
        let mut last = self.last.lock();
        let noted = self.noted.load(Ordering::Acquire);
        let before = seen.0.swap(noted, Ordering::Relaxed);
        last.told = noted;
        if before == noted { None } else { last.error.clone() }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn each_handle_is_told_once() {
        let errors = ErrorSequence::default();
        let (one, two) = (errors.opened(), errors.opened());
        assert!(errors.next(&one).is_none());
        errors.note(PlainArc::new(FsError::ReadOnly));
        assert!(errors.next(&one).is_some() && errors.next(&one).is_none());
        // Somebody has seen it: a new handle is not told.
        assert!(errors.next(&errors.opened()).is_none());
        assert!(errors.next(&two).is_some() && errors.next(&two).is_none());
        errors.note(PlainArc::new(FsError::ReadOnly));
        let late = errors.opened();
        assert!(errors.next(&late).is_some(), "nobody had seen it");
        assert!(errors.next(&one).is_some());
    }
}
