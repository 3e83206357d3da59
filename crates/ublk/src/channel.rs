//! The trait of a worker's other side: where requests come from, their results go, and who moves data meanwhile.
//!
//! ```text
//!                  arrive                  commit
//!   the channel's --------> the worker's ----------> the channel's
//!        ^                     |    ^
//!        |                begin|    |arrive
//!        |                     v    |
//!        |                   moving: the channel's, with a piece of memory
//! ```

use std::io;

use f2fs_device::{AlignedBuf, BLOCK_SIZE};

use crate::{abi::Descriptor, gather::Wish};

/// A way for a request's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Movement {
    /// From the one who writes.
    Fetch,
    /// To the one who reads.
    Deliver,
    /// From the device's file.
    Read {
        /// The first block there.
        start: u64,
    },
    /// To the device's file.
    Write {
        /// The first block there.
        start: u64,
    },
    /// From the device's file to the pages of the request, which it [lends](Channel::lends).
    Fill {
        /// The first block there.
        start: u64,
        /// How many.
        blocks: u64,
    },
    /// From the pages of the request to the device's file.
    Drain {
        /// The first block there.
        start: u64,
        /// How many.
        blocks: u64,
    },
}

impl Movement {
    /// Whether it is one of pages that the request lends.
    pub(crate) fn is_lent(&self) -> bool {
        matches!(self, Self::Fill { .. } | Self::Drain { .. })
    }

    /// How much is moved: as much as the memory has, or as the request lends.
    pub(crate) fn bytes(&self, buf: &AlignedBuf) -> usize {
        match self {
            Self::Fill { blocks, .. } | Self::Drain { blocks, .. } => *blocks as usize * BLOCK_SIZE,
            _ => buf.len(),
        }
    }
}

/// What the worker is told of.
#[derive(Debug)]
pub(crate) enum Event {
    /// The tag has a request.
    Arrived(u16),
    /// A movement is over.
    Moved(Moved),
}

/// A movement that is over.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) tag: u16,
    pub(crate) movement: Movement,
    pub(crate) buf: AlignedBuf,
    /// All of it was moved, or an error number says why not.
    pub(crate) result: Result<(), i32>,
}

/// Where requests come from and their results go. A tag is with the worker from [`arrive`](Self::arrive) to
/// [`commit`](Self::commit).
pub(crate) trait Channel {
    /// Hands over the committed answers and the movements, and appends what has happened to `events`. Sleeps until
    /// there is as much as is wished for, or until the channel has ended, or for no reason.
    fn arrive(&mut self, wish: Wish, events: &mut Vec<Event>) -> io::Result<()>;
    /// Whether no more requests will come.
    fn has_ended(&self) -> bool;
    /// The request of a tag. It is read once: its memory is not ours.
    fn descriptor(&self, tag: u16) -> Descriptor;
    /// Memory of `blocks` blocks for a tag: the data of a write, or room for a read.
    fn take(&mut self, tag: u16, blocks: usize) -> AlignedBuf;
    /// Whether the data of a request have to be fetched and delivered: `take` and `commit` do not do it.
    fn is_apart(&self) -> bool;
    /// Whether it can move data from the device's file and to it.
    fn has_file(&self) -> bool;
    /// Whether a request lends its pages to movements: its data go to the device's file and come from there without
    /// memory of ours. Whatever it lends can be fetched and delivered as well.
    fn lends(&self, request: &Descriptor) -> bool;
    /// Whether the worker is told twice of a request: when it has come, and when its data have been moved.
    fn tells_twice(&self) -> bool;
    /// Begins to move data to the memory or from it. There is none if the request lends its pages, and then a movement that
    /// goes well may be the end of the request: the channel commits all of it, and tells of nothing. A tag has one movement at a time, and is not committed meanwhile.
    fn begin(&mut self, movement: Movement, tag: u16, buf: AlignedBuf);
    /// Hands bytes over at once to the one who asked, where the data are apart.
    fn tell(&mut self, tag: u16, bytes: &[u8]) -> io::Result<()>;
    /// Takes the memory of a tag back; whether it is what was taken. If not, what it holds does not reach the one who
    /// asked.
    fn give_back(&mut self, tag: u16, buf: AlignedBuf) -> bool;
    /// The tag's request is over: bytes, or a negative error number. `sector` is where an append went to.
    fn commit(&mut self, tag: u16, result: i32, sector: u64);
}
