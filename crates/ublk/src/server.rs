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
//! A server that fails on its way back to serving asks the driver for nothing more, so that requests go on waiting.
//!
//! Locking model: none here. A queue's thread shares nothing with others but the device below, the open file, and the
//! place where all wait for that (`queues.rs`); it returns its counts when it ends. Queues end because the driver says
//! so, which the first thread asks it to do.

use std::{fs::File, path::PathBuf, thread, time::Instant};

use f2fs_device::Operation;
use f2fs_sync::PlainArc;

use crate::{
    Backend, DataPath, QueueCounts, UblkError,
    abi::{ControlCommand, DeviceRecord, MAX_DEPTH, errno, feature, state},
    control::Control,
    driver::{Driver, PATIENCE, TICK},
    queues::Queues,
};

/// A file that can always be opened.
const NULL: &str = "/dev/null";
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
    /// How data move. `None`: without a copy where the device is a file, the process root's and the kernel's driver can
    /// do it by itself (Linux 6.16), by user copy for zones, and else by a copy of the driver. Zones have user copy in any
    /// case.
    pub path: Option<DataPath>,
    /// Bytes of the shortest request whose data move without a copy on a device whose path is
    /// [selective](DataPath::Selective). After a recovery it is the default.
    pub border: u32,
    /// This process need not be root: the device belongs to its user, and beside root nobody else can open it. It
    /// cannot be recovered: `recovery` has no effect then. Of a process that is root, the device is root's all the
    /// same.
    pub unprivileged: bool,
    /// What the content of the device is known by, any number but 0: the driver keeps it, and a recovery whose content
    /// is another one's is refused. 0: any content of the same size is taken.
    pub content: u64,
}

impl Default for Options {
    /// One queue of 128 requests, any number, no recovery.
    fn default() -> Self {
        Self {
            number: None,
            queues: 1,
            depth: 128,
            recovery: false,
            path: None,
            border: Self::BORDER,
            unprivileged: false,
            content: 0,
        }
    }
}

impl Options {
    /// The most queues that can be asked for.
    pub const MAX_QUEUES: u16 = 4096;
    /// The most requests that a queue can have at a time.
    pub const MAX_DEPTH: u16 = MAX_DEPTH;

    /// The border of a selective path unless another one is asked for: measured, see `docs/UBLK.md`.
    pub const BORDER: u32 = 16 << 10;

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

    /// The same with this way of data, or the one that suits.
    #[must_use]
    pub fn with_path(self, path: Option<DataPath>) -> Self {
        Self { path, ..self }
    }

    /// The same with this border of a selective path, in bytes.
    #[must_use]
    pub fn with_border(self, border: u32) -> Self {
        Self { border, ..self }
    }

    /// The same with a number for its content.
    #[must_use]
    pub fn with_content(self, content: u64) -> Self {
        Self { content, ..self }
    }

    /// The same as a device of this process's user.
    #[must_use]
    pub fn with_unprivileged(self, unprivileged: bool) -> Self {
        Self { unprivileged, ..self }
    }
}

/// A device that is being served. Dropped without [`finish`](Self::finish), it is deleted.
pub struct Server {
    driver: Box<dyn Driver>,
    record: DeviceRecord,
    /// Open until the device is deleted.
    file: Option<PlainArc<File>>,
    queues: Option<Queues>,
    at_drop: AtDrop,
}

