//! Where a volume is mounted: mounting, and unmounting what was mounted here and nothing else.
//!
//! A session of `fuser` that mounts by itself unmounts again when it ends, even if somebody else has unmounted it
//! before: then it takes away what lies below, or what was mounted there since. So a session is given a connection that
//! is mounted here.
//!
//! # Locking
//!
//! A mutex around the connection, held for a look; no other lock is taken with it.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, StatxFlags, statvfs, statx, syncfs};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{getgid, getuid};

use f2fs_sync::Mutex;

use crate::mount_table::{self, Found};
use crate::options::MountOptions;

/// A directory on which a connection to the kernel is mounted.
#[derive(Debug)]
pub(crate) struct Place {
    /// A whole path, without symbolic links.
    dir: PathBuf,
    /// `None` once nobody serves it: then the kernel ends what waits for an answer.
    connection: Mutex<Option<OwnedFd>>,
    /// The device number of the mounted file system, by which it is known among others on the same directory.
    number: (u32, u32),
}

impl Place {
    /// Mounts; a second handle of the connection is for the session that serves it.
    ///
    /// # Errors
    ///
    /// `ENOTDIR` if it is no directory. The kernel would take a file, and find out when the server answers.
    pub(crate) fn mount(dir: &Path, options: &MountOptions) -> io::Result<(Place, OwnedFd)> {
        let dir = dir.canonicalize()?;
        if !dir.metadata()?.is_dir() {
            return Err(Errno::NOTDIR.into());
        }
        Place::mount_on_anything(dir, options)
    }

    /// The same, on what may be no directory. `dir` is a whole path, without symbolic links.
    pub(crate) fn mount_on_anything(dir: PathBuf, options: &MountOptions) -> io::Result<(Place, OwnedFd)> {
        let connection = match by_itself(&dir, options) {
            Err(error) if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) => by_fusermount(&dir, options)?,
            done => done?,
        };
        let number = on_top(&dir)?;
        let served = connection.try_clone()?;
        Ok((Place { dir, connection: Mutex::new(Some(connection)), number }, served))
    }

    /// Unmounts; `lazily`: programs that use it keep it until they let go of it. Nothing is done if it was unmounted
    /// before.
    ///
    /// # Errors
    ///
    /// `EBUSY` while programs use it, also if it was taken off its directory before, or while something else is mounted
    /// on top.
    pub(crate) fn unmount(&self, lazily: bool) -> io::Result<()> {
        if !self.is_connected()? {
            return Ok(());
        }
        match self.found(on_top(&self.dir))? {
            Found::OnTop => {}
            Found::Nowhere if lazily => return Ok(()),
            Found::Below | Found::Nowhere => return Err(Errno::BUSY.into()),
        }
        let flags = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
        match unmount(&self.dir, flags) {
            // Others than root have a program that does it for them.
            Err(Errno::PERM) => {
                let mut command = Command::new("fusermount3");
                command.args(if lazily { ["-u", "-q", "-z"].as_slice() } else { &["-u", "-q"] });
                match command.arg("--").arg(&self.dir).stderr(Stdio::null()).status()?.success() {
                    true => Ok(()),
                    false => Err(Errno::BUSY.into()),
                }
            }
            done => Ok(done?),
        }
    }

    /// Unmounts as [`unmount`](Self::unmount) does, since nobody serves it any more: programs that use it get errors.
    pub(crate) fn end(&self) {
        // What is mounted on top of it keeps it.
        if self.unmount(true).is_ok() {
            self.connection.lock().take();
        }
    }

    /// Ends it, though it is served: what waits for an answer gets an error. Others than root cannot do that; then it is
    /// taken off its directory.
    pub(crate) fn abort(&self) {
        if self.found(on_top(&self.dir)).is_ok_and(|found| found == Found::OnTop) {
            let _ = unmount(&self.dir, UnmountFlags::FORCE | UnmountFlags::DETACH);
        }
        self.end();
    }

    /// Another handle of the connection.
    pub(crate) fn connection(&self) -> io::Result<OwnedFd> {
        self.connection.lock().as_ref().ok_or(Errno::NOTCONN)?.try_clone()
    }

    /// Waits for the answer to a first request. It does not keep the connection.
    pub(crate) fn first_question(&self) -> impl FnOnce() -> io::Result<()> + Send + 'static {
        let dir = self.dir.clone();
        move || Ok(statvfs(&dir).map(drop)?)
    }

    /// The kernel writes back what it has kept; `false` if it is not mounted any more. It may come behind this.
    ///
    /// # Errors
    ///
    /// `EBUSY` while something else is mounted on top, or while programs use it though it was taken off its directory.
    pub(crate) fn write_back(&self) -> io::Result<bool> {
        if !self.is_connected()? {
            return Ok(false);
        }
        let dir = File::open(&self.dir)?;
        let found = statx(&dir, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::empty())?;
        if (found.stx_dev_major, found.stx_dev_minor) != self.number {
            return Err(Errno::BUSY.into());
        }
        syncfs(&dir)?;
        Ok(true)
    }

    /// Where it stands on its directory, by what is `on_top` of that.
    fn found(&self, on_top: io::Result<(u32, u32)>) -> io::Result<Found> {
        let unknown = match on_top {
            Ok(number) if number == self.number => return Ok(Found::OnTop),
            Ok(_) => Ok(Found::Below),
            // The kernel says nothing of a root whose server gave it another type.
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Err(error),
            Err(error) => return Err(error),
        };
        // There is no table where there is no /proc.
        mount_table::find(&self.dir, self.number).or(unknown)
    }

    /// Whether the kernel still has a mount of the connection.
    fn is_connected(&self) -> io::Result<bool> {
        let connection = self.connection.lock();
        let Some(connection) = &*connection else { return Ok(false) };
        let mut polled = [PollFd::new(connection, PollFlags::empty())];
        poll(&mut polled, Some(&Timespec::default()))?;
        Ok(!polled[0].revents().contains(PollFlags::ERR))
    }
}

