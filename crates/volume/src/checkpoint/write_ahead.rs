//! Nodes that a checkpoint writes before it closes the gate.
//!
//! ```text
//!            operation                   written ahead               freeze: nothing to do
//!   clean ──────────────────► dirty ─────────────────────► ahead ───────────────────────────────► clean
//!                               ▲                            │
//!                               └──────── operation ─────────┘
//! ```
//!
//! While operations run, dirty nodes are written in passes until few are left. What an operation changes afterwards is
//! dirty again, and belongs to the next pass or to the freeze: a node that is *ahead* when the gate closes is on the
//! device as it is. It may have been copied in the middle of an operation: that operation has ended by then, and has
//! not changed the node since.
//!
//! *Syncs* take no notice: to them a node that is ahead is one that nobody has synced, and they write it to the
//! warm-node log, or into the journal. Written ahead it stands in a segment aside, with a version that is past, where
//! roll-forward never comes: a crash before the checkpoint is durable leaves a block that is free.
//!
//! *Memory.* The pages stay in memory until the checkpoint is durable, for as long as they would without writing ahead:
//! pages that were dirty when it began, and pages that became dirty during the passes. There are at most four times as
//! many as [`VolumeOptions::dirty_nodes`](crate::VolumeOptions::dirty_nodes), of 4 KiB each: no pass begins with more than
//! twice as many, and operations wait where as many are dirty beside them.
//!
//! *Room.* Nodes that a pass has taken off the lists count as dirty until they are written: their room is kept free. A node that changes again takes a second block. None is taken where users would find none: then the rest is
//! left to the freeze.
//!
//! # Locking
//!
//! The thread that has the turn to write a checkpoint runs this, outside the gate; when the volume is closed others help
//! it, with parts of the nodes each. One page is locked at a time, and none while the device works. The mutex on the
//! progress of a pass is a leaf, and under it the brake is set.

use f2fs_device::{BlockDevice, Request};
use f2fs_format::summary::Summary;
use f2fs_nat::NatError;
use f2fs_segment::{NodeLog, Run};
use f2fs_sync::{Arc, Mutex, protocol_step, share_out};

use super::Checkpoints;
use crate::VolumeError;
use crate::brake::Brake;
use crate::node_log::{NodeLogs, node_log};
use crate::node_page::NodePage;
use crate::op::Unwinding;

/// Nodes written together.
const CHUNK: usize = if cfg!(loom) { 2 } else { 512 };
/// Passes at most. Each writes fewer nodes than the one before: operations that change more are slowed down
/// ([`Brake`]).
const PASSES: u32 = if cfg!(loom) { 1 } else { 16 };
/// So many entries of the SIT are worth a look beforehand.
const PREPARED: usize = 64;

/// How far a pass is.
struct Progress {
    /// There was room for all nodes so far.
    whole: bool,
    /// Nodes that it has passed over.
    past: u64,
    /// Nodes that were written, in this pass and those before.
    written: u64,
}

/// Operations may be slowed down until this is dropped.
struct Braked<'a>(&'a Brake);

