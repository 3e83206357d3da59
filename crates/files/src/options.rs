//! How a file system is opened.

use core::num::NonZeroUsize;
use std::path::PathBuf;

use f2fs_volume::VolumeOptions;

use crate::Time;
use crate::ranges::RangeLock;

pub use journal::JournalOptions;

mod journal;

/// The extent of the lock that a change of a name takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DirectoryLock {
    /// One of 64 stripes, by the hash of the name: names in different stripes do not meet. On machines with 32
    /// processors and more there are about 4 stripes for each.
    #[default]
    Bucket,
    /// The whole directory, as the kernel's VFS does. For comparisons: the feature `baselines` has it.
    #[cfg(feature = "baselines")]
    Whole,
}

/// How a file system is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How the volume is opened.
    pub volume: VolumeOptions,
    /// The extent of the lock that a change of a name takes.
    pub directory_lock: DirectoryLock,
    /// Inodes kept in memory that nobody uses, about.
    pub inode_cache: NonZeroUsize,
    /// The kind of lock on ranges of a file's blocks.
    pub range_lock: RangeLock,
    /// Bytes for a cache of block addresses: 4 for each block that was read. Addresses beyond that are looked up in the
    /// nodes every time. An inode gives its part back when it leaves memory.
    pub address_cache: u64,
    /// Bytes that the range locks of files may take that nobody uses, about; locks beyond that leave memory. An open
    /// file takes a byte for each block that was read or written, and up to 60 KiB for one far behind the others.
    pub lock_memory: u64,
    /// Dentry blocks kept in memory, about (4 KiB each), beside those that wait for a checkpoint.
    pub dentry_cache: NonZeroUsize,
    /// Bytes of the page cache: blocks of files that were read, and written ones that are not on the device yet. 0:
    /// every read and write of data goes to the device at once.
    pub page_cache: u64,
    /// The other devices of a volume that lies on several, in their order, for
    /// [`FileSystem::open_path`](crate::FileSystem::open_path).
    pub devices: Vec<PathBuf>,
    /// A journal for syncs of files, in place of the log of the volume.
    pub journal: Option<JournalOptions>,
    /// Whether a volume that was left with a journal may be opened for writing without it, or with another one. The
    /// files that were synced into that journal are then lost.
    pub without_journal: bool,
    /// The clock for the times of files; the system's by default. A clock that stands still makes the same
    /// operations leave the same images.
    pub clock: fn() -> Time,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            volume: VolumeOptions::default(),
            directory_lock: DirectoryLock::default(),
            inode_cache: NonZeroUsize::MIN.saturating_add(65_535),
            range_lock: RangeLock::default(),
            address_cache: 64 << 20,
            lock_memory: 64 << 20,
            dentry_cache: NonZeroUsize::MIN.saturating_add(65_535),
            page_cache: 0,
            devices: Vec::new(),
            journal: None,
            without_journal: false,
            clock: Time::now,
        }
    }
}

impl Options {
    /// For reading and writing, with the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// For reading only, or not.
    #[must_use]
    pub fn read_only(mut self, yes: bool) -> Self {
        self.volume.read_only = yes;
        self
    }

    /// How the volume is opened.
    #[must_use]
    pub fn volume(mut self, options: VolumeOptions) -> Self {
        self.volume = options;
        self
    }

    /// The extent of the lock that a change of a name takes.
    #[must_use]
    pub fn directory_lock(mut self, lock: DirectoryLock) -> Self {
        self.directory_lock = lock;
        self
    }

    /// Inodes kept in memory that nobody uses, about.
    #[must_use]
    pub fn inode_cache(mut self, inodes: NonZeroUsize) -> Self {
        self.inode_cache = inodes;
        self
    }

    /// The kind of lock on ranges of a file's blocks.
    #[must_use]
    pub fn range_lock(mut self, lock: RangeLock) -> Self {
        self.range_lock = lock;
        self
    }

    /// Bytes for a cache of block addresses, 4 for each block; 64 MiB, for 64 GiB of files, by default.
    #[must_use]
    pub fn address_cache(mut self, bytes: u64) -> Self {
        self.address_cache = bytes;
        self
    }

    /// Bytes that the range locks of closed files may take, about; 64 MiB by default.
    #[must_use]
    pub fn lock_memory(mut self, bytes: u64) -> Self {
        self.lock_memory = bytes;
        self
    }

    /// Dentry blocks kept in memory, about; 65,536 (256 MiB) by default.
    #[must_use]
    pub fn dentry_cache(mut self, blocks: NonZeroUsize) -> Self {
        self.dentry_cache = blocks;
        self
    }

