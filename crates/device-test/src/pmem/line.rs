//! One line: the stores that have not certainly reached the media.

use std::collections::VecDeque;

use f2fs_pmem::LINE;

/// How a store reaches the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Through the cache: not before the older ones of the line.
    Cached,
    /// Past the cache, from the buffers of this thread: on its own.
    Streamed(u32),
}

/// One store that a power cut cannot tear.
#[derive(Clone, Copy, Debug)]
struct Word {
    /// Where in the line.
    at: u8,
    len: u8,
    bytes: [u8; 8],
    way: Way,
    /// Whether it has reached the media for certain.
    certain: bool,
}

/// The stores to a line since its content was certain, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    words: VecDeque<Word>,
    /// Stores that were certain and are gone from `words`: the number of the first one that is left.
    first: u64,
    /// Write-backs under way: the thread, and the number of the store that was the next then.
    written_back: Vec<(u32, u64)>,
}

/// The part of a line's uncertain stores that is on the media.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// How many of those through the cache.
    pub(super) prefix: usize,
    /// A bit for each of those past the cache; the last bit is that of all others.
    pub(super) streamed: u64,
}

impl Line {
    /// Adds the store of up to 8 bytes; `thread`: past the cache.
    pub(super) fn store(&mut self, at: usize, bytes: &[u8], thread: Option<u32>) {
        let mut word = Word {
            at: at as u8,
            len: bytes.len() as u8,
            bytes: [0; 8],
            way: thread.map_or(Way::Cached, Way::Streamed),
            certain: false,
        };
        word.bytes[..bytes.len()].copy_from_slice(bytes);
        self.words.push_back(word);
    }

    /// A thread writes the line back.
    pub(super) fn write_back(&mut self, thread: u32) {
        let next = self.first + self.words.len() as u64;
        self.written_back.push((thread, next));
    }

    /// A thread's fence: its non-temporal stores and write-backs are certain.
    pub(super) fn fence(&mut self, thread: u32) {
        let covered = self.written_back.iter().filter(|(by, _)| *by == thread).map(|(_, next)| *next).max();
        self.written_back.retain(|(by, _)| *by != thread);
        for (word, number) in self.words.iter_mut().zip(self.first..) {
            word.certain |= match word.way {
                Way::Cached => covered.is_some_and(|next| number < next),
                Way::Streamed(by) => by == thread,
            };
        }
    }

    /// Applies stores that are certain, up to the first that is not, to the line's content; whether no store is left.
    pub(super) fn settle(&mut self, content: &mut [u8; LINE]) -> bool {
        while let Some(word) = self.words.front().filter(|word| word.certain) {
            word.apply(content);
            self.words.pop_front();
            self.first += 1;
        }
        self.words.is_empty()
    }

    /// How many uncertain stores there are: through the cache, and past it.
    pub(super) fn uncertain(&self) -> (usize, usize) {
        let streamed = self.words.iter().filter(|word| !word.certain && word.way != Way::Cached).count();
        (self.words.iter().filter(|word| !word.certain).count() - streamed, streamed)
    }

    /// Whether any store is uncertain.
    pub(super) fn is_uncertain(&self) -> bool {
        self.words.iter().any(|word| !word.certain)
    }

    /// The content that a choice leaves on the media.
    pub(super) fn apply(&self, choice: Choice, content: &mut [u8; LINE]) {
        let (mut cached, mut streamed) = (0, 0);
        for word in &self.words {
            let kept = word.certain
                || match word.way {
                    Way::Cached => {
                        cached += 1;
                        cached <= choice.prefix
                    }
                    Way::Streamed(_) => {
                        streamed += 1;
                        choice.streamed >> (streamed - 1).min(63) & 1 != 0
                    }
                };
            if kept {
                word.apply(content);
            }
        }
    }

    /// The content as loads see it.
    pub(super) fn apply_all(&self, content: &mut [u8; LINE]) {
        self.words.iter().for_each(|word| word.apply(content));
    }
}

impl Word {
    fn apply(&self, content: &mut [u8; LINE]) {
        let (at, len) = (usize::from(self.at), usize::from(self.len));
        content[at..at + len].copy_from_slice(&self.bytes[..len]);
    }
}
