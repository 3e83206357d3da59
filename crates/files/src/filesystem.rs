//! A file system: a volume with a namespace on top.

use std::ops::Range;

use f2fs_device::BlockDevice;
use f2fs_format::{BLOCK_BYTES, BLOCKS_PER_SEGMENT, Nid, SegmentNo};
use f2fs_sync::{Arc, CachePadded, PerCore, PlainArc, protocol_value};
use f2fs_volume::{
    CheckpointReport, CleanReport, FoundJournal, GivenUp, JournalMode, JournalTrouble, Reason, Trim, Volume, VolumeStat,
};

use crate::FsError;
use crate::core::write_back::WriteBack;
use crate::core::{Core, CoreRef};
use crate::free::InodeEnds;
use crate::journal::Attachment;
use crate::namespace::Namespace;
use crate::options::Options;
use crate::recovery::{Passed, PassedOver, RecoveryReport, RollForward};
use crate::xattr::Attributes;

const SEGMENT_BYTES: u64 = BLOCKS_PER_SEGMENT as u64 * BLOCK_BYTES;

/// An open file system. Cheap to clone; all clones are the same file system. `Send + Sync`: use it from any number of
/// threads.
///
/// A change is durable after [`checkpoint`](Self::checkpoint), [`File::sync_all`](crate::File::sync_all) or
/// [`close`](Self::close). Dropping the last clone without closing is like a crash: the next open finds the last
/// checkpoint, and the files that were synced since.
#[derive(Clone, Debug)]
pub struct FileSystem {
    pub(crate) core: Arc<Core>,
    recovered: RecoveryReport,
    left_out: Arc<LeftOut>,
    /// References to the core, whose counts each belong to one processor.
    cores: Arc<PerCore<CoreRef>>,
}

/// What an opening did not bring back of a journal.
#[derive(Debug)]
struct LeftOut {
    passed_over: Vec<PassedOver>,
    given_up: GivenUp,
}

impl FileSystem {
    /// Opens the file system on a device, at its last checkpoint, with what was synced since. The device is claimed
    /// until the file system is closed, or dropped with all its clones and handles. Nobody else in this process can
    /// open it meanwhile; but a device that was opened for reading may be opened for reading again. Orphans that an
    /// earlier process left are freed. A file system that is opened for reading writes nothing: it brings back files
    /// that were synced since the checkpoint in memory.
    ///
    /// # Errors
    /// Those of [`Volume::open`]; [`FsError::JournalMissing`], [`FsError::OtherJournal`] and
    /// [`VolumeError::Journal`](f2fs_volume::VolumeError::Journal) if the volume and the journal of the options do not
    /// belong together; and corruption found in the root directory, in an orphan, or in the chain of synced nodes; for
    /// the last, [`VolumeOptions::recovery`](f2fs_volume::VolumeOptions::recovery) gives the state of the checkpoint.
    #[cfg_attr(feature = "tracing", tracing::instrument(level = "info", name = "open", skip_all, fields(read_only = options.volume.read_only), err))]
    #[allow(clippy::needless_pass_by_value)] // the caller gives both away, and they are needed for each try
    pub fn open(device: PlainArc<dyn BlockDevice>, options: Options) -> Result<FileSystem, FsError> {
        let passes_over = options.journal.as_ref().is_some_and(|journal| journal.passes_over);
        let mut passed = Passed::new(options.journal.is_some(), passes_over);
        let (core, journal, recovered) = loop {
            passed.begin();
            let (core, journal) = Self::open_shown(device.clone(), &options)?;
            let recovered = if core.options.volume.recovery {
                RollForward(&core).roll_forward(journal.as_ref().map(FoundJournal::nodes), &mut passed)?
            } else {
                RecoveryReport::default()
            };
            if !passed.begins_anew() {
                break (core, journal, recovered);
            }
        };
        core.volume.recovery().settle_zones()?;
        let given_up = journal.as_ref().map(|journal| journal.nodes().given_up().clone()).unwrap_or_default();
        let passed_over = passed.into_files().collect::<Vec<_>>();
        if !core.volume.is_read_only() {
            // What is given up must not be brought back by a later open: its blocks are free, and are written to.
            let gives_up = protocol_value!("given_up_is_found_again", !core.options.volume.recovery, false);
            Attachment(&core).begin(journal, recovered.files != 0 || gives_up)?;
            for ino in core.volume.orphans() {
                InodeEnds(&core).free_orphan(ino)?;
            }
        }
        let cores = Arc::new(PerCore::new(|_| Arc::new(CachePadded::new(core.clone()))));
        let left_out = Arc::new(LeftOut { passed_over, given_up });
        Ok(FileSystem { core, recovered, left_out, cores })
    }

