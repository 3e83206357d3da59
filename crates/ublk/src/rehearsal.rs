//! A queue without a driver: the caller makes the requests up, and their answers go nowhere. It shows what the server
//! itself spends on a request, on any machine; the driver's part, and its copy of the data, are not in it.

use std::io;

use f2fs_device::{AlignedBuf, BLOCK_SIZE};

use crate::{
    Backend, QueueCounts,
    abi::{Descriptor, SECTORS, op},
    channel::{Channel, Event, Movement},
    gather::Wish,
    worker::Worker,
};

/// A request of a [`rehearse`]d queue, in blocks of 4096 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rehearsed {
    /// A read.
    Read {
        /// The first block.
        start: u64,
        /// How many.
        blocks: u32,
    },
    /// A write of zeros.
    Write {
        /// The first block.
        start: u64,
        /// How many.
        blocks: u32,
    },
}

impl Rehearsed {
    fn descriptor(self) -> Descriptor {
        let (op_flags, start, blocks) = match self {
            Rehearsed::Read { start, blocks } => (op::READ, start, blocks),
            Rehearsed::Write { start, blocks } => (op::WRITE, start, blocks),
        };
        // What is too large for the driver's numbers is too large for every device.
        let (count, start_sector) = (blocks.saturating_mul(SECTORS as u32), start.saturating_mul(SECTORS));
        Descriptor { op_flags, count, start_sector, address: 0 }
    }
}

/// Does the requests as the server of one queue does them, `depth` at a time, each in the memory of its place in the
/// queue. A request that is longer than `most` blocks fails.
///
/// ```
/// use f2fs_device::MemoryDevice;
/// use f2fs_ublk::{Backend, Rehearsed, rehearse};
///
/// let backend = Backend::Plain(std::sync::Arc::new(MemoryDevice::new(1024)));
/// let reads = (0..100).map(|start| Rehearsed::Read { start, blocks: 1 });
/// let counts = rehearse(&backend, 32, 1, reads)?;
/// assert_eq!((counts.requests, counts.failed), (100, 0));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// None that a device makes: its failures are in [`QueueCounts::failed`].
pub fn rehearse(
    backend: &Backend,
    depth: u16,
    most: u32,
    requests: impl IntoIterator<Item = Rehearsed>,
) -> io::Result<QueueCounts> {
    let depth = depth.max(1);
    let script = Script {
        requests: requests.into_iter().fuse(),
        tags: (0..depth).map(|_| (Descriptor::default(), AlignedBuf::default())).collect(),
        free: (0..depth).rev().collect(),
        is_over: false,
    };
    Worker::new(script, backend, depth, most.saturating_mul(BLOCK_SIZE as u32)).run()
}

/// The requests that are to come, and those that are under way.
struct Script<I> {
    requests: I,
    /// Of each tag, its request and its memory, which grows to its longest request.
    tags: Vec<(Descriptor, AlignedBuf)>,
    free: Vec<u16>,
    is_over: bool,
}

impl<I: Iterator<Item = Rehearsed>> Channel for Script<I> {
    fn arrive(&mut self, _wish: Wish, events: &mut Vec<Event>) -> io::Result<()> {
        while let Some(&tag) = self.free.last() {
            let Some(request) = self.requests.next() else {
                self.is_over = true;
                break;
            };
            self.free.pop();
            self.tags[usize::from(tag)].0 = request.descriptor();
            events.push(Event::Arrived(tag));
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.is_over && self.free.len() == self.tags.len()
    }

    fn descriptor(&self, tag: u16) -> Descriptor {
        self.tags[usize::from(tag)].0
    }

    fn take(&mut self, tag: u16, blocks: usize) -> AlignedBuf {
        let mut memory = std::mem::take(&mut self.tags[usize::from(tag)].1);
        memory.resize(blocks);
        memory
    }

    fn is_apart(&self) -> bool {
        false
    }

    fn has_file(&self) -> bool {
        false
    }

    fn lends(&self, _request: &Descriptor) -> bool {
        false
    }

    fn tells_twice(&self) -> bool {
        false
    }

    /// Never asked for: the data are here, and there is no file.
    fn begin(&mut self, _movement: Movement, _tag: u16, _buf: AlignedBuf) {}

    fn tell(&mut self, _tag: u16, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn give_back(&mut self, tag: u16, buf: AlignedBuf) -> bool {
        self.tags[usize::from(tag)].1 = buf;
        true
    }

    fn commit(&mut self, tag: u16, _result: i32, _sector: u64) {
        self.free.push(tag);
    }
}

#[cfg(test)]
mod tests {
    use f2fs_device::{BlockDevice, MemoryDevice};
    use f2fs_sync::PlainArc;

    use super::*;

    #[test]
    fn all_are_done_and_those_beyond_the_end_fail() {
        let memory = PlainArc::new(MemoryDevice::new(100));
        memory.write(3, AlignedBuf::from_bytes(&[1])).unwrap();
        let backend = Backend::Plain(memory.clone());
        let requests = (0..101).map(|start| match start % 2 {
            0 => Rehearsed::Read { start, blocks: 1 },
            _ => Rehearsed::Write { start, blocks: 1 },
        });
        let counts = rehearse(&backend, 8, 1, requests).unwrap();
        assert_eq!((counts.requests, counts.failed), (101, 1), "block 100 is beyond the end");
        assert_eq!(memory.block(3).0, [0; BLOCK_SIZE], "it was not written");
        assert_eq!(rehearse(&backend, 0, 4, []).unwrap().requests, 0);
        let too_long = rehearse(&backend, 1, 4, [Rehearsed::Read { start: 0, blocks: 5 }]).unwrap();
        assert_eq!((too_long.requests, too_long.failed), (1, 1));
        let far = [(u64::MAX, 1), (u64::MAX / 8, u32::MAX), (0, u32::MAX), (99, 2)];
        let far = far.map(|(start, blocks)| Rehearsed::Write { start, blocks });
        let counts = rehearse(&backend, u16::MAX, u32::MAX, far).unwrap();
        assert_eq!((counts.requests, counts.failed), (4, 4));
    }
}
