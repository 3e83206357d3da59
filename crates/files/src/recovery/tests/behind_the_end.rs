//! What lies behind the end of a synced file.

use super::*;

/// Of blocks in the inode itself, where the checkpoint has the same ones.
#[test]
fn blocks_behind_the_end_go() {
    let (device, fs) = start(Features(0));
    fs.create_file("/file", 0o644).unwrap().write_at(&[1; 5 * BLOCK], 0).unwrap();
    fs.checkpoint().unwrap();
    fs.set_permissions("/file", 0o600).unwrap();
    fs.open_file("/file").unwrap().sync_all().unwrap();
    drop(fs);
    let at = chain(&device)[0];
    for (size, kept) in [(0, 0), (1, 1), (BLOCK, 1), (BLOCK + 1, 2), (5 * BLOCK, 5)] {
        let device = PlainArc::new(device.snapshot());
        change(&device, at, |node| node.inode_mut().i_size = (size as u64).into());
        // Who only reads shows the end, and writes nothing.
        let fs = FileSystem::open(device.clone(), Options::new().read_only(true)).unwrap();
        let found = fs.metadata("/file").unwrap();
        assert_eq!((found.size, found.blocks), (size as u64, 1 + 5));
        drop(fs);
        let fs = open(&device).unwrap();
        let found = fs.metadata("/file").unwrap();
        assert_eq!((found.size, found.blocks), (size as u64, 1 + kept));
        fs.close().unwrap();
        assert_clean(&device);
    }
}

fn nid_at(device: &MemoryDevice, at: u64) -> Nid {
    NodeBlock::read(device.read(at, 1).unwrap().block(0)).nid()
}

/// A node behind the end that names what is no block of the file is left alone, as nobody asked for it.
#[test]
fn nodes_with_damaged_addresses_behind_the_end_stay() {
    let (device, fs) = start(Features(0));
    fs.create_file("/file", 0o644).unwrap().write_at(&vec![1; 1500 * BLOCK], 0).unwrap();
    fs.checkpoint().unwrap();
    let free = fs.core.volume.geometry().main_end().0 - 1;
    let (node, volume) = (fs.core.inode(fs.metadata("/file").unwrap().ino).unwrap(), &fs.core.volume);
    let child = find_slot(volume, &node.node, 1400).unwrap().unwrap().node.nid();
    drop(node);
    fs.set_permissions("/file", 0o600).unwrap();
    fs.open_file("/file").unwrap().sync_all().unwrap();
    drop(fs);
    let at = chain(&device)[0];
    change(&device, at, |node| {
        let inode = node.inode_mut();
        (inode.i_size, inode.i_nid) = ((BLOCK as u64).into(), Default::default());
        inode.i_addr[1..].fill(0.into());
    });
    for (damage, is_cut) in [(None, true), (Some(7), false), (Some(free), false)] {
        let device = PlainArc::new(device.snapshot());
        if let Some(addr) = damage {
            let copies = (0..device.info().blocks).filter(|at| nid_at(&device, *at) == child);
            copies.for_each(|at| change(&device, at, |node| node.slots_mut()[100] = addr.into()));
        }
        let fs = open(&device).unwrap();
        assert_eq!((fs.recovered().files, blocks(&fs, "/file")), (1, vec![1]));
        let found = fs.metadata("/file").unwrap().blocks;
        assert_eq!(found == 2, is_cut, "{found} blocks, {damage:?}");
    }
}

/// Also one in which nothing is left, from the first block behind the end on.
#[test]
fn an_empty_node_behind_the_end_goes() {
    const IN_INODE: usize = 873;
    let (device, fs) = start(Features(0));
    fs.create_file("/file", 0o644).unwrap().write_at(&vec![1; (IN_INODE + 10) * BLOCK], 0).unwrap();
    fs.checkpoint().unwrap();
    let inode = fs.core.inode(fs.metadata("/file").unwrap().ino).unwrap();
    let child = find_slot(&fs.core.volume, &inode.node, IN_INODE as u64).unwrap().unwrap();
    assert_eq!(child.index, 0);
    let child = child.node.nid();
    drop(inode);
    fs.set_permissions("/file", 0o600).unwrap();
    fs.open_file("/file").unwrap().sync_all().unwrap();
    drop(fs);
    let copies: Vec<u64> = (0..device.info().blocks).filter(|at| nid_at(&device, *at) == child).collect();
    copies.iter().for_each(|at| change(&device, *at, |node| node.slots_mut().fill(0.into())));
    for (blocks, stays) in [(IN_INODE, false), (IN_INODE + 1, true)] {
        let device = PlainArc::new(device.snapshot());
        change(&device, chain(&device)[0], |node| node.inode_mut().i_size = ((blocks * BLOCK) as u64).into());
        let fs = open(&device).unwrap();
        assert_eq!(raw(&fs, "/file").i_nid[0].get() != 0, stays, "{blocks} blocks");
    }
}
