//! Volumes with arbitrary damage behind right checksums, and what is done with them: shared by the property tests and the
//! fuzz targets. Nothing here may panic, hang, or take memory without bound.
#![allow(unreachable_pub)] // the fuzz targets' library shows it

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use f2fs_check::repair::{plan, undo};
use f2fs_check::{CheckOptions, CheckReport, Severity, check};
use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_files::{FileKind, FileSystem, FsError, Metadata, NewFile, Options, RenameMode, SetMode, path_from_bytes};
use f2fs_format::checkpoint::CheckpointBlock;
use f2fs_format::feature::Features;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{Geometry, RawBlock, inode, node};
use f2fs_volume::VolumeError;
use f2fs_volume::format::{FormatOptions, format};

/// Paths looked at in one volume at most.
const PATHS: usize = 400;
/// Bytes read of one file at most, from either end.
const BYTES: usize = 1 << 20;
/// Names in a directory of several levels of buckets. They are long, and of few files, since whoever looks at a volume looks at
/// each of them.
const HASHED: usize = 26;
/// The files that they name.
const NAMED: usize = 3;

fn hashed(number: usize) -> String {
    format!("/hashed/entry-{number}-{}", "long".repeat(47))
}

/// A change of some bytes of a block that is in use.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Which block, reduced to how many there are.
    pub block: u16,
    /// Where in it, reduced to its size; the highest numbers lead to where nodes have their footer, links and numbers.
    pub offset: u16,
    /// What is written there.
    pub bytes: Vec<u8>,
}

/// A small volume with every kind of structure in it.
#[derive(Debug)]
pub struct Base {
    device: MemoryDevice,
    /// Blocks that hold something.
    used: Vec<u64>,
}

impl Base {
    /// Volumes of different features: `kind` is reduced to how many there are.
    pub fn new(kind: u8) -> Base {
        let features = match kind % 3 {
            0 => Features(0),
            1 => Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM).union(Features::SB_CHECKSUM),
            _ => Features::EXTRA_ATTR.union(Features::FLEXIBLE_INLINE_XATTR).union(Features::INODE_CRTIME),
        };
        let device = Arc::new(MemoryDevice::new((64 << 20) >> 12));
        format(&*device, &FormatOptions::default().with_features(features)).expect("a volume of 64 MiB");
        fill(&device, kind).expect("an empty volume has room");
        // A comparison of blocks, not of bytes: the fuzz targets' builds take note of every comparison.
        let used = (0..device.info().blocks).filter(|block| read(&device, *block) != [0; 4096]).collect();
        // A volume that is damaged and used shares all but a few blocks with this one.
        Base { device: device.rechunked(16), used }
    }

    /// Volumes on which files were synced after the last checkpoint. Most damage is to what the syncs wrote.
    pub fn synced(kind: u8) -> Base {
        let base = Base::new(kind);
        let device = Arc::new(base.device.snapshot());
        sync_some(&device).expect("the volume has room");
        let changed = |block: &u64| read(&device, *block) != read(&base.device, *block);
        let written: Vec<u64> = (0..device.info().blocks).filter(changed).collect();
        assert!(written.len() > 20, "the chain has {} blocks", written.len());
        let few = base.used.len() / written.len() * 3;
        let used = written.iter().copied().cycle().take(written.len() * few.max(1)).chain(base.used).collect();
        Base { device: device.rechunked(16), used }
    }

    /// The volume with damage, its checksums put right.
    pub fn damaged(&self, patches: &[Patch]) -> Arc<MemoryDevice> {
        let device = self.device.snapshot();
        for patch in patches {
            let at = self.used[usize::from(patch.block) % self.used.len()];
            let mut block = read(&device, at);
            let offset = place(patch.offset);
            for (to, from) in block[offset..].iter_mut().zip(&patch.bytes) {
                *to = *from;
            }
            write(&device, at, &block);
        }
        self.seal(&device, patches);
        Arc::new(device)
    }

    /// Makes right what a checksum would give away.
    fn seal(&self, device: &MemoryDevice, patches: &[Patch]) {
        let first = SuperBlock::read(&read(&self.device, 0));
        let Ok(geometry) = Geometry::from_superblock(&first) else { return };
        let seed = inode::checksum_seed(&first);
        for patch in patches {
            let at = self.used[usize::from(patch.block) % self.used.len()];
            let mut block = read(device, at);
            if at < 2 {
                let mut sb = SuperBlock::read(&block);
                sb.crc = sb.compute_crc().into();
                sb.write(&mut block);
            } else if at < u64::from(geometry.sit_blkaddr.0) {
                let mut checkpoint = CheckpointBlock::read(&block);
                if checkpoint.checksums().is_ok() && checkpoint.header.user_block_count.get() > 0 {
                    checkpoint.seal();
                    block = *checkpoint.as_block();
                }
            } else if at >= u64::from(geometry.main_blkaddr.0) {
                let mut node = Box::new(*node::NodeBlock::read(&block));
                if node.is_inode() && inode::has_checksum(node.inode(), geometry.features) {
                    let sum = inode::checksum(&node, seed);
                    node.inode_mut().extra_mut().i_inode_checksum = sum.into();
                    block = *node.as_block();
                }
            }
            write(device, at, &block);
        }
    }
}