/// The device number of what is on top of a directory. No server is asked, which may have ended.
fn on_top(dir: &Path) -> io::Result<(u32, u32)> {
    let found = statx(CWD, dir, AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT, StatxFlags::empty())?;
    Ok((found.stx_dev_major, found.stx_dev_minor))
}

fn source(options: &MountOptions) -> &str {
    // The kernel refuses a mount without a source.
    if options.source.is_empty() { "f2fs" } else { &options.source }
}

/// Mounts as root does.
fn by_itself(dir: &Path, options: &MountOptions) -> io::Result<OwnedFd> {
    let connection = File::options().read(true).write(true).open("/dev/fuse")?;
    let mut data = format!(
        "fd={},rootmode={:o},user_id={},group_id={},default_permissions",
        connection.as_raw_fd(),
        dir.metadata()?.mode(),
        getuid().as_raw(),
        getgid().as_raw(),
    );
    if options.allow_other {
        data += ",allow_other";
    }
    let mut flags = MountFlags::empty();
    for (flag, set) in [
        (MountFlags::RDONLY, options.read_only),
        (MountFlags::NODEV, !options.devices),
        (MountFlags::NOSUID, !options.set_id),
        (MountFlags::NOEXEC, options.no_exec),
        (MountFlags::SYNCHRONOUS, options.synchronous),
    ] {
        flags.set(flag, set);
    }
    let data = CString::new(data)?;
    mount(source(options), dir, "fuse", flags, Some(data.as_c_str()))?;
    Ok(connection.into())
}

/// Mounts by the program that may; it sends the connection.
fn by_fusermount(dir: &Path, options: &MountOptions) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let name = format!("fsname={}", source(options).replace('\\', "\\\\").replace(',', "\\,"));
    let words = [
        name.as_str(),
        "subtype=f2fs,default_permissions",
        if options.read_only { "ro" } else { "rw" },
        if options.devices { "dev" } else { "nodev" },
        if options.set_id { "suid" } else { "nosuid" },
        if options.no_exec { "noexec" } else { "exec" },
        if options.synchronous { "sync" } else { "async" },
    ];
    let other = if options.allow_other { ",allow_other" } else { "" };
    let mut command = Command::new("fusermount3");
    command.arg("-o").arg(words.join(",") + other).arg("--").arg(dir);
    // It finds the socket as its standard input.
    command.env("_FUSE_COMMFD", "0").stdin(OwnedFd::from(theirs)).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // The other end of the socket is the child's alone, so that its end is noticed.
    drop(command);
    let received = receive(&ours);
    drop(ours);
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut said);
    }
    child.wait()?;
    let refused = || io::Error::other(said.trim().to_owned());
    received.map_err(|_| refused())?.ok_or_else(refused)
}

/// The file that is sent; `None` if the other side ended without sending one.
fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    Ok(control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    }))
}
