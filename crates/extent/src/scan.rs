//! The search of a range for holders.
//!
//! It reads words and changes none. A covering request searches with the queue's lock held and the hull announced, and
//! may clear marks (see [`directory`](crate::directory)); anybody else may search without, and learns what was the
//! case.

use f2fs_sync::atomic::Ordering::{Relaxed, SeqCst};
use f2fs_sync::protocol_value;

use crate::directory::{Line, Visit, line_of};
use crate::geometry::{BLOCKS_PER_LINE, BLOCKS_PER_WORD, WORDS_PER_LINE};
use crate::range::BlockRange;
use crate::table::ExtentTable;
use crate::word::{self, Mode, QUEUED};
use crate::words::bytes_in;

impl ExtentTable {
    /// A block before which nobody in the range excludes a covering lock in this mode, if somebody in the range does:
    /// the first block, inside the range, of the first word with such a holder.
    pub(crate) fn first_holder(&self, range: BlockRange, mode: Mode, clear: bool) -> Option<u64> {
        let order = protocol_value!("scan_order", SeqCst, Relaxed);
        let look = |line: u64, words: &Line| {
            // All words at once; most lines are idle.
            let any = words.0.iter().fold(0, |any, word| any | word.load(order));
            if any & !QUEUED == 0 {
                return Visit::Idle;
            }
            for (word, number) in words.0.iter().zip(line * WORDS_PER_LINE as u64..) {
                let base = number * BLOCKS_PER_WORD;
                let here =
                    BlockRange::new(base, base + (BLOCKS_PER_WORD - 1)).and_then(|here| here.intersection(range));
                if let Some(here) = here
                    && word::excludes(word.load(order), bytes_in(number, range), mode)
                {
                    return Visit::Found(here.first());
                }
            }
            Visit::Busy
        };
        let (first, last) = (range.first(), range.last());
        if first < BLOCKS_PER_LINE
            && let Visit::Found(holder) = look(0, &self.first)
        {
            return Some(holder);
        }
        if last < BLOCKS_PER_LINE {
            return None;
        }
        self.directory.get()?.visit(line_of(first).max(1), line_of(last), clear, look)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// The next one finds what was locked since.
    #[test]
    fn a_covering_request_takes_idle_lines_off_the_list() {
        let table = ExtentTable::new();
        let marked = || {
            let (mut lines, directory) = (Vec::new(), table.directory.get().expect("lines were made"));
            directory.visit(1, 100, false, |line, _| {
                lines.push(line);
                Visit::<()>::Idle
            });
            lines
        };
        drop(table.exclusive(100..=100));
        let held = table.shared(300..=300);
        assert_eq!(marked(), [1, 4]);
        drop(table.shared(..));
        assert_eq!(marked(), [4], "somebody reads there");
        assert!(table.try_exclusive(..).is_none());
        drop(held);
        assert!(table.try_exclusive(..).is_some());
        assert_eq!(marked(), []);
        let _writer = table.exclusive(127..=130);
        assert_eq!(marked(), [1, 2]);
        assert_eq!((table.locked(0..64), table.locked(64..127), table.locked(131..)), (None, None, None));
        assert_eq!(table.locked(u64::MAX..=u64::MAX), None, "there are no words");
        assert!(table.try_shared(..).is_none());
    }
}
