//! The command line of `f2fs ublk`.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand, value_parser};
use f2fs::format::BLOCK_BYTES;
use f2fs::segment::cost::{Card, CostModel, Interior};

use f2fs_device_test::FaultRule;
use f2fs_ublk::{DataPath, Options};

use super::zones::Zones;
use crate::medium::reason;
use crate::size::Size;

#[derive(Debug, Subcommand)]
pub(crate) enum UblkCommand {
    /// Make a block device and print its path. A process in the background serves it.
    #[command(after_help = "\
Examples:
  f2fs ublk add --memory 4G
  f2fs ublk add --file disk.img --queues 2
  f2fs ublk add --file disk.img --copy selective:128K
  f2fs ublk add --zoned 4G:64M:48M,conventional=2,open=8 --foreground
  f2fs ublk add --memory 1G --slow card-a,reads=sata-ssd,flush=2
  f2fs ublk add --memory 1G --faults write,after=999,error=28 --faults any,after=5000,for-good
  f2fs ublk add --file disk.img --record changes.log")]
    Add(AddArgs),
    /// List the ublk devices of this machine.
    List {
        /// Print JSON: one object on each line.
        #[arg(long)]
        json: bool,
    },
    /// Delete a device. Its server ends.
    #[command(after_help = "\
Examples:
  f2fs ublk delete 0")]
    Delete {
        /// The N of /dev/ublkbN, or this path.
        #[arg(value_name = "NUMBER", value_parser = number)]
        number: u32,
        /// Delete it even if it is mounted, or a program has opened it for itself alone. Without, a program that merely
        /// reads or writes it keeps nobody from deleting it: the kernel does not say.
        #[arg(long, short = 'f')]
        force: bool,
    },
    /// Serve a device of a file again after its server died. Requests that waited go on.
    #[command(after_help = "\
Examples:
  f2fs ublk recover 0 --file disk.img")]
    Recover {
        /// The N of /dev/ublkbN, or this path.
        #[arg(value_name = "NUMBER", value_parser = number)]
        number: u32,
        /// The file that the device is made of.
        #[arg(long, value_name = "IMG")]
        file: PathBuf,
        /// Take this file although the device was made of another one, because that was copied here. What the device has
        /// cached goes into it.
        #[arg(long, short = 'f')]
        force: bool,
        #[command(flatten)]
        laboratory: Laboratory,
        #[command(flatten)]
        place: Place,
    },
}

/// Which process serves a device.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Place {
    /// Serve the device in this process until a signal comes.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Another process of the command has started this one as its server, and holds the other end of standard input.
    #[arg(long, hide = true)]
    pub(crate) background: bool,
}

impl Place {
    /// Whether it is this one.
    pub(crate) fn is_here(self) -> bool {
        self.foreground || self.background
    }
}

/// A size that a device can have.
fn whole_blocks(text: &str) -> Result<Size, String> {
    let size: Size = text.parse()?;
    match size.0 % BLOCK_BYTES {
        0 => Ok(size),
        _ => Err(format!("{} bytes are not a multiple of {BLOCK_BYTES}", size.0)),
    }
}

