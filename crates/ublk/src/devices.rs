//! The devices of this machine, of all servers.

use std::{fmt, fs};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use crate::{
    DataPath, UblkError,
    abi::{DeviceRecord, feature, state},
    control::Control,
    server::block_path,
};

/// The states of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It has no block device.
    Dead,
    /// It is served.
    Live,
    /// Its server is gone, and its requests wait for another one.
    Waiting,
    /// Its server is gone, and its requests fail.
    Failing,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dead => "dead",
            Self::Live => "live",
            Self::Waiting => "waiting",
            Self::Failing => "failing",
        })
    }
}

/// A device as the driver knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// N of `/dev/ublkbN`.
    pub number: u32,
    /// Its state.
    pub state: State,
    /// The process that serves it.
    pub server: i32,
    /// Its queues.
    pub queues: u16,
    /// Requests of a queue.
    pub depth: u16,
    /// Size in sectors of 512 bytes.
    pub sectors: u64,
    /// Whether it has zones.
    pub zoned: bool,
    /// Whether another server can take it over.
    pub recoverable: bool,
    /// How data move to it and from it.
    pub path: DataPath,
    /// The user who can open it, beside root, if it is an unprivileged one.
    pub owner: Option<u32>,
}

/// The names of this kernel's driver's features.
///
/// # Errors
/// See [`UblkError`].
pub fn features() -> Result<Vec<String>, UblkError> {
    let (_, bits) = Control::open()?;
    let name = |bit: usize| feature::NAMES.get(bit).map_or_else(|| format!("bit-{bit}"), |name| (*name).to_owned());
    Ok((0..64).filter(|&bit| bits >> bit & 1 != 0).map(name).collect())
}

/// All devices, by number.
///
/// # Errors
/// See [`UblkError`]. Devices that go away meanwhile are left out, and those of others if this process is not root's.
pub fn list() -> Result<Vec<Device>, UblkError> {
    let (mut control, _) = Control::open()?;
    let directory = fs::read_dir("/dev").map_err(|source| UblkError::File { path: "/dev".into(), source })?;
    let number = |name: &str| name.strip_prefix("ublkc")?.parse().ok();
    let mut numbers: Vec<u32> =
        directory.flatten().filter_map(|entry| number(&entry.file_name().to_string_lossy())).collect();
    numbers.sort_unstable();
    let mut devices = Vec::new();
    for number in numbers {
        match control.info(number).and_then(|record| Ok((record, control.parameters(&record)?.sectors))) {
            Ok((record, sectors)) => devices.push(device(&record, sectors)),
            Err(UblkError::NoSuchDevice { .. } | UblkError::NoRights { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(devices)
}

fn device(record: &DeviceRecord, sectors: u64) -> Device {
    let state = match record.state {
        state::LIVE => State::Live,
        state::QUIESCED => State::Waiting,
        state::FAIL_IO => State::Failing,
        _ => State::Dead,
    };
    Device {
        number: record.number,
        state,
        server: record.server,
        queues: record.queues,
        depth: record.depth,
        sectors,
        zoned: record.flags & feature::ZONED != 0,
        recoverable: record.flags & feature::USER_RECOVERY != 0,
        path: DataPath::of(record.flags),
        owner: (record.flags & feature::UNPRIVILEGED_DEV != 0).then_some(record.owner_uid),
    }
}

/// Deletes a device of any server. Without `force`, not one that is mounted, or that a program or another driver has
/// opened for itself alone. That a program merely reads or writes it the kernel does not say.
///
/// # Errors
/// See [`UblkError`].
pub fn delete(number: u32, force: bool) -> Result<(), UblkError> {
    let (mut control, _) = Control::open()?;
    let record = control.info(number)?;
    let path = block_path(number);
    // An exclusive opening fails while the device is mounted or opened like this, and reads nothing. Any other
    // error says nothing of its use.
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    let in_use = || match record.state {
        state::LIVE => matches!(rustix::fs::open(&path, flags, Mode::empty()), Err(Errno::BUSY)),
        // An opening might wait for a server.
        _ => is_mounted(number),
    };
    if !force && in_use() {
        return Err(UblkError::InUse { path });
    }
    control.stop(&record)?;
    match control.delete(&record) {
        Err(UblkError::NoSuchDevice { .. }) => Ok(()),
        other => other,
    }
}

/// Whether the device is mounted, as far as this process sees mounts.
fn is_mounted(number: u32) -> bool {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    lists(&read("/proc/self/mountinfo".into()), read(format!("/sys/block/ublkb{number}/dev")).trim())
}

/// Whether a list of mounts has this device (`major:minor`, in the third column).
fn lists(mounts: &str, device: &str) -> bool {
    !device.is_empty() && mounts.lines().any(|line| line.split(' ').nth(2) == Some(device))
}

#[cfg(test)]
mod tests {
    use super::lists;

    #[test]
    fn mounts_are_told_by_their_device() {
        let mounts = "22 1 259:0 / / rw - ext4 /dev/root rw\n31 22 259:12 / /mnt rw - ext4 /dev/ublkb0 rw\n";
        assert!(lists(mounts, "259:12") && lists(mounts, "259:0"));
        assert!(!lists(mounts, "259:1") && !lists(mounts, "") && !lists("", "259:0"));
    }
}
