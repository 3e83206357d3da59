//! `f2fs ublk`.
//!
//! Without `--foreground` the command starts itself again with it, in a process group of its own, waits for the path of
//! the device on that one's standard output, and ends. A driver that does not answer so never holds the command that a
//! person waits for.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use f2fs::device::{BlockDevice, MemoryDevice, ZonedDevice};
use f2fs::sync::PlainArc;
use f2fs::uring::OpenOptions;
use f2fs_device_test::{FaultDevice, LoggingDevice, SlowDevice};
use f2fs_ublk::{Backend, Options, QueueCounts, Server, UblkError};
use serde_json::json;

use crate::args::ublk::{AddArgs, Kind, Laboratory, Slowness, UblkCommand};
use crate::args::zones::Zones;
use crate::error::{CliError, Context};
use crate::interrupt::until_stopped;
use crate::medium;
use crate::size::human;

/// How long a server in the background has to become ready: more than the limits of all commands to the driver.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(command: &UblkCommand) -> Result<(), CliError> {
    match command {
        UblkCommand::Add(args) if args.foreground => add(args),
        UblkCommand::Recover { number, file, laboratory, foreground: true } => {
            let (medium, log) = outfit(open(file)?, laboratory)?;
            let server = Server::recover(*number, &Backend::Plain(medium)).map_err(CliError::new)?;
            log.keep();
            serve(server)
        }
        UblkCommand::Add(_) | UblkCommand::Recover { .. } => detach(),
        UblkCommand::List { json } => list(*json),
        UblkCommand::Delete { number, force } => f2fs_ublk::delete(*number, *force).map_err(|error| match error {
            UblkError::InUse { .. } => CliError::new(format_args!("{error}: unmount it, or use --force")),
            error => CliError::new(error),
        }),
    }
}

fn add(args: &AddArgs) -> Result<(), CliError> {
    let medium = match &args.kind {
        Kind { file: Some(file), .. } => open(file)?,
        Kind { memory, zoned, .. } => {
            let bytes = zoned.map_or(memory.map_or(0, |size| size.0), |zones| zones.size);
            PlainArc::new(MemoryDevice::new(bytes / 4096))
        }
    };
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
        .with_user_copy(args.user_copy)
        .with_unprivileged(!rustix::process::geteuid().is_root());
    let server = Server::add(&backend, options).map_err(CliError::new)?;
    log.keep();
    serve(server)
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

/// Serves until a signal comes or the device is deleted.
fn serve(server: Server) -> Result<(), CliError> {
    let path = server.path();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", path.display())?;
    out.flush()?;
    drop(out);
    let stop = AtomicBool::new(false);
    let told = |counts: &QueueCounts| {
        format!("{} requests, {} failed, {} entries", counts.requests, counts.failed, counts.entries)
    };
    let result = until_stopped(
        || server.finish(|| stop.load(Ordering::Relaxed)),
        || stop.store(true, Ordering::Relaxed),
        |result| result.as_ref().ok().map(|counts| format!("{} is deleted: {}", path.display(), told(counts))),
    )?;
    result.map(drop).map_err(CliError::new)
}

/// Starts this command again in the background, and waits until it serves.
fn detach() -> Result<(), CliError> {
    let program = std::env::current_exe().map_err(CliError::new)?;
    let messages = std::env::temp_dir().join(format!("f2fs-ublk-{}.log", std::process::id()));
    let log = File::create(&messages).about(&messages)?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).arg("--foreground").process_group(0);
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn();
    let mut child = spawned.map_err(CliError::new)?;
    let (sender, ready) = channel();
    let output = child.stdout.take();
    thread::spawn(move || {
        let mut line = String::new();
        let read = output.map(|output| BufReader::new(output).read_line(&mut line));
        let _ = sender.send(matches!(read, Some(Ok(1..))).then_some(line));
    });
    let line = ready.recv_timeout(PATIENCE);
    let said = std::fs::read_to_string(&messages).unwrap_or_default();
    let _ = std::fs::remove_file(&messages);
    match line {
        Ok(Some(path)) => Ok(write!(std::io::stdout(), "{path}")?),
        Ok(None) => {
            std::io::stderr().write_all(said.as_bytes())?;
            Err(CliError::said())
        }
        Err(_) => {
            let _ = child.kill();
            Err(CliError::new(format_args!("the server did not become ready within {} s", PATIENCE.as_secs())))
        }
    }
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
                "owner": device.owner,
            });
            writeln!(out, "{value}")?;
        } else {
            let zoned = if device.zoned { " zoned" } else { "" };
            let owner = device.owner.map_or(String::new(), |user| format!(", of user {user}"));
            writeln!(
                out,
                "{path} {} {state}{zoned}, {} queues of {}, process {}{owner}",
                human(bytes),
                device.queues,
                device.depth,
                device.server
            )?;
        }
    }
    Ok(())
}
