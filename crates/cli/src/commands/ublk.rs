//! `f2fs ublk`.

mod background;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use f2fs::device::{BLOCK_SIZE, BlockDevice, MemoryDevice, MemoryError, NullDevice, ZonedDevice};
use f2fs::sync::PlainArc;
use f2fs::uring::OpenOptions;
use f2fs_device_test::{FaultDevice, LoggingDevice, SlowDevice};
use f2fs_ublk::{Backend, Options, QueueCounts, Server, UblkError};
use serde_json::json;

use self::background::Starter;
use crate::args::ublk::{AddArgs, Kind, Laboratory, Place, Slowness, UblkCommand};
use crate::args::zones::Zones;
use crate::error::{CliError, Context};
use crate::interrupt::until_stopped;
use crate::medium;
use crate::size::human;

pub(crate) fn run(command: &UblkCommand) -> Result<(), CliError> {
    match command {
        UblkCommand::Add(args) if args.place.is_here() => add(args),
        UblkCommand::Recover { number, file, force, laboratory, place } if place.is_here() => {
            let starter = starter(*place)?;
            let device = open(file)?;
            starter.as_ref().map_or(Ok(()), Starter::makes)?;
            let (medium, log) = outfit(device, laboratory)?;
            let content = if *force { 0 } else { content(file)? };
            let server = Server::recover(*number, &Backend::Plain(medium), content).map_err(failed)?;
            log.keep();
            serve(server, starter.as_ref(), AtLoss::Leave)
        }
        UblkCommand::Add(_) | UblkCommand::Recover { .. } => background::start(),
        UblkCommand::List { json } => list(*json),
        UblkCommand::Delete { number, force } => f2fs_ublk::delete(*number, *force).map_err(|error| match error {
            UblkError::InUse { .. } => CliError::new(format_args!("{error}: unmount it, or use --force")),
            error => CliError::new(error),
        }),
    }
}

/// The command that has started this one, if that is waiting.
fn starter(place: Place) -> Result<Option<Starter>, CliError> {
    place.background.then(Starter::listen).transpose()
}

fn add(args: &AddArgs) -> Result<(), CliError> {
    let starter = starter(args.place)?;
    let medium = match &args.kind {
        Kind { file: Some(file), .. } => open(file)?,
        Kind { zoned: Some(zones), .. } => {
            zones.layout().zones(zones.size / BLOCK_SIZE as u64).map_err(CliError::usage)?;
            memory(zones.size)?
        }
        Kind { null: Some(size), .. } => null(size.0)?,
        Kind { memory: size, .. } => memory(size.map_or(0, |size| size.0))?,
    };
    starter.as_ref().map_or(Ok(()), Starter::makes)?;
    let (medium, log) = outfit(medium, &args.laboratory)?;
    let backend = match &args.kind.zoned {
        Some(zones) => zoned(medium, zones)?,
        None => Backend::Plain(medium),
    };
    let options = Options::default()
        .with_number(args.number)
        .with_queues(args.queues)
        .with_depth(args.depth)
        .with_recovery(args.kind.file.is_some())
        .with_content(args.kind.file.as_deref().map_or(Ok(0), content)?)
        .with_path(args.copying().path)
        .with_border(args.copying().border)
        .with_unprivileged(!rustix::process::geteuid().is_root());
    let server = Server::add(&backend, options).map_err(failed)?;
    log.keep();
    serve(server, starter.as_ref(), AtLoss::Delete)
}

/// Why there is no server: some of it is wrong on every machine.
fn failed(error: UblkError) -> CliError {
    match error {
        UblkError::OtherContent { .. } => CliError::new(format_args!(
            "{error}: what it has cached would go into this one (--force, if the file was copied)"
        )),
        UblkError::Limit { .. } | UblkError::Zones { .. } | UblkError::AllConventional { .. } | UblkError::NoFile => {
            CliError::usage(error)
        }
        error => CliError::new(error),
    }
}

/// A number that a file or a block device is known by until the machine starts anew, whatever its name.
fn content(file: &Path) -> Result<u64, CliError> {
    let about = file.metadata().map_err(|error| CliError::at(file, error))?;
    let number = if about.file_type().is_block_device() {
        about.rdev().reverse_bits()
    } else {
        about.dev().rotate_left(32) ^ about.ino()
    };
    Ok(number.max(1))
}

fn memory(bytes: u64) -> Result<PlainArc<dyn BlockDevice>, CliError> {
    let device = MemoryDevice::try_new(bytes / BLOCK_SIZE as u64).map_err(|error| match error {
        MemoryError::TooLarge { max, .. } => CliError::usage(format_args!(
            "{bytes} bytes, {}, are more than a device of memory can have, {}",
            human(bytes),
            human(max * BLOCK_SIZE as u64)
        )),
        error => CliError::new(error),
    })?;
    Ok(PlainArc::new(device))
}

/// The largest size is that of the largest file.
fn null(bytes: u64) -> Result<PlainArc<dyn BlockDevice>, CliError> {
    if i64::try_from(bytes).is_err() {
        return Err(CliError::usage(format_args!("no device has {bytes} bytes: {} is the most", i64::MAX)));
    }
    Ok(PlainArc::new(NullDevice::new(bytes / BLOCK_SIZE as u64)))
}

