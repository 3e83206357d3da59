//! `f2fs bench`: the device to measure on, and the files for the results.

mod fxmark;
mod read;
mod varmail;

use std::fmt::Display;
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use f2fs::FormatOptions;
use f2fs::device::{BlockDevice, MemoryDevice};
use f2fs::format::mkfs::VolumePlan;
use f2fs_workload::report::{ChartError, LineChart, Machine};
use f2fs_workload::shell::Quoted;
use serde_json::{Value, json};

use super::format::impossible;
use super::results::{ResultFile, expect_no_volume, is_same};
use crate::args::bench::{BenchCommand, OutputArgs, TargetArgs};
use crate::error::{CliError, Context};
use crate::image;
use crate::interrupt::guarded;
use crate::medium;
use crate::size::{Size, human};

pub(crate) fn run(command: &BenchCommand) -> Result<(), CliError> {
    let (image, output) = match command {
        BenchCommand::Fxmark(args) => (&args.target.image, &args.output),
        BenchCommand::Read(args) => (&args.image, &args.output),
        BenchCommand::Varmail(args) => (&args.image, &args.output),
    };
    if image.is_none() && (medium::pmem() || medium::without_journal() || !medium::others().is_empty()) {
        return Err(CliError::usage("--device, --pmem and --without-journal are for an image, and none is measured"));
    }
    expect_effect(command)?;
    expect_apart(image.as_deref(), output)?;
    // What is made in a directory that is measured.
    let made = match command {
        BenchCommand::Fxmark(args) => args.directory.as_ref().map(|path| path.join("fxmark")),
        BenchCommand::Read(_) => None,
        BenchCommand::Varmail(args) => args.directory.as_ref().map(|path| path.join("mail")),
    };
    let begun = &AtomicBool::new(false);
    let measure = || match command {
        BenchCommand::Fxmark(args) => fxmark::run(args, begun),
        BenchCommand::Read(args) => read::run(args, begun),
        BenchCommand::Varmail(args) => varmail::run(args, begun),
    };
    guarded(measure, || {
        let image = image.as_ref().map(|path| format!("{} is of no use except for measuring", Quoted::path(path)));
        let made = made.filter(|path| path.exists());
        let made = made.map(|path| format!("{} is of no use any more; remove it", Quoted::path(&path)));
        let csv = output.csv.as_ref().filter(|_| begun.load(Ordering::Relaxed));
        let csv = csv.map(|path| format!("{} has the measurements made until then", Quoted::path(path)));
        let left: Vec<String> = image.into_iter().chain(made).chain(csv).collect();
        if left.is_empty() { "nothing is left of it".into() } else { left.join("; ") }
    })?
}

/// Refuses options that would change nothing.
fn expect_effect(command: &BenchCommand) -> Result<(), CliError> {
    let (what, takes_journal, takes_page_cache) = match command {
        // A journal in a directory, or for reads, is refused elsewhere.
        BenchCommand::Fxmark(args) => ("a directory", true, args.directory.is_none()),
        BenchCommand::Read(_) => ("`f2fs bench read`", true, false),
        BenchCommand::Varmail(args) if args.directory.is_some() => ("a directory", true, false),
        BenchCommand::Varmail(args) => ("the models", args.image.is_some(), true),
    };
    let taken = |option: &str, given: bool, takes: bool| match given && !takes {
        true => Err(CliError::usage(format_args!("{option} has no effect on {what}"))),
        false => Ok(()),
    };
    taken("--journal", medium::journal_path().is_some(), takes_journal)?;
    taken("--page-cache", medium::has_page_cache(), takes_page_cache)
}

/// Refuses a list of an option in which a value stands twice: it would be measured twice, for one name.
fn expect_distinct<T: PartialEq + Display>(option: &str, values: impl IntoIterator<Item = T>) -> Result<(), CliError> {
    let mut seen = Vec::new();
    for value in values {
        if seen.contains(&value) {
            return Err(CliError::usage(format_args!("{option} has {value} twice")));
        }
        seen.push(value);
    }
    Ok(())
}

/// Refuses results in what is measured, in one another's file, and in place of a volume, before anything is made.
fn expect_apart(image: Option<&Path>, output: &OutputArgs) -> Result<(), CliError> {
    let measured =
        || image.into_iter().chain(medium::others().iter().map(PathBuf::as_path)).chain(medium::journal_path());
    let files = [&output.csv, &output.svg].into_iter().flatten();
    for path in files.clone() {
        if measured().any(|other| is_same(path, other)) {
            return Err(CliError::usage(format_args!("{} is what is measured", Quoted::path(path))));
        }
    }
    if let (Some(csv), Some(svg)) = (&output.csv, &output.svg)
        && is_same(csv, svg)
    {
        return Err(CliError::usage(format_args!("--csv and --svg are both {}", Quoted::path(csv))));
    }
    files.clone().try_for_each(|path| expect_no_volume(path))
}

