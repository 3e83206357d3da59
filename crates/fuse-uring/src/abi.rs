//! The structures and numbers of the kernel's interface, as far as the rings need them.
//!
//! Source: the kernel's `include/uapi/linux/fuse.h`, Linux 6.14 (protocol 7.42). All integers are of the machine's own
//! byte order, all structures without gaps.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The command that gives an entry to the kernel for the first time (`FUSE_IO_URING_CMD_REGISTER`).
pub(crate) const REGISTER: u32 = 1;
/// The command that answers the request of an entry and gives the entry back (`FUSE_IO_URING_CMD_COMMIT_AND_FETCH`).
pub(crate) const COMMIT_AND_FETCH: u32 = 2;

/// The bytes of an SQE that a command has for itself.
pub(crate) const COMMAND_BYTES: usize = 80;

/// What a command says (`fuse_uring_cmd_req`). Later kernels have more fields behind these; they are 0 for us.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Command {
    pub(crate) flags: u64,
    pub(crate) commit_id: u64,
    pub(crate) qid: u16,
    pub(crate) padding: [u8; 6],
}

impl Command {
    pub(crate) fn new(queue: u16, commit_id: u64) -> Command {
        Command { flags: 0, commit_id, qid: queue, padding: [0; 6] }
    }

    pub(crate) fn to_bytes(self) -> [u8; COMMAND_BYTES] {
        let mut bytes = [0; COMMAND_BYTES];
        bytes[..size_of::<Command>()].copy_from_slice(self.as_bytes());
        bytes
    }
}

/// Who asks for what (`fuse_in_header`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
#[non_exhaustive]
pub struct RequestHeader {
    /// Bytes of the whole request.
    pub len: u32,
    /// What is asked for.
    pub opcode: u32,
    /// The number of the request.
    pub unique: u64,
    /// The inode that it is about.
    pub nodeid: u64,
    /// The user who asks.
    pub uid: u32,
    /// The group of that user.
    pub gid: u32,
    /// The process that asks.
    pub pid: u32,
    /// Length of extensions, in units of 8 bytes.
    pub total_extlen: u16,
    /// Zero.
    pub padding: u16,
}

/// How it went (`fuse_out_header`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct AnswerHeader {
    pub(crate) len: u32,
    pub(crate) error: i32,
    pub(crate) unique: u64,
}

/// What the ring adds to a request and to its answer (`fuse_uring_ent_in_out`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct EntryHeader {
    pub(crate) flags: u64,
    /// What the command says that answers this request.
    pub(crate) commit_id: u64,
    /// Bytes of the payload, in either direction.
    pub(crate) payload_sz: u32,
    pub(crate) padding: u32,
    pub(crate) reserved: u64,
}

/// The bytes of the structure that an operation begins with.
pub(crate) const ARGUMENT_BYTES: usize = 128;

/// The memory of an entry beside its payload (`fuse_uring_req_header`).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Headers {
    /// A [`RequestHeader`], and then an [`AnswerHeader`].
    pub(crate) in_out: [u8; 128],
    pub(crate) op_in: [u8; ARGUMENT_BYTES],
    pub(crate) entry: EntryHeader,
}

const _: () = assert!(size_of::<Command>() == 24);
const _: () = assert!(size_of::<RequestHeader>() == 40);
const _: () = assert!(size_of::<AnswerHeader>() == 16);
const _: () = assert!(size_of::<EntryHeader>() == 32);
const _: () = assert!(size_of::<Headers>() == 288);
