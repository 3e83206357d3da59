//! Calibration: the cost of writes of each size on a device.
//!
//! ```
//! use f2fs_workload::calibrate::{Plan, calibrate, wall_clock};
//!
//! let device = f2fs::device::MemoryDevice::new(16 * 1024);
//! let result = calibrate(&device, &Plan::default().samples(20), wall_clock())?;
//! assert_eq!(result.points[0].blocks, 1);
//! let model = result.model("memory")?;
//! assert!(model.seconds(1.0) > 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::time::{Duration, Instant};

use f2fs::device::{AlignedBuf, BlockDevice, DeviceError, Request};
use f2fs::segment::cost::{CostError, CostModel};
use f2fs_device_test::Random;

use crate::report::{ChartError, LineChart};

/// Sizes that are measured, in blocks: all up to 16, then doubling up to a segment.
pub const SIZES: [u32; 21] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 32, 64, 128, 256, 512];

/// How much is measured.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Writes of each size and kind at most.
    pub samples: usize,
    /// Time for each size and kind at most.
    pub limit: Duration,
    /// Seed of the places.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { samples: 300, limit: Duration::from_millis(1500), seed: 1 }
    }
}

impl Plan {
    /// Sets the writes of each size and kind.
    #[must_use]
    pub fn samples(mut self, samples: usize) -> Plan {
        self.samples = samples.max(1);
        self
    }
}

/// Times of writes of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Half of the writes took at most so long.
    pub median: Duration,
    /// All but one in a hundred took at most so long.
    pub p99: Duration,
    /// Writes measured.
    pub count: usize,
}

/// One size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Blocks of a write.
    pub blocks: u32,
    /// At random places.
    pub random: Times,
    /// Each behind the one before.
    pub sequential: Times,
}

/// The result of a calibration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// One for each size, ascending.
    pub points: Vec<Point>,
}

impl Calibration {
    /// The model: medians at random places.
    ///
    /// # Errors
    /// [`CostError`] if a time is zero.
    pub fn model(&self, name: impl Into<String>) -> Result<CostModel, CostError> {
        let points: Vec<(u32, f64)> = self
            .points
            .iter()
            .map(|point| (point.blocks, point.random.median.as_secs_f64() / f64::from(point.blocks)))
            .collect();
        CostModel::from_points(name.into(), &points)
    }

