//! Random reads of one file through one tree of extent states, on a device of 440,000 requests a second, as in the
//! paper on reads of Btrfs.

use std::time::Duration;

use f2fs_extent::StateTree;
use f2fs_sync::manycore::{self, Device, Machine, Outcome, Pace};

/// Requests a second of the device (Samsung 960 PRO).
const RATE: u64 = 440_000;
/// Latency of the device. Fitted, to the paper's 10.8 thousand reads a second of one job.
const LATENCY: Duration = Duration::from_nanos(88_000);
/// Blocks of the file.
const BLOCKS: u64 = 1 << 20;

/// Plays it.
pub(super) fn play(machine: &Machine, pace: &Pace, cores: usize, laps: u64) -> Outcome {
    manycore::boot(machine);
    let (tree, device) = (StateTree::new(), Device::new(RATE, LATENCY));
    manycore::run(machine, pace, cores, laps / 8, |core| {
        let mut block = core as u64 * 7919;
        for _ in 0..laps {
            block = block.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (block >> 33) % BLOCKS;
            // The range is locked while its pages are looked for; the request goes out with its pages locked, not the
            // range.
            drop(tree.lock(at..=at));
            device.request();
            // And once more when the pages are up to date.
            drop(tree.lock(at..=at));
            manycore::lap();
        }
    })
}
