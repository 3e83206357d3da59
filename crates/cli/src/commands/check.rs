//! `f2fs check`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use f2fs::JournalOptions;
use f2fs::check::{CheckError, CheckOptions, CheckReport, check};
use f2fs::device::BlockDevice;
use f2fs_workload::shell::Quoted;
use serde_json::json;

use super::repair;
use crate::args::CheckArgs;
use crate::error::{CliError, say};
use crate::image::{Access, SyncedSince, device, foreign, journal_left, open_with, synced_since};
use crate::interrupt::guarded;
use crate::medium;
use crate::progress;

/// The volume was corrupt, and is repaired.
pub(super) const REPAIRED: u8 = 1;
/// The volume is corrupt.
pub(super) const CORRUPT: u8 = 4;
/// The volume could not be checked.
pub(super) const NOT_CHECKED: u8 = 8;

/// # Errors
/// A signal that came; whatever else stands in the way of a verdict is said, and is [`NOT_CHECKED`].
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, CliError> {
    let (image, as_json) = (&*args.image, args.json);
    let changes = args.repair || args.undo.is_some();
    let journal = medium::journal_path();
    if journal.is_some() && args.undo.is_some() {
        return Err(CliError::usage("a repair is undone without its journal: leave out --journal"));
    }
    if journal.is_some() && args.repair && (args.no_recovery || medium::without_journal()) {
        let what = "--journal brings back what was synced: --no-recovery and --without-journal give it up";
        return Err(CliError::usage(what));
    }
    if args.repair
        && journal.is_none()
        && !medium::without_journal()
        && let Some(journal) = journal_left(image)
    {
        let how = "--journal names it, and brings them back; --without-journal gives them up";
        return not_checked(
            as_json,
            &CliError::at(image, format_args!("was left with synced files in the journal {journal}: {how}")),
        );
    }
    let result = if changes { repair::run(args) } else { judge(image, as_json) };
    result.or_else(|error| if error.is_interruption() { Err(error) } else { not_checked(as_json, &error) })
}

/// Says why there is no verdict.
fn not_checked(as_json: bool, error: &CliError) -> Result<ExitCode, CliError> {
    if as_json {
        let _ = writeln!(std::io::stdout(), "{:#}", json!({ "checked": false, "error": error.to_string() }));
    }
    error.report();
    Ok(ExitCode::from(NOT_CHECKED))
}

fn judge(image: &Path, as_json: bool) -> Result<ExitCode, CliError> {
    // Whether there is a journal at all is known before the volume is read.
    let journal = medium::journal(image, Access::Read)?;
    let report = examine(image)?;
    let left = if journal.is_none() { journal_left(image) } else { None };
    // Of a volume with a journal, what was synced is judged with it.
    let is_judged_here = journal.is_none() && left.is_none() && report.is_consistent();
    let synced = match is_judged_here.then(|| synced_since(image)) {
        Some(SyncedSince::Damaged(error)) => Some(error),
        _ => None,
    };
    let journal = journal.map(|journal| judge_journal(image, journal));
    let journal_is_good = journal.as_ref().is_none_or(|verdict| verdict.trouble.is_none());
    let mut out = std::io::stdout().lock();
    let told = if as_json {
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
            "synced": synced.as_ref().map(|error| json!({ "trouble": error.to_string() })),
            "left_with_journal": left,
            "journal": journal.map(|verdict| json!({
                "good": verdict.trouble.is_none(), "trouble": verdict.trouble, "files": verdict.files, "nodes": verdict.nodes,
            })),
        });
        writeln!(out, "{value:#}")
    } else {
        report
            .findings
            .iter()
            .try_for_each(|finding| writeln!(out, "{finding}"))
            .and_then(|()| match report.suppressed {
                0 => Ok(()),
                more => writeln!(out, "and {more} more"),
            })
            .and_then(|()| match journal.and_then(|verdict| verdict.trouble) {
                // Some say that they are about the journal behind the image's name.
                Some(trouble) => writeln!(out, "journal: {}", trouble.replacen(": journal: ", ": ", 1)),
                None => Ok(()),
            })
            .and_then(|()| match &synced {
                Some(error) => writeln!(out, "synced after the checkpoint: {error}"),
                None => Ok(()),
            })
    };
    if let Some(journal) = left.filter(|_| !as_json) {
        let shown = Quoted::path(image);
        say(format_args!("{shown}: what was synced into the journal {journal} was not looked at: --journal names it"));
    }
    // A crash may leave a torn copy: it is shown, but the volume is sound.
    let sound = report.is_consistent() && journal_is_good && synced.is_none();
    if sound && !report.is_clean() && !as_json {
        let shown = Quoted::path(image);
        let who = if report.needs_repair() { "--repair mends it" } else { "fsck.f2fs counts quotas anew" };
        say(format_args!("{shown}: the volume is sound: what was found does no harm, and {who}"));
    }
    tell_verdict(if sound { 0 } else { CORRUPT }, told)
}

/// How the command ends with this verdict. A reader that went away changes nothing about it; whatever else kept it from
/// being written is said, and a volume whose good verdict nobody can read counts as not checked.
pub(super) fn tell_verdict(verdict: u8, told: std::io::Result<()>) -> Result<ExitCode, CliError> {
    match told.map_err(CliError::from) {
        Err(error) if error.report() != 0 && verdict == 0 => Ok(ExitCode::from(NOT_CHECKED)),
        _ => Ok(ExitCode::from(verdict)),
    }
}

/// The verdict on a journal.
struct JournalVerdict {
    /// Why it cannot be brought back.
    trouble: Option<String>,
    /// The files that it holds, and their nodes.
    files: u64,
    nodes: u64,
}

/// Whether the journal belongs to the volume, is whole, and can be brought back: which is done, in memory.
fn judge_journal(image: &Path, journal: JournalOptions) -> JournalVerdict {
    match open_with(image, Access::Read, Some(journal)) {
        Ok(fs) => {
            let recovered = fs.recovered();
            JournalVerdict { trouble: None, files: recovered.files, nodes: recovered.nodes }
        }
        Err(error) => JournalVerdict { trouble: Some(error.to_string()), files: 0, nodes: 0 },
    }
}

/// The findings for programs.
pub(super) fn findings(report: &CheckReport) -> Vec<serde_json::Value> {
    let finding = |finding: &f2fs::check::Finding| {
        json!({
            "kind": finding.kind.to_string(),
            "severity": format!("{:?}", finding.severity()).to_lowercase(),
            "text": finding.to_string(),
        })
    };
    report.findings.iter().map(finding).collect()
}

/// The message after a signal.
pub(super) fn unchanged(image: &Path) -> String {
    format!("{} is unchanged", Quoted::path(image))
}

pub(super) fn examine(image: &Path) -> Result<CheckReport, CliError> {
    let device = device(image, Access::Check)?;
    let bar = progress::bar("checking", Some(0));
    let show = |progress: f2fs::check::Progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    };
    let options = CheckOptions::new().progress(&show);
    let report = guarded(|| check(&*device, &options), || unchanged(image));
    bar.finish_and_clear();
    report?.map_err(|error| no_verdict(image, &*device, &error))
}

/// Why there is no verdict; if there is no volume, what there is.
pub(super) fn no_verdict(image: &Path, device: &dyn BlockDevice, error: &CheckError) -> CliError {
    let other = if matches!(error, CheckError::NoSuperblock { .. }) { foreign(device) } else { None };
    CliError::at(image, other.unwrap_or_else(|| error.to_string()))
}
