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
//! Where requests lend their pages, these are the buffer of the ring with the number of the tag: from fetch to commit
//! by themselves, or around one movement, by two entries of their own. Those tell of nothing but their failure, and then the
//! movement fails as well, which is answered as any other failure of it.
//!
//! Where they do so by themselves, the movement is linked to the commit of what it will have moved, and tells of its failure
//! alone. The kernel cancels the commit then, and says nothing of it, so one of the two completes:
//!
//! ```text
//!   movement --- all is moved ---> COMMIT_AND_FETCH ---> (completion: the tag's next request)
//!      '-------- less, or an error ---> (completion of the movement: the tag is ours)
//! ```
//! Kernels that lend pages keep a linked command (older ones read it once more when its turn comes, from a place of the ring
//! that may be another entry's by then).
//!
//! Locking rules: a channel belongs to the thread that made it, as its ring does and as the driver wants it. The lock of
//! its `Home` is the only one.

use std::{
    fs::File,
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    os::unix::fs::FileExt,
    ptr,
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
    abi::{Descriptor, DeviceRecord, IoCommand, data_offset, errno, feature, io as command, registration},
    channel::{Channel, Event, Moved, Movement},
    descriptors::Descriptors,
    gather::Wish,
    home::Home,
    path::Lending,
};

/// The driver's file among those that the ring has registered.
const DRIVER: Fixed = Fixed(0);
/// The device's.
const FILE: Fixed = Fixed(1);
/// A place among them that has none yet.
const NO_FILE: RawFd = -1;

/// The mark of the entry that completes when the server leaves. Tags are less.
const LEAVE: u64 = u64::MAX;
/// The mark of a movement that is linked to its commit, with its tag.
const LINKED: u64 = 1 << 32;
/// The mark of entries that register pages and end that. Tags are less, and nobody waits for them.
const ASIDE: u64 = u64::MAX - 1;
/// The event of a pipe that can be read; that it was closed is told in any case.
const POLLIN: u32 = 1;

/// A tag's memory and owner.
struct Tag {
    /// Empty while the device has it, or a movement.
    memory: Vec<Block>,
    owner: Owner,
    /// The pages of its request were registered by an entry of ours.
    is_registered: bool,
}

enum Owner {
    Ours,
    /// A command is with the driver.
    Kernel,
    /// A movement of lent pages is with the kernel, and behind it the command to the driver.
    Linked(Movement),
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
    /// The data of requests are not in the memory of their tags.
    is_apart: bool,
    lending: Lending,
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
    /// The data of requests are not in the memory of their tags: the driver does not copy them.
    pub(crate) is_apart: bool,
    pub(crate) lending: Lending,
}

impl QueueShape {
    /// Of this queue of a device. `border` is [that of a selective path](crate::Options::border).
    pub(crate) fn of(device: &DeviceRecord, number: u16, border: u32) -> Self {
        let DeviceRecord { depth, max_io_bytes, flags, .. } = *device;
        let apart = feature::USER_COPY | feature::SUPPORT_ZERO_COPY | feature::AUTO_BUF_REG;
        Self { number, depth, max_io_bytes, is_apart: flags & apart != 0, lending: Lending::of(flags, border) }
    }

    fn max_blocks(&self) -> usize {
        self.max_io_bytes as usize / 4096
    }

