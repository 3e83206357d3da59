//! The command line of `f2fs ublk`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::zones::Zones;
use crate::size::Size;

#[derive(Debug, Subcommand)]
pub(crate) enum UblkCommand {
    /// Make a block device and print its path; a process in the background serves it.
    #[command(after_help = "\
Examples:
  f2fs ublk add --memory 4G
  f2fs ublk add --file disk.img --queues 2
  f2fs ublk add --zoned 4G:64M:48M,conventional=2,open=8 --foreground")]
    Add(AddArgs),
    /// List the devices of this machine.
    List {
        /// Print JSON, an object a line.
        #[arg(long)]
        json: bool,
    },
    /// Delete a device; its server ends.
    Delete {
        /// N of /dev/ublkbN.
        number: u32,
        /// Even if it is open or mounted.
        #[arg(long, short = 'f')]
        force: bool,
    },
    /// Take over a device of a file whose server died. Requests that waited go on.
    Recover {
        /// N of /dev/ublkbN.
        number: u32,
        /// The file that the device is made of.
        #[arg(long, value_name = "IMG")]
        file: PathBuf,
        /// Serve it in this process, until a signal comes.
        #[arg(long)]
        foreground: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    pub(crate) kind: Kind,
    /// N of /dev/ublkbN [default: the least that is free].
    #[arg(long, value_name = "N")]
    pub(crate) number: Option<u32>,
    /// Queues, each with a thread; no more than processors.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) queues: u16,
    /// Requests of a queue at a time.
    #[arg(long, default_value_t = 128, value_name = "N")]
    pub(crate) depth: u16,
    /// Serve it in this process, until a signal comes.
    #[arg(long)]
    pub(crate) foreground: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Kind {
    /// Memory, which is lost with the server.
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Size>,
    /// A file or block device.
    #[arg(long, value_name = "IMG")]
    pub(crate) file: Option<PathBuf>,
    /// Memory with zones: SIZE:ZONE[:CAPACITY][,conventional=N][,open=N][,active=N].
    #[arg(long, value_name = "ZONES")]
    pub(crate) zoned: Option<Zones>,
}
