//! A sync becomes a checkpoint when roll-forward might run out of blocks: exactly then, whatever is told between
//! processors.
#![allow(clippy::unwrap_used)] // what fails here is a failed test

use std::sync::Arc;

use f2fs_device::{AlignedBuf, MemoryDevice};
use f2fs_format::LogType;
use f2fs_format::inode::mode;
use f2fs_volume::format::FormatOptions;
use f2fs_volume::tree::Slot;
use f2fs_volume::{Flight, MustCheckpoint, NewNode, Reason, Synced, Volume, VolumeOptions};

/// Blocks written between two syncs.
const STEP: u64 = 61;

#[test]
fn a_sync_is_a_checkpoint_once_roll_forward_might_run_out_of_blocks() {
    let device = Arc::new(MemoryDevice::new((128 << 20) >> 12));
    Volume::format(&*device, &FormatOptions::default()).unwrap();
    let volume = Volume::open(device, &VolumeOptions::new()).unwrap();
    let file = {
        let op = volume.begin().unwrap();
        let file = volume.nodes().create(&op, NewNode { ino: None, offset: 0, directory: false }).unwrap();
        let mut block = file.write(&op);
        block.inode_mut().i_mode = (mode::REGULAR | 0o644).into();
        block.inode_mut().i_links = 1.into();
        drop(block);
        file
    };
    let inode = NewNode { ino: None, offset: 0, directory: false };
    let other = volume.nodes().create(&volume.begin().unwrap(), inode).unwrap();
    for _ in 0..2 {
        volume.checkpoints().write(Reason::Sync).unwrap();
        let before = volume.stat().valid_blocks;
        let (mut logged, mut written) = (0, 0);
        loop {
            let op = volume.begin().unwrap();
            let slots = (0..STEP as usize).map(|index| Slot { node: other.clone(), index });
            let data = AlignedBuf::new(STEP as usize);
            let flight = Flight::begin_blocks(&op, LogType::WarmData, slots, data, STEP).unwrap();
            flight.land_slots(&op, |_, _| {}).unwrap();
            assert_eq!(volume.slots().clear(&op, &other, 0..STEP as usize, |_, _| {}).unwrap(), STEP);
            written += STEP;
            assert_eq!(volume.stat().data_blocks_written, written);
            file.write(&op).inode_mut().i_uid = (written as u32).into();
            let synced = volume.syncs().file(&op, &file).unwrap();
            if before + logged + 1 + written > volume.stat().user_blocks {
                assert_eq!(synced, Synced::Must(MustCheckpoint::Room), "{before} + {logged} + {written}");
                break;
            }
            assert_eq!(synced, Synced::Logged, "{before} + {logged} + {written}");
            logged += 1;
        }
        assert!(logged > 50, "{logged} syncs");
    }
}
