//! A server: it makes a device or takes one over, serves its queues, and deletes it.
//!
//! ```text
//!             ADD_DEV   SET_PARAMS   queues fetch   START_DEV              STOP_DEV   queues end   DEL_DEV
//!  (nothing) ---------> known -------------------> block device, serving --------------------------> (nothing)
//!                                                     |     ^
//!                                the server is killed |     | START_USER_RECOVERY, queues fetch, END_USER_RECOVERY
//!                                                     v     |
//!                                                 requests wait
//! ```
//!
//! Locking model: none. A queue's thread shares nothing with others but the device below and the open file; it returns
//! its counts when it ends. Queues end because the driver says so, which the first thread asks it to do.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use f2fs_device::Operation;
use f2fs_sync::PlainArc;
use rustix::fs::OFlags;

use crate::{
    Backend, QueueCounts, UblkError,
    abi::{ControlCommand, DeviceRecord, MAX_DEPTH, feature, state},
    control::{Control, path_of},
    ring::{QueueShape, RingChannel},
    worker::Worker,
};

/// How long it is waited for the files of a device, and for the end of a dead server.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often something is looked for.
const TICK: Duration = Duration::from_millis(20);
/// Bytes that a transfer may have.
const MAX_IO_BYTES: u32 = 512 << 10;

/// How a device is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The number, or the least one that is free.
    pub number: Option<u32>,
    /// Queues, each with a thread; the kernel makes no more than there are processors.
    pub queues: u16,
    /// Requests that a queue has at a time (1 to 4096).
    pub depth: u16,
    /// Whether requests wait for a new server if this one dies. Only for devices whose content outlives the process.
    pub recovery: bool,
    /// Data move by user copy also where it is not needed (it is for zones).
    pub user_copy: bool,
    /// This process need not be root: the device belongs to its user, and beside root nobody else can open it. It
    /// cannot be recovered: `recovery` has no effect then. Of a process that is root, the device is root's all the
    /// same.
    pub unprivileged: bool,
}

impl Default for Options {
    /// One queue of 128 requests, any number, no recovery.
    fn default() -> Self {
        Self { number: None, queues: 1, depth: 128, recovery: false, user_copy: false, unprivileged: false }
    }
}

impl Options {
    /// The same with this number.
    #[must_use]
    pub fn with_number(self, number: Option<u32>) -> Self {
        Self { number, ..self }
    }

    /// The same with so many queues.
    #[must_use]
    pub fn with_queues(self, queues: u16) -> Self {
        Self { queues, ..self }
    }

    /// The same with queues of this depth.
    #[must_use]
    pub fn with_depth(self, depth: u16) -> Self {
        Self { depth, ..self }
    }

    /// The same with or without recovery.
    #[must_use]
    pub fn with_recovery(self, recovery: bool) -> Self {
        Self { recovery, ..self }
    }

    /// The same with or without user copy.
    #[must_use]
    pub fn with_user_copy(self, user_copy: bool) -> Self {
        Self { user_copy, ..self }
    }

    /// The same as a device of this process's user.
    #[must_use]
    pub fn with_unprivileged(self, unprivileged: bool) -> Self {
        Self { unprivileged, ..self }
    }
}

/// A device that is being served. Dropped without [`finish`](Self::finish), it is deleted.
pub struct Server {
    control: Control,
    record: DeviceRecord,
    /// Open until the device is deleted.
    file: Option<PlainArc<File>>,
    queues: Vec<JoinHandle<io::Result<QueueCounts>>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("number", &self.record.number).finish_non_exhaustive()
    }
}

