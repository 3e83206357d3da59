//! Arbitrary damage: the check ends, does not panic, and finds whatever fsck.f2fs finds.
//!
//! `F2FS_CHECK_ROUNDS` sets the number of rounds (default 300); every tenth goes to fsck.f2fs as well.

use f2fs_device_test::Random;
use f2fs_format::checkpoint::CheckpointBlock;
use f2fs_format::node::NodeBlock;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo, inode};

use super::image::{Image, populated};
use crate::{CheckError, CheckOptions, check};

/// How a block is made believable again after a change.
#[derive(Clone, Copy)]
pub(super) enum Seal {
    Nothing,
    Superblock,
    Checkpoint,
    Node,
}

/// The blocks that the volume is described by, with more weight on those of which there are few.
pub(super) fn targets(image: &Image) -> Vec<Vec<(BlockAddr, Seal)>> {
    let plain = |addrs: Vec<BlockAddr>| addrs.into_iter().map(|addr| (addr, Seal::Nothing)).collect::<Vec<_>>();
    let pack = image.pack();
    let used: Vec<Nid> = (3..800).map(Nid).filter(|nid| image.nat(*nid).block_addr.get() != 0).collect();
    let large = image.find("large").ino;
    let tree: Vec<Nid> = image.node(large).inode().i_nid.iter().map(|nid| Nid::from(*nid)).collect();
    let dirs = ["many", "deep", "deep/er"].map(|path| image.find(path).ino);
    let dentries = dirs.iter().chain(&[Nid::ROOT]).flat_map(|dir| (0..40).map(|block| image.data(*dir, block)));
    let logs = LogType::ALL.map(|log| image.geometry.summary_block(pack.log(log).0));
    let few = [large, dirs[0], dirs[1], Nid::ROOT].into_iter().chain(tree.into_iter().filter(|nid| !nid.is_null()));
    vec![
        vec![(BlockAddr(0), Seal::Superblock)],
        vec![(pack.start, Seal::Checkpoint)],
        plain((1..pack.total() - 1).map(|block| pack.start.offset(block)).collect()),
        plain(vec![image.nat_block(Nid(3)), image.nat_block(Nid(600))]),
        plain(vec![image.sit_block(SegmentNo(0))]),
        plain((0..12).map(|segment| image.geometry.summary_block(SegmentNo(segment))).chain(logs).collect()),
        few.map(|nid| (image.addr(nid), Seal::Node)).collect(),
        used.iter().map(|nid| (image.addr(*nid), Seal::Node)).collect(),
        plain(dentries.filter(|addr| addr.is_real()).collect()),
    ]
}

fn seal(image: &Image, addr: BlockAddr, kind: Seal) {
    match kind {
        Seal::Nothing => {}
        Seal::Superblock => {
            // Both copies: a torn one is no damage.
            image.edit_superblock(0, |_| ());
            image.put(BlockAddr(1), &image.block(BlockAddr(0)));
        }
        Seal::Checkpoint => {
            let mut checkpoint = CheckpointBlock::read(&image.block(addr));
            checkpoint.seal();
            image.put(addr, checkpoint.as_block());
            let total = checkpoint.header.cp_pack_total_block_count.get();
            if (1..=512).contains(&total) {
                image.put(addr.offset(total - 1), checkpoint.as_block());
            }
        }
        Seal::Node => {
            let mut node = *NodeBlock::read(&image.block(addr));
            if node.nid() == node.ino() && inode::has_checksum(node.inode(), image.geometry.features) {
                let sb = SuperBlock::read(&image.block(BlockAddr(1)));
                let sum = inode::checksum(&node, inode::checksum_seed(&sb));
                node.inode_mut().extra_mut().i_inode_checksum = sum.into();
                image.put(addr, node.as_block());
            }
        }
    }
}

pub(super) fn damage(image: &Image, targets: &[Vec<(BlockAddr, Seal)>], random: &mut Random) -> Vec<(u32, usize, u32)> {
    let mut done = Vec::new();
    for _ in 0..=random.below_u64(3) {
        let group = random.below_u64(targets.len() as u64) as usize;
        let (addr, kind) = *random.one_of(&targets[group]);
        let at = match random.below_u64(3) {
            0 => 4 * random.below_u64(1024) as usize,
            1 => 4 * random.below_u64(100) as usize,
            _ => random.below_u64(4093) as usize,
        };
        let main = image.geometry.main_blkaddr.0;
        let random_addr = main + random.below_u64(image.geometry.main_blocks().into()) as u32;
        let random_bit = 1 << random.below_u64(32);
        image.edit(addr, |block| {
            let old = u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
            let values = [0, 1, 5, u32::MAX, u32::MAX - 1, main, random_addr, old ^ random_bit, old.wrapping_add(1)];
            let new = *random.one_of(&values);
            block[at..at + 4].copy_from_slice(&new.to_le_bytes());
            done.push((addr.0, at, new));
        });
        seal(image, addr, kind);
    }
    done
}

#[test]
fn damage_is_survived_and_not_missed() {
    let rounds = std::env::var("F2FS_CHECK_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let image = populated();
    let targets = targets(image);
    let options = CheckOptions { threads: Some(2), progress: None };
    let mut found = 0;
    for round in 0..rounds {
        let mutant = image.copy();
        let done = damage(&mutant, &targets, &mut Random::new(round));
        let verdict = check(&mutant.device, &options);
        let silent = match &verdict {
            Ok(report) => report.is_consistent(),
            Err(
                CheckError::NoSuperblock { .. } | CheckError::DeviceTooSmall { .. } | CheckError::Unsupported { .. },
            ) => false,
            Err(error) => panic!("round {round}: {done:?}: {error}"),
        };
        found += usize::from(!silent);
        if silent && (round % 10 == 0 || rounds > 300) {
            let fsck = mutant.fsck();
            assert!(fsck.is_accepted(), "round {round}: {done:?}: missed what fsck.f2fs says:\n{fsck}");
        }
    }
    assert!(found as u64 > rounds / 3, "the damage does something: {found} of {rounds}");
}

/// Every field of the headers at its extremes: numbers that others are sized by must be checked before.
#[test]
fn no_size_is_believed() {
    let image = populated();
    let pack = image.pack();
    let options = CheckOptions { threads: Some(2), progress: None };
    for (block, range) in [(BlockAddr(0), 1024..1024 + 120), (pack.start, 0..192)] {
        for at in range.step_by(4) {
            for value in [0, 1, 0x7fff_ffff, u32::MAX] {
                let mutant = image.copy();
                let copies = if block.0 == 0 { vec![BlockAddr(0), BlockAddr(1)] } else { vec![block] };
                for copy in copies {
                    mutant.edit(copy, |bytes| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes()));
                    if block.0 == 0 {
                        mutant.edit_superblock(copy.0, |_| ());
                    } else {
                        seal(&mutant, copy, Seal::Checkpoint);
                    }
                }
                // An error or a report; no panic, no allocation by a number of the image.
                let _ = check(&mutant.device, &options);
            }
        }
    }
}
