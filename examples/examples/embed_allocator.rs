//! The NID allocator by itself, in a storage engine that is not a file system.
//!
//! The engine keeps records at block addresses and names them by IDs. `f2fs-nat` hands out the IDs, maps them to addresses,
//! and says what to write at a checkpoint; the engine brings the storage. The same engine runs here on a table in memory and
//! on a block device, through the same steps: allocate IDs, bind them to addresses, checkpoint, free some, crash, reopen.
//!
//! ```text
//! cargo run --release --example embed_allocator              memory
//! cargo run --release --example embed_allocator -- IMAGE     and a new file, through io_uring
//! ```

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::{Arc, Mutex};

use f2fs::device::{AlignedBuf, BlockDevice, MemoryDevice};
use f2fs::format::nat::{NatBlock, RawNatEntry};
use f2fs::format::{BlockAddr, Nid, crc};
use f2fs::nat::{Nat, NatConfig, NatFlush, NatSource, SourceError};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Blocks of one copy of the table: 29 120 IDs.
const BLOCKS: u32 = 64;
/// Entries that the engine is willing to keep in its checkpoint record.
const JOURNAL: usize = 38;

/// What a checkpoint says of the table: what `Nat::new` needs to open it again.
#[derive(Clone, Debug, Default, PartialEq)]
struct Record {
    sequence: u64,
    next_free: Nid,
    version_bitmap: Vec<u8>,
    journal: Vec<(Nid, RawNatEntry)>,
}

/// The storage that an engine brings.
trait Storage: NatSource {
    /// The last durable record.
    fn record(&self) -> Result<Record>;
    /// Writes the blocks of a flush, then, with those durable, the record.
    fn commit(&self, flush: &NatFlush, record: &Record) -> Result<()>;
}

/// A table in memory, as a test or a cache would have it.
struct Memory {
    copies: Mutex<[Vec<NatBlock>; 2]>,
    record: Mutex<Record>,
}

impl Memory {
    fn new() -> Memory {
        let copy = || vec![NatBlock::ZERO; BLOCKS as usize];
        Memory { copies: Mutex::new([copy(), copy()]), record: Mutex::new(empty()) }
    }
}

impl NatSource for Memory {
    fn read_nat_block(&self, index: u32, second: bool) -> std::result::Result<Box<NatBlock>, SourceError> {
        let copies = self.copies.lock().map_err(|_| "a thread died with the table")?;
        Ok(Box::new(copies[usize::from(second)][index as usize]))
    }
}

impl Storage for Memory {
    fn record(&self) -> Result<Record> {
        Ok(self.record.lock().map_err(|_| "a thread died with the record")?.clone())
    }

    fn commit(&self, flush: &NatFlush, record: &Record) -> Result<()> {
        let mut copies = self.copies.lock().map_err(|_| "a thread died with the table")?;
        for write in &flush.blocks {
            copies[usize::from(write.second)][write.index as usize] = *write.block;
        }
        *self.record.lock().map_err(|_| "a thread died with the record")? = record.clone();
        Ok(())
    }
}

/// A table on a block device: two places for the record, which take turns, then both copies of each block.
struct OnDevice {
    device: Arc<dyn BlockDevice>,
}

impl OnDevice {
    fn format(device: Arc<dyn BlockDevice>) -> Result<OnDevice> {
        for block in 0..2 + 2 * u64::from(BLOCKS) {
            device.write(block, AlignedBuf::new(1))?;
        }
        let table = OnDevice { device };
        table.write_record(&empty())?;
        Ok(table)
    }

    fn place(index: u32, second: bool) -> u64 {
        2 + 2 * u64::from(index) + u64::from(second)
    }

    fn write_record(&self, record: &Record) -> Result<()> {
        let mut bytes = Vec::new();
        bytes.extend(record.sequence.to_le_bytes());
        bytes.extend(record.next_free.0.to_le_bytes());
        bytes.extend((record.journal.len() as u32).to_le_bytes());
        bytes.extend(&record.version_bitmap);
        for (nid, entry) in &record.journal {
            bytes.extend(nid.0.to_le_bytes());
            bytes.push(entry.version);
            bytes.extend(entry.ino.get().to_le_bytes());
            bytes.extend(entry.block_addr.get().to_le_bytes());
        }
        bytes.resize(4092, 0);
        let sum = crc::checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        self.device.flush()?; // the blocks first
        self.device.write_fua(record.sequence % 2, AlignedBuf::from_bytes(&bytes))?;
        Ok(())
    }

    fn read_record(&self, place: u64) -> Result<Option<Record>> {
        let buf = self.device.read(place, 1)?;
        let (bytes, sum) = buf.as_bytes().split_at(4092);
        if sum != crc::checksum(bytes).to_le_bytes() {
            return Ok(None); // never written, or torn: the other one counts
        }
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let bitmap = BLOCKS as usize / 8;
        let entry = |n: usize| {
            let at = 16 + bitmap + 13 * n;
            let raw = RawNatEntry { version: bytes[at + 4], ino: word(at + 5).into(), block_addr: word(at + 9).into() };
            (Nid(word(at)), raw)
        };
        Ok(Some(Record {
            sequence: u64::from(word(0)) | u64::from(word(4)) << 32,
            next_free: Nid(word(8)),
            version_bitmap: bytes[16..16 + bitmap].to_vec(),
            journal: (0..JOURNAL.min(word(12) as usize)).map(entry).collect(),
        }))
    }
}