/// Where in a block a patch goes.
fn place(offset: u16) -> usize {
    let low = usize::from(offset % 4096);
    match offset >> 12 {
        // The footer of a node; the nodes below an inode; what stands in front of its addresses.
        15 => 4072 + low % 24,
        14 => 4052 + low % 20,
        13 => low % 400,
        _ => low,
    }
}

fn read(device: &MemoryDevice, block: u64) -> RawBlock {
    *device.read(block, 1).expect("a block of the device").block(0)
}

fn write(device: &MemoryDevice, block: u64, bytes: &RawBlock) {
    device.write_slice(block, bytes).expect("a block of the device");
}

fn fill(device: &Arc<MemoryDevice>, kind: u8) -> Result<(), FsError> {
    let fs = FileSystem::open(device.clone(), Options::new())?;
    for path in ["/inline", "/hashed", "/inline/below", "/empty"] {
        fs.create_dir(path, 0o755)?;
    }
    for number in 0..HASHED {
        match number.checked_sub(NAMED) {
            None => drop(fs.create_file(hashed(number), 0o644)?),
            Some(at) => fs.link(hashed(at % NAMED), hashed(number))?,
        }
    }
    fs.create_file("/inline/small", 0o644)?.write_at(b"inline data", 0)?;
    let large = fs.create_file("/large", 0o644)?;
    large.write_at(&[3; 50_000], 0)?;
    large.write_at(&[4; 9000], 4_000_000)?;
    large.write_at(&[5; 100], 9_000_000)?;
    fs.link("/large", "/inline/hard")?;
    let link = NewFile::new(FileKind::Symlink, 0o777);
    fs.symlink(b"below/../small", "/inline/soft", &link)?;
    fs.symlink(&[b'x'; 4000], "/inline/long", &link)?;
    fs.create("/inline/device", &NewFile::new(FileKind::BlockDevice, 0o600).device(8, 300))?;
    fs.set_xattr("/inline/small", "user.short", b"value", SetMode::Any)?;
    fs.set_xattr("/large", "user.long", &[7; 2000], SetMode::Any)?;
    fs.set_xattr("/inline", "trusted.more", &[8; 100], SetMode::Any)?;
    fs.checkpoint()?;
    // An orphan in the pack, and a pack without node summaries, for one of the kinds.
    let gone = fs.create_file("/gone", 0o600)?;
    gone.write_at(&[9; 20_000], 0)?;
    fs.remove_file("/gone")?;
    // Whoever opens an unclean volume reads three segments of nodes, which takes longer than all the rest.
    if kind % 6 != 5 { fs.close() } else { fs.checkpoint().map(|_| ()) }
}

