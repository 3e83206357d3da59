//! How a volume is opened.

use core::num::NonZeroUsize;

use f2fs_device::BlockDevice;
use f2fs_sync::PerCore;

use crate::Allocation;

/// How a volume is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VolumeOptions {
    /// Nothing is ever written.
    pub read_only: bool,
    /// Clean nodes (4 KiB each) kept in memory, about. The memory of others that a checkpoint has written is kept for new
    /// nodes: as much as left the cache with the last checkpoint, and less with each that needs less.
    pub node_cache: NonZeroUsize,
    /// Dirty nodes (4 KiB each) after which a checkpoint is due.
    pub dirty_nodes: u64,
    /// If there are at most so many dirty nodes, a checkpoint writes none before it closes the gate.
    pub nodes_left_to_freeze: u64,
    /// How free NIDs are found.
    pub nid_policy: f2fs_nat::Policy,
    /// The treatment of valid blocks in a write's way when free segments are few.
    pub allocation: Allocation,
    /// Segments that each data log writes into at a time, on different processors. Only six are recorded by a
    /// checkpoint; the others are dirty segments to it. By default one for each processor. A volume gets 8 at most, or one
    /// for each 32 sections of its main area if those are more; 0 is taken for 1.
    pub lanes: usize,
    /// Threads that read the SIT when the volume is opened for writing, and that write nodes when it is closed, the
    /// caller's among them. They have ended when the volume is open, or closed; small volumes need no second one, nor
    /// do few dirty nodes. Nothing of the SIT is read when a volume is opened for reading. 0 is taken for 1.
    pub threads: usize,
    /// Whether what was synced since the last checkpoint is recovered. Without this the volume
    /// is opened at its last checkpoint.
    pub recovery: bool,
    /// Whether opening for writing is refused where the newest checkpoint lost its first block, and only the one before
    /// it can be opened. Without this such a volume is opened as Linux does: the older checkpoint is continued, and what
    /// came after it is gone for good.
    pub newest_only: bool,
    /// The promise of a sync of a file.
    pub fsync: FsyncMode,
    /// Who writes the nodes of syncs.
    pub sync_writers: SyncWriters,
    /// Whether segments that a checkpoint frees are discarded, if the device can. If the device is an image file,
    /// discarding punches holes: the next write there has to allocate space again, and the sync after it waits for the
    /// file system below to record that.
    pub discard: bool,
    /// Blocks of data that may wait in memory for a flush of the device, if syncs put data into a journal
    /// ([`JournalMode::Journal`](crate::JournalMode::Journal)). 0: every write is sent to the device at once.
    pub write_behind: u64,
}

/// The promise of a sync of a file about the view of others after a crash (the kernel's `fsync_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FsyncMode {
    /// When the sync returns, the file is durable. A crash during the sync may leave some of the blocks that it was to
    /// make durable new, some old, and some with whatever the device held in their new place before: also where they
    /// overwrite what an earlier sync made durable. So it is in Linux.
    #[default]
    Posix,
    /// The same, and: a crash during the sync leaves no block that was not fully written; a new file in a directory
    /// from which names were removed or moved since the last checkpoint brings all of the directory along, by a
    /// checkpoint.
    Strict,
}

/// Who writes the nodes of syncs into the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SyncWriters {
    /// [`Each`](Self::Each) where a transfer is a copy that the calling thread makes, and a flush waits for nothing
    /// ([`BlockDevice::is_immediate`], [`BlockDevice::flushes_at_once`]), and [`Groups`](Self::Groups) elsewhere.
    #[default]
    ByDevice,
    /// Syncs form groups: one thread writes the nodes of all who wait in few requests, and flushes the device once.
    Groups,
    /// Each sync writes its own nodes beside the others, and flushes the device. On zones, which are written in order,
    /// syncs form groups all the same.
    Each,
}

impl SyncWriters {
    /// Whether each sync writes its own nodes on this device.
    pub(crate) fn is_each(self, device: &dyn BlockDevice, zoned: bool) -> bool {
        let wanted = match self {
            SyncWriters::ByDevice => device.is_immediate() && device.flushes_at_once(),
            SyncWriters::Groups => false,
            SyncWriters::Each => true,
        };
        wanted && !zoned
    }
}

impl Default for VolumeOptions {
    fn default() -> Self {
        VolumeOptions {
            read_only: false,
            node_cache: NonZeroUsize::MIN.saturating_add(65_535),
            dirty_nodes: 131_072,
            nodes_left_to_freeze: 512,
            nid_policy: f2fs_nat::Policy::default(),
            recovery: true,
            newest_only: false,
            fsync: FsyncMode::default(),
            sync_writers: SyncWriters::default(),
            discard: true,
            write_behind: 0,
            allocation: Allocation::default(),
            lanes: PerCore::<()>::default().slots(),
            threads: PerCore::<()>::default().slots().min(MOST_THREADS),
        }
    }
}

impl VolumeOptions {
    /// For reading and writing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// For reading only, or not.
    #[must_use]
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Clean nodes kept in memory, about.
    #[must_use]
    pub fn node_cache(mut self, nodes: NonZeroUsize) -> Self {
        self.node_cache = nodes;
        self
    }

