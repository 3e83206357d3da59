//! Servers in the background: the command starts itself again, in a process group of its own, waits for the path of the
//! device on that one's standard output, and ends. A driver that does not answer so never holds the command that a person
//! waits for.
//!
//! ```text
//!   command                             server (--background)
//!      |----- starts; holds a pipe -------->|
//!      |                                    | makes the device
//!      |<------- its path ------------------|
//!      |------- a byte: it was heard ------>| serves
//!     ends
//! ```
//! A pipe that ends without the byte says that the command was killed: nobody knows of the device, and the server takes
//! away what it has made.
//!
//! What the server says goes to memory without a name: no file is left, and none of somebody else's is written.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::CliError;

/// How long a server has to become ready: more than the limits of all commands to the driver.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a server that is not waited for any more has to end.
const LAST: Duration = Duration::from_secs(5);
/// How often it is looked for its end.
const TICK: Duration = Duration::from_millis(10);
/// Bytes of its messages that are shown.
const SHOWN: usize = 64 << 10;

/// Starts this command again as a server, and waits until it serves.
pub(super) fn start() -> Result<(), CliError> {
    let program = std::env::current_exe().map_err(CliError::new)?;
    let cannot = |error: &dyn std::fmt::Display| CliError::new(format_args!("cannot start a server: {error}"));
    let messages = File::from(memfd_create("f2fs-ublk", MemfdFlags::CLOEXEC).map_err(|error| cannot(&error))?);
    let for_server = messages.try_clone().map_err(|error| cannot(&error))?;
    let mut command = Command::new(program);
    command.args(as_server(std::env::args_os().skip(1))).process_group(0);
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(for_server).spawn();
    let mut child = spawned.map_err(|error| cannot(&error))?;
    let (sender, ready) = channel();
    let (heard, output) = (child.stdin.take(), child.stdout.take());
    thread::spawn(move || {
        let mut line = String::new();
        let read = output.map(|output| BufReader::new(output).read_line(&mut line));
        let _ = sender.send(matches!(read, Some(Ok(1..))).then_some(line));
    });
    match ready.recv_timeout(PATIENCE) {
        Ok(Some(path)) => {
            let told = heard.map(|mut heard| heard.write_all(b"\n"));
            if !matches!(told, Some(Ok(()))) {
                return failed(&mut child, &messages);
            }
            Ok(write!(std::io::stdout(), "{path}")?)
        }
        Ok(None) => failed(&mut child, &messages),
        Err(_) => {
            drop(heard);
            if code(&mut child).is_none() {
                let _ = child.kill();
            }
            Err(CliError::new(format_args!("the server did not become ready within {} s", PATIENCE.as_secs())))
        }
    }
}

/// The arguments of the server: those of the command, and that it is one, where that is taken for an option.
fn as_server(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<_> = args.collect();
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    args.insert(end, "--background".into());
    args
}

/// What a server said that has failed, and its exit code.
fn failed(child: &mut Child, messages: &File) -> Result<(), CliError> {
    let code = code(child);
    let mut said = vec![0; SHOWN];
    // It is memory, which can be read.
    let bytes = messages.read_at(&mut said, 0).unwrap_or(0);
    std::io::stderr().write_all(&said[..bytes])?;
    Err(CliError::said_with(code.filter(|code| *code != 0).unwrap_or(1)))
}

/// The exit code of a server that ends; `None` if it does not, or was killed.
fn code(child: &mut Child) -> Option<u8> {
    let end = Instant::now() + LAST;
    while Instant::now() < end {
        match child.try_wait() {
            Ok(None) => thread::sleep(TICK),
            ended => return ended.ok().flatten().and_then(|status| u8::try_from(status.code()?).ok()),
        }
    }
    None
}

/// The command that has started this server, as the server sees it.
#[derive(Debug)]
pub(super) struct Starter(Arc<AtomicU8>);

/// Nothing is made yet.
const WAITS: u8 = 0;
/// Something is made that has to be taken away.
const MAKES: u8 = 1;
/// The command is gone, and nobody knows of the device.
const GONE: u8 = 2;

impl Starter {
    /// Listens to it, at standard input. If it goes before anything is [made](Self::makes), this process ends.
    pub(super) fn listen() -> Result<Starter, CliError> {
        let state = Arc::new(AtomicU8::new(WAITS));
        let seen = Arc::clone(&state);
        let listening = thread::Builder::new().spawn(move || {
            let mut heard = [0];
            let is_heard = std::io::stdin().read_exact(&mut heard).is_ok();
            if !is_heard && seen.swap(GONE, Ordering::Relaxed) == WAITS {
                std::process::exit(1);
            }
        });
        listening.map_err(|error| CliError::new(format_args!("cannot start a thread: {error}")))?;
        Ok(Starter(state))
    }

    /// From now on things are made. An error if the command is gone.
    pub(super) fn makes(&self) -> Result<(), CliError> {
        let made = self.0.compare_exchange(WAITS, MAKES, Ordering::Relaxed, Ordering::Relaxed);
        made.map(drop).map_err(|_| CliError::new("the command that waited for the device is gone"))
    }

    /// Whether the command was killed before it knew of the device.
    pub(super) fn is_gone(&self) -> bool {
        self.0.load(Ordering::Relaxed) == GONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_so_in_front_of_what_is_no_option() {
        let server = |args: &[&str]| as_server(args.iter().map(OsString::from));
        assert_eq!(server(&["ublk", "add"]), ["ublk", "add", "--background"]);
        assert_eq!(server(&["ublk", "recover", "--", "0"]), ["ublk", "recover", "--background", "--", "0"]);
        assert_eq!(server(&["--", "--"]), ["--background", "--", "--"]);
    }
}