/// Changes that syncs make durable, and some that none does. The volume is not closed.
fn sync_some(device: &Arc<MemoryDevice>) -> Result<(), FsError> {
    let fs = FileSystem::open(device.clone(), Options::new())?;
    let large = fs.open_file("/large")?;
    large.write_at(&[6; 30_000], 30_000)?;
    large.write_at(&[6; 5000], 13_000_000)?;
    large.set_len(13_001_000)?;
    let small = fs.open_file("/inline/small")?;
    small.write_at(b"synced", 4)?;
    small.sync_all()?;
    small.write_at(&[7; 3000], 3000)?;
    small.sync_all()?;
    for name in 0..6 {
        let path = format!("/hashed/synced-{name}");
        let file = fs.create_file(&path, 0o640)?;
        file.write_at(&vec![8; name * 2500], 0)?;
        if name % 2 == 1 {
            fs.set_xattr(&path, "user.long", &[9; 700], SetMode::Any)?;
        }
        file.sync_all()?;
    }
    fs.set_xattr("/inline/small", "user.more", &[9; 900], SetMode::Any)?;
    small.sync_all()?;
    let reserved = fs.create_file("/reserved", 0o600)?;
    reserved.allocate(0, 50_000, false)?;
    reserved.write_at(&[1; 4096], 8192)?;
    reserved.sync_all()?;
    let long = fs.create_file(format!("/{}", "long".repeat(40)), 0o600)?;
    long.write_at(&[2; 9000], 4_100_000)?;
    long.sync_all()?;
    large.write_at(&[3; 4096], 0)?;
    // Nothing of it is closed: what a power cut leaves.
    Ok(())
}

/// Hands out what can be reached from the root, [`PATHS`] paths at most, and a file that has several names once.
fn each_path(fs: &FileSystem, mut look: impl FnMut(&Path, &Metadata)) {
    let mut pending = vec![b"/".to_vec()];
    let mut seen = HashSet::new();
    for _ in 0..PATHS {
        let Some(path) = pending.pop() else { return };
        let at = path_from_bytes(&path);
        let Ok(stat) = fs.symlink_metadata(at) else { continue };
        if stat.kind != FileKind::Directory && !seen.insert(stat.ino) {
            continue;
        }
        look(at, &stat);
        if stat.kind == FileKind::Directory {
            let Ok(dir) = fs.open_dir(at) else { continue };
            for entry in dir.read(0, 300).unwrap_or_default() {
                if entry.name != b"." && entry.name != b".." {
                    let slash: &[u8] = if path == b"/" { b"" } else { b"/" };
                    pending.push([&path[..], slash, &entry.name].concat());
                }
            }
        }
    }
}

/// Looks at everything that can be reached, within bounds.
fn walk(fs: &FileSystem) {
    let mut buffer = vec![0; 20_000];
    each_path(fs, |at, stat| {
        let _ = fs.xattrs(at);
        match stat.kind {
            FileKind::Symlink => drop((fs.read_link(at), fs.metadata(at))),
            FileKind::Regular => {
                let Ok(file) = fs.open_file(at) else { return };
                for offset in [0, 3_990_000, stat.size.saturating_sub(10_000)] {
                    let _ = file.read_at(&mut buffer, offset);
                }
            }
            _ => {}
        }
    });
}

/// Opens for reading, and reads all that can be read, within bounds. A second reading shows the same.
pub fn read_everything(device: &Arc<MemoryDevice>) {
    let Ok(fs) = FileSystem::open(device.clone(), Options::new().read_only(true)) else { return };
    let mut left = 16 * BYTES as u64;
    let mut buffer = vec![0; 64 << 10];
    let mut again = buffer.clone();
    each_path(&fs, |at, stat| {
        for (name, value) in fs.xattrs(at).unwrap_or_default() {
            // One that is listed is there.
            assert_eq!(fs.xattr(at, &name).ok(), Some(value));
        }
        if let Ok(target) = fs.read_link(at) {
            assert_eq!(fs.read_link(at).ok(), Some(target));
        }
        if stat.kind == FileKind::Directory
            && let Ok(entries) = fs.read_dir(at)
        {
            assert_eq!(fs.read_dir(at).ok().map(|again| again.len()), Some(entries.len()));
        }
        let Ok(file) = fs.open_file(at) else { return };
        let (end, bytes) = (stat.size, BYTES as u64);
        let pieces = (0..bytes).step_by(buffer.len()).chain((end.saturating_sub(bytes)..end).step_by(buffer.len()));
        for offset in pieces {
            if offset >= end || left == 0 {
                break;
            }
            let [one, two] = [&mut buffer, &mut again].map(|buffer| file.read_at(buffer, offset));
            match (one, two) {
                (Ok(one), Ok(two)) => {
                    assert!(buffer[..one] == again[..two], "two readings differ at {offset}");
                    left = left.saturating_sub(one as u64);
                }
                (one, two) => assert_eq!(one.is_ok(), two.is_ok(), "at {offset}"),
            }
        }
    });
}

