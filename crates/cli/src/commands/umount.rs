//! `f2fs umount`.

use std::env;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use f2fs_workload::shell::Quoted;

use crate::closing;
use crate::error::{CliError, say};
use crate::mounts::{self, Mount};

/// Unmounts, and waits until the volume below is closed.
pub(crate) fn run(dir: &Path) -> Result<(), CliError> {
    let shown = env::current_dir().unwrap_or_default().join(dir);
    let Some(Mount { image, read_only }) = mounts::on(&shown) else {
        return Err(CliError::at(&shown, "no volume is mounted there by f2fs"));
    };
    let asked = shown.clone();
    let ((past, synced), has_ended) = unless_stopped(&image, &shown, move || {
        let synced = if read_only { (None, Ok(())) } else { sync(&asked) };
        (synced, server_has_ended(&asked))
    })?;
    let (program, flag) = if rustix::process::geteuid().is_root() { ("umount", "-i") } else { ("fusermount3", "-u") };
    if let Some(error) = past.filter(|error| !is_without_server(error)) {
        let shown = Quoted::path(&shown);
        say(format_args!("{shown}: a write failed since it was mounted, and what it wrote may be missing: {error}"));
    }
    let dead = has_ended || synced.as_ref().is_err_and(is_without_server);
    if let Err(error) = synced
        && !dead
    {
        let what =
            format!("what was changed cannot be written, so it stays mounted: {error}. `{program} {flag}` gives it up");
        return Err(CliError::at(&shown, what));
    }
    let server = closing::in_use(&image);
    let mut unmount = Command::new(program);
    unmount.arg(flag);
    if dead {
        // Files that are open there are in nobody's way any more: whoever has them gets errors already.
        unmount.arg(if program == "umount" { "-l" } else { "-z" });
    }
    let status = unmount.arg("--").arg(&shown).status();
    match status {
        Ok(status) if status.success() && dead => {
            let image = Quoted::path(&image);
            say(format_args!(
                "its server had ended before: {image} holds what was synced; of the rest something may be missing"
            ));
        }
        Ok(status) if status.success() => {}
        Ok(_) => return Err(CliError::said()),
        Err(error) => return Err(CliError::new(format_args!("{program}: {error}"))),
    }
    closing::until_closed(&image, server)
}

/// Asks the server of a mount on a thread of its own, since it may be stopped at any moment: then nobody waits for the
/// answer.
fn unless_stopped<T: Send + 'static>(
    image: &Path,
    shown: &Path,
    ask: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CliError> {
    /// The longest time between two looks at the server.
    const LONG: Duration = Duration::from_millis(100);
    let stops = || match closing::stopped(image) {
        None => Ok(()),
        Some(server) => {
            let what = format!(
                "its server is stopped, and answers when process {server} goes on (`kill -CONT {server}`); `umount -l` \
                 takes the mount away meanwhile"
            );
            Err(CliError::at(shown, what))
        }
    };
    stops()?;
    let asks = thread::Builder::new().spawn(ask);
    let asks = asks.map_err(|error| CliError::new(format_args!("cannot start a thread: {error}")))?;
    let mut pause = Duration::from_millis(1);
    while !asks.is_finished() {
        thread::sleep(pause);
        pause = (pause * 2).min(LONG);
        if pause == LONG {
            stops()?;
        }
    }
    Ok(asks.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Whether a mount is there that nobody serves any more.
fn server_has_ended(dir: &Path) -> bool {
    dir.metadata().is_err_and(|error| is_without_server(&error))
}

pub(super) fn is_without_server(error: &io::Error) -> bool {
    use rustix::io::Errno;
    // The others are answers to a request that was on its way when the server ended, the last one in a ring.
    error
        .raw_os_error()
        .map(Errno::from_raw_os_error)
        .is_some_and(|error| matches!(error, Errno::NOTCONN | Errno::CONNABORTED | Errno::CANCELED))
}

/// Makes everything durable that was changed. Nobody hears of it if the server cannot do so when it closes the volume.
///
/// The first that it returns is an error that the kernel kept, of a write in the past or of this: it tells each once,
/// whoever was told before, and has given up what could not be written then.
fn sync(dir: &Path) -> (Option<io::Error>, io::Result<()>) {
    let dir = match File::open(dir) {
        Ok(dir) => dir,
        // The server was killed, and the next one recovers. The kernel may know the attributes still.
        Err(error) if is_without_server(&error) => return (None, Err(error)),
        // Another user mounted it.
        Err(_) => return (None, Ok(())),
    };
    let past = rustix::fs::syncfs(&dir).err();
    let now = if past.is_some() { rustix::fs::syncfs(&dir) } else { Ok(()) };
    let synced = now.map_err(io::Error::from).and_then(|()| dir.sync_all());
    (past.map(io::Error::from), synced)
}
