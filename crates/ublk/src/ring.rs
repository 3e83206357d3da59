//! The kernel's side of a queue: commands of its tags in an `io_uring`, and the movements of their data in the same one.
//!
//! ```text
//!                                                      +-- read, write of a file --+
//!                                                      |                           |
//!              FETCH, COMMIT_AND_FETCH                 v       completion          |
//!  ours -----------------------------> the kernel's -----------------------------> ours
//!                                          |    completion -ENODEV
//!                                          +-----------------------------> ended
//! ```
//! The memory of a tag may be written and read by the kernel while the tag is the kernel's, and only then. A tag has one
//! entry in the ring at a time, so the ring has room for all. One more, which is taken before, waits for the server to leave.
//!
//! Locking rules: a channel belongs to the thread that made it, as its ring does and as the driver wants it. The lock of
//! its `Home` is the only one.

use std::{
    fs::File,
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    os::unix::fs::FileExt,
};

use f2fs_device::{AlignedBuf, Block, BufHome};
use f2fs_sync::Arc;
use io_uring::{
    IoUring, cqueue, opcode, squeue,
    types::{Fd, Fixed, SubmitArgs},
};
use rustix::io::Errno;
use zerocopy::IntoBytes;

use crate::{
    abi::{Descriptor, IoCommand, data_offset, errno, io as command},
    channel::{Channel, Event, Moved, Movement},
    descriptors::Descriptors,
    gather::Wish,
    home::Home,
};

/// The driver's file among those that the ring has registered.
const DRIVER: Fixed = Fixed(0);
/// The device's.
const FILE: Fixed = Fixed(1);
/// A place among them that has none yet.
const NO_FILE: RawFd = -1;

/// The mark of the entry that completes when the server leaves. Tags are less.
const LEAVE: u64 = u64::MAX;
/// The event of a pipe that can be read; that it was closed is told in any case.
const POLLIN: u32 = 1;

/// A tag's memory and owner.
struct Tag {
    /// Empty while the device has it, or a movement.
    memory: Vec<Block>,
    owner: Owner,
}

enum Owner {
    Ours,
    /// A command is with the driver.
    Kernel,
    /// Data are moved between this memory and a file.
    Moving(Movement, AlignedBuf),
    Ended,
}

/// A queue of the driver.
pub(crate) struct RingChannel<'a> {
    /// Before the memory, so that it is dropped first.
    ring: IoUring,
    descriptors: Descriptors,
    tags: Vec<Tag>,
    home: Arc<Home>,
    file: &'a File,
    queue: u16,
    max_blocks: usize,
    /// Data are copied by calls on the file, not by the driver.
    user_copy: bool,
    /// The device's file is registered with the ring.
    has_file: bool,
    /// Tags that have not ended.
    alive: usize,
    /// Entries that the kernel has not been told of.
    untold: u32,
    /// Whether the kernel can wait for several completions and be content with fewer after a while (Linux 6.12).
    gathers: bool,
    /// The server leaves, whatever the driver does.
    leaves: bool,
    /// The first error of a command.
    fault: Option<i32>,
}

/// What a queue is to be.
#[derive(Clone, Copy)]
pub(crate) struct QueueShape {
    pub(crate) number: u16,
    pub(crate) depth: u16,
    pub(crate) max_io_bytes: u32,
    pub(crate) user_copy: bool,
}

impl QueueShape {
    fn max_blocks(&self) -> usize {
        self.max_io_bytes as usize / 4096
    }
}

/// A queue that the driver does not know of: it has all that it needs of the system but the driver's file.
pub(crate) struct Prepared {
    ring: IoUring,
    tags: Vec<Tag>,
    shape: QueueShape,
    has_file: bool,
}

impl Prepared {
    /// Sets a queue up. `device` is the file of the device, if it is one. When the other end of `stays` is closed, the
    /// queue ends.
    pub(crate) fn new(shape: QueueShape, device: Option<BorrowedFd<'_>>, stays: impl AsFd) -> io::Result<Self> {
        let mut ring = build(shape.depth.into())?;
        let files: Vec<_> = [NO_FILE].into_iter().chain(device.map(|file| file.as_raw_fd())).collect();
        ring.submitter().register_files(&files)?;
        let closed = opcode::PollAdd::new(Fd(stays.as_fd().as_raw_fd()), POLLIN).build().user_data(LEAVE);
        // SAFETY: the entry points to no memory, and the kernel takes the file with it at once, in `submit`.
        unsafe { ring.submission().push(&closed) }.map_err(|_| io::Error::other("the submission queue is full"))?;
        ring.submit()?;
        let memory = || AlignedBuf::new(shape.max_blocks()).into();
        let tags = (0..shape.depth).map(|_| Tag { memory: memory(), owner: Owner::Ours }).collect();
        Ok(Self { ring, tags, shape, has_file: device.is_some() })
    }

