//! `f2fs umount`.

use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use f2fs_workload::shell::Quoted;

use crate::error::{CliError, Context, say};

/// Unmounts, and waits until the volume below is closed.
pub(crate) fn run(dir: &Path) -> Result<(), CliError> {
    let shown = env::current_dir().unwrap_or_default().join(dir);
    let Some(Source { image, read_only }) = source(&shown) else {
        return Err(CliError::at(&shown, "no volume is mounted there by f2fs"));
    };
    let how = if rustix::process::geteuid().is_root() { ["umount", "-i"] } else { ["fusermount3", "-u"] };
    if !read_only && let Err(error) = sync(&shown) {
        let how = how.join(" ");
        let what =
            format_args!("what was changed cannot be written, so it stays mounted: {error}. `{how}` gives it up");
        return Err(CliError::at(&shown, what));
    }
    let dead = server_has_ended(&shown);
    let status = Command::new(how[0]).args([how[1], "--"]).arg(&shown).status();
    match status {
        Ok(status) if status.success() && dead => {
            let image = Quoted::path(&image);
            say(format_args!("its server had ended before: {image} was not closed, and holds what was synced"));
        }
        Ok(status) if status.success() => {}
        Ok(_) => return Err(CliError::said()),
        Err(error) => return Err(CliError::new(format_args!("{}: {error}", how[0]))),
    }
    // The server has the image locked until it has closed the volume.
    if image.is_file() {
        let locked = File::open(&image).about(&image)?;
        if let Err(error) = rustix::fs::flock(&locked, rustix::fs::FlockOperation::LockExclusive) {
            say(format_args!("cannot wait for the end of the mount: {error}"));
        }
    }
    Ok(())
}

/// Whether a mount is there that nobody serves any more.
fn server_has_ended(dir: &Path) -> bool {
    dir.metadata().is_err_and(|error| is_without_server(&error))
}

pub(super) fn is_without_server(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOTCONN.raw_os_error())
}

/// Makes everything durable that was changed. Nobody hears of it if the server cannot do so when it closes the volume.
fn sync(dir: &Path) -> io::Result<()> {
    // Otherwise the server was killed, and the next one recovers; or another user mounted it.
    let Ok(dir) = File::open(dir) else { return Ok(()) };
    rustix::fs::syncfs(&dir)?;
    dir.sync_all()
}

/// What is mounted.
struct Source {
    image: PathBuf,
    read_only: bool,
}

/// Whether an image is the source of a mount that is there.
pub(crate) fn is_source(image: &Path) -> bool {
    let Ok(mounts) = std::fs::read_to_string("/proc/self/mounts") else { return false };
    let image = image.canonicalize().unwrap_or_else(|_| image.to_owned());
    mounts.lines().any(|line| image_of(line).is_some_and(|source| source == image))
}

/// The image of a line of the list of mounts.
fn image_of(line: &str) -> Option<PathBuf> {
    Some(line.split(' ').next()?.replace("\\040", " ").replace("\\134", "\\").into())
}

/// The image that is mounted on a directory.
fn source(dir: &Path) -> Option<Source> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    // A mount whose server has ended cannot be looked at; the directory above it can.
    let dir = dir.canonicalize().or_else(|error| match (dir.parent(), dir.file_name()) {
        (Some(above), Some(name)) => above.canonicalize().map(|above| above.join(name)),
        _ => Err(error),
    });
    let dir = dir.ok()?.to_string_lossy().replace('\\', "\\134").replace(' ', "\\040");
    let line = mounts.lines().rev().find(|line| {
        let mut fields = line.split(' ').skip(1);
        fields.next() == Some(dir.as_str()) && fields.next().is_some_and(|kind| matches!(kind, "fuse" | "fuse.f2fs"))
    })?;
    let read_only = line.split(' ').nth(3)?.split(',').any(|option| option == "ro");
    Some(Source { image: image_of(line)?, read_only })
}
