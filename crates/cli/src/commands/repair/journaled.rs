//! `f2fs check --repair --journal`: the volume is repaired, and then the journal is brought back.
//!
//! ```text
//!   journal read ─> repair planned that leaves room for it ─> both tried in memory ─> backup ─> repair written
//!        ─> journal brought back ─> volume closed ─> what was passed over: checked, and repaired once more
//! ```
//!
//! Until the backup is written, whatever stands in the way leaves the volume and the journal as they are.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use f2fs::check::repair::{Journaled, Repair};
use f2fs::device::BlockDevice;
use f2fs::volume::{JournalContent, VolumeOptions};
use f2fs::{FileSystem, FsError, GivenUp, JournalMode, JournalOptions, JournalTrouble, Options, PassedOver};
use serde_json::json;

use super::{Synced, carry_out, default_backup, plan_for};
use crate::args::CheckArgs;
use crate::commands::check::{CORRUPT, REPAIRED, findings, tell_verdict};
use crate::error::{CliError, Context};
use crate::image::{Access, OF_DAMAGE, device, journal_left, tell_left_out};
use crate::medium;

/// The journal, and how its records are read on a volume that another checkpoint may have been written to by a repair.
struct Journal<'a> {
    path: &'a Path,
    content: JournalContent,
}

impl Journal<'_> {
    fn options(&self, read_only: bool) -> Result<JournalOptions, CliError> {
        let rescue = medium::rescue().upon(self.content.checkpoints.first().copied());
        Ok(JournalOptions::new(medium::journal_at(self.path, read_only)?, JournalMode::Ordered).rescue(rescue))
    }

    /// Tries on this device, which is not written, whether everything comes back, or whether files have to be passed
    /// over for that.
    fn must_pass_over(&self, device: &Arc<dyn BlockDevice>) -> Result<bool, CliError> {
        let open = |passes_over| {
            let options = Options::new().volume(VolumeOptions::new().read_only(true));
            let options = options.journal(self.options(true)?.passes_over(passes_over));
            Ok::<_, CliError>(FileSystem::open(Arc::clone(device), options).map(drop))
        };
        match open(false)? {
            Ok(()) => Ok(false),
            Err(FsError::Recovery(error)) if matches!(*error, FsError::SyncedFile { .. }) => match open(true)? {
                Ok(()) => Ok(true),
                Err(error) => Err(CliError::at(self.path, error)),
            },
            Err(error) => Err(CliError::at(self.path, error)),
        }
    }
}

/// What came of it.
struct Outcome<'a> {
    repairs: &'a [(PathBuf, Repair)],
    brought_back: u64,
    passed_over: Vec<serde_json::Value>,
    given_up: GivenUp,
}

pub(super) fn repair(args: &CheckArgs, path: &Path) -> Result<ExitCode, CliError> {
    let image = &args.image;
    medium::expect_another(image, path)?;
    let content = JournalContent::read(medium::journal_at(path, true)?, medium::rescue());
    let content = content.map_err(|error| match &error {
        JournalTrouble::Damaged { .. } => CliError::at(path, format_args!("{error}: {OF_DAMAGE}")),
        _ => CliError::at(path, error),
    })?;
    let id = f2fs::journal::Uuid(content.id).to_string();
    if let Some(expected) = journal_left(image).filter(|expected| *expected != id) {
        let what = format!("was left with synced files in the journal {expected}, and {id} was given");
        return Err(CliError::at(image, what));
    }
    let journaled = Journaled::new(content.volume, content.checkpoints.clone(), content.blocks().collect());
    let journal = Journal { path, content };
    let (device_of, repair) = plan_for(image, Synced::In(&journaled))?;
    if !repair.keeps_journal() {
        let what = "the repair needs blocks, or numbers of inodes, that files in the journal have";
        let how = "`f2fs get --journal` copies out what can be read, --without-journal gives up what was synced";
        return Err(CliError::at(image, format_args!("{what}: {how}")));
    }
    let passes_over = journal.must_pass_over(&repair.preview(&device_of))?;
    let backup = args.backup.clone().unwrap_or_else(|| default_backup(image));
    carry_out(image, &backup, &*device_of, &repair)?;
    drop(device_of);
    let options = Options::new().journal(journal.options(false)?.passes_over(passes_over));
    let fs = FileSystem::open(device(image, Access::Write)?, options).about(image)?;
    fs.close().about(image)?;
    if !args.json {
        tell_left_out(image, &fs);
    }
    let passed = |PassedOver { ino, reason, .. }: &PassedOver| json!({ "inode": ino.0, "reason": reason.to_string() });
    let passed_over = fs.passed_over().iter().map(passed).collect();
    let (brought_back, given_up) = (fs.recovered().files, fs.given_up().clone());
    // The device is free again.
    drop(fs);
    let mut repairs = vec![(backup, repair)];
    if passes_over {
        repairs.extend(once_more(args)?);
    }
    let outcome = Outcome { repairs: &repairs, brought_back, passed_over, given_up };
    let is_sound = repairs.last().is_some_and(|(_, repair)| repair.after.is_consistent() && repair.after.complete);
    let changed = repairs.iter().any(|(_, repair)| repair.blocks().next().is_some());
    let verdict = match (is_sound, changed || passes_over) {
        (true, false) => 0,
        (true, true) => REPAIRED,
        (false, _) => CORRUPT,
    };
    tell_verdict(verdict, tell(args.json, &outcome))
}

/// Files that were passed over may have links and names that have to be put right. Saves what that changes beside the
/// first backup.
fn once_more(args: &CheckArgs) -> Result<Option<(PathBuf, Repair)>, CliError> {
    let image = &args.image;
    let (device, repair) = plan_for(image, Synced::Kept)?;
    let mut backup = args.backup.clone().unwrap_or_else(|| default_backup(image)).into_os_string();
    backup.push("-2");
    let backup = PathBuf::from(backup);
    carry_out(image, &backup, &*device, &repair)?;
    Ok(Some((backup, repair)))
}

fn tell(as_json: bool, outcome: &Outcome<'_>) -> std::io::Result<()> {
    let Outcome { repairs, brought_back, passed_over, given_up: GivenUp { records, inos, .. } } = outcome;
    let changed = |repair: &Repair| repair.blocks().count();
    let mut out = std::io::stdout().lock();
    if as_json {
        let repair = |(backup, repair): &(PathBuf, Repair)| {
            json!({
                "before": findings(&repair.before), "actions": repair.actions, "blocks": changed(repair),
                "backup": (changed(repair) > 0).then(|| backup.display().to_string()), "after": findings(&repair.after),
                "clean": repair.after.is_clean() && repair.after.complete,
            })
        };
        let value = json!({
            "checked": true,
            "brought_back": brought_back,
            "passed_over": passed_over,
            "given_up": json!({ "records": records, "inodes": inos.iter().map(|ino| ino.0).collect::<Vec<_>>() }),
            "repairs": repairs.iter().map(repair).collect::<Vec<_>>(),
        });
        return writeln!(out, "{value:#}");
    }
    for (backup, repair) in *repairs {
        repair.actions.iter().try_for_each(|action| writeln!(out, "{action}"))?;
        repair.after.findings.iter().try_for_each(|finding| writeln!(out, "left: {finding}"))?;
        if changed(repair) > 0 {
            writeln!(out, "{} blocks changed; {} has what was in them", changed(repair), backup.display())?;
        }
    }
    if *brought_back > 0 {
        writeln!(out, "{brought_back} files that were synced into the journal are brought back")?;
    }
    Ok(())
}
