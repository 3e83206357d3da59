//! `f2fs bench varmail`.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use f2fs::{FileSystem, FlusherOptions, FormatOptions, JournalMode, JournalOptions, Options, create_journal};
use f2fs_device_test::SsdModel;
use f2fs_workload::report::{Bar, BarChart};
use f2fs_workload::varmail::{self, Directory, Mails, Measured, Model, Place};
use serde_json::{Value, json};

use super::{Output, Target};
use crate::args::bench::{TargetArgs, VarmailArgs};
use crate::args::journal::Mode;
use crate::error::{CliError, Context};
use crate::image::Access;
use crate::medium;
use crate::progress;

/// The page cache of the models if none is asked for: the paper's machine had the kernel's.
const MODELS_CACHE: u64 = 1 << 30;

const COLUMNS: &str =
    "mode,journal,threads,operations,syncs,seconds,operations_per_second,mb_per_second,sync_us,checkpoints";

/// One line of the results.
struct Row {
    mode: &'static str,
    journal: String,
    threads: usize,
    measured: Measured,
    /// Times the rate of the same mode with the journal on an SSD.
    ratio: Option<f64>,
}

impl Row {
    fn csv(&self) -> String {
        let Row { mode, journal, threads, measured, .. } = self;
        format!(
            "{mode},{journal},{threads},{},{},{:.6},{:.1},{:.3},{:.3},{}",
            measured.work.operations,
            measured.work.syncs,
            measured.time.as_secs_f64(),
            measured.rate(),
            measured.bandwidth(),
            measured.sync.as_secs_f64() * 1e6,
            measured.checkpoints
        )
    }

    fn json(&self) -> Value {
        let Row { mode, journal, threads, measured, ratio } = self;
        json!({
            "mode": mode, "journal": journal, "threads": threads, "operations": measured.work.operations,
            "syncs": measured.work.syncs, "seconds": measured.time.as_secs_f64(), "operations_per_second": measured.rate(),
            "mb_per_second": measured.bandwidth(), "sync_us": measured.sync.as_secs_f64() * 1e6,
            "checkpoints": measured.checkpoints, "ratio_to_ssd": ratio,
        })
    }
}

pub(crate) fn run(args: &VarmailArgs, begun: &AtomicBool) -> Result<(), CliError> {
    if args.directory.is_some() && medium::journal_path().is_some() {
        return Err(CliError::usage("the file system of --directory takes no --journal"));
    }
    // Before the image loses its content, or is made.
    let journal = match &args.image {
        Some(image) => medium::journal(image, Access::Write)?,
        None => None,
    };
    let model = Model {
        threads: usize::from(args.threads),
        rounds: args.rounds,
        page_cache: medium::page_cache_or(MODELS_CACHE),
        ssd: SsdModel {
            flush: Duration::from_micros(args.flush_us),
            reads_are_cached: args.cached_reads,
            ..Model::default().ssd
        },
        ..Model::default()
    };
    let described = match (&args.image, &args.directory) {
        (Some(_), _) => Target::new(&target(args))?.describe()?,
        (None, Some(directory)) => directory.display().to_string(),
        (None, None) => {
            let reads = if args.cached_reads { "; reads come from a cache" } else { "" };
            let cache = match model.page_cache {
                0 => String::new(),
                bytes => format!("; a page cache of {} MiB", bytes >> 20),
            };
            format!("models in virtual time, a flush of the SSD takes {} us{reads}{cache}", args.flush_us)
        }
    };
    let mut output = Output::new(&args.output, &[("device", &*described)], COLUMNS, begun)?;
    let rows = match (&args.image, &args.directory) {
        (Some(_), _) => vec![on_devices(args, journal)?],
        (None, Some(directory)) => vec![in_directory(args, directory)?],
        (None, None) => on_models(&model)?,
    };
    for row in &rows {
        output.line(&row.csv())?;
    }
    output.picture(|| chart(args, &described, &rows).svg())?;
    let mut out = std::io::stdout().lock();
    if args.output.json {
        let rows: Vec<Value> = rows.iter().map(Row::json).collect();
        let value = json!({ "machine": output.machine_json(), "device": described, "measurements": rows });
        writeln!(out, "{value:#}")?;
    } else {
        writeln!(out, "{}", output.machine)?;
        writeln!(out, "{described}; {} threads", args.threads)?;
        writeln!(out, "{}", table(&rows))?;
    }
    Ok(())
}

