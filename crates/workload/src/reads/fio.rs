//! The same reads by fio, on a plain file: the rates of the device without a file system of ours.

use std::io;
use std::path::Path;
use std::process::Command;

/// How fio reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// One `pread` after the other in each thread.
    Psync,
    /// So many requests at a time in each thread, on an io_uring.
    IoUring {
        /// How many.
        depth: usize,
    },
}

/// Why fio told no rate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FioError {
    /// It is not installed.
    #[error("fio is not installed")]
    Missing,
    /// It could not be started.
    #[error("fio: {0}")]
    Start(#[source] io::Error),
    /// It failed.
    #[error("fio: {status}: {text}")]
    Failed {
        /// How it ended.
        status: std::process::ExitStatus,
        /// The output of fio.
        text: String,
    },
    /// The output of fio cannot be read.
    #[error("fio wrote {0:?}, which has no rate in its 8th field")]
    Report(String),
}

/// Random reads of 4 KiB by `threads` threads for `seconds`, around the page cache (direct); reads a second.
///
/// # Errors
/// [`FioError`]; [`FioError::Missing`] if fio is not installed.
pub fn fio(path: &Path, engine: Engine, threads: usize, seconds: f64) -> Result<f64, FioError> {
    let (name, depth) = match engine {
        Engine::Psync => ("psync", 1),
        Engine::IoUring { depth } => ("io_uring", depth),
    };
    let output = Command::new("fio")
        .args(["--name=reads", "--rw=randread", "--bs=4096", "--direct=1", "--thread", "--group_reporting"])
        .args(["--norandommap", "--randrepeat=0", "--time_based", "--output-format=terse", "--terse-version=3"])
        .arg(format!("--filename={}", path.display()))
        .arg(format!("--ioengine={name}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--numjobs={threads}"))
        .arg(format!("--runtime={}ms", (seconds * 1000.0).ceil()))
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(FioError::Missing),
        Err(error) => return Err(FioError::Start(error)),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if !output.status.success() {
        return Err(FioError::Failed { status: output.status, text: text(&output.stderr) });
    }
    rate(&text(&output.stdout))
}

/// Field 8 of the terse report is the rate of reads.
fn rate(report: &str) -> Result<f64, FioError> {
    let line = report.lines().find(|line| line.starts_with("3;"));
    let rate = line.and_then(|line| line.split(';').nth(7)).and_then(|field| field.parse().ok());
    rate.ok_or_else(|| FioError::Report(report.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_eighth_field() {
        let report = "fio: a warning\n3;fio-3.33;reads;0;0;409600;204800;51200;2000;0;0;0.0";
        assert_eq!(rate(report).unwrap(), 51200.0);
        assert!(matches!(rate("3;fio"), Err(FioError::Report(_))));
        assert!(rate("").is_err());
    }
}
