//! An open file.

use f2fs_device::AlignedBuf;
use f2fs_format::Nid;

use crate::FsError;
use crate::access::Access;
use crate::core::Core;
use crate::file_data::FileData;
use crate::file_data::read_many::ReadSlice;
use crate::file_data::write_many::WriteSlice;
use crate::handle::Handle;
use crate::inode::Inode;
use crate::page_cache::Seen;
use crate::ranges::LockWaits;
use crate::stat::{FileKind, Metadata};

/// An open regular file. Reads and writes from any number of threads at once.
///
/// [`FileSystem::open_file`](crate::FileSystem::open_file) and
/// [`FileSystem::create_file`](crate::FileSystem::create_file) open it for reading and writing,
/// [`OpenOptions`](crate::OpenOptions) for the access that is asked for. Any other operation fails with
/// [`FsError::NotOpenFor`].
#[derive(Debug)]
pub struct File {
    pub(crate) handle: Handle,
    pub(crate) access: Access,
    /// The errors of write-back that it has been told; asked for when the page cache is first used.
    seen: Seen,
}

impl File {
    pub(crate) fn new(handle: Handle) -> Result<File, FsError> {
        match handle.inode.kind {
            FileKind::Regular => {
                FileData(&handle.core).require_readable(&handle.inode)?;
                Ok(File { seen: handle.inode.seen_errors(), handle, access: Access::ALL })
            }
            FileKind::Directory => Err(FsError::IsDirectory),
            kind => Err(FsError::WrongKind { operation: "open", kind: kind.name() }),
        }
    }

    pub(crate) fn inode(&self) -> &Inode {
        &self.handle.inode
    }

    pub(crate) fn core(&self) -> &Core {
        &self.handle.core
    }

    /// Its inode number.
    #[must_use]
    pub fn ino(&self) -> Nid {
        self.handle.inode.ino
    }

    /// Reads up to `buf.len()` bytes from byte `offset` on; returns how many. Fewer only at the end of the file.
    ///
    /// # Errors
    /// [`FsError::Volume`].
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, FsError> {
        self.access.to_read()?;
        self.handle.data().read_at(&self.handle.inode, offset, buf)
    }

    /// Reads up to `buf.len()` bytes from byte `offset` on into memory that the device can transfer to; returns how
    /// many. Fewer only at the end of the file. Up to 1 MiB that lies in one piece on the device, read from a multiple
    /// of 4096 bytes on, gets there without being copied.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
    /// use f2fs_device::AlignedBuf;
    ///
    /// let file = fs.create_file("/f", 0o644)?;
    /// file.write_at(&[7; 10_000], 0)?;
    /// let mut buf = AlignedBuf::new(2);
    /// assert_eq!(file.read_into(&mut buf, 4096)?, 10_000 - 4096);
    /// assert_eq!(buf.as_bytes()[..10_000 - 4096], [7; 10_000 - 4096]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FsError::Volume`].
    pub fn read_into(&self, buf: &mut AlignedBuf, offset: u64) -> Result<usize, FsError> {
        self.access.to_read()?;
        self.handle.data().read_into(&self.handle.inode, offset, buf)
    }

