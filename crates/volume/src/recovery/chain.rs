//! Following the chain.

use f2fs_device::{AlignedBuf, BlockDevice};
use f2fs_format::checkpoint::flags;
use f2fs_format::node::{NodeBlock, mark};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, LogType, Nid};

use super::Recovery;
use crate::VolumeError;

/// Blocks read ahead at most; as long as the chain does not jump, each read takes twice as many as the one before.
const READ_AHEAD: u32 = 64;

/// A node of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainNode {
    /// Where it stands.
    pub addr: BlockAddr,
    /// The inode that it belongs to.
    pub ino: Nid,
    /// Its offset in the file's node tree; 0: the inode itself.
    pub offset: u32,
    /// A sync wrote it. It is to be recovered, and so are the nodes of the same inode in front of it.
    pub fsync: bool,
    /// The inode was new: its name is to be recovered as well.
    pub dentry: bool,
}

/// Reads blocks one after the other, several at a time.
struct Reader<'a> {
    device: &'a dyn BlockDevice,
    start: BlockAddr,
    window: Option<AlignedBuf>,
    ahead: u32,
}

impl Reader<'_> {
    /// The block at `addr`, in a segment with so many more behind it.
    fn block(&mut self, addr: BlockAddr, left: u32) -> Result<&NodeBlock, VolumeError> {
        let held = self.window.as_ref().map_or(0, |window| window.blocks() as u32);
        let at = addr.0.wrapping_sub(self.start.0);
        if at >= held {
            self.ahead = if at == held && held != 0 { (self.ahead * 2).min(READ_AHEAD) } else { 1 };
            self.window = Some(self.device.read(u64::from(addr.0), self.ahead.min(left.max(1)) as usize)?);
            self.start = addr;
        }
        let at = addr.0.wrapping_sub(self.start.0) as usize;
        match &self.window {
            Some(window) => Ok(NodeBlock::read(window.block(at))),
            None => Err(f2fs_format::Corruption::Mismatch { what: "blocks read", expected: 1, found: 0 }.into()),
        }
    }
}

/// Finds out that a walk comes back to where it was (Brent's algorithm).
struct LoopDetector {
    mark: BlockAddr,
    steps: u64,
    limit: u64,
}

impl LoopDetector {
    fn new(start: BlockAddr) -> LoopDetector {
        LoopDetector { mark: start, steps: 0, limit: 1 }
    }

    /// Takes the next step; tells whether it leads to where the walk was before.
    fn step(&mut self, to: BlockAddr) -> bool {
        if to == self.mark {
            return true;
        }
        self.steps += 1;
        if self.steps == self.limit {
            self.mark = to;
            self.limit *= 2;
            self.steps = 0;
        }
        false
    }
}

impl Recovery<'_> {
    /// The nodes behind the last checkpoint, in the order in which they were written, up to the last one with an fsync
    /// mark. Meaningful before anything is changed: it begins where the warm-node log stands.
    ///
    /// # Errors
    /// [`VolumeError::LoopedChain`], [`VolumeError::Device`].
    pub fn synced_nodes(self) -> Result<Vec<ChainNode>, VolumeError> {
        let checkpoint = self.0.last_checkpoint();
        let (version, any_crc) = (self.0.footer_version(), checkpoint.has(flags::NOCRC_RECOVERY));
        let mut addr = self.0.segments.next_block(LogType::WarmNode);
        let mut loops = LoopDetector::new(addr);
        let mut reader = Reader { device: &*self.0.device, start: addr, window: None, ahead: 1 };
        let mut nodes = Vec::new();
        let mut synced = 0;
        let mut count = 0;
        while let Some((_, offset)) = self.0.geometry.locate(addr) {
            let node = reader.block(addr, BLOCKS_PER_SEGMENT - offset)?;
            let found = node.footer.cp_ver.get();
            let ours = if any_crc { found << 32 == version << 32 } else { found == version };
            if !ours {
                break;
            }
            let fsync = node.footer.has_mark(mark::FSYNC);
            nodes.push(ChainNode {
                addr,
                ino: node.ino(),
                offset: if node.is_inode() { 0 } else { node.footer.node_offset() },
                fsync,
                dentry: node.footer.has_mark(mark::DENTRY),
            });
            if fsync {
                synced = nodes.len();
            }
            addr = node.footer.next_blkaddr.into();
            count += 1;
            if loops.step(addr) {
                return Err(VolumeError::LoopedChain { addr, nodes: count });
            }
        }
        nodes.truncate(synced);
        Ok(nodes)
    }

    /// A node block of the chain.
    ///
    /// # Errors
    /// [`VolumeError::Device`].
    pub fn synced_node(self, addr: BlockAddr) -> Result<Box<NodeBlock>, VolumeError> {
        Ok(Box::new(*NodeBlock::read(crate::blocks::read_block(&*self.0.device, addr)?.block(0))))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
