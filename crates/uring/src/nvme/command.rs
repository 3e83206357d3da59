//! Commands to a namespace and its controller, as the kernel takes them: by an ioctl, or as an entry of a ring.
//!
//! The layouts are those of `<linux/nvme_ioctl.h>`, the numbers of commands those of the NVM Express specifications.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;

use f2fs_device::{AlignedBuf, DeviceErrorKind, NvmeStatus};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, opcode};

/// Commands of the NVM command set.
pub(super) const FLUSH: u8 = 0x00;
pub(super) const WRITE: u8 = 0x01;
pub(super) const READ: u8 = 0x02;
pub(super) const WRITE_ZEROES: u8 = 0x08;
pub(super) const DATASET_MANAGEMENT: u8 = 0x09;
/// The admin command that describes a controller or a namespace.
const IDENTIFY: u8 = 0x06;

/// Of the twelfth word of a write: it is durable when it completes.
pub(super) const FORCE_UNIT_ACCESS: u32 = 1 << 30;
/// Of the eleventh word of a dataset management: the ranges are deallocated.
const DEALLOCATE: u32 = 1 << 2;

/// `NVME_URING_CMD_IO` and `NVME_URING_CMD_IO_VEC`.
pub(super) const RING_IO: u32 = opcode::read_write::<Command>(b'N', 0x80) as u32;
pub(super) const RING_IO_VECTORS: u32 = opcode::read_write::<Command>(b'N', 0x81) as u32;
/// `NVME_IOCTL_ADMIN64_CMD`, `NVME_IOCTL_IO64_CMD`, `NVME_IOCTL_IO64_CMD_VEC`.
const ADMIN: Opcode = opcode::read_write::<Call>(b'N', 0x47);
const IO: Opcode = opcode::read_write::<Call>(b'N', 0x48);
const IO_VECTORS: Opcode = opcode::read_write::<Call>(b'N', 0x49);
/// `NVME_IOCTL_ID`.
const ID: Opcode = opcode::none(b'N', 0x40);

/// `struct nvme_uring_cmd`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_length: u32,
    /// Bytes, or vectors.
    length: u32,
    words_10_15: [u32; 6],
    /// Milliseconds; 0 stands for the kernel's limit.
    timeout: u32,
    reserved_2: u32,
}

/// `struct nvme_passthru_cmd64`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Call {
    command: Command,
    result: u64,
}

const _: () = assert!(size_of::<Command>() == 72 && size_of::<Call>() == 80);

/// The kind of memory that a command names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// One piece, or none.
    Plain,
    /// Several pieces, by vectors.
    Vectors,
}

impl Command {
    /// A command without data.
    pub(super) fn new(opcode: u8, namespace: u32, timeout: u32) -> Self {
        Self { opcode, namespace, timeout, ..Self::default() }
    }

    /// Names `sectors` sectors from `first` on, 65536 at most, with these bits in the twelfth word.
    pub(super) fn sectors(mut self, first: u64, sectors: u64, bits: u32) -> Self {
        debug_assert!((1..=1 << 16).contains(&sectors));
        self.words_10_15[0] = first as u32;
        self.words_10_15[1] = (first >> 32) as u32;
        self.words_10_15[2] = (sectors.saturating_sub(1) as u32 & 0xffff) | bits;
        self
    }

    /// Names memory by its address and its bytes, or its vectors and their number.
    pub(super) fn data<T>(mut self, address: *const T, length: usize) -> Self {
        self.address = address.expose_provenance() as u64;
        self.length = length as u32;
        self
    }

    /// All that an entry of a ring carries of it.
    pub(super) fn bytes(&self) -> [u8; 80] {
        let mut bytes = [0; 80];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&[self.opcode, self.flags]);
        put(&self.reserved.to_ne_bytes());
        put(&self.namespace.to_ne_bytes());
        self.words_2_3.iter().for_each(|word| put(&word.to_ne_bytes()));
        put(&self.metadata.to_ne_bytes());
        put(&self.address.to_ne_bytes());
        put(&self.metadata_length.to_ne_bytes());
        put(&self.length.to_ne_bytes());
        self.words_10_15.iter().for_each(|word| put(&word.to_ne_bytes()));
        put(&self.timeout.to_ne_bytes());
        put(&self.reserved_2.to_ne_bytes());
        bytes
    }
}

