//! How long a volume takes to close, by the threads that may work.
//!
//! ```text
//! cargo bench -p f2fs-benches --bench closing -- [--inodes 300000] [--threads 1,2] [--rounds 3]
//! ```
//!
//! Each round makes a new volume on a device in memory, and so many new files in directories of 1000, and closes it. Its nodes
//! are all dirty. The numbers of threads take turns.

use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use f2fs::device::MemoryDevice;
use f2fs::volume::VolumeOptions;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{FileSystem, Options};
use f2fs_benches::arguments::ByCargo;
use f2fs_benches::report::machine;

/// Blocks of the volume: 6 GiB.
const BLOCKS: u64 = 6 << 18;
/// Files in a directory.
const IN_DIRECTORY: u64 = 1000;

/// How long a volume takes to close.
#[derive(Debug, Parser)]
struct Args {
    /// New files.
    #[arg(long, default_value_t = 300_000)]
    inodes: u64,
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Rounds of each.
    #[arg(long, default_value = "3")]
    rounds: NonZeroUsize,
    #[command(flatten)]
    by_cargo: ByCargo,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    println!("{}", machine());
    println!("{} new files; ms until they are closed, of {} rounds", args.inodes, args.rounds);
    let mut times = vec![Vec::new(); args.threads.len()];
    for _ in 0..args.rounds.get() {
        for (threads, times) in args.threads.iter().zip(&mut times) {
            times.push(close(args.inodes, *threads)?);
        }
    }
    for (threads, times) in args.threads.iter().zip(&mut times) {
        times.sort();
        let ms = |time: &Duration| time.as_secs_f64() * 1e3;
        let shown: Vec<String> = times.iter().map(|time| format!("{:.0}", ms(time))).collect();
        println!("{threads:>4} threads: median {:>6.0} of {}", ms(&times[times.len() / 2]), shown.join(" "));
    }
    Ok(())
}

fn close(inodes: u64, threads: usize) -> Result<Duration, Box<dyn Error>> {
    let device = Arc::new(MemoryDevice::new(BLOCKS));
    let mut how = FormatOptions::default();
    how.discard = false;
    format(&*device, &how)?;
    let volume = VolumeOptions::new().dirty_nodes(u64::MAX / 2).threads(threads);
    let fs = FileSystem::open(device, Options::new().volume(volume))?;
    for number in 0..inodes {
        if number % IN_DIRECTORY == 0 {
            fs.create_dir(format!("/{}", number / IN_DIRECTORY), 0o755)?;
        }
        fs.create_file(format!("/{}/{number}", number / IN_DIRECTORY), 0o644)?;
    }
    let begun = Instant::now();
    fs.close()?;
    Ok(begun.elapsed())
}
