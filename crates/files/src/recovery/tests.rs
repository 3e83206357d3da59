//! What comes back of synced inodes, field by field, where something else than this library may have written them.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_format::LogType;
use f2fs_format::feature::Features;
use f2fs_format::inode::{Inode as RawInode, advise, flags};
use f2fs_format::node::NodeBlock;
use f2fs_sync::PlainArc;
use f2fs_test_kit::harm::{ino, patch_node, patch_superblock};
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{VolumeOptions, tree::find_slot};

use super::*;
use crate::{FileKind, FileSystem, NewFile, Options, Time};

mod behind_the_end;
mod foreign;
mod journaled;

const BLOCK: usize = 4096;

fn start(features: Features) -> (PlainArc<MemoryDevice>, FileSystem) {
    let device = formatted(64, &FormatOptions::default().with_features(features));
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    // The first sync after an opening would be one.
    fs.checkpoint().unwrap();
    (device, fs)
}

fn open(device: &PlainArc<MemoryDevice>) -> Result<FileSystem, FsError> {
    FileSystem::open(device.clone(), Options::new())
}

/// Makes a file of three blocks, or writes over it, and syncs it.
fn sync(fs: &FileSystem, path: &str, fill: u8) {
    let file = fs.open_file(path).or_else(|_| fs.create_file(path, 0o644)).unwrap();
    file.write_at(&[fill; 3 * BLOCK], 0).unwrap();
    file.sync_all().unwrap();
}