impl Drop for Braked<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Checkpoints<'_> {
    /// Writes dirty nodes and blocks ahead, until few are left or there is no room for more, the nodes on so many
    /// threads. `above` does it with the blocks of the layer above the volume. Gives how many nodes were written. The
    /// caller has the turn to write a checkpoint. An error at a node stops the volume.
    pub(crate) fn write_ahead<E: From<VolumeError>>(
        self,
        threads: usize,
        mut above: impl FnMut() -> Result<(), E>,
    ) -> Result<u64, E> {
        let _unwinding = Unwinding::new(self.0);
        let _braked = Braked(&self.0.brake);
        let mut written = 0;
        for pass in 0..PASSES {
            if !self.0.pressure.is_worth_writing_ahead(&self.0.store) {
                break;
            }
            above()?;
            if !self.write_nodes_ahead(pass, threads, &mut written)? {
                break;
            }
        }
        if let Ok(segments) = self.0.segments.manager()
            && segments.changed_entries() >= PREPARED
        {
            segments.prepare_checkpoint();
        }
        Ok(written)
    }

    /// One pass over the nodes. False: there is no room for more.
    fn write_nodes_ahead(self, pass: u32, threads: usize, written: &mut u64) -> Result<bool, VolumeError> {
        let mut pages = self.0.store.take_for_ahead();
        // In order of inode and offset, so that a file's nodes lie together.
        pages.sort_unstable_by_key(|page| (page.ino, page.nid));
        let chunks: Vec<_> = pages.chunks(CHUNK).collect();
        let progress = Mutex::new(Progress { whole: true, past: 0, written: *written });
        share_out(chunks.len() as u32, threads, |number| self.pass_over(pass, chunks[number as usize], &progress))?;
        let progress = progress.into_inner();
        *written = progress.written;
        self.0.store.keep(pages);
        Ok(progress.whole)
    }

    /// The part of a pass that is about these nodes. An error or a panic stops the volume at once: other threads may wait
    /// for blocks in front of theirs in a zone, which are not written then.
    fn pass_over(self, pass: u32, chunk: &[Arc<NodePage>], progress: &Mutex<Progress>) -> Result<(), VolumeError> {
        let _unwinding = Unwinding::new(self.0);
        let mut written = 0;
        let room = progress.lock().whole;
        let whole = room && self.write_chunk_ahead(chunk, &mut written).inspect_err(|error| self.0.stop(error))?;
        if !whole {
            self.0.store.put_back(chunk);
        }
        self.0.store.pass_over(chunk.len() as u64);
        self.0.pressure.tell(&self.0.store, &self.0.segments);
        let mut progress = progress.lock();
        progress.whole &= whole;
        progress.past += chunk.len() as u64;
        progress.written += written;
        protocol_step!("brake_left_open", self.0.brake.adjust(pass, progress.past, self.0.store.listed()));
        Ok(())
    }

    /// Writes the dirty ones of these nodes. False: there is no room for all of them.
    fn write_chunk_ahead(self, pages: &[Arc<NodePage>], written: &mut u64) -> Result<bool, VolumeError> {
        self.0.check_writable()?;
        let mut by_log: [Vec<&NodePage>; 3] = Default::default();
        for page in pages.iter().filter(|page| page.is_to_be_written()) {
            let log = node_log(&page.block.read());
            by_log[log as usize].push(page);
        }
        let mut requests = Vec::new();
        for log in NodeLog::ALL {
            if !self.copy_ahead(log, &by_log[log as usize], &mut requests, written)? {
                // The NAT names the places of the copies, so they have to be written.
                self.send_ahead(requests)?;
                return Ok(false);
            }
        }
        self.send_ahead(requests)?;
        Ok(true)
    }

    fn send_ahead(self, requests: Vec<Request>) -> Result<(), VolumeError> {
        Ok(self.0.device.execute_all(requests)?.into_iter().try_for_each(|completion| completion.result)?)
    }

    /// Gives nodes places, and copies them into requests.
    fn copy_ahead(
        self,
        log: NodeLog,
        pages: &[&NodePage],
        requests: &mut Vec<Request>,
        written: &mut u64,
    ) -> Result<bool, VolumeError> {
        if pages.is_empty() {
            return Ok(true);
        }
        let now = self.0.clock.now();
        let mut summaries = Vec::with_capacity(pages.len());
        for page in pages {
            // Of a node that is gone the place is given back below.
            summaries.push(Summary::new(page.nid, self.0.nat.get(page.nid)?.version, 0));
        }
        let mut runs = Vec::new();
        if !self.0.segments.manager()?.allocate_aside(log, &summaries, now, &mut runs)? {
            return Ok(false);
        }
        // A version that is past: nobody takes them for synced nodes.
        let version = self.0.footer_version().wrapping_sub(1);
        let mut pages = pages.iter();
        for run in runs {
            let mut buf = self.0.recycler.take_stale(run.len as usize);
            for (at, page) in (0..run.len).zip(&mut pages) {
                let addr = run.addr.offset(at);
                let mut block = page.block.write();
                // With the page locked: whoever frees the node later finds this place in the NAT.
                let bound = page.is_to_be_written().then(|| self.0.nat.bind(page.nid, page.ino, addr));
                let old = match bound {
                    Some(Ok(old)) => old.addr,
                    // Somebody else wrote it, or freed it.
                    None | Some(Err(NatError::NotAllocated { .. })) => {
                        drop(block);
                        buf.block_mut(at as usize).fill(0);
                        self.0.segments.invalidate_run(Run { addr, len: 1 }, now)?;
                        continue;
                    }
                    Some(Err(error)) => return Err(error.into()),
                };
                NodeLogs(self.0).seal(&mut block, version, addr.offset(1), 0);
                buf.block_mut(at as usize).copy_from_slice(block.as_block());
                page.set_ahead();
                drop(block);
                *written += 1;
                if old.is_real() {
                    self.0.segments.invalidate_run(Run { addr: old, len: 1 }, now)?;
                }
            }
            requests.push(Request::write(u64::from(run.addr.0), buf));
        }
        Ok(true)
    }
}
