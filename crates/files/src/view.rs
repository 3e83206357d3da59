//! A view of the volume below a file system.
//!
//! The volume itself has operations that would bypass the file system: a checkpoint of its own, for instance, would
//! have nodes without the names that lead to them. So a file system lets callers read its volume, and hands it to
//! nobody.

use core::fmt;

use f2fs_device::DeviceInfo;
use f2fs_format::checkpoint::Checkpoint;
use f2fs_format::feature::Features;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BlockAddr, Geometry, LogType, Nid, SegmentNo};
use f2fs_nat::NatStats;
use f2fs_segment::SegmentInfo;
use f2fs_volume::{ChainNode, Damage, StopCause, Volume, VolumeStat};

use crate::FsError;
use crate::filesystem::FileSystem;

/// The volume of an open file system, for looking at: geometry, superblock, checkpoint, counts. Nothing of it changes
/// anything.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
/// # f2fs_volume::format::format(&*device, &Default::default())?;
/// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
/// let before = fs.volume().last_checkpoint().version;
/// fs.create_file("/f", 0o644)?;
/// fs.checkpoint()?;
/// assert_eq!(fs.volume().last_checkpoint().version, before + 1);
/// assert_eq!(fs.volume().geometry().block_count, 32 * 1024);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct VolumeView<'a> {
    volume: &'a Volume,
}

impl fmt::Debug for VolumeView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.volume, f)
    }
}

impl FileSystem {
    /// A view of the volume below.
    #[must_use]
    pub fn volume(&self) -> VolumeView<'_> {
        VolumeView { volume: &self.core.volume }
    }

    /// Takes free node identifiers (NIDs) out of circulation, all but `leave` of them: the state of a nearly full
    /// volume, for measurements and tests. Returns how many were taken; they are free again when the volume is opened
    /// the next time.
    ///
    /// # Errors
    /// [`FsError::ReadOnly`]; [`FsError::Volume`] if a block of the node address table cannot be read.
    pub fn hold_nids(&self, leave: u64) -> Result<u64, FsError> {
        Ok(self.core.volume.nids().hold(leave)?)
    }
}

