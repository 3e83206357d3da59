//! The medium that a journal lies on, and how bytes are handed to it.

use std::{fmt, io};

use f2fs_device::{Claims, DeviceError};
use f2fs_pmem::RegionError;
use f2fs_sync::PlainArc;

/// The smallest grain: a line of the processor's cache.
pub const SMALLEST_GRAIN: usize = 64;
/// The largest grain: a block of a device.
pub const LARGEST_GRAIN: usize = 4096;

/// A medium that a journal lies on. [`RegionMedium`](crate::RegionMedium) is persistent memory,
/// [`DeviceMedium`](crate::DeviceMedium) a block device.
///
/// A medium is written in whole *grains*. A power cut may leave any part of the words of 8 bytes that were written
/// since they were last made durable, in any order. The journal needs no more than that, and never writes the same
/// grain from two threads at once.
pub trait Medium: fmt::Debug + Send + Sync + 'static {
    /// Bytes of a grain: a power of two, from 64 to 4096. Every read and write begins at a multiple of it.
    fn grain(&self) -> usize;

    /// Bytes of the medium. Bytes behind the last whole grain are not used.
    fn bytes(&self) -> u64;

    /// Whether writes are refused.
    fn read_only(&self) -> bool {
        false
    }

    /// Who has it open in this process: one journal that appends, or any number of readers. A medium that wraps another
    /// one hands out that one's.
    fn claims(&self) -> &Claims;

    /// Reads `into.len()` bytes from `offset`, a multiple of the grain.
    ///
    /// # Errors
    /// [`MediumError`], if the medium fails. The content of `into` is undefined then.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError>;

    /// Writes `bytes` to `offset`, a multiple of the grain. The last grain is filled up with zeros.
    ///
    /// # Errors
    /// [`MediumError`], if the medium fails. Any part may have been written then.
    fn write(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError>;

    /// Makes durable what this thread wrote before.
    ///
    /// # Errors
    /// [`MediumError`], if the medium fails. Nothing that was written since the last success can be trusted then.
    fn persist(&self) -> Result<(), MediumError>;

    /// Writes as [`write`](Self::write) does; these bytes are durable on return. Others need not be.
    ///
    /// # Errors
    /// As for [`write`](Self::write) and [`persist`](Self::persist).
    fn write_durably(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        self.write(offset, bytes)?;
        self.persist()
    }
}

impl<M: Medium + ?Sized> Medium for PlainArc<M> {
    fn grain(&self) -> usize {
        (**self).grain()
    }

    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    fn read_only(&self) -> bool {
        (**self).read_only()
    }

    fn claims(&self) -> &Claims {
        (**self).claims()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        (**self).read(offset, into)
    }

    fn write(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        (**self).write(offset, bytes)
    }

    fn persist(&self) -> Result<(), MediumError> {
        (**self).persist()
    }

    fn write_durably(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        (**self).write_durably(offset, bytes)
    }
}

/// Why a medium failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MediumError {
    /// A region refused a load or a store.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// A region could not be synced ([`PersistentRegion::sync`](f2fs_pmem::PersistentRegion::sync)).
    #[error("the region cannot be made durable: {0}")]
    Sync(#[source] io::Error),
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The memory at this offset cannot be read.
    #[error("{bytes} bytes at offset {offset} cannot be read")]
    Unreadable {
        /// The first byte, counted from the start of the medium.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// A medium of somebody else failed in a way of its own.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

/// Bytes to be written one after the other, which lie in several places: a head, and then parts.
#[derive(Clone, Copy)]
pub struct Gather<'a> {
    head: &'a [u8],
    parts: &'a [&'a [u8]],
    /// Bytes at the beginning that are left out.
    skip: usize,
    /// Bytes that remain.
    len: usize,
}

impl<'a> Gather<'a> {
    /// `head`, and `parts` behind it, which have `bytes` bytes together.
    pub(crate) fn new(head: &'a [u8], parts: &'a [&'a [u8]], bytes: usize) -> Self {
        Gather { head, parts, skip: 0, len: head.len() + bytes }
    }

    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first `bytes` bytes (at most all), and the rest.
    #[must_use]
    pub fn split_at(self, bytes: usize) -> (Self, Self) {
        let bytes = bytes.min(self.len);
        (Gather { len: bytes, ..self }, Gather { skip: self.skip + bytes, len: self.len - bytes, ..self })
    }

    /// The bytes, slice by slice; none of the slices is empty.
    pub fn slices(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (mut skip, mut left) = (self.skip, self.len);
        std::iter::once(self.head).chain(self.parts.iter().copied()).filter_map(move |slice| {
            let from = skip.min(slice.len());
            skip -= from;
            let taken = left.min(slice.len() - from);
            left -= taken;
            slice.get(from..from + taken).filter(|rest| !rest.is_empty())
        })
    }
}

impl<'a> From<&'a [u8]> for Gather<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Gather::new(bytes, &[], 0)
    }
}

impl fmt::Debug for Gather<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gather").field("bytes", &self.len).field("parts", &self.parts.len()).finish()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_gathered_and_split_anywhere() {
        let parts: [&[u8]; 4] = [b"bc", b"", b"d", b"efg"];
        let all = Gather::new(b"a", &parts, 6);
        let joined = |gather: Gather<'_>| gather.slices().collect::<Vec<_>>().concat();
        assert_eq!((joined(all), all.len()), (b"abcdefg".to_vec(), 7));
        for at in 0..=9 {
            let (first, rest) = all.split_at(at);
            assert_eq!([joined(first), joined(rest)].concat(), b"abcdefg");
            assert_eq!((first.len(), joined(first).len()), (at.min(7), at.min(7)));
            assert_eq!(joined(rest.split_at(1).0), b"abcdefg"[at.min(7)..(at + 1).min(7)]);
        }
        assert!(Gather::from(&[][..]).is_empty());
    }
}
