//! Nodes that were lost, as a whole or by a bit: the other witnesses give their content back.

use f2fs_device::BlockDevice;
use f2fs_format::bits::msb;
use f2fs_format::inode::inline;
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, LogType, Nid};
use f2fs_sync::{Arc, PlainArc};

use super::image::{Image, populated};
use crate::{CheckOptions, repair};

/// All blocks of a file, in order.
pub(super) fn tree(image: &Image, ino: Nid) -> Vec<BlockAddr> {
    let direct = |nid: Nid| image.node(nid).slots().map(BlockAddr::from);
    let inode = image.node(ino);
    let mut all: Vec<BlockAddr> = inode.addresses(image.geometry.features).collect();
    let [one, two, three, ..] = inode.inode().i_nid.map(Nid::from);
    all.extend(direct(one).into_iter().chain(direct(two)));
    let children = image.node(three).slots().map(Nid::from);
    all.extend(children.into_iter().filter(|nid| !nid.is_null()).flat_map(direct));
    all
}

/// Repairs, and returns what was done. Both judges find nothing afterwards.
pub(super) fn repaired(image: &Image) -> Vec<String> {
    let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot().read_only());
    let repair = repair::plan(&device, &CheckOptions::default()).unwrap();
    assert!(repair.after.is_clean() && repair.after.complete, "{}\n{:?}", repair.after, repair.actions);
    repair.apply(&image.device).unwrap();
    let fsck = image.fsck();
    assert!(fsck.is_clean(), "{fsck}\n{:?}", repair.actions);
    repair.actions
}

#[test]
fn a_file_keeps_its_blocks_when_a_node_of_it_is_lost() {
    let whole = populated();
    let ino = whole.find("large").ino;
    let before = tree(whole, ino);
    assert!(before.iter().filter(|addr| addr.is_real()).count() > 864 + 2 * 1018);
    let [one, _, three, ..] = whole.node(ino).inode().i_nid.map(Nid::from);
    let below = Nid::from(whole.node(three).slots()[0]);
    for (name, nid) in [("inode", ino), ("direct node", one), ("indirect node", three), ("node below", below)] {
        for (how, from, to, byte) in [("zeros", 0, 4096, 0), ("junk", 0, 4096, 0x5A), ("a sector", 0, 512, 0)] {
            // Of a node that lost a part the repair does not know that it had more.
            if nid != ino && how == "a sector" {
                continue;
            }
            let image = whole.copy();
            image.edit(image.addr(nid), |block| block[from..to].fill(byte));
            let actions = repaired(&image);
            assert_eq!(image.find("large").ino, ino);
            assert!(tree(&image, ino) == before, "{name}, {how}: {actions:?}");
            let size = image.node(ino).inode().i_size.get();
            assert_eq!(size.div_ceil(4096), 12_500_000_u64.div_ceil(4096), "{name}, {how}: {actions:?}");
        }
    }
}

#[test]
fn a_directory_keeps_its_names_when_its_inode_is_lost() {
    for byte in [0, 0x5A] {
        let image = populated().copy();
        let ino = image.find("many").ino;
        image.edit(image.addr(ino), |block| block.fill(byte));
        let actions = repaired(&image);
        assert_eq!(image.find("many").ino, ino);
        for index in 0..700 {
            image.find(&format!("many/a name that takes several slots, number {index:04}"));
        }
        assert_eq!(image.node(ino).inode().i_mode.get(), 0o40_700, "{actions:?}");
    }
}

#[test]
fn a_slot_that_names_another_block_gets_its_own_back() {
    let whole = populated();
    let ino = whole.find("large").ino;
    let before = tree(whole, ino);
    let root = whole.geometry.locate(whole.addr(Nid::ROOT)).unwrap().0;
    let beside_nodes = whole.geometry.block_at(root, 400);
    let free = whole.geometry.main_end().offset(0).0 - 5;
    for other in [beside_nodes, BlockAddr(free), before[9], BlockAddr(77), whole.addr(Nid::ROOT)] {
        let image = whole.copy();
        image.edit_node(ino, |node| {
            node.set_address(3, other, image.geometry.features);
        });
        let actions = repaired(&image);
        assert!(tree(&image, ino) == before, "{other}: {actions:?}");
    }
}

