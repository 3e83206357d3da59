//! `f2fs check --repair` and `--undo`.

mod journaled;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use f2fs::check::repair::{
    BackupError, Journaled, Repair, RepairError, plan, plan_with_journal, plan_without_synced, undo,
};
use f2fs::check::{CheckOptions, Progress};
use f2fs::device::BlockDevice;
use f2fs_workload::shell::Quoted;
use serde_json::json;

use super::check::{CORRUPT, REPAIRED, findings, no_verdict, tell_verdict, unchanged};
use crate::args::CheckArgs;
use crate::error::{CliError, Context};
use crate::image::{Access, SyncedSince, device, journal_left, open_with, synced_on, synced_since};
use crate::interrupt::guarded;
use crate::{medium, progress};

pub(super) fn run(args: &CheckArgs) -> Result<ExitCode, CliError> {
    if let Some(backup) = &args.undo {
        if backup.metadata().is_ok_and(|found| !found.is_file() && !found.file_type().is_block_device()) {
            return Err(CliError::at(backup, "is no file: a backup of a repair is one"));
        }
        let file = BufReader::new(File::open(backup).about(backup)?);
        let undone = undo(&*device(&args.image, Access::Write)?, file).about(backup)?;
        let mut out = std::io::stdout().lock();
        let told = if args.json {
            writeln!(out, "{:#}", json!({ "restored": undone.restored, "untouched": undone.untouched }))
        } else {
            writeln!(out, "{} blocks written back, {} were as before", undone.restored, undone.untouched)
        };
        return tell_verdict(0, told);
    }
    match medium::journal_path() {
        Some(journal) => journaled::repair(args, journal),
        None => repair(args),
    }
}

/// What is planned of what was synced.
#[derive(Clone, Copy)]
enum Synced<'a> {
    Kept,
    GivenUp,
    /// It lies in this journal.
    In(&'a Journaled),
}

/// What would be written, with the device that it was planned for.
fn plan_for(image: &Path, synced: Synced<'_>) -> Result<(Arc<dyn BlockDevice>, Repair), CliError> {
    let device = device(image, Access::Repair)?;
    let bar = progress::bar("repairing", Some(0));
    let show = |progress: Progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    };
    let options = CheckOptions::new().progress(&show);
    let planned = guarded(
        || match synced {
            Synced::Kept => plan(&device, &options),
            Synced::GivenUp => plan_without_synced(&device, &options),
            Synced::In(journal) => plan_with_journal(&device, &options, journal),
        },
        || unchanged(image),
    );
    bar.finish_and_clear();
    let repair = planned?.map_err(|error| match &error {
        RepairError::Check(error) => no_verdict(image, &*device, error),
        _ => CliError::at(image, error),
    })?;
    Ok((device, repair))
}

/// Brings back what was synced after the last checkpoint, and closes the volume.
fn bring_back(image: &Path) -> Result<(), CliError> {
    let fs = open_with(image, Access::Write, None)?;
    fs.close().about(image)
}

fn repair(args: &CheckArgs) -> Result<ExitCode, CliError> {
    let image = &args.image;
    let synced = if args.no_recovery { SyncedSince::Files(0) } else { synced_since(image) };
    let left = if medium::without_journal() { journal_left(image) } else { None };
    let (mut device, mut repair) = plan_for(image, if args.no_recovery { Synced::GivenUp } else { Synced::Kept })?;
    let (mut brought_back, mut kept) = (0, 0);
    // Whether they come back behind the repair, whatever there was in front of it.
    let synced = if repair.keeps_synced() { synced_on(&repair.preview(&device)) } else { synced };
    match synced {
        // What was synced after the older checkpoint is part of the one that is brought back.
        _ if repair.brings_back_checkpoint() => {}
        SyncedSince::Damaged(error) => {
            let how = "--no-recovery gives up what was synced after the last checkpoint";
            return Err(CliError::at(image, format_args!("{error}: {how}")));
        }
        SyncedSince::Unknown if repair.gives_up_synced() || repair.keeps_synced() => {
            let what = "a repair would lose what was synced after the last checkpoint";
            let how = "nobody knows how much, since the volume does not open; --no-recovery gives it up";
            return Err(CliError::at(image, format_args!("{what}: {how}")));
        }
        SyncedSince::Files(files) if repair.keeps_synced() => kept = files,
        SyncedSince::Files(0) | SyncedSince::Unknown => {}
        SyncedSince::Files(_) if repair.blocks().next().is_none() => {}
        SyncedSince::Files(files) if repair.before.is_consistent() && repair.before.complete => {
            drop((device, repair));
            bring_back(image)?;
            brought_back = files;
            (device, repair) = plan_for(image, Synced::Kept)?;
        }
        SyncedSince::Files(files) => {
            let how = "`f2fs get` copies them out, --no-recovery gives them up; `f2fs mount` brings them back where \
                       the damage does not stop it";
            let what = format!("a repair would lose {files} files that were synced after the last checkpoint: {how}");
            return Err(CliError::at(image, what));
        }
    }
    // A repair writes nothing to a sound volume. One that is opened without its journal needs that no more.
    let (given_up, still_needed) = if repair.blocks().next().is_none() { (left, None) } else { (None, left) };
    if given_up.is_some() {
        drop((device, repair));
        bring_back(image)?;
        (device, repair) = plan_for(image, Synced::Kept)?;
    }
    let changed = repair.blocks().count();
    let backup = args.backup.clone().unwrap_or_else(|| default_backup(image));
    carry_out(image, &backup, &*device, &repair)?;
    let mut out = std::io::stdout().lock();
    let told = if args.json {
        let value = json!({
            "checked": true,
            "brought_back": brought_back,
            "kept": kept,
            "journal_given_up": given_up,
            "left_with_journal": still_needed,
            "before": findings(&repair.before),
            "actions": repair.actions,
            "blocks": changed,
            "backup": (changed > 0).then(|| backup.display().to_string()),
            "after": findings(&repair.after),
            "clean": repair.after.is_clean() && repair.after.complete,
        });
        writeln!(out, "{value:#}")
    } else {
        let mut lines: Vec<String> = repair.actions.iter().map(ToString::to_string).collect();
        lines.extend(given_up.map(|journal| format!("what was synced into the journal {journal} is given up")));
        if kept > 0 {
            lines.push(format!(
                "{kept} files synced after the last checkpoint are kept: they come back when the volume is mounted"
            ));
        }
        lines.extend(repair.after.findings.iter().map(|finding| format!("left: {finding}")));
        lines.extend(still_needed.map(|journal| {
            format!("the volume still needs the journal {journal}: the same command once more gives up what is in it")
        }));
        if changed > 0 {
            let undo = undoing(&backup, image);
            lines.push(format!("{changed} blocks changed; `{undo}` undoes the repair"));
        }
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    };
    let verdict = match (repair.after.is_consistent() && repair.after.complete, changed) {
        (true, 0) => 0,
        (true, _) => REPAIRED,
        (false, _) => CORRUPT,
    };
    tell_verdict(verdict, told)
}

