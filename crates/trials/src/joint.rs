//! The states that a crash leaves of a volume and of its journal in persistent memory, both at the same time: the
//! volume loses whole requests that were not flushed, the journal words of 8 bytes that no fence was behind.
//!
//! ```text
//!   events:   write volume | write journal: line, line, line ... | fence | write volume | flush
//!                                        ^ the power goes: some words of these lines, and some of the requests
//! ```
//!
//! A recording has the changes of both in one order. They are done again, those of the journal to simulated lines, and
//! the power goes between any two stores: so also in the middle of a sync. Of each such moment some joint states are
//! drawn: the part of the volume that survives and the part of the journal that survives do not depend on each other.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hasher;

use f2fs_device::{BLOCK_SIZE, MemoryDevice};
use f2fs_device_test::pmem::SimulatedRegion;
use f2fs_device_test::{Event, Random};
use f2fs_pmem::{LINE, PersistentRegion};
use rustc_hash::FxHasher;

use crate::base::{Base, BaseKind};
use crate::judge::Expectation;
use crate::record::Recording;
use crate::several::{JOURNAL_BLOCKS, journal_start};
use crate::state::{look, look_and_use};
use crate::workload::Workload;

/// How states are chosen.
#[derive(Clone, Copy, Debug)]
pub struct JointPlan {
    /// States drawn at each moment.
    pub draws: u64,
    /// One in so many states is used, closed, and looked at again.
    pub used: u64,
}

/// Counts of the states that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JointTally {
    /// Moments at which the power was cut.
    pub moments: u64,
    /// Of them: in the middle of a write to the journal.
    pub within: u64,
    /// States that were looked at; each differs from the others in its content, or in what was promised.
    pub states: u64,
    /// Of them: in which something of the volume and words of the journal were uncertain at the same time.
    pub both: u64,
    /// Of them: used, closed and looked at again.
    pub used: u64,
}

impl JointTally {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: JointTally) -> JointTally {
        JointTally {
            moments: self.moments + other.moments,
            within: self.within + other.within,
            states: self.states + other.states,
            both: self.both + other.both,
            used: self.used + other.used,
        }
    }
}

/// The journal of a recording on simulated lines.
struct Journal {
    region: SimulatedRegion,
    start: u64,
    /// The content of the journal when everything survives.
    content: Vec<u8>,
    /// Line events after each event of the recording.
    after: Vec<usize>,
}

impl Journal {
    fn repeat(recording: &Recording) -> Result<Journal, String> {
        let image = recording.log.image_at(0, |_, _| false);
        let start = journal_start(&image).ok_or("the volume has no journal")?;
        // States differ in single blocks, and share the others.
        let media = MemoryDevice::with_chunks(JOURNAL_BLOCKS, 1);
        for at in 0..JOURNAL_BLOCKS {
            media.set_block(at, &image.block(start + at));
        }
        let content = media.to_bytes();
        let mut journal = Journal { region: SimulatedRegion::on(&media), start, content, after: vec![0] };
        for event in recording.log.events() {
            journal.repeat_event(event).map_err(|error| error.to_string())?;
            journal.after.push(journal.region.position());
        }
        Ok(journal)
    }

    fn repeat_event(&mut self, event: &Event) -> Result<(), f2fs_pmem::RegionError> {
        match event {
            Event::Write { start, data, durable, .. } if *start >= self.start => {
                let at = (start - self.start) as usize * BLOCK_SIZE;
                for (number, line) in data.as_bytes().chunks(LINE).enumerate() {
                    let at = at + number * LINE;
                    // The medium writes whole blocks for the lines that it was given.
                    if self.content[at..at + LINE] != *line {
                        self.content[at..at + LINE].copy_from_slice(line);
                        self.region.store_nontemporal(at, line)?;
                    }
                }
                if *durable {
                    self.region.fence();
                }
            }
            Event::FlushPart { start, .. } if *start >= self.start => self.region.fence(),
            Event::Flush => self.region.fence(),
            _ => {}
        }
        Ok(())
    }
}

