//! A request on a ring. It owns the request's memory, and makes the submission entries for the part that is not transferred yet.

use f2fs_device::{AlignedBuf, BLOCK_SIZE, Block, Op, Request};
use io_uring::{opcode, squeue, types};

use crate::{
    discard,
    progress::{Landing, Progress},
    target::MAX_VECTORS,
};

/// Bytes that one entry asks for at most: below the kernel's limit for one transfer (2 GiB less a page).
const MAX_BYTES: usize = 1 << 30;

/// The file that each ring has registered.
const FILE: types::Fixed = types::Fixed(0);

/// `RWF_DSYNC` of `<linux/fs.h>`.
const RWF_DSYNC: i32 = 2;

/// A request and how far it has got. It owns the memory that the kernel transfers to or from, so it must be kept until it has
/// landed.
#[derive(Debug)]
pub(crate) struct Flight {
    request: Request,
    progress: Progress,
    vectors: Vec<Vector>,
    /// The index under which the only buffer is registered with the ring.
    registered: Option<u16>,
}

/// `struct iovec`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Vector {
    base: *mut u8,
    len: usize,
}

// SAFETY: the pointer is an address for the kernel into memory that the same `Flight` owns; nothing in this process follows it.
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
        Self { request, progress, vectors: Vec::new(), registered }
    }

    pub(crate) fn into_request(self) -> Request {
        self.request
    }

    /// The entry that asks for what is left. It points into memory that this flight owns and that stays where it is when the
    /// flight itself moves.
    pub(crate) fn entry(&mut self) -> squeue::Entry {
        let offset = self.request.start * BLOCK_SIZE as u64 + self.progress.done();
        let flags = if self.request.op == Op::WriteFua { RWF_DSYNC } else { 0 };
        if let Op::Discard { .. } = self.request.op {
            return opcode::Fallocate::new(FILE, self.progress.expected())
                .offset(offset)
                .mode(discard::PUNCH.bits() as i32)
                .build();
        }
        if let [buf] = &mut self.request.bufs[..] {
            let (base, len) = rest(buf, self.request.op, self.progress.done() as usize, MAX_BYTES);
            let len = len as u32;
            if let Some(index) = self.registered {
                return match self.request.op {
                    Op::Read => opcode::ReadFixed::new(FILE, base, len, index).offset(offset).build(),
                    _ => opcode::WriteFixed::new(FILE, base, len, index).offset(offset).rw_flags(flags).build(),
                };
            }
            return match self.request.op {
                Op::Read => opcode::Read::new(FILE, base, len).offset(offset).build(),
                _ => opcode::Write::new(FILE, base, len).offset(offset).rw_flags(flags).build(),
            };
        }
        self.gather();
        let (vectors, count) = (self.vectors.as_ptr().cast(), self.vectors.len() as u32);
        match self.request.op {
            Op::Read => opcode::Readv::new(FILE, vectors, count).offset(offset).build(),
            _ => opcode::Writev::new(FILE, vectors, count).offset(offset).rw_flags(flags).build(),
        }
    }

    /// Points `vectors` at what is left of the buffers.
    fn gather(&mut self) {
        self.vectors.clear();
        let (mut skip, mut room) = (self.progress.done() as usize, MAX_BYTES);
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

    /// Takes the kernel's answer to the last entry: bytes, or an error number below zero.
    pub(crate) fn land(&mut self, result: i32) -> Landing {
        self.progress.land(usize::try_from(result).map_err(|_| -result))
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
        flight.gather();
        flight.vectors.iter().map(|vector| vector.len).collect()
    }

    #[test]
    fn what_is_left_after_a_short_transfer() {
        let mut flight = flight(Op::Read, &[1, 3, 0, 2]);
        assert_eq!(lengths(&mut flight), [4096, 3 * 4096, 2 * 4096]);
        assert_eq!(flight.land(4096 + 512), Landing::Again);
        assert_eq!(lengths(&mut flight), [3 * 4096 - 512, 2 * 4096]);
        assert_eq!(flight.vectors[0].base.addr(), flight.request.bufs[1].as_bytes()[512..].as_ptr().addr());
        assert_eq!(flight.land(3 * 4096 - 512), Landing::Again);
        assert_eq!(lengths(&mut flight), [2 * 4096]);
        assert_eq!(flight.land(2 * 4096), Landing::Finished(Ok(())));
    }

    #[test]
    fn more_vectors_than_one_entry_takes() {
        let mut flight = flight(Op::Write, &[1; MAX_VECTORS + 5]);
        assert_eq!(lengths(&mut flight).len(), MAX_VECTORS);
        assert_eq!(flight.land(MAX_VECTORS as i32 * 4096), Landing::Again);
        assert_eq!(lengths(&mut flight).len(), 5);
    }
}
