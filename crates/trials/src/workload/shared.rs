//! Operations of threads that share a file and a directory. Now and then they meet, and do the same to one name at the
//! same time: one of them succeeds. In every other run names are linked and exchanged as well, and files replaced and
//! appended to.

use std::time::{Duration, Instant};

use f2fs_sync::Arc;
use f2fs_sync::atomic::{AtomicUsize, Ordering};

use crate::op::Op;
use f2fs_device_test::Random;

/// Operations from one meeting to the next.
const APART: usize = 3;
/// How long one waits for the others at most: they may have no operations left.
const PATIENCE: Duration = Duration::from_millis(1);

/// Names that come and go.
const NAMES: [&str; 3] = ["/A/n0", "/A/n1", "/B/n0"];
/// Files that keep their names: one with blocks, one whose data stands in its inode.
const FILES: [&str; 3] = ["/A/foo", "/A/foo", "/A/bar"];

/// Random operations of one of the threads.
#[derive(Debug)]
pub(crate) struct Sharing {
    random: Random,
    left: usize,
    /// Whether files get several names, change them, and are appended to.
    links: bool,
    /// Operations so far.
    done: usize,
    meeting: Meeting,
}

/// Where threads wait for each other.
#[derive(Clone, Debug)]
pub(crate) struct Meeting {
    threads: usize,
    /// How often somebody came.
    came: Arc<AtomicUsize>,
}

impl Meeting {
    pub(crate) fn new(threads: usize) -> Meeting {
        Meeting { threads, came: Arc::new(AtomicUsize::new(0)) }
    }

    fn wait(&self) {
        let before = self.came.fetch_add(1, Ordering::AcqRel);
        let all = (before / self.threads + 1) * self.threads;
        let begun = Instant::now();
        while self.came.load(Ordering::Acquire) < all && begun.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
    }
}

impl Sharing {
    pub(crate) fn new(seed: u64, meeting: Meeting) -> Sharing {
        let mut random = Random::new(seed);
        let left = 8 + random.below(12);
        Sharing { random, left, links: seed & 8 != 0, done: 0, meeting }
    }

    pub(crate) fn next(&mut self) -> Option<Op> {
        self.left = self.left.checked_sub(1)?;
        self.done += 1;
        if self.done.is_multiple_of(APART) {
            self.meeting.wait();
            let round = self.done / APART;
            let name = NAMES[round / 2 % NAMES.len()].to_owned();
            return Some(if round.is_multiple_of(2) { Op::Create(name) } else { Op::Unlink(name) });
        }
        let random = &mut self.random;
        let of =
            |random: &mut Random, all: &[&str]| random.pick(all).map_or_else(String::new, |path| (*path).to_owned());
        let (file, name) = (of(random, &FILES), of(random, &NAMES));
        // The same blocks again and again, whole and in part.
        let offset = random.below(3) as u64 * 4096 + *random.pick(&[0, 0, 1000, 2048]).unwrap_or(&0);
        let len = *random.pick(&[500, 2048, 4096, 4096, 9000]).unwrap_or(&1);
        let others: Vec<&str> = NAMES.into_iter().filter(|other| *other != name).collect();
        Some(match random.below(20) {
            8 if self.links => Op::Link(file, name),
            9 if self.links => Op::Link(name, of(random, &others)),
            10 if self.links => Op::Exchange(name, file),
            11 if self.links => Op::Replace(name, 5000),
            3 if self.links => match random.below(3) {
                0 => Op::Punch(file, offset, len as u64),
                1 => Op::Zero(file, offset, len as u64, random.chance(2)),
                _ => Op::Allocate(file, offset, len as u64, random.chance(2)),
            },
            4 if self.links => Op::Append(file, len),
            17 if self.links => Op::Append(name, len),
            18 if self.links => Op::SyncDir("/A".to_owned()),
            0..=4 => Op::Write(file, offset, len),
            5 => Op::WriteDurable(file, offset, len),
            6 => Op::Sync(file),
            7 => match random.below(4) {
                0 => Op::SetMode(file, 0o600 + random.below(64) as u16),
                1 => Op::SetOwner(file, random.below(9) as u32, random.below(9) as u32),
                2 => Op::SetXattr(file, "user.shared".to_owned(), 1 + random.below(60)),
                _ => Op::Truncate(file, *random.pick(&[100, 5000, 12_000]).unwrap_or(&0)),
            },
            8..=11 => Op::Create(name),
            12..=14 => Op::Unlink(name),
            15 | 16 => Op::Rename(name, of(random, &others)),
            17 => Op::Write(name, offset, len),
            18 => Op::WriteDurable(name, 0, len),
            _ => Op::Sync(name),
        })
    }
}