/// The first byte of each block of a file.
fn blocks(fs: &FileSystem, path: &str) -> Vec<u8> {
    let file = fs.open_file(path).unwrap();
    let mut bytes = vec![0; file.size() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes.chunks(BLOCK).map(|block| block[0]).collect()
}

/// Where the synced nodes stand.
fn chain(device: &PlainArc<MemoryDevice>) -> Vec<u64> {
    let options = Options::new().volume(VolumeOptions::new().read_only(true).recovery(false));
    let fs = FileSystem::open(device.clone(), options).unwrap();
    fs.core.volume.recovery().synced_nodes().unwrap().iter().map(|node| node.addr.0.into()).collect()
}

fn change(device: &MemoryDevice, at: u64, change: impl FnOnce(&mut NodeBlock)) {
    let mut node = *NodeBlock::read(device.read(at, 1).unwrap().block(0));
    change(&mut node);
    device.write_slice(at, node.as_block()).unwrap();
}

fn raw(fs: &FileSystem, path: &str) -> RawInode {
    *fs.core.inode(fs.metadata(path).unwrap().ino).unwrap().node.read().inode()
}

/// A block may have been freed by one sync, and be part of another file in a later one: the earlier file has a hole there.
#[test]
fn a_block_of_two_synced_files_is_the_later_ones() {
    let (device, fs) = start(Features(0));
    sync(&fs, "/early", 1);
    sync(&fs, "/late", 2);
    drop(fs);
    let nodes = chain(&device);
    assert_eq!(nodes.len(), 2);
    let early = *NodeBlock::read(device.read(nodes[0], 1).unwrap().block(0));
    change(&device, nodes[1], |node| {
        let taken = early.address(1, Features(0)).unwrap();
        assert!(node.set_address(2, taken, Features(0)));
    });
    let fs = open(&device).unwrap();
    assert_eq!((blocks(&fs, "/early"), blocks(&fs, "/late")), (vec![1, 0, 1], vec![2, 2, 1]));
    assert_eq!((fs.metadata("/early").unwrap().blocks, fs.metadata("/late").unwrap().blocks), (3, 4));
    assert_eq!((fs.recovered().files, fs.recovered().new_files, fs.recovered().blocks), (2, 2, 6));
    fs.close().unwrap();
    assert_clean(&device);
}

/// Linux changes attributes that no operation here does, and syncs them. What a sync does not bring stays as it was.
#[test]
fn all_attributes_of_a_synced_inode_come_back() {
    const NODUMP: u32 = 0x40;
    for pinned in [false, true] {
        let (device, fs) = start(Features(0));
        fs.create_file("/file", 0o644).unwrap().write_at(&[1; 3 * BLOCK], 0).unwrap();
        fs.checkpoint().unwrap();
        sync(&fs, "/file", 2);
        drop(fs);
        // The log of its data goes by its name, unless something else is marked.
        patch_node(&device, ino(&device, "/file"), |node| {
            node.inode_mut().i_inline |= if pinned { 0 } else { inline::PIN_FILE };
        });
        change(&device, chain(&device)[0], |node| {
            let inode = node.inode_mut();
            inode.i_mode = 0o100_751.into();
            (inode.i_uid, inode.i_gid) = (70_001.into(), 70_002.into());
            (inode.i_atime, inode.i_ctime, inode.i_mtime) = (1001.into(), 1002.into(), 1003.into());
            (inode.i_atime_nsec, inode.i_ctime_nsec, inode.i_mtime_nsec) = (1.into(), 2.into(), 3.into());
            inode.i_advise |= advise::COLD;
            inode.i_flags = NODUMP.into();
            inode.i_current_depth = 9.into();
            inode.i_inline = inode.i_inline & !inline::PIN_FILE | if pinned { inline::PIN_FILE } else { 0 };
            // Names that lead to it come back by themselves, or not at all.
            inode.i_links = 7.into();
        });
        let fs = open(&device).unwrap();
        assert_eq!(blocks(&fs, "/file"), [2; 3]);
        assert_eq!(fs.core.inode(fs.metadata("/file").unwrap().ino).unwrap().log(), LogType::ColdData);
        fs.close().unwrap();
        drop(fs);
        assert_clean(&device);
        let fs = open(&device).unwrap();
        let (found, inode) = (fs.metadata("/file").unwrap(), raw(&fs, "/file"));
        assert_eq!((found.permissions, found.uid, found.gid, found.links), (0o751, 70_001, 70_002, 1));
        let time = |seconds, nanoseconds| Time { seconds, nanoseconds };
        assert_eq!((found.accessed, found.changed, found.modified), (time(1001, 1), time(1002, 2), time(1003, 3)));
        assert_eq!((inode.i_advise & advise::COLD, inode.i_flags.get()), (advise::COLD, NODUMP));
        assert_eq!((inode.i_inline & inline::PIN_FILE != 0, inode.i_current_depth.get()), (pinned, 9));
        assert_eq!(inode.i_inline & !inline::PIN_FILE, inline::XATTR);
    }
}

#[test]
fn a_synced_inode_of_another_kind_is_an_error() {
    let (device, fs) = start(Features(0));
    fs.create_file("/file", 0o644).unwrap();
    fs.checkpoint().unwrap();
    sync(&fs, "/file", 2);
    drop(fs);
    change(&device, chain(&device)[0], |node| node.inode_mut().i_mode = 0o010_644.into());
    let error = open(&device).unwrap_err();
    assert!(matches!(&error, FsError::Recovery(error) if matches!(**error, FsError::WrongKind { .. })), "{error}");
}

/// The inode of a new file says where it belongs; the last one counts.
#[test]
fn a_new_file_has_the_name_of_its_last_sync() {
    let (device, fs) = start(Features(0));
    fs.create_dir("/first", 0o755).unwrap();
    fs.create_dir("/last", 0o755).unwrap();
    fs.checkpoint().unwrap();
    let last = fs.metadata("/last").unwrap().ino;
    sync(&fs, "/first/a-name", 1);
    sync(&fs, "/first/a-name", 2);
    drop(fs);
    let nodes = chain(&device);
    assert_eq!(nodes.len(), 2);
    change(&device, nodes[1], |node| {
        let inode = node.inode_mut();
        (inode.i_pino, inode.i_namelen) = (last.into(), 4.into());
        inode.i_name[..4].copy_from_slice(b"name");
        inode.i_name[4..].fill(0);
    });
    let fs = open(&device).unwrap();
    assert_eq!(blocks(&fs, "/last/name"), [2; 3]);
    assert!(!fs.exists("/first/a-name").unwrap());
    let inode = raw(&fs, "/last/name");
    assert_eq!((Nid::from(inode.i_pino), &inode.i_name[..6]), (last, &b"name\0\0"[..]));
    assert_eq!(inode.i_namelen.get(), 4);
    fs.close().unwrap();
    assert_clean(&device);
}

/// The file reaches over each block that comes back, unless it was reserved behind the end on purpose.
#[test]
fn a_file_reaches_over_its_recovered_blocks() {
    for keeps in [false, true] {
        for size in [0, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, 3 * BLOCK] {
            let (device, fs) = start(Features(0));
            sync(&fs, "/file", 1);
            drop(fs);
            change(&device, chain(&device)[0], |node| {
                let inode = node.inode_mut();
                inode.i_size = (size as u64).into();
                inode.i_advise |= if keeps { advise::KEEP_SIZE } else { 0 };
            });
            let fs = open(&device).unwrap();
            let whole = if keeps || size > 2 * BLOCK { size } else { 3 * BLOCK };
            let found = fs.metadata("/file").unwrap();
            assert_eq!((found.size, found.blocks), (whole as u64, 4), "{size}, {keeps}");
        }
    }
}

/// On a volume with projects an inode may have been made before there were any.
#[test]
fn a_synced_inode_without_further_attributes_has_no_project() {
    let (device, fs) = start(Features(0));
    fs.create_file("/file", 0o644).unwrap().write_at(&[1; 3 * BLOCK], 0).unwrap();
    fs.checkpoint().unwrap();
    sync(&fs, "/file", 2);
    drop(fs);
    for copy in [0, 1] {
        patch_superblock(&device, copy, false, |superblock| {
            let features = Features::EXTRA_ATTR.union(Features::PROJECT_QUOTA).0;
            superblock.feature = (superblock.feature.get() | features).into();
        });
    }
    let fs = open(&device).unwrap();
    assert_eq!(blocks(&fs, "/file"), [2; 3]);
    assert_eq!(fs.metadata("/file").unwrap().blocks, 4);
    let report = f2fs_check::check(&device.snapshot(), &f2fs_check::CheckOptions::default()).unwrap();
    assert!(report.is_consistent(), "{report}");
    fs.close().unwrap();
    let report = f2fs_check::check(&device.snapshot(), &f2fs_check::CheckOptions::default()).unwrap();
    assert!(report.is_clean(), "{report}");
}

/// A file that has lost its names is synced in vain: the opening frees it.
#[test]
fn a_file_without_a_name_does_not_come_back() {
    let (device, fs) = start(Features(0));
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[1; 3 * BLOCK], 0).unwrap();
    let used = fs.statfs().valid_blocks;
    fs.remove_file("/file").unwrap();
    fs.checkpoint().unwrap();
    file.write_at(&[2; 3 * BLOCK], 0).unwrap();
    file.sync_all().unwrap();
    drop((file, fs));
    let device = PlainArc::new(device.snapshot());
    let fs = open(&device).unwrap();
    assert_eq!(fs.recovered(), RecoveryReport::default());
    assert!(fs.statfs().valid_blocks + 4 <= used && fs.core.volume.orphans().is_empty());
    fs.close().unwrap();
    assert_clean(&device);
}