    /// Dirty nodes after which a checkpoint is due. While it is written operations go on: up to four times as many
    /// nodes, of 4 KiB each, are in memory then.
    #[must_use]
    pub fn dirty_nodes(mut self, nodes: u64) -> Self {
        self.dirty_nodes = nodes;
        self
    }

    /// If there are at most so many dirty nodes, a checkpoint writes none before it closes the gate. 512 by default.
    /// Operations wait about a microsecond per node; more nodes than that are written while operations run. With
    /// `u64::MAX`, operations wait until all nodes are copied. A dirty directory block counts as eight nodes.
    #[must_use]
    pub fn nodes_left_to_freeze(mut self, nodes: u64) -> Self {
        self.nodes_left_to_freeze = nodes;
        self
    }

    /// Whether what was synced since the last checkpoint is recovered. A file system that is opened for writing without
    /// that gives it up, by a checkpoint.
    #[must_use]
    pub fn recovery(mut self, yes: bool) -> Self {
        self.recovery = yes;
        self
    }

    /// Whether a volume is not opened for writing at an older checkpoint than its newest.
    #[must_use]
    pub fn newest_only(mut self, yes: bool) -> Self {
        self.newest_only = yes;
        self
    }

    /// The promise of a sync of a file.
    #[must_use]
    pub fn fsync(mut self, mode: FsyncMode) -> Self {
        self.fsync = mode;
        self
    }

    /// Who writes the nodes of syncs.
    #[must_use]
    pub fn sync_writers(mut self, writers: SyncWriters) -> Self {
        self.sync_writers = writers;
        self
    }

    /// Whether segments that a checkpoint frees are discarded (the kernel's `discard` and `nodiscard`).
    #[must_use]
    pub fn discard(mut self, yes: bool) -> Self {
        self.discard = yes;
        self
    }

    /// Blocks of data that may wait in memory for a flush of the device, if syncs put data into a journal.
    #[must_use]
    pub fn write_behind(mut self, blocks: u64) -> Self {
        self.write_behind = blocks;
        self
    }

    /// The treatment of valid blocks in a write's way when free segments are few.
    #[must_use]
    pub fn allocation(mut self, allocation: Allocation) -> Self {
        self.allocation = allocation;
        self
    }

    /// Segments that each data log writes into at a time.
    #[must_use]
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes;
        self
    }

    /// Threads that read the SIT when the volume is opened for writing, and write nodes when it is closed, the caller's
    /// among them.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// How free NIDs are found.
    #[must_use]
    pub fn nid_policy(mut self, policy: f2fs_nat::Policy) -> Self {
        self.nid_policy = policy;
        self
    }
}

/// Threads of an opening, unless asked otherwise, on machines with as many processors.
const MOST_THREADS: usize = 8;

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    use crate::CostModel;

    #[test]
    fn each_sync_writes_its_own_nodes_where_that_is_a_copy() {
        use SyncWriters::{ByDevice, Each, Groups};
        let memory = f2fs_device::MemoryDevice::new(1);
        let waits = f2fs_device_test::FaultDevice::new(f2fs_sync::PlainArc::new(f2fs_device::MemoryDevice::new(1)));
        let flushes =
            f2fs_device_test::FlushedDevice::new(f2fs_sync::PlainArc::new(f2fs_device::MemoryDevice::new(1)), || {});
        assert!(flushes.is_immediate() && !ByDevice.is_each(&flushes, false), "its flushes may wait");
        assert!(ByDevice.is_each(&memory, false) && !ByDevice.is_each(&waits, false) && Each.is_each(&waits, false));
        assert!(!Groups.is_each(&memory, false) && !ByDevice.is_each(&memory, true) && !Each.is_each(&memory, true));
    }

    #[test]
    fn each_option_is_what_it_was_set_to() {
        let four = NonZeroUsize::MIN.saturating_add(3);
        let options = VolumeOptions::new()
            .read_only(true)
            .node_cache(four)
            .dirty_nodes(5)
            .nodes_left_to_freeze(6)
            .recovery(false)
            .newest_only(true)
            .fsync(FsyncMode::Strict)
            .sync_writers(SyncWriters::Each)
            .discard(false)
            .write_behind(7)
            .allocation(Allocation::partial(CostModel::nvme()))
            .lanes(8)
            .threads(9);
        assert!(options.read_only && !options.recovery && options.newest_only && !options.discard);
        assert_eq!((options.node_cache, options.dirty_nodes, options.nodes_left_to_freeze), (four, 5, 6));
        assert_eq!((options.fsync, options.write_behind), (FsyncMode::Strict, 7));
        assert_eq!(options.sync_writers, SyncWriters::Each);
        assert_eq!((options.allocation.name(), options.lanes, options.threads), ("partial", 8, 9));
        let plain = VolumeOptions::new();
        assert!(!plain.read_only && plain.recovery && !plain.newest_only && plain.discard && plain.write_behind == 0);
    }
}