/// A new log, which goes away again if no device comes to write it.
#[derive(Debug, Default)]
struct NewLog(Option<PathBuf>);

impl NewLog {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for NewLog {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // It was made here a moment ago.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn open(file: &Path) -> Result<PlainArc<dyn BlockDevice>, CliError> {
    medium::open_plain(file, false, OpenOptions::new())
}

/// A device that misbehaves as the command line asks: changes are logged as they reach the medium, faults hit them
/// before, and all of it takes its time.
fn outfit(
    mut device: PlainArc<dyn BlockDevice>,
    laboratory: &Laboratory,
) -> Result<(PlainArc<dyn BlockDevice>, NewLog), CliError> {
    let mut new_log = NewLog::default();
    if let Some(path) = &laboratory.record {
        let log = File::create_new(path).about(path)?;
        new_log = NewLog(Some(path.clone()));
        device = PlainArc::new(LoggingDevice::new(device, BufWriter::new(log)).about(path)?);
    }
    if !laboratory.faults.is_empty() {
        let faulty = FaultDevice::new(device);
        laboratory.faults.iter().for_each(|rule| faulty.arm(rule.clone()));
        device = PlainArc::new(faulty);
    }
    if let Some(Slowness { writes, reads, flush }) = laboratory.slow.clone() {
        let mut slow = SlowDevice::new(device, move |blocks| writes.seconds(blocks as f64)).with_flushes(flush);
        if let Some(reads) = reads {
            slow = slow.with_reads(move |blocks| reads.seconds(blocks as f64));
        }
        device = PlainArc::new(slow);
    }
    Ok((device, new_log))
}

fn zoned(medium: PlainArc<dyn BlockDevice>, zones: &Zones) -> Result<Backend, CliError> {
    let device = ZonedDevice::new(medium, zones.layout()).map_err(CliError::usage)?;
    Ok(Backend::Zoned(PlainArc::new(device)))
}

/// What becomes of a device of which nobody has heard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtLoss {
    Delete,
    /// It waits for another server.
    Leave,
}

/// Serves until a signal comes or the device is deleted, or nobody has heard of it.
fn serve(server: Server, starter: Option<&Starter>, at_loss: AtLoss) -> Result<(), CliError> {
    let path = server.path();
    if starter.is_some() {
        // What is open stays open. The folder of who started it, and the file system below, are not kept busy.
        rustix::process::chdir("/").about("/".as_ref())?;
    }
    let mut out = std::io::stdout().lock();
    let told = writeln!(out, "{}", path.display()).and_then(|()| out.flush());
    drop(out);
    if let Err(error) = told {
        let error = CliError::from(error);
        if at_loss == AtLoss::Leave {
            // For the driver, the server has died once more.
            std::process::exit(error.report().into());
        }
        return Err(error);
    }
    let stop = AtomicBool::new(false);
    let is_gone = || starter.is_some_and(Starter::is_gone);
    let should_stop = || {
        if at_loss == AtLoss::Leave && is_gone() {
            std::process::exit(1);
        }
        stop.load(Ordering::Relaxed) || is_gone()
    };
    let told = |counts: &QueueCounts| {
        format!("{} requests, {} failed, {} entries", counts.requests, counts.failed, counts.entries)
    };
    let result = until_stopped(
        || server.finish(should_stop),
        || stop.store(true, Ordering::Relaxed),
        |result| result.as_ref().ok().map(|counts| format!("{} is deleted: {}", path.display(), told(counts))),
    )?;
    result.map(drop).map_err(CliError::new)
}

fn list(json: bool) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    for device in f2fs_ublk::list().map_err(CliError::new)? {
        let path = format!("/dev/ublkb{}", device.number);
        let (bytes, state) = (device.sectors * 512, device.state.to_string());
        if json {
            let value = json!({
                "path": path, "number": device.number, "state": state, "server": device.server, "queues": device.queues,
                "depth": device.depth, "bytes": bytes, "zoned": device.zoned, "recoverable": device.recoverable,
                "owner": device.owner, "copy": device.path.to_string(),
            });
            writeln!(out, "{value}")?;
        } else {
            let zoned = if device.zoned { " zoned" } else { "" };
            let owner = device.owner.map_or(String::new(), |user| format!(", of user {user}"));
            writeln!(
                out,
                "{path} {} {state}{zoned}, {} queues of {}, copies: {}, process {}{owner}",
                human(bytes),
                device.queues,
                device.depth,
                device.path,
                device.server
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use super::*;

    #[test]
    fn a_file_is_known_by_all_its_names_and_no_other_is() {
        let place = tempfile::tempdir().unwrap();
        let [one, other, again] = ["one", "other", "again"].map(|name| place.path().join(name));
        std::fs::write(&one, "").unwrap();
        std::fs::write(&other, "").unwrap();
        std::fs::hard_link(&one, &again).unwrap();
        let [one, other, again] = [one, other, again].map(|path| content(&path).unwrap());
        assert!(one == again && one != other && one != 0);
        assert!(content(&place.path().join("none")).is_err());
    }
}