    /// Entries that the kernel may not have taken yet: one for each tag, and one more where it lends pages, which are
    /// registered before a movement and after it, or moved in front of a commit.
    fn entries(&self) -> u32 {
        let each = if self.lending == Lending::Never { 1 } else { 2 };
        u32::from(self.depth) * each
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
        let mut ring = build(shape.entries())?;
        if shape.lending != Lending::Never {
            ring.submitter().register_buffers_sparse(shape.depth.into())?;
        }
        let files: Vec<_> = [NO_FILE].into_iter().chain(device.map(|file| file.as_raw_fd())).collect();
        ring.submitter().register_files(&files)?;
        let closed = opcode::PollAdd::new(Fd(stays.as_fd().as_raw_fd()), POLLIN).build().user_data(LEAVE);
        // SAFETY: the entry points to no memory, and the kernel takes the file with it at once, in `submit`.
        unsafe { ring.submission().push(&closed) }.map_err(|_| io::Error::other("the submission queue is full"))?;
        ring.submit()?;
        let memory = || AlignedBuf::new(shape.max_blocks()).into();
        let tags = (0..shape.depth).map(|_| Tag { memory: memory(), owner: Owner::Ours, is_registered: false });
        let tags = tags.collect();
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
            is_apart: shape.is_apart,
            lending: shape.lending,
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
        self.command_as(Owner::Kernel, number, tag, result, sector)
    }

    fn command_as(&mut self, owner: Owner, number: u32, tag: u16, result: i32, sector: u64) -> io::Result<()> {
        let state = &mut self.tags[usize::from(tag)];
        // A device may have the memory still; the driver needs all that a request may have.
        if state.memory.len() < self.max_blocks {
            state.memory = self.home.take().unwrap_or_else(|| AlignedBuf::new(self.max_blocks).into());
        }
        let address = if self.is_apart { sector } else { state.memory.as_mut_ptr().expose_provenance() as u64 };
        let entry = self.driver_entry(number, IoCommand { queue: self.queue, tag, result, address });
        if mem::take(&mut self.tags[usize::from(tag)].is_registered) {
            self.push_aside(command::UNREGISTER_BUFFER, tag, squeue::Flags::SKIP_SUCCESS)?;
        }
        self.push(tag, owner, entry)
    }

    /// The entry of a movement: what of the ring it moves.
    fn movement(&self, movement: Movement, tag: u16, buf: &mut AlignedBuf) -> squeue::Entry {
        let (memory, length) = (buf.as_bytes_mut().as_mut_ptr(), movement.bytes(buf) as u32);
        let data = data_offset(self.queue, tag);
        // Beyond every file, but not the number that stands for the file's own position.
        let place = |start: u64| start.saturating_mul(4096).min(1 << 62);
        match movement {
            Movement::Fetch => opcode::Read::new(DRIVER, memory, length).offset(data).build(),
            Movement::Deliver => opcode::Write::new(DRIVER, memory, length).offset(data).build(),
            Movement::Read { start } => opcode::Read::new(FILE, memory, length).offset(place(start)).build(),
            Movement::Write { start } => opcode::Write::new(FILE, memory, length).offset(place(start)).build(),
            // Of pages that are registered, an entry has the place of the first byte in them, and not an address.
            Movement::Fill { start, .. } => {
                opcode::ReadFixed::new(FILE, ptr::null_mut(), length, tag).offset(place(start)).build()
            }
            Movement::Drain { start, .. } => {
                opcode::WriteFixed::new(FILE, ptr::null(), length, tag).offset(place(start)).build()
            }
        }
    }

    /// Moves data to lent pages or from them. Where the movement is linked, that is the end of the request.
    fn move_lent(&mut self, movement: Movement, tag: u16, mut none: AlignedBuf) -> io::Result<()> {
        let entry = self.movement(movement, tag, &mut none);
        if self.lending == Lending::All {
            let flags = squeue::Flags::SKIP_SUCCESS | squeue::Flags::IO_LINK;
            self.push_entry(&entry.flags(flags).user_data(LINKED | u64::from(tag)))?;
            let bytes = movement.bytes(&none) as i32;
            return self.command_as(Owner::Linked(movement), command::COMMIT_AND_FETCH, tag, bytes, 0);
        }
        self.tags[usize::from(tag)].is_registered = true;
        // A hard link goes on where the first entry fails: of a soft one that tells of no success, the kernel tells of no
        // end either.
        let flags = squeue::Flags::SKIP_SUCCESS | squeue::Flags::IO_HARDLINK;
        self.push_aside(command::REGISTER_BUFFER, tag, flags)?;
        self.push(tag, Owner::Moving(movement, none), entry)
    }

