//! A table in memory, as a volume would keep it on a device: two copies of each block, and what the last durable
//! checkpoint says of them.
#![allow(dead_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use f2fs_format::Nid;
use f2fs_format::nat::{NatBlock, RawNatEntry};
use f2fs_nat::{Nat, NatConfig, NatFlush, NatSource, SourceError};

pub(crate) const ENTRIES: u32 = Nat::ENTRIES_PER_BLOCK as u32;

/// Both copies of the table.
#[derive(Debug)]
pub(crate) struct Memory {
    copies: Mutex<[Vec<NatBlock>; 2]>,
    pub(crate) reads: AtomicU64,
    pub(crate) broken: AtomicBool,
}

impl NatSource for Memory {
    fn read_nat_block(&self, index: u32, second: bool) -> Result<Box<NatBlock>, SourceError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.broken.load(Ordering::Relaxed) {
            return Err("the device is gone".into());
        }
        Ok(Box::new(self.copies.lock().unwrap()[usize::from(second)][index as usize]))
    }
}

/// A device with a table, and the part of its checkpoint that is about the table.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) memory: Arc<Memory>,
    pub(crate) bitmap: Vec<u8>,
    pub(crate) journal: Vec<(Nid, RawNatEntry)>,
    pub(crate) next_free_nid: Nid,
}

impl Device {
    pub(crate) fn new(blocks: u32) -> Device {
        Device {
            memory: Arc::new(Memory {
                copies: Mutex::new([vec![NatBlock::ZERO; blocks as usize], vec![NatBlock::ZERO; blocks as usize]]),
                reads: AtomicU64::new(0),
                broken: AtomicBool::new(false),
            }),
            bitmap: vec![0; (blocks as usize).div_ceil(8)],
            journal: Vec::new(),
            next_free_nid: Nid(0),
        }
    }

    /// Changes an entry in both copies, behind the table's back.
    pub(crate) fn poke(&self, nid: Nid, entry: RawNatEntry) {
        for copy in &mut *self.memory.copies.lock().unwrap() {
            copy[(nid.0 / ENTRIES) as usize].entries[(nid.0 % ENTRIES) as usize] = entry;
        }
    }

    /// The entry as the durable checkpoint has it, found without the crate's help.
    pub(crate) fn durable(&self, nid: Nid) -> RawNatEntry {
        if let Some((_, entry)) = self.journal.iter().find(|(at, _)| *at == nid) {
            return *entry;
        }
        let block = (nid.0 / ENTRIES) as usize;
        let second = self.bitmap[block / 8] >> (7 - block % 8) & 1;
        self.memory.copies.lock().unwrap()[usize::from(second)][block].entries[(nid.0 % ENTRIES) as usize]
    }

    pub(crate) fn open(&self, config: NatConfig) -> Nat {
        let config = config.next_free_nid(self.next_free_nid);
        Nat::new(config, self.memory.clone(), self.bitmap.clone(), &self.journal).unwrap()
    }

    /// Writes the blocks of a flush. Not durable yet: the checkpoint still names the other copies, which must not
    /// change.
    pub(crate) fn write_blocks(&self, flush: &NatFlush) {
        for write in &flush.blocks {
            let current = self.bitmap[write.index as usize / 8] >> (7 - write.index % 8) & 1 != 0;
            assert_ne!(write.second, current, "NAT block {} would be overwritten in place", write.index);
            self.memory.copies.lock().unwrap()[usize::from(write.second)][write.index as usize] = *write.block;
        }
    }

    /// The checkpoint block is written: the flush is durable.
    pub(crate) fn commit(&mut self, nat: &Nat, flush: NatFlush) {
        self.bitmap = flush.version_bitmap;
        self.journal = flush.journal;
        self.next_free_nid = nat.next_free_nid();
        assert!(self.next_free_nid.0 < nat.max_nid());
    }

    /// A whole checkpoint.
    pub(crate) fn checkpoint(&mut self, nat: &Nat, capacity: usize) {
        let flush = nat.begin_checkpoint(capacity).unwrap();
        assert!(flush.journal.len() <= capacity);
        self.write_blocks(&flush);
        self.commit(nat, flush);
        nat.end_checkpoint();
    }
}
