//! `guest-agent replay`: what a log of writes comes to.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::Context;
use f2fs_device_test::{CrashLog, Event};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The log, as `f2fs ublk add --record` writes it.
    log: PathBuf,
    /// Blocks of the device, all zeros at the beginning.
    #[arg(long)]
    blocks: u64,
    /// Where the image goes.
    image: PathBuf,
}

/// Replays a log in which everything survives, and prints how many entries there are.
///
/// # Errors
///
/// If the log is invalid, or the image cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let file = File::open(&args.log).with_context(|| format!("{}", args.log.display()))?;
    let log = CrashLog::from_write_log(BufReader::new(file), args.blocks)?;
    let flushes = log.events().iter().filter(|event| matches!(event, Event::Flush)).count();
    println!("{} entries, {flushes} flushes", log.events().len());
    log.image_at(log.events().len(), |_, _| true).save(&args.image)?;
    Ok(())
}
