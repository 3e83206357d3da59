//! Mapped memory: the address range that a region's bytes lie in.
//!
//! No locks. Threads share the range through raw pointers; only `copy.rs` touches the bytes, so that no reference to
//! them is ever made.

use std::{ffi::c_void, io, ops::Range, os::fd::BorrowedFd, ptr::NonNull};

use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags};

use crate::{
    LINE, RegionError, WriteBack, copy, cpu,
    region::{check_range, lines, split_lines},
};

/// A range of addresses that ends with it.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    writable: bool,
    how: WriteBack,
}

// SAFETY: the range belongs to the process, not to a thread, and `Mapping` owns it.
unsafe impl Send for Mapping {}

// SAFETY: all access goes through `copy.rs`, which makes no reference to the bytes and moves them by volatile accesses
// and machine instructions, as is right for memory that somebody else changes meanwhile. Who mixes loads with stores of
// the same bytes gets a mixture of words, as the trait says, and never more than bytes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes (at least 1) of a file, shared, with `flags` (`MAP_SHARED` or `MAP_SHARED_VALIDATE |
    /// MAP_SYNC`).
    pub(crate) fn of_file(fd: BorrowedFd<'_>, len: usize, writable: bool, flags: MapFlags) -> io::Result<Mapping> {
        // SAFETY: no address is asked for, so the range is a new one that nobody else uses.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection(writable), flags, fd, 0) }?;
        Self::new(start, len, writable)
    }

    /// Maps `len` bytes (at least 1) of memory that read as zeros.
    pub(crate) fn of_memory(len: usize) -> io::Result<Mapping> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: no address is asked for, so the range is a new one that nobody else uses.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, protection(true), flags) }?;
        Self::new(start, len, true)
    }

    fn new(start: *mut c_void, len: usize, writable: bool) -> io::Result<Mapping> {
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len, writable, how: WriteBack::detect() })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    fn at(&self, offset: usize) -> *mut u8 {
        self.start.as_ptr().wrapping_add(offset)
    }

    fn check_store(&self, offset: usize, bytes: usize) -> Result<Range<usize>, RegionError> {
        let range = check_range(self.len, offset, bytes)?;
        if self.writable { Ok(range) } else { Err(RegionError::ReadOnly) }
    }

    pub(crate) fn load(&self, offset: usize, into: &mut [u8]) -> Result<(), RegionError> {
        let range = check_range(self.len, offset, into.len())?;
        // SAFETY: the range was checked to lie in the mapping, which is readable; `into` is borrowed mutably and, as
        // memory of Rust, no part of the mapping.
        unsafe { copy::load(into.as_mut_ptr(), self.at(range.start), range.len()) };
        Ok(())
    }

    pub(crate) fn store(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        let range = self.check_store(offset, bytes.len())?;
        // SAFETY: the range was checked to lie in the mapping, which is writable; `bytes` is borrowed, and no part of
        // the mapping.
        unsafe { copy::store(self.at(range.start), bytes.as_ptr(), range.len()) };
        Ok(())
    }

    pub(crate) fn store_nontemporal(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        let range = self.check_store(offset, bytes.len())?;
        let [before, whole, behind] = split_lines(&range);
        for part in [before, behind] {
            if !part.is_empty() {
                self.store(part.start, &bytes[part.start - offset..part.end - offset])?;
                self.write_back(part.start, part.len())?;
            }
        }
        let from = bytes[whole.start - offset..].as_ptr();
        // SAFETY: whole lines of the checked range; the mapping begins at a page, so that a line's offset is a line's
        // address.
        unsafe { copy::store_lines_nontemporal(self.at(whole.start), from, whole.len() / LINE) };
        Ok(())
    }

    pub(crate) fn expect_store(&self, offset: usize) {
        cpu::expect_store(self.at(offset));
    }

    pub(crate) fn write_back(&self, offset: usize, bytes: usize) -> Result<(), RegionError> {
        let lines = lines(&check_range(self.len, offset, bytes)?);
        // SAFETY: the range was checked; its last line may go on behind it, in its last page, which is mapped as a
        // whole.
        unsafe { cpu::write_back(self.at(lines.start * LINE), lines.len(), self.how) };
        Ok(())
    }

    /// Makes every page ready for stores. Where the kernel cannot do that, stores do it one by one.
    pub(crate) fn touch(&self) {
        if self.writable {
            // SAFETY: the range is mapped for writing, and the advice changes none of its bytes.
            let _ = unsafe { rustix::mm::madvise(self.start.as_ptr().cast(), self.len, Advice::LinuxPopulateWrite) };
        }
    }

    /// Waits until the kernel has written all changed pages to the file's disk.
    pub(crate) fn msync(&self) -> io::Result<()> {
        // SAFETY: the range is mapped, and `msync` changes no memory of the process.
        Ok(unsafe { rustix::mm::msync(self.start.as_ptr().cast(), self.len, MsyncFlags::SYNC) }?)
    }
}

fn protection(writable: bool) -> ProtFlags {
    if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `mmap` with this length, and whoever could use it borrows `self`. It fails
        // for ranges that are no mappings only.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
