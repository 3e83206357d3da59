//! Where a file's bytes lie on its disk: asked only if the disk has bad blocks.

use std::{ops::Range, os::fd::BorrowedFd};

use rustix::ioctl::{Updater, opcode};

/// Extents that one call gives.
const COUNT: usize = 64;

/// `struct fiemap` of `<linux/fiemap.h>`, its head.
#[derive(Clone, Copy)]
#[repr(C)]
struct Head {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
}

/// `struct fiemap_extent`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_words: [u32; 3],
}

#[repr(C)]
struct Map {
    head: Head,
    extents: [Extent; COUNT],
}

const _: () = assert!(size_of::<Head>() == 32 && size_of::<Extent>() == 56);

/// `FS_IOC_FIEMAP`: `_IOWR('f', 11, struct fiemap)`, of which only the head counts.
const FIEMAP: rustix::ioctl::Opcode = opcode::read_write::<Head>(b'f', 11);

/// `FIEMAP_EXTENT_LAST`.
const LAST: u32 = 1;

/// The bytes of the file's first `bytes` that lie among those of its disk, by ranges of the file.
///
/// # Errors
/// Of a file system that does not say where files lie.
pub(crate) fn within(fd: BorrowedFd<'_>, bytes: u64, disk: &[Range<u64>]) -> rustix::io::Result<Vec<Range<u64>>> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < bytes {
        let none = Extent { logical: 0, physical: 0, length: 0, reserved: [0; 2], flags: 0, reserved_words: [0; 3] };
        let head = Head { start, length: bytes - start, flags: 0, mapped: 0, count: COUNT as u32, reserved: 0 };
        let mut map = Map { head, extents: [none; COUNT] };
        // SAFETY: the opcode is that of FIEMAP, which reads the head, and writes it and as many extents as the head
        // says there is room for: those of `Map`.
        let update = unsafe { Updater::<FIEMAP, Map>::new(&mut map) };
        // SAFETY: the call has access to `map` alone, which it is lent, and to none after it returns.
        unsafe { rustix::ioctl::ioctl(fd, update) }?;
        let extents = &map.extents[..(map.head.mapped as usize).min(COUNT)];
        let Some(last) = extents.last() else { break };
        for extent in extents {
            found.extend(disk.iter().filter_map(|bad| overlap(extent, bad)));
        }
        if last.flags & LAST != 0 {
            break;
        }
        start = last.logical.saturating_add(last.length).max(start + 1);
    }
    Ok(found)
}

/// The part of an extent that is bad, as bytes of the file.
fn overlap(extent: &Extent, bad: &Range<u64>) -> Option<Range<u64>> {
    let begin = bad.start.max(extent.physical);
    let end = bad.end.min(extent.physical.saturating_add(extent.length));
    let place = |physical: u64| extent.logical + (physical - extent.physical);
    (begin < end).then(|| place(begin)..place(end))
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd};

    use super::*;

    #[test]
    fn extents_of_a_file_are_where_its_disk_has_them() {
        let dir = crate::tests::on_disk();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        let whole = within(file.as_fd(), 1 << 20, std::slice::from_ref(&(0..u64::MAX))).unwrap();
        let covered: u64 = whole.iter().map(|range| range.end - range.start).sum();
        assert_eq!((whole[0].start, covered), (0, 1 << 20), "{whole:?}");
        assert_eq!(within(file.as_fd(), 1 << 20, &[]).unwrap(), []);
    }

    #[test]
    fn overlaps_are_bytes_of_the_file() {
        let extent =
            Extent { logical: 100, physical: 5000, length: 50, reserved: [0; 2], flags: 0, reserved_words: [0; 3] };
        assert_eq!(overlap(&extent, &(5010..5020)), Some(110..120));
        assert_eq!(overlap(&extent, &(4000..5001)), Some(100..101));
        assert_eq!(overlap(&extent, &(5049..9000)), Some(149..150));
        assert_eq!([overlap(&extent, &(0..5000)), overlap(&extent, &(5050..5051))], [None, None]);
    }
}
