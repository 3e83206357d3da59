//! How fast a mounted file system answers requests that its kernel cannot answer itself: creates, forced looks at
//! attributes, and direct reads of 4096 bytes, by one thread and by several.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use f2fs_device::{AlignedBuf, BLOCK_SIZE};
use rustix::fs::{AtFlags, CWD, OFlags, StatxFlags};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An empty directory of the mounted file system.
    dir: PathBuf,
    /// The name in the lines.
    #[arg(long)]
    name: String,
    /// Threads that work at once; once for each number.
    #[arg(long, default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// How long each measurement takes (milliseconds).
    #[arg(long, default_value_t = 1000)]
    time: u64,
    /// Adds `name,what,threads,operations a second` to this file, a line for each measurement.
    #[arg(long)]
    csv: PathBuf,
}

/// Blocks of the file that is read.
const BLOCKS: u64 = 256;

/// What a thread does over and over, in a directory of its own; the number says how often it has.
type Work = fn(&Path, u64) -> anyhow::Result<()>;

const WORKS: [(&str, Work); 3] = [("create", create), ("stat", stat), ("read 4 KiB", read)];

fn create(dir: &Path, number: u64) -> anyhow::Result<()> {
    File::create_new(dir.join(number.to_string()))?;
    Ok(())
}

fn stat(dir: &Path, _number: u64) -> anyhow::Result<()> {
    let found = rustix::fs::statx(CWD, dir.join("file"), AtFlags::STATX_FORCE_SYNC, StatxFlags::BASIC_STATS)?;
    ensure!(found.stx_size == BLOCKS * BLOCK_SIZE as u64, "{} bytes", found.stx_size);
    Ok(())
}

fn read(dir: &Path, number: u64) -> anyhow::Result<()> {
    thread_local! {
        static OPEN: std::cell::RefCell<Option<(File, AlignedBuf)>> = const { std::cell::RefCell::new(None) };
    }
    OPEN.with_borrow_mut(|open| {
        if open.is_none() {
            let direct = OFlags::DIRECT.bits() as i32;
            let file = OpenOptions::new().read(true).custom_flags(direct).open(dir.join("file"))?;
            *open = Some((file, AlignedBuf::new(1)));
        }
        let Some((file, buf)) = open else { return Ok(()) };
        let block = number.wrapping_mul(97) % BLOCKS;
        file.read_exact_at(buf.as_bytes_mut(), block * BLOCK_SIZE as u64)?;
        ensure!(buf.as_bytes()[0] == block as u8, "block {block} has {}", buf.as_bytes()[0]);
        Ok(())
    })
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut csv = OpenOptions::new().create(true).append(true).open(&args.csv)?;
    for threads in &args.threads {
        for (what, work) in WORKS {
            let dir = args.dir.join(format!("{}-{threads}", what.replace(' ', "-")));
            let rate = measure(&dir, *threads, work, Duration::from_millis(args.time)).context(what)?;
            writeln!(csv, "{},{what},{threads},{rate:.0}", args.name)?;
            fs::remove_dir_all(&dir)?;
        }
    }
    Ok(())
}

/// Operations a second of all threads.
fn measure(dir: &Path, threads: usize, work: Work, time: Duration) -> anyhow::Result<f64> {
    for thread in 0..threads {
        let dir = dir.join(thread.to_string());
        fs::create_dir_all(&dir)?;
        let blocks: Vec<u8> = (0..BLOCKS).flat_map(|block| [block as u8; BLOCK_SIZE]).collect();
        fs::write(dir.join("file"), blocks)?;
    }
    let began = Instant::now();
    let counts: Vec<u64> = thread::scope(|scope| {
        let begin = |thread: usize| {
            let dir = dir.join(thread.to_string());
            scope.spawn(move || {
                let mut number = 0;
                while began.elapsed() < time {
                    work(&dir, number)?;
                    number += 1;
                }
                anyhow::Ok(number)
            })
        };
        let all: Vec<_> = (0..threads).map(begin).collect();
        let joined = all.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked"))));
        joined.collect::<anyhow::Result<_>>()
    })?;
    Ok(counts.iter().sum::<u64>() as f64 / began.elapsed().as_secs_f64())
}
