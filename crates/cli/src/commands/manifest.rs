//! `f2fs manifest`.

use std::io::{IsTerminal, Write};
use std::path::Path;

use f2fs_workload::manifest::{Content, ManifestEntry, visit_volume, walk_host_limited};
use indicatif::ProgressBar;

use crate::error::{CliError, Failures, say};
use crate::image::{Access, open_to_list};
use crate::progress;
use crate::size::human;

pub(crate) fn run(image: &Path, access: Access, host: bool, max_hash: u64) -> Result<(), CliError> {
    let mut failures = Failures::default();
    let stdout = std::io::stdout().lock();
    let is_seen = stdout.is_terminal();
    // On a terminal each line is seen as it comes, and in front of a message that comes behind it.
    let mut out: Box<dyn Write> = if is_seen { Box::new(stdout) } else { Box::new(std::io::BufWriter::new(stdout)) };
    let mut unhashed = 0_u64;
    let mut print = |entry: &ManifestEntry| {
        unhashed += u64::from(entry.content == Content::Unhashed);
        writeln!(out, "{entry}")
    };
    if host {
        let manifest = walk_host_limited(image, max_hash).map_err(CliError::new)?;
        manifest.entries().iter().try_for_each(print)?;
    } else {
        let fs = open_to_list(image, access)?;
        // Lines on a terminal show the progress themselves.
        let bar =
            if is_seen { ProgressBar::hidden() } else { progress::bar("reading", Some(fs.statfs().valid_inodes)) };
        let each = |entry: ManifestEntry| {
            bar.inc(1);
            Ok(print(&entry)?)
        };
        let failed = |error| bar.suspend(|| failures.note(Err(CliError::at(image, &error))));
        let done = visit_volume(&fs, max_hash, each, failed);
        bar.finish_and_clear();
        done?;
    }
    out.flush()?;
    match unhashed {
        0 => {}
        1 => say(format_args!("1 file of more than {} was not hashed (--max-hash)", human(max_hash))),
        more => say(format_args!("{more} files of more than {} were not hashed (--max-hash)", human(max_hash))),
    }
    failures.result()
}
