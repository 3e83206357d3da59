//! The descriptors of a queue: requests, in memory that the driver writes.

use std::{fs::File, io, ptr};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::abi::{DESCRIPTORS_STRIDE, Descriptor};

/// The descriptors of a queue, one for each tag.
pub(crate) struct Descriptors {
    start: *const Descriptor,
    tags: u16,
    bytes: usize,
}

impl Descriptors {
    pub(crate) fn map(file: &File, queue: u16, tags: u16) -> io::Result<Self> {
        let bytes = (usize::from(tags) * size_of::<Descriptor>()).next_multiple_of(4096);
        let offset = u64::from(queue) * DESCRIPTORS_STRIDE;
        // SAFETY: a new mapping at an address that the kernel chooses takes no memory from anybody.
        let start = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, offset) }?;
        Ok(Self { start: start.cast_const().cast(), tags, bytes })
    }

    /// The descriptor of a tag that is not the kernel's; of one that does not exist, a request that nobody knows.
    pub(crate) fn get(&self, tag: u16) -> Descriptor {
        if tag >= self.tags {
            return Descriptor { op_flags: u32::MAX, ..Descriptor::default() };
        }
        // SAFETY: the mapping has a descriptor for each tag, and lives as long as this.
        let at = unsafe { self.start.add(tag.into()) };
        // SAFETY: it is mapped and aligned, and any bytes are a descriptor. The driver writes it only while the tag is
        // the kernel's.
        unsafe { at.read_volatile() }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and no reference to it was ever made.
        let _ = unsafe { munmap(self.start.cast_mut().cast(), self.bytes) };
    }
}
