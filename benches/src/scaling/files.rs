//! Workloads on files, as FxMark has them: full paths, resolved from the root each time. Each core prepares its own
//! files, as FxMark's workers do.

use std::cell::Cell;
use std::num::NonZeroUsize;

use f2fs::journal::RegionMedium;
use f2fs::pmem::MemoryRegion;
use f2fs::volume::VolumeOptions;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{Dir, DirectoryLock, File, FileSystem, JournalMode, JournalOptions, Options, RenameMode, create_journal};
use f2fs_sync::{PlainArc, processors};

use super::apart::Apart;
use super::{Subject, Work, Workload};

/// Bytes of the volume: on virtual cores only the memory that is written is there.
pub(crate) const BYTES: usize = if cfg!(f2fs_manycore) { 16 << 30 } else { 6 << 30 };
/// Bytes of a volume that one thread has for itself.
pub(super) const BYTES_ALONE: usize = if cfg!(f2fs_manycore) { BYTES } else { 2 << 30 };
/// Bytes of a block.
const BLOCK: usize = 4096;
/// Bytes of each core's part of a shared file, of which the first block is written.
const PART: u64 = 8 << 20;
/// Bytes of the journal for each processor of the machine: few checkpoints are needed to make room in it.
const JOURNAL: usize = 24 << 20;
/// Files of a directory that is listed, or that files are opened in, for each core.
const FILES: u64 = 16;
/// Where files are opened: five directories deep.
const DEEP: &str = "1/2/3/4";

/// The volume, and files that stay open.
pub(super) struct Files {
    fs: FileSystem,
    workload: Workload,
    /// One for each core, or a shared one.
    open: Vec<File>,
    /// The directory of each core that is listed.
    listed: Vec<Dir>,
    cores: u64,
}

/// An empty volume of so many bytes for about so many files.
pub(crate) fn volume(subject: &Subject, bytes: usize, files: u64) -> FileSystem {
    let device = PlainArc::new(Apart::new(bytes));
    let mut how = FormatOptions::default();
    (how.force, how.discard) = (true, false);
    format(&*device, &how).expect("the device is large enough");
    let cached = NonZeroUsize::MIN.saturating_add(files as usize * 2 + 65_536);
    let volume = VolumeOptions::new().nid_policy(subject.policy).node_cache(cached).dirty_nodes(u64::MAX);
    let lock = if subject.whole_directory { DirectoryLock::Whole } else { DirectoryLock::Bucket };
    let mut options = Options::new().volume(volume).directory_lock(lock).inode_cache(cached);
    #[cfg(f2fs_manycore)]
    {
        // The time of the machine that is played.
        options = options.clock(|| {
            let now = f2fs_sync::manycore::now();
            f2fs::Time { seconds: (now / 1_000_000_000) as i64, nanoseconds: (now % 1_000_000_000) as u32 }
        });
    }
    if subject.workload == Workload::Dwsj {
        let region = MemoryRegion::new(JOURNAL * processors()).expect("there is so much memory");
        let medium = PlainArc::new(RegionMedium::new(region));
        create_journal(device.clone(), medium.clone(), false).expect("it was just made");
        options = options.journal(JournalOptions::new(medium, JournalMode::Journal));
    }
    FileSystem::open(device, options).expect("it was just made")
}

/// The file of an operation, or before it.
fn path(workload: Workload, core: usize, lap: u64) -> String {
    match workload {
        Workload::Mwum | Workload::Mwcm => format!("/shared/file-{core}-{lap}"),
        Workload::Mwrm => format!("/private-{core}/file-{core}-{lap}"),
        Workload::Mrpl => format!("/private-{core}/{DEEP}/file-{lap}"),
        Workload::Mrpm => format!("/shared/{DEEP}/file-{lap}"),
        Workload::Mrph => format!("/shared/{DEEP}/file-0"),
        Workload::Drbm | Workload::Drbh | Workload::Dwom => "/shared/data".to_owned(),
        _ => format!("/private-{core}/file-{lap}"),
    }
}

impl Files {
    /// Prepares a volume for so many cores, each of which does so many operations.
    pub(super) fn new(subject: &Subject, cores: usize, laps: u64, on_core: &dyn Fn(usize, &mut dyn FnMut())) -> Files {
        let workload = subject.workload;
        let bytes = subject.volume.unwrap_or(if cores == 1 { BYTES_ALONE } else { BYTES });
        let fs = volume(subject, bytes, cores as u64 * laps);
        let open = Cell::new(Vec::new());
        for core in 0..cores {
            on_core(core, &mut || {
                let mut files = open.take();
                prepare(&fs, workload, core, laps, &mut files);
                open.set(files);
            });
        }
        fs.checkpoint().expect("there is room");
        if matches!(workload, Workload::Mwul | Workload::Mwum) {
            // FxMark fills the volume.
            fs.hold_nids(0).expect("nothing is read");
        }
        let listed = (0..cores).map(|core| match workload {
            Workload::Mrdl => format!("/private-{core}"),
            _ => format!("/shared/{DEEP}"),
        });
        let is_listed = matches!(workload, Workload::Mrdl | Workload::Mrdm);
        let listed = listed.filter(|_| is_listed).map(|path| fs.open_dir(path).expect("it was made")).collect();
        Files { fs, workload, open: open.take(), listed, cores: cores as u64 }
    }

