//! Dirty pages on their way to the device.
//!
//! ```text
//!   dirty files, by number ─► their dirty runs, in order ─► batches of up to 2 MiB ─► one flight each ─► slots, sizes, pages clean
//! ```
//!
//! A batch has pages of as many files as fit: their blocks are taken from the log together and go out as one request,
//! and a file's lie one behind the other. While a batch is on its way the next one is put together. Nodes that lead to
//! the blocks, and the places of holes, were taken when the pages became dirty.
//!
//! A flight that fails leaves its pages dirty, and its files on the list; the error goes to the sequence of errors of
//! each.
//!
//! # Locking
//!
//! See [`page_cache`](crate::page_cache). From the collection of a batch to its landing the caller holds one operation,
//! and of each run either the range and `writing`, or the range exclusively, or the closed gate: no page of it changes.

use core::ops::Deref;
use std::collections::VecDeque;

use f2fs_device::AlignedBuf;
use f2fs_format::{BLOCK_BYTES, BlockAddr, LogType};
use f2fs_sync::{Arc, MutexGuard, PlainArc, protocol_value};
use f2fs_volume::tree::{Slot, ensure_slot};
use f2fs_volume::{Flight, Op};

use super::Core;
use crate::FsError;
use crate::content::Content;
use crate::dirty_files::note_error;
use crate::inode::Inode;
use crate::page_cache::FilePages;
use crate::ranges::RangeGuard;

/// Blocks of a batch: 2 MiB, a segment.
const BATCH: usize = 512;
/// Blocks written back in one operation beside others, about: bounds how long a checkpoint waits.
const MOST: u64 = 4096;
/// Files written back in one operation beside others at most.
const MOST_FILES: usize = 1024;
/// Batches on their way at a time.
const DEPTH: usize = 2;

/// A part of a file that is to be written back.
struct Part<'a> {
    inode: &'a Arc<Inode>,
    content: &'a Content,
    pages: &'a FilePages,
    first: u64,
    last: u64,
}

/// A part, with its locks.
struct Held<'a> {
    part: Part<'a>,
    _writing: MutexGuard<'a, ()>,
    _range: RangeGuard<'a>,
}

/// Blocks of one file in a batch.
struct Run<'a> {
    inode: &'a Arc<Inode>,
    content: &'a Content,
    pages: &'a FilePages,
    first: u64,
    len: u64,
    /// The first one's number in the batch.
    at: u64,
}

/// Pages that go out together.
#[derive(Default)]
struct Batch<'a> {
    runs: Vec<Run<'a>>,
    slots: Vec<Slot>,
}

impl<'a> Batch<'a> {
    fn push(&mut self, part: &Part<'a>, first: u64, slots: impl Iterator<Item = Slot>) {
        let at = self.slots.len();
        self.slots.extend(slots);
        let len = (self.slots.len() - at) as u64;
        match self.runs.last_mut() {
            Some(run) if run.inode.ino == part.inode.ino && run.first + run.len == first => run.len += len,
            _ => {
                let Part { inode, content, pages, .. } = *part;
                self.runs.push(Run { inode, content, pages, first, len, at: at as u64 });
            }
        }
    }
}

/// A batch on its way.
struct Sent<'a> {
    flight: Flight,
    runs: Vec<Run<'a>>,
}

/// Write-back of the page cache. Each operation is told the inode, or takes those that are on the list.
#[derive(Clone, Copy)]
pub(crate) struct WriteBack<'a>(pub(crate) &'a Core);

impl Deref for WriteBack<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        self.0
    }
}