/// What becomes of a device when its server is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtDrop {
    Delete,
    /// It waits for another server, as when the last one died.
    Leave,
    /// It is deleted already.
    Nothing,
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
        limit("queues", options.queues, 1, Options::MAX_QUEUES)?;
        limit("depth", options.depth, 1, MAX_DEPTH)?;
        let (control, features) = Control::open()?;
        let wanted = wanted(options, backend, features)?;
        Self::add_by(Box::new(control), &wanted, backend, options.border)
    }

    fn add_by(
        mut driver: Box<dyn Driver>,
        wanted: &DeviceRecord,
        backend: &Backend,
        border: u32,
    ) -> Result<Self, UblkError> {
        let record = driver.add(wanted)?;
        let mut server = Self { driver, record, file: None, queues: None, at_drop: AtDrop::Delete };
        if backend.zoned().is_some() && record.flags & feature::ZONED == 0 {
            return Err(UblkError::TooOld { feature: "zones (CONFIG_BLK_DEV_ZONED)", since: "6.6" });
        }
        // Of an unprivileged device, the driver takes no command before the file is the user's.
        let file = server.driver.open(&record)?;
        server.driver.set_parameters(&record, &backend.parameters(record.max_io_bytes))?;
        server.serve(Queues::prepare(&record, backend, border)?, file, |driver, all_run| {
            driver.start(&record, all_run)
        })?;
        Ok(server)
    }

    /// Takes a device over whose server died. `backend` must have the same size and zones as the one before, and the
    /// number of its [content](Options::content), unless one of the two numbers is 0.
    ///
    /// All that this process needs for it is taken before the driver is told, but for the open character device, which
    /// the driver wants to see closed until then.
    ///
    /// # Errors
    /// See [`UblkError`]. The device goes on waiting then.
    pub fn recover(number: u32, backend: &Backend, content: u64) -> Result<Self, UblkError> {
        backend.check()?;
        let (control, _) = Control::open()?;
        Self::recover_by(Box::new(control), number, backend, content)
    }

    fn recover_by(
        mut driver: Box<dyn Driver>,
        number: u32,
        backend: &Backend,
        content: u64,
    ) -> Result<Self, UblkError> {
        let record = wait_for_death(&mut *driver, number)?;
        if record.server_flags != 0 && content != 0 && record.server_flags != content {
            return Err(UblkError::OtherContent { number });
        }
        if driver.parameters(&record)?.sectors != backend.parameters(record.max_io_bytes).sectors {
            return Err(UblkError::NotRecoverable {
                number,
                reason: "the file that it was made of has another size now",
            });
        }
        let queues = Queues::prepare(&record, backend, Options::BORDER)?;
        // The place of the character device among the open files.
        let place = File::open(NULL).map_err(|source| UblkError::File { path: NULL.into(), source })?;
        match driver.start_recovery(&record) {
            // So say drivers (Linux 6.11 to 6.15) that forgot the dead queues for a server that failed then.
            Err(UblkError::Refused { source, .. }) if source.raw_os_error() == Some(errno::EINVAL) => {}
            told => told?,
        }
        let mut server = Self { driver, record, file: None, queues: None, at_drop: AtDrop::Leave };
        drop(place);
        let file = server.driver.open(&record)?;
        server.serve(queues, file, |driver, all_run| driver.end_recovery(&record, all_run))?;
        server.at_drop = AtDrop::Delete;
        Ok(server)
    }

    /// Lets the queues run, and the device with them by `begin`, which waits as long as they do.
    fn serve(
        &mut self,
        queues: Queues,
        file: File,
        begin: impl FnOnce(&mut dyn Driver, &mut dyn FnMut() -> bool) -> Result<bool, UblkError>,
    ) -> Result<(), UblkError> {
        let file = PlainArc::new(file);
        self.file = Some(PlainArc::clone(&file));
        let queues = self.queues.insert(queues);
        queues.run(file);
        if begin(&mut *self.driver, &mut || queues.all_run())? { Ok(()) } else { Err(self.fault()) }
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
        while !should_stop() && self.queues.as_ref().is_some_and(Queues::all_run) {
            thread::sleep(TICK);
        }
        self.end()
    }

    /// Why not all queues run. The device is gone then, or left alone.
    fn fault(&mut self) -> UblkError {
        let fault = match self.at_drop {
            AtDrop::Leave => self.leave(),
            AtDrop::Delete | AtDrop::Nothing => self.end().err(),
        };
        fault.unwrap_or(UblkError::NoSuchDevice { number: self.record.number })
    }

    fn end(&mut self) -> Result<QueueCounts, UblkError> {
        let stopped = forgive_missing(self.driver.stop(&self.record));
        let ended = self.queues.take().map(|mut queues| queues.end(stopped.is_ok()));
        // The driver waits for the close of the file.
        self.file = None;
        stopped?;
        self.at_drop = AtDrop::Nothing;
        forgive_missing(self.driver.delete(&self.record))?;
        let (counts, fault) = ended.unwrap_or_default();
        fault.map_or(Ok(counts), Err)
    }

    /// Ends the queues, and asks the driver for nothing: for it, a server has died.
    fn leave(&mut self) -> Option<UblkError> {
        self.at_drop = AtDrop::Nothing;
        self.file = None;
        self.queues.take().and_then(|mut queues| queues.leave())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        match self.at_drop {
            AtDrop::Delete if self.file.is_some() || self.queues.is_some() => drop(self.end()),
            // It was added and never served, or did not stop.
            AtDrop::Delete => drop(self.driver.delete(&self.record)),
            AtDrop::Leave => drop(self.leave()),
            AtDrop::Nothing => {}
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

/// What a driver with these features is asked for.
fn wanted(options: Options, backend: &Backend, features: u64) -> Result<DeviceRecord, UblkError> {
    let zoned = backend.zoned().is_some();
    let is_file = backend.device().file(Operation::Read).is_some();
    let path = DataPath::choose(options.path, features, zoned, is_file, options.unprivileged)?;
    need(features, feature::ZONED, zoned, "zones (CONFIG_BLK_DEV_ZONED)", "6.6")?;
    let recovery = feature::USER_RECOVERY | feature::USER_RECOVERY_REISSUE;
    let recovers = options.recovery && !options.unprivileged;
    need(features, recovery, recovers, "user recovery", "6.1")?;
    need(features, feature::UNPRIVILEGED_DEV, options.unprivileged, "unprivileged devices", "6.3")?;
    let wanted = [
        (path.features(), true),
        (feature::ZONED, zoned),
        (recovery, recovers),
        (feature::UNPRIVILEGED_DEV, options.unprivileged),
    ];
    let flags = wanted.iter().filter(|(_, wanted)| *wanted).fold(0, |flags, (bits, _)| flags | bits);
    Ok(DeviceRecord {
        queues: options.queues,
        depth: options.depth,
        max_io_bytes: MAX_IO_BYTES,
        number: options.number.unwrap_or(ControlCommand::ANY_DEVICE),
        flags,
        server_flags: options.content,
        ..DeviceRecord::default()
    })
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
fn wait_for_death(driver: &mut dyn Driver, number: u32) -> Result<DeviceRecord, UblkError> {
    let end = Instant::now() + PATIENCE;
    loop {
        let record = driver.info(number)?;
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

pub(crate) fn block_path(number: u32) -> PathBuf {
    format!("/dev/ublkb{number}").into()
}

#[cfg(test)]
mod tests;
