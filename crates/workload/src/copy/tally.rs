//! The counts of a copy so far, and the reason for its end.
//!
//! # Locking
//!
//! One lock, on the counts; nothing is called while it is held.

use std::io::ErrorKind;

use f2fs::FsError;
use f2fs::sync::Mutex;

use super::{CopyError, CopyEvent, CopyProgress, Watch};

/// Shared by all workers of a copy.
pub(super) struct Tally<'a> {
    watch: Watch<'a>,
    /// The volume is written to: an error of it stops the copy.
    writes: bool,
    state: Mutex<State>,
}

struct State {
    done: CopyProgress,
    stopped: Option<CopyError>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(watch: Watch<'a>, writes: bool, total_bytes: u64) -> Self {
        let done = CopyProgress { total_bytes, ..CopyProgress::default() };
        Tally { watch, writes, state: Mutex::new(State { done, stopped: None }) }
    }

    /// One more entry was copied, without attributes that were `lost`.
    pub(super) fn copied(&self, bytes: u64, lost: &[CopyError]) {
        let done = {
            let done = &mut self.state.lock().done;
            done.files += 1;
            done.bytes += bytes;
            done.lost += lost.len() as u64;
            *done
        };
        lost.iter().for_each(|error| (self.watch)(CopyEvent::Lost(error)));
        (self.watch)(CopyEvent::Progress(done));
    }

    /// More bytes are known to be there.
    pub(super) fn found(&self, bytes: u64) {
        self.state.lock().done.total_bytes += bytes;
    }

    /// A special file was left out, as was asked for.
    pub(super) fn left_out(&self) {
        self.state.lock().done.skipped += 1;
    }

    /// An entry was not copied. An error that would meet every other entry as well stops the copy.
    pub(super) fn failed(&self, error: CopyError) {
        {
            let mut state = self.state.lock();
            if state.stopped.is_some() && !matches!(error, CopyError::Incomplete { .. }) {
                // The same happens to whatever the other workers are at. Their unfinished work is said.
                return;
            }
            if state.stopped.is_none() && stops(&error, self.writes) {
                state.stopped = Some(error);
                return;
            }
            state.done.failed += 1;
        }
        (self.watch)(CopyEvent::Failed(&error));
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state.lock().stopped.is_some()
    }

    /// The end of the copy.
    pub(super) fn result(self) -> Result<CopyProgress, CopyError> {
        let state = self.state.into_inner();
        let copied = state.done.files;
        state.stopped.map_or(Ok(state.done), |source| Err(CopyError::Ended { copied, source: Box::new(source) }))
    }
}

/// Whether nothing else can be copied either.
fn stops(error: &CopyError, writes: bool) -> bool {
    match error {
        CopyError::Host { source, .. } => {
            matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem)
        }
        CopyError::Volume { source, .. } => {
            writes && matches!(**source, FsError::Volume(_) | FsError::NoSpace(_) | FsError::ReadOnly)
        }
        CopyError::Short { .. } => true,
        CopyError::Kept { source } | CopyError::Incomplete { source, .. } | CopyError::Ended { source, .. } => {
            stops(source, writes)
        }
        _ => false,
    }
}
