//! `f2fs check`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use f2fs::volume::check::{CheckOptions, CheckReport, check};
use serde_json::json;

use super::repair;
use crate::args::CheckArgs;
use crate::error::CliError;
use crate::image::{Access, device};
use crate::progress;

/// The volume was corrupt, and is repaired.
pub(super) const REPAIRED: u8 = 1;
/// The volume is corrupt.
pub(super) const CORRUPT: u8 = 4;
/// The volume could not be checked.
pub(super) const NOT_CHECKED: u8 = 8;

pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    let (image, as_json) = (&*args.image, args.json);
    if args.repair || args.undo.is_some() {
        return repair::run(args).unwrap_or_else(|error| {
            if as_json {
                println!("{:#}", json!({ "checked": false, "error": error.to_string() }));
            }
            eprintln!("f2fs: {error}");
            ExitCode::from(NOT_CHECKED)
        });
    }
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
        let findings = findings(&report);
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

/// The findings for programs.
pub(super) fn findings(report: &CheckReport) -> Vec<serde_json::Value> {
    let finding = |finding: &f2fs::volume::check::Finding| {
        json!({
            "kind": finding.kind.to_string(),
            "severity": format!("{:?}", finding.severity()).to_lowercase(),
            "text": finding.to_string(),
        })
    };
    report.findings.iter().map(finding).collect()
}

fn examine(image: &Path) -> Result<CheckReport, CliError> {
    let device = device(image, Access::Check)?;
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
