//! Volumes that workloads begin on.

use std::num::NonZeroUsize;

use f2fs_device::{BlockDevice, KeptZones, MemoryDevice, ZoneLayout};
use f2fs_device_test::{RecordedPart, RecordingDevice};
use f2fs_files::{FileSystem, FsError, Options, Time};
use f2fs_format::feature::Features;
use f2fs_journal::{Create, Journal, Uuid};
use f2fs_nat::Policy;
use f2fs_sync::Arc;
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::{FormatOptions, format};

use crate::op::Op;
use crate::several;
use crate::tree::Tree;

/// Blocks that state images share and copy at a time.
const CHUNK: u64 = 4;

/// The time that stands still in trials, in seconds since 1970.
pub const NOW: i64 = 1_700_000_000;

/// The directories of workloads with several threads, one for each.
pub const LANES: [&str; 3] = ["/t0", "/t1", "/t2"];

/// Which volume a workload begins on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BaseKind {
    /// A few files and directories on a volume with much room.
    Plain,
    /// The same with checksums in superblock and inodes.
    Checksums,
    /// The plain one with a directory for each of several threads ([`LANES`]).
    Wide,
    /// Hardly a free segment, all others with holes: the logs fill holes (SSR).
    Tight,
    /// Hardly a free segment, and files that fill segments of their own.
    Full,
    /// The plain one with large directories: `/D` has three levels of its hash table, `/E` is about to leave its inode,
    /// `/F` to get its second level.
    Broad,
    /// The wide one on three devices ([`DEVICES`]), with the metadata and a few segments of the main area on the
    /// first.
    Several,
    /// The plain one with a journal for its syncs on a device of its own.
    Journaled,
    /// The plain one with a journal in persistent memory, with data in it.
    DataJournaled,
    /// The wide one; its workloads run with a page cache.
    Cached,
    /// The plain one on zones, with files that fill zones of their own.
    Zoned,
    /// The same on zones of two segments, which end within their second one, and of which few are written at a time.
    ZonedInPart,
    /// The plain one with a journal in persistent memory, without data in it.
    LineJournaled,
    /// The full one with a journal on a device of its own.
    FullJournaled,
    /// The wide one with a journal on a device of its own.
    WideJournaled,
    /// The wide one with a journal in persistent memory, with data in it.
    WideDataJournaled,
}

/// The zones of [`BaseKind::Zoned`]: the metadata lies in those that are written anywhere, and no log.
fn whole_zones() -> ZoneLayout {
    ZoneLayout::new(512).with_conventional(9)
}

/// The zones of [`BaseKind::ZonedInPart`].
fn zones_in_part() -> ZoneLayout {
    ZoneLayout::new(1024).with_capacity(700).with_conventional(5).with_limits(8, 8)
}

/// The devices of [`BaseKind::Several`], in MiB.
pub const DEVICES: [u64; 3] = [24, 56, 48];

impl BaseKind {
    /// All of them.
    pub const ALL: [BaseKind; 16] = [
        BaseKind::Plain,
        BaseKind::Checksums,
        BaseKind::Wide,
        BaseKind::Tight,
        BaseKind::Full,
        BaseKind::Broad,
        BaseKind::Several,
        BaseKind::Journaled,
        BaseKind::DataJournaled,
        BaseKind::Cached,
        BaseKind::Zoned,
        BaseKind::ZonedInPart,
        BaseKind::LineJournaled,
        BaseKind::FullJournaled,
        BaseKind::WideJournaled,
        BaseKind::WideDataJournaled,
    ];

    /// Whether a journal lies behind the volume.
    pub(crate) fn has_journal(self) -> bool {
        let on_device = [BaseKind::Journaled, BaseKind::FullJournaled, BaseKind::WideJournaled];
        on_device.contains(&self) || self.has_journal_in_memory()
    }

    /// Whether that journal lies in persistent memory.
    pub(crate) fn has_journal_in_memory(self) -> bool {
        self.has_data_in_journal() || self == BaseKind::LineJournaled
    }

    /// Whether data is written to that journal.
    pub(crate) fn has_data_in_journal(self) -> bool {
        matches!(self, BaseKind::DataJournaled | BaseKind::WideDataJournaled)
    }

    /// The name in the text of a workload.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BaseKind::Plain => "plain",
            BaseKind::Checksums => "checksums",
            BaseKind::Wide => "wide",
            BaseKind::Tight => "tight",
            BaseKind::Full => "full",
            BaseKind::Broad => "broad",
            BaseKind::Several => "several",
            BaseKind::Journaled => "journaled",
            BaseKind::DataJournaled => "data-journaled",
            BaseKind::Cached => "cached",
            BaseKind::Zoned => "zoned",
            BaseKind::ZonedInPart => "zoned-in-part",
            BaseKind::LineJournaled => "line-journaled",
            BaseKind::FullJournaled => "full-journaled",
            BaseKind::WideJournaled => "wide-journaled",
            BaseKind::WideDataJournaled => "wide-data-journaled",
        }
    }
}

