//! Running a tool to its end: fed with `n` answers, all output kept, killed past a limit.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::OracleError;

/// How long a tool may run before it is killed and the call fails with [`OracleError::TimedOut`].
pub const TIME_LIMIT: Duration = Duration::from_secs(600);

/// The result of a finished process: its status, and stdout followed by stderr.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
}

/// Where Debian and others put the tools; `/usr/sbin` is often missing from a user's `PATH`.
const EXTRA_PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// Starts `tool` (of `package`) with `args`, answers every question with `n`, and waits for its end.
pub(crate) fn run<A: AsRef<OsStr>>(
    tool: &'static str,
    package: &'static str,
    args: &[A],
) -> Result<Finished, OracleError> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut child = Command::new(tool)
        .args(args)
        .env("PATH", format!("{path}:{EXTRA_PATH}"))
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => OracleError::MissingTool { tool, package },
            _ => OracleError::Run { tool, source },
        })?;

    let (sender, receiver) = mpsc::channel();
    answer_no(&mut child);
    drain(child.stdout.take(), 0, sender.clone());
    drain(child.stderr.take(), 1, sender);

    let mut streams = [Vec::new(), Vec::new()];
    let mut late = false;
    loop {
        match receiver.recv_timeout(TIME_LIMIT) {
            Ok((index, bytes)) => streams[index] = bytes,
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) if late => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                late = true;
                // Closes the pipes, which ends the readers; a failure to kill means that it just ended.
                let _ = child.kill();
            }
        }
    }
    let status = child.wait().map_err(|source| OracleError::Run { tool, source })?;
    let output = streams.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    if late {
        return Err(OracleError::TimedOut { tool, limit: TIME_LIMIT, output });
    }
    Ok(Finished { status, output })
}

/// `yes n`: the tool asserts when a question meets the end of its input. Ends when the tool closes the pipe.
fn answer_no(child: &mut Child) {
    if let Some(mut stdin) = child.stdin.take() {
        thread::spawn(move || while stdin.write_all(b"n\n").is_ok() {});
    }
}

/// Reads a stream to its end on its own thread, so that neither pipe can fill up and stop the tool.
fn drain<R: Read + Send + 'static>(stream: Option<R>, index: usize, sender: mpsc::Sender<(usize, Vec<u8>)>) {
    if let Some(mut stream) = stream {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // A read error leaves the output short; the tool's status and the missing closing line then judge.
            let _ = stream.read_to_end(&mut bytes);
            let _ = sender.send((index, bytes));
        });
    }
}
