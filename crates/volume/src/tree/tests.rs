#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_format::LogType;
use f2fs_format::inode::mode;
use f2fs_format::node::mark;

use super::*;
use crate::samples::{inode, plain, write};

/// Slots of an inode, of a direct node, and the first blocks behind those that one node, two, an indirect node and two
/// of these lead to.
const OWN: u64 = 923;
const NODE: u64 = 1018;
const INDIRECT: u64 = OWN + 2 * NODE;
const DOUBLE: u64 = INDIRECT + 2 * NODE * NODE;

fn ensure(volume: &Volume, inode: &Node, block: u64) -> Slot {
    ensure_slot(&volume.begin().unwrap(), inode, block).unwrap()
}

/// Puts a block of data where a block of a file has its slot.
fn put(volume: &Volume, inode: &Node, block: u64) {
    let slot = ensure(volume, inode, block);
    write(volume, &slot.node, slot.index..slot.index + 1, LogType::WarmData);
}

#[test]
fn missing_blocks_and_nodes_are_counted() {
    let volume = plain(64);
    let file = inode(&volume);
    let count = |first, last| missing(&volume, &file, first, last, false).unwrap();
    for (first, last, expected) in [
        (0, 0, 1),
        (5, 9, 5),
        (0, OWN, OWN + 2),
        (OWN, OWN, 2),
        (OWN + 3, OWN + NODE - 1, NODE - 3 + 1),
        (OWN, OWN + NODE, NODE + 1 + 2),
        // An indirect node and one below it, then two.
        (INDIRECT, INDIRECT, 3),
        (INDIRECT + NODE - 1, INDIRECT + NODE, 2 + 3),
        (INDIRECT + NODE * NODE - 1, INDIRECT + NODE * NODE, 2 + 4),
        // Both levels of indirect nodes.
        (DOUBLE, DOUBLE, 4),
        (DOUBLE + NODE * NODE - 1, DOUBLE + NODE * NODE, 2 + 5),
        (INDIRECT - 1, INDIRECT, 2 + 3),
    ] {
        assert_eq!(count(first, last), expected, "{first} ..= {last}");
    }

    put(&volume, &file, 7);
    assert_eq!((count(7, 7), count(6, 7), count(7, 8), count(0, OWN - 1)), (0, 1, 1, OWN - 1));
    // Where the data stands in the inode its slots are none.
    assert_eq!(missing(&volume, &file, 6, 8, true).unwrap(), 3);
    put(&volume, &file, OWN + 5);
    assert_eq!((count(OWN + 5, OWN + 5), count(OWN + 4, OWN + 6), count(OWN, OWN + NODE - 1)), (0, 2, NODE - 1));
    // From the middle of a node that is there into the next one.
    assert_eq!(count(OWN + 5, OWN + NODE), NODE - 6 + 2);
    put(&volume, &file, DOUBLE);
    assert_eq!((count(DOUBLE, DOUBLE + 1), count(DOUBLE + NODE, DOUBLE + NODE)), (1, 2));
    assert_eq!(count(DOUBLE + NODE * NODE, DOUBLE + NODE * NODE), 3);
}

#[test]
fn holes_are_as_long_as_the_node_that_is_not_there() {
    let volume = plain(64);
    let file = inode(&volume);
    let hole = |block| match place_of(&volume, &file, block).unwrap() {
        Place::Hole(blocks) => Some(blocks),
        Place::Slot(slot) => {
            assert!(find_slot(&volume, &file, block).unwrap().is_some_and(|found| found.index == slot.index));
            None
        }
    };
    assert_eq!(
        (hole(3), hole(OWN), hole(INDIRECT), hole(DOUBLE)),
        (None, Some(NODE), Some(NODE * NODE), Some(NODE.pow(3)))
    );
    assert!(find_slot(&volume, &file, OWN).unwrap().is_none());
    let before = file.read().inode().i_blocks.get();
    let slot = ensure(&volume, &file, DOUBLE + 4);
    assert_eq!((slot.index, file.read().inode().i_blocks.get()), (4, before + 3));
    assert_eq!(
        (hole(DOUBLE + 9), hole(DOUBLE + NODE), hole(DOUBLE + NODE * NODE)),
        (None, Some(NODE), Some(NODE * NODE))
    );
    let again = ensure(&volume, &file, DOUBLE + 5);
    assert_eq!((again.index, again.node.nid(), file.read().inode().i_blocks.get()), (5, slot.node.nid(), before + 3));
    // A node beside it has the next place of the indirect one.
    let beside = ensure(&volume, &file, DOUBLE + NODE);
    assert_eq!((beside.index, file.read().inode().i_blocks.get()), (0, before + 4));
    assert_ne!(beside.node.nid(), slot.node.nid());
    let found = find_slot(&volume, &file, DOUBLE + NODE).unwrap().unwrap();
    assert_eq!((found.node.nid(), found.node.ino()), (beside.node.nid(), file.nid()));
    assert!(matches!(path_to(addresses_of(&volume, &file), 1 << 40), Err(VolumeError::FileTooLarge { .. })));
}

