//! Syncs of an open volume that nothing lies on: to the log, to a journal, and those of names.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod log;
mod names;
mod room;
mod side_by_side;
mod to_journal;

use f2fs_device::{AlignedBuf, MemoryDevice};
use f2fs_device_test::{FaultDevice, HeldDevice, RecordingDevice};
use f2fs_format::inode::mode;
use f2fs_format::node::XATTR_NODE_OFFSET;
use f2fs_format::{BLOCK_BYTES, BLOCK_SIZE, LogType, Nid};
use f2fs_journal::{Create, DeviceMedium, Journal, SharedMedium, Uuid};
use f2fs_sync::PlainArc;

use super::*;
use crate::flight::{Next, Piece, Target};
use crate::format::FormatOptions;
use crate::{FoundJournal, JournalMode, NewNode, Reason, VolumeOptions};

/// A volume whose first checkpoint is behind it, perhaps with a journal. Its devices fail on command.
struct Bench {
    recorded: PlainArc<RecordingDevice>,
    held: PlainArc<HeldDevice>,
    device: PlainArc<FaultDevice>,
    /// That of the journal, and what is in front of it.
    below: PlainArc<MemoryDevice>,
    journal: PlainArc<FaultDevice>,
    volume: Volume,
}

impl Bench {
    /// Syncs go to the log.
    fn new() -> Bench {
        Bench::open(&VolumeOptions::new(), None, 0)
    }

    /// Syncs go to a journal with a lane of so many blocks.
    fn with_journal(mode: JournalMode, blocks: u64) -> Bench {
        Bench::open(&VolumeOptions::new(), Some(mode), blocks)
    }

    fn open(options: &VolumeOptions, mode: Option<JournalMode>, blocks: u64) -> Bench {
        let device = MemoryDevice::new((128 << 20) >> 12);
        Volume::format(&device, &FormatOptions::default()).unwrap();
        let recorded = PlainArc::new(RecordingDevice::new(device));
        let held = PlainArc::new(HeldDevice::new(recorded.clone()));
        let device = PlainArc::new(FaultDevice::new(held.clone()));
        let volume = Volume::open(device.clone(), &options.clone().lanes(1)).unwrap();
        // Behind the journal's header.
        let below = PlainArc::new(MemoryDevice::new(2 + blocks.max(1)));
        let journal = PlainArc::new(FaultDevice::new(below.clone()));
        if let Some(mode) = mode {
            let medium: SharedMedium = PlainArc::new(DeviceMedium::new(journal.clone()).unwrap());
            drop(Journal::create(medium.clone(), &Create::new(Uuid(volume.superblock().uuid)).lanes(1)).unwrap());
            let found = FoundJournal::open(&volume, medium, mode).unwrap();
            volume.journal().attach(found).unwrap();
        }
        volume.checkpoints().write(Reason::Sync).unwrap();
        Bench { recorded, held, device, below, journal, volume }
    }

    fn checkpoint(&self) {
        self.volume.checkpoints().write(Reason::Sync).unwrap();
    }

    fn create(&self, new: NewNode) -> Node {
        self.volume.nodes().create(&self.volume.begin().unwrap(), new).unwrap()
    }

    /// A new inode of this kind, with this parent.
    fn inode(&self, kind: u16, parent: Nid) -> Node {
        let node = self.create(NewNode { ino: None, offset: 0, directory: kind == mode::DIRECTORY });
        self.change(&node, |raw| {
            (raw.i_mode, raw.i_links, raw.i_blocks) = ((kind | 0o644).into(), 1.into(), 1.into());
            raw.i_pino = parent.into();
        });
        node
    }

    fn file(&self) -> Node {
        self.inode(mode::REGULAR, self.root())
    }

    fn root(&self) -> Nid {
        self.volume.geometry().root_ino
    }

    fn change(&self, node: &Node, change: impl FnOnce(&mut Inode)) {
        change(node.write(&self.volume.begin().unwrap()).inode_mut());
    }

    fn flight(&self, op: &Op<'_>, file: &Node, block: u64, blocks: usize, fill: u8, next: Next) -> Flight {
        let buf = vec![fill; blocks * BLOCK_SIZE];
        let piece = Piece { offset: block * BLOCK_BYTES, buf: &buf };
        let target = Target { inode: file, size: u64::MAX, log: LogType::WarmData };
        Flight::begin(op, target, &[piece], next).unwrap()
    }

    /// Writes blocks; the inode changes only if it has to.
    fn write(&self, file: &Node, block: u64, blocks: usize, fill: u8) {
        let op = self.volume.begin().unwrap();
        let flight = self.flight(&op, file, block, blocks, fill, Next::Land);
        flight.land_if(&op, file, |_, _| {}, || false, |_| {}).unwrap();
    }

    fn sync(&self, file: &Node) -> Synced {
        self.volume.syncs().file(&self.volume.begin().unwrap(), file).unwrap()
    }

    /// What a sync of the file says, if it does not go.
    fn refused(&self, file: &Node) -> Option<MustCheckpoint> {
        match self.sync(file) {
            Synced::Logged => None,
            Synced::Must(reason) => Some(reason),
        }
    }

    fn flushes(&self) -> u64 {
        self.recorded.counts().flushes
    }

    /// Bytes of the journal that records take.
    fn used(&self) -> u64 {
        self.volume.journal().usage().unwrap().used
    }

    /// The volume after a power cut that takes all that was not flushed.
    fn cut(&self) -> Volume {
        let image = self.recorded.log().image_at(self.recorded.position(), |_, _| false);
        Volume::open(PlainArc::new(image), &VolumeOptions::new()).unwrap()
    }

    /// The volume after a power cut, and what is in its journal.
    fn cut_with_journal(&self) -> (Volume, FoundJournal) {
        let volume = self.cut();
        let medium: SharedMedium = PlainArc::new(DeviceMedium::new(PlainArc::new(self.below.snapshot())).unwrap());
        let mode = self.volume.attached_journal.get().unwrap().mode;
        let found = FoundJournal::open(&volume, medium, mode).unwrap();
        (volume, found)
    }

    /// The nodes in the journal after a power cut, with the block of each.
    fn journaled(&self) -> Vec<(Nid, u32, Box<NodeBlock>)> {
        let (_, found) = self.cut_with_journal();
        let node = |chained: crate::ChainNode| (chained.ino, chained.offset, found.nodes().node(chained.addr).unwrap());
        found.nodes().chain().into_iter().map(node).collect()
    }
}

/// The first block that has its slot in a node of its own.
const OF_A_NODE: u64 = 1000;
