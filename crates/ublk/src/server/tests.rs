//! Servers of a driver that is played: what they ask it for when something fails.

use std::io;

use f2fs_device::{MemoryDevice, ZoneLayout, ZonedDevice};
use f2fs_sync::Mutex;

use super::*;
use crate::abi::Parameters;

type Asked = PlainArc<Mutex<Vec<&'static str>>>;

/// A driver with one device whose server has died. It remembers what it was asked for, and its queues take no commands.
struct Played {
    asked: Asked,
    depth: u16,
    /// Refused with this error number.
    refused: (&'static str, i32),
    /// The number of what the device is made of.
    content: u64,
}

impl Played {
    fn new(depth: u16, refused: (&'static str, i32)) -> (Box<Self>, Asked) {
        let asked = Asked::default();
        (Box::new(Self { asked: PlainArc::clone(&asked), depth, refused, content: 0 }), asked)
    }

    fn ask(&self, command: &'static str) -> Result<(), UblkError> {
        self.asked.lock().push(command);
        let (refused, number) = self.refused;
        if command != refused {
            return Ok(());
        }
        Err(UblkError::Refused { command, number: 7, source: io::Error::from_raw_os_error(number) })
    }

    fn wait(&self, command: &'static str, goes_on: &mut dyn FnMut() -> bool) -> Result<bool, UblkError> {
        self.ask(command)?;
        while goes_on() {
            thread::sleep(TICK);
        }
        Ok(false)
    }
}

impl Driver for Played {
    fn add(&mut self, record: &DeviceRecord) -> Result<DeviceRecord, UblkError> {
        self.ask("add").map(|()| DeviceRecord { number: 7, ..*record })
    }

    fn set_parameters(&mut self, _: &DeviceRecord, _: &Parameters) -> Result<(), UblkError> {
        Ok(())
    }

    fn parameters(&mut self, device: &DeviceRecord) -> Result<Parameters, UblkError> {
        Ok(backend().parameters(device.max_io_bytes))
    }

    fn info(&mut self, number: u32) -> Result<DeviceRecord, UblkError> {
        let (state, flags) = (state::QUIESCED, feature::USER_RECOVERY);
        let record = DeviceRecord { number, queues: 2, depth: self.depth, state, flags, ..DeviceRecord::default() };
        Ok(DeviceRecord { max_io_bytes: 4096, server_flags: self.content, ..record })
    }

    fn open(&mut self, _: &DeviceRecord) -> Result<File, UblkError> {
        self.ask("open")?;
        File::open(NULL).map_err(|source| UblkError::File { path: NULL.into(), source })
    }

    fn start(&mut self, _: &DeviceRecord, goes_on: &mut dyn FnMut() -> bool) -> Result<bool, UblkError> {
        self.wait("start", goes_on)
    }

    fn stop(&mut self, _: &DeviceRecord) -> Result<(), UblkError> {
        self.ask("stop")
    }

    fn delete(&mut self, _: &DeviceRecord) -> Result<(), UblkError> {
        self.ask("delete")
    }

    fn start_recovery(&mut self, _: &DeviceRecord) -> Result<(), UblkError> {
        self.ask("start recovery")
    }

