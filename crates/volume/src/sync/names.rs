//! A record of names: what a sync writes that a record of one file would not do for.
//!
//! ```text
//!   turn ─> gate closed: names that changed ─> where each leads now ─> their inodes, packed ─> gate open
//!        ─> (data of these files durable) ─> one record, behind all earlier ones ─> syncs go on
//! ```
//!
//! A directory, a file that was renamed, linked or unlinked, a file in a new directory: each hangs together with other
//! names and inodes that changed, and recovering one without the others would lose a file or show it twice. So the
//! record holds all names that changed since the last one of its kind, or since the checkpoint, as they are at one
//! moment; and every inode that such a name leads to, whose links changed, or in which such a name stands, if it
//! changed. Replayed on the checkpoint and the records before it, that gives the tree of that moment, whole:
//!
//! - A name that differs from the checkpoint's was changed, so it is in this record or in an earlier one, and the last
//!   one has it right.
//! - An inode that is new has no names but such that changed. So it is in one of the records, with a name that leads to
//!   it; or no name does, and it does not come back.
//! - Links are counted from the names that come and go. The inodes in the records say the same, which is checked.
//!
//! Files that are in it have what was written to them, as with a sync of their own; so a rename never comes back ahead
//! of the data.
//!
//! # Locking
//!
//! The thread that leads a group of such syncs is outside of the gate, and takes the turn, as a checkpoint does. With
//! the gate closed it copies names and nodes, and takes the stripe of each file for a moment: no sync holds one then. Then operations go on, and syncs wait until the record is durable: they
//! may build on it.

use std::collections::BTreeSet;

use f2fs_format::Nid;
use f2fs_format::inode::{self, inline};
use f2fs_format::node::{NodeBlock, XATTR_NODE_OFFSET};
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, protocol_step, protocol_value};

use crate::epoch::Writing;
use crate::journal::data::{Collected, KeptRun, MOST_BLOCKS};
use crate::journal::names::ChangedNames;
use crate::journal::record::{NameEntry, Writer};
use crate::journal::{FSYNC, SyncJournal};
use crate::node::Node;
use crate::node_log::is_indirect_offset;
use crate::node_page::NodePage;
use crate::op::Unwinding;
use crate::sync::Syncs;
use crate::synced::{MustCheckpoint, Synced};
use crate::write_stat::Count;
use crate::{JournalMode, Op, StopCause, VolumeError};

/// Bytes of names and nodes that a record holds at most: 1 MiB. More is a checkpoint: it would be read and replayed one
/// by one, and operations wait while it is put together.
const MOST_BYTES: usize = 1 << 20;

/// The names of a record, and the inodes that belong to them.
#[derive(Debug, Default)]
pub struct NameClosure {
    names: Vec<NameEntry>,
    inodes: BTreeSet<Nid>,
}

impl NameClosure {
    /// A name of a directory that changed, and the inode that it leads to now; `None`: it is gone.
    pub fn name(&mut self, directory: Nid, name: Vec<u8>, bound: Option<Nid>) {
        self.inodes.extend(bound);
        self.names.push(NameEntry { directory, name, bound });
    }

    /// An inode that goes along, as far as it changed.
    pub fn inode(&mut self, ino: Nid) {
        self.inodes.insert(ino);
    }

    /// Its inodes, by number.
    #[must_use]
    pub fn inodes(&self) -> &BTreeSet<Nid> {
        &self.inodes
    }
}

/// The content of a record that was taken with the gate closed.
#[derive(Default)]
struct Taken {
    bytes: Vec<u8>,
    /// Pages that are clean by now, and have to be synced again if the record does not become durable.
    pages: Vec<Arc<NodePage>>,
    data: Vec<(Nid, Collected)>,
    /// The nodes name data that has to be durable before.
    has_data: bool,
    /// Some of that is not kept in memory.
    is_partial: bool,
    names: u64,
}

