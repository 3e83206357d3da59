//! Chains of synced nodes that are damaged: an error with numbers, or a volume without fault.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_device_test::Random;
use f2fs_files::{FileSystem, FsError, Options, SetMode};
use f2fs_format::Nid;
use f2fs_format::feature::Features;
use f2fs_format::inode::advise;
use f2fs_format::node::{NodeBlock, mark};
use f2fs_format::path::NodeKind;
use f2fs_test_kit::synced::{content, read, start};
use f2fs_test_kit::volumes::{assert_clean, scale};
use f2fs_volume::{FsyncMode, Volume, VolumeOptions};

/// A volume with a chain of many kinds of nodes, and where they stand.
fn chained() -> (Arc<MemoryDevice>, Vec<u64>) {
    let (device, fs) = start(Features(0), FsyncMode::Posix);
    fs.create_dir("/dir", 0o755).unwrap();
    fs.create_file("/dir/old", 0o644).unwrap().write_at(&content(1, 6 << 20), 0).unwrap();
    // A directory with a block of its own.
    fs.create_dir("/wide", 0o755).unwrap();
    for number in 0..30 {
        fs.create_file(format!("/wide/{number:0>200}"), 0o644).unwrap();
    }
    fs.checkpoint().unwrap();
    let old = fs.open_file("/dir/old").unwrap();
    old.write_at(&content(2, 4 << 20), 1 << 20).unwrap();
    fs.set_xattr("/dir/old", "user.large", &content(9, 3000), SetMode::Any).unwrap();
    old.sync_all().unwrap();
    for number in 0..10 {
        let file = fs.create_file(format!("/dir/{number}"), 0o644).unwrap();
        file.write_at(&content(3, number * 5000), 0).unwrap();
        file.sync_all().unwrap();
    }
    drop((old, fs));
    let nodes = chain(&device);
    (device, nodes)
}

/// Where the synced nodes stand.
fn chain(device: &Arc<MemoryDevice>) -> Vec<u64> {
    let options = Options::new().volume(VolumeOptions::new().read_only(true).recovery(false));
    let fs = FileSystem::open(device.clone(), options).unwrap();
    fs.volume().synced_nodes().unwrap().iter().map(|node| node.addr.0.into()).collect()
}

fn change(device: &MemoryDevice, at: u64, change: impl FnOnce(&mut NodeBlock)) {
    let mut node = *NodeBlock::read(device.read(at, 1).unwrap().block(0));
    change(&mut node);
    device.write_slice(at, node.as_block()).unwrap();
}

/// `chattr` of the kernel sets flags that no operation here changes: a synced inode brings its own.
#[test]
fn flags_of_a_synced_inode_come_back() {
    const NODUMP: u32 = 0x40;
    let (device, nodes) = chained();
    let mut changed = Vec::new();
    for &at in &nodes {
        change(&device, at, |node| {
            if node.footer.nid == node.footer.ino {
                node.inode_mut().i_flags = (node.inode().i_flags.get() | NODUMP).into();
                changed.push(Nid(node.footer.nid.get()));
            }
        });
    }
    assert_eq!(changed.len(), 11);
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    assert_eq!(fs.recovered().files, 11);
    fs.close().unwrap();
    drop(fs);
    let volume = Volume::open(device, &VolumeOptions::new().read_only(true)).unwrap();
    for ino in changed {
        assert_eq!(volume.nodes().get(ino).unwrap().read().inode().i_flags.get() & NODUMP, NODUMP, "{ino:?}");
    }
}