/// The device of a measurement. Nothing on it is worth keeping: the command has checked that, or the user says so.
#[derive(Debug)]
enum Target {
    Memory(u64),
    Image(PathBuf),
}

impl Target {
    /// Where it lies; memory lies nowhere.
    fn path(&self) -> &Path {
        match self {
            Target::Memory(_) => Path::new(""),
            Target::Image(path) => path,
        }
    }

    /// The bytes of a device that the command line has made, or whose size it says.
    ///
    /// # Errors
    /// If no volume has that size.
    fn planned(args: &TargetArgs) -> Result<Option<u64>, CliError> {
        let size = args.image.as_ref().map_or(Some(args.memory), |_| args.size);
        let Some(Size(bytes)) = size else { return Ok(None) };
        VolumePlan::new(&FormatOptions::default(), bytes).map_err(|error| CliError::usage(impossible(&error)))?;
        Ok(Some(bytes))
    }

    /// # Errors
    /// If the image holds something and `--force` is not given, or is missing and its size is not given.
    fn new(args: &TargetArgs) -> Result<Target, CliError> {
        Target::planned(args)?;
        let Some(path) = &args.image else { return Ok(Target::Memory(args.memory.0)) };
        if path.try_exists().about(path)? {
            let file = path.metadata().about(path)?;
            if !file.is_file() && !file.file_type().is_block_device() {
                return Err(CliError::at(path, "is neither a file nor a block device"));
            }
            // A file without blocks was never written to. Of a block device nobody knows that.
            let untouched = file.is_file() && file.blocks() == 0;
            if !untouched && !args.force {
                return Err(CliError::at(path, "is not empty; --force overwrites it"));
            }
            if let Some(size) = args.size
                && file.is_file()
            {
                File::options().write(true).open(path).and_then(|file| file.set_len(size.0)).about(path)?;
            }
        } else {
            let size = args.size.ok_or_else(|| CliError::at(path, "does not exist; --size creates it"))?;
            drop(medium::create(path, size.0)?);
        }
        Ok(Target::Image(path.clone()))
    }

    /// The device, in memory a new one each time.
    fn open(&self) -> Result<Arc<dyn BlockDevice>, CliError> {
        match self {
            Target::Memory(bytes) => Ok(Arc::new(MemoryDevice::new(bytes / 4096))),
            Target::Image(path) => image::device(path, image::Access::Write),
        }
    }

    /// In words.
    fn describe(&self) -> Result<String, CliError> {
        match self {
            Target::Memory(bytes) => Ok(format!("memory, {}", human(*bytes))),
            Target::Image(path) => {
                let bytes = self.open()?.info().bytes();
                Ok(format!("{}, {}", Quoted::path(path), human(bytes)))
            }
        }
    }
}

/// The files that results are written to, and the machine that they are of.
#[derive(Debug)]
struct Output<'a> {
    machine: Machine,
    csv: Option<ResultFile<'a>>,
    /// The head of the CSV file, until the first line is there.
    head: String,
    svg: Option<ResultFile<'a>>,
    /// The CSV file has a line.
    begun: &'a AtomicBool,
}

impl<'a> Output<'a> {
    /// The CSV file begins with the machine, `about` in further comment lines, and the columns. It is written with its
    /// first line: until then a file that is there stays as it is.
    fn new(
        args: &'a OutputArgs,
        about: &[(&str, &str)],
        columns: &str,
        begun: &'a AtomicBool,
    ) -> Result<Output<'a>, CliError> {
        let machine = Machine::here();
        let mut head = machine.comments();
        for (what, value) in about {
            head.push_str(&format!("# {what}: {value}\n"));
        }
        head.push_str(&format!("{columns}\n"));
        let (csv, svg) = (ResultFile::at(args.csv.as_deref())?, ResultFile::at(args.svg.as_deref())?);
        Ok(Output { machine, csv, head, svg, begun })
    }

    /// Adds a line to the CSV file.
    fn line(&mut self, line: &str) -> Result<(), CliError> {
        let Some(csv) = &mut self.csv else { return Ok(()) };
        csv.add(&format!("{}{line}\n", std::mem::take(&mut self.head)))?;
        self.begun.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Draws the picture.
    fn charts(&mut self, charts: &[LineChart]) -> Result<(), CliError> {
        self.picture(|| LineChart::svg_of(charts))
    }

    /// Draws another one.
    fn picture(&mut self, draw: impl FnOnce() -> Result<String, ChartError>) -> Result<(), CliError> {
        let Some(svg) = &mut self.svg else { return Ok(()) };
        svg.add(&draw().map_err(CliError::new)?)
    }

    /// The machine, for programs.
    fn machine_json(&self) -> Value {
        let Machine { cpu, processors, kernel, governor, version, commit } = &self.machine;
        json!({
            "cpu": cpu,
            "processors": processors,
            "kernel": kernel,
            "governor": governor,
            "version": version,
            "commit": commit,
        })
    }
}