/// The part of the volume that survives in one draw.
#[derive(Clone, Copy)]
enum Survivors {
    None,
    All,
    /// Each block by itself.
    Blocks,
    /// All requests up to one.
    UpTo(usize),
}

impl Survivors {
    fn draw(random: &mut Random, volatile: &[usize]) -> Survivors {
        match random.below(4) {
            0 => Survivors::None,
            1 => Survivors::All,
            2 => Survivors::Blocks,
            _ => Survivors::UpTo(random.pick(volatile).copied().unwrap_or(0)),
        }
    }

    fn has(self, random: &mut Random, event: usize) -> bool {
        match self {
            Survivors::None => false,
            Survivors::All => true,
            Survivors::Blocks => random.below(2) == 0,
            Survivors::UpTo(last) => event <= last,
        }
    }
}

/// Looks at joint states of a recorded workload, `most` at most.
///
/// # Errors
/// The first state that is not as it must be, in words.
pub fn explore_joint(
    recording: &Recording,
    plan: JointPlan,
    most: u64,
    random: &mut Random,
) -> Result<JointTally, String> {
    let journal = Journal::repeat(recording)?;
    let log = journal.region.log();
    let (mut lines, mut volume) = (log.replay(), recording.log.replay());
    // States differ in these blocks alone.
    let changed: BTreeSet<u64> = recording.log.events().iter().flat_map(blocks_of).collect();
    let changed: Vec<u64> = changed.into_iter().collect();
    let of_journal = &changed[changed.partition_point(|block| *block < journal.start)..];
    let mut seen = HashSet::new();
    let mut tally = JointTally::default();
    loop {
        let requests = volume.position();
        let line = lines.position();
        let within = line != journal.after[requests];
        let expectation = Expectation { recording, start: requests, end: requests + usize::from(within) };
        let cut = lines.cut();
        let of_volume: Vec<usize> = volume
            .volatile()
            .iter()
            .copied()
            .filter(|event| blocks_of(&recording.log.events()[*event]).all(|block| block < journal.start))
            .collect();
        tally.moments += 1;
        tally.within += u64::from(within);
        for draw in 0..plan.draws {
            if tally.states >= most {
                return Ok(tally);
            }
            let survivors = Survivors::draw(random, &of_volume);
            let image = volume.image(0, |event, _| survivors.has(random, event));
            let words = match draw {
                0 => cut.lost(),
                1 => cut.kept(),
                _ => cut.draw(random.next()),
            };
            for at in of_journal {
                let block = words.media().block(at - journal.start);
                if image.block(*at).0 != block.0 {
                    image.set_block(*at, &block);
                }
            }
            if !seen.insert(print(&image, &changed) ^ expectation.due()) {
                continue;
            }
            tally.states += 1;
            tally.both += u64::from(cut.states() > 1 && !of_volume.is_empty());
            let used = tally.states.is_multiple_of(plan.used.max(1));
            tally.used += u64::from(used);
            let judged = crate::pool::caught(|| {
                if used { look_and_use(&image, &expectation, 0).map(drop) } else { look(&image, &expectation) }
            });
            judged.map_err(|what| format!("after {requests} requests and {line} line events, draw {draw}: {what}"))?;
        }
        // The lines of a request first, then the request is over.
        let next = journal.after.get(requests + 1).copied();
        match next {
            None => return Ok(tally),
            Some(end) if line < end => {
                lines.advance();
                if lines.position() == end {
                    volume.advance();
                }
            }
            Some(_) => {
                volume.advance();
            }
        }
    }
}

fn blocks_of(event: &Event) -> std::ops::Range<u64> {
    let (start, blocks) = event.range();
    start..start + blocks
}

/// A key that tells one content from another.
fn print(image: &MemoryDevice, changed: &[u64]) -> u64 {
    let mut hasher = FxHasher::default();
    for at in changed {
        hasher.write(&image.block(*at).0);
    }
    hasher.finish()
}

/// The bases whose journals lie in persistent memory: with data in it, and without.
const BASES: [BaseKind; 2] = [BaseKind::DataJournaled, BaseKind::LineJournaled];