/// Linux syncs a file that was cut by its inode alone: the nodes that were cut off it are no part of the chain, and the
/// checkpoint has them. They go, and do not come back when the file grows.
#[test]
fn nodes_behind_the_end_of_a_synced_file_go() {
    let (device, fs) = start(Features(0), FsyncMode::Posix);
    let (size, cut) = (6 << 20, 8192);
    fs.create_file("/cut", 0o644).unwrap().write_at(&content(1, size), 0).unwrap();
    fs.create_file("/reserved", 0o644).unwrap().write_at(&content(1, size), 0).unwrap();
    fs.checkpoint().unwrap();
    let used = fs.statfs().valid_blocks;
    for path in ["/cut", "/reserved"] {
        fs.set_permissions(path, 0o600).unwrap();
        fs.open_file(path).unwrap().sync_all().unwrap();
    }
    drop(fs);
    let inodes = chain(&device);
    assert_eq!(inodes.len(), 2);
    for at in inodes {
        change(&device, at, |node| {
            let inode = node.inode_mut();
            if &inode.i_name[..3] == b"cut" {
                (inode.i_size, inode.i_nid) = ((cut as u64).into(), Default::default());
                inode.i_addr[2..].fill(0.into());
            } else {
                // Here the blocks behind the end are meant.
                inode.i_size = (cut as u64).into();
                inode.i_advise |= advise::KEEP_SIZE;
            }
        });
    }
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    assert_eq!(fs.recovered().files, 2);
    assert_eq!(read(&fs, "/cut"), content(1, cut));
    assert_eq!(fs.metadata("/cut").unwrap().blocks, 3, "the inode and two blocks");
    assert!(fs.metadata("/reserved").unwrap().blocks > 1536);
    assert!(fs.statfs().valid_blocks + 1500 < used);
    fs.open_file("/cut").unwrap().set_len(size as u64).unwrap();
    let grown = read(&fs, "/cut");
    assert_eq!(grown[..cut], content(1, cut));
    assert!(grown[cut..].iter().all(|byte| *byte == 0), "what was cut off came back");
    fs.close().unwrap();
    assert_clean(&device);
}

/// Nobody asked for the nodes behind the end: a damaged one keeps no volume from being opened, and what is read is not
/// cut at all.
#[test]
fn damaged_nodes_behind_the_end_stay() {
    for damaged in [false, true] {
        let (device, fs) = start(Features(0), FsyncMode::Posix);
        fs.create_file("/cut", 0o644).unwrap().write_at(&content(1, 10 << 20), 0).unwrap();
        fs.checkpoint().unwrap();
        fs.set_permissions("/cut", 0o600).unwrap();
        fs.open_file("/cut").unwrap().sync_all().unwrap();
        let ino = fs.metadata("/cut").unwrap().ino;
        drop(fs);
        change(&device, chain(&device)[0], |node| {
            let inode = node.inode_mut();
            (inode.i_size, inode.i_nid) = (8192.into(), Default::default());
            inode.i_addr[2..].fill(0.into());
        });
        // All copies of the second direct node.
        for at in (0..device.info().blocks).filter(|_| damaged) {
            let footer = NodeBlock::read(device.read(at, 1).unwrap().block(0)).footer;
            if footer.ino.get() == ino.0 && footer.nid.get() != ino.0 && footer.node_offset() == 2 {
                device.write_slice(at, &[0; 4096]).unwrap();
            }
        }
        for read_only in [true, false] {
            let device = Arc::new(device.snapshot());
            let options = Options::new().volume(VolumeOptions::new().read_only(read_only));
            let fs = FileSystem::open(device, options).unwrap();
            assert_eq!(fs.recovered().files, 1);
            assert_eq!(read(&fs, "/cut"), content(1, 8192));
            let is_cut = fs.metadata("/cut").unwrap().blocks == 3;
            assert_eq!(is_cut, !damaged && !read_only, "damaged {damaged}, read only {read_only}");
        }
    }
}

