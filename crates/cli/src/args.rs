//! The command line.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod format;
pub(crate) mod journal;
pub(crate) mod mount;
pub(crate) mod ublk;
pub(crate) mod zones;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::size::Limit;

/// The heading in the help of the options that every command has.
const OPENING: &str = "Options for opening a volume";

/// Work with F2FS volumes in files and on devices, without mounting them.
///
/// IMAGE is a file, a block device, or a character device. Character devices are persistent memory (/dev/dax0.0) and
/// NVMe namespaces (/dev/ng0n1), which are driven by their own commands. A path in the volume begins at the root of the
/// volume, with or without a slash in front.
#[derive(Debug, Parser)]
#[command(
    name = "f2fs",
    version,
    after_help = "\
Names are printed quoted for a shell: 'two words', $'new\\nline', ./-dash. With --json, characters that are not \
printable are written as \\xNN. `ls --zero` prints names as they are. An argument that begins with a dash and is \
not an option goes behind --.

Sizes are bytes, or have a unit behind them: K, M, G, T, P (powers of 1024), as in 64M or 1.5G.

Exit codes:
  0    done; `check`: the volume is sound
  1    failed; `check`: the volume was corrupt and is repaired
  2    the command line is wrong, and nothing was opened
  4    `check`: the volume is corrupt, or its journal cannot be brought back
  8    `check`: the volume could not be checked
  129, 130, 143
       SIGHUP, SIGINT (Ctrl-C) or SIGTERM came; a message says in what state the volume is left.
       `mount --foreground` closes the volume, and ends with 0

`f2fs help COMMAND` describes each command. Start with:
  f2fs format disk.img --size 256M
  f2fs put disk.img today.txt /
  f2fs ls -l disk.img"
)]
pub(crate) struct Arguments {
    /// Map IMAGE as persistent memory.
    ///
    /// A file on a file system that is mounted with dax is then read and written without system calls. Any other file
    /// is mapped through the page cache, which is slower. Character devices of memory (/dev/dax0.0) are always mapped.
    #[arg(long, global = true, help_heading = OPENING)]
    pub(crate) pmem: bool,
    /// Another device of a volume that lies on several devices.
    ///
    /// Give it once for each device behind the first, in their order. `f2fs inspect` shows the paths that the volume
    /// recorded for its devices; none of them is opened unless it is given here.
    #[arg(long = "device", global = true, value_name = "PATH", help_heading = OPENING)]
    pub(crate) devices: Vec<PathBuf>,
    /// Memory for a page cache.
    ///
    /// Blocks that are read or written stay in it. Written blocks go to the image with a sync, with a checkpoint, or
    /// after a few seconds. 0, which is the default: there is no page cache, and every read and write goes to the image
    /// at once.
    #[arg(long, global = true, value_name = "SIZE", help_heading = OPENING)]
    pub(crate) page_cache: Option<Limit>,
    #[command(flatten)]
    pub(crate) journal: journal::JournalChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a volume.
    ///
    /// A file that is missing is created, with the size of --size. A file system that is there is overwritten only with
    /// --force.
    #[command(
        visible_alias = "mkfs",
        after_help = "\
Examples:
  f2fs format disk.img --size 1.5G --label data
  f2fs format -f /dev/sdX -O extra_attr,inode_checksum
  f2fs format -f /dev/sdX --device /dev/sdY --device /dev/sdZ"
    )]
    Format(format::FormatArgs),
    /// Print the superblock, the checkpoint, features, counts and logs.
    ///
    /// Of a volume that cannot be opened, it prints both superblocks and both checkpoint packs as far as they can be
    /// read, with the fault of each, and exits with 1.
    #[command(after_help = "\
Examples:
  f2fs inspect disk.img
  f2fs inspect --json /dev/sdX")]
    Inspect {
        /// File or block device.
        image: PathBuf,
        /// Measure the holes between valid blocks as well. This reads the whole SIT: 38 MiB for each TiB of the volume.
        #[arg(long)]
        holes: bool,
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Check a volume, or repair it.
    ///
    /// Without --repair and --undo nothing is written. Each finding is one line. With --journal the journal is checked
    /// too: it has to belong to the volume, be whole, and replay (in memory).
    ///
    /// A repair begins at the last checkpoint. Files that were synced after it, before a crash, are brought back first if
    /// the volume is consistent but for copies that are not in use. If not, what is wrong is mended in place, as where
    /// bits were flipped, and they come back when the volume is mounted. Where that cannot be done the repair is refused:
    /// `f2fs get` copies such files out, `f2fs mount` brings them back where the damage does not stop it, --no-recovery
    /// gives them up, in a sound volume too.
    #[command(
        visible_alias = "fsck",
        after_help = "\
Exit codes:
  0  the volume is sound; what is found all the same is what a crash may leave, such as a torn copy of the
     superblock that the other copy stands in for: it does no harm, and --repair mends it
  1  the volume was corrupt, and is repaired; or synced files were given up (--no-recovery)
  2  the command line is wrong
  4  the volume is corrupt, or what was synced after the last checkpoint, into the volume or into the journal of
     --journal, cannot be brought back; with --repair: the volume still is corrupt
  8  the volume could not be checked, repaired, or put back

Examples:
  f2fs check disk.img
  f2fs check --repair --backup before.bak disk.img
  f2fs check --undo before.bak disk.img"
    )]
    Check(CheckArgs),
    /// Give the room of free segments back to the disk, as `fstrim` does.
    ///
    /// A file with a volume keeps what commands wrote that were killed, or that met a full disk, until this is done. A
    /// command that ends by itself has done it for what it removed. The volume is checked first: of a damaged one nothing
    /// is given back. Zones are begun anew when they are empty, and nothing else is done for them.
    #[command(after_help = "\