/// A closed volume, and what it holds.
#[derive(Debug)]
pub struct Base {
    /// Which one.
    pub kind: BaseKind,
    /// The volume, for snapshots.
    pub device: MemoryDevice,
    /// Its contents.
    pub tree: Tree,
}

/// How volumes are opened in trials: hardly any cache, so that things are read again; and at a time that stands still,
/// so that what differs between two images differs for a reason.
#[must_use]
pub fn options(volume: impl FnOnce(VolumeOptions) -> VolumeOptions) -> Options {
    let few = NonZeroUsize::MIN.saturating_add(255);
    let clock = || Time { seconds: NOW, nanoseconds: 0 };
    Options::new().volume(volume(VolumeOptions::new().node_cache(few))).inode_cache(few).clock(clock)
}

impl Base {
    /// Makes one.
    ///
    /// # Errors
    /// Those of the file system: none, unless it is broken.
    pub fn new(kind: BaseKind) -> Result<Base, FsError> {
        let features = match kind {
            BaseKind::Checksums => Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM).union(Features::SB_CHECKSUM),
            BaseKind::Zoned | BaseKind::ZonedInPart => Features::BLKZONED,
            _ => Features(0),
        };
        let mib: u64 = match kind {
            // Large enough for logs to begin new segments; the others fill holes as soon as there are any.
            BaseKind::Plain
            | BaseKind::Wide
            | BaseKind::Several
            | BaseKind::Journaled
            | BaseKind::DataJournaled
            | BaseKind::LineJournaled
            | BaseKind::WideJournaled
            | BaseKind::WideDataJournaled
            | BaseKind::Cached => 128,
            BaseKind::Checksums | BaseKind::Tight | BaseKind::Full | BaseKind::Broad | BaseKind::FullJournaled => 64,
            BaseKind::ZonedInPart => 192,
            // Enough sections are kept from users for two lanes.
            BaseKind::Zoned => 256,
        };
        let blocks = (mib << 20) / f2fs_device::BLOCK_SIZE as u64;
        let behind = match kind {
            kind if kind.has_journal() => several::JOURNAL_BLOCKS,
            // The zones' own table.
            BaseKind::Zoned | BaseKind::ZonedInPart => 2,
            _ => 0,
        };
        let recorder = Arc::new(RecordingDevice::new(MemoryDevice::new(blocks + behind)));
        // The diary of a campaign recognises states that are the same in every run.
        let mut how = FormatOptions::default().with_features(features);
        (how.uuid, how.checkpoint_version, how.time) = (Some([kind as u8; 16]), Some(1), Some(NOW as u64));
        let device = match kind {
            BaseKind::Several => {
                how.device_paths = DEVICES.map(|mib| format!("disk-of-{mib}").into_bytes()).to_vec();
                let blocks = DEVICES.map(|mib| (mib << 20) / f2fs_device::BLOCK_SIZE as u64);
                several::on_parts(&recorder, &blocks).map_err(FsError::Invalid)?
            }
            kind if kind.has_journal() => Arc::new(RecordedPart::new(recorder.clone(), 0..blocks)),
            BaseKind::Zoned => on_zones(&recorder, whole_zones())?,
            BaseKind::ZonedInPart => on_zones(&recorder, zones_in_part())?,
            _ => recorder.clone(),
        };
        format(&*device, &how).map_err(|_| FsError::Invalid("the volume cannot be formatted"))?;
        if let Some(medium) = several::journal(&recorder).map_err(FsError::Invalid)? {
            // Two lanes, so that records of different lanes follow each other.
            let create = Create::new(Uuid([kind as u8; 16])).lanes(2).id([kind as u8; 16]);
            Journal::create(medium, &create).map_err(|_| FsError::Invalid("the journal cannot be made"))?;
        }
        let fs = FileSystem::open(device, options(|volume| volume.nid_policy(Policy::KernelScan).lanes(1)))?;
        for (salt, op) in first_files().into_iter().enumerate() {
            op.perform(&fs, salt as u64)?;
        }
        match kind {
            BaseKind::Plain
            | BaseKind::Checksums
            | BaseKind::Journaled
            | BaseKind::DataJournaled
            | BaseKind::LineJournaled => {}
            BaseKind::Wide
            | BaseKind::Several
            | BaseKind::Cached
            | BaseKind::WideJournaled
            | BaseKind::WideDataJournaled => lanes(&fs)?,
            BaseKind::Tight => {
                lanes(&fs)?;
                fill_with_holes(&fs)?;
            }
            BaseKind::Full | BaseKind::FullJournaled => fill_with_segments(&fs, 64)?,
            BaseKind::Zoned | BaseKind::ZonedInPart => {
                lanes(&fs)?;
                fill_with_segments(&fs, 8)?;
            }
            BaseKind::Broad => LARGE.iter().try_for_each(|(dir, names)| fill_directory(&fs, dir, *names))?,
        }
        fs.close()?;
        let tree = Tree::walk(&fs)?;
        drop(fs);
        Ok(Base { kind, device: recorder.snapshot().rechunked(CHUNK), tree })
    }

    /// A number that tells its content from that of the others.
    #[must_use]
    pub fn print(&self) -> u64 {
        (self.kind as u64 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    /// Blocks of the volume.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.device.info().blocks
    }
}

