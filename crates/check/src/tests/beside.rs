//! Addresses that lead among nodes, where nothing is left of what the SIT said: a slot gets its own block back, or
//! becomes a hole, and no data are taken for valid in a segment of nodes.

use f2fs_device::BlockDevice;
use f2fs_format::bits::msb;
use f2fs_format::summary::{Summary, TYPE_NODE};
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_sync::{Arc, PlainArc};

use super::image::{Image, populated};
use super::lost::{repaired, tree};
use super::two_losses::lose;
use crate::{CheckOptions, repair};

/// A slot of the inode of `large`, and one of its first direct node: as places in its tree.
const SLOTS: [usize; 2] = [3, 1000];

/// The whole volume, the file that is damaged, and its blocks.
fn large() -> (&'static Image, Nid, Vec<BlockAddr>) {
    let whole = populated();
    let ino = whole.find("large").ino;
    (whole, ino, tree(whole, ino))
}

/// The node and the slot in it that a place in the file's tree is.
fn slot_of(image: &Image, ino: Nid, place: usize) -> (Nid, usize) {
    let node = image.node(ino);
    let own = node.address_count(image.geometry.features);
    place.checked_sub(own).map_or((ino, place), |slot| (node.inode().i_nid[0].into(), slot))
}

fn name(image: &Image, ino: Nid, place: usize, addr: BlockAddr) {
    let (nid, slot) = slot_of(image, ino, place);
    image.edit_node(nid, |node| match nid == ino {
        true => _ = node.set_address(slot, addr, image.geometry.features),
        false => node.slots_mut()[slot] = addr.into(),
    });
}

/// The SIT block of all segments that are in use.
fn lose_sit(image: &Image) {
    lose(image, image.sit_block(SegmentNo(0)));
}

/// A slot names another block, and the SIT is lost: a repair gives the file all of its blocks back.
fn gets_its_block_back(whole: &Image, place: usize, other: BlockAddr) {
    let (_, ino, before) = large();
    let image = whole.copy();
    name(&image, ino, place, other);
    lose_sit(&image);
    let actions = repaired(&image);
    assert!(tree(&image, ino) == before, "{place}, {other}: {actions:?}");
}

fn lose_summary(image: &Image, addr: BlockAddr) {
    let (summary, index) = image.summary_of(addr);
    image.edit_summary(summary, |summary| summary.entries[index].nid = 0.into());
}

/// The segment of the root, which is no log's.
fn segment_of_root(image: &Image) -> SegmentNo {
    image.geometry.locate(image.addr(Nid::ROOT)).unwrap().0
}

#[test]
fn a_slot_gets_its_own_block_back_without_the_sit() {
    let (whole, ino, before) = large();
    let logs = [LogType::HotNode, LogType::WarmNode, LogType::ColdNode];
    let mut others: Vec<BlockAddr> =
        logs.iter().map(|log| whole.geometry.block_at(whole.pack().log(*log).0, 500)).collect();
    others.push(whole.geometry.block_at(segment_of_root(whole), 400));
    others.extend([before[9], BlockAddr(77), whole.addr(Nid::ROOT), whole.addr(ino)]);
    for place in SLOTS {
        others.iter().for_each(|other| gets_its_block_back(whole, place, *other));
    }
}

/// Where a log of nodes stands, and where one stood, no node need be: the summary has the mark of nodes.
#[test]
fn a_segment_of_nodes_is_known_without_nodes_in_it() {
    let image = populated().copy();
    let logs = LogType::ALL.map(|log| image.pack().log(log).0);
    let log = logs[LogType::HotNode.index()];
    assert_eq!(image.sit(log).valid_blocks(), 0);
    let is_free = |segment: &SegmentNo| !logs.contains(segment) && image.sit(*segment).valid_blocks() == 0;
    let left = (0..image.geometry.main_segments).map(SegmentNo).find(is_free).unwrap();
    image.edit_summary(image.geometry.summary_block(left), |summary| summary.entry_type = TYPE_NODE);
    for (place, segment) in SLOTS.into_iter().flat_map(|place| [(place, log), (place, left)]) {
        gets_its_block_back(&image, place, image.geometry.block_at(segment, 7));
    }
}

