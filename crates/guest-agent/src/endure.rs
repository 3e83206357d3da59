//! Files that are written and synced one after the other until the process is killed, and whether they are there
//! afterwards.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use f2fs_device::BlockDevice as _;
use f2fs_files::{FileSystem, JournalMode, JournalOptions, Options, create_journal};
use f2fs_journal::RegionMedium;
use f2fs_pmem::{Dax, MappedRegion};
use f2fs_uring::Engine;

use crate::pmem;
use f2fs_device_test::Random;

/// Where the files are.
const DIRECTORY: &str = "/endured";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The image, formatted.
    image: PathBuf,
    /// Another device of the volume that begins on the image; once for each.
    #[arg(long = "device")]
    others: Vec<PathBuf>,
    /// Maps it, which has to lie in persistent memory.
    #[arg(long)]
    pmem: bool,
    /// The journal of the volume, which is made if it is not there yet: a file in persistent memory.
    #[arg(long)]
    journal: Option<PathBuf>,
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

/// Bytes of a new journal: small, so that it fills.
const JOURNAL: u64 = 256 << 10;

/// The file system, with its journal if it has one.
fn open(args: &Args) -> anyhow::Result<FileSystem> {
    let device = pmem::assembled(&args.image, &args.others, args.pmem, Engine::Auto)?;
    println!("{}", device.info().description);
    let mut options = Options::new();
    if let Some(path) = &args.journal {
        let new = !path.exists();
        if new {
            fs::File::create(path)?.set_len(JOURNAL)?;
        }
        let region = MappedRegion::open(path, f2fs_pmem::OpenOptions::new().dax(Dax::Required))?;
        let medium = Arc::new(RegionMedium::new(region));
        if new {
            create_journal(device.clone(), medium.clone(), false)?;
        }
        options = options.journal(JournalOptions::new(medium, JournalMode::Ordered));
    }
    Ok(FileSystem::open(device, options)?)
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let fs = open(args)?;
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
    let fs = open(args)?;
    let recovered = fs.recovered().files;
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
    println!("{} files were synced, and all of them are there; {recovered} were brought back", numbers.len());
    Ok(())
}
