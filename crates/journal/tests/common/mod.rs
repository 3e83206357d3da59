//! Shared by the tests: an image as a medium, and a ledger that says what a journal may hold after a power cut.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::collections::{BTreeMap, BTreeSet};

use f2fs_device::Claims;
use f2fs_journal::{Gather, Journal, Medium, MediumError, Record, Recovered, Uuid};

pub const OWNER: Uuid = Uuid(*b"owner of journal");

/// The content of a medium.
#[derive(Debug)]
pub struct Image {
    pub bytes: Vec<u8>,
    pub grain: usize,
    claims: Claims,
}

impl Image {
    pub fn new(bytes: Vec<u8>, grain: usize) -> Image {
        Image { bytes, grain, claims: Claims::new() }
    }
}

impl Medium for Image {
    fn grain(&self) -> usize {
        self.grain
    }

    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_only(&self) -> bool {
        true
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        let from = usize::try_from(offset).expect("it is an offset in memory");
        assert!(from.is_multiple_of(self.grain), "a read at {offset} begins no grain");
        into.copy_from_slice(&self.bytes[from..from + into.len()]);
        Ok(())
    }

    fn write(&self, _: u64, _: Gather<'_>) -> Result<(), MediumError> {
        panic!("looking at a journal writes")
    }

    fn persist(&self) -> Result<(), MediumError> {
        panic!("looking at a journal writes")
    }
}

/// The payload of the record with this number: the number, that of the record which it follows, and bytes that both of
/// them give.
pub fn payload(number: u64, follows: u64, bytes: usize) -> Vec<u8> {
    let mut all = [number.to_le_bytes(), follows.to_le_bytes(), (bytes as u64).to_le_bytes()].concat();
    // Half of them differ in their numbers only, so that words of one may complete another one.
    let mut word = if number.is_multiple_of(2) { 1 } else { number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 };
    for _ in 0..bytes {
        word = word.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        all.push((word >> 56) as u8);
    }
    all
}

/// The three numbers at the beginning of a payload, if the rest is as it should be.
pub fn numbers(bytes: &[u8]) -> Option<(u64, u64)> {
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let (number, follows, rest) = (word(0)?, word(8)?, word(16)?);
    let rest = usize::try_from(rest).ok().filter(|rest| *rest <= bytes.len())?;
    (payload(number, follows, rest) == bytes).then_some((number, follows))
}

/// A batch of records, begun and perhaps acknowledged at some position of the log.
#[derive(Clone, Debug)]
pub struct Batch {
    pub begun: usize,
    pub acknowledged: Option<usize>,
    /// The records' numbers, in their order.
    pub records: Vec<u64>,
    /// The number of the record that they follow; 0 for none.
    pub follows: u64,
    /// Stamp of the last one, if it is known.
    pub stamp: Option<u64>,
    pub lane: usize,
    /// A position of the lane behind which nothing of the batch begins.
    pub end: u64,
}

/// Space that was taken back.
#[derive(Clone, Debug)]
pub struct Truncation {
    pub begun: usize,
    pub acknowledged: Option<usize>,
    pub ends: Vec<u64>,
    /// The contents of the owner's area from then on.
    pub area: u64,
}

/// All that was asked of a journal.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub batches: Vec<Batch>,
    pub truncations: Vec<Truncation>,
    /// The number of the truncation that the owner's area names before any of these.
    pub area: u64,
    /// Records that were taken back in an earlier life.
    pub gone: BTreeSet<u64>,
}

/// A record that was replayed.
#[derive(Clone, Copy, Debug)]
pub struct Replayed {
    pub number: u64,
    pub follows: u64,
    pub stamp: u64,
    pub position: u64,
}

impl Ledger {
    /// The fault of a journal that was found after a power cut at this position. The records, if it has none.
    pub fn judge<M: Medium>(&self, at: usize, found: &Recovered<M>) -> Result<Vec<Replayed>, String> {
        self.judge_between(at, at, found)
    }

