//! How fast one request after the other is: reads, writes and syncs of one block at random places, by system calls on
//! the device, by the library's device, by the library's files, and by the kernel's F2FS, on one device in turns.
//!
//! Each round formats the device and makes one file of blocks. The library reads and writes it, then the kernel mounts
//! the same volume and does; what goes to the bare device comes last, since its writes destroy the volume.

use std::fs::{File as HostFile, OpenOptions as HostOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use f2fs_device::{AlignedBuf, BLOCK_SIZE, BlockDevice, Request};
use f2fs_files::{FileSystem, Options};
use f2fs_uring::{Direct, OpenOptions, UringDevice};
use f2fs_volume::format::{FormatOptions, format};
use rustix::fs::OFlags;

use f2fs_device_test::Random;

/// The name of the file on the volume.
const NAME: &str = "blocks";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The device, whose contents are lost.
    device: PathBuf,
    /// Where the kernel mounts the volume.
    #[arg(long, default_value = "/mnt")]
    mount: PathBuf,
    /// How many threads, one measurement for each number.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4")]
    threads: Vec<usize>,
    /// Which operations.
    #[arg(long, value_delimiter = ',', value_enum, default_value = "read,write,sync")]
    operations: Vec<Operation>,
    /// How often all is measured.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// How long a measurement takes (milliseconds).
    #[arg(long, default_value_t = 300)]
    milliseconds: u64,
    /// The size of the file (MiB).
    #[arg(long, default_value_t = 64)]
    size: u64,
    /// Writes one line for each measurement to this file, as comma-separated values with a head.
    #[arg(long)]
    csv: PathBuf,
}

/// The operation on one block after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Operation {
    Read,
    Write,
    /// A write, and what makes it durable.
    Sync,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
        }
    }
}

/// Does one operation on one block.
type Act<'a> = dyn Fn(Operation, u64, &mut AlignedBuf) -> anyhow::Result<()> + Sync + 'a;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    touch(&args.device)?;
    let mut csv = HostFile::create(&args.csv)?;
    writeln!(csv, "operation,threads,round,way,per_second,median_us,p99_us")?;
    for round in 0..args.rounds {
        let mut measure = |way: &str, blocks: u64, act: &Act<'_>| -> anyhow::Result<()> {
            for &operation in &args.operations {
                for &threads in &args.threads {
                    let [rate, median, p99] = times(args, operation, threads, blocks, act)?;
                    let name = operation.name();
                    writeln!(csv, "{name},{threads},{round},{way},{rate:.1},{median:.1},{p99:.1}")?;
                }
            }
            Ok(())
        };
        let options = OpenOptions::new().direct(Direct::Required);
        let blocks = (args.size << 20) / BLOCK_SIZE as u64;
        make(&args.device, blocks, options)?;
        library_file(args, blocks, options, &mut measure)?;
        kernel_file(args, blocks, &mut measure)?;
        library_device(args, options, &mut measure)?;
        let device = direct(&args.device)?;
        let all = rustix::fs::seek(&device, rustix::fs::SeekFrom::End(0))? / BLOCK_SIZE as u64;
        measure("calls", all, &|operation, block, buf| calls(&device, operation, block, buf))?;
    }
    Ok(())
}

/// Writes every block once, so that no measurement is of memory or disk that the host has to find for the device.
fn touch(device: &Path) -> anyhow::Result<()> {
    let device = UringDevice::open(device, OpenOptions::new().direct(Direct::Required))?;
    let mut buf = AlignedBuf::new(256);
    for start in (0..device.info().blocks / 256).map(|piece| piece * 256) {
        device.write_from(start, &mut buf)?;
    }
    Ok(())
}

/// A new volume with one file that has all its blocks.
fn make(device: &Path, blocks: u64, options: OpenOptions) -> anyhow::Result<()> {
    let device = UringDevice::open(device, options)?;
    format(&*device, &FormatOptions::default().forced())?;
    let fs = FileSystem::open(device, Options::new())?;
    let file = fs.create_file(NAME, 0o644)?;
    let piece = vec![0x5a; 1 << 20];
    for offset in (0..blocks * BLOCK_SIZE as u64).step_by(piece.len()) {
        ensure!(file.write_at(&piece, offset)? == piece.len(), "the device is too small for the file");
    }
    drop(file);
    fs.close()?;
    Ok(())
}

/// Measures a way under its name, on so many blocks.
type Measure<'a> = dyn FnMut(&str, u64, &Act<'_>) -> anyhow::Result<()> + 'a;

