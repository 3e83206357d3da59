//! Holes of an open file: finding them, and making them.

use core::ops::Range;

use crate::FsError;
use crate::allocate_flags::{AllocateFlags, RangeChange};
use crate::file::File;
use crate::file_data::FileData;
use crate::file_data::holes::Seek;

impl File {
    /// The first byte at or behind `offset` that is not a hole (`SEEK_DATA`); `None` if there is none up to the end of
    /// the file, or the file ends there or before: where `lseek` says `ENXIO`.
    ///
    /// Blocks that were reserved and never written are holes here, as on ext4 and XFS; F2FS in Linux passes over them
    /// in both directions. Holes have the size of blocks, and data in the inode has none.
    ///
    /// # Errors
    /// [`FsError::NotOpenFor`], [`FsError::Volume`].
    pub fn seek_data(&self, offset: u64) -> Result<Option<u64>, FsError> {
        self.access.to_read()?;
        self.handle.data().seek(&self.handle.inode, offset, Seek::Data)
    }

    /// The first byte at or behind `offset` that is a hole (`SEEK_HOLE`): the end of the file if there is none before.
    /// `None` if the file ends at `offset` or before, where `lseek` says `ENXIO`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
    /// let file = fs.create_file("/sparse", 0o644)?;
    /// file.write_at(&[7; 20_000], 0)?;
    /// file.punch_hole(5000, 10_000)?;
    /// assert_eq!(file.seek_hole(0)?, Some(8192));
    /// assert_eq!(file.seek_data(8192)?, Some(12_288));
    /// assert_eq!(file.seek_hole(12_288)?, Some(20_000));
    /// assert_eq!(file.seek_hole(20_000)?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FsError::NotOpenFor`], [`FsError::Volume`].
    pub fn seek_hole(&self, offset: u64) -> Result<Option<u64>, FsError> {
        self.access.to_read()?;
        self.handle.data().seek(&self.handle.inode, offset, Seek::Hole)
    }

    /// The first range of bytes at or behind `offset` that has data: [`seek_data`](Self::seek_data), and
    /// [`seek_hole`](Self::seek_hole) from there on, in one step; `None` if there is none up to the end of the file.
    /// All between `offset` and the range is a hole, which reads as zeros; so do blocks that were reserved and never
    /// written. The range ends at the next hole, at the end of the file, or after 64 MiB: to go on, ask again from its
    /// end. Large holes are passed in few steps, without reading the device for each block. Writers beside it may
    /// change the answer.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
    /// let file = fs.create_file("/sparse", 0o644)?;
    /// file.set_len(200 << 30)?;
    /// file.write_at(&[7; 5000], 100 << 30)?;
    /// assert_eq!(file.next_data(0)?, Some(100 << 30..(100 << 30) + 8192));
    /// assert_eq!(file.next_data((100 << 30) + 8192)?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FsError::NotOpenFor`], [`FsError::Volume`].
    pub fn next_data(&self, offset: u64) -> Result<Option<Range<u64>>, FsError> {
        self.access.to_read()?;
        self.handle.data().next_data(&self.handle.inode, offset)
    }

    /// Reserves, punches or zeroes `len` bytes (at least one) from `offset` on, as `flags` say: Linux's `fallocate`.
    ///
    /// Reserved blocks read as zeros, and writing there needs no more space. Without space for all of them nothing is
    /// reserved, and the file is as it was, but for nodes and the content that left the inode. Whatever the flags, the
    /// file counts as modified.
    ///
    /// # Errors
    /// [`FsError::Invalid`] for an empty range, [`FsError::Unsupported`] for flags that do not go together,
    /// [`FsError::FileTooLarge`], [`FsError::NoSpace`], [`FsError::NotOpenFor`], [`FsError::Volume`].
    pub fn allocate(&self, offset: u64, len: u64, flags: AllocateFlags) -> Result<(), FsError> {
        if len == 0 {
            return Err(FsError::Invalid("the range is empty"));
        }
        let Some(change) = flags.change() else {
            return Err(FsError::Unsupported { ino: self.ino(), what: "such flags of fallocate" });
        };
        self.access.to_write()?;
        let (core, inode) = (&self.handle.core, &self.handle.inode);
        match change {
            RangeChange::Reserve { keep_size } => FileData(core).allocate(inode, offset, len, keep_size),
            RangeChange::Punch => FileData(core).punch_hole(inode, offset, len),
            RangeChange::Zero { keep_size } => FileData(core).zero_range(inode, offset, len, keep_size),
        }
    }

    /// Makes a hole of `len` bytes from `offset` on: they read as zeros, and their blocks are free. Of blocks that lie
    /// in the range in part, that part is zeroed. The size stays.
    ///
    /// A checkpoint beside it, and so the state after a crash, has all of the hole or nothing if it is at most 120 MiB
    /// long; a longer one is made from its start on, and may be there in part.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate); [`FsError::NoSpace`] if a block of which a part is left cannot be written
    /// again.
    pub fn punch_hole(&self, offset: u64, len: u64) -> Result<(), FsError> {
        self.allocate(offset, len, AllocateFlags::PUNCH_HOLE | AllocateFlags::KEEP_SIZE)
    }

    /// Makes `len` bytes from `offset` on read as zeros, with blocks reserved for them; the file grows to the end of
    /// the range. Nothing is written but blocks of which a part stays. For a file that is to keep its size see
    /// [`AllocateFlags::ZERO_RANGE`].
    ///
    /// A crash leaves all or nothing of up to 120 MiB, as with [`punch_hole`](Self::punch_hole).
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub fn zero_range(&self, offset: u64, len: u64) -> Result<(), FsError> {
        self.allocate(offset, len, AllocateFlags::ZERO_RANGE)
    }

    /// Copies up to `len` bytes from `offset` on to byte `to_offset` of `to`, which may be the same file; returns how
    /// many. Fewer at the end of this file, or when space runs out on the way (`copy_file_range`). Holes stay holes.
    /// The data passes through memory, a piece at a time; others who write meanwhile may get between two pieces.
    ///
    /// # Errors
    /// [`FsError::Invalid`] if both ranges lie in one file and overlap, [`FsError::OtherVolume`],
    /// [`FsError::FileTooLarge`] if nothing fits below the largest size, [`FsError::NotOpenFor`], also for a target
    /// that is open for appending, and as [`read_at`](Self::read_at) and [`write_at`](Self::write_at).
    pub fn copy_range(&self, offset: u64, to: &File, to_offset: u64, len: u64) -> Result<u64, FsError> {
        self.access.to_read()?;
        if to.access.places_writes()? {
            return Err(FsError::NotOpenFor("writing at a place"));
        }
        if !core::ptr::eq(self.core(), to.core()) {
            return Err(FsError::OtherVolume);
        }
        self.handle.data().copy_range(&self.handle.inode, offset, &to.handle.inode, to_offset, len)
    }
}