    /// Bytes of the page cache. 0, the default: every read and write of data goes to the device at once.
    ///
    /// With a cache a read that finds its blocks there does not touch the device, and a write returns when its data is
    /// in memory: the device gets it with a sync of the file, a checkpoint, after about five seconds of further writes,
    /// or when half of the cache waits to be written. A write counts its space, so a lack of space is an error of the
    /// write. An error of the device is told to the next sync through each handle of the file, once. A crash loses what
    /// was neither synced nor in a checkpoint, as it does without a cache; of a write that goes on while the file is
    /// synced, it may leave some blocks and lose others. A write of whole blocks, 1 MiB and more,
    /// goes to the device at once with a cache as well.
    ///
    /// The default serves an embedder that has a cache of its own, or reads and writes in large pieces: a second copy
    /// of each block would cost memory and time. A cache pays for many small files, small writes, and small reads that
    /// come again; [`start_flusher`](crate::FileSystem::start_flusher) lets the device work meanwhile. Its memory lies in
    /// huge pages where the system gives them (`madvise`), and what pages took once stays with the cache until the file
    /// system is dropped.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// use f2fs_files::{FileSystem, Options};
    ///
    /// let fs = FileSystem::open(device, Options::new().page_cache(64 << 20))?;
    /// let file = fs.create_file("/f", 0o644)?;
    /// file.write_at(&[7; 10_000], 0)?; // in memory
    /// assert_eq!(fs.stats().dirty_pages, 3);
    /// file.sync_all()?; // on the device
    /// assert_eq!(fs.stats().dirty_pages, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn page_cache(mut self, bytes: u64) -> Self {
        self.page_cache = bytes;
        self
    }

    /// The other devices of a volume that lies on several, in their order, for
    /// [`FileSystem::open_path`](crate::FileSystem::open_path).
    #[must_use]
    pub fn devices(mut self, others: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.devices = others.into_iter().map(Into::into).collect();
        self
    }

    /// A journal for syncs of files. It is the volume's alone: [`create_journal`](crate::create_journal) makes it.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use f2fs_files::{FileSystem, JournalMode, JournalOptions, Options, create_journal};
    /// # use f2fs_device::MemoryDevice;
    /// # use f2fs_journal::RegionMedium;
    /// # use f2fs_pmem::MemoryRegion;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Arc::new(MemoryDevice::new(64 << 8));
    /// f2fs_volume::format::format(&*device, &Default::default())?;
    /// // Memory in place of a file in persistent memory.
    /// let medium = Arc::new(RegionMedium::new(MemoryRegion::new(1 << 20)?));
    /// create_journal(device.clone(), medium.clone(), false)?;
    ///
    /// let journal = JournalOptions::new(medium, JournalMode::Ordered);
    /// let fs = FileSystem::open(device, Options::new().journal(journal))?;
    /// let file = fs.create_file("/log", 0o644)?;
    /// file.write_at(b"entry", 0)?;
    /// file.sync_all()?;
    /// assert_ne!(fs.volume().journal_usage().unwrap().used, 0);
    /// fs.close()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn journal(mut self, journal: JournalOptions) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Whether the files that were synced into a missing journal are given up.
    #[must_use]
    pub fn without_journal(mut self, yes: bool) -> Self {
        self.without_journal = yes;
        self
    }

    /// The clock for the times of files. It is asked with locks held, so it must not call into the file system.
    ///
    /// ```
    /// # use f2fs_files::{Options, Time};
    /// let options = Options::new().clock(|| Time { seconds: 1_000_000_000, nanoseconds: 0 });
    /// ```
    #[must_use]
    pub fn clock(mut self, clock: fn() -> Time) -> Self {
        self.clock = clock;
        self
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use super::*;
    use crate::FileSystem;
    use crate::samples::formatted;

    #[test]
    fn an_option_is_what_it_was_set_to() {
        let few = NonZeroUsize::new(7).unwrap();
        let all = Options::new()
            .volume(VolumeOptions::new().lanes(3))
            .read_only(true)
            .inode_cache(few)
            .address_cache(1)
            .lock_memory(2)
            .dentry_cache(few)
            .page_cache(3)
            .devices(["/b", "/c"])
            .without_journal(true)
            .clock(|| Time { seconds: 5, nanoseconds: 6 });
        assert_eq!((all.volume.lanes, all.volume.read_only), (VolumeOptions::new().lanes(3).lanes, true));
        assert_eq!((all.inode_cache, all.dentry_cache), (few, few));
        assert_eq!((all.address_cache, all.lock_memory, all.page_cache), (1, 2, 3));
        assert_eq!(all.devices, [PathBuf::from("/b"), PathBuf::from("/c")]);
        assert!(all.without_journal && !all.clone().read_only(false).volume.read_only);
        assert_eq!((all.clock)(), Time { seconds: 5, nanoseconds: 6 });
        // As much for addresses and locks as 64 GiB of files need.
        let usual = Options::new();
        assert_eq!((usual.address_cache, usual.lock_memory, usual.page_cache), (64 << 20, 64 << 20, 0));
    }

    #[test]
    fn a_page_cache_is_there_if_it_was_asked_for() {
        let device = formatted(32 * 1024);
        for bytes in [0, 1 << 20] {
            let fs = FileSystem::open(device.clone(), Options::new().page_cache(bytes)).unwrap();
            assert_eq!(fs.has_page_cache(), bytes != 0);
        }
    }
}