impl NatSource for OnDevice {
    fn read_nat_block(&self, index: u32, second: bool) -> std::result::Result<Box<NatBlock>, SourceError> {
        let buf = self.device.read(OnDevice::place(index, second), 1)?;
        Ok(Box::new(*NatBlock::read(buf.block(0))))
    }
}

impl Storage for OnDevice {
    fn record(&self) -> Result<Record> {
        let records = [self.read_record(0)?, self.read_record(1)?];
        let newest = records.into_iter().flatten().max_by_key(|record| record.sequence);
        newest.ok_or_else(|| "there is no record".into())
    }

    fn commit(&self, flush: &NatFlush, record: &Record) -> Result<()> {
        for write in &flush.blocks {
            let place = OnDevice::place(write.index, write.second);
            self.device.write(place, AlignedBuf::from_bytes(write.block.as_block()))?;
        }
        self.write_record(record)
    }
}

fn empty() -> Record {
    Record { version_bitmap: vec![0; BLOCKS as usize / 8], ..Record::default() }
}

/// The engine: the allocator, and where its table is kept.
struct Engine<S> {
    nat: Nat,
    storage: Arc<S>,
}

impl<S: Storage + 'static> Engine<S> {
    fn open(storage: Arc<S>) -> Result<Engine<S>> {
        let record = storage.record()?;
        let config = NatConfig::new(BLOCKS).next_free_nid(record.next_free);
        let nat = Nat::new(config, storage.clone(), record.version_bitmap, &record.journal)?;
        Ok(Engine { nat, storage })
    }

    /// A new record at this address.
    fn create(&self, addr: BlockAddr) -> Result<Nid> {
        let nid = self.nat.allocate()?.ok_or("all IDs are in use")?;
        self.nat.bind(nid, nid, addr)?;
        Ok(nid)
    }

    /// No other operation runs meanwhile: an engine with threads closes a gate here (`f2fs::sync::Gate`).
    fn checkpoint(&self) -> Result<(usize, usize)> {
        let flush = self.nat.begin_checkpoint(JOURNAL)?;
        let record = Record {
            sequence: self.storage.record()?.sequence + 1,
            next_free: self.nat.next_free_nid(),
            version_bitmap: flush.version_bitmap.clone(),
            journal: flush.journal.clone(),
        };
        self.storage.commit(&flush, &record)?;
        self.nat.end_checkpoint();
        Ok((flush.journal.len(), flush.blocks.len()))
    }
}

fn expect(what: &str, holds: bool) -> Result<()> {
    if holds { Ok(()) } else { Err(format!("not so: {what}").into()) }
}

fn run(name: &str, storage: impl Storage + 'static) -> Result<()> {
    println!("{name}");
    let storage = Arc::new(storage);
    let engine = Engine::open(storage.clone())?;

    // Allocate and bind, from several threads: they share no lock unless their IDs share a block of the table.
    let kept: Vec<Nid> = std::thread::scope(|scope| {
        let engine = &engine;
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || (0..500).map(|n| engine.create(BlockAddr(1000 + thread * 500 + n)).ok()).collect())
            })
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .flat_map(|ids: Vec<_>| ids.into_iter().flatten())
            .collect()
    });
    expect("2000 IDs, all different", kept.iter().collect::<BTreeSet<_>>().len() == 2000)?;
    let (journal, blocks) = engine.checkpoint()?;
    println!("  2000 records created; checkpoint: {journal} entries in the journal, {blocks} blocks of the table");

    // A few changes go to the journal alone.
    let moved = kept[7];
    engine.nat.bind(moved, moved, BlockAddr(9000))?;
    engine.nat.free(kept[8])?;
    let (journal, blocks) = engine.checkpoint()?;
    println!("  one moved, one freed;  checkpoint: {journal} entries in the journal, {blocks} blocks of the table");

    // These are not durable.
    let lost = engine.create(BlockAddr(9001))?;
    engine.nat.free(kept[9])?;
    engine.nat.bind(kept[10], kept[10], BlockAddr(9002))?;
    drop(engine);
    println!("  one created, one freed, one moved; crash");

    let engine = Engine::open(storage)?;
    expect("the move before the checkpoint is there", engine.nat.get(moved)?.addr == BlockAddr(9000))?;
    expect("the free before the checkpoint too", !engine.nat.get(kept[8])?.is_bound())?;
    expect("the create after it is not", !engine.nat.get(lost)?.is_bound())?;
    expect("nor the free", engine.nat.get(kept[9])?.is_bound())?;
    expect("nor the move", engine.nat.get(kept[10])?.addr != BlockAddr(9002))?;
    let free = engine.nat.free_nids()?;
    expect("all other IDs are free", free == u64::from(engine.nat.max_nid()) - 3 - 1999)?;
    println!("  reopened: as the last checkpoint said, {free} IDs free");
    Ok(())
}

fn main() -> Result<()> {
    run("a table in memory", Memory::new())?;
    run("a table on a block device", OnDevice::format(Arc::new(MemoryDevice::new(2 + 2 * u64::from(BLOCKS))))?)?;
    if let Some(path) = std::env::args().nth(1) {
        let bytes = (2 + 2 * u64::from(BLOCKS)) * 4096;
        let device = f2fs::uring::UringDevice::create(&path, bytes, f2fs::uring::OpenOptions::new())?;
        run(&format!("a table in {path}"), OnDevice::format(device)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_storages_survive_the_crash() {
        run("memory", Memory::new()).unwrap();
        run("device", OnDevice::format(Arc::new(MemoryDevice::new(2 + 2 * u64::from(BLOCKS)))).unwrap()).unwrap();
    }
}