/// Summaries of segments that changed places name slots for every block; the slots name others, each of them once.
#[test]
fn summaries_that_changed_places_move_no_block() {
    let whole = populated();
    let ino = whole.find("large").ino;
    let before = tree(whole, ino);
    let mut homes: Vec<_> =
        before.iter().filter_map(|addr| whole.geometry.locate(*addr)).map(|(home, _)| home).collect();
    homes.dedup();
    let logs: Vec<_> = LogType::ALL.into_iter().map(|log| whole.pack().log(log).0).collect();
    homes.retain(|home| !logs.contains(home));
    assert!(homes.len() >= 3, "{homes:?}");
    for pair in homes.windows(2).chain([&[homes[0], homes[homes.len() - 1]][..]]) {
        let image = whole.copy();
        let [one, other] = [0, 1].map(|index| image.geometry.summary_block(pair[index]));
        let (first, second) = (image.block(one), image.block(other));
        image.put(one, &second);
        image.put(other, &first);
        let actions = repaired(&image);
        assert!(tree(&image, ino) == before, "{pair:?}: {actions:?}");
    }
}

/// Neighbours in one summary that changed places, in an inode and in a direct node.
#[test]
fn entries_of_a_summary_that_changed_places_move_no_block() {
    let whole = populated();
    let (small, large) = (whole.find("small").ino, whole.find("large").ino);
    let direct = Nid::from(whole.node(large).inode().i_nid[0]);
    for nid in [small, large, direct] {
        let slots = |image: &Image| image.node(nid).addresses(image.geometry.features).collect::<Vec<_>>();
        let before = slots(whole);
        let image = whole.copy();
        let (summary, index) = image.summary_of(before[0]);
        assert_eq!(image.summary_of(before[1]), (summary, index + 1));
        image.edit_summary(summary, |summary| summary.entries.swap(index, index + 1));
        let actions = repaired(&image);
        assert!(slots(&image) == before, "nid {nid}: {actions:?}");
    }
}

/// Both copies of a block of the NAT, or of the SIT, and what the summaries say of the same segments.
#[test]
fn what_two_tables_lost_is_found_by_the_third() {
    let whole = populated();
    let ino = whole.find("large").ino;
    let before = tree(whole, ino);
    let names = |image: &Image| image.check().counts.inodes;
    let inodes = names(whole);
    let nat = |image: &Image| {
        for index in 0..image.geometry.nat_blocks() {
            for second in [false, true] {
                image.edit(image.geometry.nat_block(index, second), |block| block.fill(0));
            }
        }
    };
    let sit = |image: &Image, half: usize| {
        for index in 0..image.geometry.sit_blocks() {
            for second in [false, true] {
                image.edit(image.geometry.sit_block(index, second), |block| block[half * 2048..][..2048].fill(0));
            }
        }
    };
    let logs: Vec<_> = LogType::ALL.into_iter().map(|log| whole.pack().log(log).0).collect();
    let mut summaries = Vec::new();
    for addr in before.iter().copied().filter(|addr| addr.is_real()).chain([whole.addr(ino)]) {
        let segment = whole.geometry.locate(addr).unwrap().0;
        if !logs.contains(&segment) && !summaries.contains(&segment) {
            summaries.push(segment);
        }
    }
    let [direct, ..] = whole.node(ino).inode().i_nid.map(Nid::from);
    for nid in [ino, direct, whole.find("many").ino, whole.find("tiny").ino] {
        let image = whole.copy();
        let (segment, offset) = image.geometry.locate(image.addr(nid)).unwrap();
        nat(&image);
        image.edit_sit(segment, |entry| assert!(msb::clear(&mut entry.valid_map, offset as usize)));
        let actions = repaired(&image);
        assert!(tree(&image, ino) == before, "NAT, SIT of nid {nid}: {actions:?}");
        assert_eq!(names(&image), inodes, "NAT, SIT of nid {nid}: {actions:?}");
    }
    for segment in summaries {
        let summary = whole.geometry.summary_block(segment);
        let image = whole.copy();
        nat(&image);
        image.edit(summary, |block| block.fill(0));
        let actions = repaired(&image);
        assert!(tree(&image, ino) == before, "NAT, {segment}: {actions:?}");
        assert_eq!(names(&image), inodes, "NAT, {segment}: {actions:?}");
        for half in [0, 1] {
            let image = whole.copy();
            sit(&image, half);
            // A bit of the owner in each entry.
            image.edit_summary(summary, |summary| {
                summary.entries.iter_mut().for_each(|entry| entry.nid = (entry.nid.get() ^ 2).into());
            });
            let actions = repaired(&image);
            assert!(tree(&image, ino) == before, "SIT, {segment}: {actions:?}");
        }
    }
}

