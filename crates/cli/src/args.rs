//! The command line.

pub(crate) mod bench;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::size::Size;

/// F2FS images and devices, without mounting them.
#[derive(Debug, Parser)]
#[command(
    name = "f2fs",
    version,
    about,
    after_help = "Exit codes: 0 done, 1 failed, 2 usage; check: 1 repaired, 4 corrupt, 8 not checked."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a volume; creates the file if it is missing.
    Format(FormatArgs),
    /// Print superblock, checkpoint, features, counts, logs, free segments and NIDs.
    Inspect {
        /// File or block device.
        image: PathBuf,
        /// How long the holes between valid blocks are: reads the whole SIT, 38 MiB for each TiB.
        #[arg(long)]
        holes: bool,
        /// For programs.
        #[arg(long)]
        json: bool,
    },
    /// Check a volume without changing it, or repair it.
    Check(CheckArgs),
    /// Measure what writes of each size cost on a device, for the planner of writes into holes.
    Calibrate(CalibrateArgs),
    /// List a directory.
    Ls {
        /// Kind, mode, links, owner, size, time of each entry.
        #[arg(short)]
        long: bool,
        /// Directories below as well.
        #[arg(short = 'R')]
        recursive: bool,
        #[command(flatten)]
        view: View,
        /// For programs.
        #[arg(long)]
        json: bool,
        /// File or block device.
        image: PathBuf,
        /// Path in the volume.
        #[arg(default_value = "/")]
        path: PathBuf,
    },
    /// Print a file.
    Cat {
        #[command(flatten)]
        view: View,
        /// File or block device.
        image: PathBuf,
        /// Path in the volume.
        path: PathBuf,
    },
    /// Print what is known of a file.
    Stat {
        #[command(flatten)]
        view: View,
        /// For programs.
        #[arg(long)]
        json: bool,
        /// File or block device.
        image: PathBuf,
        /// Path in the volume.
        path: PathBuf,
    },
    /// Print the whole tree, one line a path.
    Manifest {
        #[command(flatten)]
        view: View,
        /// Walk a directory of this machine instead of an image.
        #[arg(long)]
        host: bool,
        /// File or block device; with --host a directory.
        image: PathBuf,
    },
    /// Copy files into the volume.
    Put {
        /// Directories with all that they hold.
        #[arg(short, long)]
        recursive: bool,
        /// Threads that copy [default: one a processor].
        #[arg(short, long)]
        jobs: Option<NonZeroUsize>,
        /// File or block device.
        image: PathBuf,
        /// What to copy (`-`: standard input), and last the path in the volume; an existing directory is copied into (one
        /// directory with -r: its content is merged).
        #[arg(required = true, num_args = 2.., value_names = ["HOST", "PATH"])]
        paths: Vec<PathBuf>,
    },
    /// Copy files out of the volume.
    Get {
        #[command(flatten)]
        view: View,
        /// Directories with all that they hold.
        #[arg(short, long)]
        recursive: bool,
        /// Threads that copy [default: one a processor].
        #[arg(short, long)]
        jobs: Option<NonZeroUsize>,
        /// Leave out device nodes, pipes and sockets.
        #[arg(long)]
        skip_special: bool,
        /// File or block device.
        image: PathBuf,
        /// Paths in the volume, and last where to copy them (`-`: standard output).
        #[arg(required = true, num_args = 2.., value_names = ["PATH", "HOST"])]
        paths: Vec<PathBuf>,
    },
    /// Make directories.
    Mkdir {
        /// Missing directories on the way as well; an existing directory is no error.
        #[arg(short, long)]
        parents: bool,
        /// File or block device.
        image: PathBuf,
        /// Paths in the volume.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Remove files.
    Rm {
        /// Directories with all that they hold.
        #[arg(short, long)]
        recursive: bool,
        /// File or block device.
        image: PathBuf,
        /// Paths in the volume.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Rename a file or directory.
    Mv {
        /// Fail if the new name is taken.
        #[arg(short, long, conflicts_with = "exchange")]
        no_clobber: bool,
        /// Let both names change places.
        #[arg(long)]
        exchange: bool,
        /// File or block device.
        image: PathBuf,
        /// The old path in the volume.
        from: PathBuf,
        /// The new path in the volume.
        to: PathBuf,
    },
    /// Give a file another name.
    Ln {
        /// A symbolic link.
        #[arg(short, long)]
        symbolic: bool,
        /// File or block device.
        image: PathBuf,
        /// Path in the volume; for a symbolic link any text.
        target: PathBuf,
        /// The new path in the volume.
        path: PathBuf,
    },
    /// Measure.
    #[command(subcommand)]
    Bench(bench::BenchCommand),
}

/// What of a volume that was not closed is shown.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct View {
    /// Show the last checkpoint, without what was synced after it.
    #[arg(long)]
    pub(crate) no_recovery: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// File or block device.
    pub(crate) image: PathBuf,
    /// For programs.
    #[arg(long)]
    pub(crate) json: bool,
    /// Put right what can be; every block that changes is saved first. Files that nothing refers to go to lost+found.
    #[arg(long, conflicts_with = "undo")]
    pub(crate) repair: bool,
    /// Where the blocks are saved, a file that is not there yet [default: IMAGE.f2fs-backup].
    #[arg(long, requires = "repair", value_name = "FILE")]
    pub(crate) backup: Option<PathBuf>,
    /// Write the blocks back that a repair saved.
    #[arg(long, value_name = "FILE")]
    pub(crate) undo: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// File or block device; a missing file is made. What it holds is overwritten.
    pub(crate) image: PathBuf,
    /// Size of a file that is made: bytes, or with K, M, G, T (powers of 1024).
    #[arg(long)]
    pub(crate) size: Option<Size>,
    /// Writes of each size and kind.
    #[arg(long, default_value_t = 300)]
    pub(crate) samples: usize,
    /// Store the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    /// Store the model as text: blocks, a tab, seconds a block.
    #[arg(long, value_name = "FILE")]
    pub(crate) text: Option<PathBuf>,
    /// Draw it.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Overwrite a device that holds data.
    #[arg(long, short = 'f')]
    pub(crate) force: bool,
    /// For programs.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// File or block device.
    pub(crate) image: PathBuf,
    /// Size of the file: bytes, or with K, M, G, T (powers of 1024).
    #[arg(long)]
    pub(crate) size: Option<Size>,
    /// Volume label.
    #[arg(long, short = 'l', default_value = "")]
    pub(crate) label: String,
    /// Features, separated by commas.
    #[arg(
        short = 'O',
        value_delimiter = ',',
        long_help = "Features, separated by commas: extra_attr, project_quota, inode_checksum, \
        flexible_inline_xattr, inode_crtime, lost_found, sb_checksum."
    )]
    pub(crate) features: Vec<String>,
    /// Segments in a section.
    #[arg(short = 's', default_value_t = 1)]
    pub(crate) segs_per_sec: u32,
    /// Sections in a zone.
    #[arg(short = 'z', default_value_t = 1)]
    pub(crate) secs_per_zone: u32,
    /// Percentage of the main area kept from users.
    #[arg(short = 'o')]
    pub(crate) overprovision: Option<f64>,
    /// File name extensions of cold files, separated by commas.
    #[arg(short = 'e', value_delimiter = ',')]
    pub(crate) cold_extensions: Vec<String>,
    /// File name extensions of hot files, separated by commas.
    #[arg(short = 'E', value_delimiter = ',')]
    pub(crate) hot_extensions: Vec<String>,
    /// A NAT for many small files.
    #[arg(short = 'i')]
    pub(crate) large_nat_bitmap: bool,
    /// Overwrite an existing file system.
    #[arg(long, short = 'f')]
    pub(crate) force: bool,
    /// For programs.
    #[arg(long)]
    pub(crate) json: bool,
}
