//! Guards: the proof that a range is locked. Dropped, a guard releases its range.
//!
//! A guard may be dropped on another thread than the one that took it.

use f2fs_sync::PlainArc;

use crate::fast::InWord;
use crate::queue::Ticket;
use crate::range::BlockRange;
use crate::table::ExtentTable;
use crate::word::Mode;

/// Blocks that are shared with other readers, until the guard is dropped.
#[derive(Debug)]
#[must_use = "dropping the guard unlocks at once"]
pub struct SharedGuard<'a> {
    held: Held<'a>,
}

/// Blocks that nobody else has, until the guard is dropped.
#[derive(Debug)]
#[must_use = "dropping the guard unlocks at once"]
pub struct ExclusiveGuard<'a> {
    held: Held<'a>,
}

/// A locked range, which knows its word when it has only one.
#[derive(Debug, Clone, Copy)]
struct Held<'a> {
    table: &'a ExtentTable,
    range: Option<BlockRange>,
    word: Option<InWord<'a>>,
    ticket: Ticket,
}

impl<'a> Held<'a> {
    #[inline(always)]
    fn release(&mut self, mode: Mode) {
        let Some(range) = self.range.take() else { return };
        match self.word {
            Some(word) => self.table.release_one(word, range, mode),
            None => self.table.release_range(range, mode, self.ticket),
        }
    }

    /// Moves out of a guard, whose drop then does nothing.
    fn take(&mut self) -> Held<'a> {
        let held = *self;
        self.range = None;
        held
    }
}

macro_rules! guard {
    ($guard:ident, $mode:expr) => {
        impl<'a> $guard<'a> {
            #[inline(always)]
            pub(crate) fn in_word(table: &'a ExtentTable, range: Option<BlockRange>, word: InWord<'a>) -> Self {
                $guard { held: Held { table, range, word: Some(word), ticket: Ticket::NONE } }
            }

            #[inline(always)]
            pub(crate) fn new(table: &'a ExtentTable, range: Option<BlockRange>, ticket: Ticket) -> Self {
                $guard { held: Held { table, range, word: None, ticket } }
            }

            /// The blocks, or `None` for a guard over an empty range.
            #[must_use]
            pub fn range(&self) -> Option<BlockRange> {
                self.held.range
            }

            /// The table that the blocks are locked in.
            #[must_use]
            pub fn table(&self) -> &'a ExtentTable {
                self.held.table
            }
        }

        impl Drop for $guard<'_> {
            #[inline(always)]
            fn drop(&mut self) {
                self.held.release($mode);
            }
        }
    };
}

guard!(SharedGuard, Mode::Shared);
guard!(ExclusiveGuard, Mode::Exclusive);

impl<'a> ExclusiveGuard<'a> {
    /// Shares the blocks with other readers from now on. No writer gets in between.
    pub fn downgrade(mut self) -> SharedGuard<'a> {
        let held = self.held.take();
        if let Some(range) = held.range {
            held.table.downgrade(range, held.ticket);
        }
        SharedGuard { held }
    }
}

/// Blocks that are locked in a table which the guard keeps alive, until the guard is dropped.
#[derive(Debug)]
#[must_use = "dropping the guard unlocks at once"]
pub struct OwnedGuard {
    table: PlainArc<ExtentTable>,
    range: Option<BlockRange>,
    mode: Mode,
    ticket: Ticket,
}

impl OwnedGuard {
    pub(crate) fn new(
        table: PlainArc<ExtentTable>,
        range: Option<BlockRange>,
        mode: Mode,
        ticket: Ticket,
    ) -> OwnedGuard {
        OwnedGuard { table, range, mode, ticket }
    }

    /// The blocks, or `None` for a guard over an empty range.
    #[must_use]
    pub fn range(&self) -> Option<BlockRange> {
        self.range
    }

    /// How the blocks are locked.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The table that the blocks are locked in.
    #[must_use]
    pub fn table(&self) -> &PlainArc<ExtentTable> {
        &self.table
    }

    /// Shares the blocks with other readers from now on, if they were exclusive. No writer gets in between.
    pub fn downgrade(&mut self) {
        if self.mode == Mode::Exclusive {
            self.mode = Mode::Shared;
            if let Some(range) = self.range {
                self.table.downgrade(range, self.ticket);
            }
        }
    }
}

impl Drop for OwnedGuard {
    fn drop(&mut self) {
        if let Some(range) = self.range {
            self.table.release_range(range, self.mode, self.ticket);
        }
    }
}
