//! `f2fs journal`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use f2fs::journal::{Journal, LaneEnd, LaneReport, Recovered, SharedMedium};
use f2fs::uring::OpenOptions;
use f2fs::volume::format::{Signature, recognise};
use f2fs::volume::{JournalArea, VolumeError};
use f2fs::{FsError, JournalMode, JournalOptions, create_journal};
use f2fs_workload::shell::Quoted;
use serde_json::json;

use crate::args::journal::JournalCommand;
use crate::error::{CliError, Context, say};
use crate::image::{Access, device, not_opened, open, open_with};
use crate::interrupt::{guarded, listen};
use crate::medium;
use crate::size::{Size, human};

pub(crate) fn run(command: &JournalCommand) -> Result<(), CliError> {
    match command {
        JournalCommand::Create { size, force, path, image } => create(path, image, *size, *force),
        JournalCommand::Attach { force, path, image } => attach(path, image, *force),
        JournalCommand::Inspect { json, path } => inspect(path, *json),
        JournalCommand::Detach { path, image } => detach(path, image),
    }
}

fn create(path: &Path, image: &Path, size: Option<Size>, force: bool) -> Result<(), CliError> {
    if let Some(size) = size.filter(|size| i64::try_from(size.0).is_err()) {
        return Err(CliError::usage(format_args!("no file has {} bytes: {} is the most", size.0, i64::MAX)));
    }
    // Obstacles are found before anything is made.
    drop(device(image, Access::Read)?);
    medium::expect_another(image, path)?;
    if !force {
        check_not_needed(image)?;
    }
    let exists = path.try_exists().about(path)?;
    match (exists, size) {
        (false, None) => {
            let shown = Quoted::path(path);
            return Err(CliError::usage(format_args!("the journal {shown} does not exist; --size creates it")));
        }
        (true, Some(_)) => return Err(CliError::usage("--size is for a new file, and this one exists")),
        (false, Some(size)) => {
            // A signal from here on finds a file that has to be taken away.
            listen();
            let made = File::create_new(path).map_err(|error| CliError::at(path, medium::reason(path, &error)))?;
            made.set_len(size.0).about(path).inspect_err(|_| remove_what_was_made(path))?;
        }
        (true, None) if force => {}
        (true, None) => expect_nothing_known(path)?,
    }
    let make = || {
        let medium = medium::journal_at(path, false)?;
        make_journal(path, image, medium, force)
    };
    let left = || {
        let shown = Quoted::path(path);
        if exists {
            format!("{shown} may hold no whole journal: `f2fs journal inspect` tells")
        } else {
            remove_what_was_made(path);
            format!("{shown} was not made")
        }
    };
    guarded(make, left)?.inspect_err(|_| {
        if !exists {
            remove_what_was_made(path);
        }
    })
}

/// Makes the journal of a volume in `medium`, which lies at `path`. An error names the one of the two that it is about.
fn make_journal(path: &Path, image: &Path, medium: SharedMedium, force: bool) -> Result<(), CliError> {
    let volume = device(image, Access::Read)?;
    create_journal(Arc::clone(&volume), medium, force).map_err(|error| match error {
        FsError::Volume(VolumeError::Journal(_)) => CliError::at(path, error),
        error => not_opened(image, &*volume, error),
    })
}

/// A journal is made where nothing is; what other file systems have at their own places is something.
fn expect_nothing_known(path: &Path) -> Result<(), CliError> {
    // Whatever cannot be read as a device is said when it is opened as a journal.
    let Ok(device) = medium::open_plain(path, true, OpenOptions::new()) else { return Ok(()) };
    match recognise(&*device) {
        // The records in it, if there are any, are told of when it is made anew.
        Ok(Some(Signature::Journal)) => Ok(()),
        Ok(Some(found)) => Err(CliError::at(path, format_args!("holds {found}; --force overwrites it"))),
        _ => Ok(()),
    }
}

/// Takes away a file that was made here a moment ago, and is of no use.
fn remove_what_was_made(path: &Path) {
    let _ = std::fs::remove_file(path);
}

fn attach(path: &Path, image: &Path, force: bool) -> Result<(), CliError> {
    let volume = f2fs::journal::Uuid(volume_of(image)?);
    medium::expect_another(image, path)?;
    if !force {
        check_not_needed(image)?;
    }
    let found = Journal::open(medium::journal_at(path, true)?, None).map_err(|error| match error {
        f2fs::journal::Error::NotAJournal => {
            CliError::at(path, "there is no journal here: `f2fs journal create` makes one")
        }
        error => CliError::at(path, error),
    })?;
    let (owner, records) = (found.owner(), found.records());
    drop(found);
    if owner == volume {
        say(format_args!("{} is the journal of {} already", Quoted::path(path), Quoted::path(image)));
        return Ok(());
    }
    if records != 0 && !force {
        let what = format!(
            "holds {records} records of the volume {owner}: `f2fs journal detach` brings them back there, -f gives them up"
        );
        return Err(CliError::at(path, what));
    }
    let medium = medium::journal_at(path, false)?;
    make_journal(path, image, medium, true)?;
    say(format_args!("{} is the journal of {} now, and was that of {owner}", Quoted::path(path), Quoted::path(image)));
    Ok(())
}