/// The summary of the segment is there, or was lost as well; few nodes are worth more than many slots.
#[test]
fn nodes_keep_their_segment() {
    let (whole, ino, before) = large();
    for has_summary in [true, false] {
        let image = whole.copy();
        let nodes = segment_of_root(whole);
        if !has_summary {
            lose(&image, image.geometry.summary_block(nodes));
        }
        for (index, place) in (0..).zip((4..60).chain(SLOTS)) {
            name(&image, ino, place, image.geometry.block_at(nodes, 400 + index));
        }
        lose_sit(&image);
        let actions = repaired(&image);
        assert!(tree(&image, ino) == before, "{has_summary}: {actions:?}");
    }
}

#[test]
fn a_slot_that_nothing_names_becomes_a_hole() {
    let (whole, ino, before) = large();
    let nodes = segment_of_root(whole);
    for place in SLOTS {
        // The SIT is lost, or holds the block for valid.
        for is_lost in [true, false] {
            let image = whole.copy();
            name(&image, ino, place, image.geometry.block_at(nodes, 400));
            lose_summary(&image, before[place]);
            if is_lost {
                lose_sit(&image);
            } else {
                image.edit_sit(nodes, |entry| {
                    msb::set(&mut entry.valid_map, 400);
                    entry.set_blocks(entry.log_type().unwrap(), entry.valid_blocks() + 1);
                });
            }
            let actions = repaired(&image);
            let mut holed = before.clone();
            holed[place] = BlockAddr::NULL;
            assert!(tree(&image, ino) == holed, "{place}, {is_lost}: {actions:?}");
        }
    }
}

/// What a free segment held before is named in its summary for good. Nothing else tells that it is old.
#[test]
fn what_stood_in_a_slot_before_does_not_come_back() {
    let (whole, ino, before) = large();
    let home = whole.geometry.locate(before[100]).unwrap().0;
    let logs = LogType::ALL.map(|log| whole.pack().log(log).0);
    assert!(!logs.contains(&home));
    let old = (0..whole.geometry.main_segments).rev().map(SegmentNo).find(|at| !logs.contains(at)).unwrap();
    // The summary of the newer blocks is lost, and the SIT.
    let image = whole.copy();
    image.put(image.geometry.summary_block(old), &image.block(image.geometry.summary_block(home)));
    lose(&image, image.geometry.summary_block(home));
    lose_sit(&image);
    let actions = repaired(&image);
    assert!(tree(&image, ino) == before, "{actions:?}");
    // A node that is put together again had nothing there any more.
    let image = whole.copy();
    let below = Nid::from(whole.node(whole.node(ino).inode().i_nid[2].into()).slots()[0]);
    assert_eq!(whole.node(below).slots()[1017].get(), 0);
    image.edit_summary(image.geometry.summary_block(old), |summary| summary.entries[9] = Summary::new(below, 0, 1017));
    lose(&image, image.addr(below));
    let actions = repaired(&image);
    assert!(tree(&image, ino) == before, "{actions:?}");
}

/// A node that came to stand among data drives none of them out.
#[test]
fn data_keep_their_segment() {
    let (whole, ino, before) = large();
    let tiny = whole.find("tiny").ino;
    let (log, next) = whole.pack().log(LogType::WarmData);
    let segment = whole.geometry.block_at(log, 0);
    assert!(before.contains(&segment) && next < 512, "{segment} {next}");
    let image = whole.copy();
    let moved = whole.geometry.block_at(log, 511);
    image.put(moved, &image.block(image.addr(tiny)));
    image.edit_nat(tiny, |entry| entry.block_addr = moved.into());
    lose_sit(&image);
    let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot().read_only());
    let repair = repair::plan(&device, &CheckOptions::default()).unwrap();
    repair.apply(&image.device).unwrap();
    assert!(tree(&image, ino) == before, "{:?}", repair.actions);
}
