//! A sync becomes a checkpoint when roll-forward might run out of blocks: exactly then, whatever is told between processors.
#![allow(clippy::unwrap_used)] // what fails here is a failed test

use std::sync::Arc;

use f2fs_device::{AlignedBuf, MemoryDevice};
use f2fs_format::inode::mode;
use f2fs_format::summary::Summary;
use f2fs_format::{LogType, Nid};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{MustCheckpoint, NewNode, OpenOptions, Reason, Synced, Volume};

/// Blocks written between two syncs.
const STEP: u64 = 61;

#[test]
fn a_sync_is_a_checkpoint_once_roll_forward_might_run_out_of_blocks() {
    let device = Arc::new(MemoryDevice::new((128 << 20) >> 12));
    Volume::format(&*device, &FormatOptions::default()).unwrap();
    let volume = Volume::open(device, &OpenOptions::new()).unwrap();
    let file = {
        let op = volume.begin().unwrap();
        let file = volume.new_node(&op, NewNode { ino: None, offset: 0, directory: false }).unwrap();
        let mut block = file.write(&op);
        block.inode_mut().i_mode = (mode::REGULAR | 0o644).into();
        block.inode_mut().i_links = 1.into();
        drop(block);
        file
    };
    for _ in 0..2 {
        volume.checkpoint(Reason::Sync).unwrap();
        let before = volume.stat().valid_blocks;
        let (mut logged, mut written) = (0, 0);
        loop {
            let op = volume.begin().unwrap();
            volume.reserve(&op, STEP).unwrap();
            let summaries = vec![Summary::new(Nid(3), 0, 0); STEP as usize];
            let data = AlignedBuf::new(STEP as usize);
            for run in volume.write_data(&op, LogType::WarmData, &summaries, data).unwrap() {
                (0..run.len).for_each(|block| volume.free_block(&op, run.addr.offset(block)).unwrap());
            }
            written += STEP;
            assert_eq!(volume.stat().data_blocks_written, written);
            file.write(&op).inode_mut().i_uid = (written as u32).into();
            let synced = volume.sync_file(&op, &file).unwrap();
            if before + logged + written > volume.stat().user_blocks {
                assert_eq!(synced, Synced::Must(MustCheckpoint::Room), "{before} + {logged} + {written}");
                break;
            }
            assert_eq!(synced, Synced::Logged, "{before} + {logged} + {written}");
            logged += 1;
        }
        assert!(logged > 50, "{logged} syncs");
    }
}
