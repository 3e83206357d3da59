//! Several kinds of damage at once: one hides another from a repair, which sees it when the first is put right.

use f2fs_device::BlockDevice;
use f2fs_format::{BlockAddr, Nid};
use f2fs_sync::{Arc, PlainArc};

use super::image::{Image, populated};
use crate::{CheckOptions, repair};

/// The names in the root are gone, and some of those in a directory below. One repair is enough: the volume is whole
/// then, with as many inodes as before, and the next repair finds nothing to do.
#[test]
fn one_repair_is_enough() {
    let whole = populated();
    let features = whole.geometry.features;
    let blocks = |ino: Nid| -> Vec<BlockAddr> {
        whole.node(ino).addresses(features).filter(|addr| addr.is_real()).take(4).collect()
    };
    let [root, many] = [Nid::ROOT, whole.find("many").ino].map(blocks);
    for addr in many {
        for sector in [3, 6, 7] {
            let image = whole.copy();
            image.edit(root[0], |block| block.fill(0));
            image.edit(addr, |block| block[sector * 512..(sector + 1) * 512].fill(0));
            assert_is_enough(&image, &format!("block {addr}, sector {sector}"));
        }
    }
}

fn assert_is_enough(image: &Image, name: &str) {
    let device: PlainArc<dyn BlockDevice> = Arc::new(image.device.snapshot());
    let plan = || repair::plan(&device, &CheckOptions::default()).unwrap();
    let repair = plan();
    let (actions, after) = (&repair.actions, &repair.after);
    assert!(after.is_clean() && after.complete, "{name}: {after}\n{actions:?}");
    let mut backup = Vec::new();
    repair.write_backup(&*device, &mut backup).unwrap();
    repair.apply(&*device).unwrap();
    assert!(plan().is_empty(), "{name}: {:?}", plan().actions);
    assert!(after.counts.inodes >= populated().check().counts.inodes, "{name}: {actions:?}");
    // All rounds are undone at once.
    repair::undo(&*device, &backup[..]).unwrap();
    let as_before = |block: u64| device.read(block, 1).unwrap().block(0) == &image.block(BlockAddr(block as u32));
    assert!(repair.blocks().all(as_before), "{name}");
}