impl Syncs<'_> {
    /// Notes that a name of a directory was added, went, or leads elsewhere. Without a journal this does nothing.
    pub fn note_name(self, op: &Op<'_>, directory: Nid, name: &[u8]) {
        op.expect_of(self.0);
        protocol_step!("journal_name_not_noted", self.0.attached_journal.note_name(directory, name));
    }

    /// Notes that a name changed of which a record cannot tell. Until the next checkpoint, syncs of names are
    /// checkpoints.
    pub fn note_foreign_name(self, op: &Op<'_>) {
        op.expect_of(self.0);
        if let Some(journal) = self.0.attached_journal.get() {
            journal.names.lose();
        }
    }

    /// The version of the names that an operation changes now.
    #[must_use]
    pub fn name_version(self) -> u64 {
        self.0.names.now()
    }

    /// Whether what changed of names at this version is durable.
    #[must_use]
    pub fn is_name_version_durable(self, version: u64) -> bool {
        self.0.names.is_durable(version)
    }

    /// Makes an inode of any kind durable in the journal, with all names that changed. `close` says where these lead
    /// now, and which other inodes belong to them; it is called with the gate closed, and false means that it could
    /// not. The caller holds no operation.
    ///
    /// # Errors
    /// [`VolumeError::Device`], [`VolumeError::Stopped`]: the volume is stopped.
    pub fn names(
        self,
        inode: &Node,
        close: impl Fn(&Op<'_>, &ChangedNames, &mut NameClosure) -> bool,
    ) -> Result<Synced, VolumeError> {
        let Some(journal) = self.0.attached_journal.get().filter(|journal| journal.is_open()) else {
            return Ok(Synced::Must(MustCheckpoint::Journal));
        };
        let write = |group: Vec<Arc<NodePage>>| {
            // Threads that wait must not find a volume that a panic left half done.
            let _unwinding = Unwinding::new(self.0);
            let written = self.write_names(journal, &group, &close).inspect_err(|error| self.0.stop(error));
            let reason = written.as_ref().err().map(ToString::to_string);
            let mut answers = vec![written];
            let other = |_| match (&answers[0], &reason) {
                (Ok(synced), _) => Ok(*synced),
                (_, reason) => {
                    Err(VolumeError::Stopped { reason: StopCause::Error(reason.clone().unwrap_or_default()) })
                }
            };
            let others: Vec<_> = (1..group.len()).map(other).collect();
            answers.extend(others);
            answers
        };
        let answer = journal.name_syncs.join(inode.page.clone(), write);
        answer.unwrap_or_else(|| Err(VolumeError::Stopped { reason: StopCause::Panic }))
    }

    fn write_names(
        self,
        journal: &SyncJournal,
        group: &[Arc<NodePage>],
        close: &impl Fn(&Op<'_>, &ChangedNames, &mut NameClosure) -> bool,
    ) -> Result<Synced, VolumeError> {
        let turn = self.0.epochs.turn();
        let mut taken = Taken::default();
        let (version, _writing): (u64, Writing<'_>);
        {
            let _closed = self.0.gate.close();
            // The checkpoint that was waited for may have failed.
            self.0.check_writable()?;
            if !journal.is_open() {
                return Ok(Synced::Must(MustCheckpoint::Journal));
            }
            let op = Op::with_gate_closed(self.0);
            if let Err(reason) = self.take_names(&op, journal, group, close, &mut taken) {
                self.give_names_back(journal, taken);
                return Ok(Synced::Must(reason));
            }
            self.0.check_writable()?;
            version = self.0.names.end();
            _writing = turn.hold_syncs();
        }
        let synced = self.append_names(journal, &mut taken)?;
        match synced {
            Synced::Logged => {
                self.0.names.settle(version);
                self.0.written.add(Count::NameRecords, 1);
                self.0.written.add(Count::SyncedNodes, taken.pages.len() as u64);
                self.end_data(journal, taken.data, true);
            }
            Synced::Must(_) => self.give_names_back(journal, taken),
        }
        Ok(synced)
    }

    /// Puts the names that changed and their inodes into a record, with the gate closed.
    fn take_names(
        self,
        op: &Op<'_>,
        journal: &SyncJournal,
        group: &[Arc<NodePage>],
        close: &impl Fn(&Op<'_>, &ChangedNames, &mut NameClosure) -> bool,
        taken: &mut Taken,
    ) -> Result<(), MustCheckpoint> {
        let changed = journal.names.take().ok_or(MustCheckpoint::Names)?;
        let mut closure = NameClosure::default();
        closure.inodes.extend(changed.inodes.iter().copied());
        closure.inodes.extend(group.iter().map(|page| page.ino));
        if !close(op, &changed, &mut closure) {
            return Err(MustCheckpoint::Names);
        }
        let mut bytes = core::mem::take(&mut taken.bytes);
        let mut writer = Writer::new(&mut bytes, self.0.footer_version());
        let mut fresh = 0;
        for ino in &closure.inodes {
            // What is not in memory did not change.
            let Some(page) = self.0.store.get(*ino).filter(|page| page.nid == page.ino) else { continue };
            journal.files.stripe(ino).lock().bases.forget(*ino);
            fresh += self.take_inode(journal, &page, &mut writer, taken)?;
            if writer.len() > MOST_BYTES {
                return Err(MustCheckpoint::Names);
            }
        }
        for entry in &closure.names {
            writer.name(entry);
            taken.names += u64::from(entry.bound.is_some());
        }
        if writer.len() > MOST_BYTES {
            return Err(MustCheckpoint::Names);
        }
        if !writer.is_empty() && !self.count_room(fresh, taken.names) {
            return Err(MustCheckpoint::Room);
        }
        let blocks: usize = taken.data.iter().map(|(_, collected)| collected.blocks).sum();
        taken.is_partial |= blocks > MOST_BLOCKS;
        if !writer.is_empty() {
            if let Some(data) = journal.data.as_ref().filter(|_| self.flushes(journal, taken)) {
                // The flush comes when operations run again, and the record names blocks that they may displace.
                protocol_step!("journal_names_seal_data", data.seal());
            }
            if !self.flushes(journal, taken) {
                let blocks = taken.data.iter().flat_map(|(_, data)| data.runs.iter().flat_map(KeptRun::blocks));
                blocks.for_each(|(addr, _)| writer.block(addr));
            }
            let _ = writer.finish();
            taken.bytes = bytes;
        }
        Ok(())
    }

    /// Adds what changed of an inode to a record; gives how many nodes are journaled for the first time.
    fn take_inode(
        self,
        journal: &SyncJournal,
        page: &Arc<NodePage>,
        writer: &mut Writer<'_>,
        taken: &mut Taken,
    ) -> Result<u64, MustCheckpoint> {
        let mut fresh = 0;
        let block = page.block.write();
        let (links, kind) = (block.inode().i_links.get(), block.inode().file_type());
        if links == 0 || page.removed.load(Ordering::Acquire) {
            // Nothing leads to it any more: it does not come back.
            return Ok(0);
        }
        let is_directory = kind == inode::mode::DIRECTORY;
        let epoch = self.0.epoch();
        let is_cut = page.unloggable.load(Ordering::Acquire) == epoch;
        let left_inline = page.left_inline.load(Ordering::Acquire) == epoch;
        if is_cut || (left_inline && !self.0.attached_journal.is_whole()) {
            return Err(MustCheckpoint::Changed);
        }
        let mut nodes = self.0.store.take_file(page.ino);
        if is_directory {
            // Its blocks and the nodes that lead to them are made anew from the names: no record ever has them.
            nodes.retain(|node| node.block.read().footer.node_offset() == XATTR_NODE_OFFSET);
        }
        let anything = !nodes.is_empty() || page.is_unsynced();
        if !anything {
            return Ok(0);
        }
        let mut first = |page: &NodePage| fresh += u64::from(!page.is_journaled());
        for node in nodes {
            {
                let block = node.block.write();
                if is_indirect_offset(block.footer.node_offset()) {
                    continue;
                }
                first(&node);
                writer.node(&block, 0);
                node.set_journaled();
            }
            taken.pages.push(node);
        }
        first(page);
        if is_directory {
            writer.node(&without_entries(&block, self.0.features()), FSYNC);
        } else {
            writer.node(&block, FSYNC);
        }
        page.set_journaled();
        taken.pages.push(page.clone());
        let raw = block.inode();
        if !is_directory && raw.i_inline & inline::DATA == 0 && raw.i_blocks.get() > 1 {
            taken.has_data = true;
            if let Some(data) = &journal.data {
                let mut collected = Collected::default();
                data.collect(page.ino, &mut collected);
                taken.is_partial |= collected.is_partial;
                taken.data.push((page.ino, collected));
            }
        }
        Ok(fresh)
    }

    /// Whether the device has to be flushed before the record.
    fn flushes(self, journal: &SyncJournal, taken: &Taken) -> bool {
        match journal.mode {
            JournalMode::Ordered => taken.has_data,
            JournalMode::Writeback => false,
            JournalMode::Journal => taken.is_partial,
        }
    }

    fn append_names(self, journal: &SyncJournal, taken: &mut Taken) -> Result<Synced, VolumeError> {
        if taken.bytes.is_empty() {
            return Ok(Synced::Logged);
        }
        let mut parts = [&[][..]; MOST_BLOCKS + 1];
        parts[0] = &taken.bytes;
        let mut used = 1;
        if self.flushes(journal, taken) {
            journal.flush(&*self.0.device)?;
        } else {
            let blocks = taken.data.iter().flat_map(|(_, data)| data.runs.iter().flat_map(KeptRun::blocks));
            for (part, (_, block)) in parts[1..].iter_mut().zip(blocks) {
                *part = block;
                used += 1;
            }
        }
        // Behind all records that were written before, and in front of all that come behind: syncs wait meanwhile.
        let in_order = || journal.log.mark().stamp();
        let mut stamp = protocol_value!("journal_names_in_no_order", in_order(), 0);
        let synced = self.append(journal, &parts[..used], &mut stamp);
        protocol_step!("journal_names_in_no_order", drop(journal.log.mark()));
        Ok(synced)
    }

    /// The record is not there: what it was to hold is still to be synced, by the checkpoint that follows.
    fn give_names_back(self, journal: &SyncJournal, taken: Taken) {
        journal.names.lose();
        for page in &taken.pages {
            self.0.store.set_dirty_again(page);
            if page.nid != page.ino {
                self.0.store.put_file(page.ino, vec![page.clone()]);
            }
        }
        self.end_data(journal, taken.data, false);
    }

    fn end_data(self, journal: &SyncJournal, taken: Vec<(Nid, Collected)>, is_synced: bool) {
        if let Some(data) = &journal.data {
            for (ino, mut collected) in taken {
                data.end(ino, &mut collected, is_synced);
            }
        }
    }
}

/// A directory's inode without its names: those are made anew.
fn without_entries(block: &NodeBlock, features: f2fs_format::feature::Features) -> Box<NodeBlock> {
    let mut bare = NodeBlock::new_box();
    *bare = *block;
    for index in 0..bare.address_count(features) {
        bare.set_address(index, f2fs_format::BlockAddr::NULL, features);
    }
    let raw = bare.inode_mut();
    if raw.i_inline & inline::DENTRY != 0 {
        raw.inline_data_mut(features).fill(0);
    }
    raw.i_nid = [0.into(); 5];
    bare
}
