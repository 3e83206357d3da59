//! What is left of a volume after a storm, beside what was promised.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use f2fs_check::{CheckOptions, check};
use f2fs_device::MemoryDevice;
use f2fs_files::{FileKind, FileSystem, FsError, JournalOptions};
use f2fs_journal::DeviceMedium;

use super::promise::{Known, UNIT, stamp};
use super::world::{Left, World};

/// Units of a file that are named when they are wrong.
const FEW: usize = 5;

/// Looks at what is left, and goes on with it; says whether the journal is of no use any more, which it may be if its
/// device has failed.
pub(super) fn judge(
    world: &World,
    left: Left,
    files: &[Known],
    closed: bool,
    fsck: bool,
    wrong: &mut Vec<String>,
) -> bool {
    let device = Arc::new(left.volume);
    checked("what is left", &device, closed, wrong);
    if fsck && closed {
        accepted("what is left", &device, wrong);
    }
    let mut options = world.options.clone();
    let mut lost = false;
    if let (Some(journal), Some(mode)) = (left.journal, world.journal_mode()) {
        match DeviceMedium::new(Arc::new(journal)) {
            Ok(medium) => options = options.journal(JournalOptions::new(Arc::new(medium), mode)),
            Err(error) => wrong.push(format!("the journal: {error}")),
        }
        // A copy, since opening changes what is there.
        let copy = Arc::new(device.snapshot());
        lost = world.journal_failed() && FileSystem::open(copy, options.clone().read_only(true)).is_err();
        if lost {
            options = world.options.clone().without_journal(true);
        }
    }
    match FileSystem::open(device.clone(), options) {
        Ok(fs) => {
            if !lost {
                promised(world, &fs, files, closed, wrong);
            }
            if let Err(error) = go_on(&fs)
                && !error.is_no_space()
            {
                wrong.push(format!("it cannot be gone on with: {error}"));
            }
        }
        Err(error) => {
            wrong.push(format!("it does not open: {error}"));
            return lost;
        }
    }
    checked("what is left after that", &device, true, wrong);
    if fsck {
        accepted("what is left after that", &device, wrong);
    }
    lost
}

fn checked(what: &str, device: &MemoryDevice, closed: bool, wrong: &mut Vec<String>) {
    match check(device, &CheckOptions::default()) {
        Ok(report) if report.is_clean() || !closed && report.is_consistent() => {}
        Ok(report) => wrong.push(format!("{what}: {report}")),
        Err(error) => wrong.push(format!("{what} cannot be checked: {error}")),
    }
}

/// The verdict of `fsck.f2fs`.
fn accepted(what: &str, device: &MemoryDevice, wrong: &mut Vec<String>) {
    let look = || -> Result<Option<String>, String> {
        let place = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = place.path().join("volume");
        device.save(&path).map_err(|error| error.to_string())?;
        let report = f2fs_oracle::fsck(&path).map_err(|error| error.to_string())?;
        fs::remove_file(&path).map_err(|error| error.to_string())?;
        Ok((!report.is_clean()).then(|| format!("{report:?}")))
    };
    match look() {
        Ok(None) => {}
        Ok(Some(report)) => wrong.push(format!("fsck.f2fs of {what}: {report}")),
        Err(error) => wrong.push(format!("fsck.f2fs of {what} did not run: {error}")),
    }
}

/// The paths of all files, by inode.
fn paths(fs: &FileSystem) -> Result<BTreeMap<u32, Vec<String>>, FsError> {
    let mut found: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let mut left = vec![String::new()];
    while let Some(path) = left.pop() {
        for entry in fs.open_dir(if path.is_empty() { "/" } else { &path })?.entries() {
            let entry = entry?;
            let below = format!("{path}/{}", String::from_utf8_lossy(&entry.name));
            if entry.kind == Some(FileKind::Directory) {
                left.push(below);
            } else {
                found.entry(entry.ino.get()).or_default().push(below);
            }
        }
    }
    Ok(found)
}

fn promised(world: &World, fs: &FileSystem, files: &[Known], closed: bool, wrong: &mut Vec<String>) {
    let found = match paths(fs) {
        Ok(found) => found,
        Err(error) => return wrong.push(format!("the tree cannot be read: {error}")),
    };
    for file in files.iter().filter(|file| !file.removed) {
        let named = found.get(&file.ino.get()).map_or(&[][..], Vec::as_slice);
        // The inode of a file that was never durable may be another file's by now.
        let is_it = |path: &String| file.name.may_be_left(&Some(path.clone()));
        let path = match named {
            [] if (file.durable || closed) && !file.name.may_be_left(&None) => {
                wrong.push(format!("{} is lost, of which {:?} may be left: {}", file.ino, file.name, file.story()));
                continue;
            }
            [path] if is_it(path) => path,
            [] => continue,
            _ if !file.durable => continue,
            _ => {
                wrong.push(format!("{} is {named:?}, not {:?}: {}", file.ino, file.name, file.story()));
                continue;
            }
        };
        if file.durable
            && let Err(what) = content(world, fs, path, file)
        {
            wrong.push(format!("{path} ({}) {what}: {}", file.ino, file.story()));
        }
    }
}

/// Compares what a file holds.
fn content(world: &World, fs: &FileSystem, path: &str, known: &Known) -> Result<(), String> {
    let file = fs.open_file(path).map_err(|error| format!("does not open: {error}"))?;
    let size = file.size();
    if !known.may_be_left_with(size) {
        return Err(format!("has {size} bytes, of which {} may be left", known.sizes()));
    }
    let mut bytes = vec![0; size as usize];
    match file.read_at(&mut bytes, 0) {
        Ok(read) if read == bytes.len() => {}
        Ok(read) => return Err(format!("has {size} bytes, and {read} are read")),
        Err(error) => return Err(format!("cannot be read: {error}")),
    }
    let mut bad = Vec::new();
    for (unit, found) in (0..).zip(bytes.chunks_exact(UNIT as usize)) {
        if !known.knows(unit) || !world.strict && known.is_open_around(unit) {
            continue;
        }
        let found = stamp(found);
        if !found.is_some_and(|stamp| known.unit(unit).may_be_left(&stamp)) {
            bad.push(format!("unit {unit} holds {found:x?}, not {:x?}", known.unit(unit)));
        }
    }
    if bad.is_empty() {
        return Ok(());
    }
    let more = bad.len().saturating_sub(FEW);
    bad.truncate(FEW);
    Err(format!("{} and {more} more", bad.join(", ")))
}

/// Makes, fills and removes files, and closes the volume.
fn go_on(fs: &FileSystem) -> Result<(), FsError> {
    let names: Vec<String> = (0..20).map(|number| format!("/behind {number}")).collect();
    for name in &names {
        fs.create_file(name, 0o644)?.write_at(&[3; 9000], 0)?;
    }
    fs.checkpoint()?;
    names.iter().try_for_each(|name| fs.remove_file(name))?;
    fs.close()
}
