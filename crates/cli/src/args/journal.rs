//! `f2fs journal`, and the options of every command that name the journal of a volume.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use f2fs::JournalMode;

use crate::size::Size;

/// The journal that a volume is opened with.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct JournalChoice {
    /// The journal of the volume: files that are synced are durable with one record there. A file in persistent memory, a character
    /// device of such memory, a block device, or any other file (slower). `f2fs journal create` makes one. The word none: no
    /// journal (`./none` is a file).
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) journal: Option<PathBuf>,
    /// The order between the data of a file and its record in the journal.
    #[arg(long, global = true, value_name = "MODE", value_enum, default_value_t)]
    pub(crate) journal_mode: Mode,
    /// Open for writing a volume that was left with synced files in a journal, without that journal: these files are given up.
    #[arg(long, global = true)]
    pub(crate) without_journal: bool,
}

/// [`JournalMode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Data is durable on the volume before the record that names it.
    #[default]
    Ordered,
    /// A sync does not wait for data: after a power cut, blocks that were written shortly before may hold something else.
    Writeback,
    /// Data goes into the journal together with the record that names it, so that a sync does not flush the device. A large one does.
    Journal,
}

impl Mode {
    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Ordered => "ordered",
            Mode::Writeback => "writeback",
            Mode::Journal => "journal",
        }
    }
}

impl From<Mode> for JournalMode {
    fn from(mode: Mode) -> JournalMode {
        match mode {
            Mode::Ordered => JournalMode::Ordered,
            Mode::Writeback => JournalMode::Writeback,
            Mode::Journal => JournalMode::Journal,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// Make the journal of a volume; makes the file if it is missing.
    #[command(after_help = "\
Examples:
  f2fs journal create --size 64M /mnt/pmem/journal disk.img
  f2fs put --journal /mnt/pmem/journal disk.img today.txt /
  f2fs mount --journal /mnt/pmem/journal disk.img /mnt/disk")]
    Create {
        /// Bytes of a new file.
        #[arg(long, value_name = "SIZE")]
        size: Option<Size>,
        /// Write over what is there. Files that were synced into that journal, and into no checkpoint, are lost.
        #[arg(long, short = 'f')]
        force: bool,
        /// The journal: a file, a character device of memory or a block device.
        path: PathBuf,
        /// The volume: a file or a device.
        image: PathBuf,
    },
    /// Give an existing journal to another volume.
    Attach {
        /// Also if it holds records: files that were synced into it, and into no checkpoint of their volume, are lost.
        #[arg(long, short = 'f')]
        force: bool,
        /// The journal.
        path: PathBuf,
        /// The volume.
        image: PathBuf,
    },
    /// Show whose journal it is, on which checkpoint its records build, and how each lane ends.
    Inspect {
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
        /// The journal.
        path: PathBuf,
    },
    /// Bring what is in a journal to its volume, and close that: it needs the journal no more.
    Detach {
        /// The journal.
        path: PathBuf,
        /// The volume.
        image: PathBuf,
    },
}