/// Which of two nodes was used last makes no difference.
#[test]
fn nodes_that_are_used_in_turns_are_found() {
    let volume = plain(64);
    let (one, other) = (inode(&volume), inode(&volume));
    let slots = [(&one, OWN), (&one, OWN + NODE), (&other, OWN), (&other, OWN + NODE)];
    let nodes: Vec<Nid> = slots.iter().map(|(file, block)| ensure(&volume, file, *block).node.nid()).collect();
    for _ in 0..3 {
        for ((file, block), nid) in slots.iter().zip(&nodes) {
            for at in [0, NODE - 1] {
                let slot = ensure(&volume, file, block + at);
                assert_eq!((slot.node.nid(), slot.index as u64), (*nid, at));
            }
        }
    }
    // One that is freed is made anew.
    let op = volume.begin().unwrap();
    let slot = ensure_slot(&op, &one, OWN).unwrap();
    volume.nodes().remove(&op, &slot.node).unwrap();
    one.write(&op).inode_mut().i_nid[0] = 0.into();
    drop(op);
    let anew = ensure(&volume, &one, OWN);
    assert!(!anew.node.is_removed() && anew.node.nid() != slot.node.nid());
}

#[test]
fn nodes_of_directories_go_to_their_log() {
    let volume = plain(64);
    for (kind, cold) in [(mode::DIRECTORY, false), (mode::REGULAR, true)] {
        let file = inode(&volume);
        file.write(&volume.begin().unwrap()).inode_mut().i_mode = (kind | 0o755).into();
        let slot = ensure(&volume, &file, OWN);
        assert_eq!(slot.node.read().footer.has_mark(mark::COLD), cold);
    }
}

#[test]
fn a_child_of_another_file_or_place_is_corruption() {
    let volume = plain(64);
    let (file, other) = (inode(&volume), inode(&volume));
    let (own, second, foreign) =
        (ensure(&volume, &file, OWN), ensure(&volume, &file, OWN + NODE), ensure(&volume, &other, OWN));
    let wrong = |nid: Nid| {
        file.write(&volume.begin().unwrap()).inode_mut().i_nid[0] = nid.into();
        match find_slot(&volume, &file, OWN) {
            Ok(slot) => Err(slot.map(|slot| slot.node.nid())),
            Err(VolumeError::Corrupt(Corruption::Node { what, .. })) => Ok(what),
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(wrong(foreign.node.nid()), Ok("owner of a child node"));
    assert_eq!(wrong(second.node.nid()), Ok("node offset"));
    assert_eq!(wrong(own.node.nid()), Err(Some(own.node.nid())));
}

#[test]
fn present_blocks_are_those_that_have_an_address() {
    let volume = plain(64);
    let file = inode(&volume);
    for block in [3, 4, 9, OWN + 2] {
        put(&volume, &file, block);
    }
    let present = |start, end| {
        let mut found = Vec::new();
        let next = present_blocks(&volume, &file, start, end, &mut found).unwrap();
        (found, next)
    };
    assert_eq!(present(0, 100), (vec![3, 4, 9], OWN));
    assert_eq!(present(4, 9), (vec![4], OWN));
    assert_eq!(present(OWN, u64::MAX), (vec![OWN + 2], OWN + NODE));
    assert_eq!(present(OWN + NODE + 5, u64::MAX), (vec![], OWN + 2 * NODE));
}
