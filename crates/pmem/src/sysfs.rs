//! The kernel's data on a device in sysfs: its bad blocks, and the size of a character device of memory.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

/// Where sysfs is mounted.
pub(crate) const ROOT: &str = "/sys";

/// Bytes of a sector, the unit of `badblocks`, whatever the device has.
const SECTOR: u64 = 512;

/// A device by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceNumber {
    pub(crate) block: bool,
    pub(crate) number: u64,
}

impl DeviceNumber {
    fn directory(self, root: &Path) -> PathBuf {
        let (major, minor) = (rustix::fs::major(self.number), rustix::fs::minor(self.number));
        root.join(if self.block { "dev/block" } else { "dev/char" }).join(format!("{major}:{minor}"))
    }
}

/// A number in a file of sysfs, decimal or with `0x`.
fn number(path: &Path) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
}

/// The entry in sysfs of a character device of memory (`/dev/dax*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DaxDevice {
    /// Bytes.
    pub(crate) size: u64,
    /// Bytes; mappings begin and end at multiples of it.
    pub(crate) align: u64,
}

/// The size and the alignment of a character device of memory; `None` if it is another character device.
pub(crate) fn dax_device(root: &Path, number_of: u64) -> Option<DaxDevice> {
    let directory = DeviceNumber { block: false, number: number_of }.directory(root);
    let subsystem = fs::canonicalize(directory.join("subsystem")).ok()?;
    if subsystem.file_name()? != "dax" {
        return None;
    }
    let size = number(&directory.join("size"))?;
    // Kernels before 5.10 do not say; They use 2 MiB unless asked for 1 GiB.
    let align = number(&directory.join("align")).filter(|align| *align > 0).unwrap_or(2 << 20);
    Some(DaxDevice { size, align })
}

/// The bad bytes of a block device or of a character device of memory, counted from its own beginning. Nothing where
/// the kernel keeps no list.
pub(crate) fn bad_bytes(root: &Path, device: DeviceNumber) -> Vec<Range<u64>> {
    let Ok(directory) = fs::canonicalize(device.directory(root)) else { return Vec::new() };
    // A partition's disk has the list, and so has the region of a character device: one or more directories up.
    let mut above = directory.as_path();
    loop {
        if let Ok(list) = fs::read_to_string(above.join("badblocks")) {
            let begin = if above == directory { 0 } else { begin_within(&directory, above) };
            return parse(&list).into_iter().filter_map(|bad| shift(&bad, begin)).collect();
        }
        match above.parent() {
            Some(parent) if parent.starts_with(root) && parent != root => above = parent,
            _ => return Vec::new(),
        }
    }
}

/// Where a device begins within the one above it that has the list, in bytes.
fn begin_within(directory: &Path, above: &Path) -> u64 {
    if let Some(sectors) = number(&directory.join("start")) {
        return sectors.saturating_mul(SECTOR);
    }
    match (number(&directory.join("resource")), number(&above.join("resource"))) {
        (Some(own), Some(region)) => own.saturating_sub(region),
        _ => 0,
    }
}

/// The part of a range from `begin` on, counted from there.
fn shift(range: &Range<u64>, begin: u64) -> Option<Range<u64>> {
    let end = range.end.checked_sub(begin).filter(|end| *end > 0)?;
    Some(range.start.saturating_sub(begin)..end)
}

/// Lines such as `2048 8`: the first sector, and how many.
fn parse(list: &str) -> Vec<Range<u64>> {
    let line = |line: &str| {
        let (start, count) = line.split_once(' ')?;
        let (start, count): (u64, u64) = (start.trim().parse().ok()?, count.trim().parse().ok()?);
        let start = start.saturating_mul(SECTOR);
        Some(start..start.saturating_add(count.saturating_mul(SECTOR)))
    };
    list.lines().filter_map(line).filter(|range| !range.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(root: &Path, from: &str, to: &str) {
        let from = root.join(from);
        fs::create_dir_all(from.parent().unwrap()).unwrap();
        symlink(root.join(to), from).unwrap();
    }

    fn one(range: Range<u64>) -> Vec<Range<u64>> {
        std::iter::once(range).collect()
    }

    #[test]
    fn lists_of_bad_sectors() {
        assert_eq!(parse(""), []);
        assert_eq!(parse("8 2\n2048 1\n"), [4096..5120, 1_048_576..1_049_088]);
        assert_eq!(parse("x\n8\n8 0\n"), []);
        assert_eq!(parse(&format!("{} 1", u64::MAX)), []);
        assert_eq!(shift(&(10..20), 15), Some(0..5));
        assert_eq!(shift(&(10..20), 20), None);
    }

    #[test]
    fn a_disk_its_partition_and_a_dax_device() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        put(&root.join("devices/nd/pmem0/badblocks"), "8 2\n300 1\n");
        put(&root.join("devices/nd/pmem0/pmem0p1/start"), "100\n");
        link(&root, "dev/block/259:0", "devices/nd/pmem0");
        link(&root, "dev/block/259:1", "devices/nd/pmem0/pmem0p1");
        let block = |minor| DeviceNumber { block: true, number: rustix::fs::makedev(259, minor) };
        assert_eq!(bad_bytes(&root, block(0)), [4096..5120, 153_600..154_112]);
        assert_eq!(bad_bytes(&root, block(1)), one(102_400..102_912));
        assert_eq!(bad_bytes(&root, block(2)), []);

        put(&root.join("devices/nd/region0/badblocks"), "16384 1\n");
        put(&root.join("devices/nd/region0/resource"), "0x20000000\n");
        put(&root.join("devices/nd/region0/dax0.0/dax0.0/resource"), "0x20400000\n");
        put(&root.join("devices/nd/region0/dax0.0/dax0.0/size"), "260046848\n");
        put(&root.join("devices/nd/region0/dax0.0/dax0.0/align"), "2097152\n");
        fs::create_dir_all(root.join("bus/dax")).unwrap();
        link(&root, "devices/nd/region0/dax0.0/dax0.0/subsystem", "bus/dax");
        link(&root, "dev/char/252:0", "devices/nd/region0/dax0.0/dax0.0");
        let number = rustix::fs::makedev(252, 0);
        assert_eq!(dax_device(&root, number), Some(DaxDevice { size: 260_046_848, align: 2 << 20 }));
        assert_eq!(bad_bytes(&root, DeviceNumber { block: false, number }), one(4_194_304..4_194_816));

        fs::create_dir_all(root.join("bus/tty")).unwrap();
        link(&root, "devices/tty/subsystem", "bus/tty");
        link(&root, "dev/char/4:0", "devices/tty");
        assert_eq!(dax_device(&root, rustix::fs::makedev(4, 0)), None);
    }
}