/// Rolls forward in memory and for good: what a reader is shown is what a writer finds.
pub fn roll_forward(device: &Arc<MemoryDevice>) {
    // Of each directory its names, if it can be read.
    let names = |fs: &FileSystem| {
        ["/", "/hashed", "/inline"].map(|path| {
            let entries = fs.read_dir(path).ok()?;
            Some(entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>())
        })
    };
    let options = || Options::new().volume(f2fs_volume::OpenOptions::new().recovery(false)).read_only(true);
    let without = FileSystem::open(device.clone(), options()).is_ok();
    let reader = FileSystem::open(device.clone(), Options::new().read_only(true));
    let shown = match &reader {
        Ok(fs) => {
            assert!(without, "what recovers opens without recovery");
            walk(fs);
            Some(names(fs))
        }
        Err(_) => None,
    };
    drop(reader);
    let before = device.snapshot();
    let Ok(fs) = FileSystem::open(device.clone(), Options::new()) else { return };
    for (shown, found) in shown.into_iter().flatten().zip(names(&fs)) {
        // Where two own a block, what the writer's checkpoint wrote or freed may cover up an error, or be one for the other.
        if let (Some(shown), Some(found)) = (&shown, &found) {
            assert!(found == shown, "a reader sees {} names, a writer {}", shown.len(), found.len());
        } else if shown != found {
            assert!(!is_sound(&before), "a reader sees {shown:?}, a writer {found:?}");
        }
    }
    walk(&fs);
    let _ = fs.close();
    drop(fs);
    open_and_check(device);
}

/// Whether nothing is wrong with a volume.
fn is_sound(device: &MemoryDevice) -> bool {
    let options = CheckOptions { threads: Some(0), ..CheckOptions::default() };
    check(device, &options).is_ok_and(|report| report.is_consistent() && report.complete)
}

/// Plans a repair, applies it, checks the result, and undoes it if that is not sound. No more may be found afterwards
/// than before.
pub fn repair(device: &Arc<MemoryDevice>) {
    let options = CheckOptions { threads: Some(0), ..CheckOptions::default() };
    let image: Arc<dyn BlockDevice> = Arc::new(device.snapshot().read_only());
    let Ok(repair) = plan(&image, &options) else { return };
    let damage = |report: &CheckReport| {
        let found = report.findings.iter().filter(|finding| finding.severity() == Severity::Damage).count();
        found as u64 + report.suppressed
    };
    // What could not be looked at before may show more damage now.
    if repair.before.complete {
        let (before, after) = (damage(&repair.before), damage(&repair.after));
        assert!(after <= before, "worse: {before} findings, then {after}:\n{}\n{}", repair.before, repair.after);
        assert!(repair.after.complete);
    }
    let mut backup = Vec::new();
    repair.write_backup(&**device, &mut backup).expect("memory takes it");
    repair.apply(&**device).expect("memory takes it");
    let found = check(&**device, &options).expect("what was judged in memory can be judged here");
    assert_eq!(found.findings, repair.after.findings);
    if found.is_consistent() && found.complete {
        let fs = match FileSystem::open(device.clone(), Options::new()) {
            // A volume with quotas, or one whose checkpoints are switched off, can be checked and read, and not be changed.
            Err(FsError::Volume(VolumeError::OnlyForReading { .. } | VolumeError::CheckpointDisabled)) => {
                return walk(
                    &FileSystem::open(device.clone(), Options::new().read_only(true)).expect("it can be read"),
                );
            }
            opened => opened.expect("a sound volume opens"),
        };
        walk(&fs);
        fs.create_file("/after the repair", 0o600)
            .and_then(|file| file.write_at(&[1; 5000], 0))
            .map(drop)
            .or_else(enough)
            .expect("a sound volume is written to");
        fs.close().expect("a sound volume is closed");
        drop(fs);
        let found = check(&**device, &options).expect("a sound volume is checked");
        assert!(found.is_consistent(), "after the repair and a change:\n{found}");
        return;
    }
    undo(&**device, &backup[..]).expect("nothing was changed meanwhile");
    let as_before = |block: &u64| read(device, *block) == *image.read(*block, 1).expect("a block").block(0);
    assert!(repair.blocks().all(|block| as_before(&block)));
}

