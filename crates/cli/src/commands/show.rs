//! `f2fs cat` and `f2fs stat`.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use f2fs::FileSystem;
use f2fs_workload::copy::{CopyError, write_to};
use f2fs_workload::shell::Quoted;

use crate::commands::attributes::{Attributes, date, describe, form, mode_text};
use crate::error::{CliError, Context, Failures};
use crate::image::{Access, open, open_to_copy};

pub(crate) fn cat(image: &Path, access: Access, path: &Path) -> Result<(), CliError> {
    print(&open_to_copy(image, access)?, path)
}

/// Writes a file of the volume to standard output.
pub(crate) fn print(fs: &FileSystem, path: &Path) -> Result<(), CliError> {
    let file = fs.open_file(path).about(path)?;
    let out = std::fs::File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let name = Path::new("standard output");
    match write_to(&file, path, &out, name) {
        Ok(_) => Ok(()),
        Err(CopyError::Host { path, source, .. }) if path == name => Err(source.into()),
        Err(error) => Err(CliError::new(error)),
    }
}

pub(crate) fn stat(image: &Path, access: Access, paths: &[PathBuf], as_json: bool) -> Result<(), CliError> {
    let fs = open(image, access)?;
    let mut out = std::io::stdout().lock();
    let mut failures = Failures::default();
    for (index, path) in paths.iter().enumerate() {
        if index > 0 && !as_json {
            writeln!(out)?;
        }
        failures.note(show(&fs, path, as_json, &mut out))?;
    }
    failures.result()
}

fn show(fs: &FileSystem, path: &PathBuf, as_json: bool, out: &mut impl Write) -> Result<(), CliError> {
    let found = Attributes::at(fs, path)?;
    if as_json {
        writeln!(out, "{}", describe(path, &found))?;
        return Ok(());
    }
    let Attributes { stat, target } = found;
    writeln!(out, "path:     {}", Quoted::path(path))?;
    writeln!(out, "inode:    {} ({})", stat.ino, stat.kind.name())?;
    writeln!(out, "mode:     {} ({:04o})", mode_text(&stat), stat.permissions)?;
    writeln!(out, "owner:    {}:{}", stat.uid, stat.gid)?;
    writeln!(out, "links:    {}", stat.links)?;
    writeln!(
        out,
        "size:     {} bytes in {} blocks{}",
        stat.size,
        stat.blocks,
        if stat.inline { ", inline" } else { "" }
    )?;
    let form = form(&stat);
    if !form.is_empty() {
        writeln!(out, "form:     {}", form.join(", "))?;
    }
    if let Some(target) = target {
        writeln!(out, "target:   {}", Quoted(&target))?;
    }
    if let Some(device) = stat.device {
        writeln!(out, "device:   {}:{}", device.major, device.minor)?;
    }
    for (name, time) in [("accessed", stat.accessed), ("modified", stat.modified), ("changed", stat.changed)] {
        writeln!(out, "{:9} {} UTC", format!("{name}:"), date(time.seconds))?;
    }
    if let Some(created) = stat.created {
        writeln!(out, "created:  {} UTC", date(created.seconds))?;
    }
    for (name, value) in fs.xattrs(path).about(path)? {
        writeln!(out, "xattr:    {} ({} bytes)", Quoted(&name), value.len())?;
    }
    Ok(())
}
