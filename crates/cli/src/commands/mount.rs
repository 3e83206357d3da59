//! `f2fs mount`.
//!
//! In the background the mount is served by a process of its own: this command, started again with `--told`. It opens
//! the image itself, so that the lock of the image names it; when it is mounted it says so on its standard output, and
//! leaves the terminal.
//!
//! ```text
//!   f2fs mount ──spawns──► f2fs mount --told
//!       │  ◄──── "mounted" ─────┤ opened, mounted
//!   exit 0                      serves ── unmounted, or SIGTERM ──► last checkpoint, exit 0
//! ```

use std::env;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use f2fs::volume::VolumeOptions;
use f2fs::{FileSystem, FlusherOptions, Time};
use f2fs_fuse::{Cache, Mount, Unmounter};

use super::umount::is_without_server;
use crate::args::Arguments;
use crate::args::mount::{Asked, MountArgs, options};
use crate::error::{CliError, Context};
use crate::image::{Access, open_to_mount};
use crate::interrupt::{listen, until_stopped};
use crate::memory_limit::{memory_limit, sized};
use crate::{closing, medium, system_log};

/// The message of the process in the background.
const MOUNTED: &[u8] = b"mounted\n";
/// Options that the kernel minds, and changes while the volume is mounted.
const FLAGS: &[&str] = &["ro", "rw", "dev", "nodev", "suid", "nosuid", "exec", "noexec"];
/// How long programs that still use the mount have after a signal.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the kernel's requests may take by which it hands over what these programs have written. systemd kills after
/// 90 seconds.
const WRITE_BACK: Duration = Duration::from_secs(60);

/// `all` has the global options, which the process in the background gets as well.
pub(crate) fn mount(args: &MountArgs, all: &Arguments) -> Result<ExitCode, CliError> {
    // Faults of the command line come before anything is opened.
    let root = rustix::process::geteuid().is_root();
    if args.options.iter().any(|option| option == "remount") {
        return remount(&args.dir, &args.options);
    }
    let Asked { mount: mut options, discard } = options(&args.options, root).map_err(CliError::usage)?;
    let image = args.image.canonicalize();
    let image = image.map_err(|error| CliError::at(&args.image, medium::reason(&args.image, &error)))?;
    let dir = mount_point(&args.dir)?;
    if !args.foreground && !args.told {
        return in_background(args, &image, &dir, all);
    }
    let read_only = options.read_only;
    options.source = image.to_string_lossy().into_owned();
    let access = if options.read_only { Access::Read } else { Access::Write };
    // A kernel that keeps writes notes their times by its clock. A finer one would be ahead of it, and each new file
    // that is written to would have its times changed once more.
    let clock = if options.cache == Cache::WriteBack { Time::now_coarse } else { Time::now };
    let volume = VolumeOptions::new().discard(discard);
    let caches = sized(memory_limit(), volume, &mut options);
    let fs = open_to_mount(&image, access, caches, clock)?;
    // A signal from here on finds a mount that has to be taken away.
    listen();
    let mount = match Mount::new(&fs, &dir, options) {
        Ok(mount) => mount,
        Err(error) => {
            fs.close().about(&image)?;
            return Err(CliError::at(&dir, error));
        }
    };
    let unmounter = mount.unmounter();
    // Pages that nobody touches any more are written as well, and checkpoints beside operations.
    let flusher = (!read_only).then(|| fs.start_flusher(FlusherOptions::default()));
    let flusher = match flusher.transpose() {
        Ok(flusher) => flusher,
        Err(error) => {
            drop(mount);
            fs.close().about(&image)?;
            return Err(CliError::new(format_args!("cannot start a thread: {error}")));
        }
    };
    let ready = || {
        if args.told {
            leave_the_terminal().map_err(|error| io::Error::new(error.kind(), unheard(&error)))?;
        }
        notify("READY=1");
        Ok(())
    };
    let served = serve(&image, &fs, mount, &unmounter, ready);
    drop(flusher);
    served
}

/// The directory to mount on, as a whole path.
fn mount_point(dir: &Path) -> Result<PathBuf, CliError> {
    let found = dir.canonicalize().and_then(|dir| dir.metadata().map(|data| (data.is_dir(), dir)));
    match found {
        Ok((true, dir)) => Ok(dir),
        Ok((false, dir)) => Err(CliError::at(&dir, "not a directory")),
        Err(error) if is_without_server(&error) => Err(CliError::at(
            dir,
            "the server of the mount that is there has ended; remove what is left of it with `f2fs umount`",
        )),
        Err(error) => Err(CliError::at(dir, error)),
    }
}