fn on_zones(recorder: &Arc<RecordingDevice>, layout: ZoneLayout) -> Result<Arc<dyn BlockDevice>, FsError> {
    let zones = KeptZones::create(recorder.clone(), layout);
    Ok(Arc::new(zones.map_err(|_| FsError::Invalid("the zones cannot be made"))?))
}

fn lanes(fs: &FileSystem) -> Result<(), FsError> {
    LANES.iter().try_for_each(|dir| fs.create_dir(dir, 0o755).map(drop))
}

/// The large directories, with how many names they have: an inode has room for 182, the first level of a hash table
/// (two blocks) for 428, the second for 856.
const LARGE: [(&str, usize); 3] = [("/D", 1400), ("/E", 178), ("/F", 422)];
/// Files of a large directory; all its other names are links to one file.
pub(crate) const FILES_OF_LARGE: usize = 6;

fn fill_directory(fs: &FileSystem, dir: &str, names: usize) -> Result<(), FsError> {
    fs.create_dir(dir, 0o755)?;
    let anchor = format!("{dir}/anchor");
    fs.create_file(&anchor, 0o644)?.write_at(b"many names", 0)?;
    let every = names / FILES_OF_LARGE;
    for name in 1..names {
        if name % every == every - 1 {
            // Among the others, so that some stand in every level.
            fs.create_file(format!("{dir}/f{}", name / every), 0o644)?.write_at(&[name as u8; 5000], 0)?;
        } else {
            fs.link(&anchor, format!("{dir}/l{name}"))?;
        }
    }
    Ok(())
}

/// The files of every base: with data in the inode, in a block and with a hole, with attributes, two directories with a
/// directory in one of them, a hard link and a symbolic one.
pub(crate) fn first_files() -> Vec<Op> {
    let path = |text: &str| text.to_owned();
    vec![
        Op::Mkdir(path("/A")),
        Op::Mkdir(path("/B")),
        Op::Mkdir(path("/A/deep")),
        Op::Create(path("/A/foo")),
        Op::Write(path("/A/foo"), 0, 8192),
        Op::SetXattr(path("/A/foo"), path("user.x"), 20),
        Op::Create(path("/A/bar")),
        Op::Write(path("/A/bar"), 0, 1000),
        Op::Create(path("/B/baz")),
        Op::Write(path("/B/baz"), 0, 100),
        Op::Write(path("/B/baz"), 20_000, 6000),
        Op::Create(path("/B/bar")),
        Op::Link(path("/B/baz"), path("/B/hard")),
        Op::Symlink(path("/B/soft"), 20),
    ]
}

/// Whether there is hardly a free segment, or no room for users; `blocks` are to fit yet.
fn few_free(fs: &FileSystem, blocks: usize) -> bool {
    let stat = fs.statfs();
    stat.free_segments <= 9 || stat.valid_blocks + blocks as u64 + 64 > stat.user_blocks
}

/// Files that are written in turn, block by block; one of them stays.
const INTERLEAVED: usize = 8;

fn fill_with_holes(fs: &FileSystem) -> Result<(), FsError> {
    fs.create_dir("/fill", 0o755)?;
    let names: Vec<String> = (0..INTERLEAVED).map(|index| format!("/fill/{index}")).collect();
    let files = names.iter().map(|name| fs.create_file(name, 0o600)).collect::<Result<Vec<_>, _>>()?;
    let mut block = 0u64;
    while !few_free(fs, 2 * INTERLEAVED) {
        for file in &files {
            file.write_at(&[block as u8; 4096], block * 4096)?;
        }
        block += 1;
    }
    drop(files);
    fs.checkpoint()?;
    for name in &names[1..] {
        fs.remove_file(name)?;
    }
    fs.checkpoint()?;
    Ok(())
}

/// So many files of a segment each at most.
fn fill_with_segments(fs: &FileSystem, most: usize) -> Result<(), FsError> {
    let mut made = 0;
    while !few_free(fs, 514) && made < most {
        let file = fs.create_file(format!("/large-{made}"), 0o600)?;
        match file.write_at(&vec![made as u8; 512 * 4096], 0) {
            Ok(_) => {}
            Err(error) if error.is_no_space() => break,
            Err(error) => return Err(error),
        }
        made += 1;
        fs.checkpoint()?;
    }
    Ok(())
}
