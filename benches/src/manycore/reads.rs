//! Random reads of one file through one tree of extent states, on a device of 440,000 requests a second, as in the
//! paper on reads of Btrfs.
//!
//! Btrfs of Linux 5.8 takes the tree's lock four times for a page that is not in memory (`fs/btrfs/extent_io.c`): to lock
//! the range, to look whether it is up to date, and when it was read, to mark it so and to unlock it. The mark stays
//! with the page. So the tree has a state for each page that was read before, or one for several that are neighbours.
//! The jobs are processes that nobody binds to a processor: Linux spreads them over all sockets.

use std::time::Duration;

use f2fs_extent::StateTree;
use f2fs_sync::manycore::{self, Device, Machine, Outcome, Pace};

/// Requests a second of the device (Samsung 960 PRO).
const RATE: u64 = 440_000;
/// Latency of the device. Fitted, to the paper's 10.8 thousand reads a second of one job.
const LATENCY: Duration = Duration::from_nanos(91_600);
/// Blocks of the file: 64 GiB.
const BLOCKS: u64 = 1 << 24;
/// Blocks that were read before: 1 GiB, some seconds of the experiment. The paper does not say how many there were; with
/// four times as many the tree is two nodes deeper.
pub(super) const EARLIER: u64 = 1 << 18;
/// The mark of blocks that were read.
const UPTODATE: u32 = 1;

/// Random blocks.
fn blocks(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), |block| {
        Some(block.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    })
    .skip(1)
    .map(|block| (block >> 33) % BLOCKS)
}

/// Plays it on so many cores.
pub(super) fn play(machine: &Machine, pace: &Pace, cores: usize, laps: u64) -> Outcome {
    play_after(EARLIER, machine, pace, &machine.spread(cores), laps)
}

/// The same with one core, and no earlier reads: no node comes from another core, or from memory.
pub(super) fn play_in_cache(machine: &Machine, pace: &Pace, laps: u64) -> Outcome {
    play_after(0, machine, pace, &[0], laps)
}

/// Plays it on these cores, when so many blocks were read before.
#[must_use]
pub fn play_after(earlier: u64, machine: &Machine, pace: &Pace, cores: &[usize], laps: u64) -> Outcome {
    manycore::boot(machine);
    let (tree, device) = (StateTree::new(), Device::new(RATE, LATENCY));
    for at in blocks(u64::MAX / 3).take(earlier as usize) {
        tree.lock(at..=at).mark(UPTODATE);
    }
    manycore::run_on(machine, pace, cores, laps / 8, |core| {
        for at in blocks(core as u64 * 7919).take(laps as usize) {
            let range = tree.lock(at..=at);
            if !tree.has(at..=at, UPTODATE) {
                device.request();
                range.mark(UPTODATE);
            }
            drop(range);
            manycore::lap();
        }
    })
}
