//! What lies behind the end of a recovered file.
//!
//! The kernel syncs a file that was cut by its inode alone: the nodes that were cut off it are no part of the chain, and
//! the checkpoint still has them. It leaves them to the file, whose old content then comes back when it grows. Here they
//! are freed, if the volume is written. Where they are damaged they stay, as in Linux: nobody asked for them, and the
//! files that were synced are worth more.

use f2fs_format::inode::{advise, inline};
use f2fs_format::node::ADDRS_PER_BLOCK;
use f2fs_format::path::{self, Addresses};
use f2fs_format::{BLOCK_SIZE, BlockAddr, Nid};
use f2fs_volume::Volume;
use f2fs_volume::tree::load_child;

use crate::FsError;
use crate::inode::Inode;
use crate::recovery::RollForward;
use crate::stat::FileKind;
use crate::truncate::{Progress, truncate_step};

/// So many nodes behind an end are looked at, which stay in memory until it is done: those of 250 GiB.
const MOST: u32 = 65_536;

/// What there is behind an end; the greater of two is that of both together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Behind {
    Nothing,
    Something,
    /// It cannot be freed, or is very much.
    Damage,
}

impl RollForward<'_> {
    /// Frees what lies behind the end of a file.
    pub(super) fn cut_behind_end(&self, inode: &Inode) -> Result<(), FsError> {
        let Some(end) = self.end_of(inode) else { return Ok(()) };
        if self.behind(inode, end) == Behind::Something {
            while self.change(|op| truncate_step(op, &inode.node, end))? == Progress::More {}
        }
        Ok(())
    }

    /// The first block behind the end of a file; `None` if some may be there. The clusters of a compressed file, and
    /// what proves a file's content, end behind it.
    fn end_of(&self, inode: &Inode) -> Option<u64> {
        let node = inode.node.read();
        let raw = node.inode();
        let may_have = raw.i_advise & (advise::KEEP_SIZE | advise::VERITY) != 0
            || raw.i_inline & inline::DATA != 0
            || raw.compression(self.volume.features()).is_some();
        (inode.kind == FileKind::Regular && !may_have).then(|| raw.i_size.get().div_ceil(BLOCK_SIZE as u64))
    }

    fn behind(&self, inode: &Inode, end: u64) -> Behind {
        let features = self.volume.features();
        let (own, nids, addresses) = {
            let node = inode.node.read();
            let own: Vec<BlockAddr> = node.addresses(features).collect();
            (own, node.inode().i_nid.map(Nid::from), node.inode().layout(features).addresses())
        };
        let mut look = Look { volume: &self.volume, ino: inode.ino, addresses, end, nodes: 0 };
        look.addresses(&own, 0).max(look.children(0, &nids))
    }
}

/// A look at what lies behind the end of one file.
struct Look<'a> {
    volume: &'a Volume,
    ino: Nid,
    addresses: Addresses,
    end: u64,
    /// Nodes that were read.
    nodes: u32,
}

impl Look<'_> {
    /// The addresses of a node whose first block is `first`.
    fn addresses(&self, addresses: &[BlockAddr], first: u64) -> Behind {
        let kept = usize::try_from(self.end.saturating_sub(first)).unwrap_or(usize::MAX);
        let mut behind = Behind::Nothing;
        for addr in addresses.iter().skip(kept).filter(|addr| !addr.is_null()) {
            let in_use = || self.volume.recovery().is_in_use(*addr).is_ok_and(|in_use| in_use);
            if addr.is_real() && !(self.volume.geometry().in_main(*addr) && in_use()) {
                return Behind::Damage;
            }
            behind = Behind::Something;
        }
        behind
    }

    /// The nodes below one, given by its node offset.
    fn children(&mut self, offset: u32, nids: &[Nid]) -> Behind {
        let mut behind = Behind::Nothing;
        for (slot, nid) in nids.iter().enumerate().filter(|(_, nid)| !nid.is_null()) {
            let Some(child) = path::child(offset, slot) else { return Behind::Damage };
            let first = path::first_block(child, self.addresses);
            // One in front of the end is not looked at.
            if first.is_some_and(|first| first + ADDRS_PER_BLOCK as u64 <= self.end) {
                continue;
            }
            self.nodes += 1;
            if self.nodes > MOST {
                return Behind::Damage;
            }
            let Ok(node) = load_child(self.volume, self.ino, *nid, child) else { return Behind::Damage };
            let slots = *node.read().slots();
            let below = match first {
                // A whole node is something, also an empty one.
                Some(first) if first >= self.end => {
                    self.addresses(&slots.map(BlockAddr::from), first).max(Behind::Something)
                }
                Some(first) => self.addresses(&slots.map(BlockAddr::from), first),
                None => self.children(child, &slots.map(Nid::from)),
            };
            behind = behind.max(below);
            if behind == Behind::Damage {
                break;
            }
        }
        behind
    }
}
