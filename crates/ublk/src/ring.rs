//! The kernel's side of a queue: commands of its tags in an `io_uring`, its descriptors, and the memory of its
//! requests.
//!
//! ```text
//!              FETCH, COMMIT_AND_FETCH                  completion 0
//!  ours -----------------------------> the kernel's -----------------> ours
//!                                          |    completion -ENODEV
//!                                          +-----------------------------> ended
//! ```
//! The memory of a tag may be written and read by the kernel while the tag is the kernel's, and only then.
//!
//! Locking rules: a channel belongs to the thread that made it, as its ring does and as the driver wants it. One lock,
//! on the memory that has come home, is held to take or put back one piece: a device may drop a buffer in another
//! thread.

use std::{fs::File, io, mem, os::fd::AsRawFd, os::unix::fs::FileExt, ptr};

use f2fs_device::{AlignedBuf, Block, BufHome};
use f2fs_sync::{Arc, Mutex};
use io_uring::{
    IoUring, cqueue, opcode, squeue,
    types::{Fixed, SubmitArgs},
};
use rustix::{
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap, munmap},
};
use zerocopy::IntoBytes;

use crate::{
    abi::{DESCRIPTORS_STRIDE, Descriptor, IoCommand, data_offset, errno, io as command},
    gather::Wish,
    worker::Channel,
};

/// The descriptors of a queue, which the driver writes.
struct Descriptors {
    start: *const Descriptor,
    bytes: usize,
}

impl Descriptors {
    fn map(file: &File, queue: u16, depth: u16) -> io::Result<Self> {
        let bytes = (usize::from(depth) * size_of::<Descriptor>()).next_multiple_of(4096);
        let offset = u64::from(queue) * DESCRIPTORS_STRIDE;
        // SAFETY: a new mapping at an address that the kernel chooses takes no memory from anybody.
        let start = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, offset) }?;
        Ok(Self { start: start.cast_const().cast(), bytes })
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and no reference to it was ever made.
        let _ = unsafe { munmap(self.start.cast_mut().cast(), self.bytes) };
    }
}

/// Where the memory of tags comes back to when a device has dropped its buffers.
///
/// A buffer with a home keeps its memory to itself and brings it back whole, so all of it is initialised, as it was at
/// first.
#[derive(Debug, Default)]
struct Home(Mutex<Vec<Vec<Block>>>);

impl BufHome for Home {
    fn take_back(&self, blocks: Vec<Block>) {
        self.0.lock().push(blocks);
    }
}

impl Home {
    /// Memory that is at home, with its first length.
    fn take(&self, blocks: usize) -> Option<Vec<Block>> {
        let mut memory = self.0.lock().pop()?;
        debug_assert!(memory.capacity() >= blocks, "memory of another channel");
        // SAFETY: only memory that `RingChannel` made with `blocks` initialised blocks gets this home. `AlignedBuf`
        // shortens and fills it and never moves it or hands it out, and bytes behind the end of a shortened vector stay
        // as they are.
        unsafe { memory.set_len(blocks) };
        Some(memory)
    }
}

/// A tag's memory and owner.
struct Tag {
    /// Empty while the device has it.
    memory: Vec<Block>,
    owner: Owner,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Ours,
    Kernel,
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
    /// Tags that have not ended.
    alive: usize,
    /// Commands that the kernel has not been told of.
    untold: u32,
    /// Whether the kernel can wait for several completions and be content with fewer after a while (Linux 6.12).
    gathers: bool,
    /// The first error of a command.
    fault: Option<i32>,
}

impl<'a> RingChannel<'a> {
    /// Sets a queue up, and fetches with all tags: with the first `arrive` the driver knows them.
    pub(crate) fn new(file: &'a File, queue: u16, depth: u16, max_io_bytes: u32, user_copy: bool) -> io::Result<Self> {
        let ring = build(depth.into())?;
        let gathers = ring.params().is_feature_min_timeout();
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        let descriptors = Descriptors::map(file, queue, depth)?;
        let max_blocks = max_io_bytes as usize / 4096;
        let tags = (0..depth).map(|_| Tag { memory: AlignedBuf::new(max_blocks).into(), owner: Owner::Ours }).collect();
        let alive = depth.into();
        let mut channel = Self {
            ring,
            descriptors,
            tags,
            home: Arc::new(Home::default()),
            file,
            queue,
            max_blocks,
            user_copy,
            alive,
            untold: 0,
            gathers,
            fault: None,
        };
        for tag in 0..depth {
            channel.push(command::FETCH, tag, 0, 0)?;
        }
        Ok(channel)
    }

