//! `f2fs put` and `f2fs get`: the trees themselves are moved by `f2fs_workload::copy`.

use std::path::Path;

use f2fs::FileKind;
use f2fs_workload::copy::{CopyOptions, copy_in, copy_out};

use crate::error::{CliError, Context};
use crate::image::{Access, change, open};
use crate::progress;

pub(crate) fn put(image: &Path, host: &Path, path: &Path, recursive: bool) -> Result<(), CliError> {
    let options = CopyOptions { recursive };
    change(image, |fs| {
        // A file put onto a directory goes into it under its own name.
        let into = !host.is_dir() && fs.stat(path).is_ok_and(|stat| stat.kind == FileKind::Directory);
        let target = match host.file_name() {
            Some(name) if into => path.join(name),
            _ => path.to_path_buf(),
        };
        let bar = progress::bytes("copying", 0);
        let result = copy_in(fs, host, &target, &options, |progress| {
            bar.set_length(progress.total_bytes);
            bar.set_position(progress.bytes);
        });
        bar.finish_and_clear();
        result.map(|_| ()).map_err(CliError::new)
    })
}

pub(crate) fn get(image: &Path, access: Access, path: &Path, host: &Path, recursive: bool) -> Result<(), CliError> {
    let fs = open(image, access)?;
    let stat = fs.symlink_stat(path).about(path)?;
    let target = match path.file_name() {
        Some(name) if host.is_dir() && stat.kind != FileKind::Directory => host.join(name),
        _ => host.to_path_buf(),
    };
    let bar = progress::bytes("copying", 0);
    let result = copy_out(&fs, path, &target, &CopyOptions { recursive }, |progress| {
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.bytes);
    });
    bar.finish_and_clear();
    let unread = result.map_err(CliError::new)?.unread;
    if unread > 0 {
        let what = "files were left out: their data is encrypted, compressed or on another device";
        return Err(CliError::at(path, format_args!("{unread} {what}")));
    }
    Ok(())
}
