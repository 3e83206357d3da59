//! How much more than the user's blocks is written, by how victims are chosen: the segment manager alone, over blocks
//! that are overwritten again and again.
//!
//! ```text
//! cargo run --release --example write_amplification [-- SEGMENTS [TURNOVER]]
//! ```
//!
//! Writes go to free segments only (no SSR), as on zoned devices; moved blocks go to the cold log, or, in the last
//! column, into the holes of segments whose blocks are about as old (`AT_SSR`). Each cell is blocks written (user's and
//! moved) for each block of the user's, over the last TURNOVER (6) times the volume's size, after half as much that
//! does not count. *Uniform*: every block is as likely. *Zipf*: exponent 0.99, places shuffled. *Hot and cold*: nine of
//! ten writes go to a tenth of the blocks. Time, which ages are counted in, passes by a second each thousandth of the
//! volume.
//!
//! Exit codes: those of [`f2fs_examples::program`].

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use f2fs::format::summary::{Summary, SummaryBlock};
use f2fs::format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_device_test::Random;
use f2fs_examples::program;
use f2fs_segment::{
    AgeThreshold, Class, Run, SegmentConfig, SegmentError, SegmentManager, SummarySource, VictimPolicy,
};

/// Free segments at which cleaning begins, and how many it makes.
const LOW: u32 = 12;
const BATCH: u32 = 8;

/// Whose block it is: nobody asks.
fn summary() -> [Summary; 1] {
    [Summary::new(Nid(9), 0, 0)]
}

/// A number below `limit`.
fn below(random: &mut Random, limit: usize) -> usize {
    (random.unit() * limit as f64) as usize
}

/// Which block is written next.
enum Pattern {
    Uniform,
    /// The distribution's sums, and the blocks in the order of their ranks.
    Zipf(Vec<f64>, Vec<u32>),
    HotCold,
}

impl Pattern {
    fn zipf(blocks: usize, random: &mut Random) -> Pattern {
        let mut sum = 0.0;
        let sums = (1..=blocks).map(|rank| (sum += (rank as f64).powf(-0.99), sum).1).collect();
        let mut places: Vec<u32> = (0..blocks as u32).collect();
        for at in (1..blocks).rev() {
            places.swap(at, below(random, at + 1));
        }
        Pattern::Zipf(sums, places)
    }

    fn next(&self, blocks: usize, random: &mut Random) -> usize {
        match self {
            Pattern::Uniform => below(random, blocks),
            Pattern::Zipf(sums, places) => {
                let at = random.unit() * sums.last().copied().unwrap_or(1.0);
                places[sums.partition_point(|sum| *sum < at).min(blocks - 1)] as usize
            }
            Pattern::HotCold => {
                let hot = blocks / 10;
                if below(random, 10) != 0 { below(random, hot) } else { hot + below(random, blocks - hot) }
            }
        }
    }
}

/// Nobody asks who owned a block by its summary.
struct NoSummaries;

impl SummarySource for NoSummaries {
    fn read_summary(&self, _: SegmentNo) -> Result<Box<SummaryBlock>, Box<dyn Error + Send + Sync>> {
        Ok(SummaryBlock::new_box())
    }
}

/// How victims are chosen, and where their blocks go.
#[derive(Clone, Copy)]
struct Way {
    policy: VictimPolicy,
    /// Among others of their age, not to the cold log.
    same_age: bool,
}

/// A volume without files: logical blocks and where they are.
struct World {
    manager: SegmentManager,
    places: Vec<BlockAddr>,
    /// The logical block of each block of the main area.
    owners: Vec<u32>,
    way: Way,
    now: u64,
    moved: u64,
}

impl World {
    fn new(segments: u32, utilisation: f64, way: Way) -> Result<World, SegmentError> {
        // Without a reserve no log of a user's takes a segment with holes before the last one is gone.
        let config = SegmentConfig::embedded(segments, 1)?.user_floor(2).summaries(Arc::new(NoSummaries));
        let config = config.ssr(way.same_age);
        let main = config.geometry.main_blocks() as usize;
        let manager = SegmentManager::empty(config)?;
        let blocks = ((main - 6 * 512) as f64 * utilisation) as usize;
        let mut world =
            World { manager, places: vec![BlockAddr::NULL; blocks], owners: vec![0; main], way, now: 1, moved: 0 };
        for block in 0..blocks {
            world.write(block)?;
        }
        Ok(world)
    }

    /// Writes a logical block for the user.
    fn write(&mut self, block: usize) -> Result<(), SegmentError> {
        let mut runs: Vec<Run> = Vec::with_capacity(1);
        self.manager.allocate_as(Class::User, LogType::WarmData, &summary(), self.now, &mut runs)?;
        self.place(block, &runs)
    }

    /// Moves a logical block out of a victim.
    fn relocate(&mut self, block: usize, from: SegmentNo) -> Result<(), SegmentError> {
        let mut runs: Vec<Run> = Vec::with_capacity(1);
        if self.way.same_age {
            self.manager.allocate_aged(from, &summary(), self.now, &mut runs)?;
        } else {
            self.manager.allocate_as(Class::Cleaner, LogType::ColdData, &summary(), self.now, &mut runs)?;
        }
        self.moved += 1;
        self.place(block, &runs)
    }

