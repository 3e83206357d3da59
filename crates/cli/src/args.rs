//! The command line.

pub(crate) mod bench;
pub(crate) mod journal;
pub(crate) mod mount;
pub(crate) mod ublk;
pub(crate) mod zones;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};
use f2fs::format::feature::Features;

use crate::size::{Limit, Size};

/// F2FS volumes in files and on devices, without mounting them.
///
/// IMAGE is a file, a block device, or a character device: of persistent memory (/dev/dax0.0), or of an NVMe namespace (/dev/ng0n1), which is
/// driven by its own commands. A path in the volume begins at its root, with or without a slash in front.
#[derive(Debug, Parser)]
#[command(
    name = "f2fs",
    version,
    after_help = "\
Names are printed as a shell takes them back: 'two words', $'new\\nline', ./-dash; so are those in messages.
--json prints them with all but printable characters as \\xNN, and ls --zero as they are. What begins with a dash
and is no option stands behind --.

Exit codes: 0 done; 1 failed; 2 the command line is wrong; 129, 130 and 143 a signal came, and a message says what it left.
check: 1 repaired, 4 corrupt, 8 not checked.

`f2fs help COMMAND` says more about each."
)]
pub(crate) struct Arguments {
    /// Map IMAGE as persistent memory: a file that lies in such memory (mounted with dax) is read and written without system calls,
    /// any other through its page cache, which is slower. Character devices of memory (/dev/dax0.0) are mapped anyway.
    #[arg(long, global = true)]
    pub(crate) pmem: bool,
    /// Another device of a volume that lies on several; as often as there are others, in their order. Those that the volume itself names
    /// are shown by an error and by `inspect`, and never opened unasked.
    #[arg(long = "device", global = true, value_name = "PATH")]
    pub(crate) devices: Vec<PathBuf>,
    /// Memory for blocks of files, read and written ones, in a volume that is opened: bytes, or with K, M, G. Writes are in it until a sync, a checkpoint,
    /// or a few seconds have passed. 0: every read and write goes to the image at once.
    #[arg(long, global = true, value_name = "SIZE", default_value = "0")]
    pub(crate) page_cache: Limit,
    #[command(flatten)]
    pub(crate) journal: journal::JournalChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a volume; creates the file if it is missing.
    #[command(after_help = "\
Examples:
  f2fs format disk.img --size 1.5G --label data
  f2fs format -f /dev/sdX -O extra_attr,inode_checksum
  f2fs format -f /dev/sdX --device /dev/sdY --device /dev/sdZ")]
    Format(FormatArgs),
    /// Print superblock, checkpoint, features, counts and logs.
    ///
    /// For a volume that cannot be opened, prints both superblocks and both checkpoint packs as far as they can be read, with the
    /// fault of each, and exits with 1.
    Inspect {
        /// File or block device.
        image: PathBuf,
        /// Measure the holes between valid blocks as well: reads the whole SIT, 38 MiB for each TiB.
        #[arg(long)]
        holes: bool,
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Check a volume without changing it, or repair it.
    #[command(after_help = "\
Exit codes: 0 clean, 1 was corrupt and is repaired, 2 usage, 4 corrupt (one line a finding), 8 not checked.
With --journal: also whether the journal belongs to the volume, is whole, and can be brought back (in memory; nothing is written).

Examples:
  f2fs check disk.img
  f2fs check --repair --backup before.bak disk.img
  f2fs check --undo before.bak disk.img")]
    Check(CheckArgs),
    /// Measure the cost of writes of each size on a device, for the planner of writes into holes.
    Calibrate(CalibrateArgs),
    /// List directories and files.
    #[command(
        disable_help_flag = true,
        after_help = "\
Examples:
  f2fs ls disk.img
  f2fs ls -la disk.img /docs /photos
  f2fs ls -R --zero disk.img / | xargs -0 -n 1 echo"
    )]
    Ls(ListArgs),
    /// Print a file.
    Cat {
        #[command(flatten)]
        view: View,
        /// File or block device.
        image: PathBuf,
        /// Path in the volume.
        path: PathBuf,
    },
    /// Print the attributes of files.
    Stat {
        #[command(flatten)]
        view: View,
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
        /// File or block device.
        image: PathBuf,
        /// Paths in the volume.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Print the whole tree, one line a path.
    ///
    /// Each line has nine fields between tabs: type, mode, owner, group, size, links, SHA-256 of the content (or target, or device
    /// number), extended attributes, path. In names, characters that are not printable are written as \\xNN. Two trees are the same if their
    /// manifests are.
    #[command(after_help = "\
Examples:
  f2fs manifest disk.img > a; f2fs manifest --host tree > b; diff a b")]
    Manifest {
        #[command(flatten)]
        view: View,
        /// Walk a directory of this machine instead of an image.
        #[arg(long, conflicts_with = "no_recovery")]
        host: bool,
        /// Files that are larger, holes included, are listed as `unhashed`, and counted; 0 hashes only empty ones. A hole is not
        /// read, but hashed: 64 GiB take some 40 seconds.
        #[arg(long, value_name = "SIZE", default_value = "64G", allow_hyphen_values = true)]
        max_hash: Limit,
        /// File or block device; with --host a directory.
        image: PathBuf,
    },
    /// Copy files into the volume.
    #[command(after_help = "\
Examples:
  f2fs put disk.img today.txt /docs/
  f2fs put -r disk.img tree /tree
  tar c tree | f2fs put disk.img - /tree.tar")]
    Put {
        /// Copy directories with all that they hold.
        #[arg(short, long)]
        recursive: bool,
        /// Number of threads [default: one for each processor].
        #[arg(short, long, value_parser = count)]
        jobs: Option<NonZeroUsize>,
        /// File or block device.
        image: PathBuf,
        /// Files to copy (`-`: standard input), and last the path in the volume; an existing directory is copied into (one
        /// directory with -r: its content is merged).
        #[arg(required = true, num_args = 2.., value_names = ["HOST", "PATH"])]
        paths: Vec<PathBuf>,
    },
    /// Copy files out of the volume.
    #[command(after_help = "\
Examples:
  f2fs get disk.img /docs/today.txt .
  f2fs get -r disk.img / tree
  f2fs get disk.img /tree.tar - | tar t")]
    Get {
        #[command(flatten)]
        view: View,
        /// Copy directories with all that they hold.
        #[arg(short, long)]
        recursive: bool,
        /// Number of threads [default: one for each processor].
        #[arg(short, long, value_parser = count)]
        jobs: Option<NonZeroUsize>,
        /// Leave out device nodes, pipes and sockets.
        #[arg(long)]
        skip_special: bool,
        /// File or block device.
        image: PathBuf,
        /// Paths in the volume, and last where to copy them (`-`: standard output; a device or pipe is written into).
        #[arg(required = true, num_args = 2.., value_names = ["PATH", "HOST"])]
        paths: Vec<PathBuf>,
    },
    /// Make directories.
    Mkdir {
        /// Make missing directories on the way as well; an existing directory is no error.
        #[arg(short, long)]
        parents: bool,
        /// File or block device.
        image: PathBuf,
        /// Paths in the volume.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Remove files.
    ///
    /// A path that cannot be removed is reported, and the others are removed.
    #[command(after_help = "\
Examples:
  f2fs rm disk.img /docs/today.txt
  f2fs rm -r disk.img /tree
  f2fs rm disk.img -- -name")]
    Rm {
        /// Remove directories with all that they hold.
        #[arg(short, long)]
        recursive: bool,
        /// A missing path is no error.
        #[arg(short, long)]
        force: bool,
        /// File or block device.
        image: PathBuf,
        /// Paths in the volume.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Rename a file or directory.
    Mv {
        /// Fail if the new name is taken.
        #[arg(short, long, conflicts_with = "exchange")]
        no_clobber: bool,
        /// Exchange the two names.
        #[arg(long)]
        exchange: bool,
        /// File or block device.
        image: PathBuf,
        /// The old path in the volume.
        from: PathBuf,
        /// The new path in the volume; an existing directory is moved into.
        to: PathBuf,
    },
    /// Give a file another name.
    Ln {
        /// Make a symbolic link.
        #[arg(short, long)]
        symbolic: bool,
        /// File or block device.
        image: PathBuf,
        /// Path in the volume; for a symbolic link any text.
        target: PathBuf,
        /// The new path in the volume; in an existing directory the link gets the name of the target.
        path: PathBuf,
    },
    /// Mount a volume, by FUSE.
    ///
    /// Returns when it is mounted; a process in the background serves it until it is unmounted (`f2fs umount`, `umount`, `fusermount3 -u`) or
    /// gets SIGTERM, and closes the volume then. Users other than root need the program fusermount3.
    #[command(after_help = "\
Examples:
  f2fs mount disk.img /mnt
  f2fs mount -o ro,allow_other disk.img /mnt
  f2fs umount /mnt")]
    Mount(mount::MountArgs),
    /// Unmount a volume, and wait until it is closed.
    Umount {
        /// The directory that it is mounted on.
        dir: PathBuf,
    },
    /// Measure: names from many threads (fxmark), reads (read).
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Block devices of Linux made of memory, of a file, or with zones.
    #[command(subcommand)]
    Ublk(ublk::UblkCommand),
    /// A journal for syncs, in persistent memory or on another device.
    #[command(subcommand)]
    Journal(journal::JournalCommand),
    /// Show the zones of a device, or make a file with zones.
    ///
    /// A file with zones behaves as a zoned disk does: each zone is written from its start to its end. The zones are the same when it is
    /// opened again.
    #[command(after_help = "\
Examples:
  f2fs zones --make 512M:4M,conventional=16 disk.img
  f2fs format -m disk.img
  f2fs zones disk.img")]
    Zones(zones::ZonesArgs),
    /// Print a script that completes the command line in a shell.
    #[command(after_help = "\
Examples:
  f2fs completions bash > ~/.local/share/bash-completion/completions/f2fs
  f2fs completions fish > ~/.config/fish/completions/f2fs.fish")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// List names that begin with a dot as well, and `.` and `..`.
    #[arg(short, long)]
    pub(crate) all: bool,
    /// List names that begin with a dot as well.
    #[arg(short = 'A', long)]
    pub(crate) almost_all: bool,
    /// Print kind, mode, links, owner, group, size and time (UTC) of each entry, and the target of a link.
    #[arg(short)]
    pub(crate) long: bool,
    /// With -l: print sizes as 1.5K, 20M.
    #[arg(short = 'h', long)]
    pub(crate) human_readable: bool,
    /// List a directory itself, not its entries.
    #[arg(short, long, conflicts_with = "recursive")]
    pub(crate) directory: bool,
    /// List directories below as well.
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Print one name a line, which is always so.
    #[arg(short = '1')]
    pub(crate) one: bool,
    /// Print names as they are, unquoted and without headings, with a zero byte behind each; with -R, paths.
    #[arg(long, conflicts_with_all = ["long", "json"])]
    pub(crate) zero: bool,
    #[command(flatten)]
    pub(crate) view: View,
    /// Print JSON, an object a line, also for names that begin with a dot.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
    /// File or block device.
    pub(crate) image: PathBuf,
    /// Paths in the volume.
    #[arg(default_value = "/", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

/// The state that is shown of a volume that was not closed.
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
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
    /// Repair the volume; every block that changes is saved first. Files without a name go to lost+found.
    #[arg(long, conflicts_with = "undo")]
    pub(crate) repair: bool,
    /// File for the saved blocks, which must not exist yet [default: IMAGE.f2fs-backup].
    #[arg(long, requires = "repair", value_name = "FILE")]
    pub(crate) backup: Option<PathBuf>,
    /// Write back the blocks that a repair saved in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) undo: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// File or block device; a missing file is made. Its content is overwritten.
    pub(crate) image: PathBuf,
    /// Size of a file that is made: bytes, or with K, M, G, T (powers of 1024) [default: 256M].
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) size: Option<Size>,
    /// Number of writes of each size and kind.
    #[arg(long, default_value = "300", value_name = "N", value_parser = count)]
    pub(crate) samples: NonZeroUsize,
    /// Store the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    /// Store the model as text: blocks, a tab, seconds a block.
    #[arg(long, value_name = "FILE")]
    pub(crate) text: Option<PathBuf>,
    /// Draw the result as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Overwrite a device that holds data.
    #[arg(long, short = 'f')]
    pub(crate) force: bool,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// File or block device.
    pub(crate) image: PathBuf,
    /// Size of the file: bytes, or with K, M, G, T (powers of 1024), as in 1.5G.
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) size: Option<Size>,
    /// Volume label.
    #[arg(long, short = 'l', default_value = "")]
    pub(crate) label: String,
    /// Features, separated by commas.
    #[arg(
        short = 'O',
        value_delimiter = ',',
        value_parser = feature,
        value_name = "FEATURE",
        long_help = "Features, separated by commas: extra_attr, project_quota, inode_checksum, \
        flexible_inline_xattr, inode_crtime, lost_found, sb_checksum."
    )]
    pub(crate) features: Vec<Features>,
    /// Segments in a section.
    #[arg(short = 's', default_value_t = 1)]
    pub(crate) segs_per_sec: u32,
    /// Sections in a zone.
    #[arg(short = 'z', default_value_t = 1)]
    pub(crate) secs_per_zone: u32,
    /// Percentage of the main area kept from users [default: the one that leaves them most].
    #[arg(short = 'o', value_name = "PERCENT", allow_hyphen_values = true)]
    pub(crate) overprovision: Option<f64>,
    /// For zoned devices: sections are zones. The first device, or the zones at its front, must take writes anywhere.
    #[arg(short = 'm')]
    pub(crate) zoned: bool,
    /// File name extensions of cold files, separated by commas.
    #[arg(short = 'e', value_delimiter = ',')]
    pub(crate) cold_extensions: Vec<String>,
    /// File name extensions of hot files, separated by commas.
    #[arg(short = 'E', value_delimiter = ',')]
    pub(crate) hot_extensions: Vec<String>,
    /// A NAT for many small files.
    #[arg(short = 'i')]
    pub(crate) large_nat_bitmap: bool,
    /// With --device: the path of a device as the volume is to record it, which is where the kernel looks for it; once for IMAGE and
    /// once for each --device, in this order [default: the paths of the command line].
    #[arg(long, value_name = "PATH")]
    pub(crate) record_as: Vec<OsString>,
    /// Overwrite an existing file system.
    #[arg(long, short = 'f')]
    pub(crate) force: bool,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A number of things of which there is one at least.
fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "not a number of at least 1".to_owned())
}

/// A feature that a new volume can have.
fn feature(name: &str) -> Result<Features, String> {
    // Zones have an option of their own.
    let of_new = Features(Features::READ_WRITE.0 & !Features::BLKZONED.0);
    let possible = || format!("a new volume has none of this name; possible: {}", of_new.names().join(", "));
    Features::from_name(name).filter(|feature| of_new.contains(*feature)).ok_or_else(possible)
}
