//! The walk over everything that is reachable, in waves: the roots, then the inodes that their entries name, and so on.
//!
//! A wave is cut into groups; a thread resolves the inodes of a group and checks one after the other. Their blocks were
//! read ahead by the [pipeline](super::pipeline). An inode joins a wave once, when its first entry is met, so that
//! neither looped directories nor hard links are walked twice.

use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Nid};
use f2fs_sync::atomic::Ordering::Relaxed;
use rayon::prelude::*;

use super::Phase;
use super::ahead::Ahead;
use super::error::CheckError;
use super::finding::{FindingKind, Place};
use super::subject::Subject;
use super::summary::SummaryCursor;
use super::{inode, pipeline};

/// Why an inode is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The root directory.
    Root,
    /// An entry of directory `parent` names it, and gives its type.
    Linked {
        /// As it stands in the entry.
        file_type: u8,
        /// The directory.
        parent: Nid,
    },
    /// It was unlinked while open.
    Orphan,
    /// The superblock names it. Its numbers are in use, unless the checkpoint says that they are to be counted anew.
    Quota { is_counted: bool },
}

/// An inode to check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) ino: Nid,
    pub(super) role: Role,
}

/// The inodes that need no directory entry. `orphans` and `quota_files` may hold anything.
fn roots(subject: &Subject<'_>, orphans: &[Nid], quota_files: &[(Nid, Role)]) -> Vec<Task> {
    let root = subject.geometry.root_ino;
    subject.take_inode(root);
    let mut tasks = vec![Task { ino: root, role: Role::Root }];
    let all = orphans.iter().map(|ino| (*ino, Role::Orphan)).chain(quota_files.iter().copied());
    for (ino, role) in all {
        let kind = if role == Role::Orphan { FindingKind::Orphan } else { FindingKind::NodeTree };
        let possible = ino.0 > 2 && ino.0 < subject.nat.len();
        let place = Place::Nid(ino);
        subject.findings.require(possible, kind, &place, "no such inode number", ino.0.into());
        if possible && subject.take_inode(ino) {
            if role == Role::Orphan {
                subject.tally.orphans.fetch_add(1, Relaxed);
                let in_use = subject.nat.get(ino).block_addr.get() != 0;
                subject.findings.require(in_use, kind, &place, "an orphan that is free", ino.0.into());
            }
            tasks.push(Task { ino, role });
        } else if possible {
            subject.findings.require(false, kind, &place, "listed twice", ino.0.into());
        }
    }
    tasks
}

/// Walks everything.
pub(super) fn walk(subject: &Subject<'_>, orphans: &[Nid], quota_files: &[(Nid, Role)]) -> Result<(), CheckError> {
    let mut wave = roots(subject, orphans, quota_files);
    while !wave.is_empty() {
        // In the order of the blocks, so that one request reads many, in whatever order they were written.
        wave.par_sort_by_cached_key(|task| subject.nat.get(task.ino).block_addr.get());
        wave = pipeline::check(subject, &wave)?;
    }
    Ok(())
}

/// Checks some inodes of a wave, of which blocks were read ahead. Returns the inodes that their entries name first.
pub(super) fn check_group(subject: &Subject<'_>, group: &[Task], ahead: &Ahead) -> Result<Vec<Task>, CheckError> {
    let mut cursor = SummaryCursor::default();
    let mut found: Vec<(Task, BlockAddr)> = Vec::with_capacity(group.len());
    for task in group {
        let place = Place::Nid(task.ino);
        if let Some(addr) = subject.resolve(task.ino, task.ino, &place, &mut cursor)? {
            found.push((*task, addr));
        }
    }
    let addrs: Vec<BlockAddr> = found.iter().map(|(_, addr)| *addr).collect();
    let blocks = subject.source.blocks_behind(&addrs, ahead)?;
    let mut next = Vec::new();
    for ((task, addr), block) in found.iter().zip(blocks.iter()) {
        next.extend(inode::check((subject, ahead), task, *addr, NodeBlock::read(block))?);
    }
    subject.report_progress(Phase::Tree, subject.tally.nodes.load(Relaxed), subject.expected_nodes);
    Ok(next)
}