/// Only an inode that no checkpoint has may say so, and it says so from the beginning.
#[test]
fn an_old_inode_that_is_marked_as_new_is_an_error() {
    use f2fs_format::node::mark;
    let (device, fs) = start(Features(0));
    fs.create_file("/file", 0o644).unwrap();
    fs.checkpoint().unwrap();
    sync(&fs, "/file", 1);
    sync(&fs, "/file", 2);
    drop(fs);
    let nodes = chain(&device);
    assert_eq!(nodes.len(), 2);
    for at in nodes {
        let device = PlainArc::new(device.snapshot());
        change(&device, at, |node| node.footer.set_mark(mark::DENTRY, true));
        let error = open(&device).unwrap_err();
        assert!(matches!(error, FsError::Recovery(_)) && error.to_string().contains("marks as new"), "{error}");
    }
}

/// What stands in the place of addresses is none in inline files, in attributes and in nodes of nodes.
#[test]
fn blocks_are_kept_for_what_names_them() {
    use f2fs_format::node::XATTR_NODE_OFFSET;
    let (_device, fs) = start(Features(0));
    let main = fs.core.volume.geometry().main_blkaddr.0;
    let named = |change: &dyn Fn(&mut NodeBlock)| {
        let mut node = NodeBlock::new_box();
        (node.footer.nid, node.footer.ino) = (9.into(), 8.into());
        change(&mut node);
        node.slots_mut()[200..203].copy_from_slice(&[(main + 3).into(), 0.into(), (main + 4).into()]);
        let mut blocks = Vec::new();
        RollForward(&fs.core).named_blocks(&node, &mut blocks);
        blocks.retain(|addr| fs.core.volume.geometry().in_main(*addr));
        blocks
    };
    let expected = [BlockAddr(main + 3), BlockAddr(main + 4)];
    assert_eq!(named(&|node| node.footer.ino = 9.into()), expected, "an inode");
    assert_eq!(named(&|node| node.footer.set_node_offset(1)), expected, "a direct node");
    let inline = |node: &mut NodeBlock| {
        node.footer.ino = 9.into();
        node.inode_mut().i_inline = inline::DATA;
    };
    assert_eq!(named(&inline), [], "inline data");
    assert_eq!(named(&|node| node.footer.set_node_offset(3)), [], "an indirect node");
    assert_eq!(named(&|node| node.footer.set_node_offset(XATTR_NODE_OFFSET)), [], "attributes");
    let like_inline = |node: &mut NodeBlock| {
        node.footer.set_node_offset(1);
        node.inode_mut().i_inline = inline::DATA;
    };
    assert_eq!(named(&like_inline), expected, "a direct node has no flags of an inode");
}