fn serve(
    image: &Path,
    fs: &FileSystem,
    mount: Mount,
    unmounter: &Unmounter,
    ready: impl FnOnce() -> io::Result<()> + Send,
) -> Result<ExitCode, CliError> {
    let served = AtomicBool::new(false);
    let result = until_stopped(
        || {
            let result = mount.serve_with(ready);
            served.store(true, Ordering::Relaxed);
            result
        },
        || {
            notify("STOPPING=1");
            if unmounter.unmount().is_ok() {
                return;
            }
            // Programs use it.
            let end = Instant::now() + PATIENCE;
            while !served.load(Ordering::Relaxed) && Instant::now() < end {
                thread::sleep(Duration::from_millis(20));
            }
            if !served.load(Ordering::Relaxed) {
                let written = unmounter.write_back(WRITE_BACK).about(image);
                // Without this the directory would be of no use until these programs end.
                let _ = unmounter.detach();
                closing::announce();
                let closed = fs.close().about(image);
                [&written, &closed].into_iter().filter_map(|done| done.as_ref().err()).for_each(|error| {
                    error.report();
                });
                let closed = written.and(closed);
                // With this process the connection ends: what is still open on the mount fails from now on.
                let _ = rustix::process::chdir("/");
                std::process::exit(i32::from(closed.is_err()));
            }
        },
        |_| None,
    )?;
    closing::announce();
    let closed = fs.close().about(image);
    result.about(image)?;
    closed?;
    Ok(ExitCode::SUCCESS)
}

/// Changes flags of a mount, such as `ro`: the kernel minds them, not the server. Other options stay as they are.
fn remount(dir: &Path, options: &[String]) -> Result<ExitCode, CliError> {
    let flags = options.iter().map(String::as_str).filter(|option| FLAGS.contains(option));
    let flags: Vec<&str> = ["remount"].into_iter().chain(flags).collect();
    let mut command = Command::new("mount");
    let status = command.args(["-i", "-o", &flags.join(",")]).arg("--").arg(dir).status();
    match status {
        Ok(status) if status.success() && flags.contains(&"rw") && refuses_changes(dir) => {
            // The kernel does not ask the server.
            let _ = Command::new("mount").args(["-i", "-o", "remount,ro", "--"]).arg(dir).status();
            Err(CliError::at(dir, "was mounted with `ro`: it has to be unmounted, and mounted again"))
        }
        Ok(status) if status.success() => Ok(ExitCode::SUCCESS),
        Ok(_) => Err(CliError::said()),
        Err(error) => Err(CliError::new(format_args!("mount: {error}"))),
    }
}

/// Whether the server has the volume open for reading only: a change is an error that does nothing otherwise, either.
fn refuses_changes(dir: &Path) -> bool {
    rustix::fs::removexattr(dir, "user.f2fs.none").is_err_and(|error| error == rustix::io::Errno::ROFS)
}

fn in_background(args: &MountArgs, image: &Path, dir: &Path, all: &Arguments) -> Result<ExitCode, CliError> {
    let program = env::current_exe().map_err(|error| CliError::new(format_args!("/proc/self/exe: {error}")))?;
    let mut command = Command::new(program);
    command.arg("mount").arg("--told").stdin(Stdio::null()).stdout(Stdio::piped());
    if all.pmem {
        command.arg("--pmem");
    }
    if let Some(limit) = &all.page_cache {
        command.arg("--page-cache").arg(limit.0.to_string());
    }
    for device in &all.devices {
        command.arg("--device").arg(device);
    }
    if let Some(journal) = &all.journal.journal {
        command.arg("--journal").arg(journal).args(["--journal-mode", all.journal.journal_mode.name()]);
    }
    if all.journal.without_journal {
        command.arg("--without-journal");
    }
    for option in &args.options {
        command.arg("-o").arg(option);
    }
    let mut child = command.arg("--").arg(image).arg(dir).spawn().map_err(CliError::new)?;
    let mut told = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        let _ = stdout.read_to_end(&mut told);
    }
    if told == MOUNTED {
        return Ok(ExitCode::SUCCESS);
    }
    // It said why.
    let code = child.wait().map_err(CliError::new)?.code();
    Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Tells that the volume is mounted, and goes on in a session of its own, with nothing open of the process that started
/// it.
fn leave_the_terminal() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // Fails for the leader of a session, which has no terminal to leave.
    let _ = rustix::process::setsid();
    rustix::process::chdir("/")?;
    io::stdout().write_all(MOUNTED)?;
    io::stdout().flush()?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    system_log::begin();
    Ok(())
}

/// Why the volume does not stay mounted.
fn unheard(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::BrokenPipe => "unmounted again: the command that asked for the mount has ended".into(),
        _ => error.to_string(),
    }
}

/// Tells systemd, if it started this (`sd_notify`).
fn notify(state: &str) {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else { return };
    let _ = UnixDatagram::unbound().and_then(|socket| socket.send_to(state.as_bytes(), path));
}