Examples:
  f2fs trim disk.img
  f2fs trim --json /dev/sdX")]
    Trim {
        /// File or block device.
        image: PathBuf,
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Measure how long a device takes for writes of each size.
    ///
    /// The result is a cost model: the library's partial cleaning plans with it, and `f2fs ublk add --slow FILE`
    /// imitates the device. The content of IMAGE is overwritten.
    #[command(after_help = "\
Examples:
  f2fs calibrate scratch.img --size 256M --svg cost.svg
  f2fs calibrate -f /dev/sdX --store cost.json --text cost.txt")]
    Calibrate(calibrate::CalibrateArgs),
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
    /// Print the content of a file.
    #[command(after_help = "\
Examples:
  f2fs cat disk.img /docs/today.txt")]
    Cat {
        #[command(flatten)]
        view: View,
        /// File or block device.
        image: PathBuf,
        /// Path in the volume.
        path: PathBuf,
    },
    /// Print the attributes of files.
    #[command(after_help = "\
Examples:
  f2fs stat disk.img /docs/today.txt
  f2fs stat --json disk.img / /docs")]
    Stat {
        #[command(flatten)]
        view: View,
        /// Print JSON, for programs: a line for each path.
        #[arg(long)]
        json: bool,
        /// File or block device.
        image: PathBuf,
        /// Paths in the volume.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Print every file of the tree with its attributes and a digest of its content.
    ///
    /// Each line has nine fields between tabs: type, mode, owner, group, size in bytes, links, SHA-256 of the content
    /// (or the target of a link, or the number of a device), extended attributes, path. In names, characters that are
    /// not printable are written as \xNN. Two trees are the same if their manifests are the same.
    #[command(after_help = "\
Examples:
  f2fs manifest disk.img > a; f2fs manifest --host tree > b; diff a b")]
    Manifest {
        #[command(flatten)]
        view: View,
        /// Walk a directory of this machine instead of an image.
        #[arg(long, conflicts_with = "no_recovery")]
        host: bool,
        /// Hash no file that is larger than this, holes included.
        ///
        /// Larger files are listed as `unhashed`, and counted. With 0, only empty files are hashed. Holes are hashed
        /// too, without being read: 64 GiB take some 40 seconds.
        #[arg(long, value_name = "SIZE", default_value = "64G", allow_hyphen_values = true)]
        max_hash: Limit,
        /// File or block device; with --host, a directory.
        image: PathBuf,
    },
    /// Copy files into a volume.
    ///
    /// What the volume itself lies on (its image, further devices, its journal) is left out; the exit code is then 1.
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
        /// The files to copy, and last the path in the volume.
        ///
        /// `-` is what is left to read of standard input. If the path in the volume is a directory, files are copied
        /// into it; a single directory with -r is merged with it.
        ///
        /// A file that is there is replaced when the new one is whole, and is as it was if that never is. A symbolic
        /// link is followed, and what it names written anew.
        #[arg(required = true, num_args = 2.., value_names = ["HOST", "PATH"])]
        paths: Vec<PathBuf>,
    },
    /// Copy files out of a volume.
    ///
    /// Files that cannot be read, since they are encrypted or compressed, are left out; a message counts them, and the
    /// exit code is 1. So is a file that would replace what the volume itself lies on: its image, further devices, its
    /// journal.
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
        /// The paths in the volume, and last the place to copy them to.
        ///
        /// `-` is standard output. A device or pipe is written into.
        #[arg(required = true, num_args = 2.., value_names = ["PATH", "HOST"])]
        paths: Vec<PathBuf>,
    },
    /// Make directories.
    #[command(after_help = "\
