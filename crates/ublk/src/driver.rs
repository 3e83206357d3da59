//! The trait of the driver's side of a server, so that tests can play a driver that refuses. No locks.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    thread,
    time::{Duration, Instant},
};

use rustix::fs::OFlags;

use crate::{
    UblkError,
    abi::{DeviceRecord, Parameters, feature},
    control::{Control, path_of},
};

/// How long it is waited for the files of a device, and for the end of a dead server.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How often something is looked for.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// What a server asks the driver for. Each command is one of [`Control`]'s.
pub(crate) trait Driver: Send {
    /// `ADD_DEV`.
    fn add(&mut self, record: &DeviceRecord) -> Result<DeviceRecord, UblkError>;
    /// `SET_PARAMS`.
    fn set_parameters(&mut self, device: &DeviceRecord, parameters: &Parameters) -> Result<(), UblkError>;
    /// `GET_PARAMS`.
    fn parameters(&mut self, device: &DeviceRecord) -> Result<Parameters, UblkError>;
    /// `GET_DEV_INFO2`.
    fn info(&mut self, number: u32) -> Result<DeviceRecord, UblkError>;
    /// Opens the character device.
    fn open(&mut self, device: &DeviceRecord) -> Result<File, UblkError>;
    /// `START_DEV`; `false` if it was given up because `goes_on` said so.
    fn start(&mut self, device: &DeviceRecord, goes_on: &mut dyn FnMut() -> bool) -> Result<bool, UblkError>;
    /// `STOP_DEV`.
    fn stop(&mut self, device: &DeviceRecord) -> Result<(), UblkError>;
    /// `DEL_DEV`.
    fn delete(&mut self, device: &DeviceRecord) -> Result<(), UblkError>;
    /// `START_USER_RECOVERY`.
    fn start_recovery(&mut self, device: &DeviceRecord) -> Result<(), UblkError>;
    /// `END_USER_RECOVERY`; see [`start`](Self::start).
    fn end_recovery(&mut self, device: &DeviceRecord, goes_on: &mut dyn FnMut() -> bool) -> Result<bool, UblkError>;
}

impl Driver for Control {
    fn add(&mut self, record: &DeviceRecord) -> Result<DeviceRecord, UblkError> {
        Control::add(self, record)
    }

    fn set_parameters(&mut self, device: &DeviceRecord, parameters: &Parameters) -> Result<(), UblkError> {
        Control::set_parameters(self, device, parameters)
    }

    fn parameters(&mut self, device: &DeviceRecord) -> Result<Parameters, UblkError> {
        Control::parameters(self, device)
    }

    fn info(&mut self, number: u32) -> Result<DeviceRecord, UblkError> {
        Control::info(self, number)
    }

    /// The character device may appear a moment after the driver made it, and be busy a moment after a server's death.
    /// Reads and writes of it never wait, but a ring takes the kernel's word for that only if the file is opened so, and
    /// hands them to another thread otherwise. That of an unprivileged device is root's until udev has given it to its
    /// owner.
    fn open(&mut self, device: &DeviceRecord) -> Result<File, UblkError> {
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

    fn start(&mut self, device: &DeviceRecord, goes_on: &mut dyn FnMut() -> bool) -> Result<bool, UblkError> {
        Control::start(self, device, goes_on)
    }

    fn stop(&mut self, device: &DeviceRecord) -> Result<(), UblkError> {
        Control::stop(self, device)
    }

    fn delete(&mut self, device: &DeviceRecord) -> Result<(), UblkError> {
        Control::delete(self, device)
    }

    fn start_recovery(&mut self, device: &DeviceRecord) -> Result<(), UblkError> {
        Control::start_recovery(self, device)
    }

    fn end_recovery(&mut self, device: &DeviceRecord, goes_on: &mut dyn FnMut() -> bool) -> Result<bool, UblkError> {
        Control::end_recovery(self, device, goes_on)
    }
}
