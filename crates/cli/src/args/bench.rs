//! The command line of `f2fs bench`. Options that the benches have in common stand here once.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use f2fs::nat::Policy;
use f2fs::{DirectoryLock, RangeLock};
use f2fs_workload::fxmark::Workload;
use f2fs_workload::reads::{Pattern, Sharing};

use crate::size::Size;

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Create, unlink, rename, read and write from many threads, with each way of finding free node IDs.
    ///
    /// The workloads are FxMark's. They run in this process, on a device in memory or on an image. With --journal files
    /// are synced into that journal; it has to be empty, or its content is lost by --force.
    ///
    /// The first measurement of each workload and number of threads is done twice, and the first result thrown away: it
    /// has the kernel fetch memory that the others find in the process. With --formatted there is no such warm-up.
    #[command(after_help = "\
Examples:
  f2fs bench fxmark --memory 8G --workload mwul,mwum --threads 1,2,4
  f2fs bench fxmark --image scratch.img --size 8G --policy sharded --csv rates.csv
  f2fs bench fxmark --directory /mnt/f2fs --workload mwul,mwcl --threads 1,2,4")]
    Fxmark(FxmarkArgs),
    /// Read blocks of 4 KiB from many threads, with the library's range locks and with a tree of ranges as in Btrfs.
    ///
    /// The first measurement of each number of threads is done twice, and the first result thrown away, as in fxmark.
    #[command(after_help = "\
Examples:
  f2fs bench read --threads 1,2,4
  f2fs bench read scratch.img --size 4G --file private --pattern sequential")]
    Read(ReadArgs),
    /// Do a mail server's work (Filebench's varmail), with the journal on an SSD and in persistent memory.
    ///
    /// Each file is synced twice. Without --image, models of both devices are measured in virtual time, with a page
    /// cache of 1 GiB if --page-cache does not say otherwise.
    #[command(after_help = "\
Examples:
  f2fs bench varmail --svg varmail.svg
  f2fs bench varmail --image /dev/nvme0n1 --force --journal none
  f2fs bench varmail --image /dev/nvme0n1 --force --journal /mnt/pmem/journal --journal-mode journal
  f2fs bench varmail --directory /mnt/ext4 --seconds 10")]
    Varmail(VarmailArgs),
}

/// Varmail.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("measured").args(["image", "directory"])))]
pub(crate) struct VarmailArgs {
    /// File or block device to measure on. Its content is lost.
    ///
    /// The journal is that of --journal; its content is lost, too, which needs --force. Without --image, models are
    /// measured, which need no device.
    #[arg(long)]
    pub(crate) image: Option<PathBuf>,
    /// Directory of a mounted file system to measure in place of an image: for comparison. A directory `mail` is made in
    /// it, and removed.
    #[arg(long, conflicts_with = "image")]
    pub(crate) directory: Option<PathBuf>,
    /// Size of an image that is created.
    #[arg(long, requires = "image", allow_hyphen_values = true)]
    pub(crate) size: Option<Size>,
    /// Overwrite the content of the image, and of the journal.
    #[arg(long, short = 'f', requires = "image")]
    pub(crate) force: bool,
    /// Number of threads: 1 to 4096.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) threads: u16,
    /// Seconds to measure on an image or in a directory.
    #[arg(long, default_value_t = 30, requires = "measured", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// Rounds that each thread does on the models. A round has 13 operations.
    #[arg(
        long,
        default_value_t = 200,
        conflicts_with = "measured",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    pub(crate) rounds: u64,
    /// Let reads of the models cost nothing, as if all files were in a page cache.
    #[arg(long, conflicts_with = "measured")]
    pub(crate) cached_reads: bool,
    /// Time that the model of the SSD takes for a flush, in microseconds.
    #[arg(
        long,
        default_value_t = 2000,
        conflicts_with = "measured",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    pub(crate) flush_us: u64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Where to measure.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// File or block device to measure on. Its content is lost.
    #[arg(long, conflicts_with = "memory")]
    pub(crate) image: Option<PathBuf>,
    /// Size of an image that is created.
    #[arg(long, requires = "image", allow_hyphen_values = true)]
    pub(crate) size: Option<Size>,
    /// Overwrite the content of the image, and of the journal.
    #[arg(long, short = 'f')]
    pub(crate) force: bool,
    /// Size of a device in memory. Only blocks that are written take memory.
    #[arg(long, default_value = "64G", allow_hyphen_values = true)]
    pub(crate) memory: Size,
}

/// The numbers of threads to measure with.
#[derive(Debug, Args)]
pub(crate) struct ThreadArgs {
    /// Numbers of threads, separated by commas: 1 to 4096.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,2,4,8,16,32,64,120,128",
        value_parser = clap::value_parser!(u16).range(1..=4096)
    )]
    pub(crate) threads: Vec<u16>,
}