/// Both tables hold something that looks like entries here and there.
#[test]
fn what_two_tables_have_as_junk_is_found_by_the_third() {
    let whole = populated();
    let ino = whole.find("large").ino;
    let (before, inodes) = (tree(whole, ino), whole.check().counts.inodes);
    for seed in 1..6_u64 {
        let image = whole.copy();
        let mut state = seed;
        let mut junk = |addr: BlockAddr, from: usize| {
            image.edit(addr, |block| {
                for byte in &mut block[from..] {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    *byte = (state >> 56) as u8;
                }
            });
        };
        for second in [false, true] {
            junk(image.geometry.nat_block(0, second), if seed % 2 == 0 { 0 } else { 512 });
            if seed == 4 {
                image.edit(image.geometry.nat_block(0, second), |block| block[512..].fill(0));
            }
            junk(image.geometry.sit_block(0, second), if seed % 3 == 0 { 0 } else { 1024 });
        }
        let actions = repaired(&image);
        assert!(tree(&image, ino) == before, "seed {seed}: {actions:?}");
        assert_eq!(image.check().counts.inodes, inodes, "seed {seed}: {actions:?}");
    }
}

/// Without its extra attributes all addresses of an inode stand further back than they should.
#[test]
fn slots_of_an_inode_that_lost_its_layout_get_their_blocks() {
    let whole = populated();
    let (small, features) = (whole.find("small").ino, whole.geometry.features);
    let addresses = |image: &Image| image.node(small).addresses(features).take(20).collect::<Vec<_>>();
    let before = addresses(whole);
    let image = whole.copy();
    image.edit_node(small, |node| {
        let inode = node.inode_mut();
        inode.extra_mut().i_inode_checksum = 0.into();
        inode.i_inline &= !inline::EXTRA_ATTR;
    });
    assert!(addresses(&image) != before);
    let actions = repaired(&image);
    assert!(addresses(&image) == before, "{actions:?}");
}

/// A slot behind the end of a file that a damage filled: neither the tables nor the inode know of such a block.
#[test]
fn a_free_block_is_not_given_to_a_slot_that_a_damage_filled() {
    let whole = populated();
    let (small, large) = (whole.find("small").ino, whole.find("large").ino);
    let direct = Nid::from(whole.node(large).inode().i_nid[1]);
    let free = BlockAddr(whole.geometry.main_end().0 - 5);
    for (ino, nid, slot) in [(small, small, 332), (large, direct, 1000)] {
        let image = whole.copy();
        // Of the large file one block less, so that there is an empty slot.
        if nid == direct {
            image.edit_node(nid, |node| node.slots_mut()[slot] = 0.into());
            repaired(&image);
        }
        let before = image.node(ino);
        image.edit_node(nid, |node| {
            node.set_address(slot, free, image.geometry.features);
        });
        let actions = repaired(&image);
        let after = image.node(ino);
        assert!(after.inode().i_size == before.inode().i_size, "{actions:?}");
        assert!(after.inode().i_blocks == before.inode().i_blocks, "{actions:?}");
        assert!(image.node(nid).address(slot, image.geometry.features).unwrap().is_null(), "{actions:?}");
    }
}

#[test]
fn a_flipped_bit_of_an_inode_is_put_back() {
    let whole = populated();
    let ino = whole.find("large").ino;
    let at = whole.addr(ino);
    // i_mode, i_inline, i_size, i_links, i_extra_isize, an address, a node, the footer.
    for (byte, bit) in [(1, 5), (1, 6), (3, 1), (16, 7), (12, 3), (360, 5), (396, 2), (4056, 1), (4076, 0)] {
        let image = whole.copy();
        image.edit(at, |block| block[byte] ^= 1 << bit);
        let actions = repaired(&image);
        let said = format!("inode {ino}: bit {bit} of byte {byte} was flipped, and is put back");
        assert!(actions.contains(&said), "{actions:?}");
        assert!(NodeBlock::read(&image.block(at)).as_block() == NodeBlock::read(&whole.block(at)).as_block());
    }
}
