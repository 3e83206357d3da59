//! Facts about a block device, from sysfs.

/// A number among the limits of the device's queue, if it has one.
pub(crate) fn queue_limit(rdev: u64, name: &str) -> Option<u64> {
    queue_text(rdev, name)?.parse().ok()
}

/// A word or number of the device's queue, if it has it.
pub(crate) fn queue_text(rdev: u64, name: &str) -> Option<String> {
    let (major, minor) = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
    // A partition has no queue of its own; its disk's lies one directory up.
    ["queue", "../queue"].iter().find_map(|queue| {
        let text = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/{queue}/{name}")).ok()?;
        Some(text.trim().to_owned())
    })
}

/// Whether the device, a disk or a partition, is set to be read only.
pub(crate) fn is_read_only(rdev: u64) -> bool {
    let (major, minor) = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
    std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/ro")).is_ok_and(|text| text.trim() == "1")
}
