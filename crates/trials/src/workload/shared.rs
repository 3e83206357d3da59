//! Operations of threads that share a file and a directory.

use crate::op::Op;
use crate::random::Random;

/// Names that come and go.
const NAMES: [&str; 3] = ["/A/n0", "/A/n1", "/B/n0"];
/// Files that keep their names: one with blocks, one whose data stands in its inode.
const FILES: [&str; 3] = ["/A/foo", "/A/foo", "/A/bar"];

/// Operations by chance of one of the threads.
#[derive(Debug)]
pub(crate) struct Sharing {
    random: Random,
    left: usize,
}

impl Sharing {
    pub(crate) fn new(seed: u64) -> Sharing {
        let mut random = Random::new(seed);
        let left = 8 + random.below(12);
        Sharing { random, left }
    }

    pub(crate) fn next(&mut self) -> Option<Op> {
        self.left = self.left.checked_sub(1)?;
        let random = &mut self.random;
        let of =
            |random: &mut Random, all: &[&str]| random.pick(all).map_or_else(String::new, |path| (*path).to_owned());
        let (file, name) = (of(random, &FILES), of(random, &NAMES));
        // The same blocks again and again, whole and in part.
        let offset = random.below(3) as u64 * 4096 + *random.pick(&[0, 0, 1000, 2048]).unwrap_or(&0);
        let len = *random.pick(&[500, 2048, 4096, 4096, 9000]).unwrap_or(&1);
        Some(match random.below(20) {
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
            15 | 16 => {
                let others: Vec<&str> = NAMES.into_iter().filter(|other| *other != name).collect();
                Op::Rename(name, of(random, &others))
            }
            17 => Op::Write(name, offset, len),
            18 => Op::WriteDurable(name, 0, len),
            _ => Op::Sync(name),
        })
    }
}
