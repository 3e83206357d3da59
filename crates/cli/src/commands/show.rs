//! `f2fs cat` and `f2fs stat`.

use std::io::Write;
use std::path::Path;

use crate::commands::list::{date, describe, form, mode_text};
use crate::error::{CliError, Context};
use crate::escape::Printable;
use crate::image::{Access, open};

/// Bytes read at a time.
const CHUNK: usize = 4 << 20;

pub(crate) fn cat(image: &Path, access: Access, path: &Path) -> Result<(), CliError> {
    let fs = open(image, access)?;
    let file = fs.open_file(path).about(path)?;
    let mut out = std::io::stdout().lock();
    let mut buffer = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        let len = file.read_at(offset, &mut buffer).about(path)?;
        if len == 0 {
            out.flush()?;
            return Ok(());
        }
        out.write_all(&buffer[..len])?;
        offset += len as u64;
    }
}

pub(crate) fn stat(image: &Path, access: Access, path: &Path, as_json: bool) -> Result<(), CliError> {
    let fs = open(image, access)?;
    let stat = fs.symlink_stat(path).about(path)?;
    let mut out = std::io::stdout().lock();
    if as_json {
        let value = describe(&fs, &path.to_path_buf(), &stat)?;
        writeln!(out, "{value:#}")?;
        return Ok(());
    }
    writeln!(out, "path:     {}", Printable(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())))?;
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
    if let Some(device) = stat.device {
        writeln!(out, "device:   {}:{}", device.major, device.minor)?;
    }
    for (name, time) in [("accessed", stat.accessed), ("modified", stat.modified), ("changed", stat.changed)] {
        writeln!(out, "{name}: {} UTC", date(time.seconds))?;
    }
    if let Some(created) = stat.created {
        writeln!(out, "created:  {} UTC", date(created.seconds))?;
    }
    for (name, value) in fs.xattrs(path).about(path)? {
        writeln!(out, "xattr:    {} ({} bytes)", Printable(&name), value.len())?;
    }
    Ok(())
}
