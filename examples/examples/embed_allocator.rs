//! A log-structured key-value store on `f2fs-nat` and `f2fs-segment` alone: no file system, no volume.
//!
//! The store has a block for each record. `f2fs-segment` says where the next block goes, which blocks are in use, and
//! which segment is worth emptying; `f2fs-nat` gives each record an ID, and maps IDs to blocks, so that a record moves
//! without anybody who knows its ID being told. The store brings the rest: what a record looks like, the index of keys,
//! and all I/O.
//!
//! ```text
//!   put, delete ──► a block from a log, the record written there, the ID bound to it, the block before given back
//!   clean       ──► records of a nearly empty segment written to another log, their IDs bound there
//!   checkpoint  ──► tables ─ flush ─ a record of 7 blocks in one of two places, in turn ─ flush
//!   open        ──► the newest checkpoint that is whole; the keys are read from the records
//! ```
//!
//! A crash leaves the last checkpoint: the tests cut the power at every write, with the writes behind the last flush
//! there, gone, and in part.
//!
//! ```text
//! cargo run --release --example embed_allocator              memory
//! cargo run --release --example embed_allocator -- IMAGE     a new file, through io_uring
//! ```
//!
//! Exit codes: those of [`f2fs_examples::program`].

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use f2fs::device::{AlignedBuf, BlockDevice, MemoryDevice};
use f2fs::format::nat::NatBlock;
use f2fs::format::sit::SitBlock;
use f2fs::format::summary::{Summary, SummaryBlock};
use f2fs::format::{BlockAddr, Geometry, LogType, Nid, crc};
use f2fs::nat::{Nat, NatConfig, NatSource, SourceError};
use f2fs::segment::{Class, LogState, SegmentConfig, SegmentError, SegmentManager, Victim, VictimPolicy};
use f2fs_examples::program;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const BLOCK: usize = 4096;
/// Segments of 2 MiB before those with records: the superblock's, which has nothing here, and the tables.
const BEFORE: u64 = 8;
/// Blocks of one copy of the table of IDs: 7280 IDs.
const NAT_BLOCKS: u32 = 16;
/// Blocks of a checkpoint record: one with numbers and bitmaps, and the summaries of the six logs.
const RECORD: usize = 7;
/// Bytes of a block of records before key and value: checksum, ID, lengths.
const HEAD: usize = 12;
/// Bytes that a key and its value may have together.
const LONGEST: usize = BLOCK - HEAD;

/// Blocks of a device for so many segments of records: six where the logs stand, two that stay free for the cleaner,
/// and more.
const fn blocks_for(segments: u64) -> u64 {
    (BEFORE + segments) * 512
}

/// Where everything is on a device.
fn areas(device: &dyn BlockDevice) -> Result<SegmentConfig> {
    let blocks = device.info().blocks;
    let segments = u32::try_from((blocks / 512).saturating_sub(BEFORE))?;
    let config = SegmentConfig::embedded(segments, 1)?.user_floor(2);
    if config.geometry.block_count > blocks {
        return Err(format!("{} blocks, the device has {blocks}", config.geometry.block_count).into());
    }
    Ok(config)
}

/// The blocks of the table of IDs, on the device.
struct Table {
    device: Arc<dyn BlockDevice>,
    geometry: Geometry,
}

impl NatSource for Table {
    fn read_nat_block(&self, index: u32, second: bool) -> std::result::Result<Box<NatBlock>, SourceError> {
        let buf = self.device.read(self.geometry.nat_block(index, second).0.into(), 1)?;
        Ok(Box::new(*NatBlock::read(buf.block(0))))
    }
}

/// The contents of a checkpoint: all that is needed to open the store.
struct Record {
    sequence: u64,
    next_free: Nid,
    nat_bitmap: Vec<u8>,
    sit_bitmap: Vec<u8>,
    logs: [LogState; 6],
}

impl Record {
    fn place(geometry: &Geometry, sequence: u64) -> u64 {
        geometry.checkpoint_pack((sequence % 2) as u32).0.into()
    }