/// The kernel's answer to a command: its ioctl's result, or that of its completion on a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The device completed it with success.
    Done,
    /// The device completed it with another status.
    Status(NvmeStatus),
    /// It did not come to that.
    Errno(i32),
}

impl Answer {
    /// Zero, a status, or an error number below zero.
    pub(super) fn new(result: i32) -> Self {
        match result {
            0 => Self::Done,
            status if status > 0 => Self::Status(NvmeStatus::new(status as u16)),
            errno => Self::Errno(errno.wrapping_neg()),
        }
    }

    /// Success, or the error.
    pub(super) fn result(self) -> Result<(), DeviceErrorKind> {
        match self {
            Self::Done => Ok(()),
            Self::Status(status) => Err(DeviceErrorKind::Nvme(status)),
            Self::Errno(errno) => Err(DeviceErrorKind::from_errno(errno)),
        }
    }
}

/// An ioctl with a command.
struct Submission {
    opcode: Opcode,
    call: Call,
}

// SAFETY: the three opcodes that `opcode` may have take a pointer to a `struct nvme_passthru_cmd64`, which `Call` is
// laid out as, and read and write only that and the memory that the command names. The maker of a `Submission` answers
// for that memory.
unsafe impl Ioctl for Submission {
    type Output = i32;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.call).cast()
    }

    unsafe fn output_from_ptr(result: IoctlOutput, _: *mut c_void) -> rustix::io::Result<i32> {
        Ok(result)
    }
}

/// Runs a command and waits for it.
///
/// # Safety
/// `call.command` names memory that the kernel may read, or write for a command that reads, until this returns; vectors
/// in it are `struct iovec`.
unsafe fn run(fd: BorrowedFd<'_>, opcode: Opcode, command: Command) -> Answer {
    let submission = Submission { opcode, call: Call { command, result: 0 } };
    // SAFETY: see `Ioctl for Submission`; the caller answers for the memory.
    match unsafe { rustix::ioctl::ioctl(fd, submission) } {
        Ok(status) => Answer::new(status),
        Err(errno) => Answer::Errno(errno.raw_os_error()),
    }
}

/// Runs a command to the namespace that moves no data.
pub(super) fn run_without_data(fd: BorrowedFd<'_>, command: Command) -> Answer {
    debug_assert_eq!((command.address, command.length), (0, 0));
    // SAFETY: the command names no memory: only `data` enters some.
    unsafe { run(fd, IO, command) }
}

/// Runs a read or write of the memory that a flight lends for this entry.
///
/// # Safety
/// `memory` is memory of a request that this thread has for itself until this returns.
pub(super) unsafe fn run_transfer(fd: BorrowedFd<'_>, command: Command, memory: crate::flight::Memory) -> Answer {
    let (command, kind) = with_memory(command, memory);
    // SAFETY: the caller's promise; `Vector` is laid out as `struct iovec`.
    unsafe { run(fd, if kind == Memory::Vectors { IO_VECTORS } else { IO }, command) }
}

fn with_memory(command: Command, memory: crate::flight::Memory) -> (Command, Memory) {
    match memory {
        crate::flight::Memory::One { base, len, .. } => (command.data(base, len), Memory::Plain),
        crate::flight::Memory::Many { vectors, count, .. } => (command.data(vectors, count), Memory::Vectors),
    }
}

/// The operation of a ring and the command, for a read or write of this memory.
pub(super) fn ring_transfer(command: Command, memory: crate::flight::Memory) -> (u32, Command) {
    let (command, kind) = with_memory(command, memory);
    (if kind == Memory::Vectors { RING_IO_VECTORS } else { RING_IO }, command)
}

