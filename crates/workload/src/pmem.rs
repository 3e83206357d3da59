//! Transfers on persistent memory: by the device, beside a bare copy with the same instructions on the same mapping,
//! and by other devices on the same memory.
//!
//! The ways are measured in turn in each round, and the ratio of a round is that of two measurements next to each
//! other. One thread.

use std::fmt;
use std::time::{Duration, Instant};

use f2fs::device::{AlignedBuf, BLOCK_SIZE, BlockDevice, DeviceError, DeviceErrorKind};
use f2fs::pmem::{PersistentRegion, PmemDevice, RegionError};
use f2fs_device_test::Random;

/// The kind of measurement.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How often all is measured.
    pub rounds: u32,
    /// How long a measurement takes.
    pub time: Duration,
}

/// How a transfer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Way {
    /// By a copy on the mapping: loads, or stores past the cache and a fence.
    Copy,
    /// By the device on the mapping.
    Mapped,
    /// By another device.
    Other,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Copy => "copy",
            Self::Mapped => "mapped",
            Self::Other => "other",
        })
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Whether of writes.
    pub write: bool,
    /// Bytes of a transfer.
    pub bytes: usize,
    /// Which round, from 0.
    pub round: u32,
    /// How.
    pub way: Way,
    /// Transfers a second.
    pub rate: f64,
}

impl fmt::Display for Sample {
    /// `read,4096,0,mapped,123456.7`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = if self.write { "write" } else { "read" };
        write!(f, "{operation},{},{},{},{:.1}", self.bytes, self.round, self.way, self.rate)
    }
}

/// The head of the samples as comma-separated values.
pub const HEAD: &str = "operation,bytes,round,way,per_second";

/// Blocks of the transfers: 4 KiB and 2 MiB.
pub const SIZES: [usize; 2] = [1, 512];

/// Measures a device on a mapping, beside bare copies. Its contents are lost. The device has at least 4 MiB.
///
/// # Errors
/// Those of the device.
pub fn measure_mapped<R: PersistentRegion>(device: &PmemDevice<R>, plan: Plan) -> Result<Vec<Sample>, DeviceError> {
    touch(device)?;
    let region = device.region();
    let refused = |error: RegionError| {
        // The places are those of the device's blocks, so that none comes.
        let _ = error;
        DeviceError::flush(DeviceErrorKind::OutOfRange { device_blocks: device.info().blocks })
    };
    let mut samples = Vec::new();
    for blocks in SIZES {
        for write in [false, true] {
            for round in 0..plan.rounds {
                let copy = || {
                    rate(device, blocks, plan.time, |start, buf| {
                        let offset = start as usize * BLOCK_SIZE;
                        if write {
                            region.store_nontemporal(offset, buf.as_bytes()).map_err(refused)?;
                            region.fence();
                            return Ok(());
                        }
                        region.load(offset, buf.as_bytes_mut()).map_err(refused)
                    })
                };
                let mapped = || transfers(device, blocks, write, plan.time);
                // The order changes.
                let (copy, mapped) = if round % 2 == 0 {
                    let copy = copy()?;
                    (copy, mapped()?)
                } else {
                    let mapped = mapped()?;
                    (copy()?, mapped)
                };
                let bytes = blocks * BLOCK_SIZE;
                samples.push(Sample { write, bytes, round, way: Way::Copy, rate: copy });
                samples.push(Sample { write, bytes, round, way: Way::Mapped, rate: mapped });
            }
        }
    }
    Ok(samples)
}

/// Measures any device. Its contents are lost. It has at least 4 MiB.
///
/// # Errors
/// Those of the device.
pub fn measure_other(device: &dyn BlockDevice, plan: Plan) -> Result<Vec<Sample>, DeviceError> {
    touch(device)?;
    let mut samples = Vec::new();
    for blocks in SIZES {
        for write in [false, true] {
            for round in 0..plan.rounds {
                let rate = transfers(device, blocks, write, plan.time)?;
                samples.push(Sample { write, bytes: blocks * BLOCK_SIZE, round, way: Way::Other, rate });
            }
        }
    }
    Ok(samples)
}

