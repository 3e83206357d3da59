//! The images that a power cut may leave, one after the other.
//!
//! A log falls into *epochs*: an epoch ends where a flush begins or where a durable write has been seen to complete. What was
//! written in an epoch is outstanding together, so that any part of it may survive:
//!
//! ```text
//!   write A   write B   write C | flush | write D   FUA E (seen) | write F ...
//!   '------- epoch of 3 -------'         '----- epoch of 2 -----'  '- E is certain from here on
//! ```
//!
//! A [`Cut`] names the survivors of an epoch; a [`CutPlan`] says which cuts are made of it. What a cut in the middle of an epoch
//! leaves is one of its subsets, so that the end of each epoch shows everything that *may* be there. What *must* be there is
//! another question: where somebody was promised something in the middle of an epoch (because a flush is missing, or another
//! thread has written since), the cuts of that position alone are made, for which `start` and `end` are the same.
//!
//! Events reach the device in the order of the log, but for those that overlap and were in flight together: of two such events
//! either may be the last, whole or torn, and stay so for good, whatever is flushed afterwards. There are cuts for both orders
//! ([`Cut::late`]).

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::str::FromStr;

use crate::{BLOCK_SIZE, Event, MemoryDevice, Replay};

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
#[error("`{0}` names no cut: START-END:EVENT,EVENT/EVENTsSECTORS!EVENT is expected")]
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

/// Which cuts of an epoch are made.
#[derive(Clone, Copy, Debug)]
pub struct CutPlan {
    /// Up to so many outstanding requests every subset is made: 12 are 4096 cuts. At most 20 count.
    pub exhaustive: usize,
    /// With more of them: every prefix, every single one missing, every single one surviving, and so many subsets by chance.
    pub sampled: usize,
    /// Places in each request where it is torn, at most (all of them, if it has fewer sectors).
    pub tears: usize,
}

impl Default for CutPlan {
    fn default() -> Self {
        CutPlan { exhaustive: 12, sampled: 256, tears: 8 }
    }
}

impl CutPlan {
    /// The cuts of the epoch from the position of `replay` to `end` (of [`Replay::epoch_end`]). If `end` is that position itself, the
    /// cuts of the requests that are outstanding there. `random` gives the numbers for choices by chance.
    #[must_use]
    pub fn cuts(&self, replay: &Replay<'_>, end: usize, mut random: impl FnMut() -> u64) -> Vec<Cut> {
        let outstanding = replay.outstanding(end);
        let count = outstanding.len();
        let mut subsets: BTreeSet<Vec<usize>> = BTreeSet::new();
        if count <= self.exhaustive.min(20) {
            for mask in 0..1u32 << count {
                subsets.insert(chosen(&outstanding, |index| mask >> index & 1 == 1));
            }
        } else {
            for at in 0..=count {
                subsets.insert(outstanding[..at].to_vec());
            }
            for at in 0..count {
                subsets.insert(vec![outstanding[at]]);
                subsets.insert(chosen(&outstanding, |index| index != at));
            }
            for _ in 0..self.sampled {
                let odds = random() % 7 + 1;
                subsets.insert(chosen(&outstanding, |_| random() % 8 < odds));
            }
        }
        let cut = |whole, torn| Cut { start: replay.position(), end, whole, torn, late: None };
        let mut cuts: Vec<Cut> = subsets.into_iter().map(|whole| cut(whole, None)).collect();
        for (at, &event) in outstanding.iter().enumerate() {
            let others = [outstanding[..at].to_vec(), chosen(&outstanding, |index| index != at)];
            for tear in self.tears_of(&replay.events[event], &mut random) {
                for whole in &others[..if others[0] == others[1] { 1 } else { 2 }] {
                    cuts.push(cut(whole.clone(), Some((event, tear))));
                }
            }
        }
        for &event in replay.overtaken.iter().filter(|event| **event < end) {
            let late = |cut: Cut| Cut { late: Some(event), ..cut };
            let alone = chosen(&outstanding, |index| outstanding[index] == event);
            if alone.is_empty() || count > 1 {
                cuts.push(late(cut(alone.clone(), None)));
            }
            cuts.push(late(cut(outstanding.clone(), None)));
            if !alone.is_empty() {
                let others = chosen(&outstanding, |index| outstanding[index] != event);
                let tears = self.tears_of(&replay.events[event], &mut random);
                cuts.extend(tears.into_iter().map(|tear| late(cut(others.clone(), Some((event, tear))))));
            }
        }
        cuts
    }

