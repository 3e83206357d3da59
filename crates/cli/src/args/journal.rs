//! `f2fs journal`, and the options of every command that name the journal of a volume.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use f2fs::JournalMode;

use crate::size::Size;

/// The journal that a volume is opened with.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct JournalChoice {
    /// The journal of the volume, into which files are synced.
    ///
    /// It is a file in persistent memory, a character device of such memory, a block device, or any other file, which
    /// is slower. `f2fs journal create` makes one. The word `none` means no journal (`./none` is a file).
    #[arg(long, global = true, value_name = "PATH", help_heading = super::OPENING)]
    pub(crate) journal: Option<PathBuf>,
    /// The order between the data of a file and its record in the journal.
    #[arg(long, global = true, value_name = "MODE", value_enum, default_value_t, help_heading = super::OPENING)]
    pub(crate) journal_mode: Mode,
    /// Open a volume for writing without the journal that holds synced files of it. These files are lost.
    #[arg(long, global = true, help_heading = super::OPENING)]
    pub(crate) without_journal: bool,
    /// Of a damaged journal, bring back what was synced before the damage, and give up what was synced behind it.
    ///
    /// Without this such a journal is refused, with what there is in front of the damage and behind it.
    #[arg(long, global = true, help_heading = super::OPENING, conflicts_with = "without_journal")]
    pub(crate) up_to_damage: bool,
}

/// [`JournalMode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// A sync flushes the data to the volume, and then writes the record that names it.
    #[default]
    Ordered,
    /// A sync does not wait for data. After a power cut, blocks that were written shortly before may hold other
    /// content.
    Writeback,
    /// A sync writes the data into the journal, with the record, and does not flush the device. A sync of more than a
    /// record takes does.
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
    /// Make a journal for a volume. A file that is missing is created.
    #[command(after_help = "\
Examples:
  f2fs journal create --size 64M /mnt/pmem/journal disk.img
  f2fs put --journal /mnt/pmem/journal disk.img today.txt /
  f2fs mount --journal /mnt/pmem/journal disk.img /mnt/disk")]
    Create {
        /// Size of a file that is created.
        #[arg(long, value_name = "SIZE")]
        size: Option<Size>,
        /// Overwrite what is there. Files that were synced into that journal since the last checkpoint are lost.
        #[arg(long, short = 'f')]
        force: bool,
        /// The journal: a file, a character device of memory, or a block device.
        path: PathBuf,
        /// The volume: a file or a device.
        image: PathBuf,
    },
    /// Give a journal to another volume.
    #[command(after_help = "\
Examples:
  f2fs journal attach /mnt/pmem/journal other.img")]
    Attach {
        /// Attach it even if it holds records. Files that were synced into it since the last checkpoint are lost.
        #[arg(long, short = 'f')]
        force: bool,
        /// The journal.
        path: PathBuf,
        /// The volume.
        image: PathBuf,
    },
    /// Show the volume that a journal belongs to, the checkpoint that its records build on, and how each lane ends.
    #[command(after_help = "\
Examples:
  f2fs journal inspect /mnt/pmem/journal")]
    Inspect {
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
        /// The journal.
        path: PathBuf,
    },
    /// Write the content of a journal to its volume, and close the volume. It then opens without the journal.
    #[command(after_help = "\
Examples:
  f2fs journal detach /mnt/pmem/journal disk.img")]
    Detach {
        /// The journal.
        path: PathBuf,
        /// The volume.
        image: PathBuf,
    },
}
