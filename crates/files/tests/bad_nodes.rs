//! Nodes, attributes, NAT entries and directories that cannot be: each gives a typed error with its numbers, nothing is
//! written on the way, and walks end. Damage above them is in `bad_volumes.rs`.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::time::Duration;

use f2fs_device::BlockDevice;
use f2fs_files::{DirEntry, FileSystem, FsError, Options, SetMode};
use f2fs_format::dentry::{DentryLayout, DentryViewMut, FileType};
use f2fs_format::feature::Features;
use f2fs_format::hash::dentry_hash;
use f2fs_format::inode::{Inode, advise, flags};
use f2fs_format::nat::{ENTRIES_PER_BLOCK, NatBlock};
use f2fs_format::node::NodeBlock;
use f2fs_format::{Corruption, Nid};
use f2fs_test_kit::harm::{geometry, ino, open, options, patch_node, read, volume};
use f2fs_test_kit::volumes::{assert_clean, formatted, within};
use f2fs_volume::VolumeError;
use f2fs_volume::format::FormatOptions;

/// Everything that can be done with a path, so that damage anywhere near it is met.
fn touch(fs: &FileSystem, path: &str) -> Result<(), FsError> {
    let stat = fs.symlink_metadata(path)?;
    fs.xattrs(path)?;
    match stat.kind {
        f2fs_files::FileKind::Directory => {
            for entry in fs.read_dir(path)? {
                let DirEntry { name, .. } = entry?;
                fs.symlink_metadata(std::path::Path::new(path).join(f2fs_test_kit::volumes::at(&name)))?;
            }
        }
        f2fs_files::FileKind::Symlink => drop(fs.read_link(path)?),
        _ => {
            let file = fs.open_file(path)?;
            let mut buffer = vec![0; 1 << 20];
            file.read_at(&mut buffer, 0)?;
            file.read_at(&mut buffer, stat.size.saturating_sub(100))?;
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
    // Closed after it was looked at, it would be freed behind the back of its name.
    expect("/small", |node| inode(|raw| raw.i_links = 0.into(), node), &["it has no links"]);
    expect("/dir", |node| inode(|raw| raw.i_links = 0.into(), node), &["it has no links"]);
    expect("/small", |node| inode(|raw| raw.i_mode = 0o040_755.into(), node), &["inline data"]);
    expect("/small", |node| inode(|raw| raw.i_size = 1_000_000.into(), node), &["size of inline data", "1000000"]);
    expect("/large", |node| inode(|raw| raw.i_size = u64::MAX.into(), node), &["i_size", "18446744073709551615"]);
    expect("/dir", |node| inode(|raw| raw.i_current_depth = 4000.into(), node), &["i_current_depth", "4000"]);
    expect("/hashed", |node| inode(|raw| raw.i_current_depth = 64.into(), node), &["i_current_depth", "64"]);
    expect("/dir", |node| inode(|raw| raw.i_mode = 0o100_644.into(), node), &["inline dentries"]);
    expect("/hashed", |node| inode(|raw| raw.i_addr[0] = 7.into(), node), &["block 7 ", "outside"]);
    // A log may write to it, and then other names stand there.
    expect("/hashed", |node| inode(|raw| raw.i_addr[0] = 16_000.into(), node), &["block 16000 ", "not in use"]);
    expect("/large", |node| inode(|raw| raw.i_addr[0] = 5.into(), node), &["block 5 ", "outside"]);
    expect("/large", |node| inode(|raw| raw.i_nid[0] = 0x00ff_ffff.into(), node), &["16777215"]);
    expect("/large", |node| inode(|raw| raw.i_nid[0] = 3.into(), node), &["owner of a child node"]);
    expect("/small", |node| inode(|raw| raw.i_xattr_nid = 3.into(), node), &["owner of a child node"]);
    expect("/small", |node| inode(|raw| raw.i_inline |= 0x20, node), &["i_extra_isize"]);
}

/// What needs a feature that the volume does not have is refused as that: it may be sound.
#[test]
fn inodes_of_volumes_with_other_features() {
    let changes: [(NodeChange, &str); 3] = [
        (|node| node.inode_mut().i_advise |= advise::ENCRYPT, "encryption"),
        (|node| node.inode_mut().i_advise |= advise::ENC_NAME, "encryption"),
        (|node| node.inode_mut().i_flags = flags::CASEFOLD.into(), "case folding"),
    ];
    for (change, word) in changes {
        let device = volume();
        patch_node(&device, ino(&device, "/small"), change);
        let fs = FileSystem::open(Arc::new(device), Options::new()).unwrap();
        let error = touch(&fs, "/small").unwrap_err();
        assert!(matches!(&error, FsError::Unsupported { what, .. } if what.contains(word)), "{error}");
    }
}

#[test]
fn extra_sizes_that_cannot_be() {
    let features = Features::EXTRA_ATTR.union(Features::FLEXIBLE_INLINE_XATTR);
    for (isize, xattr, words) in [(4096_u16, 50_u16, "4096"), (2, 50, "2 is not"), (36, 5000, "5000"), (36, 904, "904")]
    {
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

/// An inode may leave most of its words to attributes, as far as the kernel, fsck.f2fs and our own check go along.
#[test]
fn the_largest_room_for_attributes_is_used() {
    let features = Features::EXTRA_ATTR.union(Features::FLEXIBLE_INLINE_XATTR);
    let device = formatted(64, &FormatOptions::default().with_features(features));
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_file("/file", 0o644).unwrap();
    fs.close().unwrap();
    patch_node(&device, ino(&device, "/file"), |node| {
        node.inode_mut().extra_mut().i_inline_xattr_size = 903.into();
    });
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.set_xattr("/file", "user.large", &[7; 3000], SetMode::Any).unwrap();
    let file = fs.open_file("/file").unwrap();
    for data in [&b"inline"[..], &[8; 100]] {
        file.write_at(data, 0).unwrap();
        let mut read = vec![0; 200];
        let len = file.read_at(&mut read, 0).unwrap();
        assert_eq!(read[..len], *data);
    }
    assert_eq!(file.metadata().unwrap().blocks, 2, "the inode with the attribute, and a block that its data went to");
    drop(file);
    fs.close().unwrap();
    assert_clean(&device);
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    assert_eq!(fs.xattr("/file", "user.large").unwrap(), [7; 3000]);
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
    assert_eq!(fs.open_file("/small").unwrap().read_at(&mut [0; 10], 0).unwrap(), 6, "the data is still there");
}

/// A name that nobody can ask for is not listed.
#[test]
fn attributes_whose_names_cannot_be() {
    let device = volume();
    assert_eq!(open(&device).xattrs("/small").unwrap().len(), 1);
    patch_node(&device, ino(&device, "/small"), |node| {
        let area = node.inode_mut().inline_xattr_mut(Features::SB_CHECKSUM);
        assert_eq!(&area[28..32], b"note");
        area[29] = 0;
    });
    assert_eq!(open(&device).xattrs("/small").unwrap(), []);
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
    match fs.metadata("/500").unwrap_err() {
        FsError::Volume(VolumeError::Corrupt(Corruption::Address { nid: found, addr, .. })) => {
            assert_eq!((found, addr.0), (nid, 12));
        }
        other => panic!("{other}"),
    }
    assert!(fs.metadata("/501").is_ok(), "the others are there");
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
        let error = fs.read_dir("/dir").and_then(Iterator::collect::<Result<Vec<_>, _>>).unwrap_err();
        match &error {
            FsError::BadEntry(entry) => {
                assert_eq!((entry.slot, entry.block, entry.len), (2, None, value.into()), "{error}");
            }
            other => panic!("{value}: {other}"),
        }
        fs.create_file("/dir/new", 0o644).unwrap();
        assert!(matches!(fs.remove_all("/dir"), Err(FsError::BadEntry(_))));
        assert!(fs.metadata("/small").is_ok());
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
                let slot = view.as_view().find(dentry_hash(b"below"), b"below").unwrap().slot;
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
            // Nothing waits forever, or for itself.
            let _ = fs.rename("/dir/below", "/moved", f2fs_files::RenameMode::Replace);
            let _ = fs.rename("/dir", "/dir/below/dir", f2fs_files::RenameMode::Replace);
            let _ = fs.remove_dir("/dir/below/below");
            let _ = fs.remove_dir("/dir/below");
        }
    });
}

/// `/dir/below` names `/dir` itself, or `/`. To remove it, or to rename over it, would take the locks of a directory
/// that stands above in their order, or that are held.
#[test]
fn directories_above_themselves_are_not_removed() {
    type Operation = fn(&FileSystem) -> Result<(), FsError>;
    let operations: [Operation; 4] = [
        |fs| fs.remove_dir("/dir/below"),
        |fs| fs.rename("/dir/beside", "/dir/below", f2fs_files::RenameMode::Replace),
        |fs| fs.rename("/other", "/dir/below", f2fs_files::RenameMode::Replace),
        |fs| fs.rename("/other/low", "/dir/below", f2fs_files::RenameMode::Replace),
    ];
    for target in ["/dir", "/"] {
        for operation in operations {
            within(Duration::from_secs(60), move || {
                let device = volume();
                let (dir, target) = (ino(&device, "/dir"), ino(&device, target));
                patch_node(&device, dir, |node| {
                    let mut view = DentryViewMut::inline(node.inode_mut().inline_data_mut(Features::SB_CHECKSUM));
                    let slot = view.as_view().find(dentry_hash(b"below"), b"below").unwrap().slot;
                    view.set_target(slot, target, FileType::Directory).unwrap();
                });
                let fs = open(&device);
                for path in ["/dir/beside", "/other", "/other/low"] {
                    fs.create_dir(path, 0o755).unwrap();
                }
                let error = operation(&fs).unwrap_err();
                assert!(error.is_corruption() || matches!(error, FsError::NotEmpty), "{error}");
                assert!(fs.metadata("/dir/beside").is_ok());
            });
        }
    }
}

/// With a large `i_dir_level`, up to half of the names belong behind all that a directory can address: there is no room
/// for them, and nothing else is wrong.
#[test]
fn directories_whose_buckets_lie_behind_their_end() {
    for dir_level in [29, 30, 200] {
        let device = Arc::new(volume());
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        (0..400).for_each(|number| fs.remove_file(format!("/hashed/{number}")).unwrap());
        fs.close().unwrap();
        patch_node(&device, ino(&device, "/hashed"), |node| node.inode_mut().i_dir_level = dir_level);
        let (mut kept, mut refused) = (Vec::new(), 0);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        for name in (0..400).map(|number| format!("/hashed/name-{number}")) {
            assert!(matches!(fs.metadata(&name), Err(FsError::NotFound)));
            match fs.create_file(&name, 0o644) {
                Ok(_) => kept.push(name),
                Err(error) => {
                    assert!(error.is_no_space(), "{error}");
                    assert!(matches!(fs.metadata(&name), Err(FsError::NotFound)));
                    refused += 1;
                }
            }
        }
        assert!(kept.len() > 100 && refused > 0, "{} kept, {refused} refused", kept.len());
        fs.close().unwrap();
        let report = f2fs_check::check(&device, &f2fs_check::CheckOptions::default()).unwrap();
        assert!(report.is_consistent(), "{report}");
        let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
        assert!(kept.iter().all(|name| fs.metadata(name).is_ok()));
    }
}

/// Such a directory whose names stand in its inode has no place where they could go to: it stays as it is.
#[test]
fn inline_directories_whose_buckets_lie_behind_their_end_stay_inline() {
    let device = Arc::new(volume());
    patch_node(&device, ino(&device, "/dir"), |node| node.inode_mut().i_dir_level = 29);
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let mut made = 0;
    let error = loop {
        match fs.create_file(format!("/dir/{made}"), 0o644) {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };
    assert!(made > 100, "{made}");
    assert!(matches!(&error, FsError::Unsupported { what, .. } if what.contains("dir_level")), "{error}");
    assert_eq!(fs.metadata("/dir").unwrap().blocks, 1);
    fs.close().unwrap();
    let report = f2fs_check::check(&device, &f2fs_check::CheckOptions::default()).unwrap();
    assert!(report.is_consistent(), "{report}");
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    assert!((0..made).all(|name| fs.metadata(format!("/dir/{name}")).is_ok()));
}

/// A name that means an inode of the list of orphans. A reader cannot free it, and shows it as often as it is asked.
#[test]
fn a_reader_ends_no_orphan_when_its_last_handle_closes() {
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let named = fs.create_file("/named", 0o644).unwrap().ino();
    let held = fs.create_file("/held", 0o644).unwrap();
    held.write_at(b"kept", 0).unwrap();
    fs.remove_file("/held").unwrap();
    fs.checkpoint().unwrap();
    // What a crash leaves.
    let image = device.snapshot();
    let entry = |ino: Nid| [dentry_hash(b"named").to_le_bytes(), ino.0.to_le_bytes()].concat();
    let (there, orphan) = (entry(named), entry(held.ino()));
    let geometry = geometry(&image);
    let mut changed = 0;
    for addr in geometry.main_blkaddr.0..geometry.main_end().0 {
        let mut block = read(&image, addr.into());
        if let Some(at) = block.windows(8).position(|bytes| bytes == there) {
            block[at..at + 8].copy_from_slice(&orphan);
            image.write_slice(addr.into(), &block).unwrap();
            changed += 1;
        }
    }
    assert!(changed > 0, "no entry of the name");
    let reader = FileSystem::open(Arc::new(image), Options::new().read_only(true)).unwrap();
    for _ in 0..3 {
        let mut buffer = [0; 4];
        assert_eq!(reader.open_file("/named").unwrap().read_at(&mut buffer, 0).unwrap(), 4);
        assert_eq!(&buffer, b"kept");
    }
    // Nobody has it open now, and it has no name of its own.
    assert!(matches!(reader.inode(held.ino()), Err(FsError::NotFound)));
}

#[test]
fn a_count_of_blocks_at_its_end_stays_there() {
    let device = volume();
    for path in ["/small", "/large", "/dir", "/hashed"] {
        patch_node(&device, ino(&device, path), |node| inode(|raw| raw.i_blocks = u64::MAX.into(), node));
    }
    for page_cache in [0, 1 << 20] {
        let fs = FileSystem::open(Arc::new(device.snapshot()), Options::new().page_cache(page_cache)).unwrap();
        for path in ["/small", "/large"] {
            let file = fs.open_file(path).unwrap();
            let end = file.size();
            // The inline data moves to a block of its own, and both get blocks.
            file.write_at(&[1; 20_000], end).unwrap();
            file.sync_all().unwrap();
            file.allocate(end + 100_000, 50_000, f2fs_files::AllocateFlags::NONE).unwrap();
            assert!(fs.symlink_metadata(path).unwrap().blocks > 1 << 60);
        }
        for name in 0..200 {
            fs.create_file(format!("/dir/{name:0>200}"), 0o644).unwrap();
            fs.create_file(format!("/hashed/{name:0>200}"), 0o644).unwrap();
        }
        fs.close().unwrap();
    }
}

/// A block that is in a file twice can be freed once: there the cut ends, and the file with it.
#[test]
fn a_cut_that_ends_at_a_block_that_is_free_already_takes_the_size_along() {
    const BLOCK: u64 = 4096;
    let device = formatted(64, &options());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let file = fs.create_file("/a", 0o644).unwrap();
    // The last two each in a direct node, of which the first begins between them and the others.
    let blocks = [0, 500, 1500, 2500];
    for block in blocks {
        file.write_at(&[7; BLOCK as usize], block * BLOCK).unwrap();
    }
    fs.close().unwrap();
    drop((file, fs));
    let (ino, geometry) = (ino(&device, "/a"), geometry(&device));
    let direct = |offset: u32| {
        (geometry.main_blkaddr.0..geometry.main_end().0)
            .map(|addr| (addr, Box::new(*NodeBlock::read(&read(&device, addr.into())))))
            .find(|(_, node)| node.ino() == ino && node.nid() != ino && node.footer.node_offset() == offset)
            .unwrap()
    };
    let named = |node: &NodeBlock| node.slots().iter().position(|slot| slot.get() != 0).unwrap();
    let ((at, mut first), (_, second)) = (direct(1), direct(2));
    let addr = second.slots()[named(&second)].get();
    let index = named(&first);
    first.slots_mut()[index] = addr.into();
    device.write_slice(at.into(), first.as_block()).unwrap();
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let file = fs.open_file("/a").unwrap();
    let error = file.set_len(1000).unwrap_err();
    assert!(error.to_string().contains(&addr.to_string()), "{error}");
    let size = file.size();
    assert!((501 * BLOCK..=1500 * BLOCK).contains(&size), "{size}");
    file.set_len(3000 * BLOCK).unwrap();
    for block in blocks {
        let mut found = [1];
        file.read_at(&mut found, block * BLOCK).unwrap();
        assert_eq!(found[0], if block <= 500 { 7 } else { 0 }, "block {block}");
    }
}
