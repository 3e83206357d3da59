//! How fast a volume is on a device: creates, unlinks, reads and writes of FxMark, reads of one file, syncs, and writes
//! into an aged volume with partial cleaning. Each makes a new volume; the aged one stays.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use f2fs_device::BlockDevice;
use f2fs_files::{FileSystem, Options, RangeLock};
use f2fs_format::feature::Features;
use f2fs_volume::Allocation;
use f2fs_volume::devices::whole;
use f2fs_volume::format::{FormatOptions, format};
use f2fs_workload::ageing::{Plan, age};
use f2fs_workload::{fxmark, reads};

use crate::pmem;

const WORKLOADS: [fxmark::Workload; 5] = [
    fxmark::Workload::Mwcl,
    fxmark::Workload::Mwul,
    fxmark::Workload::Mwum,
    fxmark::Workload::Dwol,
    fxmark::Workload::Drbl,
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The device, whose contents are lost.
    image: PathBuf,
    /// Another device of the volume; once for each.
    #[arg(long = "device")]
    others: Vec<PathBuf>,
    /// Maps it, which has to lie in persistent memory.
    #[arg(long)]
    pmem: bool,
    /// The name of the device in the lines.
    #[arg(long)]
    name: String,
    /// Operations of each measurement.
    #[arg(long, default_value_t = 2000)]
    operations: u64,
    /// How full an aged volume is: its share of the blocks for users.
    #[arg(long, default_value_t = 0.9)]
    fill: f64,
    /// How much of an aged volume is overwritten, in multiples of its size.
    #[arg(long, default_value_t = 1.0)]
    turnover: f64,
    /// Content if blocks were moved by any cleaning: a small volume may find no work for the partial one.
    #[arg(long)]
    any_cleaning: bool,
    /// Writes `name,what,operations a second` to this file, a line for each measurement.
    #[arg(long)]
    csv: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut csv = File::create(&args.csv)?;
    let mut say = |what: &str, rate: f64| writeln!(csv, "{},{what},{rate:.1}", args.name);
    let paths = std::iter::once(&args.image).chain(&args.others);
    let devices =
        paths.map(|path| pmem::open(path, args.pmem, f2fs_uring::Engine::Auto)).collect::<Result<Vec<_>, _>>()?;
    for device in &devices {
        println!("{}: {}", args.name, device.info().description);
    }
    let device: Arc<dyn BlockDevice> = match <[_; 1]>::try_from(devices) {
        Ok([device]) => device,
        Err(devices) => Arc::new(whole(devices)?),
    };
    for workload in WORKLOADS {
        let setting = fxmark::Setting { files: args.operations, verify: true, ..fxmark::Setting::new(workload) };
        formatted(&device, args)?;
        let measured = fxmark::run_formatted(device.clone(), &setting, &()).with_context(|| workload.name())?;
        say(workload.name(), measured.rate())?;
    }
    say("read one file", single_file(&device, args)?)?;
    say("sync", syncs(&device, args)?)?;
    formatted(&device, args)?;
    let zoned = device.info().zones.is_some();
    let options = Options::new().volume(f2fs_volume::VolumeOptions::new().allocation(partial()?));
    // What an unclean stop takes back would have to be overwritten again.
    let plan = Plan::new(args.fill, args.turnover).stops(0);
    let report = age(&Arc::new(device), &options, &plan)?;
    say("overwrite aged", report.updates as f64 / seconds(report.elapsed))?;
    // Logs on zones never write into holes: whole zones are emptied.
    let of_sections = report.written.moved_data_blocks;
    let partly = report.written.rewritten_blocks + report.written.precleaned_blocks;
    let (cleaning, moved) = match (zoned, args.any_cleaning) {
        (true, _) => ("cleaning of zones", of_sections),
        (false, true) => ("cleaning", partly + of_sections),
        (false, false) => ("partial cleaning", partly),
    };
    ensure!(moved > 0, "{cleaning} moved nothing: {:?}", report.written);
    println!("{}: {} blocks overwritten, {moved} moved by {cleaning}", args.name, report.updates);
    Ok(())
}

fn partial() -> anyhow::Result<Allocation> {
    "partial".parse::<Allocation>().map_err(|error| anyhow::anyhow!("{error}"))
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64().max(1e-9)
}

/// A new volume, of the kind that the devices need.
fn formatted(device: &Arc<dyn BlockDevice>, args: &Args) -> anyhow::Result<()> {
    let mut options = FormatOptions::default().forced();
    if device.info().zones.is_some() {
        options = options.with_features(Features::BLKZONED);
    }
    if !args.others.is_empty() {
        let paths = std::iter::once(&args.image).chain(&args.others);
        options = options.with_device_paths(paths.map(|path| path.as_os_str().as_encoded_bytes()));
    }
    format(&**device, &options)?;
    Ok(())
}

fn single_file(device: &Arc<dyn BlockDevice>, args: &Args) -> anyhow::Result<f64> {
    formatted(device, args)?;
    let files = reads::Files { count: 1, bytes: 8 << 20 };
    reads::fill(device.clone(), files, &|_| ())?;
    let setting = reads::Setting { reads: args.operations, ..reads::Setting::default() };
    let volume = files.open(device.clone(), RangeLock::Extent)?;
    let measured = volume.measure(&setting)?;
    volume.close()?;
    Ok(measured.iops())
}

/// Appends of one block, each synced.
fn syncs(device: &Arc<dyn BlockDevice>, args: &Args) -> anyhow::Result<f64> {
    formatted(device, args)?;
    let count = args.operations / 10;
    let fs = FileSystem::open(device.clone(), Options::new())?;
    let file = fs.create_file("/synced", 0o644)?;
    file.sync_all()?;
    let begin = Instant::now();
    for block in 0..count {
        file.write_at(&[block as u8; 4096], block * 4096)?;
        file.sync_all()?;
    }
    let rate = count as f64 / seconds(begin.elapsed());
    drop(file);
    fs.close()?;
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_with_much_room_is_no_aged_one() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        File::create(&image).unwrap().set_len(192 << 20).unwrap();
        let args = |fill, turnover| Args {
            image: image.clone(),
            others: Vec::new(),
            pmem: false,
            name: "test".to_owned(),
            operations: 20,
            fill,
            turnover,
            any_cleaning: false,
            csv: dir.path().join("csv"),
        };
        let error = run(&args(0.2, 0.05)).unwrap_err().to_string();
        assert!(error.starts_with("partial cleaning moved nothing"), "{error}");
        run(&args(0.9, 0.5)).unwrap();
        let csv = std::fs::read_to_string(dir.path().join("csv")).unwrap();
        assert_eq!(csv.lines().count(), WORKLOADS.len() + 3, "{csv}");
    }
}
