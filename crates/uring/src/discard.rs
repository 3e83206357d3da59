//! Giving blocks back: holes in files, `BLKDISCARD` on block devices.

use std::os::fd::BorrowedFd;

use f2fs_device::{BLOCK_SIZE, DeviceErrorKind};
use rustix::{
    fs::FallocateFlags,
    io::Errno,
    ioctl::{Setter, opcode},
};

use crate::sysfs;

/// `BLKDISCARD` of `<linux/fs.h>`: `_IO(0x12, 119)`, which takes a pointer to (offset, length) in bytes.
const BLKDISCARD: rustix::ioctl::Opcode = opcode::none(0x12, 119);

/// The flags that make `fallocate` a discard.
pub(crate) const PUNCH: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);

/// Whether blocks can be given back. For a file that is tried beyond its end, where it changes nothing.
pub(crate) fn supported(fd: BorrowedFd<'_>, block_device: bool, rdev: u64, bytes: u64) -> bool {
    if block_device {
        return queue_takes_discards(rdev);
    }
    let beyond = bytes.next_multiple_of(BLOCK_SIZE as u64);
    rustix::fs::fallocate(fd, PUNCH, beyond, BLOCK_SIZE as u64).is_ok()
}

fn queue_takes_discards(rdev: u64) -> bool {
    sysfs::queue_limit(rdev, "discard_max_bytes").is_some_and(|bytes| bytes > 0)
}

/// Gives `bytes` bytes at `offset` back.
pub(crate) fn run(fd: BorrowedFd<'_>, block_device: bool, offset: u64, bytes: u64) -> Result<(), DeviceErrorKind> {
    loop {
        let result =
            if block_device { blkdiscard(fd, offset, bytes) } else { rustix::fs::fallocate(fd, PUNCH, offset, bytes) };
        match result {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP) => return Err(DeviceErrorKind::Unsupported),
            Err(errno) => return Err(DeviceErrorKind::from_errno(errno.raw_os_error())),
        }
    }
}

fn blkdiscard(fd: BorrowedFd<'_>, offset: u64, bytes: u64) -> rustix::io::Result<()> {
    // SAFETY: BLKDISCARD is a valid opcode and reads two u64 through the pointer that `Setter` passes.
    let range = unsafe { Setter::<BLKDISCARD, [u64; 2]>::new([offset, bytes]) };
    // SAFETY: the ioctl reads `range` only during the call and touches no other memory of this process; the descriptor
    // is a block device opened for writing.
    unsafe { rustix::ioctl::ioctl(fd, range) }
}
