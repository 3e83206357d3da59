//! The record that a thread keeps of the lines it writes and reads.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a cache line.
const LINE: usize = 64;

/// What writes a line: the type of the lock or atomic, and where it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The source file.
    pub file: &'static str,
    /// The line in the file.
    pub line: u32,
    /// The type of what is written.
    pub what: &'static str,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The file's place in the workspace is enough, and a type without the modules that it is in.
        let file = self.file.rfind("crates/").map_or(self.file, |at| &self.file[at..]);
        write!(f, "{file}:{} ", self.line)?;
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let mut rest = self.what;
        while let Some(letter) = rest.chars().next() {
            let word = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
            match rest[word..].strip_prefix("::") {
                Some(inner) if word > 0 => rest = inner,
                _ => {
                    let len = word.max(letter.len_utf8());
                    f.write_str(&rest[..len])?;
                    rest = &rest[len..];
                }
            }
        }
        Ok(())
    }
}

/// What a thread did to a line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    /// Whether it was written, and not only read.
    pub(crate) written: bool,
    /// Who wrote it, or, as long as nobody did, who read it.
    pub(crate) sites: BTreeSet<Site>,
}

/// Lines by their number (address / 64).
pub(crate) type Lines = BTreeMap<usize, Touched>;

std::thread_local! {
    /// What this thread wrote and read since the record was begun.
    static RECORD: RefCell<Option<Lines>> = const { RefCell::new(None) };
    /// The processor that this thread plays to be on.
    static PROCESSOR: Cell<Option<usize>> = const { Cell::new(None) };
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

/// Notes that the value behind a lock is read or written: its own bytes, not what it points to.
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

/// A word that is written now, and, by who keeps it, when it is dropped: a lock that is taken and released.
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
        Word::written_at(std::ptr::from_ref(object).cast::<u8>().addr(), what)
    }

    /// Notes a write to the word at an address.
    #[track_caller]
    pub(crate) fn written_at(address: usize, what: &'static str) -> Word {
        let word = Word { address, what, at: Location::caller() };
        note(word.address, true, what, word.at);
        word
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        note(self.address, true, self.what, self.at);
    }
}