    fn tears_of(&self, event: &Event, random: &mut impl FnMut() -> u64) -> Vec<Tear> {
        let Event::Write { data, .. } = event else { return Vec::new() };
        let sectors = data.blocks() as u32 * SECTORS_PER_BLOCK;
        if sectors == 0 || self.tears == 0 {
            return Vec::new();
        }
        if sectors as usize - 1 <= self.tears {
            return (1..sectors).map(Tear::Sectors).collect();
        }
        let mut tears = BTreeSet::from([1, sectors - 1]);
        // Random numbers may repeat themselves for ever.
        for _ in 0..self.tears.saturating_mul(8) {
            if tears.len() >= self.tears {
                break;
            }
            tears.insert(random() as u32 % (sectors - 1) + 1);
        }
        let blocks = (0..data.blocks().min(3).saturating_sub(1)).map(|_| Tear::Blocks(random()));
        tears.into_iter().map(Tear::Sectors).chain(blocks).collect()
    }
}

fn chosen(from: &[usize], mut choose: impl FnMut(usize) -> bool) -> Vec<usize> {
    from.iter().enumerate().filter(|(index, _)| choose(*index)).map(|(_, event)| *event).collect()
}

impl Replay<'_> {
    /// Where the epoch that begins here ends: the next flush, the next position at which a durable write had been seen to
    /// complete, or the end of the log.
    #[must_use]
    pub fn epoch_end(&self) -> usize {
        let rest = &self.events[self.position..];
        let flush = rest.iter().position(|event| matches!(event, Event::Flush)).unwrap_or(rest.len()) + self.position;
        let durable = self.events.iter().filter(|event| event.durable()).filter_map(Event::seen);
        durable.filter(|seen| *seen > self.position).min().map_or(flush, |seen| seen.min(flush))
    }

    /// Where the epoch after the one that ends at `end` begins: behind a flush that stands there.
    #[must_use]
    pub fn epoch_behind(&self, end: usize) -> usize {
        end + usize::from(matches!(self.events.get(end), Some(Event::Flush)))
    }

    /// Takes events until `position` are taken.
    pub fn advance_to(&mut self, position: usize) {
        while self.position < position && self.advance().is_some() {}
    }

    /// The events that a cut may lose if those up to `end` (at most all) were begun: not yet flushed, and not durable by themselves.
    #[must_use]
    pub fn outstanding(&self, end: usize) -> Vec<usize> {
        let end = end.min(self.events.len());
        let certain = |index: &usize| self.is_certain(*index);
        let earlier = self.volatile.iter().copied().filter(|index| !certain(index));
        let begun = (self.position..end).filter(|index| !matches!(self.events[*index], Event::Flush));
        earlier.chain(begun).collect()
    }

    fn is_certain(&self, index: usize) -> bool {
        self.events[index].durable() && self.events[index].seen_at(self.position)
    }

    /// The image that a cut leaves, and a fingerprint of how it differs from the content before the log: cuts of logs with
    /// the same beginning leave the same content if they have the same fingerprint (a hash of 64 bits). `before`: the
    /// fingerprint that [`advanced_to`](Self::advanced_to) gave for the present position.
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
            sum ^ block_hash(*at, &self.durable.load_block(*at).0) ^ block_hash(*at, &image.load_block(*at).0)
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
            // What was begun when this had been seen to complete comes behind it in any case.
            if last.is_none_or(|last| !event.seen_at(last)) && store(image, event, offset, tear) {
                touched.insert(at);
            }
        }
    }

    /// [`advance_to`](Self::advance_to), and the fingerprint of what is durable then, from the one before it (0 at the beginning of
    /// a log).
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
            sum ^ block_hash(*at, &old.load_block(*at).0) ^ block_hash(*at, &self.durable.load_block(*at).0)
        })
    }
}

