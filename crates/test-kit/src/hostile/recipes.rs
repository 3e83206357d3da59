//! How the volumes are made.

use std::sync::Arc;

use f2fs_files::{AllocateFlags, FileKind, FileSystem, FsError, NewFile, Options, Pace, SetMode};
use f2fs_format::feature::Features;
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{Allocation, VolumeOptions};

use f2fs_device_test::SparseDevice;

/// Names in a directory of several levels of buckets. They are long, and of few files, since whoever looks at a volume
/// looks at each of them.
const HASHED: usize = 26;
/// The files that they name.
const NAMED: usize = 3;

/// The smallest size that this library makes a volume of by default: MiB. Smaller ones have no room for what is
/// reserved.
pub const SMALLEST: u64 = 52;

/// The usual volumes: of different features, closed and not. `kind` is reduced to how many there are.
pub fn small(kind: u8) -> SparseDevice {
    let features = match kind % 3 {
        0 => Features(0),
        1 => Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM).union(Features::SB_CHECKSUM),
        _ => Features::EXTRA_ATTR.union(Features::FLEXIBLE_INLINE_XATTR).union(Features::INODE_CRTIME),
    };
    shaped(64, &FormatOptions::default().with_features(features), kind)
}

/// A volume of so many MiB, formatted so, and filled.
pub fn shaped(mib: u64, options: &FormatOptions, kind: u8) -> SparseDevice {
    let device = Arc::new(SparseDevice::new(mib << 8));
    format(&*device, options).expect("a volume of that size");
    fill(&device, kind).expect("an empty volume has room");
    device.frozen()
}

/// A volume on which much was written, overwritten, cleaned and removed, and that was not closed: its logs are in the
/// holes of old segments, and its directories have holes as well.
pub fn aged(allocation: Allocation, options: &FormatOptions) -> SparseDevice {
    let device = Arc::new(SparseDevice::new(64 << 8));
    format(&*device, options).expect("a volume of 64 MiB");
    age(&device, allocation).expect("the volume has room");
    device.frozen()
}

fn age(device: &Arc<SparseDevice>, allocation: Allocation) -> Result<(), FsError> {
    let fs = FileSystem::open(device.clone(), Options::new().volume(VolumeOptions::new().allocation(allocation)))?;
    // A generator of its own: the fuzz targets' recorded inputs rest on the volumes that these numbers make.
    let mut state = 1_u64;
    let mut below = |end: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) % end
    };
    for path in ["/dir", "/dir/below", "/big"] {
        fs.create_dir(path, 0o755)?;
    }
    for name in 0..300 {
        fs.create_file(format!("/big/a name of some length {name}"), 0o644)?;
    }
    let files: Vec<String> = (0..12).map(|file| format!("/dir/{file}")).collect();
    for path in &files {
        fs.create_file(path, 0o644)?.write_at(&[1; 300_000], 0)?;
    }
    // As full as it may be, so that there is something to clean.
    let room = fs.statfs();
    let filler = fs.create_file("/filler", 0o600)?;
    let blocks = room.user_blocks.saturating_sub(room.valid_blocks + 1500);
    for block in 0..blocks {
        filler.write_at(&[2; 4096], block * 4096)?;
    }
    for round in 0..900_u64 {
        let path = &files[below(12) as usize];
        match below(10) {
            0 => fs.open_file(path)?.set_len(below(400_000))?,
            1 => fs.set_xattr(path, format!("user.{}", below(20)), &vec![3; below(150) as usize], SetMode::Any)?,
            2 => drop(fs.remove_file(format!("/big/a name of some length {}", below(300)))),
            3 => drop(fs.link(path, format!("/dir/below/{round}"))),
            _ => drop(fs.open_file(path)?.write_at(&[4; 9000], below(80) * 4096)?),
        }
        filler.write_at(&[5; 4096], below(blocks) * 4096)?;
        if round % 90 == 0 {
            fs.clean_step(Pace::Urgent)?;
            fs.checkpoint()?;
        }
    }
    // Most files go, and those that stay lie far apart.
    filler.set_len(40_000)?;
    fs.checkpoint()?;
    Ok(())
}

pub fn hashed(number: usize) -> String {
    format!("/hashed/entry-{number}-{}", "long".repeat(47))
}

pub fn fill(device: &Arc<SparseDevice>, kind: u8) -> Result<(), FsError> {
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
    // Opening an unclean volume reads three segments of nodes, which takes longer than all the rest.
    if kind % 6 != 5 { fs.close() } else { fs.checkpoint().map(|_| ()) }
}

/// Changes that syncs make durable, and some that none does. The volume is not closed.
pub fn sync_some(device: &Arc<SparseDevice>) -> Result<(), FsError> {
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
    reserved.allocate(0, 50_000, AllocateFlags::NONE)?;
    reserved.write_at(&[1; 4096], 8192)?;
    reserved.sync_all()?;
    let long = fs.create_file(format!("/{}", "long".repeat(40)), 0o600)?;
    long.write_at(&[2; 9000], 4_100_000)?;
    long.sync_all()?;
    large.write_at(&[3; 4096], 0)?;
    // Nothing of it is closed: what a power cut leaves.
    Ok(())
}
