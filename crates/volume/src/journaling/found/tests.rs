#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::MemoryDevice;
use f2fs_format::inode::mode;
use f2fs_journal::{Create, DeviceMedium};

use super::*;
use crate::format::FormatOptions;
use crate::journal::bases::Bases;
use crate::journal::record::{NameEntry, Writer};
use crate::{Reason, VolumeOptions};

/// The footer version of the checkpoint that the records build on.
const NOW: u64 = 0x5_0000_0009;
const BEFORE: u64 = 0x4_0000_0008;
/// Where the first lane of a journal begins.
const LANE_AT: usize = 8192;

/// A journal on a device of its own.
struct Made {
    device: PlainArc<MemoryDevice>,
    journal: Journal<SharedMedium>,
    stamp: u64,
}

impl Made {
    fn new(owner: [u8; 16]) -> Made {
        let device = PlainArc::new(MemoryDevice::new(64));
        let journal = Journal::create(medium(&device), &Create::new(Uuid(owner)).lanes(1)).unwrap();
        Made { device, journal, stamp: 0 }
    }

    fn append(&mut self, record: &[u8]) -> u64 {
        self.stamp = self.journal.append(self.stamp, &[record]).unwrap().stamp;
        self.stamp
    }

    fn recovered(self) -> (PlainArc<MemoryDevice>, Recovered<SharedMedium>) {
        let Made { device, journal, .. } = self;
        (device, Journal::open(journal.into_medium(), None).unwrap())
    }

    /// What an opening at the checkpoint [`NOW`] reads.
    fn read(self, area: JournalArea) -> Result<JournaledNodes, JournalTrouble> {
        JournaledNodes::read(&self.recovered().1, NOW, area, u64::MAX)
    }
}

fn medium(device: &PlainArc<MemoryDevice>) -> SharedMedium {
    PlainArc::new(DeviceMedium::new(device.clone()).unwrap())
}

fn node(nid: u32, ino: u32, offset: u32, fill: u8) -> Box<NodeBlock> {
    let mut block = NodeBlock::new_box();
    (block.footer.nid, block.footer.ino) = (nid.into(), ino.into());
    block.footer.set_node_offset(offset);
    block.body[3000] = fill;
    block
}

/// A new file of this name.
fn named(ino: u32, directory: u32, name: &[u8], fill: u8) -> Box<NodeBlock> {
    let mut block = node(ino, ino, 0, fill);
    let raw = block.inode_mut();
    raw.i_mode = (mode::REGULAR | 0o644).into();
    raw.i_pino = directory.into();
    raw.i_namelen = (name.len() as u32).into();
    raw.i_name[..name.len()].copy_from_slice(name);
    block
}

/// A record of whole nodes.
fn record(version: u64, nodes: &[(&NodeBlock, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, version);
    nodes.iter().for_each(|(node, marks)| writer.node(node, *marks));
    writer.finish().to_vec()
}

fn bound(directory: u32, name: &[u8], ino: Option<u32>) -> BoundName {
    BoundName { directory: Nid(directory), name: name.to_vec(), ino: ino.map(Nid) }
}

const AREA: JournalArea = JournalArea { base: NOW, next: 0 };

#[test]
fn files_come_back_in_the_order_of_their_last_records() {
    let mut made = Made::new([1; 16]);
    made.append(&record(NOW, &[(&node(9, 7, 1, 19), 0), (&named(7, 3, b"seven", 17), FSYNC | DENTRY)]));
    made.append(&record(NOW, &[(&node(5, 5, 0, 15), FSYNC)]));
    made.append(&record(NOW, &[(&node(8, 7, 2, 18), 0), (&named(7, 3, b"seven", 27), FSYNC | DENTRY)]));
    // One of names, with data.
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, NOW);
    let entry = |name: &[u8], bound| NameEntry { directory: Nid(3), name: name.to_vec(), bound };
    [entry(b"seven", None), entry(b"five", Some(Nid(5)))].iter().for_each(|entry| writer.name(entry));
    [900, 700].map(BlockAddr).into_iter().for_each(|addr| writer.block(addr));
    let data = [[5; 4096], [6; 4096]];
    let names = [writer.finish(), data.as_flattened()].concat();
    made.append(&names);

    let read = made.read(AREA).unwrap();
    assert_eq!(read.records(), 4);
    let of = |number: u32, ino: u32, offset: u32, fsync: bool, dentry: bool| ChainNode {
        addr: BlockAddr(number),
        ino: Nid(ino),
        offset,
        fsync,
        dentry,
    };
    // A file's inode is the last of its nodes.
    let chain =
        [of(0, 5, 0, true, false), of(1, 7, 2, false, false), of(2, 7, 1, false, false), of(3, 7, 0, true, true)];
    assert_eq!(read.chain(), chain);
    let fills: Vec<_> = (0..5).map(|number| Some(read.node(BlockAddr(number))?.body[3000])).collect();
    assert_eq!(fills, [Some(15), Some(18), Some(19), Some(27), None]);
    assert_eq!(read.names(), [bound(3, b"five", Some(5)), bound(3, b"seven", None)]);
    let data = [700, 800, 900].map(|addr| read.data(BlockAddr(addr)).map(|block| block[9]));
    assert_eq!(data, [Some(6), None, Some(5)]);
}

