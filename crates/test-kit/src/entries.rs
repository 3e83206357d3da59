//! Where the entries of the NAT and of the SIT stand, that single bits of them can be flipped.

use f2fs_device::BlockDevice;
use f2fs_format::bits::msb;
use f2fs_format::checkpoint::{CheckpointBlock, VersionBitmaps, flags};
use f2fs_format::summary::{ENTRIES, JOURNAL_SIZE, Journal, NatJournalEntry, SitJournalEntry, Summary};
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BlockAddr, Geometry, LogType, Nid, RawBlock, SegmentNo, nat, sit};

/// Bytes in front of the entry in one of a journal.
const KEY: usize = 4;

/// An entry, or a part of one: block and byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub block: u64,
    pub byte: usize,
    /// It stands in a journal, behind its number.
    pub journaled: bool,
}

impl Place {
    pub fn flip(self, device: &dyn BlockDevice, bit: usize) {
        let mut block = *device.read(self.block, 1).unwrap().block(0);
        block[self.byte + bit / 8] ^= 1 << (bit % 8);
        device.write_slice(self.block, &block).unwrap();
        device.flush().unwrap();
    }
}

/// The tables of the checkpoint in force, without `cp_payload`.
pub struct Tables {
    pub geometry: Geometry,
    pub checkpoint: CheckpointBlock,
    bitmaps: VersionBitmaps,
    /// The first summary block of the pack.
    summaries: BlockAddr,
    nat: Vec<Nid>,
    sit: Vec<SegmentNo>,
}

impl Tables {
    pub fn read(device: &dyn BlockDevice) -> Tables {
        let block = |addr: BlockAddr| -> RawBlock { *device.read(addr.0.into(), 1).unwrap().block(0) };
        let geometry = Geometry::from_superblock(&SuperBlock::read(&block(BlockAddr(0)))).unwrap();
        let packs = [0, 1].map(|pack| geometry.checkpoint_pack(pack));
        let valid = packs.map(|start| (start, CheckpointBlock::read(&block(start))));
        let valid = valid.into_iter().filter(|(_, checkpoint)| checkpoint.verify().is_ok());
        let (start, checkpoint) = valid.max_by_key(|(_, checkpoint)| checkpoint.header.checkpoint_ver.get()).unwrap();
        let bitmaps = VersionBitmaps::read(&checkpoint, &[], &geometry).unwrap();
        let summaries = start.offset(checkpoint.header.cp_pack_start_sum.get());
        let mut tables = Tables { geometry, checkpoint, bitmaps, summaries, nat: Vec::new(), sit: Vec::new() };
        let journal = |log| {
            let (addr, at) = tables.journal(log);
            zerocopy::FromBytes::read_from_prefix(&block(addr)[at..]).map(|(journal, _): (Journal, _)| journal).unwrap()
        };
        let (nat, sit) = (journal(LogType::HotData).nat_entries(), journal(LogType::ColdData).sit_entries());
        tables.nat = nat.unwrap().iter().map(|(nid, _)| *nid).collect();
        tables.sit = sit.unwrap().iter().map(|(segment, _)| *segment).collect();
        tables
    }

    fn journal(&self, log: LogType) -> (BlockAddr, usize) {
        let is_compact = self.checkpoint.header.ckpt_flags.get() & flags::COMPACT_SUM != 0;
        match (is_compact, log) {
            (true, LogType::HotData) => (self.summaries, 0),
            (true, _) => (self.summaries, JOURNAL_SIZE),
            (false, _) => (self.summaries.offset(u32::from(log.number())), ENTRIES * size_of::<Summary>()),
        }
    }

    /// Where a log goes on.
    pub fn log(&self, log: LogType) -> BlockAddr {
        let (header, index) = (&self.checkpoint.header, log.index() % 3);
        let (segment, offset) = if log.is_node() {
            (header.cur_node_segno[index], header.cur_node_blkoff[index])
        } else {
            (header.cur_data_segno[index], header.cur_data_blkoff[index])
        };
        self.geometry.block_at(segment.into(), offset.get().into())
    }

    /// The entry of a NID that is in force.
    pub fn nat(&self, nid: Nid) -> Place {
        if let Some(index) = self.nat.iter().position(|other| *other == nid) {
            return self.journaled(LogType::HotData, KEY + index * size_of::<NatJournalEntry>());
        }
        let index = nid.index() / nat::ENTRIES_PER_BLOCK;
        let addr = self.geometry.nat_block(index as u32, msb::test(&self.bitmaps.nat, index));
        let byte = nid.index() % nat::ENTRIES_PER_BLOCK * size_of::<nat::RawNatEntry>();
        Place { block: addr.0.into(), byte, journaled: false }
    }

    /// The entry of a segment that is in force.
    pub fn sit(&self, segment: SegmentNo) -> Place {
        if let Some(index) = self.sit.iter().position(|other| *other == segment) {
            return self.journaled(LogType::ColdData, KEY + index * size_of::<SitJournalEntry>());
        }
        let index = segment.index() / sit::ENTRIES_PER_BLOCK;
        let addr = self.geometry.sit_block(index as u32, msb::test(&self.bitmaps.sit, index));
        let byte = segment.index() % sit::ENTRIES_PER_BLOCK * size_of::<sit::RawSitEntry>();
        Place { block: addr.0.into(), byte, journaled: false }
    }

    /// The counts of both journals.
    pub fn counts(&self) -> [Place; 2] {
        [LogType::HotData, LogType::ColdData].map(|log| Place { byte: self.journal(log).1, ..self.journaled(log, 0) })
    }

    fn journaled(&self, log: LogType, at: usize) -> Place {
        let (addr, journal) = self.journal(log);
        Place { block: addr.0.into(), byte: journal + 2 + at, journaled: true }
    }
}