fn volume_of(image: &Path) -> Result<[u8; 16], CliError> {
    Ok(open(image, Access::ReadCheckpoint)?.volume().superblock().uuid)
}

/// A volume that was left with synced files in a journal needs that one.
fn check_not_needed(image: &Path) -> Result<(), CliError> {
    let fs = open(image, Access::ReadCheckpoint)?;
    let Some(id) = fs.missing_journal().map_err(|error| CliError::at(image, error))? else { return Ok(()) };
    let what = "the volume was left with synced files in the journal";
    Err(CliError::at(image, format_args!("{what} {id}: `f2fs journal detach` brings them back, -f gives them up")))
}

/// How a lane ends, in a word and in words.
fn ending(lane: &LaneReport) -> (&'static str, String) {
    match &lane.how {
        LaneEnd::Clean => ("clean", "clean".into()),
        LaneEnd::Torn => {
            let (at, position) = (lane.end_offset, lane.end);
            let what = format!("a record at position {position}, byte {at}, that a power cut interrupted");
            ("torn", format!("{what}, or that was damaged since: nothing tells these apart"))
        }
        LaneEnd::Damaged { evidence } => {
            let (at, position, behind) = (lane.end_offset, lane.end, lane.behind);
            let what = format!("the record at position {position} is damaged, at byte {at}");
            (
                "damaged",
                format!("{what}: there were records up to position {evidence}, and {behind} behind it are whole"),
            )
        }
        LaneEnd::Unreadable(error) => ("unreadable", format!("cannot be read at byte {}: {error}", lane.end_offset)),
        LaneEnd::Retired => ("retired", "not used any more".into()),
        _ => ("unknown", "unknown".into()),
    }
}

fn inspect(path: &Path, as_json: bool) -> Result<(), CliError> {
    let found: Recovered<SharedMedium> =
        Journal::open(medium::journal_at(path, true)?, None).map_err(|error| CliError::at(path, error))?;
    let area = JournalArea::read(found.area());
    // The lower half of a footer version is the number of the checkpoint.
    let number = |version: u64| (version != 0).then_some(version as u32);
    let (base, next) = area.map_or((None, None), |area| (number(area.base), number(area.next)));
    let (lane_bytes, grain) = found.sizes();
    let used = |lane: &LaneReport| lane.end.saturating_sub(lane.head);
    let mut out = std::io::stdout().lock();
    if as_json {
        let lane = |(number, lane): (usize, &LaneReport)| {
            json!({
                "number": number, "head": lane.head, "end": lane.end, "used": used(lane), "records": lane.records,
                "last_stamp": lane.stamp, "end_byte": lane.end_offset, "behind": lane.behind, "ending": ending(lane).0, "whole": lane.is_whole(),
            })
        };
        let value = json!({
            "volume": found.owner().to_string(), "journal": f2fs::journal::Uuid(found.id()).to_string(),
            "of_a_volume": area.is_some(), "base": base, "next": next, "epoch": found.epoch(),
            "lane_bytes": lane_bytes, "grain": grain, "records": found.records(), "whole": found.is_whole(),
            "lanes": found.lanes().iter().enumerate().map(lane).collect::<Vec<_>>(),
        });
        writeln!(out, "{value:#}")?;
    } else {
        writeln!(out, "volume:   {}", found.owner())?;
        writeln!(out, "journal:  {}", f2fs::journal::Uuid(found.id()))?;
        match (area, base, next) {
            (None, ..) => writeln!(out, "base:     unknown: its owner is not a volume")?,
            (_, None, _) => writeln!(out, "base:     none: it was not in use yet")?,
            (_, Some(base), None) => writeln!(out, "base:     checkpoint {base}")?,
            (_, Some(base), Some(next)) => {
                writeln!(out, "base:     checkpoint {base}; checkpoint {next} was being written")?;
            }
        }
        writeln!(out, "opened:   {} times", found.epoch())?;
        writeln!(out, "records:  {} in {} lanes of {}", found.records(), found.lanes().len(), human(lane_bytes))?;
        for (number, lane) in found.lanes().iter().enumerate() {
            let (records, used, ending) = (lane.records, human(used(lane)), ending(lane).1);
            writeln!(out, "lane {number}:   {records} records, {used}, {ending}")?;
        }
    }
    if found.is_whole() { Ok(()) } else { Err(CliError::at(path, "records are lost")) }
}

fn detach(path: &Path, image: &Path) -> Result<(), CliError> {
    // What the image is, if it is none, is said first.
    drop(device(image, Access::Read)?);
    medium::expect_another(image, path)?;
    let journal = JournalOptions::new(medium::journal_at(path, false)?, JournalMode::Ordered).rescue(medium::rescue());
    open_with(image, Access::Write, Some(journal))?.close().about(image)?;
    say(format_args!("{} is closed, and no longer needs {}", Quoted::path(image), Quoted::path(path)));
    Ok(())
}