#[test]
fn the_name_of_a_new_file_comes_from_its_inode_alone() {
    let mut made = Made::new([1; 16]);
    // A node that is no inode has no name, and an inode of a file that is not new is about none.
    made.append(&record(NOW, &[(&node(9, 7, 1, 1), DENTRY), (&named(7, 3, b"old", 1), FSYNC)]));
    made.append(&record(NOW, &[(&named(6, 3, b"new", 1), FSYNC | DENTRY)]));
    assert_eq!(made.read(AREA).unwrap().names(), [bound(3, b"new", Some(6))]);
}

#[test]
fn records_of_the_checkpoint_before_stand_in_front_or_nowhere() {
    let inode = named(7, 3, b"seven", 1);
    let old = record(BEFORE, &[(&inode, FSYNC)]);
    let new = record(NOW, &[(&inode, FSYNC)]);
    let with = |records: &[&[u8]], area| {
        let mut made = Made::new([1; 16]);
        for record in records {
            made.append(record);
        }
        made.read(area).map(|read| (read.records(), read.chain().len()))
    };
    let announced = JournalArea { base: BEFORE, next: NOW };
    assert_eq!(with(&[&old, &old], announced).unwrap(), (0, 0), "the checkpoint holds them");
    assert_eq!(with(&[&old, &new, &new], announced).unwrap(), (2, 1));
    assert_eq!(with(&[&old, &new], AREA).unwrap(), (1, 1), "the header that says so was lost");
    assert_eq!(with(&[], AREA).unwrap(), (0, 0));
    for (records, area) in [(&[&old[..], &old] as &[&[u8]], AREA), (&[&new, &old], announced), (&[&new, &old], AREA)] {
        assert!(matches!(with(records, area), Err(JournalTrouble::Record { lane: 0, .. })), "{area:?}");
    }
    for garbage in [&[] as &[u8], &[7; 100], &new[..new.len() - 1]] {
        assert!(matches!(with(&[garbage], AREA), Err(JournalTrouble::Record { lane: 0, position: 0 })));
    }
}

