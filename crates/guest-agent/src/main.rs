//! The program that `cargo xtask guest` runs on both sides of a test. It makes and changes trees by the scripts of
//! [`f2fs_workload::tree`], prints their manifests, compares zones, and measures single requests. Linked statically, or
//! taken along with the libraries that it loads: the guest has none.
#![forbid(unsafe_code)]

mod commands;
mod cut;
mod depth_one;
mod endure;
mod flip;
mod lsm;
mod mount_rates;
mod plot;
mod pmem;
mod rates;
mod replay;
mod slow_card;
mod sparse;
mod unnamed;
mod zoned;
mod zonefs;
mod zones;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use f2fs_device::{BlockDevice as _, MemoryDevice};
use f2fs_device_test::RecordingDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_uring::{Engine, OpenOptions, UringDevice};
use f2fs_volume::{AgeThreshold, Allocation, VictimPolicy};
use f2fs_workload::ageing::{Plan, age};
use f2fs_workload::manifest::{walk_host, walk_host_with};
use f2fs_workload::tree::{
    HostTree, Op, Scale, VolumeTree, apply_all, changes, everything, random_base, random_syncs, syncs,
};
use rustix::fs::Mode;

use sparse::Deferred;

#[derive(Debug, Parser)]
#[command(about = "Makes, changes and prints trees for the guest tests")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes the tree with every kind of file in an empty directory.
    Make(TreeArgs),
    /// Changes that tree in many places.
    Change(TreeArgs),
    /// Changes files of the tree that `make` made and syncs them. An image is not closed afterwards, as if the machine
    /// had lost its power.
    Sync(TreeArgs),
    /// Makes the small tree that `random-syncs` changes.
    RandomBase(RandomArgs),
    /// Changes that tree at random, with syncs of files in between. An image is not closed afterwards.
    RandomSyncs(RandomArgs),
    /// Ages an empty image: fills it and overwrites it here and there, with unclean stops.
    Age {
        /// The image.
        image: PathBuf,
        /// Share of the blocks for users that are in use, per cent.
        #[arg(long, default_value_t = 80.0)]
        utilisation: f64,
        /// Blocks overwritten, in multiples of the blocks for users.
        #[arg(long, default_value_t = 4.0)]
        turnover: f64,
        /// How writes treat valid blocks in their way.
        #[arg(long, default_value = "ssr")]
        allocation: Allocation,
        /// Empties old sections meanwhile, their blocks put among others of their age (`AT_SSR`).
        #[arg(long)]
        merge_ages: bool,
    },
    /// Gives random commands to the zones of a kernel's device and to those of the library, and compares them.
    Zones(zones::Args),
    /// Makes a volume on zones with mkfs.f2fs and with the library, and compares them. The devices' contents are lost.
    ZonedFormat(zoned::Args),
    /// Makes the file system zonefs on a zoned device.
    Zonefs(zonefs::Args),
    /// Measures one request after the other: reads, writes and syncs of one block at random places of a device and of a
    /// file on it, by the library and by the kernel.
    DepthOne(depth_one::Args),
    /// Writes and syncs one file after the other until it is killed, and says which are synced.
    Endure(endure::Args),
    /// Checks that the files are there which `endure` said were synced.
    Endured(endure::EnduredArgs),
    /// Makes the image that a log of writes comes to.
    Replay(replay::Args),
    /// Flips bits in the tables of a volume.
    Flip(flip::Args),
    /// Measures transfers on persistent memory, mapped or as a block device. Its contents are lost.
    Pmem(pmem::Args),
    /// Measures volumes on a device. Its contents are lost; an aged volume stays.
    Rates(rates::Args),
    /// Measures how fast a mounted file system answers requests.
    MountRates(mount_rates::Args),
    /// Makes files without a name, and gives names to some.
    Unnamed(unnamed::Args),
    /// Sends an NVMe namespace commands of each kind, or some that it refuses.
    Commands(commands::Args),
    /// Writes as a key-value store of sorted files does, and says how much of it the device was given.
    Lsm(lsm::Args),
    /// Draws a picture of a table.
    Plot(plot::Args),
    /// A long write into an aged volume on a slow card, by a real clock.
    #[command(subcommand)]
    SlowCard(slow_card::Command),
    /// Prints the manifest of a directory.
    Manifest {
        /// The directory that becomes `/`.
        directory: PathBuf,
        /// Copies the data of large files to sparse files in this directory instead of digesting it.
        #[arg(long)]
        defer: Option<PathBuf>,
    },
}

/// Files from this size on are worth a copy (bytes).
const LARGE: u64 = 32 << 20;

#[derive(Debug, clap::Args)]
struct TreeArgs {
    /// The directory that is `/` for the script.
    #[arg(required_unless_present = "image", conflicts_with = "image")]
    directory: Option<PathBuf>,
    /// Runs the script with the library on this image or device instead.
    #[arg(long)]
    image: Option<PathBuf>,
    /// Another device of the volume that begins on the image; once for each.
    #[arg(long = "device", requires = "image")]
    others: Vec<PathBuf>,
    /// Fails where io_uring is not to be had, instead of using system calls.
    #[arg(long)]
    require_io_uring: bool,
    /// Maps the image, which has to lie in persistent memory.
    #[arg(long, requires = "image", conflicts_with = "require_io_uring")]
    pmem: bool,
    /// Ends after a checkpoint, with the changes begun and the volume not closed.
    #[arg(long, requires = "image")]
    abandon: bool,
    /// Leaves an image as a power cut might: what was not flushed is lost or not, as this number says. It also says
    /// when the power is cut: 0 is the end.
    #[arg(long, requires = "image")]
    cut: Option<u64>,
    /// How large the tree is.
    #[arg(long, value_enum, default_value_t = Size::Full)]
    scale: Size,
}