fn library_file(args: &Args, blocks: u64, options: OpenOptions, measure: &mut Measure<'_>) -> anyhow::Result<()> {
    let fs = FileSystem::open(UringDevice::open(&args.device, options)?, Options::new())?;
    let file = fs.open_file(NAME)?;
    measure("file", blocks, &|operation, block, buf| {
        let offset = block * BLOCK_SIZE as u64;
        let done = match operation {
            Operation::Read => file.read_at(buf.as_bytes_mut(), offset)?,
            Operation::Write | Operation::Sync => file.write_at(buf.as_bytes(), offset)?,
        };
        ensure!(done == BLOCK_SIZE, "a file of the library gave {done} bytes");
        if operation == Operation::Sync {
            file.sync_data()?;
        }
        Ok(())
    })?;
    drop(file);
    fs.close()?;
    Ok(())
}

fn kernel_file(args: &Args, blocks: u64, measure: &mut Measure<'_>) -> anyhow::Result<()> {
    let run = |command: &mut Command| -> anyhow::Result<()> {
        let status = command.status().with_context(|| format!("{command:?}"))?;
        ensure!(status.success(), "{command:?}: {status}");
        Ok(())
    };
    run(Command::new("mount").args(["-t", "f2fs"]).arg(&args.device).arg(&args.mount))?;
    let file = direct(&args.mount.join(NAME))?;
    let measured = measure("kernel", blocks, &|operation, block, buf| calls(&file, operation, block, buf));
    drop(file);
    run(Command::new("umount").arg(&args.mount))?;
    measured
}

fn library_device(args: &Args, options: OpenOptions, measure: &mut Measure<'_>) -> anyhow::Result<()> {
    let device = UringDevice::open(&args.device, options)?;
    let blocks = device.info().blocks;
    println!("{}", device.info().description);
    measure("device", blocks, &|operation, block, buf| {
        match operation {
            Operation::Read => device.read_into(block, buf)?,
            Operation::Write | Operation::Sync => device.write_from(block, buf)?,
        }
        if operation == Operation::Sync {
            device.flush()?;
        }
        Ok(())
    })?;
    measure("batch", blocks, &|operation, block, buf| {
        let request = |at: u64| {
            let (start, buf) = ((block + at * 7919) % blocks, AlignedBuf::new(1));
            if operation == Operation::Read { Request::read(start, buf) } else { Request::write(start, buf) }
        };
        for completion in device.submit((0..32).map(request).collect()).wait() {
            *buf = completion.into_buf()?;
        }
        if operation == Operation::Sync {
            device.flush()?;
        }
        Ok(())
    })
}

/// Opens for transfers that bypass the page cache.
fn direct(path: &Path) -> anyhow::Result<HostFile> {
    let flags = OFlags::DIRECT.bits() as i32;
    let mut options = HostOptions::new();
    options.read(true).write(true).custom_flags(flags);
    options.open(path).with_context(|| path.display().to_string())
}

fn calls(file: &HostFile, operation: Operation, block: u64, buf: &mut AlignedBuf) -> anyhow::Result<()> {
    let offset = block * BLOCK_SIZE as u64;
    match operation {
        Operation::Read => file.read_exact_at(buf.as_bytes_mut(), offset)?,
        Operation::Write | Operation::Sync => file.write_all_at(buf.as_bytes(), offset)?,
    }
    if operation == Operation::Sync {
        file.sync_data()?;
    }
    Ok(())
}

/// Runs `act` on random blocks for as long as is asked: how often a second, the median and the 99th percentile of the
/// times (microseconds).
fn times(args: &Args, operation: Operation, threads: usize, blocks: u64, act: &Act<'_>) -> anyhow::Result<[f64; 3]> {
    let barrier = Barrier::new(threads);
    let limit = Duration::from_millis(args.milliseconds);
    let work = |thread: usize| -> anyhow::Result<(Duration, Vec<Duration>)> {
        let mut random = Random::new(thread as u64 + 1);
        let mut buf = AlignedBuf::new(1);
        let mut times = Vec::with_capacity(1 << 16);
        // Objects that are made at first use, such as rings, are no part of the measurement.
        let first = act(operation, random.below_u64(blocks), &mut buf);
        barrier.wait();
        first?;
        let begin = Instant::now();
        let mut last = begin;
        while last - begin < limit {
            act(operation, random.below_u64(blocks), &mut buf)?;
            let now = Instant::now();
            times.push(now - last);
            last = now;
        }
        Ok((last - begin, times))
    };
    let results: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        workers.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let (mut longest, mut all) = (Duration::ZERO, Vec::new());
    for result in results {
        let (took, times) = result.ok().context("a thread panicked")??;
        longest = longest.max(took);
        all.extend(times);
    }
    ensure!(!all.is_empty(), "no operation ended in time");
    all.sort_unstable();
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    Ok([all.len() as f64 / longest.as_secs_f64(), at(0.5), at(0.99)])
}
