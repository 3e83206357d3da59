//! Data of records comes back: to the places where it had been written; the volume kept them for it.

use f2fs_format::{BlockAddr, Corruption};
use f2fs_sync::protocol_never;

use super::Journaling;
use super::found::JournaledNodes;
use crate::VolumeError;
use crate::blocks::WriteBatch;

impl Journaling<'_> {
    /// Whether the data of these blocks in the records can be written: the checkpoint uses none of them.
    ///
    /// # Errors
    /// [`VolumeError::Corrupt`] if it does.
    pub fn check_data(self, journaled: &JournaledNodes, blocks: &[BlockAddr]) -> Result<(), VolumeError> {
        for addr in blocks {
            if journaled.data(*addr).is_some() && self.0.segments.is_valid(*addr)? {
                let what = "journaled, and in use already";
                return Err(Corruption::Block { what, nid: f2fs_format::Nid::NULL, addr: *addr }.into());
            }
        }
        Ok(())
    }

    /// Writes the data of these blocks from the records. Synced nodes name the blocks, and the checkpoint does not
    /// ([`check_data`](Self::check_data)); by now they may be taken into use. It becomes durable with the next checkpoint;
    /// a crash before that leaves records that bring it back again. Returns how many blocks that were.
    ///
    /// # Errors
    /// [`VolumeError::Device`].
    pub fn restore_data(self, journaled: &JournaledNodes, blocks: &[BlockAddr]) -> Result<u64, VolumeError> {
        let mut batch = WriteBatch::new(&*self.0.device);
        for addr in blocks {
            let Some(block) = journaled.data(*addr) else { continue };
            protocol_never!("journal_data_not_restored", continue);
            batch.push(*addr, block)?;
        }
        Ok(batch.finish()?.1)
    }
}