#[test]
fn changes_are_laid_over_the_last_record_of_the_node() {
    let mut bases = Bases::default();
    let mut upon = |block: &NodeBlock, version: u64| {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, version);
        bases.begin();
        writer.node_upon(block, FSYNC, &mut bases);
        bases.settle(version - NOW + 1);
        writer.finish().to_vec()
    };
    let (whole, changed) = (named(7, 3, b"seven", 1), named(7, 3, b"seven", 2));
    let first = upon(&whole, NOW);
    let second = upon(&changed, NOW);
    assert!(second.len() < first.len());
    let read = |records: &[&[u8]]| {
        let mut made = Made::new([1; 16]);
        let stamps: Vec<_> = records.iter().map(|record| made.append(record)).collect();
        (stamps, made.read(AREA))
    };
    let (stamps, found) = read(&[&first, &second]);
    assert_eq!(stamps[0], 1, "what the change was made for");
    assert_eq!(found.unwrap().node(BlockAddr(0)).unwrap().body, changed.body);
    // Without it, and with another record of the node in between.
    let other = record(NOW, &[(&whole, FSYNC)]);
    for records in [&[&second[..]] as &[&[u8]], &[&first, &other, &second]] {
        assert!(matches!(read(records).1, Err(JournalTrouble::Record { .. })));
    }
}

fn volume() -> Volume {
    let device = PlainArc::new(MemoryDevice::new((64 << 20) >> 12));
    Volume::format(&*device, &FormatOptions::default()).unwrap();
    Volume::open(device, &VolumeOptions::new()).unwrap()
}

/// A journal of this volume with an area and records.
fn journal_of(volume: &Volume, area: JournalArea, records: &[&[u8]]) -> PlainArc<MemoryDevice> {
    let mut made = Made::new(volume.superblock().uuid);
    made.journal.set_area(&area.bytes()).unwrap();
    for record in records {
        made.append(record);
    }
    made.device
}

fn open(volume: &Volume, device: &PlainArc<MemoryDevice>) -> Result<FoundJournal, VolumeError> {
    FoundJournal::open(volume, medium(device), JournalMode::Ordered)
}

/// The volume at a checkpoint, and at the one before or behind it.
fn versions(volume: &Volume) -> (u64, u64) {
    let before = volume.footer_version();
    volume.checkpoints().write(Reason::Sync).unwrap();
    (before, volume.footer_version())
}

#[test]
fn a_journal_belongs_to_the_checkpoint_that_it_names() {
    let volume = volume();
    let (other, now) = versions(&volume);
    let inode = named(70, 3, b"file", 1);
    let (ours, others) = (record(now, &[(&inode, FSYNC)]), record(other, &[(&inode, FSYNC)]));
    for area in [JournalArea { base: now, next: 0 }, JournalArea { base: other, next: now }] {
        let found = open(&volume, &journal_of(&volume, area, &[&ours])).unwrap();
        assert_eq!(found.nodes().records(), 1);
        found.check_needed(&volume).unwrap();
    }
    let area = JournalArea { base: other, next: 0 };
    let refused = open(&volume, &journal_of(&volume, area, &[&others])).unwrap_err();
    let VolumeError::Journal(JournalTrouble::OtherCheckpoint { records: 1, base, found }) = refused else {
        panic!("{refused}");
    };
    assert_eq!((base, found), (other, now));
    // An empty one does for a volume that needs none.
    let found = open(&volume, &journal_of(&volume, area, &[])).unwrap();
    assert_eq!(found.nodes().records(), 0);
    assert!(matches!(
        found.check_needed(&volume).unwrap_err(),
        VolumeError::Journal(JournalTrouble::OtherCheckpoint { records: 0, .. })
    ));
}

#[test]
fn a_journal_that_lost_records_is_refused_whatever_it_names() {
    let volume = volume();
    let (other, now) = versions(&volume);
    for base in [other, now] {
        let inode = record(base, &[(&named(70, 3, b"file", 1), FSYNC)]);
        let device = journal_of(&volume, JournalArea { base, next: 0 }, &[&inode, &inode]);
        let mut block = device.read((LANE_AT / 4096) as u64, 1).unwrap();
        block.as_bytes_mut()[60] ^= 1;
        device.write((LANE_AT / 4096) as u64, block).unwrap();
        let refused = open(&volume, &device).unwrap_err();
        let VolumeError::Journal(JournalTrouble::Damaged { lane: 0, position: 0, offset, records: 0, behind: 1 }) =
            refused
        else {
            panic!("{refused}");
        };
        assert_eq!(offset, LANE_AT as u64);
    }
}

