//! The blocks of a new volume.

use alloc::vec::Vec;
use core::ops::Range;

use super::VolumePlan;
use crate::bits::msb;
use crate::checkpoint::CheckpointBlock;
use crate::dentry::{DentryViewMut, FileType, slots_for};
use crate::feature::Features;
use crate::hash::dentry_hash;
use crate::inode::{self, inline, mode};
use crate::nat::{NatBlock, RawNatEntry};
use crate::nat_bits::{self, NatBits};
use crate::node::NodeBlock;
use crate::sit::RawSitEntry;
use crate::summary::{Journal, Summary, SummaryBlock, TYPE_DATA, TYPE_NODE, compact};
use crate::{BLOCK_SIZE, BLOCKS_PER_SEGMENT, BlockAddr, FormatError, LogType, Nid, RawBlock};

/// Name of the directory that the `lost_found` feature makes.
const LOST_FOUND: &[u8] = b"lost+found";

impl VolumePlan {
    /// Ranges of blocks that must read as zeros before [`blocks`](Self::blocks) are written: the first copies of SIT
    /// and NAT, and the first block of the warm-node log, where a mount would look for nodes to recover. On a zoned
    /// volume that block lies in a zone, which is reset.
    #[must_use]
    pub fn zeroed(&self) -> Vec<Range<u64>> {
        let geometry = &self.geometry;
        let range = |start: BlockAddr, blocks: u32| u64::from(start.0)..u64::from(start.0) + u64::from(blocks);
        let mut ranges = alloc::vec![range(geometry.sit_blkaddr, geometry.sit_segments / 2 * BLOCKS_PER_SEGMENT)];
        if !self.zoned {
            ranges.push(range(self.block_of(LogType::WarmNode, 0), 1));
        }
        let nat_segments = 0..geometry.nat_segments / 2;
        ranges.extend(
            nat_segments
                .map(|segment| range(geometry.nat_block(segment * BLOCKS_PER_SEGMENT, false), BLOCKS_PER_SEGMENT)),
        );
        ranges
    }

    /// All other blocks of the volume but the superblocks: directories, the first NAT block, both checkpoint packs.
    /// Each address comes once.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if the plan was changed so that its parts contradict each other.
    pub fn blocks(&self) -> Result<Vec<(BlockAddr, RawBlock)>, FormatError> {
        let mut blocks = self.directories();
        blocks.push((self.geometry.nat_block(0, false), *self.nat_block().as_block()));
        self.checkpoint_packs(&mut blocks)?;
        Ok(blocks)
    }

    /// Block 0 and block 1 of the device.
    #[must_use]
    pub fn superblock_block(&self) -> RawBlock {
        let mut block = [0; BLOCK_SIZE];
        self.superblock.write(&mut block);
        block
    }

    /// The block of a log's segment.
    fn block_of(&self, log: LogType, offset: u32) -> BlockAddr {
        self.geometry.block_at(self.checkpoint.log(log).segment, offset)
    }

    /// The directories: inode number, and the index of inode and dentry block in their segments.
    fn inodes(&self) -> impl Iterator<Item = (u32, Nid)> {
        [Some(Nid::ROOT), self.lost_found].into_iter().flatten().zip(0..).map(|(nid, index)| (index, nid))
    }

    fn directories(&self) -> Vec<(BlockAddr, RawBlock)> {
        let mut blocks = Vec::new();
        for (index, nid) in self.inodes() {
            blocks.push((self.block_of(LogType::HotNode, index), *self.directory(index, nid).as_block()));
            let mut dentries = [0; BLOCK_SIZE];
            let mut view = DentryViewMut::block(&mut dentries);
            let mut complete = view.make_empty(nid, Nid::ROOT);
            if let (Nid::ROOT, Some(lost_found)) = (nid, self.lost_found) {
                complete &= view.insert(2, LOST_FOUND, dentry_hash(LOST_FOUND), lost_found, FileType::Directory);
            }
            debug_assert!(complete, "{} slots are free in a new block", 4 + slots_for(LOST_FOUND.len()));
            blocks.push((self.block_of(LogType::HotData, index), dentries));
        }
        blocks
    }