    fn file(&self, core: usize) -> &File {
        &self.open[core % self.open.len()]
    }
}

/// What a core prepares.
fn prepare(fs: &FileSystem, workload: Workload, core: usize, laps: u64, open: &mut Vec<File>) {
    let create = |lap: u64| {
        let path = path(workload, core, lap);
        fs.create_file(path, 0o644).expect("there is room")
    };
    let directories = |top: &str| {
        let mut path = top.to_owned();
        fs.create_dir(&path, 0o755).expect("there is room");
        for name in DEEP.split('/') {
            path = format!("{path}/{name}");
            fs.create_dir(&path, 0o755).expect("there is room");
        }
    };
    directories(&format!("/private-{core}"));
    if core == 0 {
        directories("/shared");
    }
    let write = |file: &File, blocks: u64, at: u64| {
        let bytes = blocks as usize * BLOCK;
        assert_eq!(file.write_at(&vec![7; bytes], at).expect("there is room"), bytes);
    };
    match workload {
        Workload::Mwul | Workload::Mwum | Workload::Mwrm => (0..laps).for_each(|lap| drop(create(lap))),
        Workload::Mwrl | Workload::Mrpl => drop(create(0)),
        Workload::Mrpm => (0..FILES).for_each(|file| drop(create(core as u64 * FILES + file))),
        Workload::Mrdl => (0..FILES).for_each(|file| drop(create(file))),
        Workload::Mrdm => {
            let name = |file| format!("/shared/{DEEP}/file-{core}-{file}");
            (0..FILES).for_each(|file| drop(fs.create_file(name(file), 0o644).expect("there is room")));
        }
        Workload::Mrph if core == 0 => drop(create(0)),
        Workload::Drbl | Workload::Dwol | Workload::Dwal | Workload::Dwsl | Workload::Dwsj => {
            let file = create(0);
            write(&file, 1, 0);
            open.push(file);
        }
        Workload::Dwtl => {
            let file = create(0);
            write(&file, laps + 1, 0);
            open.push(file);
        }
        Workload::Drbm | Workload::Drbh | Workload::Dwom => {
            if core == 0 {
                open.push(create(0));
            }
            if workload != Workload::Drbh || core == 0 {
                write(&open[0], 1, core as u64 * PART);
            }
        }
        _ => {}
    }
}

impl Work for Files {
    fn operation(&self, core: usize, lap: u64) {
        let (fs, workload) = (&self.fs, self.workload);
        let mut page = [5; BLOCK];
        let part = if workload == Workload::Drbh { 0 } else { core as u64 * PART };
        match workload {
            Workload::Mwul | Workload::Mwum => fs.remove_file(path(workload, core, lap)).expect("it was made"),
            Workload::Mwcl => drop(fs.create_file(path(workload, core, lap), 0o644).expect("there is room")),
            Workload::Mwcm => {
                let file = fs.create_file(path(workload, core, lap), 0o644).expect("there is room");
                assert_eq!(file.write_at(&page, 0).expect("there is room"), BLOCK);
            }
            Workload::Mwrl => {
                let (from, to) = (path(workload, core, lap), path(workload, core, lap + 1));
                fs.rename(from, to, RenameMode::Replace).expect("it is there");
            }
            Workload::Mwrm => {
                let to = format!("/shared/moved-{core}-{lap}");
                fs.rename(path(workload, core, lap), to, RenameMode::Replace).expect("it is there");
            }
            Workload::Mrpl | Workload::Mrph => drop(fs.open_file(path(workload, core, 0)).expect("it was made")),
            Workload::Mrpm => {
                // Any of them.
                let file = (core as u64 * 7919 + lap).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                drop(fs.open_file(path(workload, core, file % (self.cores * FILES))).expect("it was made"));
            }
            Workload::Mrdl | Workload::Mrdm => {
                let least = if workload == Workload::Mrdl { FILES } else { self.cores * FILES };
                let entries = self.listed[core].entries().count();
                assert!(entries as u64 >= least, "{entries}");
            }
            Workload::Drbl | Workload::Drbm | Workload::Drbh => {
                let at = if workload == Workload::Drbl { 0 } else { part };
                assert_eq!(self.file(core).read_at(&mut page, at).expect("it was written"), BLOCK);
            }
            Workload::Dwal => _ = self.file(core).append(&page).expect("there is room"),
            Workload::Dwtl => {
                let file = self.file(core);
                file.set_len(file.size() - BLOCK as u64).expect("it is longer");
            }
            _ => {
                let at = if workload == Workload::Dwom { part } else { 0 };
                assert_eq!(self.file(core).write_at(&page, at).expect("there is room"), BLOCK);
                if matches!(workload, Workload::Dwsl | Workload::Dwsj) {
                    self.file(core).sync_data().expect("nothing fails");
                }
            }
        }
    }
}