#[derive(Debug, clap::Args)]
struct RandomArgs {
    /// Which of the scripts.
    #[arg(long)]
    seed: u64,
    /// Operations of `random-syncs`.
    #[arg(long, default_value_t = 400)]
    steps: u64,
    #[command(flatten)]
    tree: TreeArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Size {
    Small,
    Medium,
    Wide,
    Full,
}

impl Size {
    fn scale(self) -> Scale {
        match self {
            Self::Small => Scale::SMALL,
            Self::Medium => Scale::MEDIUM,
            Self::Wide => Scale::WIDE,
            Self::Full => Scale::FULL,
        }
    }
}

fn main() -> anyhow::Result<()> {
    // The scripts name exact modes.
    rustix::process::umask(Mode::empty());
    match Args::parse().command {
        Command::Make(args) => run(&args, &everything(args.scale.scale()), End::Close),
        Command::Change(args) => run(&args, &changes(args.scale.scale()), End::Close),
        Command::Sync(args) => run(&args, &syncs(args.scale.scale()), End::Exit),
        Command::RandomBase(args) => run(&args.tree, &random_base(args.seed), End::Close),
        Command::RandomSyncs(args) => run(&args.tree, &random_syncs(args.seed, args.steps), End::Exit),
        Command::Age { image, utilisation, turnover, allocation, merge_ages } => {
            let device = UringDevice::open(&image, OpenOptions::new())?;
            let options = Options::new().volume(f2fs_volume::VolumeOptions::new().allocation(allocation));
            let mut plan = Plan::new(utilisation / 100.0, turnover);
            if merge_ages {
                let rule = AgeThreshold::default().threshold(0);
                plan = plan.cleaning(VictimPolicy::AgeThreshold(rule));
            }
            let report = age(&device, &options, &plan)?;
            ensure!(!merge_ages || report.written.merged_data_blocks > 0, "no block was put among others of its age");
            println!("{} blocks, {} overwritten: {:?}", report.blocks, report.updates, report.written);
            Ok(())
        }
        Command::Zones(args) => zones::run(&args),
        Command::ZonedFormat(args) => zoned::run(&args),
        Command::Zonefs(args) => zonefs::run(&args),
        Command::DepthOne(args) => depth_one::run(&args),
        Command::Endure(args) => endure::run(&args),
        Command::Endured(args) => endure::check(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Flip(args) => flip::run(&args),
        Command::Pmem(args) => pmem::run(&args),
        Command::Unnamed(args) => unnamed::run(&args),
        Command::MountRates(args) => mount_rates::run(&args),
        Command::Rates(args) => rates::run(&args),
        Command::Commands(args) => commands::run(&args),
        Command::Lsm(args) => lsm::run(&args),
        Command::Plot(args) => plot::run(&args),
        Command::SlowCard(command) => slow_card::run(&command),
        Command::Manifest { directory, defer } => {
            let manifest = match defer {
                Some(copies) => {
                    let mut deferred = Deferred::new(copies, LARGE);
                    walk_host_with(&directory, |file, meta| deferred.content(file, meta))?
                }
                None => walk_host(&directory)?,
            };
            let mut out = BufWriter::new(std::io::stdout().lock());
            write!(out, "{manifest}")?;
            out.flush()?;
            Ok(())
        }
    }
}

/// The end of an image after its script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Close,
    /// Nothing is written any more.
    Exit,
}

fn run(args: &TreeArgs, script: &[Op], end: End) -> anyhow::Result<()> {
    if let Some(image) = &args.image {
        return run_on_volume(image, args, script, end);
    }
    let directory = args.directory.as_deref().context("no directory")?;
    apply_all(&mut HostTree::new(directory), script)?;
    println!("{} operations done", script.len());
    Ok(())
}

fn run_on_volume(image: &Path, args: &TreeArgs, script: &[Op], end: End) -> anyhow::Result<()> {
    if let Some(seed) = args.cut {
        let device = Arc::new(RecordingDevice::new(MemoryDevice::load(image)?));
        let fs = FileSystem::open(device.clone(), Options::new())?;
        apply_all(&mut VolumeTree::new(&fs), script)?;
        let log = device.log();
        let (position, lost) = cut::save(&log, seed, image)?;
        println!("cut at event {position} of {}, {lost} blocks lost", log.events().len());
        // No destructor runs, as after a power cut.
        std::process::exit(0);
    }
    let engine = if args.require_io_uring { Engine::IoUring } else { Engine::Auto };
    let device = pmem::assembled(image, &args.others, args.pmem, engine)?;
    let description = device.info().description.clone();
    let fs = FileSystem::open(device, Options::new())?;
    apply_all(&mut VolumeTree::new(&fs), script)?;
    if args.abandon {
        fs.checkpoint()?;
        apply_all(&mut VolumeTree::new(&fs), &changes(args.scale.scale()))?;
        println!("{} operations done, and more without a checkpoint, on {description}", script.len());
        // No destructor runs: what a killed process leaves.
        std::process::exit(0);
    }
    if end == End::Exit {
        println!("{} operations done and not closed, on {description}", script.len());
        std::process::exit(0);
    }
    fs.close()?;
    println!("{} operations done on {description}", script.len());
    Ok(())
}
