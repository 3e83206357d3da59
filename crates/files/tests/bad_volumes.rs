//! Volumes that are cut, damaged or lie: each gives a typed error with its numbers, or opens with what is left; nothing is
//! written on the way.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{formatted, within};
use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_files::{DirEntry, FileSystem, FsError, Options, SetMode};
use f2fs_format::checkpoint::CheckpointBlock;
use f2fs_format::dentry::{DentryLayout, DentryViewMut, FileType};
use f2fs_format::feature::Features;
use f2fs_format::hash::dentry_hash;
use f2fs_format::inode::Inode;
use f2fs_format::nat::{ENTRIES_PER_BLOCK, NatBlock};
use f2fs_format::node::NodeBlock;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{Corruption, FormatError, Geometry, Nid, RawBlock};
use f2fs_volume::VolumeError;
use f2fs_volume::format::FormatOptions;

fn options() -> FormatOptions {
    FormatOptions::default().with_features(Features::SB_CHECKSUM)
}

/// A volume with a tree, and two valid checkpoint packs. The file `/new` is in the last checkpoint only.
fn volume() -> MemoryDevice {
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    for path in ["/dir", "/dir/below", "/hashed"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    fs.create_file("/small", 0o644).unwrap().write_at(0, b"inline").unwrap();
    fs.create_file("/large", 0o644).unwrap().write_at(0, &[7; 5 << 20]).unwrap();
    fs.set_xattr("/small", "user.note", b"text", SetMode::Any).unwrap();
    for name in 0..400 {
        fs.create_file(format!("/hashed/{name}"), 0o644).unwrap();
    }
    fs.checkpoint().unwrap();
    fs.create_file("/new", 0o644).unwrap();
    fs.close().unwrap();
    device.snapshot()
}

fn read(device: &MemoryDevice, block: u64) -> RawBlock {
    *device.read(block, 1).unwrap().block(0)
}

fn geometry(device: &MemoryDevice) -> Geometry {
    Geometry::from_superblock(&SuperBlock::read(&read(device, 0))).unwrap()
}

/// Changes one superblock; with `seal` its checksum stays right.
fn patch_superblock(device: &MemoryDevice, copy: u64, seal: bool, change: impl Fn(&mut SuperBlock)) {
    let mut block = read(device, copy);
    let mut sb = SuperBlock::read(&block);
    change(&mut sb);
    if seal {
        sb.crc = sb.compute_crc().into();
    }
    sb.write(&mut block);
    device.write_slice(copy, &block).unwrap();
}

/// Changes every block in the main area that is this node, stale ones as well.
fn patch_node(device: &MemoryDevice, ino: Nid, change: impl Fn(&mut NodeBlock)) {
    let geometry = geometry(device);
    let mut found = 0;
    for addr in geometry.main_blkaddr.0..geometry.main_end().0 {
        let block = read(device, addr.into());
        let mut node = Box::new(*NodeBlock::read(&block));
        if node.nid() == ino && node.ino() == ino {
            change(&mut node);
            device.write_slice(addr.into(), node.as_block()).unwrap();
            found += 1;
        }
    }
    assert!(found > 0, "no block of node {ino}");
}

fn ino(device: &MemoryDevice, path: &str) -> Nid {
    let fs = FileSystem::open(Arc::new(device.snapshot()), Options::new().read_only(true)).unwrap();
    fs.symlink_stat(path).unwrap().ino
}

/// Opens for writing, which must fail, and leave every byte as it was.
#[track_caller]
fn refuse(device: &MemoryDevice) -> VolumeError {
    let before = device.snapshot();
    let shared = Arc::new(device.snapshot());
    let error = FileSystem::open(shared.clone(), Options::new()).unwrap_err();
    let again = FileSystem::open(shared.clone(), Options::new().read_only(true)).unwrap_err();
    assert_eq!(error.to_string(), again.to_string(), "reading says the same");
    assert!(shared.to_bytes() == before.to_bytes(), "a failed open wrote something");
    match error {
        FsError::Volume(error) => error,
        other => panic!("{other}"),
    }
}

fn open(device: &MemoryDevice) -> FileSystem {
    FileSystem::open(Arc::new(device.snapshot()), Options::new()).unwrap()
}

#[test]
fn truncated_images() {
    let device = volume();
    let blocks = device.info().blocks;
    let geometry = geometry(&device);
    let whole = device.to_bytes();
    let cuts = [
        0,
        1,
        2,
        3,
        u64::from(geometry.cp_blkaddr.0),
        u64::from(geometry.cp_blkaddr.0) + 1,
        u64::from(geometry.sit_blkaddr.0),
        u64::from(geometry.nat_blkaddr.0) + 17,
        u64::from(geometry.ssa_blkaddr.0),
        u64::from(geometry.main_blkaddr.0),
        u64::from(geometry.main_end().0) - 1,
        blocks - 1,
    ];
    for cut in cuts {
        let cut_device = MemoryDevice::from_bytes(&whole[..cut as usize * 4096]);
        match refuse(&cut_device) {
            VolumeError::Truncated { volume, device } => {
                assert_eq!(device, cut);
                assert!(volume > cut && volume <= blocks, "cut {cut}: {volume}");
            }
            other => panic!("cut {cut}: {other}"),
        }
    }
}

#[test]
fn wrong_magic() {
    let device = volume();
    patch_superblock(&device, 0, true, |sb| sb.magic = 0x1234.into());
    let fs = open(&device);
    let damage = fs.volume().damage();
    assert_eq!(damage.superblock_copy, 1);
    let Some(Corruption::Magic { expected: 0xf2f5_2010, found: 0x1234, .. }) = damage.superblock else {
        panic!("{damage:?}");
    };
    assert!(fs.exists("/new").unwrap());
    patch_superblock(&device, 1, true, |sb| sb.magic = 0x5678.into());
    match refuse(&device) {
        VolumeError::NoSuperblock {
            first: Corruption::Magic { found: 0x1234, .. },
            second: Corruption::Magic { found: 0x5678, .. },
        } => {}
        other => panic!("{other}"),
    }
    let nothing = MemoryDevice::new(16384);
    assert!(matches!(refuse(&nothing), VolumeError::NoSuperblock { first: Corruption::Magic { found: 0, .. }, .. }));
}

#[test]
fn bad_checksums_of_superblocks() {
    for copy in [0, 1] {
        let device = volume();
        patch_superblock(&device, copy, false, |sb| sb.uuid[3] ^= 1);
        let fs = open(&device);
        let damage = fs.volume().damage();
        assert_eq!(u64::from(damage.superblock_copy), if copy == 0 { 1 } else { 0 });
        match &damage.superblock {
            Some(Corruption::Checksum { expected, found, .. }) => assert_ne!(expected, found),
            other => panic!("{other:?}"),
        }
        assert!(fs.exists("/new").unwrap());
        patch_superblock(&device, 1 - copy, false, |sb| sb.uuid[3] ^= 2);
        let error = refuse(&device);
        assert!(
            matches!(
                error,
                VolumeError::NoSuperblock { first: Corruption::Checksum { .. }, second: Corruption::Checksum { .. } }
            ),
            "{error}"
        );
    }
}

fn version(device: &MemoryDevice, pack: u32) -> u64 {
    let start = geometry(device).checkpoint_pack(pack);
    CheckpointBlock::read(&read(device, start.0.into())).header.checkpoint_ver.get()
}

fn damage_pack(device: &MemoryDevice, pack: u32, at_end: bool) {
    let start = geometry(device).checkpoint_pack(pack).0;
    let first = CheckpointBlock::read(&read(device, start.into()));
    let block = if at_end { start + first.header.cp_pack_total_block_count.get() - 1 } else { start };
    let mut bytes = read(device, block.into());
    bytes[200] ^= 0x10;
    device.write_slice(block.into(), &bytes).unwrap();
}

#[test]
fn bad_checksums_of_packs() {
    for at_end in [false, true] {
        let device = volume();
        let current = if version(&device, 1) > version(&device, 0) { 1 } else { 0 };
        let good = device.snapshot();

        // The other one is not needed.
        damage_pack(&device, 1 - current, at_end);
        let fs = open(&device);
        assert!(matches!(fs.volume().damage().pack, Some(Corruption::Checksum { .. })), "{:?}", fs.volume().damage());
        assert!(fs.exists("/new").unwrap());

        // The current one: the volume is what it was at the checkpoint before.
        damage_pack(&good, current, at_end);
        let shared = Arc::new(good.snapshot());
        let fs = FileSystem::open(shared.clone(), Options::new()).unwrap();
        assert!(matches!(fs.volume().damage().pack, Some(Corruption::Checksum { .. })));
        assert!(!fs.exists("/new").unwrap());
        assert_eq!(fs.stat("/small").unwrap().size, 6);
        // The next checkpoint heals it.
        fs.create_file("/again", 0o644).unwrap();
        fs.close().unwrap();
        common::assert_clean(&shared);

        damage_pack(&device, current, at_end);
        let error = refuse(&device);
        match &error {
            VolumeError::NoCheckpoint {
                first: Corruption::Checksum { expected, found, .. },
                second: Corruption::Checksum { .. },
            } => {
                assert_ne!(expected, found);
                assert!(error.to_string().contains(&format!("{found:#010x}")), "{error}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn sizes_that_lie() {
    type Change = fn(&mut SuperBlock);
    let lies: [(&str, Change); 12] = [
        ("segment_count", |sb| sb.segment_count = u32::MAX.into()),
        ("segment_count_main", |sb| sb.segment_count_main = 8_000_000.into()),
        ("segment_count_sit", |sb| sb.segment_count_sit = 4096.into()),
        ("segment_count_nat", |sb| sb.segment_count_nat = 0.into()),
        ("sit_blkaddr", |sb| sb.sit_blkaddr = 0.into()),
        ("nat_blkaddr", |sb| std::mem::swap(&mut sb.nat_blkaddr, &mut sb.ssa_blkaddr)),
        ("main_blkaddr", |sb| sb.main_blkaddr = u32::MAX.into()),
        ("block_count", |sb| sb.block_count = 1.into()),
        ("block_count", |sb| sb.block_count = u64::MAX.into()),
        ("segs_per_sec", |sb| sb.segs_per_sec = 0.into()),
        ("section_count", |sb| sb.section_count = u32::MAX.into()),
        ("cp_payload", |sb| sb.cp_payload = u32::MAX.into()),
    ];
    for (field, change) in lies {
        let device = volume();
        patch_superblock(&device, 0, true, change);
        let fs = open(&device);
        let said = fs.volume().damage().superblock.clone().unwrap().to_string();
        assert!(said.contains(field), "{field}: {said}");
        patch_superblock(&device, 1, true, change);
        match refuse(&device) {
            VolumeError::NoSuperblock { first, second } => assert_eq!(first, second),
            other => panic!("{field}: {other}"),
        }
    }

    let device = volume();
    let blocks = device.info().blocks;
    for copy in [0, 1] {
        patch_superblock(&device, copy, true, |sb| sb.block_count = (blocks + 1).into());
    }
    let error = refuse(&device);
    assert!(matches!(error, VolumeError::Truncated { volume, device } if volume == blocks + 1 && device == blocks));
    assert!(error.to_string().contains(&(blocks + 1).to_string()) && error.to_string().contains(&blocks.to_string()));
}

#[test]
fn features_are_refused_by_name() {
    for (bits, names, reading) in [
        (0x1000, "casefold", false),
        (0x2001, "encrypt, compression", false),
        (0x8000_0000, "bit 31", false),
        (0x0080, "quota", true),
        (0x0400, "verity", true),
    ] {
        let device = volume();
        for copy in [0, 1] {
            patch_superblock(&device, copy, true, |sb| sb.feature = (sb.feature.get() | bits).into());
        }
        let shared = Arc::new(device.snapshot());
        match FileSystem::open(shared.clone(), Options::new()).unwrap_err() {
            FsError::Volume(VolumeError::Format(FormatError::Unsupported { bits: found, names: said })) => {
                assert_eq!((found, said.as_str()), (bits, names));
            }
            other => panic!("{other}"),
        }
        assert!(shared.to_bytes() == device.to_bytes());
        assert_eq!(FileSystem::open(shared, Options::new().read_only(true)).is_ok(), reading, "{names}");
    }
}

#[test]
fn names_and_paths() {
    let device = Arc::new(volume());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let long = "n".repeat(255);
    fs.create_file(format!("/dir/{long}"), 0o644).unwrap();
    assert!(fs.exists(format!("/dir/{long}")).unwrap());
    let too_long = format!("/dir/{}", "n".repeat(256));
    for result in [
        fs.create_file(&too_long, 0o644).map(|_| ()),
        fs.create_dir(&too_long, 0o755).map(|_| ()),
        fs.link("/small", &too_long),
        fs.rename("/small", &too_long, f2fs_files::RenameMode::Replace),
        fs.stat(&too_long).map(|_| ()),
    ] {
        match result.unwrap_err() {
            FsError::Name(FormatError::Name { len: 256, .. }) => {}
            other => panic!("{other}"),
        }
    }
    let nul = common::at(b"/dir/a\0b");
    assert!(matches!(fs.create_file(nul, 0o644).unwrap_err(), FsError::Name(FormatError::Name { len: 3, .. })));
    for nameless in ["", "/", "//", "/dir/.", "/dir/.."] {
        assert!(
            matches!(fs.create_file(nameless, 0o644).unwrap_err(), FsError::Invalid(_) | FsError::Name(_)),
            "{nameless:?}"
        );
    }
    // Bytes that are no UTF-8 are names like others.
    let odd: &[u8] = b"/dir/\xff\xfe\x01 \\";
    fs.create_file(common::at(odd), 0o600).unwrap().write_at(0, b"odd").unwrap();
    assert!(fs.read_dir("/dir").unwrap().iter().any(|entry| entry.name == odd[5..]));

    assert!(matches!(fs.stat("/small/below").unwrap_err(), FsError::NotDirectory));
    assert!(matches!(fs.create_file("/small/below", 0o644).unwrap_err(), FsError::NotDirectory));
    assert!(matches!(fs.stat("/small/").unwrap_err(), FsError::NotDirectory));
    assert!(matches!(fs.stat("/none/below").unwrap_err(), FsError::NotFound));
    let link = f2fs_files::NewFile::new(f2fs_files::FileKind::Symlink, 0o777);
    fs.symlink(b"/loop-b", "/loop-a", &link).unwrap();
    fs.symlink(b"loop-a", "/loop-b", &link).unwrap();
    fs.symlink(b"self/self/self", "/self", &link).unwrap();
    for path in ["/loop-a", "/loop-b/x", "/self"] {
        assert!(matches!(fs.stat(path).unwrap_err(), FsError::Loop { limit: 40 }), "{path}");
    }
    for len in [0, 4096] {
        match fs.symlink(&vec![b'x'; len], "/link", &link).unwrap_err() {
            FsError::LinkTarget { len: found, limit: 4095 } => assert_eq!(found, len),
            other => panic!("{other}"),
        }
    }
    let file = fs.open_file("/small").unwrap();
    for result in
        [file.truncate(u64::MAX), file.allocate(u64::MAX - 5, 4, false), file.write_at(1 << 60, b"x").map(|_| ())]
    {
        assert!(matches!(result.unwrap_err(), FsError::FileTooLarge { .. }));
    }
    drop(file);
    fs.close().unwrap();
    common::assert_clean(&device);
}

#[test]
fn a_device_that_is_read_only() {
    let device = Arc::new(volume().read_only());
    let error = FileSystem::open(device.clone(), Options::new()).unwrap_err();
    assert!(matches!(error, FsError::Volume(VolumeError::ReadOnly)), "{error}");
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    assert_eq!(fs.stat("/large").unwrap().size, 5 << 20);
    let refused = [
        fs.create_file("/x", 0o644).map(|_| ()),
        fs.unlink("/small"),
        fs.checkpoint().map(|_| ()),
        fs.open_file("/small").unwrap().truncate(0),
        fs.set_permissions("/small", 0),
        fs.rename("/small", "/y", f2fs_files::RenameMode::Replace),
    ];
    for result in refused {
        assert!(matches!(result.unwrap_err(), FsError::Volume(VolumeError::ReadOnly)));
    }
    fs.close().unwrap();
}

/// Everything that can be done with a path, so that damage anywhere near it is met.
fn touch(fs: &FileSystem, path: &str) -> Result<(), FsError> {
    let stat = fs.symlink_stat(path)?;
    fs.xattrs(path)?;
    match stat.kind {
        f2fs_files::FileKind::Directory => {
            for DirEntry { name, .. } in fs.read_dir(path)? {
                fs.symlink_stat(std::path::Path::new(path).join(common::at(&name)))?;
            }
        }
        f2fs_files::FileKind::Symlink => drop(fs.read_link(path)?),
        _ => {
            let file = fs.open_file(path)?;
            let mut buffer = vec![0; 1 << 20];
            file.read_at(0, &mut buffer)?;
            file.read_at(stat.size.saturating_sub(100), &mut buffer)?;
        }
    }
    Ok(())
}

type NodeChange = fn(&mut NodeBlock);

/// Changes the inode of `path`, and expects an error that holds these words.
#[track_caller]
fn expect(path: &str, change: NodeChange, words: &[&str]) {
    let device = volume();
    patch_node(&device, ino(&device, path), change);
    for read_only in [true, false] {
        let shared = Arc::new(device.snapshot());
        let result =
            FileSystem::open(shared.clone(), Options::new().read_only(read_only)).and_then(|fs| touch(&fs, path));
        let error = result.expect_err(path);
        assert!(error.is_corruption(), "{path}: {error}");
        for word in words {
            assert!(error.to_string().contains(word), "{path}: {word:?} is not in {error}");
        }
        assert!(shared.to_bytes() == device.to_bytes());
    }
}

fn inode(change: impl Fn(&mut Inode), block: &mut NodeBlock) {
    change(block.inode_mut());
}

#[test]
fn inodes_that_cannot_be() {
    expect("/small", |node| node.footer.flag = (77 << 3).into(), &["node offset"]);
    expect("/small", |node| inode(|raw| raw.i_mode = 0o777.into(), node), &["file type"]);
    expect("/small", |node| inode(|raw| raw.i_mode = 0o040_755.into(), node), &["inline data"]);
    expect("/small", |node| inode(|raw| raw.i_size = 1_000_000.into(), node), &["size of inline data", "1000000"]);
    expect("/large", |node| inode(|raw| raw.i_size = u64::MAX.into(), node), &["i_size", "18446744073709551615"]);
    expect("/dir", |node| inode(|raw| raw.i_current_depth = 4000.into(), node), &["i_current_depth", "4000"]);
    expect("/hashed", |node| inode(|raw| raw.i_current_depth = 64.into(), node), &["i_current_depth", "64"]);
    expect("/dir", |node| inode(|raw| raw.i_mode = 0o100_644.into(), node), &["inline dentry"]);
    expect("/hashed", |node| inode(|raw| raw.i_addr[0] = 7.into(), node), &["block 7 ", "outside"]);
    expect("/large", |node| inode(|raw| raw.i_addr[0] = 5.into(), node), &["block 5 ", "outside"]);
    expect("/large", |node| inode(|raw| raw.i_nid[0] = 0x00ff_ffff.into(), node), &["16777215"]);
    expect("/large", |node| inode(|raw| raw.i_nid[0] = 3.into(), node), &["owner of a child node"]);
    expect("/small", |node| inode(|raw| raw.i_xattr_nid = 3.into(), node), &["owner of a child node"]);
    expect("/small", |node| inode(|raw| raw.i_inline |= 0x20, node), &["i_extra_isize"]);
}

#[test]
fn extra_sizes_that_cannot_be() {
    let features = Features::EXTRA_ATTR.union(Features::FLEXIBLE_INLINE_XATTR);
    for (isize, xattr, words) in [(4096_u16, 50_u16, "4096"), (2, 50, "2 is not"), (36, 5000, "5000")] {
        let device = formatted(64, &FormatOptions::default().with_features(features));
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        fs.create_file("/file", 0o644).unwrap();
        fs.close().unwrap();
        patch_node(&device, ino(&device, "/file"), |node| {
            let extra = node.inode_mut().extra_mut();
            extra.i_extra_isize = isize.into();
            extra.i_inline_xattr_size = xattr.into();
        });
        let fs = open(&device);
        let error = touch(&fs, "/file").unwrap_err();
        assert!(error.is_corruption() && error.to_string().contains(words), "{error}");
    }
}

#[test]
fn attributes_that_cannot_be() {
    // The first entry says that its value is as long as can be.
    let device = volume();
    patch_node(&device, ino(&device, "/small"), |node| {
        let area = node.inode_mut().inline_xattr_mut(Features::SB_CHECKSUM);
        area[26..28].copy_from_slice(&[0xff, 0xff]);
    });
    let error = touch(&open(&device), "/small").unwrap_err();
    match &error {
        FsError::Volume(VolumeError::Corrupt(Corruption::Xattr { offset: 24, found, max, .. })) => assert!(found > max),
        other => panic!("{other}"),
    }
    let fs = open(&device);
    assert!(fs.set_xattr("/small", "user.other", b"x", SetMode::Any).unwrap_err().is_corruption());
    assert_eq!(fs.open_file("/small").unwrap().read_at(0, &mut [0; 10]).unwrap(), 6, "the data is still there");
}

#[test]
fn nodes_that_are_not_where_the_nat_says() {
    for (what, change) in [
        ("nid in the footer", (|node: &mut NodeBlock| node.footer.nid = 4000.into()) as NodeChange),
        ("ino in the footer", |node| node.footer.ino = 4001.into()),
    ] {
        let device = volume();
        // Numbers depend on the processor that the test runs on.
        let small = ino(&device, "/small");
        patch_node(&device, small, change);
        let error = touch(&open(&device), "/small").unwrap_err();
        match &error {
            FsError::Volume(VolumeError::Corrupt(Corruption::Node { nid, what: said, expected, found, .. })) => {
                assert_eq!((*nid, *said, *expected), (small, what, u64::from(small.0)));
                assert!(*found >= 4000, "{error}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn nat_entries_that_point_outside() {
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    for name in 0..1000 {
        fs.create_file(format!("/{name}"), 0o644).unwrap();
    }
    fs.close().unwrap();
    let nid = ino(&device, "/500");
    let geometry = geometry(&device);
    for second in [false, true] {
        let at = u64::from(geometry.nat_block(nid.0 / ENTRIES_PER_BLOCK as u32, second).0);
        let mut block = Box::new(*NatBlock::read(&read(&device, at)));
        block.entries[nid.0 as usize % ENTRIES_PER_BLOCK].block_addr = 12.into();
        device.write_slice(at, block.as_block()).unwrap();
    }
    let fs = open(&device);
    match fs.stat("/500").unwrap_err() {
        FsError::Volume(VolumeError::Corrupt(Corruption::Address { nid: found, addr, .. })) => {
            assert_eq!((found, addr.0), (nid, 12));
        }
        other => panic!("{other}"),
    }
    assert!(fs.stat("/501").is_ok(), "the others are there");
}

#[test]
fn entries_that_cannot_be() {
    let name_len = |value: u16| {
        move |node: &mut NodeBlock| {
            let area = node.inode_mut().inline_data_mut(Features::SB_CHECKSUM);
            let layout = DentryLayout::of_size(area.len());
            // Slot 2 is the first behind the dots.
            let entry = layout.entries_at + 2 * 11;
            area[entry + 8..entry + 10].copy_from_slice(&value.to_le_bytes());
        }
    };
    for value in [0, 300, 65_535] {
        let device = volume();
        patch_node(&device, ino(&device, "/dir"), name_len(value));
        let fs = open(&device);
        let error = fs.read_dir("/dir").unwrap_err();
        match &error {
            FsError::Volume(VolumeError::Corrupt(Corruption::Dentry { slot: 2, found, .. })) => {
                assert_eq!(*found, u64::from(value), "{error}");
            }
            other => panic!("{value}: {other}"),
        }
        assert!(fs.create_file("/dir/new", 0o644).is_err());
        assert!(fs.remove_all("/dir").is_err());
        assert!(fs.stat("/small").is_ok());
    }
}

/// `/dir/below` names `/dir` itself, `/` or itself: walks must end.
#[test]
fn directories_that_contain_themselves() {
    within(Duration::from_secs(60), || {
        let device = volume();
        for target in ["/dir", "/", "/dir/below"] {
            let device = device.snapshot();
            let (dir, below, target) = (ino(&device, "/dir"), ino(&device, "/dir/below"), ino(&device, target));
            patch_node(&device, dir, |node| {
                let mut view = DentryViewMut::inline(node.inode_mut().inline_data_mut(Features::SB_CHECKSUM));
                let slot = view.as_view().find(dentry_hash(b"below"), b"below").unwrap().unwrap().slot;
                view.set_target(slot, target, FileType::Directory).unwrap();
            });
            if target == below {
                patch_node(&device, below, |node| {
                    let mut view = DentryViewMut::inline(node.inode_mut().inline_data_mut(Features::SB_CHECKSUM));
                    assert!(view.insert(5, b"again", dentry_hash(b"again"), below, FileType::Directory));
                });
            }
            let fs = open(&device);
            let error = fs.remove_all("/dir").unwrap_err();
            assert!(error.is_corruption(), "{error}");
            // Nothing waits for ever, or for itself.
            let _ = fs.rename("/dir/below", "/moved", f2fs_files::RenameMode::Replace);
            let _ = fs.rename("/dir", "/dir/below/dir", f2fs_files::RenameMode::Replace);
            let _ = fs.remove_dir("/dir/below/below");
            let _ = fs.remove_dir("/dir/below");
        }
    });
}
