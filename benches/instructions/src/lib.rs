//! Instructions per operation, counted by valgrind's callgrind: the measure that a noisy machine does not spoil.
//!
//! This package has none of the feature `baselines` unless told so, so it counts what programs get that embed the
//! crates. It stands alone because cargo unites the features of all that it builds together.
//!
//! A bench binary runs itself again under callgrind, once with few operations and once with many; the difference,
//! divided by the difference in operations, is free of start-up and of the first touch of memory.

use std::io;
use std::process::{Command, Stdio};

/// Operations of the two runs.
const FEW: u64 = 2_000;
const MANY: u64 = 12_000;

/// Runs `f(operations)` if this process was started to be counted, and says so.
pub fn counted(run: impl Fn(&str, u64)) -> bool {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() != Some("--counted") {
        return false;
    }
    let (Some(case), Some(operations)) = (args.next(), args.next().and_then(|n| n.parse().ok())) else { return false };
    run(&case, operations);
    true
}

/// Instructions per operation of a case of this very binary, whose `main` calls [`counted`].
///
/// # Errors
/// If valgrind is not installed, or its report is not understood.
pub fn per_operation(case: &str) -> io::Result<f64> {
    let (few, many) = (instructions(case, FEW)?, instructions(case, MANY)?);
    Ok((many as f64 - few as f64) / (MANY - FEW) as f64)
}

fn instructions(case: &str, operations: u64) -> io::Result<u64> {
    let report = valgrind(&["--tool=callgrind", "--callgrind-out-file=/dev/null"], case, operations)?;
    report
        .lines()
        .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
        .ok_or_else(|| io::Error::other(format!("callgrind did not report a count:\n{report}")))
}

/// Heap allocations per operation of a case of this very binary, counted by valgrind's memcheck.
///
/// # Errors
/// If valgrind is not installed, or its report is not understood.
pub fn allocations_per_operation(case: &str) -> io::Result<f64> {
    let (few, many) = (allocations(case, FEW)?, allocations(case, MANY)?);
    Ok((many as f64 - few as f64) / (MANY - FEW) as f64)
}

fn allocations(case: &str, operations: u64) -> io::Result<u64> {
    let report = valgrind(&["--tool=memcheck", "--undef-value-errors=no"], case, operations)?;
    report
        .lines()
        .find_map(|line| {
            line.split_once("total heap usage:")?.1.split_whitespace().next()?.replace(',', "").parse().ok()
        })
        .ok_or_else(|| io::Error::other(format!("memcheck did not report a count:\n{report}")))
}

/// Runs a case under valgrind; its report. A case that did not get to its end has counted nothing.
fn valgrind(tool: &[&str], case: &str, operations: u64) -> io::Result<String> {
    let output = Command::new("valgrind")
        .args(tool)
        .arg(std::env::current_exe()?)
        .args(["--counted", case, &operations.to_string()])
        .stdout(Stdio::null())
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("valgrind (package valgrind): {error}")))?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Ok(report);
    }
    Err(io::Error::other(format!("{operations} operations of {case:?} under valgrind: {}:\n{report}", output.status)))
}
