//! The progress of one request, carried by a ring or by system calls.
//!
//! ```text
//!  new --asked of the kernel--> land: all transferred, or failed ----------------> finished
//!           ^                    |
//!           +--------------------+ land: transferred in part, or to be tried again
//! ```

use f2fs_device::{BLOCK_SIZE, DeviceErrorKind, Op, Request};

/// How often in a row a transfer is tried again that the kernel gave back without having tried it.
const MAX_TRIES: u32 = 1000;

/// The bytes of a request that are transferred, and those that are to be.
#[derive(Debug)]
pub(crate) struct Progress {
    expected: u64,
    done: u64,
    tries: u32,
    discard: bool,
}

/// The meaning of an answer of the kernel for the request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Landing {
    /// There is more to do.
    Again,
    /// The request is over.
    Finished(Result<(), DeviceErrorKind>),
}

impl Progress {
    /// Nothing is done.
    pub(crate) fn new(request: &Request) -> Self {
        let expected = request.blocks() * BLOCK_SIZE as u64;
        Self { expected, done: 0, tries: 0, discard: matches!(request.op, Op::Discard { .. }) }
    }

    /// The same for a transfer of so many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        Self { expected: bytes as u64, done: 0, tries: 0, discard: false }
    }

    /// Bytes that are transferred.
    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// Bytes of the whole request.
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }

    /// Takes the kernel's answer: how many more bytes are transferred, or an error number.
    #[inline]
    pub(crate) fn land(&mut self, answer: Result<usize, i32>) -> Landing {
        match answer {
            Ok(bytes) if bytes as u64 == self.expected && self.done == 0 => {
                self.done = self.expected;
                Landing::Finished(Ok(()))
            }
            answer => self.land_in_part(answer),
        }
    }

    /// Counts a transfer that is tried again; whether that was not the case `most` times in a row before.
    pub(crate) fn try_again(&mut self, most: u32) -> bool {
        self.tries += 1;
        self.tries <= most
    }

    fn land_in_part(&mut self, answer: Result<usize, i32>) -> Landing {
        const EINTR: i32 = 4;
        const EAGAIN: i32 = 11;
        const EINVAL: i32 = 22;
        const EOPNOTSUPP: i32 = 95;
        // When a thread exits, the kernel cancels the requests of that thread that it has only queued.
        const ECANCELED: i32 = 125;
        let short = DeviceErrorKind::ShortTransfer { transferred: self.done, expected: self.expected };
        Landing::Finished(match answer {
            Ok(0) if self.discard => Ok(()),
            Ok(0) => Err(short),
            Ok(bytes) => {
                self.done += bytes as u64;
                self.tries = 0;
                if self.done < self.expected {
                    return Landing::Again;
                }
                Ok(())
            }
            Err(EINTR | EAGAIN | ECANCELED) if self.try_again(MAX_TRIES) => return Landing::Again,
            // A direct transfer that stopped within a block can only be the end of the file.
            Err(EINVAL) if !self.done.is_multiple_of(BLOCK_SIZE as u64) => Err(short),
            Err(EOPNOTSUPP) if self.discard => Err(DeviceErrorKind::Unsupported),
            Err(errno) => Err(DeviceErrorKind::from_errno(errno)),
        })
    }
}

#[cfg(test)]
mod tests {
    use f2fs_device::AlignedBuf;

    use super::*;

    fn progress(op: Op, blocks: usize) -> Progress {
        Progress::new(&Request::vectored(op, 7, vec![AlignedBuf::new(blocks)]))
    }

    #[test]
    fn the_end_of_the_file_is_a_short_transfer() {
        let short =
            |transferred| Landing::Finished(Err(DeviceErrorKind::ShortTransfer { transferred, expected: 2 * 4096 }));
        let mut at_border = progress(Op::Read, 2);
        assert_eq!((at_border.land(Ok(4096)), at_border.land(Ok(0))), (Landing::Again, short(4096)));
        let mut within = progress(Op::Read, 2);
        assert_eq!((within.land(Ok(512)), within.land(Err(22))), (Landing::Again, short(512)));
        let mut refused = progress(Op::Read, 2);
        assert_eq!(refused.land(Err(22)), Landing::Finished(Err(DeviceErrorKind::from_errno(22))));
    }

    #[test]
    fn what_was_not_tried_is_tried_again_but_not_for_ever() {
        let mut progress = progress(Op::Write, 1);
        for errno in [4, 11, 125].into_iter().cycle().take(MAX_TRIES as usize) {
            assert_eq!(progress.land(Err(errno)), Landing::Again);
        }
        assert_eq!(progress.land(Err(11)), Landing::Finished(Err(DeviceErrorKind::from_errno(11))));
    }
}
