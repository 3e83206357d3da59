//! `f2fs check`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use f2fs::volume::check::{CheckOptions, CheckReport, check};
use serde_json::json;

use crate::error::CliError;
use crate::image::{Access, device};
use crate::progress;

/// The volume is corrupt.
const CORRUPT: u8 = 4;
/// The volume could not be checked.
const NOT_CHECKED: u8 = 8;

pub(crate) fn run(image: &Path, as_json: bool) -> ExitCode {
    let report = match examine(image) {
        Ok(report) => report,
        Err(error) => {
            if as_json {
                println!("{:#}", json!({ "checked": false, "error": error.to_string() }));
            }
            eprintln!("f2fs: {error}");
            return ExitCode::from(NOT_CHECKED);
        }
    };
    let mut out = std::io::stdout().lock();
    // A reader that went away changes nothing about the verdict.
    let _ = if as_json {
        let findings: Vec<_> = report
            .findings
            .iter()
            .map(|finding| {
                json!({
                    "kind": finding.kind.to_string(),
                    "severity": format!("{:?}", finding.severity()).to_lowercase(),
                    "text": finding.to_string(),
                })
            })
            .collect();
        let counts = &report.counts;
        let value = json!({
            "checked": true,
            "complete": report.complete,
            "clean": report.is_clean(),
            "consistent": report.is_consistent(),
            "findings": findings,
            "suppressed": report.suppressed,
            "counts": {
                "blocks": counts.blocks,
                "nodes": counts.nodes,
                "inodes": counts.inodes,
                "directories": counts.directories,
                "orphans": counts.orphans,
                "free_segments": counts.free_segments,
            },
        });
        writeln!(out, "{value:#}")
    } else {
        report.findings.iter().try_for_each(|finding| writeln!(out, "{finding}")).and_then(|()| {
            match report.suppressed {
                0 => Ok(()),
                more => writeln!(out, "and {more} more"),
            }
        })
    };
    // A torn copy is what a crash may leave: it is shown, but the volume is sound.
    if report.is_consistent() { ExitCode::SUCCESS } else { ExitCode::from(CORRUPT) }
}

fn examine(image: &Path) -> Result<CheckReport, CliError> {
    let device = device(image, Access::Read)?;
    let bar = progress::bar("checking", Some(0));
    let show = |progress: f2fs::volume::check::Progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    };
    let options = CheckOptions { threads: None, progress: Some(&show) };
    let report = check(&*device, &options).map_err(|error| CliError::at(image, error));
    bar.finish_and_clear();
    report
}