    /// Notes a logical block's new place, and frees the old one.
    fn place(&mut self, block: usize, runs: &[Run]) -> Result<(), SegmentError> {
        let old = core::mem::replace(&mut self.places[block], runs[0].addr);
        self.owners[(runs[0].addr.0 - self.manager.geometry().main_blkaddr.0) as usize] = block as u32;
        if old.is_real() { self.manager.invalidate(old, self.now) } else { Ok(()) }
    }

    fn clean(&mut self) -> Result<(), SegmentError> {
        for _ in 0..BATCH {
            let Some(victim) = self.manager.choose_victim(self.way.policy, self.now) else { break };
            let info = self.manager.segment(victim.first)?;
            let first = self.manager.geometry().block_at(victim.first, 0);
            for at in info.valid_map.runs(true).flat_map(|(start, len)| start..start + len) {
                let place = (first.0 + at - self.manager.geometry().main_blkaddr.0) as usize;
                self.relocate(self.owners[place] as usize, victim.first)?;
            }
        }
        self.manager.begin_checkpoint(6)?;
        self.manager.end_checkpoint();
        Ok(())
    }

    /// Overwrites so many blocks; tells how many were written for each.
    fn run(&mut self, pattern: &Pattern, updates: u64, random: &mut Random) -> Result<f64, SegmentError> {
        let blocks = self.places.len();
        let tick = (blocks as u64 / 1000).max(1);
        let before = self.moved;
        for update in 0..updates {
            self.now += u64::from(update % tick == 0);
            while self.manager.free_segments() < LOW {
                self.clean()?;
            }
            self.write(pattern.next(blocks, random))?;
        }
        Ok(1.0 + (self.moved - before) as f64 / updates as f64)
    }
}

/// How much more than the user's blocks is written, by how victims are chosen.
#[derive(Debug, Parser)]
#[command(name = "write_amplification", after_help = program::EXIT_CODES)]
struct Arguments {
    /// Segments of the volume.
    #[arg(default_value_t = 256, value_parser = clap::value_parser!(u32).range(64..=65_536))]
    segments: u32,
    /// How many times the volume's size is written.
    #[arg(default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    turnover: u32,
}

fn measure(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let (segments, turnover) = (arguments.segments, u64::from(arguments.turnover));
    // The kernel's threshold is a week; here a volume is overwritten in a thousand seconds.
    let atgc = AgeThreshold::default().threshold(500);
    let ways = [
        ("greedy", VictimPolicy::Greedy, false),
        ("cost-benefit", VictimPolicy::CostBenefit, false),
        ("age threshold", VictimPolicy::AgeThreshold(atgc), false),
        ("with AT_SSR", VictimPolicy::AgeThreshold(atgc), true),
    ];
    writeln!(
        out,
        "{segments} segments, the last {turnover} times the volume's size; blocks written for each block of the user's"
    )?;
    write!(out, "{:<14} {:>12}", "updates", "utilisation")?;
    ways.iter().try_for_each(|(name, ..)| write!(out, " {name:>13}"))?;
    writeln!(out)?;
    for name in ["uniform", "zipf", "hot and cold"] {
        for utilisation in [0.7, 0.8, 0.9] {
            let mut row = format!("{name:<14} {:>11.0}%", utilisation * 100.0);
            for (_, policy, same_age) in ways {
                let mut world = World::new(segments, utilisation, Way { policy, same_age })?;
                let mut random = Random::new(1);
                let blocks = world.places.len();
                let pattern = match name {
                    "zipf" => Pattern::zipf(blocks, &mut random),
                    "uniform" => Pattern::Uniform,
                    _ => Pattern::HotCold,
                };
                let updates = turnover * blocks as u64;
                world.run(&pattern, updates / 2, &mut random)?;
                let amplification = world.run(&pattern, updates, &mut random)?;
                row += &format!(" {amplification:>13.2}");
            }
            writeln!(out, "{row}")?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    program::run(measure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        let taken = |words: &[&str]| Arguments::try_parse_from(["write_amplification"].iter().chain(words)).is_ok();
        assert!(taken(&[]) && taken(&["64"]) && taken(&["65536", "1"]));
        for wrong in [&["63"][..], &["65537"], &["64", "0"], &["64", "1", "1"], &["x"], &["--none"]] {
            assert!(!taken(wrong), "{wrong:?}");
        }
        let full = &mut std::fs::File::options().write(true).open("/dev/full").unwrap();
        assert!(measure(&Arguments { segments: 64, turnover: 1 }, full).is_err());
    }

    #[test]
    fn fuller_volumes_cost_more_and_ages_help_where_some_blocks_are_hot() {
        let run = |utilisation, way: Way, pattern: &Pattern| {
            let mut world = World::new(96, utilisation, way).unwrap();
            let updates = world.places.len() as u64;
            let mut random = Random::new(1);
            world.run(pattern, updates, &mut random).unwrap();
            world.run(pattern, updates, &mut random).unwrap()
        };
        let greedy = Way { policy: VictimPolicy::Greedy, same_age: false };
        let half = run(0.5, greedy, &Pattern::Uniform);
        let full = run(0.75, greedy, &Pattern::Uniform);
        assert!((1.0..2.0).contains(&half) && full > half, "{half} {full}");
        let hot = run(0.75, greedy, &Pattern::HotCold);
        assert!(hot > 1.0 && hot < 2.0 * full, "{hot} {full}");
        let policy = VictimPolicy::AgeThreshold(AgeThreshold::default().threshold(100));
        let kept = run(0.75, Way { policy, same_age: true }, &Pattern::HotCold);
        assert!(kept > 1.0 && kept < 2.0 * full, "{kept} {full}");
    }
}
