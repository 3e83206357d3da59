//! The way of inodes from the device to the check: while some are checked, the blocks of the next are on their way.
//!
//! ```text
//!  wave ──► chunks of inodes, each by one thread:
//!
//!    chunk n + 2    inode blocks asked for, by the NAT
//!    chunk n + 1    inode blocks there; what hangs on them is asked for: xattr nodes, child nodes, dentry blocks
//!    chunk n        all there: checked, group by group
//! ```
//!
//! The blocks to read ahead are foreseen from the NAT and from inodes that were not judged yet. It is a hint (see
//! [`ahead`](super::ahead)): the check asks for each block when it comes to it, in the same order and with the same
//! outcome. A block that is not there is read then.
//!
//! # Bounds
//!
//! A thread has three chunks in memory at most, of [`CHUNK`] inodes and [`MOST_BEHIND`] blocks behind them; with the
//! blocks that lie between, and are read with them, that is at most five times as much: 60 MiB. A volume on which the
//! blocks lie together takes a tenth of that.
//!
//! # Locking rules
//!
//! Threads take chunks by an atomic counter, and put what they found into the chunk's own slot.

use f2fs_format::dentry::FileType;
use f2fs_format::inode::inline;
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Nid};
use f2fs_sync::OnceLock;
use f2fs_sync::atomic::{AtomicUsize, Ordering::Relaxed};
use rayon::prelude::*;

use super::ahead::{Ahead, Coming};
use super::buffers::Buffers;
use super::error::CheckError;
use super::subject::Subject;
use super::walk::{self, Role, Task};

/// Inodes that are checked in a row, in the order in which they were found.
const GROUP: usize = 64;
/// Inodes that are read together.
const CHUNK: usize = 4 * GROUP;
/// Blocks behind the inodes of a chunk that are read ahead.
const MOST_BEHIND: usize = 768;
/// Chunks of a wave for each thread, if they are not too small then: none has much more to do than the others.
const SHARES: usize = 4;

type Found = Result<Vec<Task>, CheckError>;

/// Checks the inodes of a wave. Returns those that they name first.
pub(super) fn check(subject: &Subject<'_>, wave: &[Task]) -> Found {
    let threads = rayon::current_num_threads();
    let groups = wave.len().div_ceil(GROUP);
    let size = GROUP * groups.div_ceil(threads * SHARES).clamp(1, CHUNK / GROUP);
    let chunks: Vec<(&[Task], OnceLock<Found>)> = wave.chunks(size).map(|chunk| (chunk, OnceLock::new())).collect();
    let next = AtomicUsize::new(0);
    (0..threads.min(chunks.len())).into_par_iter().with_max_len(1).for_each(|_| {
        let take = || chunks.get(next.fetch_add(1, Relaxed));
        // Whatever fails ends the check: there is no need to begin another chunk.
        work(subject, take, || next.store(chunks.len(), Relaxed));
    });
    let found = chunks.into_iter().filter_map(|(_, found)| found.into_inner());
    Ok(found.collect::<Result<Vec<_>, CheckError>>()?.into_iter().flatten().collect())
}

/// A thread's part: chunks that `take` gives, until there is none. `stop` makes `take` give none, when the device
/// failed.
fn work<'c>(subject: &Subject<'_>, take: impl Fn() -> Option<&'c (&'c [Task], OnceLock<Found>)>, stop: impl Fn()) {
    let mut inodes: Option<(_, Coming)> = None;
    let mut behind: Option<(_, Ahead, Coming)> = None;
    let mut buffers = Buffers::default();
    loop {
        let new = take().map(|chunk| {
            let mut addrs = inode_blocks(subject, chunk.0);
            (chunk, subject.source.begin(&mut addrs, |blocks| buffers.take(blocks)))
        });
        let there = inodes.take().map(|(chunk, coming): (&(&[Task], _), Coming)| {
            let mut ahead = Ahead::default();
            coming.arrive(&mut ahead);
            let mut addrs = blocks_behind(subject, chunk.0, &ahead);
            let coming = subject.source.begin(&mut addrs, |blocks| buffers.take(blocks));
            (chunk, ahead, coming)
        });
        let ready = std::mem::replace(&mut behind, there);
        inodes = new;
        match ready {
            Some((chunk, mut ahead, coming)) => {
                coming.arrive(&mut ahead);
                let groups = chunk.0.chunks(GROUP).map(|group| walk::check_group(subject, group, &ahead));
                let found: Result<Vec<Vec<Task>>, CheckError> = groups.collect();
                if found.is_err() {
                    stop();
                }
                let _ = chunk.1.set(found.map(|found| found.into_iter().flatten().collect()));
                ahead.recycle(&mut buffers);
            }
            None if inodes.is_none() && behind.is_none() => return,
            None => {}
        }
    }
}

/// Where the NAT says that inodes are.
fn inode_blocks(subject: &Subject<'_>, tasks: &[Task]) -> Vec<BlockAddr> {
    tasks.iter().filter_map(|task| node_block(subject, task.ino, task.ino)).collect()
}

/// Where the NAT says that a node of an inode is.
fn node_block(subject: &Subject<'_>, nid: Nid, ino: Nid) -> Option<BlockAddr> {
    let entry = subject.nat.get(nid);
    let addr = BlockAddr::from(entry.block_addr);
    (Nid::from(entry.ino) == ino && subject.geometry.in_main(addr)).then_some(addr)
}

/// The blocks that inodes refer to, and that the check looks into.
fn blocks_behind(subject: &Subject<'_>, tasks: &[Task], inodes: &Ahead) -> Vec<BlockAddr> {
    let mut all = Vec::new();
    for task in tasks {
        let Some(node) = node_block(subject, task.ino, task.ino).and_then(|addr| inodes.get(addr)).map(NodeBlock::read)
        else {
            continue;
        };
        if node.nid() != task.ino || node.ino() != task.ino {
            continue;
        }
        let inode = node.inode();
        let is_directory = FileType::from_mode(inode.i_mode.get()) == FileType::Directory;
        let content_inline = inode.i_inline & if is_directory { inline::DENTRY } else { inline::DATA } != 0;
        let nodes =
            inode.i_nid.iter().filter(|_| !content_inline).chain([&inode.i_xattr_nid]).map(|nid| Nid::from(*nid));
        all.extend(nodes.filter(|nid| !nid.is_null()).filter_map(|nid| node_block(subject, nid, task.ino)));
        if is_directory && !content_inline && task.role != Role::Orphan {
            let dentries = node.addresses(subject.features).filter(|addr| subject.geometry.in_main(*addr));
            all.extend(dentries.take(MOST_BEHIND.saturating_sub(all.len())));
        }
        if all.len() >= MOST_BEHIND {
            all.truncate(MOST_BEHIND);
            break;
        }
    }
    all
}
