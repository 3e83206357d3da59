//! A repair that ends in the middle, as by a power cut: what it left is repaired as well as what it found.

use std::sync::Arc;

use f2fs_device::BlockDevice;
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_format::nat::RawNatEntry;
use f2fs_format::summary::Journal;
use f2fs_format::{BlockAddr, LogType, Nid};
use f2fs_sync::PlainArc;
use zerocopy::FromZeros;

use super::image::{Image, populated};
use super::kept;
use super::lost::{repaired, tree};
use super::two_losses::{lose, lose_nat};
use crate::{CheckOptions, repair};

/// Repairs that write tables, nodes and a checkpoint.
fn damaged() -> Vec<(&'static str, Image)> {
    let whole = populated();
    let damage = |change: &dyn Fn(&Image)| {
        let image = whole.copy();
        change(&image);
        image
    };
    let lose_sit = |image: &Image| {
        for second in [false, true] {
            image.edit(image.geometry.sit_block(0, second), |block| block.fill(0));
        }
    };
    vec![
        ("the NAT", damage(&lose_nat)),
        (
            "the NAT and an inode",
            damage(&|image| {
                lose(image, image.addr(whole.find("many").ino));
                lose_nat(image);
            }),
        ),
        (
            "the NAT and the SIT",
            damage(&|image| {
                lose_sit(image);
                lose_nat(image);
            }),
        ),
        // A checkpoint of a repair has no journals: what stood there is in the tables.
        (
            "an inode, and entries in the journal",
            damage(&|image| {
                let journal = Journal::from_nat(&[(Nid::ROOT, image.nat(Nid::ROOT))]).unwrap();
                image.edit_summary(image.log_summary(LogType::HotData), |summary| summary.journal = journal);
                image.edit_node(whole.find("small").ino, |node| node.inode_mut().i_links = 77.into());
                image.edit_nat(Nid::ROOT, |entry| *entry = RawNatEntry::new_zeroed());
            }),
        ),
    ]
}

fn at(block: u64) -> BlockAddr {
    BlockAddr(block as u32)
}

#[test]
fn a_repair_that_was_cut_is_repaired_as_well() {
    let whole = populated();
    let large = whole.find("large").ino;
    let before = tree(whole, large);
    for (name, found) in damaged() {
        for written in 0.. {
            let image = found.copy();
            let memory = Arc::new(image.device.snapshot());
            let device = Arc::new(FaultDevice::new(memory.clone()));
            let below: PlainArc<dyn BlockDevice> = device.clone();
            let planned = repair::plan(&below, &CheckOptions::default()).unwrap();
            device.arm(FaultRule::on_changes().after(written).for_good());
            let ended = planned.apply(&*device);
            device.disarm();
            let image = Image { device: memory.snapshot(), geometry: image.geometry };
            // No checkpoint before what it names, and a flush between them.
            let packs = u64::from(image.geometry.checkpoint_pack(0).0)..image.geometry.sit_blkaddr.0.into();
            let (of_packs, others): (Vec<_>, Vec<_>) = planned.blocks().partition(|block| packs.contains(block));
            assert!(!of_packs.is_empty() && !others.is_empty(), "{name}");
            let changed = of_packs.iter().filter(|block| image.block(at(**block)) != found.block(at(**block))).count();
            let after = written.saturating_sub(others.len() as u64 + 1);
            assert_eq!(changed as u64, after.min(of_packs.len() as u64), "{name} {written}");
            if ended.is_ok() {
                assert!(written > 3, "{name}");
                break;
            }
            let actions = repaired(&image);
            assert_eq!(image.check().counts.inodes, whole.check().counts.inodes, "{name} {written}: {actions:?}");
            assert_eq!(image.find("large").ino, large, "{name} {written}: {actions:?}");
            assert!(tree(&image, large) == before, "{name} {written}: {actions:?}");
        }
    }
}

/// Tables, an inode and a journal are mended in place, and something was synced after the checkpoint.
#[test]
fn a_repair_that_keeps_what_was_synced_goes_on_where_it_was_cut() {
    let whole = kept::synced();
    let [small, tiny, large] = ["small", "tiny", "large"].map(|path| whole.find(path).ino);
    let last = whole.find("many/a name that takes several slots, number 0699").ino;
    assert_ne!(whole.nat_block(last), whole.nat_block(small));
    kept::journal(&whole, &[(tiny, whole.nat(tiny))]);
    let found = whole.copy();
    kept::flip_nat(&found);
    let (segment, offset) = whole.geometry.locate(whole.addr(large)).unwrap();
    found.edit_nat(last, |entry| entry.ino = (entry.ino.get() ^ 2).into());
    found.edit_sit(segment, |entry| entry.valid_map[offset as usize / 8] ^= 0x80 >> (offset % 8));
    found.edit(whole.addr(large), |block| block[1000] ^= 1);
    let mut wrong = whole.nat(tiny);
    wrong.block_addr = (wrong.block_addr.get() ^ 2).into();
    kept::journal(&found, &[(tiny, wrong)]);
    let planned = kept::planned(&found);
    assert!(planned.keeps_synced() && planned.after.is_clean(), "{:?}\n{}", planned.actions, planned.before);
    let blocks: Vec<u64> = planned.blocks().collect();
    assert_eq!(blocks.len(), 5, "{:?}", planned.actions);
    // So many are written, and of the next one so many bytes.
    let outcomes = (0..blocks.len()).flat_map(|written| [0, 512, 2048, 4000].map(|bytes| (written, bytes)));
    // The pack comes last.
    let order = [&blocks[1..], &blocks[..1]].concat();
    for (written, bytes) in outcomes {
        let image = found.copy();
        for block in &order[..written] {
            image.put(at(*block), &whole.block(at(*block)));
        }
        let next = at(order[written]);
        image.edit(next, |block| block[..bytes].copy_from_slice(&whole.block(next)[..bytes]));
        let again = kept::planned(&image);
        assert!(again.is_empty() || again.keeps_synced(), "{written} {bytes}: {:?}", again.actions);
        again.apply(&image.device).unwrap();
        assert!(image.device.to_bytes() == whole.device.to_bytes(), "{written} {bytes}");
    }
    let memory = Arc::new(found.device.snapshot());
    let device = Arc::new(FaultDevice::new(memory.clone()));
    let below: PlainArc<dyn BlockDevice> = device.clone();
    let planned = repair::plan(&below, &CheckOptions::default()).unwrap();
    // Four blocks and a flush.
    device.arm(FaultRule::on_changes().after(5).for_good());
    planned.apply(&*device).unwrap_err();
    assert!(memory.block(order[4]).0 == found.block(at(order[4])), "the pack is written before the flush");
    assert!(order[..4].iter().all(|block| memory.block(*block).0 == whole.block(at(*block))));
}
