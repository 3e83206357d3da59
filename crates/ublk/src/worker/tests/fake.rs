//! A channel and a device that the tests make up.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io, mem,
    os::fd::{AsFd, BorrowedFd},
};

use f2fs_device::{AlignedBuf, BlockDevice, Claims, DeviceError, DeviceInfo, MemoryDevice, Operation, Request, Ticket};
use f2fs_sync::{
    PlainArc,
    atomic::{AtomicUsize, Ordering},
};

use crate::{
    abi::{Descriptor, errno, op},
    channel::{Channel, Event, Moved, Movement},
    gather::Wish,
};

/// A ring of descriptors, as the driver's.
#[derive(Default)]
pub(super) struct Fake {
    pub(super) waiting: VecDeque<(Descriptor, Vec<u8>)>,
    pub(super) tags: BTreeMap<u16, (Descriptor, Vec<u8>)>,
    pub(super) free: Vec<u16>,
    /// In the order of their ends: the request, its data, its result and sector.
    pub(super) done: Vec<(Descriptor, Vec<u8>, i32, u64)>,
    /// The data are not in the memory of the requests.
    pub(super) is_apart: bool,
    /// The device's file.
    pub(super) file: Option<PlainArc<MemoryDevice>>,
    /// Requests of so many sectors and more lend their pages.
    pub(super) lends_from: Option<u32>,
    /// What was moved between such pages and the file, and through memory.
    pub(super) lent: usize,
    pub(super) copied: usize,
    pub(super) moving: Vec<(Movement, u16, AlignedBuf)>,
    /// How many movements there were, and after how many each one fails.
    pub(super) moved: usize,
    pub(super) fails: usize,
    pub(super) only_lent_fails: bool,
    /// What lends its pages and goes well is committed without a word.
    pub(super) is_linked: bool,
    /// The device gives back other memory than it got.
    pub(super) strangers: bool,
}

impl Fake {
    fn move_data(&mut self, movement: Movement, tag: u16, buf: &mut AlignedBuf) -> Result<(), i32> {
        let is_lent = movement.is_lent();
        if is_lent || !self.only_lent_fails {
            self.moved += 1;
        }
        if self.fails > 0 && self.moved.is_multiple_of(self.fails) && (is_lent || !self.only_lent_fails) {
            self.lent += usize::from(is_lent);
            return Err(errno::EIO);
        }
        let data = &mut self.tags.get_mut(&tag).expect("a tag with a request").1;
        match movement {
            Movement::Fill { .. } | Movement::Drain { .. } => {
                assert!(buf.is_empty(), "memory for data that need none");
                self.lent += 1;
            }
            _ => self.copied += 1,
        }
        match movement {
            Movement::Fill { start, blocks } => {
                let read = self.file.as_ref().unwrap().read(start, blocks as usize).unwrap();
                *data = read.as_bytes().to_vec();
            }
            Movement::Drain { start, .. } => {
                self.file.as_ref().unwrap().write(start, AlignedBuf::from_bytes(data)).unwrap();
            }
            Movement::Fetch => {
                let len = data.len().min(buf.len());
                buf.as_bytes_mut()[..len].copy_from_slice(&data[..len]);
            }
            Movement::Deliver => *data = buf.as_bytes().to_vec(),
            Movement::Read { start } => self.file.as_ref().unwrap().read_into(start, buf).unwrap(),
            Movement::Write { start } => self.file.as_ref().unwrap().write_from(start, buf).unwrap(),
        }
        Ok(())
    }
}

impl Channel for &mut Fake {
    fn arrive(&mut self, wish: Wish, events: &mut Vec<Event>) -> io::Result<()> {
        let asleep = self.tags.len() == self.moving.len();
        assert!(wish == Wish::NOTHING || asleep, "it sleeps with requests in its hands");
        for (movement, tag, mut buf) in mem::take(&mut self.moving) {
            let result = self.move_data(movement, tag, &mut buf);
            if self.is_linked && movement.is_lent() && result.is_ok() {
                self.commit(tag, movement.bytes(&buf) as i32, 0);
            } else {
                events.push(Event::Moved(Moved { tag, movement, buf, result }));
            }
        }
        while let (Some(&tag), false) = (self.free.last(), self.waiting.is_empty()) {
            self.free.pop();
            let waiting = self.waiting.pop_front().unwrap();
            self.tags.insert(tag, waiting);
            events.push(Event::Arrived(tag));
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.waiting.is_empty() && self.tags.is_empty()
    }

    fn descriptor(&self, tag: u16) -> Descriptor {
        self.tags[&tag].0
    }

    fn take(&mut self, tag: u16, blocks: usize) -> AlignedBuf {
        let data = &self.tags[&tag].1;
        let mut buf = AlignedBuf::new(blocks);
        if !self.is_apart {
            let len = data.len().min(buf.len());
            buf.as_bytes_mut()[..len].copy_from_slice(&data[..len]);
        }
        buf
    }

    fn is_apart(&self) -> bool {
        self.is_apart
    }

    fn has_file(&self) -> bool {
        self.file.is_some()
    }

    fn lends(&self, request: &Descriptor) -> bool {
        self.lends_from.is_some_and(|from| request.count >= from)
    }

    fn tells_twice(&self) -> bool {
        self.is_apart || self.has_file()
    }

    fn begin(&mut self, movement: Movement, tag: u16, buf: AlignedBuf) {
        assert!(self.moving.iter().all(|(_, other, _)| *other != tag), "one movement at a time");
        self.moving.push((movement, tag, buf));
    }

    fn tell(&mut self, tag: u16, bytes: &[u8]) -> io::Result<()> {
        self.tags.get_mut(&tag).unwrap().1 = bytes.to_vec();
        Ok(())
    }

    fn give_back(&mut self, tag: u16, buf: AlignedBuf) -> bool {
        // As the driver, which copies from here at the commit.
        let (descriptor, data) = self.tags.get_mut(&tag).expect("a tag with a request");
        if !self.is_apart && descriptor.op_flags & 0xff == op::READ {
            *data = buf.as_bytes().to_vec();
        }
        !self.strangers
    }

    fn commit(&mut self, tag: u16, result: i32, sector: u64) {
        assert!(self.moving.iter().all(|(_, other, _)| *other != tag), "data are on their way still");
        let (descriptor, data) = self.tags.remove(&tag).expect("a tag is committed once");
        self.free.push(tag);
        self.done.push((descriptor, data, result, sector));
    }
}

/// A device that says that it is a file; it counts what it has to do itself.
#[derive(Debug)]
pub(super) struct InFile {
    pub(super) blocks: PlainArc<MemoryDevice>,
    file: File,
    takes_writes: bool,
    pub(super) own: AtomicUsize,
}

impl BlockDevice for InFile {
    fn info(&self) -> &DeviceInfo {
        self.blocks.info()
    }

    fn claims(&self) -> &Claims {
        self.blocks.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        self.own.fetch_add(requests.len(), Ordering::Relaxed);
        self.blocks.submit(requests)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.blocks.flush()
    }

    fn file(&self, operation: Operation) -> Option<BorrowedFd<'_>> {
        (operation == Operation::Read || self.takes_writes).then(|| self.file.as_fd())
    }
}

pub(super) fn in_file(takes_writes: bool) -> PlainArc<InFile> {
    let file = File::open("/dev/null").unwrap();
    let own = AtomicUsize::new(0);
    PlainArc::new(InFile { blocks: PlainArc::new(MemoryDevice::new(1024)), file, takes_writes, own })
}
