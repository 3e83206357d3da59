//! The commands, one file each.

mod attributes;
mod bench;
mod calibrate;
mod check;
mod completions;
mod copy;
mod format;
mod inspect;
mod journal;
mod list;
mod manifest;
mod mount;
mod names;
mod repair;
mod results;
mod show;
mod trim;
mod ublk;
mod umount;
mod zones;

use std::process::ExitCode;

use f2fs_workload::copy::CopyOptions;

use crate::args::bench::BenchCommand;
use crate::args::{Arguments, Command};
use crate::error::CliError;
use crate::medium;
use crate::memory_limit::memory;
use crate::size::human;

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CliError> {
    let page_cache = arguments.page_cache.map(|limit| limit.0);
    expect_memory_for(page_cache.unwrap_or(0))?;
    medium::choose(arguments.pmem, &arguments.devices, &arguments.journal, page_cache);
    if medium::journal_path().is_some() && !takes_a_journal(&arguments.command) {
        return Err(CliError::usage("this command syncs no files: it takes no --journal"));
    }
    match &arguments.command {
        Command::Format(args) => format::run(args, &arguments.devices)?,
        Command::Inspect { image, holes, json } => inspect::run(image, *holes, *json)?,
        Command::Check(args) => return check::run(args),
        Command::Trim { image, json } => trim::run(image, *json)?,
        Command::Calibrate(args) => calibrate::run(args)?,
        Command::Ls(args) => list::run(args)?,
        Command::Cat { view, image, path } => show::cat(image, (*view).into(), path)?,
        Command::Stat { view, json, image, paths } => show::stat(image, (*view).into(), paths, *json)?,
        Command::Manifest { view, host, max_hash, image } => manifest::run(image, (*view).into(), *host, max_hash.0)?,
        Command::Put { recursive, jobs, image, paths } => {
            let volume_files = medium::volume_files(image);
            let options = CopyOptions { recursive: *recursive, jobs: *jobs, skip_special: false, volume_files };
            copy::put(image, paths, &options)?;
        }
        Command::Get { view, recursive, jobs, skip_special, image, paths } => {
            let volume_files = medium::volume_files(image);
            let options = CopyOptions { recursive: *recursive, jobs: *jobs, skip_special: *skip_special, volume_files };
            copy::get(image, (*view).into(), paths, &options)?;
        }
        Command::Mkdir { parents, image, paths } => names::mkdir(image, paths, *parents)?,
        Command::Rm { recursive, force, image, paths } => names::rm(image, paths, *recursive, *force)?,
        Command::Mv { no_clobber, exchange, image, from, to } => names::mv(image, from, to, *no_clobber, *exchange)?,
        Command::Mount(args) => return mount::mount(args, arguments),
        Command::Umount { dir } => umount::run(dir)?,
        Command::Bench(command) => bench::run(command)?,
        Command::Ln { symbolic, image, target, path } => names::ln(image, target, path, *symbolic)?,
        Command::Ublk(command) => ublk::run(command)?,
        Command::Journal(command) => journal::run(command)?,
        Command::Zones(args) => zones::run(args)?,
        Command::Completions { shell } => completions::run(*shell)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A page cache that the memory cannot hold would end with the process being killed, with what was not written.
fn expect_memory_for(page_cache: u64) -> Result<(), CliError> {
    let memory = memory();
    if page_cache <= memory {
        return Ok(());
    }
    let (wanted, memory) = (human(page_cache), human(memory));
    Err(CliError::usage(format_args!("--page-cache: {wanted} is more than the memory of this machine, {memory}")))
}

/// Whether `--journal` means something to a command. Elsewhere it is an error: who gives it expects that it is used.
fn takes_a_journal(command: &Command) -> bool {
    match command {
        Command::Check(_)
        | Command::Ls(_)
        | Command::Cat { .. }
        | Command::Stat { .. }
        | Command::Manifest { .. }
        | Command::Put { .. }
        | Command::Get { .. }
        | Command::Mkdir { .. }
        | Command::Rm { .. }
        | Command::Mv { .. }
        | Command::Ln { .. }
        | Command::Trim { .. }
        | Command::Mount(_)
        | Command::Bench(BenchCommand::Fxmark(_) | BenchCommand::Varmail(_)) => true,
        Command::Format(_)
        | Command::Inspect { .. }
        | Command::Calibrate(_)
        | Command::Umount { .. }
        | Command::Bench(BenchCommand::Read(_))
        | Command::Ublk(_)
        | Command::Journal(_)
        | Command::Zones(_)
        | Command::Completions { .. } => false,
    }
}
