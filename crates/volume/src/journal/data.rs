//! Data that was written since the last checkpoint and may not be durable yet: the data that a record holds beside the
//! nodes that name it, if syncs do not flush the device ([`JournalMode::Journal`](super::JournalMode::Journal)).
//!
//! ```text
//!   write:   on the device ─> kept here ─> a slot names the block ─> what the slot named before is forgotten
//!   sync:    begun ─> nodes packed ─> the file's blocks collected ─> record
//! ```
//!
//! A block is kept before a node names it, and collected after the nodes were packed: so a record holds every block
//! that its nodes name, or an earlier record of the checkpoint does. A block that was displaced while a sync is under
//! way stays, since the nodes of that sync may name it.
//!
//! Of a file with more than a record takes, nothing is kept: its next sync flushes the device. So it is when the memory
//! for all files is used up.
//!
//! Short writes need not go to the device at once: they wait in front of it ([`WriteBehind`]) for its next flush, which
//! is that of a checkpoint, or of a sync of more than a record takes. A crash loses them as it loses what a device has in
//! its cache, and the records bring back what was synced. What was displaced before is never written. There are two
//! exceptions, since somebody is about to name it: what a checkpoint has frozen, or a record of names that needs the
//! flush ([`seal`](UnflushedData::seal)); and what was displaced while its file is being synced.
//!
//! # Locking
//!
//! A stripe's lock is held to move buffers in and out, and nothing is locked or waited for under it.

use f2fs_device::{Request, WriteBehind};
use f2fs_format::{BlockAddr, Nid, RawBlock};
use f2fs_segment::Displaced;
use f2fs_sync::{Budget, Mutex, PlainArc, Striped, protocol_value, stripes_here};
use rustc_hash::FxHashMap;

use super::STRIPES;

/// Blocks in a record at most: 256 KiB. A flush of the device takes about as long as storing so much in persistent
/// memory (docs/JOURNAL.md).
pub(crate) const MOST_BLOCKS: usize = 64;
/// Blocks that are kept for all files together at most: 32 MiB.
const ALL_BLOCKS: u64 = 8192;

/// The data of all files.
#[derive(Debug)]
pub(crate) struct UnflushedData {
    files: Striped<Mutex<FxHashMap<Nid, FileData>>>,
    /// Blocks of one file at most.
    most: usize,
    budget: Budget,
    /// Where short writes wait.
    behind: Option<PlainArc<WriteBehind>>,
}

/// A file's.
#[derive(Debug, Default)]
struct FileData {
    runs: Vec<KeptRun>,
    blocks: usize,
    /// Some is not kept: a sync has to flush the device.
    is_partial: bool,
    /// A sync is under way.
    is_syncing: bool,
}

/// Blocks that follow each other, as they were written.
#[derive(Debug)]
pub(crate) struct KeptRun {
    addr: BlockAddr,
    request: PlainArc<Request>,
    blocks: usize,
    /// How many of them a slot may still name.
    named: usize,
}

impl KeptRun {
    fn new(request: PlainArc<Request>) -> KeptRun {
        let blocks = request.blocks() as usize;
        KeptRun { addr: BlockAddr(request.start as u32), request, blocks, named: blocks }
    }

    /// Each block, with its address.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (BlockAddr, &RawBlock)> {
        let blocks = self.request.bufs.iter().flat_map(|buf| (0..buf.blocks()).map(|at| buf.block(at)));
        blocks.enumerate().map(|(at, block)| (self.addr.offset(at as u32), block))
    }
}

/// The data of one sync.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) runs: Vec<KeptRun>,
    pub(crate) blocks: usize,
    /// Some is missing: the device has to be flushed.
    pub(crate) is_partial: bool,
}

impl UnflushedData {
    /// For records that take so many bytes of data. Short writes wait in `behind`, if it is given.
    pub(crate) fn new(record: u64, behind: Option<PlainArc<WriteBehind>>) -> UnflushedData {
        let most = (record / size_of::<RawBlock>() as u64).min(MOST_BLOCKS as u64) as usize;
        UnflushedData {
            files: Striped::new(stripes_here(STRIPES), |_| Mutex::new(FxHashMap::default())),
            most,
            budget: Budget::new(ALL_BLOCKS),
            behind,
        }
    }