    /// As [`judge`](Self::judge), when all is durable that was acknowledged up to `at`, and what was begun up to
    /// `begun` may be.
    pub fn judge_between<M: Medium>(
        &self,
        at: usize,
        begun: usize,
        found: &Recovered<M>,
    ) -> Result<Vec<Replayed>, String> {
        for (lane, report) in found.lanes().iter().enumerate() {
            if !report.is_whole() {
                return Err(format!("lane {lane} counts as damaged: {report:?}"));
            }
        }
        let area = found.area().try_into().map(u64::from_le_bytes).map_err(|_| "the area is torn".to_owned())?;
        // Truncations are made one after the other.
        let over = self.truncations.iter().filter(|cut| cut.acknowledged.is_some_and(|end| end <= at));
        let least = over.map(|cut| cut.area).max().unwrap_or(self.area);
        let most = self.truncations.iter().filter(|cut| cut.begun <= begun).map(|cut| cut.area).max();
        if area < least || area > most.unwrap_or(self.area) {
            return Err(format!("the area says {area}, and {least} was durable"));
        }
        let ends = self.truncations.iter().find(|cut| cut.area == area).map(|cut| &cut.ends);
        let taken_back = |batch: &Batch| ends.is_some_and(|ends| batch.end <= ends[batch.lane]);

        let known: BTreeMap<u64, (&Batch, usize)> = self
            .batches
            .iter()
            .flat_map(|batch| batch.records.iter().enumerate().map(move |(at, number)| (*number, (batch, at))))
            .collect();
        let mut replayed = Vec::new();
        let mut stamps = BTreeMap::new();
        let mut last = (0, 0);
        let mut wrong = None;
        let mut look = |record: Record<'_>| -> Result<(), String> {
            let (number, follows) =
                numbers(record.payload).ok_or_else(|| format!("a record that nobody wrote: {record:?}"))?;
            let (batch, _) = known.get(&number).ok_or_else(|| format!("record {number} is one of an earlier life"))?;
            if batch.begun > begun {
                return Err(format!("record {number} was not begun"));
            }
            if taken_back(batch) && batch.acknowledged.is_some() {
                return Err(format!("record {number} was taken back"));
            }
            if (record.stamp, record.lane) <= last {
                return Err(format!("record {number}, {:?}, comes behind {last:?}", (record.stamp, record.lane)));
            }
            last = (record.stamp, record.lane);
            if follows != 0 {
                let before = known.get(&follows);
                let gone = self.gone.contains(&follows) || before.is_some_and(|(before, _)| taken_back(before));
                if !stamps.contains_key(&follows) && !gone {
                    return Err(format!("record {number} is there, and {follows} before it is not"));
                }
            }
            if stamps.insert(number, record.stamp).is_some() {
                return Err(format!("record {number} is there twice"));
            }
            replayed.push(Replayed { number, follows, stamp: record.stamp, position: record.position });
            Ok(())
        };
        found
            .for_each::<f2fs_journal::Error>(|record| {
                if wrong.is_none() {
                    wrong = look(record).err();
                }
                Ok(())
            })
            .map_err(|error| error.to_string())?;
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        for batch in &self.batches {
            let there: Vec<bool> = batch.records.iter().map(|number| stamps.contains_key(number)).collect();
            if !there.is_sorted_by(|a, b| a >= b) {
                return Err(format!("of the batch {:?} only {there:?} are there", batch.records));
            }
            let acknowledged = batch.acknowledged.is_some_and(|end| end <= at);
            if acknowledged && !taken_back(batch) && !there.iter().all(|there| *there) {
                return Err(format!("of the acknowledged batch {:?} only {there:?} are there", batch.records));
            }
            if let Some(stamp) = batch.records.last().and_then(|last| stamps.get(last))
                && batch.stamp.is_some_and(|promised| promised != *stamp)
            {
                return Err(format!(
                    "batch {:?} has the stamp {stamp}, and {:?} was promised",
                    batch.records, batch.stamp
                ));
            }
        }
        Ok(replayed)
    }

    /// The ledger after a power cut left just these records and this area: they are acknowledged, and no other one may
    /// ever come back.
    pub fn after(&self, replayed: &[Replayed], area: u64) -> Ledger {
        let there: BTreeMap<u64, &Replayed> = replayed.iter().map(|record| (record.number, record)).collect();
        let kept = |batch: &Batch| {
            let records: Vec<u64> = batch.records.iter().copied().filter(|number| there.contains_key(number)).collect();
            let last = there.get(records.last()?)?;
            let (begun, acknowledged) = (0, Some(0));
            Some(Batch {
                begun,
                acknowledged,
                records,
                stamp: Some(last.stamp),
                end: last.position + 1,
                ..batch.clone()
            })
        };
        let batches = self.batches.iter().filter_map(kept).collect();
        let follows = replayed.iter().map(|record| record.follows).filter(|number| !there.contains_key(number));
        Ledger { batches, truncations: Vec::new(), area, gone: follows.collect() }
    }
}

