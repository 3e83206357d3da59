//! The record that a thread keeps of the lines it writes and reads.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Kind, Site};

/// Bytes of a cache line.
const LINE: usize = 64;

/// Accesses of a thread to a line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    /// Whether it was written, and not only read.
    pub(crate) written: bool,
    /// The places in the code that wrote it. As long as none did: the places that read it.
    pub(crate) sites: BTreeSet<Site>,
}

/// Lines by their number (address / 64).
pub(crate) type Lines = BTreeMap<usize, Touched>;

std::thread_local! {
    /// The lines that this thread wrote and read since the record was begun.
    static RECORD: RefCell<Option<Lines>> = const { RefCell::new(None) };
    /// The processor that this thread plays to be on.
    static PROCESSOR: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Processors of the machine that is played.
const PROCESSORS: usize = 16;

/// How many processors there are.
pub(crate) fn processors() -> usize {
    PROCESSORS
}

/// The processor that this thread plays to be on: one of its own, unless [`on_processor`] said which.
pub(crate) fn processor() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    PROCESSOR.with(|processor| {
        processor.get().unwrap_or_else(|| {
            let next = NEXT.fetch_add(1, Ordering::Relaxed);
            processor.set(Some(next));
            next
        })
    })
}

/// Puts this thread on a processor.
pub(crate) fn on_processor(number: usize) {
    PROCESSOR.set(Some(number));
}

/// Begins a new record on this thread.
pub(crate) fn record() {
    RECORD.set(Some(Lines::new()));
}

/// Ends the record of this thread and gives it out.
pub(crate) fn take() -> Lines {
    RECORD.take().unwrap_or_default()
}

/// The most lines of a value behind a lock that are noted: of a larger value, one operation touches a part only.
const VALUE_LINES: usize = 4;

/// Notes a write to a line, or a read of it.
fn note(address: usize, written: bool, what: &'static str, at: &Location<'static>) {
    // A thread that is about to end has no record any more.
    let _ = RECORD.try_with(|record| {
        if let Some(lines) = record.borrow_mut().as_mut() {
            let site = Site { file: at.file(), line: at.line(), what };
            let touched = lines.entry(address / LINE).or_default();
            if written && !touched.written {
                touched.written = true;
                touched.sites.clear();
            }
            if written == touched.written {
                touched.sites.insert(site);
            }
        }
    });
}

/// Notes that an atomic or a cell is read.
#[track_caller]
pub(crate) fn read<T: ?Sized>(object: &T, what: &'static str) {
    note(std::ptr::from_ref(object).cast::<u8>().addr(), false, what, Location::caller());
}

/// Notes that the word at an address is read.
#[track_caller]
pub(crate) fn read_at(address: usize, what: &'static str) {
    note(address, false, what, Location::caller());
}

/// Notes that the value behind a lock is read or written: its own bytes, not the memory that it points to.
#[track_caller]
pub(crate) fn value<T: ?Sized>(value: &T, written: bool, what: &'static str) {
    let bytes = size_of_val(value);
    if bytes == 0 {
        return;
    }
    let first = std::ptr::from_ref(value).cast::<u8>().addr();
    let at = Location::caller();
    let lines = (first / LINE..=(first + bytes - 1) / LINE).take(VALUE_LINES);
    lines.for_each(|line| note(line * LINE, written, what, at));
}

/// Whether a lock that is free goes to whoever asks.
pub(crate) fn is_open<T: ?Sized>(_lock: &T) -> bool {
    true
}

/// Notes that a word is written.
#[track_caller]
pub(crate) fn written<T: ?Sized>(object: &T, what: &'static str) {
    written_at(std::ptr::from_ref(object).cast::<u8>().addr(), what);
}

/// Notes that the word at an address is written.
#[track_caller]
pub(crate) fn written_at(address: usize, what: &'static str) {
    note(address, true, what, Location::caller());
}

/// A word that is written now, and by its owner when it is dropped: a lock that is taken and released.
#[derive(Debug)]
pub(crate) struct Word {
    address: usize,
    what: &'static str,
    at: &'static Location<'static>,
}

impl Word {
    /// Notes a write to the word at the beginning of `object`.
    #[track_caller]
    pub(crate) fn written<T: ?Sized>(object: &T, what: &'static str) -> Word {
        let word = Word { address: std::ptr::from_ref(object).cast::<u8>().addr(), what, at: Location::caller() };
        note(word.address, true, what, word.at);
        word
    }

    /// The lock, waited for as in production.
    pub(crate) fn acquire<G>(&self, _: Kind, _: impl FnMut() -> Option<G>, wait: impl FnOnce() -> G) -> G {
        wait()
    }

    /// The lock was free.
    pub(crate) fn acquired(&self, _: Kind) {}
}

impl Drop for Word {
    fn drop(&mut self) {
        note(self.address, true, self.what, self.at);
    }
}
