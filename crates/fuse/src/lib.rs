//! Mounts F2FS volumes in Linux: a FUSE server for a [`FileSystem`].
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
//! # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
//! use f2fs_fuse::{Mount, MountOptions};
//!
//! let mount = Mount::new(&fs, "/mnt".as_ref(), MountOptions::default())?;
//! mount.serve()?; // until it is unmounted
//! fs.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! The kernel keeps names, attributes and contents without a time limit. So a program that mounts a file system changes
//! it only through the mount.
#![forbid(unsafe_code)]

mod acl;
mod attributes;
mod caller;
mod checkpoints;
mod first_answer;
mod forgotten;
mod kept;
mod mount_table;
mod options;
mod place;
mod released;
mod service;
mod stream;
mod streams;
mod table;
mod transport;
mod uring;
mod volume;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::Builder;

use f2fs_files::{FileSystem, FsError};
use f2fs_sync::Arc;
use fuser::{Config, Session, SessionACL};
use thiserror::Error;

pub use f2fs_fuse_uring::Unavailable;
pub use options::{Cache, MountOptions, Transport};

use checkpoints::Checkpoints;
use first_answer::{Ends, FirstAnswer};
use kept::KeptPages;
use place::Place;
use service::Service;
use transport::Device;
use uring::Rings;
use volume::Mounted;