/// Looks at an image.
pub fn look(bytes: Vec<u8>, grain: usize) -> Result<Recovered<Image>, f2fs_journal::Error> {
    Journal::open(Image::new(bytes, grain), Some(OWNER))
}

/// Random numbers, the same for the same seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A record as it lies in an image: where its lane begins, the lane's bytes, and the position of the record.
#[derive(Clone, Copy, Debug)]
pub struct Lying {
    seed: u32,
    base: usize,
    pub ring: usize,
    pub position: usize,
}

/// Bytes of a record's header.
pub const RECORD: usize = 40;

fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut word = [0; 8];
    word[..BYTES].copy_from_slice(bytes.get(at..at + BYTES)?);
    Some(u64::from_le_bytes(word))
}

/// Where each lane ended when the journal was last opened to append, as the newer copy of the header says.
pub fn starts(image: &[u8]) -> Vec<u64> {
    let copy = newer(image);
    let lanes = number::<4>(image, copy + 60).unwrap_or(0).min(128) as usize;
    (0..lanes).map_while(|lane| number::<8>(image, copy + 264 + 16 * lane)).collect()
}

/// Where the newer copy of the header lies.
fn newer(image: &[u8]) -> usize {
    let turn = |at: usize| number::<8>(image, at + 48).unwrap_or(0);
    if turn(4096) > turn(0) { 4096 } else { 0 }
}

/// The records of all lanes, as the newer copy of the header and the lengths of the records say. The first one is at
/// the lane's head.
pub fn records(image: &[u8]) -> Vec<Lying> {
    let mut all = Vec::new();
    let copy = newer(image);
    let field = |at: usize| number::<4>(image, copy + at).unwrap_or(0) as usize;
    let (lanes, ring, grain) = (field(60).min(128), field(64), field(72).max(1));
    for lane in 0..lanes {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&image[copy + 32..copy + 48]);
        hasher.update(&(lane as u64).to_le_bytes());
        let seed = hasher.finalize();
        // A header that says more does not count.
        let head = number::<8>(image, copy + 256 + 16 * lane).filter(|head| *head < 1 << 62);
        let Some(head) = head.map(|head| head as usize).filter(|_| ring > 0 && 8192 + (lane + 1) * ring <= image.len())
        else {
            break;
        };
        let mut lying = Lying { seed, base: 8192 + lane * ring, ring, position: head };
        while lying.position < head + ring && lying.get::<8>(image, 16) == Some(lying.position as u64) {
            all.push(lying);
            let bytes = lying.get::<4>(image, 8).unwrap_or(0) as usize;
            lying.position += (RECORD + bytes).next_multiple_of(grain);
        }
    }
    all
}

impl Lying {
    /// Where a byte of the record lies, round the end of its lane.
    fn at(&self, offset: usize) -> usize {
        self.base + (self.position + offset) % self.ring
    }

    /// A number of the header. The header lies in one grain.
    pub fn get<const BYTES: usize>(&self, image: &[u8], at: usize) -> Option<u64> {
        number::<BYTES>(image, self.at(0) + at)
    }

    /// Changes some bytes of the header.
    pub fn put(&self, image: &mut [u8], at: usize, bytes: &[u8]) {
        let at = self.at(0) + at;
        image[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Makes its checksums right: of the payload, as long as the header says and round the end of the lane, and of the
    /// header.
    pub fn mend(&self, image: &mut [u8]) {
        let length = self.get::<4>(image, 8).unwrap_or(0) as usize;
        if length <= 2 * self.ring {
            let mut sum = crc32fast::Hasher::new();
            (0..length).for_each(|offset| sum.update(&[image[self.at(RECORD + offset)]]));
            self.put(image, 4, &sum.finalize().to_le_bytes());
        }
        let mut hasher = crc32fast::Hasher::new_with_initial(self.seed);
        hasher.update(&image[self.at(0) + 4..self.at(0) + RECORD]);
        self.put(image, 0, &hasher.finalize().to_le_bytes());
    }
}

/// Makes the checksums of both copies of the header right.
pub fn mend_headers(image: &mut [u8]) {
    for at in [0, 4096] {
        let Some(copy) = image.get_mut(at..at + 4096) else { return };
        let word = |at: usize| u32::from_le_bytes([copy[at], copy[at + 1], copy[at + 2], copy[at + 3]]);
        let used = 256 + 16 * (word(60) as usize).min(128);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&copy[..12]);
        hasher.update(&copy[16..used]);
        copy[12..16].copy_from_slice(&hasher.finalize().to_le_bytes());
    }
}
