//! The phases.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use f2fs::check::{CheckOptions, check};
use f2fs::device::BlockDevice;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{File, FileSystem, FsError, Options};

use crate::tree::fill;

use super::parallel::{Scratch, share};
use super::{Config, FileSpec, LARGE_PIECE, Observer, Phase, PhaseReport, Plan, QuickstartError, Report};

/// How a device is opened, again after it was closed.
pub type OpenDevice<'a> = &'a dyn Fn() -> Result<Arc<dyn BlockDevice>, Box<dyn std::error::Error + Send + Sync>>;

/// Runs all phases on the device that `open` opens, twice: what is on it is overwritten.
///
/// # Errors
/// [`QuickstartError`]; [`is_damage`](QuickstartError::is_damage) says whether the volume is to blame.
pub fn run(open: OpenDevice<'_>, config: &Config, observer: &dyn Observer) -> Result<Report, QuickstartError> {
    let mut run = Run { config: *config, plan: Plan::new(*config), observer, phases: Vec::new() };
    let files = config.files;
    let pieces = config.large_files * config.large_bytes.div_ceil(LARGE_PIECE);

    let device = open().map_err(QuickstartError::Device)?;
    let (description, volume_bytes) = (device.info().description.clone(), device.info().bytes());
    let fs = run.single(Phase::Format, || {
        let options = FormatOptions::default().forced();
        format(&*device, &options)?;
        FileSystem::open(device.clone(), Options::new()).map_err(volume("open"))
    })?;
    for number in 0..config.directories.max(1) {
        let path = run.plan.directory(number);
        fs.create_dir(&path, 0o755).map_err(|source| file("create", &path, source))?;
    }
    for number in 0..config.large_files {
        let path = run.plan.large(number).path;
        fs.create_file(&path, 0o644).map_err(|source| file("create", &path, source))?;
    }

    run.many(Phase::Create, files, |plan, number, _| {
        let spec = plan.file(number);
        fs.create_file(&spec.path, 0o644).map_err(|source| file("create", &spec.path, source))?;
        Ok(0)
    })?;
    run.many(Phase::Write, files, |plan, number, scratch| {
        let spec = plan.file(number);
        let file = open_file(&fs, &spec.path)?;
        write_piece(&file, &spec, 0..spec.size, scratch)
    })?;
    run.many(Phase::Read, files, |plan, number, scratch| {
        let spec = plan.file(number);
        compare_piece(&open_file(&fs, &spec.path)?, &spec, 0..spec.size, scratch)
    })?;
    run.many(Phase::WriteLarge, pieces, |plan, number, scratch| {
        let (spec, range) = piece(plan, config, number);
        write_piece(&open_file(&fs, &spec.path)?, &spec, range, scratch)
    })?;
    run.many(Phase::ReadLarge, pieces, |plan, number, scratch| {
        let (spec, range) = piece(plan, config, number);
        compare_piece(&open_file(&fs, &spec.path)?, &spec, range, scratch)
    })?;
    run.single(Phase::Checkpoint, || fs.checkpoint().map_err(volume("checkpoint")))?;
    run.many(Phase::Unlink, files / 2, |plan, number, _| {
        let number = number * 2 + 1;
        debug_assert!(plan.is_unlinked(number));
        let path = plan.file(number).path;
        fs.remove_file(&path).map_err(|source| file("unlink", &path, source))?;
        Ok(0)
    })?;
    run.single(Phase::Close, || fs.close().map_err(volume("close")))?;
    drop((fs, device));

    let (device, fs) = run.single(Phase::Open, || {
        let device = open().map_err(QuickstartError::Device)?;
        let fs = FileSystem::open(device.clone(), Options::new().read_only(true)).map_err(volume("open"))?;
        Ok((device, fs))
    })?;
    run.verify(&fs, pieces)?;
    drop(fs);
    run.check(&*device)?;
    Ok(Report { config: *config, device: description, volume_bytes, phases: run.phases })
}

struct Run<'a> {
    config: Config,
    plan: Plan,
    observer: &'a dyn Observer,
    phases: Vec<PhaseReport>,
}

