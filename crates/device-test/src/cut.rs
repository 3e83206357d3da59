//! The images that a power cut may leave, one after the other.
//!
//! A log falls into *epochs*: an epoch ends where a flush begins or where a durable write has been seen to complete.
//! The writes of an epoch are outstanding together, so any part of them may survive:
//!
//! ```text
//!   write A   write B   write C | flush | write D   FUA E (seen) | write F ...
//!   '------- epoch of 3 -------'         '----- epoch of 2 -----'  '- E is certain from here on
//! ```
//!
//! A [`Cut`] names the survivors of an epoch; a [`CutPlan`] says which cuts are made of it. A cut in the middle of an
//! epoch leaves one of its subsets, so the end of each epoch shows everything that *may* be there. What *must* be there
//! is another question. A promise may have been given in the middle of an epoch, because a flush is missing or another
//! thread has written since. For that position alone cuts are made with `start` and `end` the same.
//!
//! Events reach the device in the order of the log, but for those that overlap and were in flight together: of two such
//! events either may be the last, whole or torn, and stay so for good, whatever is flushed afterwards. There are cuts
//! for both orders ([`Cut::late`]).

mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::str::FromStr;

use f2fs_device::{BLOCK_SIZE, BlockDevice, MemoryDevice};

use crate::{Event, Replay};

pub use plan::CutPlan;

/// Bytes of a sector: what a device writes as a whole at least.
const SECTOR: usize = 512;
const SECTORS_PER_BLOCK: u32 = (BLOCK_SIZE / SECTOR) as u32;

/// How one request survives in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tear {
    /// The first so many sectors of 512 bytes were written.
    Sectors(u32),
    /// Each block was written or not, as the bits of this number, taken round and round, say.
    Blocks(u64),
}

/// The requests that survive a cut at the end of an epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    /// Events before the epoch.
    pub start: usize,
    /// Events up to the end of the epoch.
    pub end: usize,
    /// Outstanding events that survive as a whole, in order.
    pub whole: Vec<usize>,
    /// An outstanding event that survives in part.
    pub torn: Option<(usize, Tear)>,
    /// An event that reached the device behind all that overlap it and were begun while it was in flight.
    pub late: Option<usize>,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}:", self.start, self.end)?;
        for (index, event) in self.whole.iter().enumerate() {
            write!(f, "{}{event}", if index == 0 { "" } else { "," })?;
        }
        match self.torn {
            None => {}
            Some((event, Tear::Sectors(sectors))) => write!(f, "/{event}s{sectors}")?,
            Some((event, Tear::Blocks(mask))) => write!(f, "/{event}b{mask}")?,
        }
        self.late.map_or(Ok(()), |event| write!(f, "!{event}"))
    }
}

/// A text that is no [`Cut`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a cut: START-END:EVENT,EVENT/EVENTsSECTORS!EVENT is expected")]
pub struct ParseCutError(String);

impl FromStr for Cut {
    type Err = ParseCutError;

