//! The operations of persistent memory, and when a byte is durable.

use std::{fmt, io, ops::Range};

use f2fs_sync::PlainArc;

/// Bytes of a cache line: the unit that is written back.
pub const LINE: usize = 64;

/// Bytes of a word: the largest store that a power cut cannot tear, if its offset is a multiple of its size.
pub const WORD: usize = 8;

/// The steps until a byte survives a power cut. The crate documentation has the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// [`fence`](PersistentRegion::fence), by the thread that wrote back or stored past the cache.
    Fence,
    /// A fence, and then [`sync`](PersistentRegion::sync), which is a system call: the memory is the page cache of a
    /// file, and is slower, since whole pages are written to that file's disk.
    Sync,
    /// Nothing: the memory ends with the process.
    Volatile,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fence => "durable at a fence",
            Self::Sync => "no DAX: durable at msync, which is slower",
            Self::Volatile => "not durable",
        })
    }
}

/// Bytes that keep their content without power, in the address space of the process.
///
/// Any number of threads use a region at once. Offsets and lengths are bytes. Two accesses to the same bytes at the
/// same time, one of them a store, give the load any mixture of old and new words; the region itself orders nothing
/// between threads.
pub trait PersistentRegion: fmt::Debug + Send + Sync + 'static {
    /// Bytes in the region.
    fn len(&self) -> usize;

    /// Whether there is no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether stores are refused.
    fn read_only(&self) -> bool {
        false
    }

    /// The steps until a byte is durable.
    fn durability(&self) -> Durability;

    /// Copies the bytes at `offset` to `into`.
    ///
    /// # Errors
    /// [`RegionError::OutOfRange`].
    fn load(&self, offset: usize, into: &mut [u8]) -> Result<(), RegionError>;

    /// Stores `bytes` at `offset`, through the cache: words in ascending order, each word that `bytes` covers as a
    /// whole with one store. A line may reach the media at any time from then on, and does for certain once it was
    /// written back.
    ///
    /// # Errors
    /// [`RegionError::OutOfRange`], [`RegionError::ReadOnly`].
    fn store(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError>;

    /// Stores `bytes` at `offset`, past the cache (non-temporal): in any order, until the fence of this thread, which
    /// makes them visible to other threads and durable. Lines that `bytes` covers in part are stored through the cache
    /// and written back.
    ///
    /// # Errors
    /// [`RegionError::OutOfRange`], [`RegionError::ReadOnly`].
    fn store_nontemporal(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError>;

    /// Says that the line at `offset` is about to be [stored](Self::store), so that the store need not wait for the line
    /// to come from memory. It changes nothing, and any offset is allowed.
    fn expect_store(&self, offset: usize) {
        let _ = offset;
    }

    /// Begins to write the lines of `bytes` bytes from `offset` back from the cache to the media. It is certain to be
    /// over at the next fence of this thread.
    ///
    /// # Errors
    /// [`RegionError::OutOfRange`].
    fn write_back(&self, offset: usize, bytes: usize) -> Result<(), RegionError>;

    /// Waits for all that this thread stored past the cache or wrote back before. It says nothing of other threads.
    fn fence(&self);

    /// Makes all stores durable that any thread had fenced before this call, where a fence alone does not
    /// ([`Durability::Sync`]). Elsewhere it does nothing.
    ///
    /// # Errors
    /// Those of the operating system. Bytes that had not been synced before may be lost then.
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a region refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// The bytes do not lie inside the region. Nothing was done.
    #[error("{bytes} bytes at offset {offset} are outside the region, which has {region} bytes")]
    OutOfRange {
        /// The first byte.
        offset: usize,
        /// How many.
        bytes: usize,
        /// Bytes in the region.
        region: usize,
    },
    /// The region is for reading only. Nothing was done.
    #[error("the region is open for reading only")]
    ReadOnly,
}

/// Checks that `bytes` bytes at `offset` lie in a region of `region` bytes, and gives them as a range. For regions of
/// one's own.
///
/// # Errors
/// [`RegionError::OutOfRange`].
pub fn check_range(region: usize, offset: usize, bytes: usize) -> Result<Range<usize>, RegionError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= region => Ok(offset..end),
        _ => Err(RegionError::OutOfRange { offset, bytes, region }),
    }
}

/// The lines, by their numbers, that bytes lie in.
#[must_use]
pub fn lines(bytes: &Range<usize>) -> Range<usize> {
    if bytes.is_empty() { 0..0 } else { bytes.start / LINE..bytes.end.div_ceil(LINE) }
}

/// A range in three: the bytes before its first whole line, its whole lines, and the bytes behind.
#[must_use]
pub fn split_lines(bytes: &Range<usize>) -> [Range<usize>; 3] {
    let first = bytes.start.next_multiple_of(LINE).min(bytes.end);
    let last = (bytes.end / LINE * LINE).max(first);
    [bytes.start..first, first..last, last..bytes.end]
}

impl<R: PersistentRegion + ?Sized> PersistentRegion for PlainArc<R> {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn read_only(&self) -> bool {
        (**self).read_only()
    }

    fn durability(&self) -> Durability {
        (**self).durability()
    }

    fn load(&self, offset: usize, into: &mut [u8]) -> Result<(), RegionError> {
        (**self).load(offset, into)
    }

    fn store(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        (**self).store(offset, bytes)
    }

    fn store_nontemporal(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        (**self).store_nontemporal(offset, bytes)
    }

    fn expect_store(&self, offset: usize) {
        (**self).expect_store(offset);
    }

    fn write_back(&self, offset: usize, bytes: usize) -> Result<(), RegionError> {
        (**self).write_back(offset, bytes)
    }

    fn fence(&self) {
        (**self).fence();
    }

    fn sync(&self) -> io::Result<()> {
        (**self).sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_split_at_lines() {
        assert_eq!(split_lines(&(0..128)), [0..0, 0..128, 128..128]);
        assert_eq!(split_lines(&(60..130)), [60..64, 64..128, 128..130]);
        assert_eq!(split_lines(&(3..9)), [3..9, 9..9, 9..9]);
        assert_eq!(split_lines(&(3..64)), [3..64, 64..64, 64..64]);
        assert_eq!(split_lines(&(64..70)), [64..64, 64..64, 64..70]);
        assert_eq!([lines(&(0..0)), lines(&(63..65)), lines(&(64..128))], [0..0, 0..2, 1..2]);
    }

    #[test]
    fn ranges_are_checked_without_overflow() {
        assert_eq!(check_range(10, 3, 7), Ok(3..10));
        for (offset, bytes) in [(3, 8), (11, 0), (usize::MAX, 1), (1, usize::MAX)] {
            assert_eq!(check_range(10, offset, bytes), Err(RegionError::OutOfRange { offset, bytes, region: 10 }));
        }
    }
}