fn target(args: &VarmailArgs) -> TargetArgs {
    TargetArgs { image: args.image.clone(), size: args.size, force: args.force, memory: crate::size::Size(0) }
}

/// The paper's experiment, and the volume's own log beside it.
fn on_models(model: &Model) -> Result<Vec<Row>, CliError> {
    let all = [
        (Mode::Ordered, Place::None),
        (Mode::Ordered, Place::Ssd),
        (Mode::Ordered, Place::Nvdimm),
        (Mode::Journal, Place::Ssd),
        (Mode::Journal, Place::Nvdimm),
    ];
    let bar = progress::bar("", Some(all.len() as u64));
    let mut rows: Vec<Row> = Vec::new();
    for (mode, place) in all {
        let measured = varmail::model(model, place, JournalMode::from(mode))
            .map_err(|error| CliError::new(format_args!("{}, journal {}: {error}", mode.name(), place.name())))?;
        let mode = if place == Place::None { "log" } else { mode.name() };
        let ssd = rows.iter().find(|row| row.mode == mode && row.journal == Place::Ssd.name());
        let ratio = ssd.map(|ssd| measured.rate() / ssd.measured.rate());
        rows.push(Row { mode, journal: place.name().to_owned(), threads: model.threads, measured, ratio });
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(rows)
}

fn on_devices(args: &VarmailArgs, journal: Option<JournalOptions>) -> Result<Row, CliError> {
    let device = Target::new(&target(args))?.open()?;
    let mut format = FormatOptions::default();
    format.force = args.force;
    FileSystem::format(&*device, &format).map_err(CliError::new)?;
    let mut options = Options::new().page_cache(medium::page_cache());
    let mode = journal.as_ref().map(|journal| journal.mode);
    if let Some(journal) = journal {
        create_journal(Arc::clone(&device), journal.medium.clone(), args.force).map_err(CliError::new)?;
        options = options.journal(journal);
    }
    let fs = FileSystem::open(device, options).map_err(CliError::new)?;
    // As a mounted volume has one.
    let flusher = fs.start_flusher(FlusherOptions::default()).map_err(CliError::new)?;
    let (threads, measured) = measure(args, &fs)?;
    drop(flusher);
    fs.close().map_err(CliError::new)?;
    let mode = match mode {
        None => "log",
        Some(JournalMode::Writeback) => "writeback",
        Some(JournalMode::Journal) => "journal",
        Some(_) => "ordered",
    };
    let journal = medium::journal_path().map_or_else(|| "none".to_owned(), |path| path.display().to_string());
    Ok(Row { mode, journal, threads, measured, ratio: None })
}

fn in_directory(args: &VarmailArgs, directory: &Path) -> Result<Row, CliError> {
    let mails = Directory::new(directory);
    let (threads, measured) = measure(args, &mails)?;
    mails.remove_all().about(directory)?;
    Ok(Row { mode: "directory", journal: "of its own".to_owned(), threads, measured, ratio: None })
}

fn measure<M: Mails<Error: Display>>(args: &VarmailArgs, mails: &M) -> Result<(usize, Measured), CliError> {
    let names = varmail::prepare(mails, 1).map_err(CliError::new)?;
    let bar = progress::bar("", Some(1));
    let threads = usize::from(args.threads);
    let time = Duration::from_secs(args.seconds);
    let measured = varmail::measure(mails, &names, threads, time).map_err(CliError::new)?;
    bar.finish_and_clear();
    Ok((threads, measured))
}

fn chart(args: &VarmailArgs, described: &str, rows: &[Row]) -> BarChart {
    let mut chart = BarChart::new(format!("Varmail, {} threads, {described}", args.threads), "operations/s");
    for row in rows {
        let name = format!("{}, journal {}", row.mode, row.journal);
        chart.bar(Bar { name, value: row.measured.rate(), mark: None });
    }
    chart
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["mode", "journal", "operations/s", "MB/s", "mean sync us", "checkpoints", "x SSD"]);
    for row in rows {
        table.add_row([
            row.mode.to_owned(),
            row.journal.clone(),
            format!("{:.0}", row.measured.rate()),
            format!("{:.1}", row.measured.bandwidth()),
            format!("{:.1}", row.measured.sync.as_secs_f64() * 1e6),
            row.measured.checkpoints.to_string(),
            row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
