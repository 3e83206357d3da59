//! Facts about a block device, from sysfs.

/// A number among the limits of the device's queue, if it has one.
pub(crate) fn queue_limit(rdev: u64, name: &str) -> Option<u64> {
    let (major, minor) = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
    // A partition has no queue of its own; its disk's lies one directory up.
    ["queue", "../queue"].iter().find_map(|queue| {
        let number = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/{queue}/{name}")).ok()?;
        number.trim().parse().ok()
    })
}