impl Server {
    /// Makes a device and serves it.
    ///
    /// # Errors
    /// See [`UblkError`]. Nothing of the device is left then.
    pub fn add(backend: &Backend, options: Options) -> Result<Self, UblkError> {
        backend.check()?;
        limit("queues", options.queues, 1, 4096)?;
        limit("depth", options.depth, 1, MAX_DEPTH)?;
        let (mut control, features) = Control::open()?;
        let zoned = backend.zoned().is_some();
        let user_copy = zoned || options.user_copy;
        if user_copy && options.unprivileged {
            return Err(UblkError::RootAlone);
        }
        need(features, feature::USER_COPY, user_copy, "user copy", "6.5")?;
        need(features, feature::ZONED, zoned, "zones (CONFIG_BLK_DEV_ZONED)", "6.6")?;
        let recovery = feature::USER_RECOVERY | feature::USER_RECOVERY_REISSUE;
        let recovers = options.recovery && !options.unprivileged;
        need(features, recovery, recovers, "user recovery", "6.1")?;
        need(features, feature::UNPRIVILEGED_DEV, options.unprivileged, "unprivileged devices", "6.3")?;
        let wanted = [
            (feature::USER_COPY, user_copy),
            (feature::ZONED, zoned),
            (recovery, recovers),
            (feature::UNPRIVILEGED_DEV, options.unprivileged),
        ];
        let flags = wanted.iter().filter(|(_, wanted)| *wanted).fold(0, |flags, (bits, _)| flags | bits);
        let wanted = DeviceRecord {
            queues: options.queues,
            depth: options.depth,
            max_io_bytes: MAX_IO_BYTES,
            number: options.number.unwrap_or(ControlCommand::ANY_DEVICE),
            flags,
            ..DeviceRecord::default()
        };
        let record = control.add(&wanted)?;
        let mut server = Self { control, record, file: None, queues: Vec::new() };
        // From here on, a drop deletes the device.
        if zoned && record.flags & feature::ZONED == 0 {
            return Err(UblkError::TooOld { feature: "zones (CONFIG_BLK_DEV_ZONED)", since: "6.6" });
        }
        // Of an unprivileged device, the driver takes no command before the file is the user's.
        let file = open(&record)?;
        server.control.set_parameters(&record, &backend.parameters(record.max_io_bytes))?;
        server.serve(file, backend)?;
        let queues = &server.queues;
        let started = server.control.start(&record, || all_run(queues))?;
        if started { Ok(server) } else { Err(server.fault()) }
    }

    /// Takes a device over whose server died. `backend` must have the same size and zones as the one before.
    ///
    /// # Errors
    /// See [`UblkError`]. The device goes on waiting then.
    pub fn recover(number: u32, backend: &Backend) -> Result<Self, UblkError> {
        backend.check()?;
        let (mut control, _) = Control::open()?;
        let record = wait_for_death(&mut control, number)?;
        if control.parameters(&record)?.sectors != backend.parameters(record.max_io_bytes).sectors {
            return Err(UblkError::NotRecoverable {
                number,
                reason: "the file that it was made of has another size now",
            });
        }
        control.start_recovery(&record)?;
        let mut server = Self { control, record, file: None, queues: Vec::new() };
        server.serve(open(&record)?, backend)?;
        let queues = &server.queues;
        let started = server.control.end_recovery(&record, || all_run(queues))?;
        if started { Ok(server) } else { Err(server.fault()) }
    }

    /// Starts the threads of the queues.
    fn serve(&mut self, file: File, backend: &Backend) -> Result<(), UblkError> {
        let file = PlainArc::new(file);
        self.file = Some(PlainArc::clone(&file));
        let DeviceRecord { queues, depth, max_io_bytes, flags, .. } = self.record;
        for queue in 0..queues {
            let (file, backend) = (PlainArc::clone(&file), backend.clone());
            let work = move || {
                let user_copy = flags & feature::USER_COPY != 0;
                let shape = QueueShape { number: queue, depth, max_io_bytes, user_copy };
                let channel = RingChannel::new(&file, shape, backend.device().file(Operation::Read))?;
                Worker::new(channel, &backend, depth, max_io_bytes).run()
            };
            let thread = thread::Builder::new().name(format!("ublk{}q{queue}", self.record.number)).spawn(work);
            self.queues.push(thread.map_err(|source| UblkError::Queue { queue, source })?);
        }
        Ok(())
    }