/// The number of a device, from itself or from a path of the device.
fn number(text: &str) -> Result<u32, String> {
    let name = text.strip_prefix("/dev/").unwrap_or(text);
    let digits = ["ublkb", "ublkc"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let number = digits.parse().map_err(|_| "neither a number nor a device such as /dev/ublkb0")?;
    // To the driver the greatest one means any.
    if number == u32::MAX { Err(format!("{number} is not a device's number")) } else { Ok(number) }
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    pub(crate) kind: Kind,
    /// The N of /dev/ublkbN [default: the smallest that is free].
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) number: Option<u32>,
    /// Number of queues. Each has a thread; there are at most as many as processors.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = value_parser!(u16).range(1..=i64::from(Options::MAX_QUEUES)))]
    pub(crate) queues: u16,
    /// Requests that a queue takes at a time.
    #[arg(long, default_value_t = 128, value_name = "N", value_parser = value_parser!(u16).range(1..=i64::from(Options::MAX_DEPTH)))]
    pub(crate) depth: u16,
    #[command(flatten)]
    pub(crate) laboratory: Laboratory,
    /// How data move between requests and the device: auto, kernel, user, none or selective[:SIZE].
    ///
    /// kernel: copied by the driver. user: by system calls of the server, as for zones in any case. none: not copied at
    /// all; needs --file, root and Linux 6.16. selective: by user copy, and from SIZE on not copied at all; needs --file,
    /// root and Linux 6.15. auto is none where that can be had, and else kernel.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) copy: Copying,
    /// The same as --copy user.
    #[arg(long, conflicts_with = "copy")]
    pub(crate) user_copy: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

impl AddArgs {
    /// How data are to move.
    pub(crate) fn copying(&self) -> Copying {
        if self.user_copy { Copying { path: Some(DataPath::User), ..self.copy } } else { self.copy }
    }
}

/// How data move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copying {
    /// `None`: as it suits.
    pub(crate) path: Option<DataPath>,
    /// Bytes of the shortest request that is not copied, where that is selective.
    pub(crate) border: u32,
}

impl FromStr for Copying {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, size) = text.split_once(':').map_or((text, None), |(name, size)| (name, Some(size)));
        let path = match (name, size) {
            ("selective", _) => Some(DataPath::Selective),
            ("auto", None) => None,
            ("kernel", None) => Some(DataPath::Kernel),
            ("user", None) => Some(DataPath::User),
            ("none", None) => Some(DataPath::None),
            _ => return Err(format!("{text:?} is not one of auto, kernel, user, none, selective[:SIZE]")),
        };
        let border = match size {
            None => Options::BORDER,
            Some(size) => {
                let bytes = size.parse::<Size>()?.0;
                u32::try_from(bytes).map_err(|_| format!("{size} is more than a request can have"))?
            }
        };
        Ok(Self { path, border })
    }
}

/// How a device misbehaves.
#[derive(Debug, Args)]
pub(crate) struct Laboratory {
    /// Make the device slow: MODEL[,reads=MODEL][,flush=MILLISECONDS].
    ///
    /// Requests then take the time of the model, one after the other. A model is card-a, card-b, card-c, sata-ssd,
    /// nvme, or a file that `f2fs calibrate --store` or `--text` wrote. Reads and flushes take no time unless a model
    /// or a time is given for them. No request takes more than an hour.
    #[arg(long, value_name = "MODEL")]
    pub(crate) slow: Option<Slowness>,
    /// Make requests fail: OPERATIONS[,after=N][,for-good][,FAULT]. Give it once for each rule.
    ///
    /// OPERATIONS are read, write, fua, discard, flush, change or any, joined by +. The rule lets N of them through and
    /// fails the next, or all that follow (for-good). FAULT is error=NUMBER (default: 5), torn=BLOCKS, short=BLOCKS,
    /// lost, misdirected=BLOCKS or flipped=BIT.
    #[arg(long, value_name = "RULE")]
    pub(crate) faults: Vec<FaultRule>,
    /// Log each change into a new file, in the format of Linux's dm-log-writes. Each queue then serves one request at a
    /// time.
    #[arg(long, value_name = "LOG")]
    pub(crate) record: Option<PathBuf>,
}

/// The costs of requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slowness {
    pub(crate) writes: CostModel,
    pub(crate) reads: Option<CostModel>,
    pub(crate) flush: Duration,
}

impl FromStr for Slowness {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let mut slow = Self { writes: model(parts.next().unwrap_or_default())?, reads: None, flush: Duration::ZERO };
        for part in parts {
            match part.split_once('=') {
                Some(("reads", name)) => slow.reads = Some(model(name)?),
                Some(("flush", time)) => {
                    let milliseconds: f64 =
                        time.parse().map_err(|_| format!("{time:?} is not a number of milliseconds"))?;
                    let duration = Duration::try_from_secs_f64(milliseconds / 1e3);
                    slow.flush = duration.map_err(|_| format!("{time:?} is not a possible time"))?;
                }
                _ => return Err(format!("{part:?} is not one of reads=MODEL, flush=MILLISECONDS")),
            }
        }
        Ok(slow)
    }
}

