//! The commands, one file each.

mod bench;
mod calibrate;
mod check;
mod copy;
mod format;
mod inspect;
mod list;
mod manifest;
mod names;
mod repair;
mod show;

use std::process::ExitCode;

use f2fs_workload::copy::CopyOptions;

use crate::args::{Arguments, Command};
use crate::error::CliError;

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CliError> {
    match &arguments.command {
        Command::Format(args) => format::run(args)?,
        Command::Inspect { image, holes, json } => inspect::run(image, *holes, *json)?,
        Command::Check(args) => return Ok(check::run(args)),
        Command::Calibrate(args) => calibrate::run(args)?,
        Command::Ls { view, long, recursive, json, image, path } => {
            list::run(image, (*view).into(), path, &list::Style { long: *long, recursive: *recursive, json: *json })?;
        }
        Command::Cat { view, image, path } => show::cat(image, (*view).into(), path)?,
        Command::Stat { view, json, image, path } => show::stat(image, (*view).into(), path, *json)?,
        Command::Manifest { view, host, image } => manifest::run(image, (*view).into(), *host)?,
        Command::Put { recursive, jobs, image, paths } => {
            let options = CopyOptions { recursive: *recursive, jobs: *jobs, ..CopyOptions::default() };
            copy::put(image, paths, &options)?;
        }
        Command::Get { view, recursive, jobs, skip_special, image, paths } => {
            let options = CopyOptions { recursive: *recursive, jobs: *jobs, skip_special: *skip_special };
            copy::get(image, (*view).into(), paths, &options)?;
        }
        Command::Mkdir { parents, image, paths } => names::mkdir(image, paths, *parents)?,
        Command::Rm { recursive, image, paths } => names::rm(image, paths, *recursive)?,
        Command::Mv { no_clobber, exchange, image, from, to } => names::mv(image, from, to, *no_clobber, *exchange)?,
        Command::Bench(command) => bench::run(command)?,
        Command::Ln { symbolic, image, target, path } => names::ln(image, target, path, *symbolic)?,
    }
    Ok(ExitCode::SUCCESS)
}