    fn write(&self, device: &dyn BlockDevice, geometry: &Geometry) -> Result<()> {
        let mut buf = AlignedBuf::new(RECORD);
        let mut head = Vec::with_capacity(BLOCK);
        head.extend(self.sequence.to_le_bytes());
        head.extend(self.next_free.0.to_le_bytes());
        for (log, at) in self.logs.iter().zip(1..) {
            head.extend(log.position());
            buf.block_mut(at).copy_from_slice(log.summary.as_block());
        }
        for bitmap in [&self.nat_bitmap, &self.sit_bitmap] {
            head.extend((bitmap.len() as u32).to_le_bytes());
            head.extend(bitmap);
        }
        let bytes = buf.as_bytes_mut();
        bytes[4..4 + head.len()].copy_from_slice(&head);
        let sum = crc::checksum(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        device.write(Record::place(geometry, self.sequence), buf)?;
        Ok(device.flush()?)
    }

    /// The record in one of the two places; `None`: there never was one, or it is torn.
    fn read(device: &dyn BlockDevice, geometry: &Geometry, place: u64) -> Result<Option<Record>> {
        let buf = device.read(Record::place(geometry, place), RECORD)?;
        let (sum, mut rest) = buf.as_bytes().split_at(4);
        if sum != crc::checksum(rest).to_le_bytes() {
            return Ok(None);
        }
        let (sequence, next_free) = (u64::from_le_bytes(take(&mut rest)?), Nid(u32::from_le_bytes(take(&mut rest)?)));
        let mut logs = LogState::at_the_start(geometry);
        for (log, at) in logs.iter_mut().zip(1..) {
            *log = LogState::from_position(take(&mut rest)?, Box::new(*SummaryBlock::read(buf.block(at))));
        }
        let mut bitmap = || -> Result<Vec<u8>> {
            let len = u32::from_le_bytes(take(&mut rest)?) as usize;
            let (bitmap, behind) = rest.split_at_checked(len).ok_or("a bitmap longer than its record")?;
            rest = behind;
            Ok(bitmap.to_vec())
        };
        Ok(Some(Record { sequence, next_free, nat_bitmap: bitmap()?, sit_bitmap: bitmap()?, logs }))
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk().ok_or("a record that is too short")?;
    *bytes = rest;
    Ok(*taken)
}

/// A block with one record.
fn encoded(nid: Nid, key: &[u8], value: &[u8]) -> Result<AlignedBuf> {
    if key.len() + value.len() > LONGEST {
        return Err(format!("key and value have {} bytes, at most {LONGEST}", key.len() + value.len()).into());
    }
    let mut buf = AlignedBuf::new(1);
    let bytes = buf.as_bytes_mut();
    bytes[4..8].copy_from_slice(&nid.0.to_le_bytes());
    bytes[8..10].copy_from_slice(&(key.len() as u16).to_le_bytes());
    bytes[10..12].copy_from_slice(&(value.len() as u16).to_le_bytes());
    bytes[HEAD..HEAD + key.len()].copy_from_slice(key);
    bytes[HEAD + key.len()..HEAD + key.len() + value.len()].copy_from_slice(value);
    let sum = crc::checksum(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    Ok(buf)
}

/// Key and value of a block that must hold the record of this ID.
fn decoded(buf: &AlignedBuf, nid: Nid) -> Result<(&[u8], &[u8])> {
    let (sum, mut rest) = buf.as_bytes().split_at(4);
    if sum != crc::checksum(rest).to_le_bytes() || take(&mut rest)? != nid.0.to_le_bytes() {
        return Err(format!("the block of record {nid} holds another, or a damaged one").into());
    }
    let key = usize::from(u16::from_le_bytes(take(&mut rest)?));
    let value = usize::from(u16::from_le_bytes(take(&mut rest)?));
    let both = rest.get(..key + value).ok_or("a record longer than its block")?;
    Ok(both.split_at(key))
}

/// The store. Whoever shares it between threads closes a gate around `checkpoint` (`f2fs::sync::Gate`); all else of
/// both crates may be called from several at once.
struct Store {
    device: Arc<dyn BlockDevice>,
    geometry: Geometry,
    nat: Nat,
    segments: SegmentManager,
    keys: BTreeMap<Vec<u8>, Nid>,
    sequence: u64,
    /// The time of the segments: counts writes.
    now: u64,
}

impl Store {
    /// An empty store: tables of zeros, and a first checkpoint.
    fn format(device: &dyn BlockDevice) -> Result<()> {
        let geometry = areas(device)?.geometry;
        let sit = (0..geometry.sit_blocks()).map(|index| geometry.sit_block(index, false));
        let nat = (0..NAT_BLOCKS).map(|index| geometry.nat_block(index, false));
        for addr in sit.chain(nat) {
            device.write(addr.0.into(), AlignedBuf::new(1))?;
        }
        // An earlier store left this.
        device.write(Record::place(&geometry, 0), AlignedBuf::new(1))?;
        device.flush()?;
        let (nat_bitmap, sit_bitmap) = (vec![0; NAT_BLOCKS.div_ceil(8) as usize], vec![0; geometry.sit_bitmap_size()]);
        let logs = LogState::at_the_start(&geometry);
        Record { sequence: 1, next_free: Nid(0), nat_bitmap, sit_bitmap, logs }.write(device, &geometry)
    }

    /// Opens the store at its last checkpoint. Whatever was written behind it is free.
    fn open(device: Arc<dyn BlockDevice>) -> Result<Store> {
        let config = areas(&*device)?;
        let geometry = config.geometry.clone();
        let records = [Record::read(&*device, &geometry, 0)?, Record::read(&*device, &geometry, 1)?];
        let newest = records.into_iter().flatten().max_by_key(|record| record.sequence);
        let record = newest.ok_or("there is no store")?;
        let table = Table { device: device.clone(), geometry: geometry.clone() };
        let ids = NatConfig::new(NAT_BLOCKS).next_free_nid(record.next_free);
        let nat = Nat::new(ids, Arc::new(table), record.nat_bitmap, &[])?;
        let read = |addr: BlockAddr| device.read(addr.0.into(), 1).map(|buf| Box::new(*SitBlock::read(buf.block(0))));
        let segments = SegmentManager::load(config, record.sit_bitmap, record.logs, read)?;
        let mut keys = BTreeMap::new();
        for used in nat.used() {
            let (nid, entry) = used?;
            if !segments.is_valid(entry.addr) {
                return Err(format!("the block of record {nid} is free").into());
            }
            let buf = device.read(entry.addr.0.into(), 1)?;
            keys.insert(decoded(&buf, nid)?.0.to_vec(), nid);
        }
        if segments.valid_blocks() != keys.len() as u64 {
            return Err(format!("{} blocks in use for {} records", segments.valid_blocks(), keys.len()).into());
        }
        Ok(Store { device, geometry, nat, segments, keys, sequence: record.sequence, now: record.sequence })
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(nid) = self.keys.get(key) else { return Ok(None) };
        let buf = self.device.read(self.nat.get(*nid)?.addr.0.into(), 1)?;
        Ok(Some(decoded(&buf, *nid)?.1.to_vec()))
    }

    /// Writes a record to a new block, and lets its ID lead there.
    fn write(&mut self, class: Class, log: LogType, nid: Nid, buf: AlignedBuf) -> Result<()> {
        self.now += 1;
        let summary = Summary::new(nid, self.nat.get(nid)?.version, 0);
        let mut runs = Vec::with_capacity(1);
        self.segments.allocate_as(class, log, &[summary], self.now, &mut runs)?;
        let addr = runs.first().ok_or("no block")?.addr;
        let bound = match self.device.write(addr.0.into(), buf) {
            Ok(()) => self.nat.bind(nid, nid, addr).map_err(Into::into),
            Err(error) => Err(error.into()),
        };
        let freed = match &bound {
            // Not to be written over before the next checkpoint: until then a crash goes back to it.
            Ok(old) => old.addr,
            Err(_) => addr,
        };
        if freed.is_real() {
            self.segments.invalidate(freed, self.now)?;
        }
        bound.map(drop)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let known = self.keys.get(key).copied();
        let nid = match known {
            Some(nid) => nid,
            None => self.nat.allocate()?.ok_or("all IDs are in use")?,
        };
        let result = encoded(nid, key, value).and_then(|buf| {
            match self.write(Class::User, LogType::WarmData, nid, buf.clone()) {
                Err(error) if is_full(&*error) => {
                    self.make_room()?;
                    self.write(Class::User, LogType::WarmData, nid, buf)
                }
                result => result,
            }
        });
        match (&result, known) {
            (Ok(()), _) => drop(self.keys.insert(key.to_vec(), nid)),
            (Err(_), None) => self.nat.cancel(nid),
            (Err(_), Some(_)) => {}
        }
        result
    }

    /// Whether there was such a key.
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        let Some(nid) = self.keys.remove(key) else { return Ok(false) };
        let entry = self.nat.free(nid)?;
        self.segments.invalidate(entry.addr, self.now)?;
        Ok(true)
    }

    /// Empties segments until a write finds one again.
    fn make_room(&mut self) -> Result<()> {
        self.checkpoint()?;
        while self.segments.free_segments() < 4 && self.clean()? {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Moves the records out of the segment that has the fewest. It is free after the next checkpoint. False: there is
    /// none.
    fn clean(&mut self) -> Result<bool> {
        let Some(victim) = self.segments.choose_victim(VictimPolicy::Greedy, self.now) else { return Ok(false) };
        let emptied = self.empty(&victim);
        if emptied.is_err() {
            self.segments.release_victim(&victim)?;
        }
        emptied.map(|()| true)
    }

    fn empty(&mut self, victim: &Victim) -> Result<()> {
        for segment in victim.segments() {
            let valid = self.segments.segment(segment)?.valid_map;
            let summary = match self.segments.summary(segment) {
                Some(newer) => newer,
                None => {
                    let buf = self.device.read(self.geometry.summary_block(segment).0.into(), 1)?;
                    Box::new(*SummaryBlock::read(buf.block(0)))
                }
            };
            for offset in valid.runs(true).flat_map(|(start, len)| start..start + len) {
                let (nid, addr) =
                    (summary.entries[offset as usize].nid.into(), self.geometry.block_at(segment, offset));
                if self.nat.get(nid)?.addr != addr {
                    return Err(format!("block {addr} belongs to no record").into());
                }
                let buf = self.device.read(addr.0.into(), 1)?;
                self.write(Class::Cleaner, LogType::ColdData, nid, buf)?;
            }
        }
        Ok(())
    }

    /// Makes all of it durable. The order is that of the documentation of both crates.
    fn checkpoint(&mut self) -> Result<()> {
        let (segments, nat) = (self.segments.begin_checkpoint(0)?, self.nat.begin_checkpoint(0)?);
        for write in &segments.sit_blocks {
            let addr = self.geometry.sit_block(write.index, write.second);
            self.device.write(addr.0.into(), AlignedBuf::from_bytes(write.block.as_block()))?;
        }
        for (segment, summary) in &segments.summaries {
            let addr = self.geometry.summary_block(*segment);
            self.device.write(addr.0.into(), AlignedBuf::from_bytes(summary.as_block()))?;
        }
        for write in &nat.blocks {
            let addr = self.geometry.nat_block(write.index, write.second);
            self.device.write(addr.0.into(), AlignedBuf::from_bytes(write.block.as_block()))?;
        }
        self.device.flush()?; // before the record that leads there
        let record = Record {
            sequence: self.sequence + 1,
            next_free: self.nat.next_free_nid(),
            nat_bitmap: nat.version_bitmap,
            sit_bitmap: segments.sit_bitmap,
            logs: segments.logs,
        };
        record.write(&*self.device, &self.geometry)?;
        self.sequence += 1;
        self.nat.end_checkpoint();
        self.segments.end_checkpoint();
        Ok(())
    }
}

fn is_full(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(SegmentError::NoSpace { .. }))
}

fn expect(what: &str, holds: bool) -> Result<()> {
    if holds { Ok(()) } else { Err(format!("not so: {what}").into()) }
}

/// A life of the store, with more written than the device holds, and a crash at the end.
fn run(name: &str, device: &Arc<dyn BlockDevice>, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{name}")?;
    Store::format(&**device)?;
    let mut store = Store::open(device.clone())?;
    let key = |n: u32| format!("key {}", n % 3000).into_bytes();
    let mut expected = BTreeMap::new();
    for n in 0..20_000u32 {
        let value = n.to_le_bytes().repeat(1 + n as usize % 900);
        store.put(&key(n * 7), &value)?;
        expected.insert(key(n * 7), value);
        if n % 5 == 0 {
            expect("a key is deleted if it is there", store.delete(&key(n))? == expected.remove(&key(n)).is_some())?;
        }
    }
    store.checkpoint()?;
    let free = store.segments.free_segments();
    let (keys, sequence) = (expected.len(), store.sequence);
    writeln!(out, "  20,000 writes of {keys} keys, {free} segments free, {sequence} checkpoints")?;
    store.put(b"late", b"gone with the crash")?;
    store.delete(&key(7))?;
    drop(store);

    let store = Store::open(device.clone())?;
    expect("as many keys as before", store.keys.len() == expected.len())?;
    for (key, value) in &expected {
        expect("each with its value", store.get(key)?.as_ref() == Some(value))?;
    }
    writeln!(out, "  reopened after a crash: as the last checkpoint said")?;
    Ok(())
}

/// A log-structured key-value store on `f2fs-nat` and `f2fs-segment` alone.
#[derive(Debug, Parser)]
#[command(name = "embed_allocator", after_help = program::EXIT_CODES)]
struct Arguments {
    /// A new file for another store beside the one in memory, through `io_uring`.
    image: Option<PathBuf>,
}

fn main() -> ExitCode {
    program::run(lives)
}

fn lives(arguments: &Arguments, out: &mut dyn Write) -> Result<()> {
    // Before anything is done: it may be no place for a file.
    let mut image: Option<(String, Arc<dyn BlockDevice>)> = None;
    if let Some(path) = &arguments.image {
        let bytes = blocks_for(16) * BLOCK as u64;
        let device = f2fs::uring::UringDevice::create(path, bytes, f2fs::uring::OpenOptions::new())?;
        image = Some((format!("a store in {}", path.display()), device));
    }
    let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(blocks_for(16)));
    run("a store in memory", &memory, out)?;
    image.map_or(Ok(()), |(name, device)| run(&name, &device, out))
}

#[cfg(test)]
#[path = "embed_allocator/tests.rs"]
mod tests;