    /// The volume at its last checkpoint, and the journal that belongs to it. For reading, the data of the journal is
    /// laid over the device, since nothing is written.
    fn open_shown(
        device: PlainArc<dyn BlockDevice>,
        options: &Options,
    ) -> Result<(Arc<Core>, Option<FoundJournal>), FsError> {
        let (core, mut journal) = Self::open_core(device.clone(), options)?;
        let shown = journal.as_mut().filter(|_| options.volume.read_only).and_then(|journal| journal.shown(device));
        let Some(shown) = shown else { return Ok((core, journal)) };
        // The first volume's claim ends before.
        let version = core.volume.footer_version();
        drop(core);
        let volume = Volume::open(shown, &options.volume)?;
        if volume.footer_version() != version {
            return Err(JournalTrouble::OtherCheckpoint {
                records: journal.as_ref().map_or(0, |journal| journal.nodes().records()),
                base: version,
                found: volume.footer_version(),
            }
            .into());
        }
        Ok((Arc::new(Core::new(volume, options.clone())), journal))
    }

    /// The volume at its last checkpoint, and the journal that belongs to it.
    fn open_core(
        device: PlainArc<dyn BlockDevice>,
        options: &Options,
    ) -> Result<(Arc<Core>, Option<FoundJournal>), FsError> {
        let journal = options.journal.as_ref().filter(|journal| journal.mode == JournalMode::Journal);
        let waits = journal.map_or(0, |journal| journal.write_behind / BLOCK_BYTES);
        let volume = Volume::open(device, &options.volume.clone().write_behind(waits))?;
        let core = Arc::new(Core::new(volume, options.clone()));
        let root = core.inode(core.volume.geometry().root_ino)?;
        root.directory()?;
        let journal = Attachment(&core).find()?;
        Ok((core, journal))
    }

