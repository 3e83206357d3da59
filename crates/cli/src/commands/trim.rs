//! `f2fs trim`.

use std::io::Write;
use std::path::Path;

use f2fs::device::BLOCK_SIZE;
use f2fs_workload::shell::Quoted;
use serde_json::json;

use super::check::examine;
use crate::error::{CliError, Context};
use crate::image::change;
use crate::progress;
use crate::size::human;

pub(crate) fn run(image: &Path, as_json: bool) -> Result<(), CliError> {
    // What the tables do not know of looks free, and a repair may bring it back.
    let found = examine(image)?;
    if !found.is_consistent() {
        let what = "is damaged, and what a repair brings back would be given away: `f2fs check` says what is wrong";
        return Err(CliError::at(image, what));
    }
    let mut bytes = 0;
    change(image, |fs| {
        let bar = progress::bar("segments", Some(0));
        let trimmed = fs.trim(|done, all| {
            bar.set_length(all.into());
            bar.set_position(done.into());
        });
        bar.finish_and_clear();
        bytes = trimmed.about(image)? * BLOCK_SIZE as u64;
        Ok(())
    })?;
    let mut out = std::io::stdout().lock();
    if as_json {
        writeln!(out, "{:#}", json!({ "bytes": bytes }))?;
    } else {
        writeln!(out, "{}: {} of free segments given back", Quoted::path(image), human(bytes))?;
    }
    Ok(())
}
