//! One request in the hands of the kernel.
//!
//! ```text
//!  new --entry--> in flight --land: all transferred, or failed--> finished
//!                  ^     |
//!                  +-----+ land: transferred in part, or to be tried again; the next entry asks for the rest
//! ```

use f2fs_device::{AlignedBuf, BLOCK_SIZE, Block, DeviceErrorKind, Op, Request};
use io_uring::{opcode, squeue, types};

use crate::{discard, target::MAX_VECTORS};

/// Bytes that one entry asks for at most: below the kernel's limit for one transfer (2 GiB less a page).
const MAX_BYTES: usize = 1 << 30;

/// How often in a row an entry is tried again that the kernel gave back without having tried it.
const MAX_TRIES: u32 = 1000;

/// The file that each ring has registered.
const FILE: types::Fixed = types::Fixed(0);

/// `RWF_DSYNC` of `<linux/fs.h>`.
const RWF_DSYNC: i32 = 2;

/// A request and how far it has got. It owns the memory that the kernel transfers to or from, so it must be kept until it has
/// landed.
#[derive(Debug)]
pub(crate) struct Flight {
    request: Request,
    expected: u64,
    done: u64,
    tries: u32,
    vectors: Vec<Vector>,
    /// The index under which the only buffer is registered with the ring.
    registered: Option<u16>,
}

/// How an entry came back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Landing {
    /// There is more to do.
    Again,
    /// The request is over.
    Finished(Result<(), DeviceErrorKind>),
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
        let expected = request.blocks() * BLOCK_SIZE as u64;
        Self { request, expected, done: 0, tries: 0, vectors: Vec::new(), registered }
    }

    pub(crate) fn into_request(self) -> Request {
        self.request
    }

    /// The entry that asks for what is left. It points into memory that this flight owns and that stays where it is when the
    /// flight itself moves.
    pub(crate) fn entry(&mut self) -> squeue::Entry {
        let offset = self.request.start * BLOCK_SIZE as u64 + self.done;
        let flags = if self.request.op == Op::WriteFua { RWF_DSYNC } else { 0 };
        if let Op::Discard { .. } = self.request.op {
            return opcode::Fallocate::new(FILE, self.expected)
                .offset(offset)
                .mode(discard::PUNCH.bits() as i32)
                .build();
        }
        if let [buf] = &mut self.request.bufs[..] {
            let (base, len) = rest(buf, self.request.op, self.done as usize, MAX_BYTES);
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
        let (mut skip, mut room) = (self.done as usize, MAX_BYTES);
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

    /// Takes the kernel's answer to the last entry.
    pub(crate) fn land(&mut self, result: i32) -> Landing {
        const EINTR: i32 = 4;
        const EAGAIN: i32 = 11;
        const EINVAL: i32 = 22;
        const EOPNOTSUPP: i32 = 95;
        // The kernel cancels what it has only queued when the thread that submitted it exits.
        const ECANCELED: i32 = 125;
        let short = DeviceErrorKind::ShortTransfer { transferred: self.done, expected: self.expected };
        let discard = matches!(self.request.op, Op::Discard { .. });
        Landing::Finished(match result {
            0 if discard => Ok(()),
            0 => Err(short),
            1.. => {
                self.done += u64::from(result.unsigned_abs());
                self.tries = 0;
                if self.done < self.expected {
                    return Landing::Again;
                }
                Ok(())
            }
            _ => match -result {
                EINTR | EAGAIN | ECANCELED if self.tries < MAX_TRIES => {
                    self.tries += 1;
                    return Landing::Again;
                }
                // A direct transfer that stopped within a block can only be the end of the file.
                EINVAL if !self.done.is_multiple_of(BLOCK_SIZE as u64) => Err(short),
                EOPNOTSUPP if discard => Err(DeviceErrorKind::Unsupported),
                errno => Err(DeviceErrorKind::from_errno(errno)),
            },
        })
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

    #[test]
    fn the_end_of_the_file_is_a_short_transfer() {
        let short =
            |transferred| Landing::Finished(Err(DeviceErrorKind::ShortTransfer { transferred, expected: 2 * 4096 }));
        let mut at_border = flight(Op::Read, &[2]);
        assert_eq!((at_border.land(4096), at_border.land(0)), (Landing::Again, short(4096)));
        let mut within = flight(Op::Read, &[2]);
        assert_eq!((within.land(512), within.land(-22)), (Landing::Again, short(512)));
        let mut refused = flight(Op::Read, &[2]);
        assert_eq!(refused.land(-22), Landing::Finished(Err(DeviceErrorKind::from_errno(22))));
    }

    #[test]
    fn what_was_not_tried_is_tried_again_but_not_for_ever() {
        let mut flight = flight(Op::Write, &[1]);
        for errno in [4, 11, 125].into_iter().cycle().take(MAX_TRIES as usize) {
            assert_eq!(flight.land(-errno), Landing::Again);
        }
        assert_eq!(flight.land(-11), Landing::Finished(Err(DeviceErrorKind::from_errno(11))));
    }
}