    /// Its paths and names.
    pub(crate) fn namespace(&self) -> Namespace<'_> {
        Namespace(&self.core)
    }

    /// The extended attributes of its files.
    pub(crate) fn attributes(&self) -> Attributes<'_> {
        Attributes(&self.core)
    }

    /// A reference to the core for a handle.
    pub(crate) fn core_ref(&self) -> CoreRef {
        Arc::clone(self.cores.slot())
    }

    /// The files that were synced after the last checkpoint and brought back when the file system was opened.
    #[must_use]
    pub fn recovered(&self) -> RecoveryReport {
        self.recovered
    }

    /// The files that were synced into the journal and not brought back, since something is wrong with them, if the
    /// options allow that ([`JournalOptions::passes_over`](crate::JournalOptions::passes_over)).
    #[must_use]
    pub fn passed_over(&self) -> &[PassedOver] {
        &self.left_out.passed_over
    }

    /// The records of the journal that were not brought back, since one that they may follow is damaged, if the options
    /// allow that ([`JournalRescue::up_to_damage`](f2fs_volume::JournalRescue::up_to_damage)).
    #[must_use]
    pub fn given_up(&self) -> &GivenUp {
        &self.left_out.given_up
    }

    /// The identity of the journal that the volume was left with, if neither that journal nor
    /// [`Options::without_journal`] was given: what was synced into it is not shown. Only a file system that is open for
    /// reading can be so; a volume is not opened for writing then ([`FsError::JournalMissing`]).
    ///
    /// # Errors
    ///
    /// If the attributes of the root cannot be read.
    pub fn missing_journal(&self) -> Result<Option<String>, FsError> {
        Attachment(&self.core).missing()
    }

    /// Drops the inodes and nodes that the caches have above their limits ([`Options::inode_cache`],
    /// [`VolumeOptions::node_cache`](f2fs_volume::VolumeOptions::node_cache)) and that nobody uses any more, and gives
    /// memory that was freed back to the system. Caches grow as long as references and handles hold what is in them.
    /// A checkpoint drops what is above the limits as well; for a volume that is only read this is the way.
    pub fn shrink_caches(&self) {
        self.core.inodes.shrink();
        self.core.volume.nodes().shrink();
        f2fs_frames::give_back_freed();
    }

    /// Whether data waits in memory to be written ([`Options::page_cache`]): then errors of that are told to those who
    /// have the file open.
    #[must_use]
    pub fn has_page_cache(&self) -> bool {
        self.core.pages.is_on()
    }

    /// Drops all inodes that nobody uses, and the clean nodes that nobody has used since this was called last, whatever
    /// the limits of the caches say; and gives memory that was freed back to the system. For a time when memory is short:
    /// what is used again after that is read from the device.
    pub fn drop_unused(&self) {
        self.core.inodes.drop_unused();
        self.core.volume.nodes().drop_unused();
        f2fs_frames::give_back_freed();
    }

    /// Reads inodes that are not in memory, many at once: for a caller that is about to ask for each of them, as one that
    /// lists a directory with sizes and times does. Read one after the other, each is waited for. They are in the
    /// cache of nodes afterwards ([`VolumeOptions::node_cache`](f2fs_volume::VolumeOptions::node_cache)), so ask for some
    /// hundred at a time. It is a hint: what cannot be read is told to who asks for it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
    /// # fs.create_file("/one", 0o644)?;
    /// let directory = fs.root()?;
    /// let listed = directory.open_dir()?.read(0, 200)?;
    /// fs.read_inodes_ahead(&listed.iter().map(|entry| entry.ino).collect::<Vec<_>>());
    /// for entry in listed {
    ///     println!("{}", directory.lookup(&entry.name)?.metadata()?.size);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_inodes_ahead(&self, inos: &[Nid]) {
        self.core.read_ahead(inos);
    }

    /// Counts and sizes.
    #[must_use]
    pub fn statfs(&self) -> VolumeStat {
        self.core.volume.stat()
    }

    /// Moves blocks together until segments are free that nothing waits for: what an operation does by itself when they
    /// run short. If any were freed, everything that was done so far is durable afterwards.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub fn clean(&self) -> Result<CleanReport, FsError> {
        self.core.clean()
    }

    /// Gives the room of free segments back to the device (Linux's `fstrim`): a file as the device becomes smaller on
    /// its disk. A checkpoint discards what it frees by itself; what is given back here was written by programs that ended
    /// before their checkpoint, or with [`discard`](f2fs_volume::VolumeOptions::discard) off. Everything that was done
    /// before is durable afterwards. Operations wait for 1 GiB at a time; `step` is told how many segments of the
    /// volume, of how many, were looked at. Returns the number of blocks.
    ///
    /// Free is what the tables say: of a damaged volume this gives away what a repair could bring back. So check it first.
    ///
    /// # Errors
    /// [`FsError::Volume`], also for a device that cannot discard.
    pub fn trim(&self, step: impl FnMut(u32, u32)) -> Result<u64, FsError> {
        self.trim_within(0..u64::MAX, 0, step)
    }

    /// As [`trim`](Self::trim), but gives back only what lies in these bytes of the volume, from the beginning of its
    /// first device on, and no run of free segments that has less than `least` bytes in them, or 1 GiB. Segments that
    /// lie in them in part stay.
    ///
    /// # Errors
    /// As [`trim`](Self::trim); [`FsError::Invalid`] if the bytes begin behind the volume's end, or are less than a
    /// block.
    pub fn trim_within(&self, bytes: Range<u64>, least: u64, mut step: impl FnMut(u32, u32)) -> Result<u64, FsError> {
        let geometry = self.core.volume.geometry();
        let end = bytes.end.min(geometry.block_count.saturating_mul(BLOCK_BYTES));
        if end.saturating_sub(bytes.start) < BLOCK_BYTES {
            return Err(FsError::Invalid("a range to give back lies in the volume and has a block at least"));
        }
        self.checkpoint()?;
        let main = u64::from(geometry.main_blkaddr.0) * BLOCK_BYTES;
        let segment = |at: u64| SegmentNo(at.min(geometry.main_segments.into()) as u32);
        let from = segment(bytes.start.saturating_sub(main).div_ceil(SEGMENT_BYTES));
        let until = segment(end.saturating_sub(main) / SEGMENT_BYTES);
        let least = least.div_ceil(BLOCK_BYTES);
        let (mut next, mut blocks, mut goes_on) = ((from < until).then_some(from), 0, false);
        while let Some(from) = next {
            let done = self.core.volume.trim(Trim::new(from, until).least(least).goes_on(goes_on))?;
            blocks += done.blocks;
            (next, goes_on) = (done.next, done.goes_on);
            step(next.unwrap_or(until).0, geometry.main_segments);
        }
        Ok(blocks)
    }

    /// Makes everything that was done so far durable.
    ///
    /// # Errors
    /// [`FsError::Volume`]; see [`Checkpoints::write_with`](f2fs_volume::Checkpoints::write_with) for what an error means.
    pub fn checkpoint(&self) -> Result<CheckpointReport, FsError> {
        WriteBack(&self.core).write_back_ahead();
        self.core.checkpoint(Reason::Sync)
    }

    /// Stops syncing into the journal that the file system was opened with, and writes a checkpoint: the volume does not
    /// need that journal any more. From here on syncs go to the volume itself. The medium stays in use until the file
    /// system is dropped. Without a journal this is a checkpoint.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint): the volume needs its journal.
    pub fn detach_journal(&self) -> Result<CheckpointReport, FsError> {
        WriteBack(&self.core).write_back_ahead();
        Attachment(&self.core).end()?;
        self.core.checkpoint(Reason::Sync)
    }

    /// Writes the last checkpoint and marks the volume as cleanly closed. Handles that are still open fail from here on
    /// if they change something; a file that was opened and has no name is freed by the next open. The device can be
    /// opened again; one that was opened by its path is locked until the file system and all its handles are dropped.
    /// A handle that is still read from then on may see blocks that the next file system wrote: close
    /// when nobody reads any more.
    ///
    /// # Errors
    /// [`FsError::Volume`]: the volume stays at its last good checkpoint. So it is with a volume that was closed before,
    /// and stays closed.
    pub fn close(&self) -> Result<(), FsError> {
        WriteBack(&self.core).write_back_ahead();
        Attachment(&self.core).end()?;
        let ahead = || self.core.dirty_directories.write_ahead(&self.core.volume);
        self.core.volume.close_with(ahead, |op| self.core.write_above(op))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use f2fs_device::MemoryDevice;
    use f2fs_sync::PlainArc;
    use f2fs_volume::VolumeOptions;

    use super::*;
    use crate::samples::formatted;

    /// Who opens without recovery gives up what was synced; a crash right after that does not bring it back.
    #[test]
    fn what_was_given_up_does_not_come_back() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        fs.create_file("/first", 0o644).unwrap().sync_all().unwrap();
        fs.create_file("/synced", 0o644).unwrap().sync_all().unwrap();
        drop(fs); // a crash
        let found = |device: PlainArc<MemoryDevice>| {
            let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
            (fs.exists("/first").unwrap(), fs.exists("/synced").unwrap())
        };
        assert_eq!(found(PlainArc::new(device.snapshot())), (true, true));
        let without = Options::new().volume(VolumeOptions::new().recovery(false));
        drop(FileSystem::open(device.clone(), without).unwrap()); // another crash
        assert_eq!(found(device), (true, false));
    }

    #[test]
    fn opening_a_volume_that_was_closed_writes_nothing() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        fs.create_file("/f", 0o644).unwrap();
        fs.close().unwrap();
        drop(fs);
        let before = device.to_bytes();
        drop(FileSystem::open(device.clone(), Options::new()).unwrap());
        assert!(device.to_bytes() == before);
    }

    /// For a volume that is only read, of which no checkpoint does it.
    #[test]
    fn inodes_and_nodes_that_were_in_use_go_when_they_are_asked_to() {
        const FILES: usize = 8000;
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        (0..FILES).for_each(|number| drop(fs.create_file(format!("/{number}"), 0o644).unwrap()));
        fs.close().unwrap();
        drop(fs);
        let few = core::num::NonZeroUsize::MIN;
        let options = Options::new().read_only(true).inode_cache(few).volume(VolumeOptions::new().node_cache(few));
        let fs = FileSystem::open(device, options.read_only(true)).unwrap();
        let open: Vec<_> = (0..FILES).map(|number| fs.open_file(format!("/{number}")).unwrap()).collect();
        let nodes = || fs.stats().cached_nodes as usize;
        let inodes = || open.iter().filter(|file| fs.core.inodes.in_memory(file.ino()).is_some()).count();
        assert_eq!(inodes(), FILES);
        fs.shrink_caches();
        assert_eq!(inodes(), FILES, "they are in use");
        assert!(nodes() >= FILES);
        let numbers: Vec<_> = open.iter().map(crate::File::ino).collect();
        drop(open);
        fs.shrink_caches();
        let left = numbers.iter().filter(|ino| fs.core.inodes.in_memory(**ino).is_some()).count();
        assert!(left < FILES / 2 && nodes() < FILES / 2, "{left} inodes, {} nodes", nodes());
        fs.drop_unused();
        let left = numbers.iter().filter(|ino| fs.core.inodes.in_memory(**ino).is_some()).count();
        assert_eq!(left, 0);
    }
}
