//! `f2fs manifest`.

use std::io::Write;
use std::path::Path;

use f2fs_workload::manifest::{walk_host_limited, walk_volume_with};

use crate::error::{CliError, Context, Failures, say};
use crate::image::{Access, open_to_list};
use crate::progress;
use crate::size::human;

pub(crate) fn run(image: &Path, access: Access, host: bool, max_hash: u64) -> Result<(), CliError> {
    let mut failures = Failures::default();
    let manifest = if host {
        walk_host_limited(image, max_hash).map_err(CliError::new)?
    } else {
        let fs = open_to_list(image, access)?;
        let bar = progress::bar("reading", Some(fs.statfs().valid_inodes));
        let manifest = walk_volume_with(
            &fs,
            max_hash,
            |done| bar.set_position(done),
            |error| bar.suspend(|| failures.note(Err(CliError::at(image, &error)))).map_err(|_| error),
        )
        .about(image);
        bar.finish_and_clear();
        manifest?
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for entry in manifest.entries() {
        writeln!(out, "{entry}")?;
    }
    out.flush()?;
    match manifest.unhashed() {
        0 => {}
        1 => say(format_args!("1 file of more than {} was not hashed (--max-hash)", human(max_hash))),
        more => say(format_args!("{more} files of more than {} were not hashed (--max-hash)", human(max_hash))),
    }
    failures.result()
}