#[test]
fn data_for_a_block_that_is_in_use_or_none_is_refused() {
    let volume = volume();
    let geometry = volume.geometry().clone();
    let version = volume.footer_version();
    let root = volume.nat.get(geometry.root_ino).unwrap().addr;
    let with = |addr: BlockAddr| {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, version);
        writer.node(&named(70, 3, b"file", 1), FSYNC);
        writer.block(addr);
        let bytes = [writer.finish(), &[9; 4096]].concat();
        open(&volume, &journal_of(&volume, JournalArea { base: version, next: 0 }, &[&bytes]))
    };
    for addr in [root, BlockAddr(1), geometry.main_end()] {
        let refused = with(addr).unwrap_err();
        assert!(matches!(refused, VolumeError::Journal(JournalTrouble::Block { addr: at }) if at == addr), "{refused}");
    }
    let last = BlockAddr(geometry.main_end().0 - 1);
    let mut found = with(last).unwrap();
    // An opening for reading sees it in its place.
    let shown = found.shown(volume.device().clone()).unwrap();
    assert_eq!(shown.read(u64::from(last.0), 1).unwrap().as_bytes()[0], 9);
    assert_eq!(volume.device().read(u64::from(last.0), 1).unwrap().as_bytes()[0], 0);
    assert!(found.shown(volume.device().clone()).is_none(), "it was given away");
    // One for writing puts it there, if nobody has the block.
    let found = with(last).unwrap();
    let restore = || volume.journal().restore_data(found.nodes(), &[root, last]);
    assert_eq!(restore().unwrap(), 1);
    assert_eq!(volume.device().read(u64::from(last.0), 1).unwrap().as_bytes()[0], 9);
    let owner = f2fs_format::summary::Summary::new(Nid(70), 0, 0);
    volume.recovery().hold(&[last]).unwrap();
    volume.recovery().begin().unwrap();
    volume.journal().check_data(found.nodes(), &[root, last]).unwrap();
    volume.recovery().adopt_block(&volume.begin().unwrap(), last, owner).unwrap();
    assert!(matches!(volume.journal().check_data(found.nodes(), &[last]).unwrap_err(), VolumeError::Corrupt(_)));
    // Who checked it before may write it now.
    assert_eq!(restore().unwrap(), 1);
}

#[test]
fn a_journal_is_attached_once_and_builds_on_the_checkpoint() {
    let volume = volume();
    let (other, now) = versions(&volume);
    let attach = || {
        let device = journal_of(&volume, JournalArea { base: other, next: 0 }, &[]);
        volume.journal().attach(open(&volume, &device).unwrap())
    };
    assert_eq!((volume.journal().is_open(), volume.journal().usage()), (false, None));
    attach().unwrap();
    let attached = volume.attached_journal.get().unwrap();
    assert_eq!(JournalArea::read(&attached.log.area()), Some(JournalArea { base: now, next: 0 }));
    assert!(volume.journal().is_open() && volume.journal().usage().is_some() && !volume.journal().is_due());
    attached.filling.tell(0, 100);
    assert!(volume.journal().is_due());
    assert_ne!(volume.last_checkpoint().opening, 0, "no copy's records are taken for its own");
    assert!(matches!(attach().unwrap_err(), VolumeError::Journal(JournalTrouble::Attached)));
    volume.journal().retire(&volume.begin().unwrap());
    assert!(!volume.journal().is_open());
}

/// Those of an earlier checkpoint go when their space is taken back; those of this one stay until the next.
#[test]
fn records_that_are_needed_stay_when_a_journal_is_attached() {
    let volume = volume();
    let now = volume.footer_version();
    let inode = record(now, &[(&named(70, 3, b"file", 1), FSYNC)]);
    let device = journal_of(&volume, JournalArea { base: now, next: 0 }, &[&inode]);
    volume.journal().attach(open(&volume, &device).unwrap()).unwrap();
    let image = PlainArc::new(device.snapshot());
    assert_eq!(open(&volume, &image).unwrap().nodes().records(), 1);
}