/// Writes what survives of block `offset` of an event; tells whether anything does.
fn store(image: &MemoryDevice, event: &Event, offset: u64, tear: Option<Tear>) -> bool {
    let Event::Write { start, data, .. } = event else {
        image.punch(event.range().0 + offset, 1);
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
    let mut block = image.load_block(at);
    let bytes = sectors as usize * SECTOR;
    block.0[..bytes].copy_from_slice(&new.0[..bytes]);
    image.store_block(at, &block);
    true
}

/// A block of zeros has none: it is what a block is that was never written.
fn block_hash(at: u64, bytes: &[u8; BLOCK_SIZE]) -> u64 {
    if bytes == &[0; BLOCK_SIZE] {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(at);
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{AlignedBuf, BlockDevice, RecordingDevice, Request};

    fn text(device: &MemoryDevice) -> String {
        device.to_bytes().chunks(4096).map(|block| if block[0] == 0 { '.' } else { char::from(block[0]) }).collect()
    }

    fn images(log: &crate::CrashLog, plan: CutPlan) -> Vec<Vec<String>> {
        let mut replay = log.replay();
        let mut all = Vec::new();
        let mut before = 0;
        loop {
            let end = replay.epoch_end();
            let cuts = plan.cuts(&replay, end, || 5);
            all.push(cuts.iter().map(|cut| text(&replay.cut(cut, before).0)).collect());
            before = replay.advanced_to(replay.epoch_behind(end), before);
            if replay.position() >= log.events().len() && replay.epoch_end() <= replay.position() {
                break all;
            }
        }
    }

    const WHOLE: CutPlan = CutPlan { exhaustive: 12, sampled: 0, tears: 0 };

    #[test]
    fn an_epoch_ends_at_a_flush_and_behind_a_durable_write() {
        let device = RecordingDevice::new(MemoryDevice::new(4));
        device.write_slice(0, b"a").unwrap();
        device.write_slice(1, b"b").unwrap();
        device.flush().unwrap();
        device.write_slice(2, b"c").unwrap();
        device.write_fua(3, AlignedBuf::from_bytes(b"d")).unwrap();
        device.write_slice(0, b"e").unwrap();
        let found = images(&device.log(), WHOLE);
        assert_eq!(found[0], ["....", "a...", "ab..", ".b.."]);
        assert_eq!(found[1], ["ab..", "abc.", "abcd", "ab.d"]);
        // The durable write is certain now, the one before it is not.
        assert_eq!(found[2], ["ab.d", "abcd", "ebcd", "eb.d"]);
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn cuts_of_a_position_lose_what_no_flush_covered() {
        let device = RecordingDevice::new(MemoryDevice::new(4));
        device.write_slice(0, b"a").unwrap();
        device.flush().unwrap();
        device.write_slice(1, b"b").unwrap();
        device.write_fua(2, AlignedBuf::from_bytes(b"c")).unwrap();
        device.write_slice(3, b"d").unwrap();
        let log = device.log();
        let at = |position: usize| {
            let mut replay = log.replay();
            replay.advance_to(position);
            let cuts = WHOLE.cuts(&replay, position, || 5);
            cuts.iter().map(|cut| text(&replay.cut(cut, 0).0)).collect::<Vec<_>>()
        };
        assert_eq!(at(1), ["....", "a..."], "before its flush");
        assert_eq!(at(2), ["a..."]);
        assert_eq!(at(3), ["a...", "ab.."]);
        assert_eq!(at(4), ["a.c.", "abc."], "a durable write whose completion was seen is not lost");
    }

    #[test]
    fn requests_are_torn_at_sectors() {
        let device = RecordingDevice::new(MemoryDevice::from_bytes(&[b'o'; 3 * 4096]));
        device.write(0, AlignedBuf::from_bytes(&[b'n'; 2 * 4096])).unwrap();
        let log = device.log();
        let replay = log.replay();
        let cuts = CutPlan { exhaustive: 12, sampled: 0, tears: 99 }.cuts(&replay, 1, || 1);
        let torn: Vec<usize> = cuts[2..]
            .iter()
            .map(|cut| replay.cut(cut, 0).0.to_bytes().iter().take_while(|byte| **byte == b'n').count())
            .collect();
        assert_eq!(torn, (1..16).map(|sector| sector * 512).collect::<Vec<_>>());
        let blocks = Cut { start: 0, end: 1, whole: Vec::new(), torn: Some((0, Tear::Blocks(2))), late: None };
        assert_eq!(text(&replay.cut(&blocks, 0).0), "ono");
    }

    /// Everything that some cut of the end of the log leaves.
    fn left(device: &RecordingDevice, tears: usize) -> HashSet<Vec<u8>> {
        let log = device.log();
        let mut replay = log.replay();
        loop {
            let end = replay.epoch_end();
            let next = replay.epoch_behind(end);
            if next >= log.events().len() {
                replay.advance_to(next);
                let cuts = CutPlan { tears, ..WHOLE }.cuts(&replay, next, || 5);
                for cut in &cuts {
                    assert_eq!(cut.to_string().parse::<Cut>().as_ref(), Ok(cut));
                }
                return cuts.iter().map(|cut| replay.cut(cut, 0).0.to_bytes()).collect();
            }
            replay.advance_to(next);
        }
    }

    #[test]
    fn of_two_writes_in_flight_either_is_the_last() {
        let write = |at, byte| Request::write(at, AlignedBuf::from_bytes(&[byte; 4096]));
        let texts = |all: HashSet<Vec<u8>>| {
            let text = |bytes: &Vec<u8>| {
                match (bytes[0], bytes[4095]) {
                    (first, last) if first == last => {
                        if first == 0 {
                            "."
                        } else {
                            std::str::from_utf8(&bytes[..1]).unwrap()
                        }
                    }
                    _ => "torn",
                }
                .to_owned()
            };
            let mut texts: Vec<String> = all.iter().map(text).collect();
            texts.sort();
            texts.dedup();
            texts
        };
        let device = || RecordingDevice::new(MemoryDevice::new(1));
        // One after the other: the second is the last.
        let waited = device();
        drop(waited.submit(vec![write(0, b'a')]).wait());
        drop(waited.submit(vec![write(0, b'b')]).wait());
        waited.flush().unwrap();
        assert_eq!(texts(left(&waited, 0)), ["b"]);
        // Together: either, also behind the flush that covers both; but not once another came behind both.
        let together = device();
        let first = together.submit(vec![write(0, b'a')]);
        let second = together.submit(vec![write(0, b'b')]);
        assert_eq!(texts(left(&together, 0)), [".", "a", "b"]);
        assert_eq!(texts(left(&together, 3)), [".", "a", "b", "torn"]);
        drop((first.wait(), second.wait()));
        together.flush().unwrap();
        assert_eq!(texts(left(&together, 0)), ["a", "b"]);
        together.write(0, AlignedBuf::from_bytes(&[b'c'; 4096])).unwrap();
        together.flush().unwrap();
        assert_eq!(texts(left(&together, 0)), ["c"]);
        // A discard that nobody waits for is in flight for ever.
        let forgotten = device();
        drop(forgotten.submit(vec![Request::discard(0, 1)]));
        forgotten.write(0, AlignedBuf::from_bytes(&[b'd'; 4096])).unwrap();
        forgotten.flush().unwrap();
        assert_eq!(texts(left(&forgotten, 0)), [".", "d"]);
    }

    #[test]
    fn two_writes_in_flight_are_torn_into_each_other() {
        let device = RecordingDevice::new(MemoryDevice::new(1));
        let tickets =
            [b'a', b'b'].map(|byte| device.submit(vec![Request::write(0, AlignedBuf::from_bytes(&[byte; 4096]))]));
        let mixed: HashSet<(u8, u8)> = left(&device, 99).iter().map(|bytes| (bytes[0], bytes[4095])).collect();
        assert!(mixed.contains(&(b'a', b'b')) && mixed.contains(&(b'b', b'a')), "{mixed:?}");
        drop(tickets.map(crate::Ticket::wait));
    }

    #[test]
    fn many_requests_are_sampled() {
        let device = RecordingDevice::new(MemoryDevice::new(64));
        let writes = (0..40).map(|at| Request::write(at, AlignedBuf::from_bytes(b"x"))).collect();
        drop(device.submit(writes).wait());
        let log = device.log();
        let mut state = 1u64;
        let random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let cuts = CutPlan { exhaustive: 12, sampled: 100, tears: 0 }.cuts(&log.replay(), 40, random);
        assert!(cuts.len() > 41 + 78 && cuts.len() <= 41 + 78 + 100, "{}", cuts.len());
    }

    #[test]
    fn equal_contents_have_equal_fingerprints_and_names_lead_back() {
        let device = RecordingDevice::new(MemoryDevice::new(4));
        device.write_slice(0, b"a").unwrap();
        device.flush().unwrap();
        device.write_slice(0, b"b").unwrap();
        device.write_slice(1, b"a").unwrap();
        device.flush().unwrap();
        device.write_slice(0, b"a").unwrap();
        device.discard(1, 1).unwrap();
        device.flush().unwrap();
        let log = device.log();
        let mut replay = log.replay();
        let mut before = 0;
        let (mut contents, mut prints) = (HashSet::new(), HashSet::new());
        for _ in 0..3 {
            let end = replay.epoch_end();
            for cut in CutPlan::default().cuts(&replay, end, || 9) {
                let (image, print) = replay.cut(&cut, before);
                assert_eq!(contents.insert(image.to_bytes()), prints.insert(print), "{cut}");
                assert_eq!(cut.to_string().parse::<Cut>().unwrap(), cut);
            }
            before = replay.advanced_to(replay.epoch_behind(end), before);
        }
        assert_eq!(contents.len(), 5, "a, b., .a and ba, and none of it");
        assert!(contents.contains(&log.image_at(2, |_, _| false).to_bytes()));
        for wrong in ["", "1-2", "1-2:x", "1-2:1/3q4", "1:2"] {
            assert!(wrong.parse::<Cut>().is_err(), "{wrong}");
        }
    }
}