    /// Keeps data that requests of a file wrote and that no slot names yet. `is_whole`: they are all that is about to
    /// be named.
    pub(crate) fn keep(&self, ino: Nid, requests: impl Iterator<Item = PlainArc<Request>>, is_whole: bool) {
        let mut files = self.files.stripe(&ino).lock();
        let file = files.entry(ino).or_default();
        file.is_partial |= !is_whole;
        if file.is_partial {
            self.drop_runs(file);
            return;
        }
        for request in requests {
            let blocks = request.blocks() as usize;
            if file.blocks + blocks > self.most || !self.budget.try_take(blocks as u64) {
                file.is_partial = true;
                self.drop_runs(file);
                return;
            }
            file.blocks += blocks;
            file.runs.push(KeptRun::new(request));
        }
    }

    /// Lets a write of a file's data wait in front of the device. False: it has to be sent.
    pub(crate) fn defer(&self, request: &PlainArc<Request>) -> bool {
        let is_short = request.blocks() as usize <= self.most;
        self.behind.as_ref().is_some_and(|behind| is_short && behind.defer(request))
    }

    /// What waits in front of the device will be written by its next flush, whatever is displaced until then. Called
    /// with the gate closed.
    pub(crate) fn seal(&self) {
        if let Some(behind) = &self.behind {
            behind.seal();
        }
    }

    /// No slot names these blocks of a file any more.
    pub(crate) fn forget(&self, ino: Nid, displaced: &Displaced) {
        let mut files = self.files.stripe(&ino).lock();
        let stays = |file: &FileData| protocol_value!("journal_data_forgotten_early", file.is_syncing, false);
        if files.get(&ino).is_some_and(stays) {
            return;
        }
        if let Some(behind) = &self.behind {
            displaced.runs().for_each(|run| behind.forget(u64::from(run.addr.0), run.len.into()));
        }
        let Some(file) = files.get_mut(&ino) else { return };
        for run in displaced.runs() {
            let (from, to) = (run.addr.0, run.addr.0 + run.len);
            for kept in &mut file.runs {
                let (start, end) = (kept.addr.0, kept.addr.0 + kept.blocks as u32);
                kept.named = kept.named.saturating_sub(to.min(end).saturating_sub(from.max(start)) as usize);
            }
        }
        let mut forgotten = 0;
        file.runs.retain(|kept| {
            forgotten += if kept.named == 0 { kept.blocks } else { 0 };
            kept.named != 0
        });
        file.blocks -= forgotten;
        self.budget.give(forgotten as u64);
    }

    /// A sync of this file is about to pack its nodes. Syncs of one file come one after the other.
    pub(crate) fn begin(&self, ino: Nid) {
        self.files.stripe(&ino).lock().entry(ino).or_default().is_syncing = true;
    }

    /// Takes the data that is kept of a file whose nodes were packed, into an empty list.
    pub(crate) fn collect(&self, ino: Nid, into: &mut Collected) {
        into.is_partial = false;
        let mut files = self.files.stripe(&ino).lock();
        let Some(file) = files.get_mut(&ino) else { return };
        core::mem::swap(&mut file.runs, &mut into.runs);
        into.blocks = core::mem::take(&mut file.blocks);
        into.is_partial = core::mem::take(&mut file.is_partial);
        protocol_value!("journal_data_left_out", (), self.release(into));
    }

    /// The sync is over. If it left the file as it was, `collected` is still to be synced.
    pub(crate) fn end(&self, ino: Nid, collected: &mut Collected, is_synced: bool) {
        let mut files = self.files.stripe(&ino).lock();
        if let Some(file) = files.get_mut(&ino) {
            file.is_syncing = false;
            if !is_synced {
                file.is_partial |= collected.is_partial;
                file.blocks += core::mem::take(&mut collected.blocks);
                file.runs.append(&mut collected.runs);
            }
        }
        drop(files);
        self.release(collected);
    }

    /// All data is durable, or nobody needs it.
    pub(crate) fn clear(&self) {
        for stripe in self.files.iter() {
            let mut files = stripe.lock();
            files.values_mut().for_each(|file| self.drop_runs(file));
            files.clear();
        }
    }

    fn drop_runs(&self, file: &mut FileData) {
        self.budget.give(core::mem::take(&mut file.blocks) as u64);
        file.runs.clear();
    }

    fn release(&self, collected: &mut Collected) {
        self.budget.give(core::mem::take(&mut collected.blocks) as u64);
        collected.runs.clear();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
