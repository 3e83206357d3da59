//! Writing changed dentry blocks at the checkpoint.

use f2fs_device::AlignedBuf;
use f2fs_format::LogType;
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, protocol_never, protocol_step};
use f2fs_volume::tree::find_slot;
use f2fs_volume::{Flight, Op};

use super::{Directory, is_inline};
use crate::FsError;
use crate::core::Core;
use crate::inode::Inode;
use crate::stat;

/// Dentry blocks written together at most.
const CHUNK: usize = 512;
/// Clean pages that a directory keeps.
const KEEP: usize = 4096;

impl Directory {
    /// Writes the changed blocks to the hot data log, and depth and times to the inode. The gate is closed.
    pub(crate) fn write_back(&self, op: &Op<'_>, core: &Core, inode: &Arc<Inode>) -> Result<(), FsError> {
        self.queued.store(false, Ordering::Release);
        if inode.node.is_removed() {
            drop(self.take_dirty(core));
            return Ok(());
        }
        let mut pages = self.take_dirty(core);
        protocol_never!("directory_later_blocks_left_out", pages.truncate(1));
        for (index, chunk) in pages.chunks(CHUNK).enumerate() {
            if let Err(error) = self.write_chunk(op, core, inode, chunk) {
                // Pages that were not written stay dirty.
                let rest = &pages[index * CHUNK..];
                core.volume.add_dirty_dentries(rest.len() as u64);
                self.dirty.lock().extend(rest.iter().map(|page| (page.block, page.clone())));
                core.queue_directory(inode);
                return Err(error);
            }
        }
        let touched = self.touched();
        self.forget_touch();
        let stale = {
            let block = inode.node.read();
            touched.is_some() || (!is_inline(block.inode()) && block.inode().i_current_depth.get() != self.depth())
        };
        if stale {
            let mut block = inode.node.write(op);
            let raw = block.inode_mut();
            if !is_inline(raw) {
                protocol_step!("directory_depth_left_out", raw.i_current_depth = self.depth().into());
            }
            if let Some(time) = touched {
                let (_, modified, changed) = stat::times(raw);
                stat::set_modified(raw, modified.max(time));
                stat::set_changed(raw, changed.max(time));
            }
        }
        self.shrink(KEEP);
        core.dentries.came(pages.len() as u64);
        Ok(())
    }

    fn write_chunk(
        &self,
        op: &Op<'_>,
        core: &Core,
        inode: &Arc<Inode>,
        pages: &[Arc<super::Page>],
    ) -> Result<(), FsError> {
        let mut slots = Vec::with_capacity(pages.len());
        let mut data = AlignedBuf::new(pages.len());
        for (index, page) in pages.iter().enumerate() {
            let slot = find_slot(&core.volume, &inode.node, page.block)?
                .ok_or_else(|| FsError::corrupt("slot of a dentry block", page.block, 0, 0))?;
            data.block_mut(index).copy_from_slice(&**page.data.read());
            slots.push(slot);
        }
        // No hole among them: each block was reserved when its page was made.
        Flight::begin_blocks(op, LogType::HotData, slots.into_iter(), data, 0)?.land_slots(op, |_, _| {})?;
        pages.iter().for_each(|page| page.dirty.store(false, Ordering::Release));
        Ok(())
    }
}