/// Why a volume could not be mounted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MountError {
    /// The kernel has no FUSE, or this process may not use it.
    #[error("/dev/fuse: {0} ({remedy})", remedy = remedy(.0))]
    Device(#[source] io::Error),
    /// Only root mounts by itself; others need the program `fusermount3`.
    #[error("fusermount3 is missing, which users other than root need to mount: install the package fuse3")]
    NoFusermount,
    /// Requests cannot come through [rings](Transport::Uring).
    #[error(transparent)]
    Uring(#[from] Unavailable),
    /// The kernel, or `fusermount3`, refused.
    #[error("cannot mount: {0}")]
    Refused(#[source] io::Error),
    /// The root directory could not be read.
    #[error(transparent)]
    Volume(#[from] FsError),
}

impl MountError {
    /// Whether it is this process that may not mount, or this machine that cannot, whatever is mounted where.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        match self {
            MountError::Device(_) | MountError::NoFusermount | MountError::Uring(_) => true,
            MountError::Refused(error) => error.kind() == io::ErrorKind::PermissionDenied,
            MountError::Volume(_) => false,
        }
    }
}

/// A mounted file system, which is served by [`serve`](Self::serve). Dropping it unmounts.
#[derive(Debug)]
pub struct Mount {
    placed: Placed,
    session: Session<Device>,
    service: Arc<Service>,
    /// Threads that serve rings, where requests come through these.
    ring_threads: Option<usize>,
    kept: Arc<KeptPages>,
    checkpoints: Option<Checkpoints>,
}

/// A mount that ends with this, also if programs use it: nobody would answer them.
#[derive(Debug)]
struct Placed(Arc<Place>);

impl Drop for Placed {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Unmounts from another thread.
#[derive(Debug)]
pub struct Unmounter {
    place: Arc<Place>,
    kept: Arc<KeptPages>,
}

impl Mount {
    /// Mounts a file system on a directory. When this returns, programs can use it as soon as it is
    /// [served](Self::serve).
    ///
    /// # Errors
    /// [`MountError`], which names the missing program or module; [`MountError::Refused`] if `dir` is no directory.
    pub fn new(fs: &FileSystem, dir: &Path, options: MountOptions) -> Result<Mount, MountError> {
        std::fs::File::options().read(true).write(true).open("/dev/fuse").map_err(MountError::Device)?;
        if !rustix::process::geteuid().is_root() && !has_fusermount() {
            return Err(MountError::NoFusermount);
        }
        if options.transport == Transport::Uring {
            f2fs_fuse_uring::available()?;
        }
        let placed = Place::mount(dir, &options).map_err(MountError::Refused)?;
        Mount::at(fs, placed, options)
    }

    /// What is mounted at a place.
    fn at(fs: &FileSystem, (place, connection): (Place, OwnedFd), options: MountOptions) -> Result<Mount, MountError> {
        let placed = Placed(Arc::new(place));
        let processors = f2fs_sync::processors();
        let mut config = Config::default();
        let threads = if options.threads == 0 { (2 * processors).clamp(4, 64) } else { options.threads };
        let threads = threads.min(MountOptions::MOST_THREADS);
        let ring_threads = (options.transport == Transport::Uring).then_some(threads);
        // Where rings have the requests, little comes this way.
        config.n_threads = Some(if ring_threads.is_some() { 1 } else { threads });
        config.clone_fd = true;
        config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
        let checkpoints = (!options.read_only).then(|| Checkpoints::new(fs.clone(), options.commit));
        let acl = config.acl;
        let mounted = Mounted::new(fs, options)?;
        let (kernel, kept) = (mounted.kernel(), mounted.kept());
        let service = Arc::new(Service(mounted));
        let session = Session::from_fd(Device(Arc::clone(&service)), connection, acl, config);
        let session = session.map_err(MountError::Refused)?;
        // It is new, so nothing is there yet.
        let _ = kernel.set(Box::new(session.notifier()));
        Ok(Mount { placed, session, service, ring_threads, kept, checkpoints })
    }

    /// A handle that ends the mount from another thread.
    pub fn unmounter(&self) -> Unmounter {
        Unmounter { place: Arc::clone(&self.placed.0), kept: Arc::clone(&self.kept) }
    }

    /// Answers requests until the file system is unmounted, and writes checkpoints meanwhile as the options say. All
    /// references to its inodes are gone when this returns.
    ///
    /// # Errors
    /// Those of `/dev/fuse`, and if a thread cannot be started.
    pub fn serve(self) -> io::Result<()> {
        self.serve_with(|| Ok(()))
    }

    /// The same, with `ready` called when requests are answered. If that fails, it is unmounted again.
    ///
    /// # Errors
    /// As [`serve`](Self::serve), and those of `ready`.
    pub fn serve_with(self, ready: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let Mount { placed, session, service, ring_threads, checkpoints, .. } = self;
        let writing = checkpoints.map(Checkpoints::start).transpose()?;
        let answer = Arc::new(FirstAnswer::default());
        let ends = Ends(Arc::clone(&answer));
        let rings = ring_threads.map(|threads| {
            let (place, broken) = (Arc::clone(&placed.0), Arc::clone(&answer));
            Rings::prepare(&service, &Arc::new(placed.0.connection()?), threads, move |error| {
                broken.tell(Err(error));
                place.abort();
            })
        });
        let rings = rings.transpose()?;
        drop(service);
        let server = Builder::new().name("f2fs-serve".into()).spawn(move || {
            let _ends = ends;
            session.run()
        })?;
        rings.iter().for_each(Rings::begin);
        let (ask, asked) = (placed.0.first_question(), Arc::clone(&answer));
        // On a thread that is not waited for: without a server its question has no end before the connection has.
        let asker = Builder::new().name("f2fs-ask".into()).spawn(move || asked.tell(ask()));
        let begun = asker.and_then(|_| answer.wait());
        let begun = begun.and_then(|()| ready());
        if begun.is_err() {
            placed.0.end();
        }
        let served = server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let served = served.or_else(unless_cut_off);
        if served.is_ok() {
            rings.iter().for_each(Rings::wait);
        }
        drop(rings);
        drop(writing);
        drop(placed);
        // What kept it from answering is told, not that it did not answer.
        served.and(begun)
    }
}

impl Unmounter {
    /// Unmounts. Does nothing if somebody else did it, or if it is not served any more: it was unmounted then.
    ///
    /// # Errors
    /// `EBUSY` while programs use the mount, also if it was taken off its directory before, or while something else is
    /// mounted on top of it; and until it is [ready](Mount::serve_with), as the server asks itself something then.
    pub fn unmount(&self) -> io::Result<()> {
        self.place.unmount(false)
    }

    /// Has the kernel hand over what programs have written, into shared mappings too, and waits until it is here; at
    /// most for `limit` behind the kernel's own work. It has to be [served](Mount::serve) meanwhile. Does nothing if it
    /// is not mounted any more.
    ///
    /// # Errors
    /// What failed of it, `EBUSY` if something else is mounted on top of it or if programs use it though it was taken off
    /// its directory, and `ETIMEDOUT`.
    pub fn write_back(&self, limit: std::time::Duration) -> io::Result<()> {
        if self.place.write_back()? && !self.kept.wait(limit) {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        Ok(())
    }

    /// Takes the mount off its directory, if nobody did that before. Programs that use it are served on, and it ends with
    /// the last of them.
    ///
    /// # Errors
    /// `EBUSY` while something else is mounted on top of it.
    pub fn detach(&self) -> io::Result<()> {
        self.place.unmount(true)
    }
}

/// The end of a mount is no error of its server. Most threads read of it as `ENODEV`, which the session takes for an end;
/// one that was taking a request in that moment reads `ECONNABORTED` (`fuse_dev_do_read` of Linux).
fn unless_cut_off(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(number) if number == rustix::io::Errno::CONNABORTED.raw_os_error() => Ok(()),
        _ => Err(error),
    }
}

/// What helps where `/dev/fuse` cannot be opened.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "this user may not use it; most systems let everybody: mode 666",
        _ => "is the module `fuse` loaded?",
    }
}

fn has_fusermount() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/bin", "/sbin", "/usr/bin"].map(Into::into));
    dirs.into_iter().any(|dir| dir.join("fusermount3").is_file())
}

#[cfg(test)]
mod tests;

/// The example of this crate's README, so that it is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