    fn from_str(text: &str) -> Result<Cut, ParseCutError> {
        parse(text).ok_or_else(|| ParseCutError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Cut> {
    let (range, rest) = text.split_once(':')?;
    let (start, end) = range.split_once('-')?;
    let (rest, late) = match rest.split_once('!') {
        None => (rest, None),
        Some((rest, late)) => (rest, Some(late.parse().ok()?)),
    };
    let (whole, torn) = rest.split_once('/').map_or((rest, None), |(whole, torn)| (whole, Some(torn)));
    let whole =
        whole.split(',').filter(|word| !word.is_empty()).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let torn = match torn {
        None => None,
        Some(torn) => {
            let at = torn.find(['s', 'b'])?;
            let event = torn[..at].parse().ok()?;
            let number = &torn[at + 1..];
            let sectors = torn.as_bytes()[at] == b's';
            let tear = if sectors { Tear::Sectors(number.parse().ok()?) } else { Tear::Blocks(number.parse().ok()?) };
            Some((event, tear))
        }
    };
    Some(Cut { start: start.parse().ok()?, end: end.parse().ok()?, whole, torn, late })
}

impl Replay<'_> {
    /// Where the epoch that begins here ends: the next flush, the next position at which a durable write had been seen
    /// to complete, or the end of the log.
    #[must_use]
    pub fn epoch_end(&self) -> usize {
        let rest = &self.events[self.position..];
        let flush = rest.iter().position(Event::is_flush).unwrap_or(rest.len()) + self.position;
        let durable = self.events.iter().filter(|event| event.durable()).filter_map(Event::seen);
        durable.filter(|seen| *seen > self.position).min().map_or(flush, |seen| seen.min(flush))
    }

    /// Where the epoch after the one that ends at `end` begins: behind a flush that stands there.
    #[must_use]
    pub fn epoch_behind(&self, end: usize) -> usize {
        end + usize::from(self.events.get(end).is_some_and(Event::is_flush))
    }

    /// Takes events until `position` are taken.
    pub fn advance_to(&mut self, position: usize) {
        while self.position < position && self.advance().is_some() {}
    }

    /// The events that a cut may lose if those up to `end` (at most all) were begun: not yet flushed, and not durable
    /// by themselves.
    #[must_use]
    pub fn outstanding(&self, end: usize) -> Vec<usize> {
        let end = end.min(self.events.len());
        let certain = |index: &usize| self.is_certain(*index);
        let earlier = self.volatile.iter().copied().filter(|index| !certain(index));
        let begun = (self.position..end).filter(|index| !self.events[*index].is_flush());
        earlier.chain(begun).collect()
    }

    fn is_certain(&self, index: usize) -> bool {
        self.events[index].durable() && self.events[index].seen_at(self.position)
    }

    /// The image that a cut leaves, and a fingerprint of how it differs from the content before the log: cuts of logs
    /// with the same beginning leave the same content if they have the same fingerprint (a hash of 64 bits). `before`:
    /// the fingerprint that [`advanced_to`](Self::advanced_to) gave for the present position.
    #[must_use]
    pub fn cut(&self, cut: &Cut, before: u64) -> (MemoryDevice, u64) {
        let image = self.durable.snapshot();
        let certain = self.volatile.iter().copied().filter(|index| self.is_certain(*index));
        let mut events: Vec<(usize, Option<Tear>)> = certain.map(|index| (index, None)).collect();
        events.extend(cut.whole.iter().map(|index| (*index, None)));
        events.extend(cut.torn.map(|(index, tear)| (index, Some(tear))));
        events.sort_unstable_by_key(|(index, _)| *index);
        let mut touched = BTreeSet::new();
        for (index, tear) in &events {
            let Some(event) = self.events.get(*index) else { continue };
            let (start, blocks) = event.range();
            for offset in 0..blocks {
                let at = start + offset;
                if self.applied.get(&at).is_none_or(|last| last < index) && store(&image, event, offset, *tear) {
                    touched.insert(at);
                }
            }
        }
        if let Some(late) = cut.late.filter(|late| *late < self.events.len()) {
            self.land_last(late, &events, &image, &mut touched);
        }
        let difference = touched.iter().fold(0, |sum, at| {
            sum ^ block_hash(*at, &self.durable.block(*at).0) ^ block_hash(*at, &image.block(*at).0)
        });
        (image, before ^ difference)
    }

    /// Lets an event be the last of those that were in flight with it, if it survives: surely, or among `surviving`.
    fn land_last(
        &self,
        late: usize,
        surviving: &[(usize, Option<Tear>)],
        image: &MemoryDevice,
        touched: &mut BTreeSet<u64>,
    ) {
        let tear = match surviving.iter().find(|(index, _)| *index == late) {
            Some((_, tear)) => *tear,
            // A flush has covered it.
            None if late < self.position && !self.volatile.contains(&late) => None,
            None => return,
        };
        let event = &self.events[late];
        let (start, blocks) = event.range();
        let covers = |index: usize, at: u64| {
            let (start, blocks) = self.events[index].range();
            (start..start + blocks).contains(&at)
        };
        for offset in 0..blocks {
            let at = start + offset;
            let others = surviving.iter().map(|(index, _)| *index).filter(|index| covers(*index, at));
            let last = others.chain(self.applied.get(&at).copied()).max();
            // A write that was begun when this one had been seen to complete comes behind it in any case.
            if last.is_none_or(|last| !event.seen_at(last)) && store(image, event, offset, tear) {
                touched.insert(at);
            }
        }
    }

    /// [`advance_to`](Self::advance_to), and the fingerprint of the durable state then, from the one before it (0 at
    /// the beginning of a log).
    pub fn advanced_to(&mut self, position: usize, before: u64) -> u64 {
        let old = self.durable.snapshot();
        let volatile = self.volatile.clone();
        let from = self.position;
        self.advance_to(position);
        let mut touched = BTreeSet::new();
        for index in volatile.into_iter().chain(from..self.position) {
            let (start, blocks) = self.events[index].range();
            touched.extend(start..start + blocks);
        }
        touched.iter().fold(before, |sum, at| {
            sum ^ block_hash(*at, &old.block(*at).0) ^ block_hash(*at, &self.durable.block(*at).0)
        })
    }
}

/// Writes what survives of block `offset` of an event; tells whether anything does.
fn store(image: &MemoryDevice, event: &Event, offset: u64, tear: Option<Tear>) -> bool {
    let Event::Write { start, data, .. } = event else {
        // The block is one of the image, and memory refuses nothing else.
        let _ = image.discard(event.range().0 + offset, 1);
        return true;
    };
    let at = start + offset;
    let new = &data.as_blocks()[offset as usize];
    let sectors = match tear {
        None => SECTORS_PER_BLOCK,
        Some(Tear::Sectors(sectors)) => {
            sectors.saturating_sub(offset as u32 * SECTORS_PER_BLOCK).min(SECTORS_PER_BLOCK)
        }
        Some(Tear::Blocks(mask)) => u32::from(mask >> (offset % 64) & 1 == 1) * SECTORS_PER_BLOCK,
    };
    if sectors == 0 {
        return false;
    }
    let mut block = image.block(at);
    let bytes = sectors as usize * SECTOR;
    block.0[..bytes].copy_from_slice(&new.0[..bytes]);
    image.set_block(at, &block);
    true
}

/// A block of zeros has none: it is the content of a block that was never written.
fn block_hash(at: u64, bytes: &[u8; BLOCK_SIZE]) -> u64 {
    if bytes == &[0; BLOCK_SIZE] {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(at);
    hasher.write(bytes);
    hasher.finish()
}