    fn end_recovery(&mut self, _: &DeviceRecord, goes_on: &mut dyn FnMut() -> bool) -> Result<bool, UblkError> {
        self.wait("end recovery", goes_on)
    }
}

fn backend() -> Backend {
    Backend::Plain(PlainArc::new(MemoryDevice::new(64)))
}

/// What a recovery that fails asked for, and its error.
fn failed(depth: u16, refused: (&'static str, i32)) -> (Vec<&'static str>, String) {
    let (driver, asked) = Played::new(depth, refused);
    let error = Server::recover_by(driver, 7, &backend(), 0).unwrap_err().to_string();
    let asked = asked.lock().clone();
    (asked, error)
}

#[test]
fn a_recovery_that_fails_leaves_the_device_waiting() {
    let (asked, error) = failed(4, ("start recovery", 16));
    assert_eq!(asked, ["start recovery"], "{error}");
    let (asked, error) = failed(4, ("open", 24));
    assert_eq!(asked, ["start recovery", "open"], "{error}");
    assert!(error.contains("Too many open files"), "{error}");
    let (asked, error) = failed(4, ("end recovery", 16));
    assert_eq!(asked, ["start recovery", "open", "end recovery"], "{error}");
    // The queues find no driver behind the file.
    let (asked, error) = failed(4, ("", 0));
    assert_eq!(asked, ["start recovery", "open", "end recovery"], "{error}");
    assert!(error.starts_with("queue 0 ended: "), "{error}");
}

#[test]
fn what_a_recovery_lacks_it_finds_out_before_the_driver_is_told() {
    // There is no ring for so many.
    let (asked, error) = failed(40_000, ("", 0));
    assert!(asked.is_empty(), "{asked:?}");
    assert!(error.starts_with("queue 0 ended: "), "{error}");
}

#[test]
fn a_recovery_goes_on_where_one_has_failed_before() {
    let (asked, _) = failed(4, ("start recovery", errno::EINVAL));
    assert_eq!(asked, ["start recovery", "open", "end recovery"]);
}

#[test]
fn an_added_device_whose_server_fails_is_deleted_once() {
    let (driver, asked) = Played::new(4, ("", 0));
    let wanted = DeviceRecord { queues: 2, depth: 4, max_io_bytes: 4096, ..DeviceRecord::default() };
    let error = Server::add_by(driver, &wanted, &backend(), Options::BORDER).unwrap_err().to_string();
    assert!(error.starts_with("queue 0 ended: "), "{error}");
    assert_eq!(*asked.lock(), ["add", "open", "start", "stop", "delete"]);
}

/// The driver is told of nothing then, and the device goes on waiting. Without a number on one side nobody can tell.
#[test]
fn a_device_is_recovered_with_what_it_was_made_of() {
    for (made_of, content, is_other) in [(5, 6, true), (5, 5, false), (0, 6, false), (5, 0, false)] {
        let (mut driver, asked) = Played::new(4, ("start recovery", 16));
        driver.content = made_of;
        let error = Server::recover_by(driver, 7, &backend(), content).unwrap_err();
        assert_eq!(matches!(error, UblkError::OtherContent { number: 7 }), is_other, "{error}");
        assert_eq!(asked.lock().is_empty(), is_other);
    }
}

/// The driver keeps what the device is made of, for whoever recovers it.
#[test]
fn the_driver_is_told_what_is_wanted() {
    let zones = ZonedDevice::new(MemoryDevice::new(64), ZoneLayout::new(16)).unwrap();
    let zoned = Backend::Zoned(PlainArc::new(zones));
    let options = Options::default().with_number(Some(3)).with_queues(2).with_depth(16).with_content(5);
    let record = wanted(options.with_recovery(true), &backend(), u64::MAX).unwrap();
    assert_eq!((record.number, record.queues, record.depth, record.server_flags), (3, 2, 16, 5));
    assert_eq!(record.flags, feature::USER_RECOVERY | feature::USER_RECOVERY_REISSUE);
    let record = wanted(Options::default(), &zoned, u64::MAX).unwrap();
    assert_eq!((record.number, record.server_flags), (ControlCommand::ANY_DEVICE, 0));
    assert_eq!(record.flags, feature::ZONED | feature::USER_COPY);
    // One that belongs to a user cannot be recovered, nor have its data copied by the server.
    let of_a_user = options.with_recovery(true).with_unprivileged(true);
    assert_eq!(wanted(of_a_user, &backend(), u64::MAX).unwrap().flags, feature::UNPRIVILEGED_DEV);
    assert!(matches!(
        wanted(of_a_user.with_path(Some(DataPath::User)), &backend(), u64::MAX),
        Err(UblkError::RootAlone)
    ));
    assert!(matches!(wanted(options.with_recovery(true), &backend(), 0), Err(UblkError::TooOld { .. })));
}
