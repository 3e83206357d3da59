//! Volumes with arbitrary damage behind right checksums, and what is done with them: shared by the property tests and the
//! fuzz targets. Nothing here may panic, hang, or take memory without bound.
#![allow(unreachable_pub)] // the fuzz targets' library shows it

use std::sync::Arc;

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_files::{FileKind, FileSystem, FsError, NewFile, Options, RenameMode, SetMode, path_from_bytes};
use f2fs_format::checkpoint::CheckpointBlock;
use f2fs_format::feature::Features;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{Geometry, RawBlock, inode, node};
use f2fs_volume::check::{CheckOptions, check};
use f2fs_volume::format::{FormatOptions, format};

/// Paths looked at in one volume at most.
const PATHS: usize = 400;

/// A change of some bytes of a block that is in use.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Which block, reduced to how many there are.
    pub block: u16,
    /// Where in it, reduced to its size.
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
        let bytes = device.to_bytes();
        let used = (0..device.info().blocks)
            .filter(|block| bytes[*block as usize * 4096..][..4096].iter().any(|byte| *byte != 0))
            .collect();
        // A volume that is damaged and used shares all but a few blocks with this one.
        Base { device: device.rechunked(16), used }
    }

    /// The volume with damage, its checksums put right.
    pub fn damaged(&self, patches: &[Patch]) -> Arc<MemoryDevice> {
        let device = self.device.snapshot();
        for patch in patches {
            let at = self.used[usize::from(patch.block) % self.used.len()];
            let mut block = read(&device, at);
            let offset = usize::from(patch.offset) % block.len();
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
    for name in 0..230 {
        fs.create_file(format!("/hashed/entry-{name}"), 0o644)?;
    }
    fs.create_file("/inline/small", 0o644)?.write_at(0, b"inline data")?;
    let large = fs.create_file("/large", 0o644)?;
    large.write_at(0, &[3; 50_000])?;
    large.write_at(4_000_000, &[4; 9000])?;
    large.write_at(9_000_000, &[5; 100])?;
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
    gone.write_at(0, &[9; 20_000])?;
    fs.unlink("/gone")?;
    // Whoever opens an unclean volume reads three segments of nodes, which takes longer than all the rest.
    if kind % 6 != 5 { fs.close() } else { fs.checkpoint().map(|_| ()) }
}

/// Looks at everything that can be reached, within bounds.
fn walk(fs: &FileSystem) {
    let mut pending = vec![b"/".to_vec()];
    let mut seen = 0;
    let mut buffer = vec![0; 20_000];
    while let Some(path) = pending.pop() {
        seen += 1;
        if seen > PATHS {
            return;
        }
        let at = path_from_bytes(&path);
        let Ok(stat) = fs.symlink_stat(at) else { continue };
        let _ = fs.xattrs(at);
        let _ = fs.stat(at);
        match stat.kind {
            FileKind::Directory => {
                let Ok(dir) = fs.open_dir(at) else { continue };
                for entry in dir.read(0, 300).unwrap_or_default() {
                    if entry.name != b"." && entry.name != b".." {
                        let slash: &[u8] = if path == b"/" { b"" } else { b"/" };
                        pending.push([&path[..], slash, &entry.name].concat());
                    }
                }
            }
            FileKind::Symlink => drop(fs.read_link(at)),
            FileKind::Regular => {
                let Ok(file) = fs.open_file(at) else { continue };
                for offset in [0, 3_990_000, stat.size.saturating_sub(10_000)] {
                    let _ = file.read_at(offset, &mut buffer);
                }
            }
            _ => {}
        }
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
    let names: [&str; 10] = [
        "/inline",
        "/inline/small",
        "/large",
        "/inline/hard",
        "/hashed",
        "/hashed/entry-7",
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
            0 => fs.create_file(&new, 0o644).and_then(|file| file.write_at(0, &[1; 5000]).map(|_| ())),
            1 => fs.create_dir(&new, 0o755).map(|_| ()),
            2 => fs.unlink(one),
            3 => fs.remove_dir(one),
            4 => fs.rename(one, &new, RenameMode::Replace),
            5 => fs.rename(one, two, RenameMode::Exchange),
            6 => fs.rename(one, two, RenameMode::Replace),
            7 => fs.link(one, &new),
            8 => fs.open_file(one).and_then(|file| file.write_at(u64::from(which) * 40_000, &[2; 9000]).map(|_| ())),
            9 => fs.open_file(one).and_then(|file| file.truncate(u64::from(which) * 100)),
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
