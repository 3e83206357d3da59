//! Roll-forward: files that were synced after the last checkpoint are brought back (`fs/f2fs/recovery.c`).
//!
//! ```text
//!   chain ─> 1. which inodes were synced, and up to which node ─> blocks kept from being overwritten ─> new inodes adopted
//!         └> 2. in the order of the chain: attributes, name, inline data, xattrs, addresses          ─> checkpoint
//! ```
//!
//! The nodes may lie in a journal beside the volume in place of the chain: then they come from there, each as it was
//! last synced, and of all kinds, with the names that changed (`names`). Data that the journal holds is written first,
//! to the places that the nodes name.
//!
//! A node without an fsync mark counts if a later one of its inode has one, as the kernel has it. The recovered files
//! are in memory until the checkpoint; a file system that is open for reading keeps it there and writes nothing.
//!
//! A chain that contradicts itself or the checkpoint is an error, and the file system does not open: what was promised
//! cannot be kept. [`VolumeOptions::recovery`](f2fs_volume::VolumeOptions::recovery) opens it at its last checkpoint.
//!
//! One thread does this, before the file system is handed out.

mod data;
mod end;
mod inode;
mod name;
mod names;
mod passed;

use core::ops::Deref;

use std::collections::{BTreeMap, HashSet};

use f2fs_format::inode::inline;
use f2fs_format::node::NodeBlock;
use f2fs_format::path::NodeKind;
use f2fs_format::{BlockAddr, Nid};
use f2fs_volume::{BoundName, ChainNode, JournalTrouble, JournaledNodes, Volume};

use crate::FsError;
use crate::core::Core;
use crate::stat::FileKind;

pub(crate) use passed::Passed;
pub use passed::PassedOver;

/// The outcome of roll-forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Node blocks of the chain, up to the last one that a sync marked.
    pub nodes: u64,
    /// Files.
    pub files: u64,
    /// Of them, files that the checkpoint did not have.
    pub new_files: u64,
    /// Data blocks taken into use.
    pub blocks: u64,
}

/// A file to recover.
#[derive(Clone, Copy, Debug)]
struct Synced {
    /// The checkpoint does not have it.
    new: bool,
    /// Its first node with a mark, as an index of the chain.
    first: usize,
    /// The last one: nodes behind it were not synced.
    last: usize,
    /// The last inode that carries a name.
    name: Option<usize>,
}

/// Where the synced nodes lie: in the chain behind the checkpoint, or in a journal.
#[derive(Clone, Copy)]
struct Source<'a> {
    volume: &'a Volume,
    journal: Option<&'a JournaledNodes>,
}

impl Source<'_> {
    /// The synced nodes. It is an error that both places hold some.
    fn chain(self) -> Result<Vec<ChainNode>, FsError> {
        let logged = self.volume.recovery().synced_nodes()?;
        let Some(journal) = self.journal else { return Ok(logged) };
        if !logged.is_empty() {
            let (records, nodes) = (journal.records(), logged.len() as u64);
            return Err(JournalTrouble::SyncedWithout { records, nodes }.into());
        }
        Ok(journal.chain())
    }

    /// The blocks of the volume that the nodes lie in.
    fn blocks(self, chain: &[ChainNode]) -> Vec<BlockAddr> {
        if self.journal.is_some() { Vec::new() } else { chain.iter().map(|node| node.addr).collect() }
    }

    /// The names that a journal holds.
    fn names(&self) -> &[BoundName] {
        self.journal.map_or(&[], JournaledNodes::names)
    }

    fn node(self, addr: BlockAddr) -> Result<Box<NodeBlock>, FsError> {
        match self.journal {
            None => Ok(self.volume.recovery().synced_node(addr)?),
            Some(journal) => {
                let most = u64::from(u32::MAX);
                journal.node(addr).ok_or_else(|| FsError::corrupt("number of a journaled node", addr.0.into(), 0, most))
            }
        }
    }
}

/// Which files to recover.
type Plan = BTreeMap<Nid, Synced>;

/// The way back of synced files after a crash.
#[derive(Clone, Copy)]
pub(crate) struct RollForward<'a>(pub(crate) &'a Core);

impl Deref for RollForward<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        self.0
    }
}