    /// Fetches with all tags: with the first `arrive` the driver knows them.
    pub(crate) fn fetch(self, file: &File) -> io::Result<RingChannel<'_>> {
        let Self { ring, tags, shape, has_file } = self;
        ring.submitter().register_files_update(0, &[file.as_raw_fd()])?;
        let max_blocks = shape.max_blocks();
        let mut channel = RingChannel {
            descriptors: Descriptors::map(file, shape.number, shape.depth)?,
            gathers: ring.params().is_feature_min_timeout(),
            ring,
            tags,
            home: Arc::new(Home::new(max_blocks)),
            file,
            queue: shape.number,
            max_blocks,
            user_copy: shape.user_copy,
            has_file,
            alive: shape.depth.into(),
            untold: 0,
            leaves: false,
            fault: None,
        };
        for tag in 0..shape.depth {
            channel.command(command::FETCH, tag, 0, 0)?;
        }
        Ok(channel)
    }
}

impl RingChannel<'_> {
    /// Gives a tag to the driver with its next command.
    fn command(&mut self, number: u32, tag: u16, result: i32, sector: u64) -> io::Result<()> {
        let state = &mut self.tags[usize::from(tag)];
        // A device may have the memory still; the driver needs all that a request may have.
        if state.memory.len() < self.max_blocks {
            state.memory = self.home.take().unwrap_or_else(|| AlignedBuf::new(self.max_blocks).into());
        }
        let address = if self.user_copy { sector } else { state.memory.as_mut_ptr().expose_provenance() as u64 };
        let body = IoCommand { queue: self.queue, tag, result, address };
        let mut bytes = [0; 16];
        bytes.copy_from_slice(body.as_bytes());
        let entry = opcode::UringCmd16::new(DRIVER, number).cmd(bytes).build();
        self.push(tag, Owner::Kernel, entry)
    }

    /// Gives a tag to the kernel, and with it the memory that the entry points into: the tag's, or its movement's.
    fn push(&mut self, tag: u16, owner: Owner, entry: squeue::Entry) -> io::Result<()> {
        self.tags[usize::from(tag)].owner = owner;
        self.untold += 1;
        let entry = entry.user_data(tag.into());
        // SAFETY: the files are registered with the ring. The memory is the kernel's from here on: it is neither touched
        // nor freed until the entry's completion was seen (`arrive`), or ever, if that is not seen (`drop`).
        unsafe { self.ring.submission().push(&entry) }.map_err(|_| io::Error::other("the submission queue is full"))
    }

    fn fail(&mut self, error: &io::Error) {
        self.fault = self.fault.or(error.raw_os_error()).or(Some(errno::EIO));
    }

    /// Tells the kernel of the pushed entries; sleeps until what is wished for has completed.
    fn enter(&mut self, wish: Wish) -> io::Result<()> {
        const GETEVENTS: u32 = 1;
        let untold = mem::take(&mut self.untold);
        let entered = if wish.requests > 1 && self.gathers {
            let longest = SubmitArgs::new().min_wait_usec(wish.micros);
            self.ring.submitter().submit_with_args(wish.requests, &longest)
        } else {
            // SAFETY: without an argument, entering takes no pointers; the flag is `IORING_ENTER_GETEVENTS`.
            unsafe { self.ring.submitter().enter::<()>(untold, wish.requests.min(1) as u32, GETEVENTS, None) }
        };
        match entered {
            Ok(taken) => {
                self.untold = untold - (taken as u32).min(untold);
                Ok(())
            }
            Err(error) => {
                self.untold = self.ring.submission().len() as u32;
                let passing = [Errno::INTR, Errno::AGAIN, Errno::BUSY, Errno::TIME];
                let passes = passing.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
                if passes { Ok(()) } else { Err(error) }
            }
        }
    }
}

/// A ring for one thread, which runs completions only when it enters the kernel: that is what makes batches.
fn build(entries: u32) -> io::Result<IoUring<squeue::Entry, cqueue::Entry>> {
    let mut builder = IoUring::builder();
    builder.dontfork().setup_submit_all().setup_single_issuer().setup_defer_taskrun();
    builder.build(entries)
}