    /// A directory's inode.
    fn directory(&self, index: u32, nid: Nid) -> NodeBlock {
        let features = self.geometry.features;
        let mut block = NodeBlock::ZERO;
        block.footer.nid = nid.into();
        block.footer.ino = nid.into();
        block.footer.cp_ver = 1.into();
        block.footer.next_blkaddr = self.block_of(LogType::HotNode, index + 1).into();

        let inode = block.inode_mut();
        let is_root = nid == Nid::ROOT;
        inode.i_mode = (mode::DIRECTORY | if is_root { 0o755 } else { 0o700 }).into();
        inode.i_links = if is_root && self.lost_found.is_some() { 3.into() } else { 2.into() };
        (inode.i_uid, inode.i_gid) = (self.root_owner.0.into(), self.root_owner.1.into());
        inode.i_size = (BLOCK_SIZE as u64).into();
        inode.i_blocks = 2.into();
        for stamp in [&mut inode.i_atime, &mut inode.i_ctime, &mut inode.i_mtime] {
            *stamp = self.time.into();
        }
        inode.i_current_depth = 1.into();
        if !is_root {
            inode.i_pino = Nid::ROOT.into();
            inode.i_namelen = (LOST_FOUND.len() as u32).into();
            inode.i_name[..LOST_FOUND.len()].copy_from_slice(LOST_FOUND);
        }
        if features.contains(Features::EXTRA_ATTR) {
            inode.i_inline = inline::EXTRA_ATTR;
            let extra = inode.extra_mut();
            extra.i_extra_isize = (inode::extra_size(features) as u16).into();
            if features.contains(Features::INODE_CRTIME) {
                extra.i_crtime = self.time.into();
            }
        }
        let stored = block.set_address(0, self.block_of(LogType::HotData, index), features);
        debug_assert!(stored, "an inode holds at least one address");
        if features.contains(Features::INODE_CHECKSUM) {
            let checksum = inode::checksum(&block, inode::checksum_seed(&self.superblock));
            block.inode_mut().extra_mut().i_inode_checksum = checksum.into();
        }
        block
    }

    fn nat_entry(&self, index: u32, nid: Nid) -> RawNatEntry {
        RawNatEntry { version: 0, ino: nid.into(), block_addr: self.block_of(LogType::HotNode, index).into() }
    }

    /// The first block of the NAT: the reserved nodes and the root. `lost+found` is in the journal only.
    fn nat_block(&self) -> NatBlock {
        let mut block = NatBlock::ZERO;
        for nid in [Nid::NODE, Nid::META] {
            block.entries[nid.index()] = RawNatEntry { version: 0, ino: nid.into(), block_addr: 1.into() };
        }
        block.entries[Nid::ROOT.index()] = self.nat_entry(0, Nid::ROOT);
        block
    }

    /// The summaries of the six logs, journals included.
    fn summaries(&self) -> [SummaryBlock; 6] {
        let mut logs = [SummaryBlock::ZERO; 6];
        for log in LogType::ALL {
            logs[log.index()].entry_type = if log.is_node() { TYPE_NODE } else { TYPE_DATA };
        }
        let mut nat = Vec::new();
        for (index, nid) in self.inodes() {
            for log in [LogType::HotData, LogType::HotNode] {
                logs[log.index()].entries[index as usize] = Summary::new(nid, 0, 0);
            }
            nat.push((nid, self.nat_entry(index, nid)));
        }
        // In the order in which mkfs.f2fs writes them: node logs, data logs.
        let sit: Vec<_> = [3, 4, 5, 0, 1, 2]
            .into_iter()
            .map(|index| {
                let log = LogType::ALL[index];
                let position = self.checkpoint.log(log);
                let mut entry = RawSitEntry::ZERO;
                entry.set_blocks(log, position.next_offset.into());
                for block in 0..usize::from(position.next_offset) {
                    msb::set(&mut entry.valid_map, block);
                }
                (position.segment, entry)
            })
            .collect();
        logs[LogType::HotData.index()].journal = Journal::from_nat(&nat).unwrap_or(Journal::ZERO);
        logs[LogType::ColdData.index()].journal = Journal::from_sit(&sit).unwrap_or(Journal::ZERO);
        logs
    }

    /// Pack 1 holds everything; pack 2 is valid, but older: its first and last block with version 0.
    fn checkpoint_packs(&self, blocks: &mut Vec<(BlockAddr, RawBlock)>) -> Result<(), FormatError> {
        let geometry = &self.geometry;
        let payload = alloc::vec![[0; BLOCK_SIZE]; geometry.cp_payload as usize];
        let logs = self.summaries();
        let [hot, warm, cold, nodes @ ..] = &logs;
        let counts = [LogType::HotData, LogType::WarmData, LogType::ColdData]
            .map(|log| usize::from(self.checkpoint.log(log).next_offset));
        // At most two entries: always fits one block.
        let compact = compact::build([hot, warm, cold], counts).unwrap_or_default();

        for pack in 0..2 {
            let start = geometry.checkpoint_pack(pack);
            // All version bits are zero, and so is the payload that may hold some of them.
            let mut block = CheckpointBlock::ZERO;
            block.header = self.checkpoint.to_header(geometry);
            if pack == 1 {
                block.header.checkpoint_ver = 0.into();
            }
            block.seal();
            block.verify()?;
            let mut at = start;
            let mut put = |content: &RawBlock| {
                blocks.push((at, *content));
                at = at.offset(1);
            };
            put(block.as_block());
            payload.iter().for_each(&mut put);
            if pack == 0 {
                compact.iter().for_each(&mut put);
                nodes.iter().map(SummaryBlock::as_block).for_each(&mut put);
            }
            blocks.push((start.offset(self.checkpoint.pack_blocks - 1), *block.as_block()));
            if pack == 0
                && let Some(first) = nat_bits::first_block(geometry, self.checkpoint.pack_blocks)
            {
                let bits = NatBits::new(nat_bits::signature(&block)?, geometry).to_blocks();
                blocks.extend((0..).zip(bits).map(|(index, bits)| (start.offset(first + index), bits)));
            }
        }
        Ok(())
    }
}