/// Runs random workloads until so many states were looked at, from this seed on, each seed on all bases; gives the
/// counts, and the faults with their workloads. A run with few states looks at as many on each base.
///
/// # Errors
/// The base volumes cannot be made.
pub fn campaign(states: u64, seed: u64, threads: usize, plan: JointPlan) -> Result<(JointTally, Vec<String>), String> {
    let bases = BASES.map(Base::new).into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let seeds = seed..seed.saturating_add(states.div_ceil(STATES).saturating_mul(4));
    let jobs: Vec<(u64, &Base)> = seeds.flat_map(|seed| bases.iter().map(move |base| (seed, base))).collect();
    let most = STATES.min(states.div_ceil(BASES.len() as u64));
    let result = f2fs_sync::Mutex::new((JointTally::default(), Vec::new()));
    crate::pool::each(&jobs, threads, |_, (seed, base)| {
        let workload = Workload::Random(base.kind, *seed);
        let explored = workload
            .run(base)
            .map_err(|error| error.to_string())
            .and_then(|recording| explore_joint(&recording, plan, most, &mut Random::new(*seed)));
        let mut result = result.lock();
        match explored {
            Ok(tally) => result.0 = result.0.plus(tally),
            Err(what) => result.1.push(format!("{workload}: {what}")),
        }
        result.0.states < states && result.1.is_empty()
    });
    Ok(result.into_inner())
}

/// States of one workload at most.
const STATES: u64 = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    const OPS: &str = "write /A/foo 0 5000; sync /A/foo; create /A/new; write /A/new 0 9000; sync /A/new; \
        durable /A/foo 4096 4096; write /A/bar 0 300; sync /A/bar; checkpoint; write /A/foo 0 10; sync /A/foo";

    fn recorded(kind: BaseKind, ops: &str) -> Recording {
        let base = Base::new(kind).unwrap();
        format!("{}: {ops}", kind.name()).parse::<Workload>().unwrap().run(&base).unwrap()
    }

    #[test]
    fn what_was_synced_is_there_whatever_is_lost_of_both() {
        // Without data in it a record has fewer lines, and a flush comes before it.
        for (kind, [within, states, both, used]) in BASES.into_iter().zip([[100, 300, 100, 5], [30, 70, 1, 1]]) {
            let plan = JointPlan { draws: 3, used: 40 };
            let tally = explore_joint(&recorded(kind, OPS), plan, 7000, &mut Random::new(3)).unwrap();
            println!("{kind:?}: {tally:?}");
            assert!(tally.within > within && tally.states > states && tally.both > both && tally.used > used);
        }
    }

    /// A judge that cannot see a lost fence would pass anything: here the last sync's record loses a line that a fence
    /// was behind.
    #[test]
    fn a_line_that_is_lost_behind_its_fence_is_seen() {
        for kind in BASES {
            let recording = recorded(kind, "write /A/foo 0 5000; sync /A/foo");
            let end = recording.log.events().len();
            let journal = Journal::repeat(&recording).unwrap();
            let image = recording.log.image_at(end, |_, _| false);
            let expectation = Expectation { recording: &recording, start: end, end };
            look(&image, &expectation).unwrap();
            let before = recording.log.image_at(0, |_, _| false);
            let mut at = (0..JOURNAL_BLOCKS).rev().map(|at| journal.start + at);
            let last = at.find(|at| image.block(*at).0 != before.block(*at).0).unwrap();
            image.set_block(last, &before.block(last));
            look(&image, &expectation).unwrap_err();
        }
    }

    #[test]
    fn a_run_with_few_states_has_all_bases() {
        let plan = JointPlan { draws: 2, used: 40 };
        let (tally, faults) = campaign(60, 1, 1, plan).unwrap();
        assert_eq!((tally.states, faults), (60, Vec::new()));
        let of = |kind| {
            let recording = Workload::Random(kind, 1).run(&Base::new(kind).unwrap()).unwrap();
            explore_joint(&recording, plan, 30, &mut Random::new(1)).unwrap()
        };
        assert_eq!(tally, of(BASES[0]).plus(of(BASES[1])), "and the same of them each time");
    }
}