    /// The device's number, N in `/dev/ublkbN`.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.record.number
    }

    /// The block device.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        block_path(self.record.number)
    }

    /// How many queues the kernel made.
    #[must_use]
    pub fn queues(&self) -> u16 {
        self.record.queues
    }

    /// Serves until `should_stop` says so, or the device is deleted by somebody else, or a queue fails; then deletes
    /// the device.
    ///
    /// # Errors
    /// Why a queue ended by itself, or why the device could not be deleted.
    pub fn finish(mut self, mut should_stop: impl FnMut() -> bool) -> Result<QueueCounts, UblkError> {
        while !should_stop() && all_run(&self.queues) {
            thread::sleep(TICK);
        }
        self.end()
    }

    /// Why not all queues run.
    fn fault(&mut self) -> UblkError {
        match self.end() {
            Err(error) => error,
            Ok(_) => UblkError::NoSuchDevice { number: self.record.number },
        }
    }

    fn end(&mut self) -> Result<QueueCounts, UblkError> {
        let stopped = forgive_missing(self.control.stop(&self.record));
        let mut counts = QueueCounts::default();
        let mut fault = None;
        for (queue, thread) in (0..).zip(self.queues.drain(..)) {
            // A queue that the driver does not end keeps its thread: the process's end is its own.
            if stopped.is_err() && !thread.is_finished() {
                continue;
            }
            match thread.join() {
                Ok(Ok(more)) => {
                    counts.requests += more.requests;
                    counts.failed += more.failed;
                    counts.entries += more.entries;
                }
                Ok(Err(source)) => fault = fault.or(Some(UblkError::Queue { queue, source })),
                Err(_) => fault = fault.or(Some(UblkError::Panicked { queue })),
            }
        }
        // The driver waits for the close of the file.
        self.file = None;
        stopped?;
        forgive_missing(self.control.delete(&self.record))?;
        fault.map_or(Ok(counts), Err)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.file.is_some() || !self.queues.is_empty() {
            let _ = self.end();
        } else {
            // Added and never served, or deleted already.
            let _ = self.control.delete(&self.record);
        }
    }
}

/// Somebody else deleted the device meanwhile.
fn forgive_missing(result: Result<(), UblkError>) -> Result<(), UblkError> {
    match result {
        Err(UblkError::NoSuchDevice { .. }) => Ok(()),
        other => other,
    }
}

fn all_run<T>(threads: &[JoinHandle<T>]) -> bool {
    threads.iter().all(|thread| !thread.is_finished())
}

fn need(features: u64, bits: u64, wanted: bool, name: &'static str, since: &'static str) -> Result<(), UblkError> {
    if wanted && features & bits != bits { Err(UblkError::TooOld { feature: name, since }) } else { Ok(()) }
}

fn limit(what: &'static str, value: u16, min: u16, max: u16) -> Result<(), UblkError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(UblkError::Limit { what, value: value.into(), min: min.into(), max: max.into() })
}

/// Waits until the driver has noticed the death of a device's server.
fn wait_for_death(control: &mut Control, number: u32) -> Result<DeviceRecord, UblkError> {
    let end = Instant::now() + PATIENCE;
    loop {
        let record = control.info(number)?;
        if record.flags & feature::USER_RECOVERY == 0 {
            return Err(UblkError::NotRecoverable { number, reason: "it was made without recovery" });
        }
        match record.state {
            state::QUIESCED | state::FAIL_IO => return Ok(record),
            state::DEAD => {
                return Err(UblkError::NotRecoverable { number, reason: "it was never started, or is stopped" });
            }
            _ if Instant::now() > end => return Err(UblkError::NotRecoverable { number, reason: "its server lives" }),
            _ => thread::sleep(TICK),
        }
    }
}

/// Opens the character device, which may appear a moment after the driver made it, and be busy a moment after a
/// server's death. Reads and writes of it never wait, but a ring takes the kernel's word for that only if the file is
/// opened so, and hands them to another thread otherwise. That of an unprivileged device is root's until udev has given it to its owner.
fn open(device: &DeviceRecord) -> Result<File, UblkError> {
    let path = path_of(device.number);
    let end = Instant::now() + PATIENCE;
    loop {
        match OpenOptions::new().read(true).write(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&path) {
            Ok(file) => return Ok(file),
            Err(source) if Instant::now() > end => {
                let unprivileged = device.flags & feature::UNPRIVILEGED_DEV != 0;
                return Err(if unprivileged && source.kind() == io::ErrorKind::PermissionDenied {
                    UblkError::NotOwned { path: path.into(), number: device.number }
                } else {
                    UblkError::File { path: path.into(), source }
                });
            }
            Err(_) => thread::sleep(TICK),
        }
    }
}

pub(crate) fn block_path(number: u32) -> PathBuf {
    format!("/dev/ublkb{number}").into()
}