/// A range of a dataset management.
#[repr(C, align(16))]
struct DatasetRange {
    attributes: u32,
    sectors: u32,
    first: u64,
}

/// Deallocates `sectors` sectors from `first` on.
pub(super) fn deallocate(fd: BorrowedFd<'_>, mut command: Command, first: u64, sectors: u32) -> Answer {
    let range = DatasetRange { attributes: 0, sectors: sectors.to_le(), first: first.to_le() };
    // One range is counted as 0.
    command.words_10_15[1] = DEALLOCATE;
    let command = command.data(&raw const range, size_of::<DatasetRange>());
    // SAFETY: the command reads its data, which is `range`, borrowed until after the call.
    unsafe { run(fd, IO, command) }
}

/// Asks the controller to describe itself or the namespace: `what` is the CNS, `set` the command set.
pub(super) fn identify(fd: BorrowedFd<'_>, namespace: u32, what: u8, set: u8) -> Result<AlignedBuf, DeviceErrorKind> {
    let mut buf = AlignedBuf::new(1);
    let mut command = Command::new(IDENTIFY, namespace, 0);
    command.words_10_15[0] = u32::from(what);
    command.words_10_15[1] = u32::from(set) << 24;
    let command = command.data(buf.as_bytes_mut().as_mut_ptr(), buf.len());
    // SAFETY: an identify writes 4096 bytes, which is the length of `buf`, borrowed until after the call.
    unsafe { run(fd, ADMIN, command) }.result().map(|()| buf)
}

/// The number of the namespace.
pub(super) fn namespace_number(fd: BorrowedFd<'_>) -> rustix::io::Result<u32> {
    struct Id;
    // SAFETY: the opcode is NVME_IOCTL_ID, which takes no argument and returns the number.
    unsafe impl Ioctl for Id {
        type Output = u32;
        const IS_MUTATING: bool = false;

        fn opcode(&self) -> Opcode {
            ID
        }

        fn as_ptr(&mut self) -> *mut c_void {
            std::ptr::null_mut()
        }

        unsafe fn output_from_ptr(result: IoctlOutput, _: *mut c_void) -> rustix::io::Result<u32> {
            u32::try_from(result).map_err(|_| Errno::INVAL)
        }
    }
    // SAFETY: see above.
    unsafe { rustix::ioctl::ioctl(fd, Id) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_kernel() {
        assert_eq!((RING_IO, RING_IO_VECTORS), (0xc048_4e80, 0xc048_4e81));
        assert_eq!((ADMIN, IO, IO_VECTORS, ID), (0xc050_4e47, 0xc050_4e48, 0xc050_4e49, 0x4e40));
    }

    #[test]
    fn fields_lie_where_the_kernel_reads_them() {
        let memory = [0_u8; 4096];
        let command = Command::new(WRITE, 3, 250)
            .sectors(0x1_2345_6789, 65536, FORCE_UNIT_ACCESS)
            .data(memory.as_ptr(), memory.len());
        let bytes = command.bytes();
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((bytes[0], word(4)), (1, 3));
        assert_eq!(u64::from_ne_bytes(bytes[24..32].try_into().unwrap()), memory.as_ptr().addr() as u64);
        assert_eq!((word(32), word(36)), (0, 4096));
        assert_eq!((word(40), word(44), word(48)), (0x2345_6789, 1, 0x4000_ffff));
        assert_eq!((word(64), word(68)), (250, 0));
        assert_eq!(bytes[72..], [0; 8]);
    }

    #[test]
    fn answers_are_a_status_or_an_error_number() {
        assert_eq!(Answer::new(0), Answer::Done);
        assert_eq!(Answer::new(0x4281).result(), Err(DeviceErrorKind::Nvme(NvmeStatus::new(0x4281))));
        assert_eq!(Answer::new(-5).result(), Err(DeviceErrorKind::from_errno(5)));
        assert_eq!(Answer::new(i32::MIN), Answer::Errno(i32::MIN));
    }
}
