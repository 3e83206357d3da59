//! A request on its way to a device, and what comes back.

use std::mem;

use crate::{AlignedBuf, DeviceError, DeviceErrorKind, Operation};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Fill the buffers.
    Read,
    /// Store the buffers.
    Write,
    /// Store the buffers; they are durable when the request completes (forced unit access). Nothing else becomes
    /// durable.
    WriteFua,
    /// Give `blocks` blocks back; what a later read of them sees is undefined until they are written again.
    Discard {
        /// How many blocks.
        blocks: u64,
    },
}

impl Op {
    /// The name of this in errors and fault rules.
    #[must_use]
    pub fn operation(self) -> Operation {
        match self {
            Self::Read => Operation::Read,
            Self::Write => Operation::Write,
            Self::WriteFua => Operation::WriteFua,
            Self::Discard { .. } => Operation::Discard,
        }
    }
}

/// One contiguous run of blocks on the device, and the (scattered) memory for it. A request of no blocks completes at
/// once.
#[derive(Clone, Debug)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// The first block on the device.
    pub start: u64,
    /// Memory, in the order of the blocks. Empty for a discard.
    pub bufs: Vec<AlignedBuf>,
    /// The caller's own mark; devices hand it back unread.
    pub tag: u64,
}

impl Request {
    /// Reads `buf.blocks()` blocks from `start`.
    #[must_use]
    pub fn read(start: u64, buf: AlignedBuf) -> Self {
        Self::vectored(Op::Read, start, vec![buf])
    }

    /// Writes `buf` to `start`.
    #[must_use]
    pub fn write(start: u64, buf: AlignedBuf) -> Self {
        Self::vectored(Op::Write, start, vec![buf])
    }

    /// Writes `buf` to `start`, durable on completion.
    #[must_use]
    pub fn write_fua(start: u64, buf: AlignedBuf) -> Self {
        Self::vectored(Op::WriteFua, start, vec![buf])
    }

    /// Gives `blocks` blocks from `start` back to the device.
    #[must_use]
    pub fn discard(start: u64, blocks: u64) -> Self {
        Self::vectored(Op::Discard { blocks }, start, Vec::new())
    }

    /// Any operation on several buffers that follow each other on the device.
    #[must_use]
    pub fn vectored(op: Op, start: u64, bufs: Vec<AlignedBuf>) -> Self {
        Self { op, start, bufs, tag: 0 }
    }

    /// The same request with the caller's mark `tag`.
    #[must_use]
    pub fn with_tag(self, tag: u64) -> Self {
        Self { tag, ..self }
    }

    /// How many blocks of the device this touches.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        match self.op {
            Op::Discard { blocks } => blocks,
            Op::Read | Op::Write | Op::WriteFua => self.bufs.iter().map(|b| b.blocks() as u64).sum(),
        }
    }

    /// This request's error of kind `kind`.
    #[must_use]
    pub fn error(&self, kind: DeviceErrorKind) -> DeviceError {
        DeviceError::new(self.op.operation(), self.start, self.blocks(), kind)
    }
}

/// A finished request: the request itself, buffers and all, and how it went.
#[derive(Debug)]
pub struct Completion {
    /// The request; after a failed read the content of its buffers is undefined.
    pub request: Request,
    /// How it went.
    pub result: Result<(), DeviceError>,
}

impl Completion {
    /// The same, and an error if it succeeded with more or fewer than the `blocks` blocks that the device was lent.
    #[must_use]
    pub fn checked(self, blocks: u64) -> Self {
        if self.result.is_err() || self.request.blocks() == blocks {
            return self;
        }
        let (op, start) = (self.request.op.operation(), self.request.start);
        Self { result: Err(DeviceError::new(op, start, blocks, DeviceErrorKind::OtherBuffers)), ..self }
    }

    /// The buffers, if the request succeeded.
    ///
    /// # Errors
    /// The error of the request.
    pub fn into_bufs(self) -> Result<Vec<AlignedBuf>, DeviceError> {
        self.result.map(|()| self.request.bufs)
    }

    /// The first buffer (an empty one if there is none), if the request succeeded.
    ///
    /// # Errors
    /// The error of the request.
    pub fn into_buf(mut self) -> Result<AlignedBuf, DeviceError> {
        self.result.map(|()| self.request.bufs.first_mut().map(mem::take).unwrap_or_default())
    }
}
