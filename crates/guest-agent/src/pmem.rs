//! Persistent memory: mapped, or as a block device.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use f2fs_device::BlockDevice;
use f2fs_pmem::{Dax, PmemDevice, WriteBack};
use f2fs_uring::{Direct, Engine, UringDevice};
use f2fs_volume::devices::assemble;
use f2fs_workload::pmem::{HEAD, Plan, measure_mapped, measure_other};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A file in persistent memory, a character device of memory, or with --block a block device.
    path: PathBuf,
    /// Measures a block device through `io_uring`, and by system calls.
    #[arg(long)]
    block: bool,
    /// How often all is measured.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// How long a measurement takes (milliseconds).
    #[arg(long, default_value_t = 300)]
    milliseconds: u64,
    /// Writes one line for each measurement to this file, as comma-separated values with a head.
    #[arg(long)]
    csv: PathBuf,
}

/// Opens an image: mapped, if it lies in persistent memory, or as a file, a block device or an NVMe namespace.
pub(crate) fn open(image: &Path, mapped: bool, engine: Engine) -> anyhow::Result<Arc<dyn BlockDevice>> {
    if mapped {
        return Ok(PmemDevice::open(image, f2fs_pmem::OpenOptions::new().dax(Dax::Required))?);
    }
    Ok(f2fs_uring::open(image, f2fs_uring::OpenOptions::new().engine(engine))?)
}

/// The devices of a volume as one.
pub(crate) fn assembled(
    image: &Path,
    others: &[PathBuf],
    mapped: bool,
    engine: Engine,
) -> anyhow::Result<Arc<dyn BlockDevice>> {
    let first = open(image, mapped, engine)?;
    let other = |at: usize, _: &_| open(&others[at - 1], mapped, engine);
    assemble(first, others.len(), other).map_err(|error| anyhow::anyhow!("{error}"))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let plan = Plan { rounds: args.rounds, time: Duration::from_millis(args.milliseconds) };
    ensure!(plan.rounds > 0, "no round");
    let mut csv = File::create(&args.csv)?;
    writeln!(csv, "{HEAD}")?;
    let samples = if args.block {
        let options = f2fs_uring::OpenOptions::new().direct(Direct::Required).engine(Engine::IoUring);
        let device = UringDevice::open(&args.path, options)?;
        println!("{}", device.info().description);
        measure_other(&*device, plan)?
    } else {
        let device = PmemDevice::open(&args.path, f2fs_pmem::OpenOptions::new().dax(Dax::Required))?;
        println!("{}; lines are written back by {}", device.info().description, WriteBack::detect());
        measure_mapped(&device, plan)?
    };
    samples.iter().try_for_each(|sample| writeln!(csv, "{sample}"))?;
    Ok(())
}