    /// Megabytes (10^6 bytes) a second over the size of a write.
    ///
    /// # Errors
    /// [`ChartError`].
    pub fn svg(&self, title: &str) -> Result<String, ChartError> {
        let rate = |blocks: u32, time: Duration| f64::from(blocks) * 4096.0 / 1e6 / time.as_secs_f64().max(1e-9);
        let line = |time: fn(&Point) -> Duration| {
            self.points.iter().map(|point| (f64::from(point.blocks), rate(point.blocks, time(point)))).collect()
        };
        let mut chart = LineChart::new(title, "blocks of 4 KiB in a write", "MB/s");
        chart.line("random places, median", line(|point| point.random.median));
        chart.line("random places, 99th percentile", line(|point| point.random.p99));
        chart.line("sequential, median", line(|point| point.sequential.median));
        chart.svg()
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device is smaller than the writes to be measured.
    #[error("the device has {found} blocks, {needed} are needed")]
    TooSmall {
        /// Its blocks.
        found: u64,
        /// Blocks needed.
        needed: u64,
    },
}

/// A clock that shows the time since it was made.
pub fn wall_clock() -> impl Fn() -> Duration {
    let begin = Instant::now();
    move || begin.elapsed()
}

/// Whether a device holds anything, judged by its first 2 MiB and by samples of the rest.
///
/// # Errors
/// Errors of reading.
pub fn holds_data(device: &dyn BlockDevice) -> Result<bool, DeviceError> {
    const SAMPLES: u64 = 256;
    let blocks = device.info().blocks;
    let first = blocks.min(512);
    let zero = |buf: &AlignedBuf| buf.as_bytes().iter().all(|byte| *byte == 0);
    if !zero(&device.read(0, first as usize)?) {
        return Ok(true);
    }
    for sample in 0..SAMPLES.min(blocks) {
        if !zero(&device.read(blocks / SAMPLES.min(blocks) * sample, 1)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes of one size to the places that `place` gives, each timed by itself.
fn measure(
    device: &dyn BlockDevice,
    plan: &Plan,
    clock: &impl Fn() -> Duration,
    size: u32,
    mut place: impl FnMut() -> u64,
) -> Result<Times, DeviceError> {
    let mut times = Vec::new();
    let mut buf = AlignedBuf::new(size as usize);
    // No zeros: a device may treat them as nothing.
    buf.as_bytes_mut().iter_mut().zip(0u32..).for_each(|(byte, at)| *byte = (at % 251) as u8 | 1);
    let begin = clock();
    while times.len() < plan.samples && (times.len() < 5 || clock() - begin < plan.limit) {
        let request = Request::write(place(), core::mem::take(&mut buf));
        let start = clock();
        let mut done = device.execute(request);
        times.push(clock() - start);
        done.result?;
        buf = done.request.bufs.pop().unwrap_or_else(|| AlignedBuf::new(size as usize));
    }
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    Ok(Times { median: at(50), p99: at(99), count: times.len() })
}

/// Measures a device. Its content is lost. `clock` tells the time: [`wall_clock`], or a device's virtual time.
///
/// # Errors
/// [`CalibrateError`].
pub fn calibrate(
    device: &dyn BlockDevice,
    plan: &Plan,
    clock: impl Fn() -> Duration,
) -> Result<Calibration, CalibrateError> {
    let blocks = device.info().blocks;
    let needed = 4 * u64::from(SIZES[SIZES.len() - 1]);
    if blocks < needed {
        return Err(CalibrateError::TooSmall { found: blocks, needed });
    }
    let mut places = Random::new(plan.seed);
    let mut points = Vec::with_capacity(SIZES.len());
    for size in SIZES {
        let room = blocks - u64::from(size);
        let random = measure(device, plan, &clock, size, || places.below_u64(room))?;
        let mut at = 0;
        let sequential = measure(device, plan, &clock, size, || {
            let here = at;
            at = if here + u64::from(size) > room { 0 } else { here + u64::from(size) };
            here
        })?;
        device.flush()?;
        points.push(Point { blocks: size, random, sequential });
    }
    Ok(Calibration { points })
}

#[cfg(test)]
mod tests {
    use super::*;
    use f2fs::device::MemoryDevice;
    use f2fs::segment::cost::{Card, Interior};
    use f2fs_device_test::TimingDevice;

    #[test]
    fn a_device_of_virtual_time_gives_its_model_back() {
        let model = CostModel::card(Card::B, Interior::LogLog);
        let costs = model.clone();
        let device = TimingDevice::new(MemoryDevice::new(8192), move |blocks| costs.seconds(blocks as f64));
        let result = calibrate(&device, &Plan::default().samples(3), || device.stat().time()).unwrap();
        let found = result.model("again").unwrap();
        for size in SIZES {
            let (found, wanted) = (found.seconds(size.into()), model.seconds(size.into()));
            assert!((found / wanted - 1.0).abs() < 1e-6, "{size}: {found} {wanted}");
        }
        assert!(result.points.iter().all(|point| point.random == point.sequential && point.random.count == 3));
        assert!(result.svg("card B").unwrap().contains("MB/s"));
    }

    #[test]
    fn any_number_of_samples_ends_with_the_time_for_them() {
        let device = TimingDevice::new(MemoryDevice::new(8192), |_| 0.1);
        let plan = Plan { samples: usize::MAX, ..Plan::default() };
        let result = calibrate(&device, &plan, || device.stat().time()).unwrap();
        assert!(result.points.iter().all(|point| (5..100).contains(&point.random.count)));
    }

    #[test]
    fn data_is_seen_and_small_devices_are_refused() {
        let device = MemoryDevice::new(8192);
        assert!(!holds_data(&device).unwrap());
        device.write_slice(300, &[1]).unwrap();
        assert!(holds_data(&device).unwrap());
        let small = MemoryDevice::new(2047);
        let error = calibrate(&small, &Plan::default(), wall_clock()).unwrap_err();
        assert_eq!(error.to_string(), "the device has 2047 blocks, 2048 are needed");
    }
}