impl RollForward<'_> {
    /// Recovers the synced nodes of the chain behind the checkpoint, or of a journal in its place. Nothing is written.
    #[cfg_attr(feature = "tracing", tracing::instrument(level = "info", name = "recover", skip_all, ret, err))]
    ///
    /// `passed`: the files that are passed over. If some are new in it afterwards, all begins anew without them, on a
    /// volume that is opened anew.
    pub(crate) fn roll_forward(
        &self,
        journal: Option<&JournaledNodes>,
        passed: &mut Passed,
    ) -> Result<RecoveryReport, FsError> {
        // A read that fails now may succeed at the next try: that is no reason to give up the synced files.
        let source = Source { volume: &self.volume, journal: journal.filter(|nodes| nodes.records() != 0) };
        self.try_roll_forward(source, passed).map_err(|error| match error.device() {
            Some(_) => error,
            None => FsError::Recovery(Box::new(error)),
        })
    }

    fn try_roll_forward(&self, source: Source<'_>, passed: &mut Passed) -> Result<RecoveryReport, FsError> {
        let chain = source.chain()?;
        let plan = match source.journal {
            Some(journal) => self.plan_journal(&chain, journal, passed)?,
            None => self.plan(&chain)?,
        };
        if plan.is_empty() && source.names().is_empty() {
            return Ok(RecoveryReport::default());
        }
        let mut blocks = source.blocks(&chain);
        self.volume.recovery().hold(&blocks)?;
        let mut named = Vec::new();
        for (_, node) in wanted(&chain, &plan) {
            blocks.clear();
            self.named_blocks(&*source.node(node.addr)?, &mut blocks);
            match self.hold(source, &blocks) {
                Ok(()) => named.append(&mut blocks),
                Err(error) => passed.over(node.ino, error)?,
            }
        }
        if passed.begins_anew() {
            return Ok(RecoveryReport::default());
        }
        self.volume.recovery().begin()?;
        let recovered = self.recover(source, &chain, &plan, passed);
        self.volume.recovery().end();
        let recovered = recovered?;
        // Nothing is written before it is known that all comes back.
        if let Some(journal) = source.journal.filter(|_| !self.volume.is_read_only() && !passed.begins_anew()) {
            self.volume.journal().restore_data(journal, &named)?;
        }
        Ok(recovered)
    }

    /// Keeps blocks that a synced node names from being overwritten. Those that the journal has data for must be free.
    fn hold(&self, source: Source<'_>, blocks: &[BlockAddr]) -> Result<(), FsError> {
        self.volume.recovery().hold(blocks)?;
        Ok(source.journal.map_or(Ok(()), |journal| self.volume.journal().check_data(journal, blocks))?)
    }

    fn plan(&self, chain: &[ChainNode]) -> Result<Plan, FsError> {
        let orphans: HashSet<Nid> = self.volume.orphans().into_iter().collect();
        let mut plan = Plan::new();
        for (index, node) in chain.iter().enumerate().filter(|(_, node)| node.fsync) {
            let named = node.offset == 0 && node.dentry;
            let known = plan.contains_key(&node.ino);
            if !known {
                let there = self.volume.recovery().has_node(node.ino)?;
                if named && there {
                    // A sync marks an inode as new only if no checkpoint has it.
                    return Err(FsError::corrupt("inode that a sync marks as new", node.ino.0.into(), 0, 0));
                }
                if !named && (!there || orphans.contains(&node.ino)) {
                    // The inode itself may come later; without it there is no file.
                    continue;
                }
            }
            let file = plan.entry(node.ino).or_insert(Synced { new: named, first: index, last: index, name: None });
            file.last = index;
            if named {
                file.name = Some(index);
            }
        }
        Ok(plan)
    }

    /// The same of a journal: a new inode comes back if a name leads to it.
    fn plan_journal(
        &self,
        chain: &[ChainNode],
        journal: &JournaledNodes,
        passed: &mut Passed,
    ) -> Result<Plan, FsError> {
        let named: HashSet<Nid> = journal.names().iter().filter_map(|name| name.ino).collect();
        let orphans: HashSet<Nid> = self.volume.orphans().into_iter().collect();
        let mut plan = Plan::new();
        for (index, node) in chain.iter().enumerate().filter(|(_, node)| node.fsync) {
            if passed.has(node.ino) {
                continue;
            }
            let there = self.volume.recovery().has_node(node.ino)?;
            if !there && !journal.is_named(node.ino) && has_links(journal, node) {
                // No record made it, and the checkpoint lost it.
                passed.over(node.ino, FsError::corrupt_inode(node.ino, "it was synced, and is not there"))?;
                continue;
            }
            if (there && orphans.contains(&node.ino)) || (!there && !named.contains(&node.ino)) {
                continue;
            }
            plan.insert(node.ino, Synced { new: !there, first: index, last: index, name: None });
        }
        Ok(plan)
    }

    /// The data blocks that a node names.
    fn named_blocks(&self, block: &NodeBlock, blocks: &mut Vec<BlockAddr>) {
        let inline = block.is_inode() && block.inode().i_inline & inline::DATA != 0;
        let direct = NodeKind::of(block.footer.node_offset()).is_some_and(NodeKind::holds_addresses);
        if inline || !(direct || block.is_inode()) {
            return;
        }
        let features = self.volume.features();
        blocks.extend(block.addresses(features).filter(|addr| addr.is_real()));
    }

    fn recover(
        &self,
        source: Source<'_>,
        chain: &[ChainNode],
        plan: &Plan,
        passed: &mut Passed,
    ) -> Result<RecoveryReport, FsError> {
        let mut report =
            RecoveryReport { nodes: chain.len() as u64, files: plan.len() as u64, ..RecoveryReport::default() };
        // All new inodes first: nothing else may be given their numbers.
        for (ino, file) in plan.iter().filter(|(_, file)| file.new) {
            let block = source.node(chain[file.first].addr)?;
            match self.change(|op| self.adopt_inode(op, *ino, &block)) {
                Ok(()) => report.new_files += 1,
                Err(error) => passed.over(*ino, error)?,
            }
        }
        let new = plan.iter().filter(|(_, file)| file.new).map(|(ino, _)| *ino).collect();
        let last = |ino| plan.get(&ino).map(|file| source.node(chain[file.last].addr)).transpose();
        let gone = self.recover_names(source.names(), &new, last, passed)?;
        for (index, node) in wanted(chain, plan).filter(|(_, node)| !gone.contains(&node.ino)) {
            match self.recover_one(source, (index, node), &plan[&node.ino], passed) {
                Ok(blocks) => report.blocks += blocks,
                Err(error) => passed.over(node.ino, error)?,
            }
        }
        Ok(report)
    }

    /// Brings one node of a file back; returns the data blocks taken into use.
    fn recover_one(
        &self,
        source: Source<'_>,
        (index, node): (usize, &ChainNode),
        file: &Synced,
        passed: &Passed,
    ) -> Result<u64, FsError> {
        let inode = self.inode(node.ino)?;
        if inode.kind != FileKind::Regular && source.journal.is_none() {
            return Err(FsError::WrongKind { operation: "recover a synced node", kind: inode.kind.name() });
        }
        let block = source.node(node.addr)?;
        if block.is_inode() {
            self.change(|op| self.recover_inode(op, &inode, &block))?;
            if source.journal.is_some() && !passed.is_allowed() {
                self.check_links(&inode, &block)?;
            }
            if file.name == Some(index) {
                self.recover_name(&inode, block.inode(), file.new)?;
            }
        }
        let blocks = self.change(|op| self.recover_node(op, &inode, &block))?;
        if index == file.last && source.journal.is_none() && !self.volume.is_read_only() {
            self.cut_behind_end(&inode)?;
        }
        Ok(blocks)
    }
}

/// Whether an inode had a name when it was last synced into a journal: one that was removed while it was open had none.
fn has_links(journal: &JournaledNodes, node: &ChainNode) -> bool {
    journal.node(node.addr).is_some_and(|block| block.is_inode() && block.inode().i_links.get() != 0)
}

/// The nodes that are to be recovered, with their indices in the chain.
fn wanted<'a>(chain: &'a [ChainNode], plan: &'a Plan) -> impl Iterator<Item = (usize, &'a ChainNode)> {
    chain.iter().enumerate().filter(|(index, node)| plan.get(&node.ino).is_some_and(|file| *index <= file.last))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
