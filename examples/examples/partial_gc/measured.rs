//! The experiment in measured time, on a file or a block device of one's own.

use std::io;

use f2fs::device::{AlignedBuf, BlockDevice};
use f2fs::segment::cost::CostModel;
use f2fs::sync::Arc;
use f2fs_workload::calibrate::{Plan, calibrate, wall_clock};
use f2fs_workload::partial_gc::{ExperimentError, Written, measure_on};

use super::volume::{Row, percent, ways};

/// Blocks written at once when a new file is filled.
const FILL: u64 = 512;

/// Writes every block once, so that the file system below has places for all of them before anything is measured.
pub(crate) fn fill(device: &dyn BlockDevice) -> Result<(), f2fs::device::DeviceError> {
    let blocks = device.info().blocks;
    for start in (0..blocks).step_by(FILL as usize) {
        device.write(start, AlignedBuf::new((blocks - start).min(FILL) as usize))?;
    }
    device.flush()
}

/// Measures the cost of writes of each size on this device, whose contents are lost.
pub(crate) fn model(
    device: &dyn BlockDevice,
    name: &str,
    out: &mut dyn io::Write,
) -> Result<CostModel, Box<dyn std::error::Error>> {
    let found = calibrate(device, &Plan::default().samples(60), wall_clock())?;
    writeln!(out, "us a block, at random places, of writes of so many blocks:")?;
    for point in &found.points {
        write!(out, " {}: {:.1}", point.blocks, point.random.median.as_secs_f64() * 1e6 / f64::from(point.blocks))?;
    }
    writeln!(out)?;
    Ok(found.model(name.to_owned())?)
}

/// All ways in turn, so many times over; of each the round of median time, against SSR in its own round.
pub(crate) fn rows<D: BlockDevice>(
    device: &Arc<D>,
    model: &CostModel,
    rounds: usize,
) -> Result<Vec<Row>, ExperimentError> {
    let ways = ways(model);
    let mut all: Vec<Vec<Written>> = vec![Vec::new(); ways.len()];
    for round in 0..rounds {
        for (found, (_, way)) in all.iter_mut().zip(&ways) {
            found.push(measure_on(device, way.clone(), 1 + round as u64)?);
        }
    }
    let ssr = all[0].clone();
    let rows = ways.into_iter().zip(all).map(|((name, _), found)| {
        let speed = |round: usize| percent(ssr[round].time.as_secs_f64(), found[round].time.as_secs_f64());
        let mut order: Vec<usize> = (0..rounds).collect();
        order.sort_by(|a, b| speed(*a).total_cmp(&speed(*b)));
        let middle = order[rounds / 2];
        Row {
            device: model.name().to_owned(),
            card: None,
            name,
            written: found[middle],
            ssr: ssr[middle],
            spread: Some((speed(order[0]), speed(order[rounds - 1]))),
        }
    });
    Ok(rows.collect())
}
