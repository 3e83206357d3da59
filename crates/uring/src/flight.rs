//! A request on a ring. It owns the request's memory, and knows the part that is not transferred yet.

use std::mem::{self, ManuallyDrop};

use f2fs_device::{AlignedBuf, Block, Op, Request};

use crate::{
    progress::{Landing, Progress},
    target::MAX_VECTORS,
};

/// A request and how far it has got. It owns the memory that the kernel transfers to or from, so it must be kept until
/// it has landed.
#[derive(Debug)]
pub(crate) struct Flight {
    request: Request,
    progress: Progress,
    vectors: Vec<Vector>,
    /// The index under which the only buffer is registered with the ring.
    registered: Option<u16>,
    /// Bytes of the last entry, for carriers whose answers do not say how many were transferred.
    asked: usize,
}

/// Memory for one entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Memory {
    /// One piece.
    One {
        /// Its first byte.
        base: *mut u8,
        /// Its bytes.
        len: usize,
        /// The registered index of the buffer that it is part of.
        registered: Option<u16>,
    },
    /// Several.
    Many {
        /// The first of `count`.
        vectors: *const Vector,
        /// How many.
        count: usize,
        /// Bytes of all.
        bytes: usize,
    },
}

impl Memory {
    /// Bytes of it.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::One { len, .. } => len,
            Self::Many { bytes, .. } => bytes,
        }
    }
}

/// `struct iovec`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Vector {
    base: *mut u8,
    len: usize,
}

// SAFETY: the pointer is an address for the kernel into memory that the same `Flight` owns; nothing in this process
// follows it.
unsafe impl Send for Vector {}

impl Vector {
    /// All of `blocks`.
    pub(crate) fn of(blocks: &mut [Block]) -> Self {
        Self { base: blocks.as_mut_ptr().cast(), len: size_of_val(blocks) }
    }
}

impl Flight {
    /// A request whose only buffer has the index `registered`, or none.
    pub(crate) fn new(request: Request, registered: Option<u16>) -> Self {
        let progress = Progress::new(&request);
        Self { request, progress, vectors: Vec::new(), registered, asked: 0 }
    }

    pub(crate) fn into_request(self) -> Request {
        self.request
    }

    /// The request with other memory of the same size, and the same content if it is a write. The memory that the
    /// kernel was told of is never used again: nobody knows when the kernel is done with it.
    pub(crate) fn leave_memory(self) -> Request {
        let Self { mut request, vectors, .. } = self;
        let other = |buf: &AlignedBuf| match request.op {
            Op::Read => AlignedBuf::new(buf.blocks()),
            _ => buf.clone(),
        };
        let others = request.bufs.iter().map(other).collect();
        let _left = ManuallyDrop::new((mem::replace(&mut request.bufs, others), vectors));
        request
    }

    /// The request.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// Bytes that are transferred.
    pub(crate) fn done(&self) -> u64 {
        self.progress.done()
    }

    /// Bytes of the whole request.
    pub(crate) fn expected(&self) -> u64 {
        self.progress.expected()
    }

    /// The memory of the next entry, of `most` bytes at most. It belongs to this flight and stays where it is when the
    /// flight itself moves.
    pub(crate) fn memory(&mut self, most: usize) -> Memory {
        if let [buf] = &mut self.request.bufs[..] {
            let (base, len) = rest(buf, self.request.op, self.progress.done() as usize, most);
            return Memory::One { base, len, registered: self.registered };
        }
        self.gather(most);
        let bytes = self.vectors.iter().map(|vector| vector.len).sum();
        Memory::Many { vectors: self.vectors.as_ptr(), count: self.vectors.len(), bytes }
    }

    /// Points `vectors` at the rest of the buffers.
    fn gather(&mut self, most: usize) {
        self.vectors.clear();
        let (mut skip, mut room) = (self.progress.done() as usize, most);
        for buf in &mut self.request.bufs {
            let skipped = skip.min(buf.len());
            skip -= skipped;
            if skipped < buf.len() && room > 0 && self.vectors.len() < MAX_VECTORS {
                let (base, len) = rest(buf, self.request.op, skipped, room);
                room -= len;
                self.vectors.push(Vector { base, len });
            }
        }
    }

    /// Keeps the bytes of the entry that is made.
    pub(crate) fn ask(&mut self, bytes: usize) {
        self.asked = bytes;
    }

    /// The bytes of the last entry.
    pub(crate) fn asked(&self) -> usize {
        self.asked
    }

    /// Whether the last entry may be sent again, which it may `most` times in a row.
    pub(crate) fn try_again(&mut self, most: u32) -> bool {
        self.progress.try_again(most)
    }

    /// Takes the answer to the last entry: how many more bytes are transferred, or an error number.
    pub(crate) fn land(&mut self, answer: Result<usize, i32>) -> Landing {
        self.progress.land(answer)
    }
}

/// Where `buf` goes on after `skip` bytes, and for how long, up to `room` bytes.
fn rest(buf: &mut AlignedBuf, op: Op, skip: usize, room: usize) -> (*mut u8, usize) {
    let len = (buf.len() - skip).min(room);
    let base = match op {
        Op::Read => buf.as_bytes_mut()[skip..].as_mut_ptr(),
        _ => buf.as_bytes()[skip..].as_ptr().cast_mut(),
    };
    (base, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(op: Op, blocks: &[usize]) -> Flight {
        Flight::new(Request::vectored(op, 7, blocks.iter().map(|&blocks| AlignedBuf::new(blocks)).collect()), None)
    }

    fn lengths(flight: &mut Flight) -> Vec<usize> {
        flight.gather(usize::MAX);
        flight.vectors.iter().map(|vector| vector.len).collect()
    }

    #[test]
    fn what_is_left_after_a_short_transfer() {
        let mut flight = flight(Op::Read, &[1, 3, 0, 2]);
        assert_eq!(lengths(&mut flight), [4096, 3 * 4096, 2 * 4096]);
        assert_eq!(flight.land(Ok(4096 + 512)), Landing::Again);
        assert_eq!(lengths(&mut flight), [3 * 4096 - 512, 2 * 4096]);
        assert_eq!(flight.vectors[0].base.addr(), flight.request.bufs[1].as_bytes()[512..].as_ptr().addr());
        assert_eq!(flight.land(Ok(3 * 4096 - 512)), Landing::Again);
        assert_eq!(lengths(&mut flight), [2 * 4096]);
        assert_eq!(flight.land(Ok(2 * 4096)), Landing::Finished(Ok(())));
    }

    #[test]
    fn more_vectors_than_one_entry_takes() {
        let mut flight = flight(Op::Write, &[1; MAX_VECTORS + 5]);
        assert_eq!(lengths(&mut flight).len(), MAX_VECTORS);
        assert_eq!(flight.land(Ok(MAX_VECTORS * 4096)), Landing::Again);
        assert_eq!(lengths(&mut flight).len(), 5);
    }
}
