//! Running other programs.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{env, io, thread};

use anyhow::{Context, bail};

use crate::Result;

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    // `cargo run` says where the crate lies now; the compiler's file may have been moved since.
    let manifest = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest.ancestors().nth(2).map_or_else(|| PathBuf::from("."), PathBuf::from)
}

/// A cargo command in the repository's root: the cargo that runs this.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(args);
    command
}

/// What this program, and those that it ran to their ends, used of all processors.
///
/// # Errors
///
/// If the kernel does not tell.
pub(crate) fn processor_time() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("/proc/self/stat")?;
    // Behind the name in brackets: `utime`, `stime`, and both of the children, in ticks.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace().skip(11).take(4));
    let ticks: u64 = fields.into_iter().flatten().map(str::parse::<u64>).sum::<std::result::Result<u64, _>>()?;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// How a command is shown to people: its words, without the environment.
pub(crate) fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned();
    let words = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

/// Runs a command to its end, with its output going where ours goes.
///
/// # Errors
///
/// If it cannot be started or ends with anything but success.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", shown(command));
    let status = command.status().with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", shown(command));
    }
    Ok(())
}

/// Runs a command to its end and returns its output.
///
/// # Errors
///
/// If it cannot be started or ends with anything but success; the error shows its output.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !output.status.success() {
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        bail!("`{}` failed: {}\n{stdout}{stderr}", shown(command), output.status);
    }
    Ok(output.stdout)
}

/// The end of a command, and its output.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Whether it ended with success.
    pub(crate) success: bool,
    /// Whether it was killed because its time ran out.
    pub(crate) timed_out: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

/// Runs a command with its output captured, for at most `limit`.
///
/// # Errors
///
/// If it cannot be started or waited for.
pub(crate) fn capture(command: &mut Command, limit: Duration) -> Result<Outcome> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    let stdout = child.stdout.take().map(collect);
    let stderr = child.stderr.take().map(collect);
    let mut timed_out = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > limit {
            timed_out = true;
            child.kill()?;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let text = |reader: Option<JoinHandle<String>>| reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
    Ok(Outcome {
        success: status.success() && !timed_out,
        timed_out,
        stdout: text(stdout),
        stderr: text(stderr),
        took: start.elapsed(),
    })
}

/// Reads a pipe to its end on a thread of its own, so that the program never waits for us.
fn collect(mut pipe: impl io::Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // Output in front of an error is still worth showing.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