impl Channel for RingChannel<'_> {
    fn arrive(&mut self, wish: Wish, events: &mut Vec<Event>) -> io::Result<()> {
        let alive = if self.leaves { 0 } else { self.alive };
        self.enter(Wish { requests: wish.requests.min(alive), ..wish })?;
        for entry in self.ring.completion() {
            self.leaves |= entry.user_data() == LEAVE;
            let Some(state) = self.tags.get_mut(entry.user_data() as usize) else { continue };
            let (tag, result) = (entry.user_data() as u16, entry.result());
            match (mem::replace(&mut state.owner, Owner::Ours), result) {
                (Owner::Moving(movement, buf), moved) => {
                    let result = match usize::try_from(moved) {
                        Ok(bytes) if bytes == buf.len() => Ok(()),
                        Ok(_) => Err(errno::EIO),
                        Err(_) => Err(-moved),
                    };
                    events.push(Event::Moved(Moved { tag, movement, buf, result }));
                }
                (_, 0) => events.push(Event::Arrived(tag)),
                (_, error) => {
                    state.owner = Owner::Ended;
                    self.alive -= 1;
                    if error != -errno::ENODEV && self.fault.is_none() {
                        self.fault = Some(-error);
                    }
                }
            }
        }
        match self.fault {
            Some(number) => Err(io::Error::from_raw_os_error(number)),
            None => Ok(()),
        }
    }

    fn has_ended(&self) -> bool {
        self.alive == 0 || self.leaves
    }

    fn descriptor(&self, tag: u16) -> Descriptor {
        self.descriptors.get(tag)
    }

    fn take(&mut self, tag: u16, blocks: usize) -> AlignedBuf {
        let mut memory = mem::take(&mut self.tags[usize::from(tag)].memory);
        memory.truncate(blocks);
        if memory.len() < blocks {
            return AlignedBuf::new(blocks);
        }
        AlignedBuf::with_home(memory, f2fs_sync::coerce!(Arc::clone(&self.home) => dyn BufHome))
    }

    fn is_apart(&self) -> bool {
        self.user_copy
    }

    fn has_file(&self) -> bool {
        self.has_file
    }

    fn begin(&mut self, movement: Movement, tag: u16, mut buf: AlignedBuf) {
        let (memory, length) = (buf.as_bytes_mut().as_mut_ptr(), buf.len() as u32);
        let data = data_offset(self.queue, tag);
        // Beyond every file, but not the number that stands for the file's own position.
        let place = |start: u64| start.saturating_mul(4096).min(1 << 62);
        let entry = match movement {
            Movement::Fetch => opcode::Read::new(DRIVER, memory, length).offset(data).build(),
            Movement::Deliver => opcode::Write::new(DRIVER, memory, length).offset(data).build(),
            Movement::Read { start } => opcode::Read::new(FILE, memory, length).offset(place(start)).build(),
            Movement::Write { start } => opcode::Write::new(FILE, memory, length).offset(place(start)).build(),
        };
        if let Err(error) = self.push(tag, Owner::Moving(movement, buf), entry) {
            self.fail(&error);
        }
    }

    fn tell(&mut self, tag: u16, bytes: &[u8]) -> io::Result<()> {
        if self.user_copy {
            self.file.write_all_at(bytes, data_offset(self.queue, tag))?;
        }
        Ok(())
    }

    fn give_back(&mut self, tag: u16, buf: AlignedBuf) -> bool {
        let first = buf.as_blocks().as_ptr();
        drop(buf);
        let memory = self.home.take_at(first);
        let is_its_own = memory.is_some();
        if let Some(memory) = memory {
            self.tags[usize::from(tag)].memory = memory;
        }
        is_its_own
    }

    fn commit(&mut self, tag: u16, result: i32, sector: u64) {
        if let Err(error) = self.command(command::COMMIT_AND_FETCH, tag, result, sector) {
            self.fail(&error);
        }
    }
}

impl Drop for RingChannel<'_> {
    fn drop(&mut self) {
        let _ = self.ring.submitter().unregister_files();
        for tag in &mut self.tags {
            // The kernel may still copy to it or from it.
            match mem::replace(&mut tag.owner, Owner::Ended) {
                Owner::Kernel => drop(mem::take(&mut tag.memory).leak()),
                Owner::Moving(_, buf) => {
                    let _ = mem::ManuallyDrop::new(buf);
                }
                Owner::Ours | Owner::Ended => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_hears_that_its_server_leaves() {
        let shape = QueueShape { number: 0, depth: 4, max_io_bytes: 4096, user_copy: false };
        let (stays, stay) = io::pipe().unwrap();
        let mut prepared = Prepared::new(shape, None, &stays).unwrap();
        prepared.ring.submit().unwrap();
        assert_eq!(prepared.ring.completion().len(), 0, "nothing has happened");
        drop(stay);
        prepared.ring.submit_and_wait(1).unwrap();
        assert_eq!(prepared.ring.completion().next().map(|entry| entry.user_data()), Some(LEAVE));
    }
}