/// Where the results go beside the table.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Write CSV: a line for each measurement, below a description of the machine.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw a picture as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Print JSON instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FxmarkArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Directory of a mounted file system to measure in place of the library, by system calls: for comparison. A
    /// directory `fxmark` is made in it, and removed.
    #[arg(long, conflicts_with_all = ["image", "memory", "policy", "directory_lock", "free_nids", "verify"])]
    pub(crate) directory: Option<PathBuf>,
    /// Measure on the new, empty volume that the image has, and do not format it. For one measurement.
    #[arg(long, requires_all = ["image", "force"])]
    pub(crate) formatted: bool,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Workloads, separated by commas.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "mwul,mwum",
        long_help = "Workloads, separated by commas. Unlink: mwul (private directories), mwum (a shared one). Create: mwcl, \
        mwcm (with 4 KiB). Rename: mwrl, mwrm (into a shared one). Read 4 KiB: drbl (private files), drbm (a shared one), drbh (one \
        block). Overwrite 4 KiB: dwol, dwom."
    )]
    pub(crate) workload: Vec<Workload>,
    /// Ways of finding free node IDs, separated by commas.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "kernel-scan,clue,sharded",
        long_help = "Ways of finding free node IDs, separated by commas: kernel-scan (Linux), clue (all its techniques), \
        clue:TECHNIQUE or clue:TECHNIQUE+TECHNIQUE (optimistic, heuristic, lazy), sharded."
    )]
    pub(crate) policy: Vec<Policy>,
    /// Operations of one measurement, of all threads together. Where each needs a file of its own, this is the number
    /// of files.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=4_294_967_295))]
    pub(crate) files: u64,
    /// The lock that a change of a name takes.
    #[arg(long, value_enum, default_value = "bucket")]
    pub(crate) directory_lock: LockArg,
    /// Node IDs that are free at the start [default: 0 for mwul and mwum, as FxMark fills the volume; all for the
    /// others].
    #[arg(long, value_name = "N")]
    pub(crate) free_nids: Option<u64>,
    /// Check the volume after each measurement.
    #[arg(long)]
    pub(crate) verify: bool,
}

/// The lock that a change of a name takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LockArg {
    /// A lock of the whole directory, as in the kernel.
    Whole,
    /// A lock of one of 64 stripes of the directory's names (about 4 for each processor where there are 32 or more).
    Bucket,
}

impl From<LockArg> for DirectoryLock {
    fn from(lock: LockArg) -> DirectoryLock {
        match lock {
            LockArg::Whole => DirectoryLock::Whole,
            LockArg::Bucket => DirectoryLock::Bucket,
        }
    }
}

/// Reads of 4 KiB.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// File or block device to measure on. Its content is lost. Without it, a device in memory is measured.
    #[arg(value_name = "IMAGE", conflicts_with = "memory")]
    pub(crate) image: Option<PathBuf>,
    /// Size of an image that is created.
    #[arg(long, requires = "image", allow_hyphen_values = true)]
    pub(crate) size: Option<Size>,
    /// Overwrite the content of the image.
    #[arg(long, short = 'f', requires = "image")]
    pub(crate) force: bool,
    /// Size of a device in memory. Only blocks that are written take memory.
    #[arg(long, default_value = "4G", allow_hyphen_values = true)]
    pub(crate) memory: Size,
    /// Size of all files together.
    #[arg(long, default_value = "256M", allow_hyphen_values = true)]
    pub(crate) file_size: Size,
    /// The order of the reads.
    #[arg(long, value_enum, default_value = "random")]
    pub(crate) pattern: PatternArg,
    /// Whether threads share a file.
    #[arg(long, value_enum, default_value = "shared")]
    pub(crate) file: SharingArg,
    /// Number of reads that a thread has in flight. It takes memory for 64 times as many blocks, or for all its reads if
    /// these are fewer: of all threads together at most half of the machine's.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) depth: u16,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
    /// The implementations of range locks to measure, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "extent,btree")]
    pub(crate) table: Vec<TableArg>,
    /// Reads of one measurement, of all threads together.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) reads: u64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl ReadArgs {
    /// Where to measure, as for the other benches.
    pub(crate) fn target(&self) -> TargetArgs {
        TargetArgs { image: self.image.clone(), size: self.size, force: self.force, memory: self.memory }
    }
}

/// The order of the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PatternArg {
    /// At random places of the file.
    Random,
    /// In order, each thread from a place of its own.
    Sequential,
}

impl From<PatternArg> for Pattern {
    fn from(pattern: PatternArg) -> Pattern {
        match pattern {
            PatternArg::Random => Pattern::Random,
            PatternArg::Sequential => Pattern::Sequential,
        }
    }
}

/// Whether threads share a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SharingArg {
    /// One file for all threads.
    Shared,
    /// A file for each thread.
    Private,
}

impl From<SharingArg> for Sharing {
    fn from(sharing: SharingArg) -> Sharing {
        match sharing {
            SharingArg::Shared => Sharing::Shared,
            SharingArg::Private => Sharing::Private,
        }
    }
}

/// An implementation of range locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableArg {
    /// The lock table of f2fs-extent.
    Extent,
    /// A tree of locked ranges under one mutex, as in Btrfs.
    Btree,
}

impl From<TableArg> for RangeLock {
    fn from(table: TableArg) -> RangeLock {
        match table {
            TableArg::Extent => RangeLock::Extent,
            TableArg::Btree => RangeLock::Btree,
        }
    }
}
