//! Data blocks of a volume: reserving and reading them, and whether they are in use. They are written by a
//! [`Flight`](crate::Flight).

use f2fs_device::{AlignedBuf, BlockDevice};
use f2fs_format::{BlockAddr, Corruption, Nid};
use f2fs_sync::protocol_never;

use crate::{Op, Volume, VolumeError};

/// The data blocks of a volume: [`Volume::data`].
#[derive(Clone, Copy, Debug)]
pub struct DataBlocks<'a>(pub(crate) &'a Volume);

impl DataBlocks<'_> {
    /// Reserves data blocks: the count goes up, no address is chosen.
    ///
    /// # Errors
    /// [`VolumeError::NoSpace`]; nothing is reserved then.
    pub fn reserve(self, op: &Op<'_>, blocks: u64) -> Result<(), VolumeError> {
        op.expect_of(self.0);
        self.0.space.take_blocks(blocks)?;
        self.0.roll_forward.room.reserve(blocks);
        Ok(())
    }

    /// Reserves data blocks that are written before the next checkpoint counts:
    /// [`Flight::begin_blocks`](crate::Flight::begin_blocks) fills them, or [`unreserve`](Self::unreserve) gives them
    /// back. No slot says so.
    ///
    /// # Errors
    /// [`VolumeError::NoSpace`]; nothing is reserved then.
    pub fn reserve_delayed(self, op: &Op<'_>, blocks: u64) -> Result<(), VolumeError> {
        op.expect_of(self.0);
        self.0.space.take_blocks(blocks)
    }

    /// Whether so many blocks could be reserved at this moment. It only looks: the caller is in no operation, and a
    /// checkpoint would count what was taken and not yet given back.
    #[must_use]
    pub fn has_room(self, blocks: u64) -> bool {
        protocol_never!("room_taken_to_look", {
            let room = self.0.space.take_blocks(blocks).is_ok();
            if room {
                self.0.space.give_blocks(blocks);
            }
            return room;
        });
        self.0.space.has_blocks(blocks)
    }

    /// Gives reserved blocks back.
    pub fn unreserve(self, op: &Op<'_>, blocks: u64) {
        op.expect_of(self.0);
        self.0.space.give_blocks(blocks);
    }

    /// Whether the SIT says that a block is in use. A volume that is open for reading may have to read the block of the
    /// SIT.
    ///
    /// # Errors
    /// [`VolumeError::Device`].
    pub fn is_in_use(self, addr: BlockAddr) -> Result<bool, VolumeError> {
        self.0.segments.is_valid(addr)
    }

    /// Reads data blocks that follow each other on the device.
    ///
    /// # Errors
    /// [`VolumeError::Corrupt`] for blocks outside the main area (`nid`: whose slot named them),
    /// [`VolumeError::Device`].
    pub fn read(self, nid: Nid, addr: BlockAddr, buf: &mut AlignedBuf) -> Result<(), VolumeError> {
        let last = addr.offset((buf.blocks() as u32).saturating_sub(1));
        if !self.0.geometry.in_main(addr) || !self.0.geometry.in_main(last) || last < addr {
            return Err(Corruption::Address { what: "data address", nid, addr }.into());
        }
        Ok(self.0.device.read_into(u64::from(addr.0), buf)?)
    }
}
