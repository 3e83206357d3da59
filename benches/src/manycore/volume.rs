//! Workloads on files, as FxMark has them: full paths, resolved from the root each time.

use std::num::NonZeroUsize;

use f2fs::device::MemoryDevice;
use f2fs::volume::OpenOptions;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{DirectoryLock, File, FileSystem, Options};
use f2fs_sync::PlainArc;
use f2fs_sync::manycore::{self, Machine, Outcome, Pace};

use super::{Subject, Workload};

/// Blocks of the volume: 2 GiB, of which the memory that is written is there.
const BLOCKS: u64 = 512 * 1024;
/// Bytes of a block.
const BLOCK: usize = 4096;
/// Blocks of each core's part of a shared file.
const PART: u64 = 64;

fn path(workload: Workload, core: usize, lap: u64) -> String {
    match workload {
        Workload::Mwum | Workload::Mwcm => format!("/shared/file-{core}-{lap}"),
        _ => format!("/private-{core}/file-{lap}"),
    }
}

fn volume(subject: &Subject, files: u64) -> FileSystem {
    let device = PlainArc::new(MemoryDevice::new(BLOCKS));
    format(&*device, &FormatOptions::default()).expect("the device is large enough");
    let cached = NonZeroUsize::MIN.saturating_add(files as usize * 2 + 65_536);
    let volume = OpenOptions::new().nid_policy(subject.policy).node_cache(cached).dirty_nodes(u64::MAX);
    let lock = if subject.whole_directory { DirectoryLock::Whole } else { DirectoryLock::Bucket };
    let options = Options::new().volume(volume).directory_lock(lock).inode_cache(cached);
    FileSystem::open(device, options).expect("it was just made")
}

/// Plays one of them.
pub(super) fn play(subject: &Subject, machine: &Machine, pace: &Pace, cores: usize, laps: u64) -> Outcome {
    manycore::boot(machine);
    let workload = subject.workload;
    let fs = volume(subject, cores as u64 * laps);
    fs.create_dir("/shared", 0o755).expect("there is room");
    for core in 0..cores {
        fs.create_dir(format!("/private-{core}"), 0o755).expect("there is room");
    }
    if matches!(workload, Workload::Mwul | Workload::Mwum) {
        for (core, lap) in (0..cores).flat_map(|core| (0..laps).map(move |lap| (core, lap))) {
            drop(fs.create_file(path(workload, core, lap), 0o644).expect("there is room"));
        }
    }
    let blocks = match workload {
        Workload::Drbm | Workload::Dwom => PART * cores as u64,
        _ => 1,
    };
    let shared = matches!(workload, Workload::Drbm | Workload::Drbh | Workload::Dwom);
    let on_blocks = shared || matches!(workload, Workload::Drbl | Workload::Dwol);
    let made = |path: &str| {
        let file = fs.create_file(path, 0o644).expect("there is room");
        file.write_at(&vec![7; BLOCK * blocks as usize], 0).expect("there is room");
        file
    };
    let of_core = |core: usize| if shared { "/shared/data".to_owned() } else { format!("/private-{core}/data") };
    let files = if shared { 1 } else { cores };
    let files: Vec<File> = if on_blocks { (0..files).map(|core| made(&of_core(core))).collect() } else { Vec::new() };
    fs.checkpoint().expect("there is room");
    if matches!(workload, Workload::Mwul | Workload::Mwum) {
        // FxMark fills the volume.
        fs.hold_nids(0).expect("nothing is read");
    }
    let outcome = manycore::run(machine, pace, cores, laps / 8, |core| {
        let file = files.get(if shared { 0 } else { core });
        let at = if blocks > 1 { core as u64 * PART * BLOCK as u64 } else { 0 };
        let mut page = [5; BLOCK];
        for lap in 0..laps {
            match (workload, file) {
                (Workload::Mwul | Workload::Mwum, _) => {
                    fs.remove_file(path(workload, core, lap)).expect("it was made");
                }
                (Workload::Mwcl, _) => drop(fs.create_file(path(workload, core, lap), 0o644).expect("there is room")),
                (Workload::Mwcm, _) => {
                    let file = fs.create_file(path(workload, core, lap), 0o644).expect("there is room");
                    assert_eq!(file.write_at(&page, 0).expect("there is room"), BLOCK);
                }
                (Workload::Drbl | Workload::Drbm | Workload::Drbh, Some(file)) => {
                    assert_eq!(file.read_at(&mut page, at).expect("it was written"), BLOCK);
                }
                (_, Some(file)) => assert_eq!(file.write_at(&page, at).expect("there is room"), BLOCK),
                (_, None) => unreachable!("workloads on blocks have files"),
            }
            manycore::lap();
        }
    });
    drop(files);
    outcome
}