    /// Reads many pieces with up to `depth` requests on the device at a time, as many threads would do with
    /// [`read_at`](Self::read_at), but from one thread. A `depth` of 0 counts as 1, and one above 1024 as 1024.
    /// [`ReadSlice::read`] has the bytes of each piece. Each is read as a whole before or after a write that overlaps
    /// it; the call as a whole is not. Checkpoints wait until all of it is done, so hand over milliseconds of work, not
    /// minutes.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
    /// use f2fs_files::ReadSlice;
    ///
    /// let file = fs.create_file("/table", 0o644)?;
    /// file.write_at(&[7; 100_000], 0)?;
    /// let mut pages = vec![[0; 4096]; 25];
    /// let mut reads: Vec<_> = pages.iter_mut().zip(0..).map(|(page, n)| ReadSlice::new(n * 4096, page)).collect();
    /// file.read_many(32, &mut reads)?;
    /// assert_eq!(reads[24].read, 100_000 - 24 * 4096);
    /// assert_eq!(pages[3], [7; 4096]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FsError::Volume`]; the content of the buffers is then undefined.
    pub fn read_many(&self, depth: usize, reads: &mut [ReadSlice<'_>]) -> Result<(), FsError> {
        self.access.to_read()?;
        self.handle.data().read_many(&self.handle.inode, depth, reads)
    }

    /// Writes `buf` at byte `offset`; returns how many bytes were written. Fewer than all only if space ran out on the
    /// way, or the greatest size of a file was reached. A gap between the old end and `offset` reads as zeros. A file
    /// that is open for appending takes all of `buf` or nothing, at its end, whatever `offset` is, as Linux does.
    ///
    /// # Errors
    /// [`FsError::FileTooLarge`] if `offset` is the greatest size or behind it, [`FsError::NoSpace`] when nothing fits,
    /// [`FsError::Volume`].
    pub fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize, FsError> {
        if self.access.places_writes()? {
            return self.append(buf).map(|_| buf.len());
        }
        self.handle.data().write_at(&self.handle.inode, offset, buf)
    }

    /// Writes `buf` at byte `offset` and makes the file durable, as [`write_at`](Self::write_at) and
    /// [`sync_all`](Self::sync_all) do, but with the data and the node that names it on their way at once: that saves
    /// one wait for each commit of a write-ahead log. Without space fewer bytes may be written than all; those are
    /// durable.
    ///
    /// A crash before it returns may leave the old bytes, the new ones, or, block by block, anything that the volume
    /// once held there: a log needs a checksum in each record, as it does on any disk that may tear a write.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// use f2fs_files::{AllocateFlags, FileSystem, Options};
    ///
    /// let fs = FileSystem::open(device.clone(), Options::new())?;
    /// let log = fs.create_file("/log", 0o644)?;
    /// log.allocate(0, 1 << 20, AllocateFlags::NONE)?; // no room in the inode: records go to blocks at once
    /// log.sync_all()?;
    /// log.write_durable(b"paid", 8192)?;
    /// drop((log, fs)); // a crash: nothing was closed
    ///
    /// let mut found = [0; 4];
    /// FileSystem::open(device, Options::new())?.open_file("/log")?.read_at(&mut found, 8192)?;
    /// assert_eq!(&found, b"paid");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at) and [`sync_all`](Self::sync_all): nothing is promised then. After an error of
    /// the device this file system still reads the file as it was, and it may refuse all changes. So does the next one that
    /// is opened, if the device went on: the node that names the data is taken out of the log. If the device did not, or
    /// on zones, where nothing is written over, the next one finds what a crash may leave, as above. In the mode
    /// [`Strict`](f2fs_volume::FsyncMode::Strict) the data is durable first, and no block has anything but its old or its
    /// new bytes.
    pub fn write_durable(&self, buf: &[u8], offset: u64) -> Result<usize, FsError> {
        if self.access.places_writes()? {
            self.append(buf)?;
            return self.sync_all().map(|()| buf.len());
        }
        self.handle.data().write_durable(&self.handle.inode, offset, buf)
    }

    /// Writes many pieces, in their order, with up to `depth` of them on the device at a time, as many threads would do
    /// with [`write_at`](Self::write_at), but from one thread. A `depth` of 0 counts as 1, and one above 1024 as 1024.
    /// [`WriteSlice::written`] has the bytes of each piece. Each piece is atomic by itself, the call as a whole is not.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
    /// use f2fs_files::WriteSlice;
    ///
    /// let file = fs.create_file("/table", 0o644)?;
    /// let page = [7; 4096];
    /// let mut writes: Vec<_> = (0..100).map(|n| WriteSlice::new(n * 37 % 100 * 4096, &page)).collect();
    /// file.write_many(32, &mut writes)?;
    /// assert_eq!(file.size(), 100 * 4096);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at); without space [`is_no_space`](FsError::is_no_space), also if a part fitted. Of a
    /// piece that reaches over the greatest size of a file, what fits is written, and that is no error; one that begins
    /// there or behind is. Data written until an error stays, and [`WriteSlice::written`] has the bytes of each piece.
    pub fn write_many(&self, depth: usize, writes: &mut [WriteSlice<'_>]) -> Result<(), FsError> {
        if self.access.places_writes()? {
            return Err(FsError::Invalid("the writes have offsets, and the file is open for appending"));
        }
        self.handle.data().write_many(&self.handle.inode, depth, writes)
    }

    /// How much waiting for ranges of the file there has been since it was opened by anybody.
    #[must_use]
    pub fn lock_waits(&self) -> LockWaits {
        self.handle.core.content(&self.handle.inode).ranges.waits()
    }

    /// Writes all of `buf` at the end, or nothing; returns the offset where it begins. Appends from several threads do
    /// not overlap. No checkpoint, and so no crash, has a part of it, if it has at most 14 MiB; what is longer is written
    /// in several operations, of which a crash may leave the first ones.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn append(&self, buf: &[u8]) -> Result<u64, FsError> {
        self.access.to_write()?;
        self.handle.data().append(&self.handle.inode, buf)
    }

    /// Cuts the file to `size` bytes, or lets it grow to that by a hole.
    ///
    /// A checkpoint beside it has the old size or the new one, and so has the state after a crash, if at most 120 MiB
    /// go; what is longer is cut from its end on, and may have a size in between. Bytes that were cut off never come
    /// back.
    ///
    /// # Errors
    /// [`FsError::FileTooLarge`], [`FsError::Volume`].
    pub fn set_len(&self, size: u64) -> Result<(), FsError> {
        self.access.to_write()?;
        self.handle.data().truncate(&self.handle.inode, size)
    }

    /// Makes the file durable, its content, its attributes and its name: a crash after this loses none of it. The name is
    /// its entry in its directory. Where that directory is, if it was moved since the last checkpoint, is made durable by
    /// the directory's own [sync](crate::Dir::sync_all): until then it may be found under the path that it had.
    ///
    /// A regular file with one name goes to a log that the next open reads; many threads that sync share one flush of
    /// the device. Where that does not do, a checkpoint is written: after the file was renamed, linked, cut by whole
    /// nodes, or, once synced, outgrew its inode since the last one, or in a directory that is newer; and by the first
    /// sync after an opening. Does nothing in a file system that is open for reading.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// use f2fs_files::{FileSystem, Options};
    ///
    /// let fs = FileSystem::open(device.clone(), Options::new())?;
    /// fs.create_file("/first", 0o644)?.sync_all()?; // a checkpoint
    /// let file = fs.create_file("/ledger", 0o644)?;
    /// file.append(b"paid")?;
    /// file.sync_all()?; // the log
    /// drop((file, fs)); // a crash: nothing was closed
    ///
    /// let fs = FileSystem::open(device, Options::new())?;
    /// assert_eq!(fs.metadata("/ledger")?.size, 4);
    /// assert_eq!(fs.recovered().new_files, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FsError::Volume`]: nothing is promised then, and after an error of the device the file system refuses all changes.
    pub fn sync_all(&self) -> Result<(), FsError> {
        self.handle.sync(&self.seen)
    }

    /// Makes the content durable, and the nodes that are needed to find it. At present the same as
    /// [`sync_all`](Self::sync_all), as in the kernel: a write moves blocks, so the inode changes with it.
    ///
    /// # Errors
    /// As there.
    pub fn sync_data(&self) -> Result<(), FsError> {
        self.sync_all()
    }

    /// The attributes of the file.
    ///
    /// # Errors
    /// [`FsError::Volume`].
    pub fn metadata(&self) -> Result<Metadata, FsError> {
        self.handle.inode.stat(self.handle.core.volume.features())
    }

    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.handle.inode.size()
    }
}
