//! Flights of an open volume: what they leave, whichever way they end.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod ends;
mod joins;
mod moves;
mod pieces;

use std::sync::Arc;

use f2fs_device::{AlignedBuf, MemoryDevice, Operation};
use f2fs_device_test::{Fault, FaultDevice, FaultRule, RecordingDevice};
use f2fs_format::inode::mode;
use f2fs_format::{BLOCK_BYTES, BLOCK_SIZE, LogType};

use super::*;
use crate::format::FormatOptions;
use crate::tree::{self, Place as FoundPlace, Slot};
use crate::{NewNode, VolumeOptions};

const BLOCK: usize = BLOCK_SIZE;

/// A volume on a device that fails on command, with a file.
struct Bench {
    recorded: Arc<RecordingDevice>,
    device: Arc<FaultDevice>,
    volume: Volume,
    file: Node,
}

fn new_inode(volume: &Volume) -> Node {
    let op = volume.begin().unwrap();
    let node = volume.nodes().create(&op, NewNode { ino: None, offset: 0, directory: false }).unwrap();
    let mut block = node.write(&op);
    let raw = block.inode_mut();
    (raw.i_mode, raw.i_links, raw.i_blocks) = ((mode::REGULAR | 0o644).into(), 1.into(), 1.into());
    drop(block);
    node
}

impl Bench {
    fn new() -> Bench {
        let device = MemoryDevice::new((64 << 20) >> 12);
        Volume::format(&device, &FormatOptions::default()).unwrap();
        let recorded = Arc::new(RecordingDevice::new(device));
        let device = Arc::new(FaultDevice::new(recorded.clone()));
        let volume = Volume::open(device.clone(), &VolumeOptions::new().lanes(1)).unwrap();
        let file = new_inode(&volume);
        Bench { recorded, device, volume, file }
    }

    /// Begins to write blocks full of this byte from this one on.
    fn begin(&self, op: &Op<'_>, block: u64, blocks: usize, fill: u8, next: Next) -> Flight {
        let buf = vec![fill; blocks * BLOCK];
        let piece = Piece { offset: block * BLOCK_BYTES, buf: &buf };
        let target = Target { inode: &self.file, size: u64::MAX, log: LogType::WarmData };
        Flight::begin(op, target, &[piece], next).unwrap()
    }

    fn write(&self, block: u64, blocks: usize, fill: u8) {
        let op = self.volume.begin().unwrap();
        let flight = self.begin(&op, block, blocks, fill, Next::Land);
        flight.land(&op, &self.file, |_, _| {}, |_| {}).unwrap();
    }

    fn address(&self, block: u64) -> BlockAddr {
        match tree::place_of(&self.volume, &self.file, block).unwrap() {
            FoundPlace::Slot(slot) => slot.get(&self.volume),
            FoundPlace::Hole(_) => BlockAddr::NULL,
        }
    }

    /// The content of a block of the file; zeros for a hole.
    fn read(&self, block: u64) -> Vec<u8> {
        let mut data = AlignedBuf::new(1);
        let addr = self.address(block);
        if !addr.is_null() {
            self.volume.data().read(self.file.nid(), addr, &mut data).unwrap();
            assert!(self.volume.data().is_in_use(addr).unwrap());
        }
        data.as_bytes().to_vec()
    }

    fn fills(&self, blocks: Range<u64>) -> Vec<u8> {
        blocks.map(|block| self.read(block)[BLOCK - 1]).collect()
    }

    /// What a write that failed leaves as it was: the addresses, and the counts of the volume and of the inode.
    fn state(&self, blocks: Range<u64>) -> (Vec<BlockAddr>, u64, u64, u64) {
        let stat = self.volume.stat();
        let in_segments = (0..self.volume.geometry().main_segments)
            .map(|segment| u64::from(self.volume.segment(f2fs_format::SegmentNo(segment)).unwrap().valid))
            .sum();
        let inode = self.file.read().inode().i_blocks.get();
        (blocks.map(|block| self.address(block)).collect(), stat.valid_blocks, in_segments, inode)
    }
}
