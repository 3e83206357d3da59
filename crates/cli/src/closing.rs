//! Waiting for the server of a mount that was just unmounted.
//!
//! `umount` of the system returns when the kernel has let go of the mount. Its server writes the last checkpoint after
//! that, with the image locked. What opens the image next waits for it, so that `umount DIR` and `f2fs mount IMAGE DIR`
//! can follow each other, as with the kernel's file systems.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use f2fs::uring::OpenError;
use f2fs_workload::shell::Quoted;

use crate::error::{CliError, say};
use crate::mounts;

/// How long a server may take to close its volume.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take until it says that it does.
const GRACE: Duration = Duration::from_secs(5);
/// The name of a process that closes a volume.
const CLOSING: &[u8] = b"f2fs-closing";
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(10);
/// Whoever waits longer is told why.
const SOON: Duration = Duration::from_secs(1);

/// Opens an image, once the server of a mount that is there no more has closed it. Whoever else has it open is an error
/// at once.
///
/// # Errors
///
/// Those of `open`.
pub(crate) fn once_closed<T>(image: &Path, mut open: impl FnMut() -> Result<T, OpenError>) -> Result<T, OpenError> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        let opened = open();
        match &opened {
            Err(OpenError::AlreadyOpen { holder: Some(holder), .. })
                if begun.elapsed() < if is_closing(holder.pid) { PATIENCE } else { GRACE }
                    // A process that ends has no command line any more, and the image until a moment later.
                    && (is_closing(holder.pid) || serves(holder.pid))
                    && !mounts::has(image) =>
            {
                if !told && begun.elapsed() > SOON {
                    say(waiting(holder.pid, is_closing(holder.pid), image));
                    told = true;
                }
            }
            _ => return opened,
        }
        thread::sleep(PAUSE);
    }
}

/// What is waited for: a process that closes an image, or one that perhaps begins to.
fn waiting(pid: u32, closes: bool, image: &Path) -> String {
    let image = Quoted::path(image);
    match closes {
        true => format!("waiting for process {pid}, which closes {image}"),
        false => format!("waiting a moment for process {pid}, which has {image} open"),
    }
}

/// Who has an image open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Nobody who keeps a reader out, as far as this process may know.
    Nobody,
    /// A process, if it can be known which.
    Somebody(Option<u32>),
}

/// Who has an image open for writing.
pub(crate) fn in_use(image: &Path) -> Use {
    let how = f2fs::uring::OpenOptions::new().read_only(true).patience(Duration::ZERO);
    match f2fs::uring::open(image, how) {
        Err(OpenError::AlreadyOpen { holder, .. }) => Use::Somebody(holder.map(|holder| holder.pid)),
        _ => Use::Nobody,
    }
}

/// Waits until the server of a mount that was taken away has closed its volume, and says so if it takes long.
///
/// # Errors
///
/// If it does not begin to: the volume is mounted in another place too, or the server still works.
pub(crate) fn until_closed(image: &Path, server: Use) -> Result<(), CliError> {
    let begun = Instant::now();
    let mut told = false;
    while server != Use::Nobody && in_use(image) == server {
        let (closing, grace) = match server {
            Use::Somebody(Some(pid)) => (is_closing(pid), GRACE),
            // Whoever cannot be seen cannot say so.
            _ => (false, PATIENCE),
        };
        if !closing && mounts::has(image) {
            let what = "is still in use: it is mounted in another place, too, and is closed when the last of them goes";
            return Err(CliError::at(image, what));
        }
        if !closing && begun.elapsed() > grace {
            let what = "is still in use, and is closed when that ends: it is mounted in another namespace of mounts, too, or its \
                        server has not ended what was begun, such as the removal of a large file";
            return Err(CliError::at(image, what));
        }
        if !told && begun.elapsed() > SOON {
            say(format_args!("waiting until {} is closed", Quoted::path(image)));
            told = true;
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Lets others know that this process, the server of a mount, closes its volume.
pub(crate) fn announce() {
    // Without it others wait less long, and no more.
    let _ = fs::write("/proc/self/comm", CLOSING);
}

fn is_closing(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_ascii() == CLOSING)
}

/// The process that has an image open for writing, if it is stopped, as by `kill -STOP` or a debugger: it answers nobody.
pub(crate) fn stopped(image: &Path) -> Option<u32> {
    let Use::Somebody(Some(pid)) = in_use(image) else { return None };
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may hold anything.
    let state = stat.rsplit_once(") ")?.1;
    state.starts_with(['T', 't']).then_some(pid)
}

/// Whether a process is the server of a mount, or was a moment ago.
fn serves(pid: u32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = words.split(|byte| *byte == 0);
    words.skip(1).any(|word| word == b"mount")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_says_that_it_closes_a_volume() {
        assert!(!is_closing(std::process::id()));
        announce();
        assert!(is_closing(std::process::id()));
    }

    #[test]
    fn only_a_process_that_closes_is_said_to() {
        let image = Path::new("a.img");
        assert_eq!(waiting(7, true, image), "waiting for process 7, which closes a.img");
        assert_eq!(waiting(7, false, image), "waiting a moment for process 7, which has a.img open");
    }

    #[test]
    fn a_process_without_a_mount_is_not_waited_for() {
        assert!(!serves(std::process::id()));
        assert!(!serves(0));
    }
}