impl Run<'_> {
    fn single<T>(
        &mut self,
        phase: Phase,
        work: impl FnOnce() -> Result<T, QuickstartError>,
    ) -> Result<T, QuickstartError> {
        self.timed(phase, 1, |_| Ok((1, 0, work()?)))
    }

    fn many(
        &mut self,
        phase: Phase,
        count: u64,
        work: impl Fn(&Plan, u64, &mut Scratch) -> Result<u64, QuickstartError> + Sync,
    ) -> Result<(), QuickstartError> {
        let (threads, observer) = (self.config.threads, self.observer);
        self.timed(phase, count, |plan| {
            let bytes = share(threads, count, observer, |number, scratch| work(plan, number, scratch))?;
            Ok((count, bytes, ()))
        })
    }

    /// Runs a phase of `steps` steps; `work` returns operations, bytes, and a result of its own.
    fn timed<T>(
        &mut self,
        phase: Phase,
        steps: u64,
        work: impl FnOnce(&Plan) -> Result<(u64, u64, T), QuickstartError>,
    ) -> Result<T, QuickstartError> {
        self.observer.begin(phase, steps);
        let start = Instant::now();
        let (operations, bytes, value) = work(&self.plan)?;
        let report = PhaseReport { phase, operations, bytes, time: start.elapsed() };
        self.observer.end(&report);
        self.phases.push(report);
        Ok(value)
    }

    fn verify(&mut self, fs: &FileSystem, pieces: u64) -> Result<(), QuickstartError> {
        let (config, observer) = (self.config, self.observer);
        let files = config.files;
        self.timed(Phase::Verify, files + pieces, |plan| {
            for (number, expected) in plan.left_by_directory().into_iter().enumerate() {
                let path = plan.directory(number as u64);
                let entries = fs.read_dir(&path).map_err(|source| file("list", &path, source))?;
                let mut found = 0;
                for entry in entries {
                    entry.map_err(|source| file("list", &path, source))?;
                    found += 1;
                }
                if found != expected {
                    return Err(QuickstartError::Names { path, expected, found });
                }
            }
            let bytes = share(config.threads, files + pieces, observer, |number, scratch| {
                if number >= files {
                    let (spec, range) = piece(plan, &config, number - files);
                    return compare_piece(&open_file(fs, &spec.path)?, &spec, range, scratch);
                }
                let spec = plan.file(number);
                if !plan.is_unlinked(number) {
                    return compare_piece(&open_file(fs, &spec.path)?, &spec, 0..spec.size, scratch);
                }
                match fs.exists(&spec.path).map_err(|source| file("look up", &spec.path, source))? {
                    true => Err(QuickstartError::Undead { path: spec.path }),
                    false => Ok(0),
                }
            })?;
            Ok((files + config.large_files, bytes, ()))
        })
    }

    fn check(&mut self, device: &dyn BlockDevice) -> Result<(), QuickstartError> {
        let observer = self.observer;
        self.timed(Phase::Check, 1, |_| {
            let report = check(device, &CheckOptions::default())?;
            if !report.is_clean() || !report.complete {
                return Err(QuickstartError::Corrupt(Box::new(report)));
            }
            observer.advance(1);
            Ok((report.counts.inodes, 0, ()))
        })
    }
}

fn open_file(fs: &FileSystem, path: &Path) -> Result<File, QuickstartError> {
    fs.open_file(path).map_err(|source| file("open", path, source))
}

/// The piece of a large file with this number.
fn piece(plan: &Plan, config: &Config, number: u64) -> (FileSpec, std::ops::Range<u64>) {
    let pieces = config.large_bytes.div_ceil(LARGE_PIECE);
    let spec = plan.large(number / pieces);
    let start = number % pieces * LARGE_PIECE;
    let end = (start + LARGE_PIECE).min(spec.size);
    (spec, start..end)
}

fn write_piece(
    file_: &File,
    spec: &FileSpec,
    range: std::ops::Range<u64>,
    scratch: &mut Scratch,
) -> Result<u64, QuickstartError> {
    let wanted = range.end - range.start;
    scratch.expected.resize(wanted as usize, 0);
    fill(spec.seed, range.start, &mut scratch.expected);
    let written =
        file_.write_at(&scratch.expected, range.start).map_err(|source| file("write", &spec.path, source))? as u64;
    if written == wanted {
        Ok(written)
    } else {
        Err(QuickstartError::Short { path: spec.path.clone(), written, wanted })
    }
}

/// Compares a part of a file, and its size, with the plan; returns the bytes compared.
fn compare_piece(
    file_: &File,
    spec: &FileSpec,
    range: std::ops::Range<u64>,
    scratch: &mut Scratch,
) -> Result<u64, QuickstartError> {
    let wrong_size = |found| QuickstartError::Size { path: spec.path.clone(), expected: spec.size, found };
    if file_.size() != spec.size {
        return Err(wrong_size(file_.size()));
    }
    let len = (range.end - range.start) as usize;
    scratch.expected.resize(len, 0);
    scratch.found.resize(len, 0);
    fill(spec.seed, range.start, &mut scratch.expected);
    let read = file_.read_at(&mut scratch.found, range.start).map_err(|source| file("read", &spec.path, source))?;
    if read != len {
        return Err(wrong_size(range.start + read as u64));
    }
    if scratch.found == scratch.expected {
        return Ok(len as u64);
    }
    let differs =
        scratch.expected.iter().zip(&scratch.found).enumerate().find(|(_, (expected, found))| expected != found);
    let (offset, (expected, found)) = differs.unwrap_or((0, (&0, &0)));
    Err(QuickstartError::Content {
        path: spec.path.clone(),
        offset: range.start + offset as u64,
        expected: *expected,
        found: *found,
    })
}

fn volume(what: &'static str) -> impl FnOnce(FsError) -> QuickstartError {
    move |source| QuickstartError::Volume { what, source: Box::new(source) }
}

fn file(what: &'static str, path: &Path, source: FsError) -> QuickstartError {
    QuickstartError::File { what, path: path.to_path_buf(), source: Box::new(source) }
}
