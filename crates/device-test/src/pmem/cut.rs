//! The states that a power cut may leave.

use f2fs_device::{BLOCK_SIZE, BlockDevice, MemoryDevice};
use f2fs_pmem::{LINE, WORD};

use crate::Random;

use super::line::{Choice, Line};
use super::lines::change;

/// The number of ways in which [`PowerCut::draw`] draws.
pub const WAYS: u64 = 8;

/// The contents that a power cut may leave: lines that are certain, and lines of which any of several contents may be
/// on the media.
#[derive(Debug)]
pub struct PowerCut {
    certain: MemoryDevice,
    /// By their number, in ascending order.
    uncertain: Vec<(usize, Line)>,
}

/// The media after a power cut.
#[derive(Debug)]
pub struct State {
    media: MemoryDevice,
}

impl State {
    /// The content in blocks of 4096 bytes, the last one zero padded.
    #[must_use]
    pub fn media(&self) -> &MemoryDevice {
        &self.media
    }

    /// The same, to keep.
    #[must_use]
    pub fn into_media(self) -> MemoryDevice {
        self.media
    }

    /// The word (little-endian) at `offset`, a multiple of 8; 0 outside the region.
    #[must_use]
    pub fn load_u64(&self, offset: usize) -> u64 {
        let (block, within) = (offset / BLOCK_SIZE, offset % BLOCK_SIZE);
        let Ok(buf) = self.media.read(block as u64, 1) else { return 0 };
        buf.as_bytes().as_chunks::<WORD>().0.get(within / WORD).map_or(0, |word| u64::from_le_bytes(*word))
    }
}

impl PowerCut {
    pub(super) fn new(certain: MemoryDevice, uncertain: Vec<(usize, Line)>) -> PowerCut {
        PowerCut { certain, uncertain }
    }

    /// The lines, by their number, of which more than one content may be on the media.
    pub fn uncertain(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.uncertain.iter().map(|(number, _)| *number)
    }

    /// How many states there are, counted by the stores that reached the media; `u128::MAX` if there are more. Two of
    /// them may have the same content.
    #[must_use]
    pub fn states(&self) -> u128 {
        self.uncertain.iter().fold(1, |states: u128, (_, line)| states.saturating_mul(choices(line)))
    }

    /// The state with this number, below [`states`](Self::states). 0: nothing uncertain is on the media; the last one:
    /// all is.
    #[must_use]
    pub fn state(&self, number: u128) -> State {
        let mut left = number;
        self.state_by(|line| {
            let all = choices(line);
            let digit = left % all;
            left /= all;
            let (_, streamed) = line.uncertain();
            Choice {
                prefix: digit.checked_shr(streamed as u32).unwrap_or(0) as usize,
                streamed: digit as u64 & mask(streamed),
            }
        })
    }

    /// The first `most` states.
    pub fn all(&self, most: u128) -> impl Iterator<Item = State> + '_ {
        (0..self.states().min(most)).map(|number| self.state(number))
    }

    /// The state in which nothing uncertain is on the media.
    #[must_use]
    pub fn lost(&self) -> State {
        self.state_by(|_| Choice { prefix: 0, streamed: 0 })
    }

    /// The state in which everything is on the media.
    #[must_use]
    pub fn kept(&self) -> State {
        self.state_by(whole)
    }

    /// A state drawn by a seed, in one of [`WAYS`], which is the remainder of the seed by their number: each word by
    /// itself; each line by itself, as a whole; one line by word, and all others kept; the same, all others lost; all
    /// lines up to one; all lines from one on; everything but one word of one line; nothing but one word of one line.
    /// Of stores through the cache that word is the last one, or the first.
    #[must_use]
    pub fn draw(&self, seed: u64) -> State {
        let mut random = Random::new(seed);
        let one = random.below_u64(self.uncertain.len() as u64) as usize;
        let none = |_: &Line| Choice { prefix: 0, streamed: 0 };
        let mut index = 0;
        self.state_by(|line| {
            let at = index;
            index += 1;
            let by_word = |random: &mut Random| {
                let (cached, streamed) = line.uncertain();
                Choice {
                    prefix: random.below_u64(cached as u64 + 1) as usize,
                    streamed: random.next() & mask(streamed),
                }
            };
            let one_word = |random: &mut Random| {
                let (cached, streamed) = line.uncertain();
                match random.below_u64(streamed.clamp(1, 64) as u64) {
                    bit if streamed > 0 => Choice { prefix: cached, streamed: mask(streamed) & !(1 << bit) },
                    _ => Choice { prefix: cached.saturating_sub(1), streamed: 0 },
                }
            };
            match seed % WAYS {
                0 => by_word(&mut random),
                1 if random.next() & 1 == 0 => none(line),
                2 | 3 if at == one => by_word(&mut random),
                3 => none(line),
                4 if at > one => none(line),
                5 if at < one => none(line),
                6 if at == one => one_word(&mut random),
                7 if at == one => {
                    let (Choice { prefix, streamed }, all) = (one_word(&mut random), whole(line));
                    Choice { prefix: all.prefix - prefix, streamed: all.streamed & !streamed }
                }
                7 => none(line),
                _ => whole(line),
            }
        })
    }

    fn state_by(&self, mut choice: impl FnMut(&Line) -> Choice) -> State {
        let media = self.certain.snapshot();
        let lines = self.uncertain.iter().map(|(number, line)| (*number, line));
        change(&media, lines, |_, line, content: &mut [u8; LINE]| line.apply(choice(line), content));
        State { media }
    }
}

fn whole(line: &Line) -> Choice {
    let (cached, streamed) = line.uncertain();
    Choice { prefix: cached, streamed: mask(streamed) }
}

fn mask(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// How many contents a line may have, by its stores.
fn choices(line: &Line) -> u128 {
    let (cached, streamed) = line.uncertain();
    (cached as u128 + 1).saturating_mul(1_u128.checked_shl(streamed as u32).unwrap_or(u128::MAX))
}