impl<'a> VolumeView<'a> {
    /// The device's description of itself: name, blocks, abilities.
    #[must_use]
    pub fn device_info(self) -> &'a DeviceInfo {
        self.volume.device().info()
    }

    /// Where everything is.
    #[must_use]
    pub fn geometry(self) -> &'a Geometry {
        self.volume.geometry()
    }

    /// The volume's features.
    #[must_use]
    pub fn features(self) -> Features {
        self.volume.features()
    }

    /// The superblock, as it was read at open.
    #[must_use]
    pub fn superblock(self) -> &'a SuperBlock {
        self.volume.superblock()
    }

    /// The checkpoint on the device.
    #[must_use]
    pub fn last_checkpoint(self) -> Checkpoint {
        self.volume.last_checkpoint()
    }

    /// The version in the footers of nodes that are written now: that of the last checkpoint, with its checksum above.
    #[must_use]
    pub fn footer_version(self) -> u64 {
        self.volume.footer_version()
    }

    /// Whether the volume is open for reading only.
    #[must_use]
    pub fn is_read_only(self) -> bool {
        self.volume.is_read_only()
    }

    /// Why the volume takes no more changes; `None` as long as it does.
    #[must_use]
    pub fn stopped(self) -> Option<&'a StopCause> {
        self.volume.stopped()
    }

    /// Damage that was found at open in copies that were not needed: of the superblock and of the checkpoint.
    #[must_use]
    pub fn damage(self) -> &'a Damage {
        self.volume.damage()
    }

    /// Counts and sizes; the same as [`FileSystem::statfs`].
    #[must_use]
    pub fn stat(self) -> VolumeStat {
        self.volume.stat()
    }

    /// Inodes that are open and have no name.
    #[must_use]
    pub fn orphans(self) -> Vec<Nid> {
        self.volume.orphans()
    }

    /// Counts of the node address table.
    #[must_use]
    pub fn nat_stats(self) -> NatStats {
        self.volume.nids().stats()
    }

    /// NIDs that can still be handed out. Exact if nobody takes or frees one meanwhile; all of the node address table
    /// is read.
    ///
    /// # Errors
    /// [`FsError::Volume`] if it cannot be read.
    pub fn allocatable_nids(self) -> Result<u64, FsError> {
        Ok(self.volume.nids().allocatable()?)
    }

    /// A segment's log, valid blocks and age. A volume that is open for reading may have to read a block of
    /// the segment information table.
    ///
    /// # Errors
    /// [`FsError::Volume`] if it cannot be read.
    pub fn segment(self, segment: SegmentNo) -> Result<SegmentInfo, FsError> {
        Ok(self.volume.segment(segment)?)
    }

    /// Whether a block of the main area is in use.
    ///
    /// # Errors
    /// As [`segment`](Self::segment).
    pub fn is_in_use(self, addr: BlockAddr) -> Result<bool, FsError> {
        Ok(self.volume.data().is_in_use(addr)?)
    }

    /// The mean length of the holes between the valid blocks of a log's segments, in blocks.
    #[must_use]
    pub fn mean_hole(self, log: LogType) -> f64 {
        self.volume.mean_hole(log)
    }

    /// Whether free segments are so few that data goes to the holes of others.
    #[must_use]
    pub fn writes_into_holes(self) -> bool {
        self.volume.writes_into_holes()
    }

    /// How much of the journal for syncs is in use; `None` if there is no journal.
    #[must_use]
    pub fn journal_usage(self) -> Option<f2fs_journal::Usage> {
        self.volume.journal().usage()
    }

    /// The chain of nodes that were synced after the last checkpoint, read from the device.
    ///
    /// # Errors
    /// [`FsError::Volume`].
    pub fn synced_nodes(self) -> Result<Vec<ChainNode>, FsError> {
        Ok(self.volume.recovery().synced_nodes()?)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use f2fs_volume::VolumeOptions;

    use super::*;
    use crate::samples::formatted;
    use crate::{FileKind, NewFile, Options};

    #[test]
    fn numbers_that_can_be_handed_out_are_counted_and_held_back() {
        let fs = FileSystem::open(formatted(32 * 1024), Options::new()).unwrap();
        let free = fs.volume().allocatable_nids().unwrap();
        fs.create_file("/a", 0o644).unwrap();
        assert_eq!(fs.volume().allocatable_nids().unwrap(), free - 1);
        assert_eq!(fs.hold_nids(5).unwrap(), free - 1 - 5);
        assert_eq!(fs.volume().allocatable_nids().unwrap(), 5);
        fs.create_file("/b", 0o644).unwrap();
        assert_eq!((fs.volume().allocatable_nids().unwrap(), fs.hold_nids(4).unwrap()), (4, 0));
    }

    #[test]
    fn blocks_in_use_are_those_that_are_counted() {
        let fs = FileSystem::open(formatted(32 * 1024), Options::new()).unwrap();
        let file = fs.create_file("/a", 0o644).unwrap();
        file.write_at(&[1; 40_000], 0).unwrap();
        fs.checkpoint().unwrap();
        let geometry = fs.volume().geometry();
        let blocks = (geometry.main_blkaddr.0..geometry.main_end().0).map(BlockAddr);
        let in_use = blocks.filter(|addr| fs.volume().is_in_use(*addr).unwrap()).count() as u64;
        assert_eq!(in_use, fs.statfs().valid_blocks);
        assert!(!fs.volume().writes_into_holes(), "there is much room");
    }

    #[test]
    fn a_view_says_how_the_volume_is() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let unnamed = fs.root().unwrap().create_unnamed(&NewFile::new(FileKind::Regular, 0o644)).unwrap();
        assert_eq!(fs.volume().orphans(), [unnamed.ino()]);
        drop(unnamed);
        assert_eq!(fs.volume().orphans(), []);
        assert!(!fs.volume().is_read_only() && fs.volume().stopped().is_none());
        assert!(fs.volume().journal_usage().is_none());
        let version = fs.volume().footer_version();
        assert_eq!((version, version), (fs.core.volume.footer_version(), fs.volume().footer_version()));
        fs.checkpoint().unwrap();
        let next = fs.volume().footer_version();
        assert!(next != version && next as u32 == version as u32 + 1, "{version:#x} {next:#x}");
        fs.core.volume.stop_after_panic();
        assert!(fs.volume().stopped().is_some());
        drop(fs);
        let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
        assert!(fs.volume().is_read_only());
    }

    #[test]
    fn nodes_that_were_synced_stand_behind_the_checkpoint() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        fs.create_file("/first", 0o644).unwrap().sync_all().unwrap(); // a checkpoint
        fs.create_file("/synced", 0o644).unwrap().sync_all().unwrap();
        drop(fs); // a crash
        let without = VolumeOptions::new().recovery(false).read_only(true);
        let fs = FileSystem::open(device, Options::new().volume(without)).unwrap();
        assert_eq!(fs.volume().synced_nodes().unwrap().len(), 1);
    }
}
