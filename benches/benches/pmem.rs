//! Transfers on persistent memory, beside a bare copy with the same instructions on the same mapping, and beside
//! `io_uring`.
//!
//! ```text
//! cargo bench -p f2fs-benches --bench pmem -- [--mib 256] [--milliseconds 300] [--rounds 7] [FILE]
//! ```
//!
//! FILE is a file that lies in persistent memory (mounted with dax), or a character device of memory; what it holds is
//! lost. Without one, ordinary memory stands in for it, and is labelled so: it shows what the device adds to a copy,
//! and not how fast persistent memory is. `io_uring` works on a file of the same size in `/dev/shm` then, which is a
//! copy in the kernel; with a character device or a DAX file, the guest test `pmem` has the comparison with the block
//! device below.
//!
//! The table has the medians of the rounds; `target/pmem.csv` has every round. Lines and fences of each operation are
//! counted on a device beside it.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, value_parser};
use f2fs::device::{AlignedBuf, BLOCK_SIZE, BlockDevice};
use f2fs::pmem::{MemoryRegion, PmemDevice, WriteBack};
use f2fs::uring::{Engine, OpenOptions, UringDevice};
use f2fs_benches::arguments::ByCargo;
use f2fs_benches::report::{Csv, ascending, machine};
use f2fs_device_test::pmem::CountedRegion;
use f2fs_workload::pmem::{HEAD, Plan, SIZES, Sample, Way, measure_mapped, measure_other, ratio};

/// Transfers on persistent memory, beside a bare copy, and beside io_uring.
#[derive(Debug, Parser)]
struct Args {
    /// Memory that is used without a FILE.
    #[arg(long, default_value_t = 256, value_parser = value_parser!(u32).range(4..=1 << 20))]
    mib: u32,
    /// Milliseconds of each measurement.
    #[arg(long, default_value_t = 300, value_parser = value_parser!(u64).range(1..=600_000))]
    milliseconds: u64,
    /// Rounds of each.
    #[arg(long, default_value = "7")]
    rounds: NonZeroU32,
    /// A file in persistent memory, or a character device of it. What it holds is lost. Without it, ordinary memory
    /// stands in.
    file: Option<PathBuf>,
    #[command(flatten)]
    by_cargo: ByCargo,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let plan = Plan { rounds: args.rounds.get(), time: Duration::from_millis(args.milliseconds) };
    println!("{}; {}", machine(), WriteBack::detect());
    let samples = if let Some(file) = &args.file {
        let device = PmemDevice::open(file, f2fs::pmem::OpenOptions::new())?;
        println!("{}", device.info().description);
        measure_mapped(&*device, plan)?
    } else {
        println!("ordinary memory, which stands in for persistent memory; `other` is io_uring on /dev/shm");
        let device = PmemDevice::new(MemoryRegion::new((args.mib as usize) << 20)?);
        let mut samples = measure_mapped(&device, plan)?;
        drop(device);
        let dir = tempfile::tempdir_in("/dev/shm")?;
        let options = OpenOptions::new().engine(Engine::IoUring);
        let other = UringDevice::create(dir.path().join("image"), u64::from(args.mib) << 20, options)?;
        samples.extend(measure_other(&*other, plan)?);
        fs::remove_file(dir.path().join("image"))?;
        samples
    };
    let mut csv = Csv::create("pmem", HEAD)?;
    samples.iter().try_for_each(|sample| csv.line(&sample.to_string()))?;
    table(&samples)?;
    counts()?;
    println!("{}", csv.path().display());
    Ok(())
}

fn table(samples: &[Sample]) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:6} {:>9} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "", "bytes", "copy/s", "mapped/s", "other/s", "mapped/copy", "mapped/other"
    )?;
    for bytes in SIZES.map(|blocks| blocks * BLOCK_SIZE) {
        for write in [false, true] {
            let median = |way: Way| {
                let of = |sample: &&Sample| sample.write == write && sample.bytes == bytes && sample.way == way;
                let rates = ascending(samples.iter().filter(of).map(|sample| sample.rate));
                rates.get(rates.len() / 2).map_or_else(String::new, |rate| format!("{rate:.0}"))
            };
            let share = |other: Way| {
                let ratio = ratio(samples, (write, bytes), Way::Mapped, other);
                ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
            };
            writeln!(
                out,
                "{:6} {bytes:>9} {:>12} {:>12} {:>12} {:>12} {:>12}",
                if write { "write" } else { "read" },
                median(Way::Copy),
                median(Way::Mapped),
                median(Way::Other),
                share(Way::Copy),
                share(Way::Other)
            )?;
        }
    }
    Ok(())
}

/// Lines and fences of each operation.
fn counts() -> Result<(), Box<dyn Error>> {
    let device = PmemDevice::new(CountedRegion::new(MemoryRegion::new(4 << 20)?));
    println!("{:18} {:>8} {:>10} {:>8} {:>12} {:>7}", "", "loaded", "past cache", "stored", "written back", "fences");
    let line = |name: String, operation: &dyn Fn() -> Result<(), f2fs::device::DeviceError>| {
        let before = device.region().counts();
        operation()?;
        let counts = device.region().counts().since(before);
        println!(
            "{name:18} {:>8} {:>10} {:>8} {:>12} {:>7}",
            counts.loaded, counts.stored_past_cache, counts.stored, counts.written_back, counts.fences
        );
        Ok::<(), Box<dyn Error>>(())
    };
    for blocks in SIZES {
        let bytes = blocks * BLOCK_SIZE;
        line(format!("read {bytes}"), &|| device.read(0, blocks).map(drop))?;
        line(format!("write {bytes}"), &|| device.write(0, AlignedBuf::new(blocks)))?;
    }
    line("flush".into(), &|| device.flush())?;
    Ok(())
}