/// The median over the rounds of the ratio of one way's rate to another's.
#[must_use]
pub fn ratio(samples: &[Sample], (write, bytes): (bool, usize), one: Way, other: Way) -> Option<f64> {
    let of = |way: Way| {
        samples.iter().filter(move |sample| sample.write == write && sample.bytes == bytes && sample.way == way)
    };
    let pairs = of(one).filter_map(|sample| {
        let beside = of(other).find(|beside| beside.round == sample.round)?;
        Some(sample.rate / beside.rate)
    });
    let mut ratios: Vec<f64> = pairs.collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied()
}

/// Writes every block once, so that no measurement is of memory that has to be found first.
fn touch(device: &dyn BlockDevice) -> Result<(), DeviceError> {
    let mut buf = AlignedBuf::new(SIZES[1]);
    for start in (0..device.info().blocks / SIZES[1] as u64).map(|piece| piece * SIZES[1] as u64) {
        device.write_from(start, &mut buf)?;
    }
    device.flush()
}

fn transfers<D: BlockDevice + ?Sized>(
    device: &D,
    blocks: usize,
    write: bool,
    time: Duration,
) -> Result<f64, DeviceError> {
    let act = |start: u64, buf: &mut AlignedBuf| {
        if write { device.write_from(start, buf) } else { device.read_into(start, buf) }
    };
    rate(device, blocks, time, act)
}

/// Transfers a second, one after the other, at places in a fixed order that looks like none.
fn rate<D: BlockDevice + ?Sized>(
    device: &D,
    blocks: usize,
    time: Duration,
    mut act: impl FnMut(u64, &mut AlignedBuf) -> Result<(), DeviceError>,
) -> Result<f64, DeviceError> {
    /// Transfers between two looks at the clock.
    const BATCH: u64 = 8;
    let places = (device.info().blocks / blocks as u64).max(1);
    let mut buf = AlignedBuf::new(blocks);
    let (mut random, mut done) = (Random::new(1), 0);
    let begin = Instant::now();
    loop {
        for _ in 0..BATCH {
            act(random.below_u64(places) * blocks as u64, &mut buf)?;
        }
        done += BATCH;
        let passed = begin.elapsed();
        if passed >= time {
            return Ok(done as f64 / passed.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use f2fs::pmem::MemoryRegion;

    use super::*;

    #[test]
    fn every_way_is_measured_and_ratios_are_of_one_round() {
        let device = PmemDevice::new(MemoryRegion::new(8 << 20).unwrap());
        let plan = Plan { rounds: 2, time: Duration::from_millis(1) };
        let samples = measure_mapped(&device, plan).unwrap();
        assert_eq!(samples.len(), 2 * 2 * 2 * 2);
        assert!(ratio(&samples, (true, 4096), Way::Mapped, Way::Copy).is_some_and(|ratio| ratio > 0.0));
        assert_eq!(ratio(&samples, (true, 4096), Way::Mapped, Way::Other), None);
        assert_eq!(measure_other(&device, plan).unwrap().len(), 2 * 2 * 2);
        let sample = |round, way, rate| Sample { write: false, bytes: 4096, round, way, rate };
        let samples = [
            sample(0, Way::Copy, 10.0),
            sample(0, Way::Mapped, 5.0),
            sample(1, Way::Copy, 1.0),
            sample(1, Way::Mapped, 9.0),
            sample(2, Way::Mapped, 100.0),
        ];
        assert_eq!(ratio(&samples, (false, 4096), Way::Mapped, Way::Copy), Some(9.0));
        assert_eq!(samples[1].to_string(), "read,4096,0,mapped,5.0");
    }
}
