//! Files that are written and synced one after the other until the process is killed, and whether they are there afterwards.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use f2fs_device::BlockDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_uring::Engine;

use crate::pmem;
use f2fs_device_test::Random;

/// Where the files are.
const DIRECTORY: &str = "/endured";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The image, formatted.
    image: PathBuf,
    /// Maps it, which has to lie in persistent memory.
    #[arg(long)]
    pmem: bool,
    /// The number of a file is written to it, a line each, once it is synced.
    #[arg(long)]
    synced: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct EnduredArgs {
    #[command(flatten)]
    args: Args,
    /// Fails if fewer files were synced.
    #[arg(long, default_value_t = 1)]
    least: usize,
}

/// The contents of file `number`: up to 40 KB, so that data in the inode is among it.
fn content(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    let bytes = random.below_u64(40_000);
    (0..bytes).map(|_| random.next() as u8).collect()
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let device = pmem::open(&args.image, args.pmem, Engine::Auto)?;
    println!("{}", device.info().description);
    let fs = FileSystem::open(device, Options::new())?;
    fs.create_dir(DIRECTORY, 0o755)?;
    fs.checkpoint()?;
    let mut synced = fs::File::create(&args.synced)?;
    for number in 0.. {
        let file = fs.create_file(format!("{DIRECTORY}/{number}"), 0o644)?;
        file.write_at(&content(number), 0)?;
        file.sync_all()?;
        writeln!(synced, "{number}")?;
    }
    Ok(())
}

pub(crate) fn check(EnduredArgs { args, least }: &EnduredArgs) -> anyhow::Result<()> {
    let fs = FileSystem::open(pmem::open(&args.image, args.pmem, Engine::Auto)?, Options::new())?;
    let text = fs::read_to_string(&args.synced)?;
    // The last line may have been cut off in the middle of its number.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let numbers = whole.lines().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    ensure!(numbers.len() >= *least, "only {} files were synced", numbers.len());
    for number in &numbers {
        let path = format!("{DIRECTORY}/{number}");
        let wanted = content(*number);
        let mut found = vec![0; wanted.len() + 1];
        let bytes = fs.open_file(&path).and_then(|file| file.read_at(&mut found, 0)).with_context(|| path.clone())?;
        ensure!(found[..bytes] == wanted, "{path} is not what was synced: {bytes} bytes, not {}", wanted.len());
    }
    fs.close()?;
    println!("{} files were synced, and all of them are there", numbers.len());
    Ok(())
}