    /// A command to the driver.
    fn driver_entry(&self, number: u32, body: IoCommand) -> squeue::Entry {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(body.as_bytes());
        let place = (self.lending == Lending::All).then(|| registration(body.tag));
        opcode::UringCmd16::new(DRIVER, number).cmd(bytes).addr(place).build()
    }

    /// Registers the pages of a tag's request, or ends that: the driver's entry for it, which tells of its failure only.
    fn push_aside(&mut self, number: u32, tag: u16, flags: squeue::Flags) -> io::Result<()> {
        let body = IoCommand { queue: self.queue, tag, result: 0, address: tag.into() };
        let entry = self.driver_entry(number, body).flags(flags).user_data(ASIDE);
        self.push_entry(&entry)
    }

    /// Gives a tag to the kernel, and with it the memory that the entry points into: the tag's, or its movement's.
    fn push(&mut self, tag: u16, owner: Owner, entry: squeue::Entry) -> io::Result<()> {
        self.tags[usize::from(tag)].owner = owner;
        self.push_entry(&entry.user_data(tag.into()))
    }

    fn push_entry(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        self.untold += 1;
        // SAFETY: the files are registered with the ring. The memory is the kernel's from here on: it is neither touched
        // nor freed until the entry's completion was seen (`arrive`), or ever, if that is not seen (`drop`).
        unsafe { self.ring.submission().push(entry) }.map_err(|_| io::Error::other("the submission queue is full"))
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
                // A movement may have been taken without the commit that is linked to it, and that would not hear then that
                // the movement fails. It is never told; the queue ends. The kernel takes less only if it has no memory.
                if self.untold > 0 && self.lending == Lending::All { Err(Errno::NOMEM.into()) } else { Ok(()) }
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
            let (mark, result) = (entry.user_data(), entry.result());
            let Some(state) = self.tags.get_mut((mark & !LINKED) as usize) else { continue };
            let (tag, is_movement) = (mark as u16, mark & LINKED != 0);
            match (mem::replace(&mut state.owner, Owner::Ours), result) {
                // The commit behind it will never be told of.
                (Owner::Linked(movement), moved) if is_movement => {
                    let result = Err(if moved < 0 { -moved } else { errno::EIO });
                    events.push(Event::Moved(Moved { tag, movement, buf: AlignedBuf::default(), result }));
                }
                (Owner::Moving(movement, buf), moved) => {
                    let result = match usize::try_from(moved) {
                        Ok(bytes) if bytes == movement.bytes(&buf) => Ok(()),
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
        self.is_apart
    }

    fn has_file(&self) -> bool {
        self.has_file
    }

    fn lends(&self, request: &Descriptor) -> bool {
        self.lending.lends(request)
    }

    fn tells_twice(&self) -> bool {
        (self.is_apart || self.has_file) && !(self.has_file && self.lending == Lending::All)
    }

    fn begin(&mut self, movement: Movement, tag: u16, mut buf: AlignedBuf) {
        let begun = if movement.is_lent() {
            self.move_lent(movement, tag, buf)
        } else {
            let entry = self.movement(movement, tag, &mut buf);
            self.push(tag, Owner::Moving(movement, buf), entry)
        };
        if let Err(error) = begun {
            self.fail(&error);
        }
    }

    fn tell(&mut self, tag: u16, bytes: &[u8]) -> io::Result<()> {
        if self.is_apart {
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
                Owner::Kernel | Owner::Linked(_) => drop(mem::take(&mut tag.memory).leak()),
                Owner::Moving(_, buf) => {
                    let _ = mem::ManuallyDrop::new(buf);
                }
                Owner::Ours | Owner::Ended => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
