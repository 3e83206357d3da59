//! `f2fs manifest`.

use std::io::Write;
use std::path::Path;

use f2fs_workload::manifest::{walk_host, walk_volume};

use crate::error::{CliError, Context};
use crate::image::{Access, open};
use crate::progress;

pub(crate) fn run(image: &Path, access: Access, host: bool) -> Result<(), CliError> {
    let manifest = if host {
        walk_host(image).map_err(CliError::new)?
    } else {
        let fs = open(image, access)?;
        let bar = progress::bar("reading", Some(fs.statfs().valid_inodes));
        let manifest = walk_volume(&fs, |done| bar.set_position(done)).about(image)?;
        bar.finish_and_clear();
        manifest
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for entry in manifest.entries() {
        writeln!(out, "{entry}")?;
    }
    out.flush()?;
    Ok(())
}
