//! Access for the models to parts that users must not reach: volumes that are made once and set up in each iteration,
//! and the count of what syncs promise.

use std::sync::mpsc::channel;

use f2fs_device::{AlignedBuf, BlockDevice, MemoryDevice, Request};
use f2fs_format::BLOCK_SIZE;
use f2fs_sync::{Arc, model};

use crate::batched_count::BatchedCount;
use crate::roll_forward::room::Room;
use crate::space::Space;

/// Blocks of a device of the models: 64 MiB.
const BLOCKS: u64 = (64 << 20) / BLOCK_SIZE as u64;

/// The contents of a device.
#[derive(Debug)]
pub struct Image {
    /// The blocks that are not zero.
    blocks: Vec<(u64, Box<[u8]>)>,
}

impl Image {
    /// The contents that `make` gives an empty device. Locks of a model live in one iteration only: this is a model of
    /// its own.
    ///
    /// # Panics
    ///
    /// If `make` does.
    pub fn new(make: impl Fn(&Arc<MemoryDevice>) + Send + Sync + 'static) -> Image {
        let (sender, receiver) = channel();
        model::large(
            "image",
            0,
            || (),
            move |()| {
                let device = Arc::new(MemoryDevice::new(BLOCKS));
                make(&device);
                let read = |at| (at, device.read(at, 1).expect("it is in memory").as_bytes().into());
                let used = |(_, bytes): &(u64, Box<[u8]>)| bytes.iter().any(|byte| *byte != 0);
                let blocks: Vec<_> = (0..BLOCKS).map(read).filter(used).collect();
                sender.send(blocks).expect("the receiver waits");
            },
        );
        Image { blocks: receiver.recv().expect("the model has run") }
    }

    /// A device with that on it.
    ///
    /// # Panics
    ///
    /// Not: the device is in memory.
    #[must_use]
    pub fn device(&self) -> Arc<MemoryDevice> {
        let device = Arc::new(MemoryDevice::new(BLOCKS));
        for (at, bytes) in &self.blocks {
            let mut buf = AlignedBuf::new(1);
            buf.as_bytes_mut().copy_from_slice(bytes);
            device.execute(Request::write(*at, buf)).result.expect("it is in memory");
        }
        device
    }
}

/// The count of what roll-forward may have to take into use, on a volume with room for so many blocks.
#[derive(Debug)]
pub struct Promises {
    room: Room,
    space: Space,
    written: BatchedCount,
}

impl Promises {
    /// Room for `blocks` blocks of nodes.
    #[must_use]
    pub fn new(blocks: u64) -> Promises {
        Promises { room: Room::new(0, 0), space: Space::new(0, blocks, 0, blocks, 0), written: BatchedCount::new(1) }
    }

    /// Counts a sync of so many nodes; whether there was room.
    #[must_use]
    pub fn sync(&self, nodes: u64) -> bool {
        self.room.log(nodes, 0, &self.space, &self.written, u64::MAX)
    }
}