/// Bytes of a file that are read as a model.
const LONGEST_MODEL: u64 = 1 << 20;

/// A model that is known by its name, or that stands in a file.
fn model(name: &str) -> Result<CostModel, String> {
    let known = match name {
        "card-a" => CostModel::card(Card::A, Interior::LogLog),
        "card-b" => CostModel::card(Card::B, Interior::LogLog),
        "card-c" => CostModel::card(Card::C, Interior::LogLog),
        "sata-ssd" => CostModel::sata_ssd(),
        "nvme" => CostModel::nvme(),
        path => {
            let known = "card-a, card-b, card-c, sata-ssd, nvme";
            // More than any model has; a device may have no end.
            let mut text = String::new();
            let read = File::open(path).and_then(|file| file.take(LONGEST_MODEL).read_to_string(&mut text));
            read.map_err(|error| format!("{path:?} is not one of {known}: {}", reason(path.as_ref(), &error)))?;
            return CostModel::from_text(path.to_owned(), &text).map_err(|error| format!("{path:?}: {error}"));
        }
    };
    Ok(known)
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Kind {
    /// Make the device of memory. Its content is lost when the server ends.
    #[arg(long, value_name = "SIZE", value_parser = whole_blocks)]
    pub(crate) memory: Option<Size>,
    /// Make a device that keeps nothing, to measure what requests cost without a device. Reads give anything.
    #[arg(long, value_name = "SIZE", value_parser = whole_blocks)]
    pub(crate) null: Option<Size>,
    /// Make the device of a file or another block device.
    #[arg(long, value_name = "IMG")]
    pub(crate) file: Option<PathBuf>,
    /// Make a zoned device of memory: SIZE:ZONE[:CAPACITY][,conventional=N][,open=N][,active=N].
    ///
    /// SIZE is that of the device, ZONE that of a zone, CAPACITY the part of a zone that can be written. `conventional`
    /// zones at the front take writes anywhere. At most `open` zones are open and `active` zones active at a time.
    #[arg(long, value_name = "ZONES")]
    pub(crate) zoned: Option<Zones>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_of_data_are_read() {
        let read = |text: &str| text.parse::<Copying>();
        assert_eq!(read("auto"), Ok(Copying { path: None, border: Options::BORDER }));
        assert_eq!(read("none").map(|copying| copying.path), Ok(Some(DataPath::None)));
        assert_eq!(read("selective").map(|copying| copying.border), Ok(Options::BORDER));
        assert_eq!(read("selective:128K"), Ok(Copying { path: Some(DataPath::Selective), border: 128 << 10 }));
        for wrong in ["", "None", "none:4K", "selective:", "selective:x", "selective:8G"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn costs_are_read() {
        let slow: Slowness = "card-a,reads=nvme,flush=2.5".parse().unwrap();
        assert_eq!(slow.writes, CostModel::card(Card::A, Interior::LogLog));
        assert_eq!((slow.reads, slow.flush), (Some(CostModel::nvme()), Duration::from_micros(2500)));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, CostModel::sata_ssd().to_text()).unwrap();
        let path = file.path().to_str().unwrap();
        let measured: Slowness = path.parse().unwrap();
        assert!((measured.writes.seconds(8.0) / CostModel::sata_ssd().seconds(8.0) - 1.0).abs() < 1e-3);
        std::fs::write(&file, "no model").unwrap();
        for wrong in [
            "",
            "card-d",
            "nvme,reads",
            "nvme,reads=x",
            "nvme,flush=x",
            "nvme,flush=-1",
            "nvme,flush=NaN",
            path,
            "/",
            "/dev/zero",
        ] {
            assert!(wrong.parse::<Slowness>().is_err(), "{wrong}");
        }
    }
}