impl WriteBack<'_> {
    /// Writes back dirty pages, of the files that became dirty first, until about `pages` pages are written; how many
    /// were tried. Files that somebody writes at the moment may be left out, unless everything is asked for.
    ///
    /// # Errors
    /// The first; the other files are written all the same.
    pub(crate) fn write_back_some(&self, pages: u64) -> Result<u64, FsError> {
        let files = self.dirty_files.front(pages);
        let (mut result, mut tried) = (Ok(()), 0);
        let mut rest = &files[..];
        while !rest.is_empty() {
            let (mut blocks, mut count) = (0, 0);
            while let Some(inode) = rest.get(count).filter(|_| blocks < MOST && count < MOST_FILES) {
                blocks += inode.pages().and_then(|pages| pages.next_dirty(0)).map_or(0, |(_, len)| len);
                count += 1;
            }
            let (group, others) = rest.split_at(count);
            rest = others;
            tried += blocks;
            let done = self.write_back_group(group);
            // Those that were left out, or have more than one operation writes.
            let done = done.and_then(|()| group.iter().try_for_each(|inode| self.write_back_file(inode)));
            result = result.and(done);
        }
        self.dirty_files.tidy(self.now());
        result.map(|()| tried)
    }

    /// Writes back dirty pages before a checkpoint closes the gate, so that little is left for the time in which it is
    /// closed. Not for one that makes room: it needs the room itself.
    pub(crate) fn write_back_ahead(&self) {
        if self.pages.is_on() && !self.volume.is_read_only() {
            // The checkpoint tries again, and tells.
            let _ = protocol_value!("cached_checkpoint_leaves_dirty", self.write_back_some(u64::MAX), Ok(0));
        }
    }

    /// Writes back all that was dirty of a file when this was called.
    pub(crate) fn write_back_file(&self, inode: &Arc<Inode>) -> Result<(), FsError> {
        let Some(pages) = inode.pages() else { return Ok(()) };
        // Pages that become dirty meanwhile are not waited for without end: in the order of the file, once through.
        let mut from = 0;
        while let Some((first, _)) = pages.next_dirty(from) {
            from = self.write_back_next(inode, first)?;
        }
        Ok(())
    }

    /// Writes back pages from block `first` on; returns how far.
    fn write_back_next(&self, inode: &Arc<Inode>, first: u64) -> Result<u64, FsError> {
        let (Some(content), Some(pages)) = (inode.content(), inode.pages()) else { return Ok(u64::MAX) };
        let _writing = protocol_value!("cached_written_back_beside_itself", Some(pages.writing.lock()), None);
        let Some((first, last)) = pages.dirty_span(first, MOST) else { return Ok(u64::MAX) };
        let _range = content.ranges.shared(first, last);
        self.write_parts_beside(&[&Part { inode, content, pages, first, last }])?;
        Ok(last.saturating_add(1))
    }

    /// Writes back the first dirty pages of some files together: of files whose locks are free, and of the first in any
    /// case.
    fn write_back_group(&self, files: &[Arc<Inode>]) -> Result<(), FsError> {
        let mut held: Vec<Held<'_>> = Vec::with_capacity(files.len());
        for inode in files {
            let (Some(content), Some(pages)) = (inode.content(), inode.pages()) else { continue };
            let first_of_all = held.is_empty();
            let writing = if first_of_all { Some(pages.writing.lock()) } else { pages.writing.try_lock() };
            let Some(writing) = writing else { continue };
            let Some((first, last)) = pages.dirty_span(0, MOST) else { continue };
            let range = if first_of_all {
                Some(content.ranges.shared(first, last))
            } else {
                content.ranges.try_shared(first, last)
            };
            let Some(range) = range else { continue };
            held.push(Held { part: Part { inode, content, pages, first, last }, _writing: writing, _range: range });
        }
        let parts: Vec<_> = held.iter().map(|held| &held.part).collect();
        self.write_parts_beside(&parts)
    }

    /// Writes back parts beside other operations.
    fn write_parts_beside(&self, parts: &[&Part<'_>]) -> Result<(), FsError> {
        if parts.iter().all(|part| !part.pages.is_dirty_in(part.first, part.last)) {
            return Ok(());
        }
        let result = self.change(|op| self.write_parts(op, parts));
        if let Err(error) = result {
            let files: Vec<_> = parts.iter().map(|part| part.inode.clone()).collect();
            let told = PlainArc::new(error);
            note_error(&files, &told);
            return Err(FsError::WriteBack(told));
        }
        Ok(())
    }

    /// Writes back the dirty blocks of `first ..= last`. The caller holds the range exclusively, and no operation.
    pub(crate) fn write_back_range(&self, inode: &Arc<Inode>, first: u64, last: u64) -> Result<(), FsError> {
        let (Some(content), Some(pages)) = (inode.content(), inode.pages()) else { return Ok(()) };
        let mut from = first;
        while let Some((at, _)) = pages.next_dirty(from).filter(|(at, _)| *at <= last) {
            let end = at.saturating_add(MOST - 1).min(last);
            self.change(|op| self.write_parts(op, &[&Part { inode, content, pages, first: at, last: end }]))?;
            from = end + 1;
        }
        Ok(())
    }

    /// The same within an operation.
    pub(crate) fn write_back_within(
        &self,
        op: &Op<'_>,
        inode: &Arc<Inode>,
        first: u64,
        last: u64,
    ) -> Result<(), FsError> {
        let (Some(content), Some(pages)) = (inode.content(), inode.pages()) else { return Ok(()) };
        if pages.is_dirty_in(first, last) {
            self.write_parts(op, &[&Part { inode, content, pages, first, last }])?;
        }
        Ok(())
    }

    /// Writes back everything, with the gate closed.
    pub(crate) fn write_back_all(&self, op: &Op<'_>) -> Result<(), FsError> {
        let files = self.dirty_files.front(u64::MAX);
        let parts: Vec<Part<'_>> = files
            .iter()
            .filter_map(|inode| {
                let (content, pages) = (inode.content()?, inode.pages()?);
                Some(Part { inode, content, pages, first: 0, last: u64::MAX })
            })
            .collect();
        let result = self.write_parts(op, &parts.iter().collect::<Vec<_>>());
        self.dirty_files.tidy(self.now());
        if let Err(error) = result {
            let told = PlainArc::new(error);
            note_error(&files, &told);
            return Err(FsError::WriteBack(told));
        }
        Ok(())
    }

    /// Writes the dirty pages of parts, a batch after the other. All batches that were sent have landed, or failed,
    /// when it returns.
    fn write_parts(&self, op: &Op<'_>, parts: &[&Part<'_>]) -> Result<(), FsError> {
        let mut flying: VecDeque<Sent<'_>> = VecDeque::new();
        let mut result = self.send_parts(op, parts, &mut flying);
        while let Some(sent) = flying.pop_front() {
            result = result.and(self.land(op, sent));
        }
        result
    }

    fn send_parts<'p>(&self, op: &Op<'_>, parts: &[&Part<'p>], flying: &mut VecDeque<Sent<'p>>) -> Result<(), FsError> {
        let mut batch = Batch::default();
        let mut log = None;
        for part in parts {
            let its = part.inode.log();
            if let Some(before) = log.replace(its).filter(|before| *before != its) {
                self.send(op, &mut batch, before, flying)?;
            }
            let mut at = part.first;
            while let Some((first, len)) = part.pages.next_dirty(at).filter(|(first, _)| *first <= part.last) {
                let end = (first + len - 1).min(part.last);
                let slot = ensure_slot(op, &part.inode.node, first)?;
                let in_node = slot.node.read().address_count(self.volume.features()) - slot.index;
                let count = ((end - first + 1) as usize).min(in_node).min(BATCH - batch.slots.len());
                let slots = (slot.index..slot.index + count).map(|index| Slot { node: slot.node.clone(), index });
                batch.push(part, first, slots);
                at = first + count as u64;
                if batch.slots.len() == BATCH {
                    self.send(op, &mut batch, its, flying)?;
                }
            }
        }
        match log {
            Some(log) => self.send(op, &mut batch, log, flying),
            None => Ok(()),
        }
    }

    fn send<'p>(
        &self,
        op: &Op<'_>,
        batch: &mut Batch<'p>,
        log: LogType,
        flying: &mut VecDeque<Sent<'p>>,
    ) -> Result<(), FsError> {
        if batch.slots.is_empty() {
            return Ok(());
        }
        let Batch { runs, slots } = core::mem::take(batch);
        let data = self.assemble(&runs, slots.len())?;
        let flight = Flight::begin_blocks(op, log, slots.into_iter(), data, 0)?;
        flying.push_back(Sent { flight, runs });
        if flying.len() > DEPTH
            && let Some(first) = flying.pop_front()
        {
            self.land(op, first)?;
        }
        Ok(())
    }

    /// Copies the pages of a batch.
    fn assemble(&self, runs: &[Run<'_>], blocks: usize) -> Result<AlignedBuf, FsError> {
        let mut data = self.volume.recycler().take_empty(blocks);
        for run in runs {
            for number in 0..run.len {
                if !self.pages.table().push_to(run.pages.key(run.first + number), &mut data) {
                    return Err(FsError::PageLost { ino: run.inode.ino, block: run.first + number });
                }
            }
        }
        Ok(data)
    }

    /// Waits for a batch: its blocks are those of the files then, and its pages clean.
    fn land(&self, op: &Op<'_>, sent: Sent<'_>) -> Result<(), FsError> {
        let Sent { flight, runs } = sent;
        // With the page of the slot locked: see the rules of the address cache.
        flight.land_slots(op, |number, addr: BlockAddr| {
            let run = &runs[runs.partition_point(|run| run.at <= number) - 1];
            run.content.cache.store(run.first + (number - run.at), addr.0);
        })?;
        for run in &runs {
            let table = self.pages.table();
            let clean = |number: &u64| table.mark_clean(run.pages.key(run.first + number));
            let filled =
                protocol_value!("cached_written_back_twice", (0..run.len).filter(clean).count() as u64, continue);
            run.pages.remove(run.first, run.len, filled);
            self.pages.give_dirty(run.len);
            self.volume.balance().sub_dirty_dentries(run.len);
            let mut block = run.inode.node.write(op);
            let raw = block.inode_mut();
            raw.add_blocks(filled);
            let end = ((run.first + run.len) * BLOCK_BYTES).min(run.content.size());
            if end > raw.i_size.get() {
                raw.i_size = end.into();
            }
        }
        Ok(())
    }

    /// Drops the dirty pages of blocks that are being freed, from block `from` of the file on, and gives back the space
    /// that was counted for them. The caller has the blocks exclusively; or the file is freed, nobody reads or writes
    /// it any more, and the caller holds `writing`.
    pub(crate) fn discard_pages(&self, op: &Op<'_>, inode: &Inode, from: u64) {
        let Some(pages) = inode.pages() else { return };
        while let Some((first, len)) = pages.next_dirty(from) {
            let key = |block: &u64| self.pages.table().remove(pages.key(*block));
            let reserved = (first..first + len).filter(key).count() as u64;
            pages.remove(first, len, reserved);
            self.pages.give_dirty(len);
            self.volume.balance().sub_dirty_dentries(len);
            self.volume.data().unreserve(op, reserved);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