/// Nodes of an inode that the checkpoint frees, or of one that nobody has made.
#[test]
fn nodes_of_no_file_are_passed_over() {
    let (device, fs) = start(Features(0));
    let open_file = fs.create_file("/open", 0o644).unwrap();
    let orphan = open_file.ino();
    fs.remove_file("/open").unwrap();
    fs.create_file("/file", 0o644).unwrap();
    fs.checkpoint().unwrap();
    sync(&fs, "/file", 1);
    drop((open_file, fs));
    let nodes = chain(&device);
    assert_eq!(nodes.len(), 1);
    for ino in [orphan, Nid(2000)] {
        let device = PlainArc::new(device.snapshot());
        change(&device, nodes[0], |node| (node.footer.nid, node.footer.ino) = (ino.into(), ino.into()));
        let fs = open(&device).unwrap();
        assert_eq!(fs.recovered(), RecoveryReport::default());
        assert_eq!(fs.metadata("/file").unwrap().size, 0);
        fs.close().unwrap();
        assert_clean(&device);
    }
}

/// A new file has the names that come back, and no more.
#[test]
fn a_new_file_has_one_link() {
    let (device, fs) = start(Features(0));
    sync(&fs, "/file", 1);
    drop(fs);
    change(&device, chain(&device)[0], |node| node.inode_mut().i_links = 5.into());
    let fs = open(&device).unwrap();
    assert_eq!(fs.metadata("/file").unwrap().links, 1);
    fs.close().unwrap();
    assert_clean(&device);
}

