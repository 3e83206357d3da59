//! Two superblocks of which one lies: the one with which less is wrong is believed.

use f2fs_device::BlockDevice;
use f2fs_format::feature::Features;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BlockAddr, RawBlock};
use f2fs_sync::{Arc, PlainArc};

use super::image::{self, Image, populated};
use crate::repair::{self, Repair};
use crate::{CheckOptions, FindingKind};

type Change = fn(&mut SuperBlock);

/// Numbers that a flipped bit changes and leaves possible.
const LIES: [(&str, Change); 11] = [
    ("extra_attr", |sb| flip(sb, Features::EXTRA_ATTR)),
    ("inode_checksum", |sb| flip(sb, Features::INODE_CHECKSUM)),
    ("flexible_inline_xattr", |sb| flip(sb, Features::FLEXIBLE_INLINE_XATTR)),
    ("encrypt", |sb| flip(sb, Features::ENCRYPT)),
    ("blkzoned", |sb| flip(sb, Features::BLKZONED)),
    ("casefold", |sb| flip(sb, Features::CASEFOLD)),
    ("compression", |sb| flip(sb, Features::COMPRESSION)),
    ("readonly", |sb| flip(sb, Features::READONLY)),
    ("device_alias", |sb| flip(sb, Features::DEVICE_ALIAS)),
    ("cp_payload", |sb| sb.cp_payload = (sb.cp_payload.get() ^ 0x10).into()),
    ("a device's name", |sb| sb.devs[0].path[0] ^= 1),
];

fn flip(sb: &mut SuperBlock, feature: Features) {
    sb.feature = (sb.feature.get() ^ feature.0).into();
}

fn planned(image: &Image) -> Repair {
    let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot().read_only());
    repair::plan(&device, &CheckOptions::default()).unwrap()
}

fn copies(image: &Image) -> [RawBlock; 2] {
    [0, 1].map(|copy| image.block(BlockAddr(copy)))
}

#[test]
fn the_copy_that_lies_is_written_anew_and_nothing_else() {
    let whole = populated();
    let right = copies(whole);
    for (what, lie) in LIES {
        for copy in [0, 1] {
            let image = whole.copy();
            image.edit_superblock(copy, lie);
            let repair = planned(&image);
            assert!(repair.before.needs_repair(), "{what}");
            assert!(repair.after.is_clean(), "{what} in {copy}: {}", repair.after);
            let blocks: Vec<u64> = repair.blocks().collect();
            assert_eq!(blocks, [u64::from(copy)], "{what}: {:?}", repair.actions);
            repair.apply(&image.device).unwrap();
            assert!(copies(&image) == right, "{what} in {copy}");
        }
    }
}

/// Other damage is mended by the superblock that is right.
#[test]
fn a_superblock_that_lies_beside_other_damage() {
    let whole = populated();
    for (what, lie) in LIES {
        let image = whole.copy();
        image.edit_superblock(0, lie);
        image.edit(image.geometry.ssa_blkaddr, |block| block[4096 - 5] ^= 1);
        let ino = image.find("small").ino;
        image.edit_node(ino, |node| node.inode_mut().i_links = 7.into());
        let repair = planned(&image);
        assert!(repair.after.is_clean(), "{what}: {}\n{:?}", repair.after, repair.actions);
        repair.apply(&image.device).unwrap();
        assert!(copies(&image) == copies(whole), "{what}: {:?}", repair.actions);
        assert!(image.check().is_clean() && image.fsck().is_clean(), "{what}");
    }
}

/// A volume whose features no repair knows may have its second superblock back.
#[test]
fn features_that_are_not_repaired() {
    let whole = image::fresh(64 << 20, &["-O", "extra_attr,compression"]);
    assert!(planned(&whole).is_empty(), "nothing to repair, and no error");
    let image = whole.copy();
    image.put(BlockAddr(0), &[0; 4096]);
    let repair = planned(&image);
    assert_eq!(repair.blocks().collect::<Vec<_>>(), [0]);
    assert!(repair.before.has(FindingKind::SuperblockCopy) && repair.after.is_clean());
}

/// A main area that is larger than the device, in all numbers of the first copy that say so.
#[test]
fn the_copy_that_fits_the_device_is_taken() {
    let whole = populated();
    let image = whole.copy();
    image.edit_superblock(0, |sb| {
        let more = |number: u32| (number + 64).into();
        sb.segment_count = more(sb.segment_count.get());
        sb.segment_count_main = more(sb.segment_count_main.get());
        sb.section_count = more(sb.section_count.get());
        sb.block_count = (sb.block_count.get() + 64 * 512).into();
    });
    let report = image.check();
    assert!(report.complete && report.has(FindingKind::Superblock), "{report}");
    let repair = planned(&image);
    assert_eq!(repair.blocks().collect::<Vec<_>>(), [0], "{:?}", repair.actions);
    repair.apply(&image.device).unwrap();
    assert!(copies(&image) == copies(whole) && image.fsck().is_clean());
}