#[test]
fn a_chain_that_contradicts_itself_is_an_error_with_numbers() {
    let (device, nodes) = chained();
    assert_eq!(nodes.len(), 13);
    let verdict = |spoil: &dyn Fn(&MemoryDevice)| {
        let device = Arc::new(device.snapshot());
        spoil(&device);
        let before = device.to_bytes();
        let error = FileSystem::open(device.clone(), Options::new()).unwrap_err();
        assert!(matches!(error, FsError::Recovery(_)), "{error}");
        assert!(device.to_bytes() == before, "an open that failed wrote");
        // The checkpoint is there, and can be gone on from.
        let options = Options::new().volume(VolumeOptions::new().recovery(false));
        let fs = FileSystem::open(device.clone(), options).unwrap();
        assert!(read(&fs, "/dir/old") == content(1, 6 << 20) && !fs.exists("/dir/0").unwrap());
        fs.close().unwrap();
        assert_clean(&device);
        error.to_string()
    };
    // In what order a file's nodes are written depends on the processors that changed them; its inode is the last.
    let holds_addresses = |at: &u64| {
        let node = *NodeBlock::read(device.read(*at, 1).unwrap().block(0));
        NodeKind::of(node.footer.node_offset()) == Some(NodeKind::Direct)
    };
    let direct = nodes.iter().copied().find(holds_addresses).unwrap();
    let (first, last) = (nodes[0], nodes[nodes.len() - 1]);
    let looped = verdict(&|device| change(device, last, |node| node.footer.next_blkaddr = (first as u32).into()));
    assert!(looped.contains("loops at block"), "{looped}");
    let itself = verdict(&|device| change(device, last, |node| node.footer.next_blkaddr = (last as u32).into()));
    assert!(itself.contains("loops at block"), "{itself}");
    let outside = verdict(&|device| change(device, direct, |node| node.slots_mut()[500] = 7.into()));
    assert!(outside.contains("block 7 "), "{outside}");
    let copy = Arc::new(device.snapshot());
    let fs = FileSystem::open(copy.clone(), Options::new().read_only(true)).unwrap();
    let node = fs.volume().geometry().main_blkaddr;
    let wide = fs.metadata("/wide").unwrap().ino;
    drop(fs);
    let volume = Volume::open(copy, &VolumeOptions::new().read_only(true)).unwrap();
    let names = volume.nodes().get(wide).unwrap().read().address(0, Features(0)).unwrap();
    drop(volume);
    let taken = verdict(&|device| change(device, direct, |block| block.slots_mut()[500] = node.into()));
    assert!(taken.contains("in use"), "{taken}");
    let taken = verdict(&|device| change(device, direct, |block| block.slots_mut()[500] = names.into()));
    assert!(taken.contains("a directory's") && taken.contains(&names.0.to_string()), "{taken}");
    let directory = verdict(&|device| {
        change(device, direct, |block| {
            block.footer.ino = wide.into();
            block.footer.set_mark(mark::FSYNC, true);
        });
    });
    assert!(directory.contains("directory"), "{directory}");
    let kind = verdict(&|device| change(device, last, |node| node.inode_mut().i_mode = 0o040_755.into()));
    assert!(kind.contains("directory"), "{kind}");
    let name = verdict(&|device| change(device, last, |node| node.inode_mut().i_namelen = 256.into()));
    assert!(name.contains("256"), "{name}");
    let parent = verdict(&|device| change(device, last, |node| node.inode_mut().i_pino = 77_777_777.into()));
    assert!(parent.contains("77777777"), "{parent}");
    let offset = verdict(&|device| change(device, direct, |node| node.footer.set_node_offset(3)));
    assert!(offset.contains("offset of a synced node"), "{offset}");
}

/// A volume whose inodes have further attributes, behind a crash after the sync of `/file`, and where its synced inode
/// stands.
fn synced_with_attributes() -> (Arc<MemoryDevice>, u64) {
    let features = Features::EXTRA_ATTR.union(Features::PROJECT_QUOTA).union(Features::FLEXIBLE_INLINE_XATTR);
    let (device, fs) = start(features, FsyncMode::Posix);
    fs.create_file("/file", 0o644).unwrap().write_at(&content(1, 9000), 0).unwrap();
    fs.checkpoint().unwrap();
    let file = fs.open_file("/file").unwrap();
    file.write_at(&content(2, 9000), 0).unwrap();
    file.sync_all().unwrap();
    drop((file, fs));
    let nodes = chain(&device);
    assert_eq!(nodes.len(), 1);
    (device, nodes[0])
}

/// The kernel changes a file's project, and syncs it.
#[test]
fn the_project_of_a_synced_inode_comes_back() {
    let (device, at) = synced_with_attributes();
    change(&device, at, |node| node.inode_mut().extra_mut().i_projid = 77.into());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    assert_eq!(read(&fs, "/file"), content(2, 9000));
    let ino = fs.metadata("/file").unwrap().ino;
    fs.close().unwrap();
    drop(fs);
    let volume = Volume::open(device, &VolumeOptions::new().read_only(true)).unwrap();
    let node = volume.nodes().get(ino).unwrap();
    assert_eq!(node.read().inode().extra().unwrap().i_projid.get(), 77);
}