/// Whether there is room for attributes in an inode is a matter of the inode.
#[test]
fn the_room_for_attributes_is_that_of_the_sync() {
    for has_room in [false, true] {
        let (device, fs) = start(Features(0));
        fs.create_file("/file", 0o644).unwrap();
        fs.checkpoint().unwrap();
        let number = fs.metadata("/file").unwrap().ino;
        fs.open_file("/file").unwrap().write_at(&[7; 20], 0).unwrap();
        fs.open_file("/file").unwrap().sync_all().unwrap();
        drop(fs);
        let at = chain(&device)[0];
        let set = |node: &mut NodeBlock, has_room: bool| {
            let inode = node.inode_mut();
            inode.i_inline = inode.i_inline & !inline::XATTR | if has_room { inline::XATTR } else { 0 };
        };
        patch_node(&device, number, |node| set(node, !has_room));
        change(&device, at, |node| set(node, has_room));
        let fs = open(&device).unwrap();
        assert_eq!(raw(&fs, "/file").i_inline & inline::XATTR != 0, has_room);
        let mut found = [0; 20];
        assert_eq!(fs.open_file("/file").unwrap().read_at(&mut found, 0).unwrap(), 20);
        assert_eq!(found, [7; 20]);
        fs.close().unwrap();
    }
}

/// A crash during the checkpoint behind a recovery must find everything once more.
#[test]
fn what_a_recovery_needs_is_not_written_over() {
    let (device, fs) = start(Features(0));
    for number in 0..20 {
        sync(&fs, &format!("/{number}"), number);
    }
    drop(fs);
    let nodes = chain(&device);
    assert_eq!(nodes.len(), 20);
    let mut needed: Vec<u64> = nodes.clone();
    for at in nodes {
        let node = *NodeBlock::read(device.read(at, 1).unwrap().block(0));
        needed.extend(node.addresses(Features(0)).filter(|addr| addr.is_real()).map(|addr| u64::from(addr.0)));
    }
    assert_eq!(needed.len(), 20 * 4);
    let before = device.snapshot();
    // What is freed is discarded when the checkpoint is durable.
    let options = Options::new().volume(VolumeOptions::new().discard(false));
    let fs = FileSystem::open(device.clone(), options).unwrap();
    assert_eq!(fs.recovered().files, 20);
    for at in needed {
        assert!(device.read(at, 1).unwrap().block(0) == before.read(at, 1).unwrap().block(0), "block {at}");
    }
}

#[test]
fn a_synced_inode_with_fewer_attributes_is_refused() {
    let (device, fs) = start(Features::EXTRA_ATTR);
    fs.create_file("/file", 0o644).unwrap();
    fs.checkpoint().unwrap();
    sync(&fs, "/file", 1);
    drop(fs);
    change(&device, chain(&device)[0], |node| node.inode_mut().extra_mut().i_extra_isize = 24.into());
    match open(&device).unwrap_err() {
        FsError::Recovery(error) => {
            let text = error.to_string();
            assert!(error.is_corruption() && text.contains("24") && text.contains("36"), "{text}");
        }
        error => panic!("{error}"),
    }
}

/// What a sync says that it has, and that is a node or a directory's, is nobody's to take.
#[test]
fn a_synced_block_that_is_no_files_is_an_error() {
    let (device, fs) = start(Features(0));
    fs.create_dir("/dir", 0o755).unwrap();
    (0..30).for_each(|number| drop(fs.create_file(format!("/dir/{number:0>200}"), 0o644).unwrap()));
    fs.checkpoint().unwrap();
    let names = fs.core.inode(fs.metadata("/dir").unwrap().ino).unwrap().node.read().address(0, Features(0)).unwrap();
    let node = fs.core.volume.geometry().main_blkaddr;
    sync(&fs, "/file", 1);
    drop(fs);
    for (addr, what) in [(node, "in use"), (names, "a directory's")] {
        let device = PlainArc::new(device.snapshot());
        change(&device, chain(&device)[0], |node| assert!(node.set_address(1, addr, Features(0))));
        let error = open(&device).unwrap_err();
        assert!(matches!(error, FsError::Recovery(_)) && error.to_string().contains(what), "{error}");
    }
}
