//! `f2fs calibrate`.

use std::io::Write;

use comfy_table::{CellAlignment, Table, presets};
use f2fs::device::BlockDevice;
use f2fs::sync::Arc;
use f2fs::uring::OpenOptions;
use f2fs_workload::calibrate::{Calibration, Plan, Times, calibrate, holds_data, wall_clock};
use f2fs_workload::report::Machine;
use f2fs_workload::shell::Quoted;
use serde_json::{Value, json};

use super::results::{ResultFile, expect_no_volume, is_same};
use crate::args::calibrate::CalibrateArgs;
use crate::error::{CliError, Context};
use crate::interrupt::guarded;
use crate::medium;

pub(crate) fn run(args: &CalibrateArgs) -> Result<(), CliError> {
    let files = [&args.store, &args.text, &args.svg].into_iter().flatten();
    for (number, path) in files.clone().enumerate() {
        if is_same(path, &args.image) {
            return Err(CliError::usage(format_args!("{} is what is measured", Quoted::path(path))));
        }
        if files.clone().take(number).any(|other| is_same(path, other)) {
            return Err(CliError::usage(format_args!("two results are to be written to {}", Quoted::path(path))));
        }
    }
    // Before the image is made.
    files.clone().try_for_each(|path| expect_no_volume(path))?;
    let is_there = args.image.try_exists().about(&args.image)?;
    let device: Arc<dyn BlockDevice> = if is_there {
        let device = medium::open_plain(&args.image, false, OpenOptions::new())?;
        if let Some(size) = args.size.filter(|size| size.0 / 4096 != device.info().blocks) {
            let found = device.info().bytes();
            return Err(CliError::at(&args.image, format_args!("has {found} bytes, not {}; its size is kept", size.0)));
        }
        device
    } else {
        let size = args.size.map_or(256 << 20, |size| size.0);
        medium::create(&args.image, size)?
    };
    measure(args, &*device, is_there).inspect_err(|_| {
        if !is_there {
            // It was made here a moment ago, and holds nothing.
            let _ = std::fs::remove_file(&args.image);
        }
    })
}

/// Measures, and writes the results. `stays`: the image was there before, and is there afterwards.
fn measure(args: &CalibrateArgs, device: &dyn BlockDevice, stays: bool) -> Result<(), CliError> {
    if !args.force && holds_data(device).about(&args.image)? {
        return Err(CliError::at(&args.image, "holds data, which calibration overwrites: use --force if it may go"));
    }
    let mut store = ResultFile::at(args.store.as_deref())?;
    let mut text = ResultFile::at(args.text.as_deref())?;
    let mut svg = ResultFile::at(args.svg.as_deref())?;
    let plan = Plan::default().samples(args.samples.get());
    let image = Quoted::path(&args.image);
    let overwritten = || match stays {
        true => format!("{image} was written to, and is of no use except for measuring"),
        false => format!("nothing is left of {image}"),
    };
    let result = guarded(|| calibrate(device, &plan, wall_clock()), overwritten)?.about(&args.image)?;
    let value = to_json(&result, &device.info().description);
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{value:#}")?;
    } else {
        writeln!(out, "{}\n{}", device.info().description, table(&result))?;
    }
    if let Some(store) = &mut store {
        store.add(&format!("{value:#}\n"))?;
    }
    if let Some(text) = &mut text {
        text.add(&result.model("measured").map_err(CliError::new)?.to_text())?;
    }
    if let Some(svg) = &mut svg {
        svg.add(&result.svg(&device.info().description).map_err(CliError::new)?)?;
    }
    Ok(())
}

fn to_json(result: &Calibration, device: &str) -> Value {
    let times = |times: &Times| {
        json!({
            "median_seconds": times.median.as_secs_f64(),
            "p99_seconds": times.p99.as_secs_f64(),
            "samples": times.count,
        })
    };
    let points: Vec<Value> = result
        .points
        .iter()
        .map(|point| {
            json!({
                "blocks": point.blocks,
                "seconds_per_block": point.random.median.as_secs_f64() / f64::from(point.blocks),
                "random": times(&point.random),
                "sequential": times(&point.sequential),
            })
        })
        .collect();
    json!({ "device": device, "machine": Machine::here().to_string(), "points": points })
}

fn table(result: &Calibration) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["blocks", "random us", "p99", "MB/s", "sequential us", "p99", "MB/s"]);
    for point in &result.points {
        let mut row = vec![point.blocks.to_string()];
        for times in [&point.random, &point.sequential] {
            let rate = f64::from(point.blocks) * 4096.0 / 1e6 / times.median.as_secs_f64().max(1e-9);
            row.push(format!("{:.1}", times.median.as_secs_f64() * 1e6));
            row.push(format!("{:.1}", times.p99.as_secs_f64() * 1e6));
            row.push(format!("{rate:.1}"));
        }
        table.add_row(row);
    }
    table.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}