/// Where the words of a synced inode begin is where they begin in the checkpoint's.
#[test]
fn a_synced_inode_with_other_sizes_is_an_error_with_numbers() {
    type Spoil = fn(&mut NodeBlock);
    let spoils: [(Spoil, &str, &str); 2] = [
        (|node| node.inode_mut().extra_mut().i_extra_isize = 24.into(), "extra attributes of a synced inode", "24"),
        (|node| node.inode_mut().extra_mut().i_inline_xattr_size = 40.into(), "inline attributes of a synced", "160"),
    ];
    for (spoil, what, number) in spoils {
        let (device, at) = synced_with_attributes();
        change(&device, at, spoil);
        let error = FileSystem::open(device, Options::new()).unwrap_err();
        assert!(matches!(error, FsError::Recovery(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains(what) && text.contains(number), "{text}");
    }
}

/// A first crash tears a chain at its front. A checkpoint then writes nodes to that place, and a second crash comes
/// before its pack: over these nodes no way may lead to what the first crash left further on.
#[test]
fn nodes_of_a_checkpoint_lead_to_none_of_an_earlier_crash() {
    let (device, fs) = start(Features(0), FsyncMode::Posix);
    fs.create_file("/other", 0o644).unwrap();
    let file = fs.create_file("/synced", 0o644).unwrap();
    file.write_at(&content(1, 9000), 0).unwrap();
    fs.checkpoint().unwrap();
    for round in 2..8 {
        file.write_at(&content(round, 9000), 0).unwrap();
        file.sync_all().unwrap();
    }
    drop((file, fs));
    let options = Options::new().volume(VolumeOptions::new().read_only(true).recovery(false));
    let fs = FileSystem::open(device.clone(), options).unwrap();
    let nodes: Vec<u64> = fs.volume().synced_nodes().unwrap().iter().map(|node| node.addr.0.into()).collect();
    let main = u64::from(fs.volume().geometry().main_blkaddr.0)..u64::from(fs.volume().geometry().main_end().0);
    drop(fs);
    assert_eq!(nodes.len(), 6);
    device.write_slice(nodes[0], &[0; 4096]).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    assert_eq!(fs.recovered().files, 0, "the chain has no front");
    fs.set_permissions("/other", 0o600).unwrap();
    let image = Arc::new(device.snapshot());
    fs.checkpoint().unwrap();
    drop(fs);
    for block in main {
        image.write_slice(block, device.read(block, 1).unwrap().block(0)).unwrap();
    }
    let front = *NodeBlock::read(image.read(nodes[0], 1).unwrap().block(0));
    assert_eq!(u64::from(front.footer.next_blkaddr.get()), nodes[1], "the checkpoint's node stands at the front");
    let fs = FileSystem::open(image.clone(), Options::new()).unwrap();
    assert_eq!(fs.recovered().files, 0);
    assert!(read(&fs, "/synced") == content(1, 9000) && fs.metadata("/other").unwrap().permissions == 0o644);
    fs.close().unwrap();
    assert_clean(&image);
}

/// Whatever stands in the nodes of a chain: an error, or a volume without fault.
#[test]
fn chains_with_arbitrary_damage() {
    let (device, nodes) = chained();
    let mut random = Random::new(5);
    let (mut refused, mut opened) = (0, 0);
    for _ in 0..60 * scale("F2FS_CASES") {
        let device = Arc::new(device.snapshot());
        for _ in 0..=random.below(3) {
            let at = *random.one_of(&nodes);
            change(&device, at, |node| {
                let value = match random.below(4) {
                    0 => random.next() as u32,
                    1 => *random.one_of(&nodes) as u32,
                    2 => random.below(40_000) as u32,
                    _ => random.below(64) as u32,
                };
                match random.below(8) {
                    0 => node.footer.next_blkaddr = value.into(),
                    1 => node.footer.ino = value.into(),
                    2 => node.footer.nid = value.into(),
                    3 => node.footer.flag = value.into(),
                    4 => node.footer.set_mark(mark::DENTRY, true),
                    _ => {
                        // More often in the inode's own fields.
                        let word = if random.chance(2) { random.below(90) } else { random.below(1018) };
                        node.slots_mut()[word] = value.into();
                    }
                }
            });
        }
        match FileSystem::open(device.clone(), Options::new()) {
            Ok(fs) => {
                opened += 1;
                for entry in fs.read_dir("/dir").unwrap().map(Result::unwrap) {
                    // Reading the data of a spoilt inode may be an error, and no more than that.
                    let path = format!("/dir/{}", String::from_utf8_lossy(&entry.name));
                    let _ = fs.open_file(&path).and_then(|file| file.read_at(&mut vec![0; 1 << 20], 0));
                    let _ = fs.xattrs(&path);
                }
                fs.close().unwrap();
            }
            Err(FsError::Recovery(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 5 && opened > 5, "{refused} refused, {opened} opened");
}