/// Saves the blocks that change, and changes them.
fn carry_out(image: &Path, backup: &Path, device: &dyn BlockDevice, repair: &Repair) -> Result<(), CliError> {
    if repair.blocks().next().is_none() {
        return Ok(());
    }
    // On the disk before the first block of the volume changes.
    let file = File::create_new(backup).map_err(|error| cannot_save(image, backup, &error))?;
    save(repair, device, file).map_err(|error| incomplete(image, backup, &error))?;
    repair.apply(device).map_err(|error| half_done(image, backup, (repair, device), &error))
}

/// The command that puts back what a repair changed.
fn undoing(backup: &Path, image: &Path) -> String {
    let devices: String = medium::others().iter().map(|other| format!("--device {} ", Quoted::path(other))).collect();
    format!("f2fs check {devices}--undo {} {}", Quoted::path(backup), Quoted::path(image))
}

/// Writes the backup, to the disk.
fn save(repair: &Repair, device: &dyn BlockDevice, file: File) -> Result<(), BackupError> {
    let mut out = BufWriter::new(file);
    repair.write_backup(device, &mut out)?;
    out.flush()?;
    Ok(out.get_ref().sync_all()?)
}

/// Why a backup is not whole. It was made here a moment ago, is of no use, and would be in the way of the next repair.
fn incomplete(image: &Path, backup: &Path, error: &BackupError) -> CliError {
    let shown = Quoted::path(image);
    match std::fs::remove_file(backup) {
        Ok(()) => CliError::at(backup, format_args!("{error}; it is removed, and {shown} is as it was")),
        Err(_) => CliError::at(backup, format_args!("{error}; it is incomplete, and {shown} is as it was")),
    }
}

/// What a repair that failed in the middle leaves.
fn half_done(image: &Path, backup: &Path, of: (&Repair, &dyn BlockDevice), error: &RepairError) -> CliError {
    let (repair, device) = of;
    let all = repair.blocks().count();
    let undo = undoing(backup, image);
    let how = format!("`{undo}` takes them back");
    match repair.applied_blocks(device) {
        Ok(changed) => CliError::at(image, format_args!("{error}; {changed} of {all} blocks were changed: {how}")),
        Err(_) => CliError::at(image, format_args!("{error}; some of {all} blocks may have been changed: {how}")),
    }
}

/// Why what a repair changes cannot be saved.
fn cannot_save(image: &Path, backup: &Path, error: &std::io::Error) -> CliError {
    if error.kind() != std::io::ErrorKind::AlreadyExists {
        return CliError::at(backup, error);
    }
    let undo = undoing(backup, image);
    CliError::at(
        backup,
        format_args!(
            "is there already, and is not written over: if it is of a repair that was interrupted, `{undo}` undoes that; --backup saves this one elsewhere"
        ),
    )
}

/// Where the blocks are saved that a repair changes: beside an image, and here for a device, since what lies beside that
/// is gone with the next boot.
fn default_backup(image: &Path) -> PathBuf {
    let is_file = image.metadata().is_ok_and(|data| data.is_file());
    let at = if is_file { image.as_os_str() } else { image.file_name().unwrap_or(image.as_os_str()) };
    let mut name = at.to_owned();
    name.push(".f2fs-backup");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_device_are_saved_here() {
        assert_eq!(default_backup(Path::new("/dev/null")), Path::new("null.f2fs-backup"));
        assert_eq!(default_backup(Path::new("/etc/passwd")), Path::new("/etc/passwd.f2fs-backup"));
    }
}