    /// Gives a tag to the kernel with its next command.
    fn push(&mut self, number: u32, tag: u16, result: i32, sector: u64) -> io::Result<()> {
        let state = &mut self.tags[usize::from(tag)];
        // A device may have the memory still; the driver needs all that a request may have.
        if state.memory.len() < self.max_blocks {
            let at_home = self.home.take(self.max_blocks);
            state.memory = at_home.unwrap_or_else(|| AlignedBuf::new(self.max_blocks).into());
        }
        let address = if self.user_copy { sector } else { state.memory.as_mut_ptr().expose_provenance() as u64 };
        let body = IoCommand { queue: self.queue, tag, result, address };
        let mut bytes = [0; 16];
        bytes.copy_from_slice(body.as_bytes());
        let entry = opcode::UringCmd16::new(Fixed(0), number).cmd(bytes).build().user_data(tag.into());
        state.owner = Owner::Kernel;
        self.untold += 1;
        // SAFETY: the file is registered with the ring. The tag's memory is the kernel's from here on: it is neither
        // touched nor freed until the command's completion was seen (`arrive`), or ever, if that is not seen (`drop`).
        unsafe { self.ring.submission().push(&entry) }.map_err(|_| io::Error::other("the submission queue is full"))
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
    fn arrive(&mut self, wish: Wish, arrived: &mut Vec<u16>) -> io::Result<()> {
        self.enter(Wish { requests: wish.requests.min(self.alive), ..wish })?;
        for entry in self.ring.completion() {
            let Some(tag) = self.tags.get_mut(entry.user_data() as usize) else { continue };
            match entry.result() {
                0 => {
                    tag.owner = Owner::Ours;
                    arrived.push(entry.user_data() as u16);
                }
                error => {
                    tag.owner = Owner::Ended;
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
        self.alive == 0
    }

    fn descriptor(&self, tag: u16) -> Descriptor {
        if usize::from(tag) >= self.tags.len() {
            return Descriptor { op_flags: u32::MAX, ..Descriptor::default() };
        }
        // SAFETY: the mapping has a descriptor for each tag, and lives as long as this.
        let at = unsafe { self.descriptors.start.add(tag.into()) };
        // SAFETY: it is mapped and aligned, and any bytes are a descriptor. The driver writes it only while the tag is
        // the kernel's.
        unsafe { at.read_volatile() }
    }

    fn take(&mut self, tag: u16, blocks: usize) -> AlignedBuf {
        let mut memory = mem::take(&mut self.tags[usize::from(tag)].memory);
        memory.truncate(blocks);
        if memory.len() < blocks {
            return AlignedBuf::new(blocks);
        }
        AlignedBuf::with_home(memory, f2fs_sync::coerce!(Arc::clone(&self.home) => dyn BufHome))
    }

    fn fetch(&mut self, tag: u16, buf: &mut AlignedBuf) -> io::Result<()> {
        if self.user_copy {
            self.file.read_exact_at(buf.as_bytes_mut(), data_offset(self.queue, tag))?;
        }
        Ok(())
    }

    fn deliver(&mut self, tag: u16, bytes: &[u8]) -> io::Result<()> {
        if self.user_copy {
            self.file.write_all_at(bytes, data_offset(self.queue, tag))?;
        }
        Ok(())
    }

    fn give_back(&mut self, tag: u16, buf: AlignedBuf) {
        drop(buf);
        if let Some(memory) = self.home.take(self.max_blocks) {
            self.tags[usize::from(tag)].memory = memory;
        }
    }

    fn commit(&mut self, tag: u16, result: i32, sector: u64) {
        if let Err(error) = self.push(command::COMMIT_AND_FETCH, tag, result, sector) {
            self.fault = self.fault.or(error.raw_os_error()).or(Some(errno::EIO));
        }
    }
}

impl Drop for RingChannel<'_> {
    fn drop(&mut self) {
        let _ = self.ring.submitter().unregister_files();
        for tag in &mut self.tags {
            if tag.owner == Owner::Kernel {
                // The kernel may still copy to it or from it.
                mem::take(&mut tag.memory).leak();
            }
        }
    }
}