/// A volume may be full, or have a file of that name.
fn enough(error: FsError) -> Result<(), FsError> {
    match error {
        error if error.is_no_space() => Ok(()),
        FsError::Exists => Ok(()),
        error => Err(error),
    }
}

/// Opens for reading, walks, and checks.
pub fn open_and_check(device: &Arc<MemoryDevice>) {
    if let Ok(fs) = FileSystem::open(device.clone(), Options::new().read_only(true)) {
        walk(&fs);
        let _ = fs.volume().last_checkpoint();
        let _ = fs.statfs();
    }
    if let Ok(report) = check(&**device, &CheckOptions { threads: Some(0), ..CheckOptions::default() }) {
        // Its text as well.
        assert_eq!(report.to_string().is_empty(), report.is_clean());
    }
}

/// Opens for writing, changes this and that as `choices` say, writes checkpoints, closes, and opens again.
pub fn change(device: &Arc<MemoryDevice>, choices: &[u8]) {
    let hashed = hashed(7);
    let names: [&str; 10] = [
        "/inline",
        "/inline/small",
        "/large",
        "/inline/hard",
        "/hashed",
        &hashed,
        "/inline/below",
        "/inline/soft",
        "/empty",
        "/inline/long",
    ];
    let Ok(fs) = FileSystem::open(device.clone(), Options::new()) else { return };
    for (index, pair) in choices.chunks(2).take(40).enumerate() {
        let (what, which) = (pair[0], pair.get(1).copied().unwrap_or(0));
        let one = names[usize::from(which) % names.len()];
        let two = names[usize::from(which / 16) % names.len()];
        let new = format!("{two}/new-{index}");
        let _: Result<(), FsError> = match what % 16 {
            0 => fs.create_file(&new, 0o644).and_then(|file| file.write_at(&[1; 5000], 0).map(|_| ())),
            1 => fs.create_dir(&new, 0o755).map(|_| ()),
            2 => fs.remove_file(one),
            3 => fs.remove_dir(one),
            4 => fs.rename(one, &new, RenameMode::Replace),
            5 => fs.rename(one, two, RenameMode::Exchange),
            6 => fs.rename(one, two, RenameMode::Replace),
            7 => fs.link(one, &new),
            8 => fs.open_file(one).and_then(|file| file.write_at(&[2; 9000], u64::from(which) * 40_000).map(|_| ())),
            9 => fs.open_file(one).and_then(|file| file.set_len(u64::from(which) * 100)),
            10 => fs.open_file(one).and_then(|file| file.allocate(4_000_000, 100_000, true)),
            11 => fs.set_xattr(one, "user.new", &vec![3; usize::from(which) * 10], SetMode::Any),
            12 => fs.remove_xattr(one, "user.long"),
            13 => fs.remove_all(one),
            14 => fs.checkpoint().map(|_| ()),
            _ => fs.set_permissions(one, u16::from(which)),
        };
    }
    walk(&fs);
    let _ = fs.close();
    drop(fs);
    open_and_check(device);
}
