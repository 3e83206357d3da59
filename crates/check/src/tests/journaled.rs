//! A repair leaves room for what was synced into a journal beside the volume.

use f2fs_device::BlockDevice;
use f2fs_format::inode::mode;
use f2fs_format::node::NodeBlock;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_sync::{Arc, PlainArc};

use super::image::{Image, populated};
use crate::CheckOptions;
use crate::repair::{Journaled, Repair, RepairError, plan_with_journal};

/// A new file in a journal, with one block of data.
fn synced(ino: Nid, data: BlockAddr) -> Box<NodeBlock> {
    let mut node = NodeBlock::new_box();
    (node.footer.nid, node.footer.ino) = (ino.into(), ino.into());
    let inode = node.inode_mut();
    inode.i_mode = (mode::REGULAR | 0o644).into();
    inode.i_addr[7] = data.into();
    node
}

fn planned(image: &Image, version: u64, node: Box<NodeBlock>) -> Result<Repair, RepairError> {
    let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot().read_only());
    let journal = Journaled::new(SuperBlock::read(&image.block(BlockAddr(0))).uuid, vec![version], vec![node]);
    plan_with_journal(&device, &CheckOptions::default(), &journal)
}

/// A file has no name left, and there is no lost+found: the repair needs a number and a block for one.
fn without_lost_and_found() -> Image {
    let image = populated().copy();
    let features = image.geometry.features;
    let lost = image.find("lost+found").ino;
    let names = image.node(Nid::ROOT).addresses(features).find(|addr| addr.is_real()).unwrap();
    image.edit_node(image.find("tiny").ino, |node| node.inode_mut().i_namelen = 0.into());
    image.edit(image.addr(lost), |block| block.fill(0));
    image.edit_nat(lost, |entry| entry.block_addr = 0.into());
    image.edit(names, |block| block.fill(0));
    image
}

#[test]
fn neither_numbers_nor_blocks_of_a_journal_are_given_away() {
    let image = without_lost_and_found();
    let version = image.pack().block.footer_version();
    let logs = LogType::ALL.map(|log| image.pack().log(log).0);
    let is_free = |segment: &SegmentNo| !logs.contains(segment) && image.sit(*segment).valid_blocks() == 0;
    let segment = (0..image.geometry.main_segments).map(SegmentNo).find(is_free).unwrap();
    // What a repair takes first, as it does where the journal has something else.
    let first = image.geometry.block_at(segment, 0);
    let elsewhere = image.geometry.block_at(SegmentNo(image.geometry.main_segments - 1), 9);
    let repair = planned(&image, version, synced(Nid(5000), elsewhere)).unwrap();
    let made = |repair: &Repair| repair.actions.iter().find(|action| action.contains("lost+found is made")).cloned();
    assert!(repair.keeps_journal() && repair.blocks().any(|block| block == u64::from(first.0)), "{:?}", repair.actions);
    let number = made(&repair).unwrap();
    let number: u32 = number.rsplit(' ').next().unwrap().parse().unwrap();
    let repair = planned(&image, version, synced(Nid(number), first)).unwrap();
    assert!(repair.keeps_journal() && repair.after.is_clean(), "{}\n{:?}", repair.after, repair.actions);
    assert!(!repair.blocks().any(|block| block == u64::from(first.0)), "{:?}", repair.actions);
    assert!(!made(&repair).unwrap().ends_with(&format!(" {number}")), "{:?}", repair.actions);
}

#[test]
fn a_journal_of_another_volume_or_checkpoint_is_refused() {
    let version = populated().pack().block.footer_version();
    for image in [populated().copy(), without_lost_and_found()] {
        let node = || synced(Nid(5000), image.geometry.block_at(SegmentNo(image.geometry.main_segments - 1), 9));
        let refused = planned(&image, version + 1, node()).unwrap_err();
        let RepairError::OtherJournal { builds_on, found } = &refused else { panic!("{refused}") };
        assert_eq!((*builds_on, *found), (Some(version + 1), Some(version)));
        let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot().read_only());
        let foreign = Journaled::new([9; 16], vec![version], vec![node()]);
        let refused = plan_with_journal(&device, &CheckOptions::default(), &foreign).unwrap_err();
        assert!(matches!(refused, RepairError::OtherJournal { .. }), "{refused}");
    }
}