Examples:
  f2fs mkdir -p disk.img /docs/old /photos")]
    Mkdir {
        /// Make missing parents as well. A directory that exists is not an error.
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
    /// A path that cannot be removed is reported. The others are removed, and the exit code is 1.
    #[command(after_help = "\
Examples:
  f2fs rm disk.img /docs/today.txt
  f2fs rm -r disk.img /tree
  f2fs rm disk.img -- -name")]
    Rm {
        /// Remove directories with all that they hold.
        #[arg(short, long)]
        recursive: bool,
        /// A path that is missing is not an error.
        #[arg(short, long)]
        force: bool,
        /// File or block device.
        image: PathBuf,
        /// Paths in the volume.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Rename a file or directory.
    #[command(after_help = "\
Examples:
  f2fs mv disk.img /docs/today.txt /docs/old/
  f2fs mv --exchange disk.img /a /b")]
    Mv {
        /// Fail if the new path exists.
        #[arg(short, long, conflicts_with = "exchange")]
        no_clobber: bool,
        /// Exchange the two files or directories.
        #[arg(long)]
        exchange: bool,
        /// File or block device.
        image: PathBuf,
        /// The old path in the volume.
        from: PathBuf,
        /// The new path in the volume, or a directory to move it into.
        to: PathBuf,
    },
    /// Give a file another name, or make a symbolic link.
    #[command(after_help = "\
Examples:
  f2fs ln disk.img /docs/today.txt /docs/again.txt
  f2fs ln -s disk.img today.txt /docs/link")]
    Ln {
        /// Make a symbolic link.
        #[arg(short, long)]
        symbolic: bool,
        /// File or block device.
        image: PathBuf,
        /// The path in the volume; for a symbolic link, any text.
        target: PathBuf,
        /// The new path in the volume. In a directory that exists, the link gets the name of the target.
        path: PathBuf,
    },
    /// Mount a volume by FUSE.
    ///
    /// The command returns when the volume is mounted. A process in the background serves it until it is unmounted
    /// (`f2fs umount`, `umount`, `fusermount3 -u`) or the process gets SIGTERM, and then closes the volume. Users other
    /// than root need the program fusermount3.
    #[command(after_help = "\
Examples:
  f2fs mount disk.img /mnt
  f2fs mount -o ro,allow_other disk.img /mnt
  f2fs umount /mnt")]
    Mount(mount::MountArgs),
    /// Unmount a volume, and wait until it is closed.
    #[command(after_help = "\
Examples:
  f2fs umount /mnt")]
    Umount {
        /// The directory that the volume is mounted on.
        dir: PathBuf,
    },
    /// Measure names, reads, or a mail server, from many threads.
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Make block devices of memory, of a file, or with zones (/dev/ublkbN).
    #[command(subcommand)]
    Ublk(ublk::UblkCommand),
    /// Make and look after a journal for syncs, in persistent memory or on another device.
    #[command(subcommand)]
    Journal(journal::JournalCommand),
    /// Show the zones of a device, or make a file with zones.
    ///
    /// A file with zones behaves as a zoned disk does: each zone is written from its start to its end. The file keeps
    /// its zones and their write pointers when it is closed.
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
    /// List names that begin with a dot as well, among them `.` and `..`.
    #[arg(short, long)]
    pub(crate) all: bool,
    /// List names that begin with a dot as well, but not `.` and `..`.
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
    /// Print one name on each line. This is always so.
    #[arg(short = '1')]
    pub(crate) one: bool,
    /// Print names (with -R: paths) unquoted and without headings, with a zero byte behind each.
    #[arg(long, conflicts_with_all = ["long", "json"])]
    pub(crate) zero: bool,
    #[command(flatten)]
    pub(crate) view: View,
    /// Print JSON: one object on each line. Names that begin with a dot are listed as well.
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

/// Which state of a volume that was not closed is shown.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct View {
    /// Show the last checkpoint, without the files that were synced after it.
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
    /// Repair the volume. Every block that changes is saved first; files without a name go to lost+found.
    ///
    /// With --journal what was synced into the journal is brought back behind the repair, and the volume is closed. A file
    /// that cannot be is named, and stays as it was at the last checkpoint.
    #[arg(long, conflicts_with = "undo")]
    pub(crate) repair: bool,
    /// The file for the saved blocks. It must not exist yet [default: IMAGE.f2fs-backup; of a device, in the
    /// current directory].
    #[arg(long, requires = "repair", value_name = "FILE")]
    pub(crate) backup: Option<PathBuf>,
    /// Repair the last checkpoint, and give up the files that were synced after it.
    #[arg(long, requires = "repair")]
    pub(crate) no_recovery: bool,
    /// Undo a repair: write back the blocks that it saved in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) undo: Option<PathBuf>,
}

/// A number of at least 1.
fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "not a number of at least 1".to_owned())
}
