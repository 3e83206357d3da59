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

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    use crate::samples::{plain, segment};

    /// Reserved blocks are in use for syncs as well, which must not promise more than roll-forward has room for. Those
    /// that are written before a checkpoint are counted when they are written.
    #[test]
    fn reserved_blocks_are_taken_from_the_room_of_syncs() {
        for delayed in [false, true] {
            let volume = plain(64);
            volume.checkpoints().write(crate::Reason::Sync).unwrap();
            let stat = volume.stat();
            let left = stat.user_blocks - stat.valid_blocks;
            let op = volume.begin().unwrap();
            if delayed {
                volume.data().reserve_delayed(&op, left).unwrap();
            } else {
                volume.data().reserve(&op, left).unwrap();
            }
            assert_eq!((volume.stat().valid_blocks, volume.data().has_room(1)), (stat.user_blocks, false));
            assert!(volume.data().has_room(0));
            let room = &volume.roll_forward.room;
            assert_eq!(room.log(1, 0, &volume.space, &volume.blocks_written, u64::MAX), delayed);
            assert!(matches!(volume.data().reserve(&op, 1), Err(VolumeError::NoSpace { .. })));
            assert!(matches!(volume.data().reserve_delayed(&op, 1), Err(VolumeError::NoSpace { .. })));
            volume.data().unreserve(&op, left);
            assert_eq!((volume.stat().valid_blocks, volume.data().has_room(left)), (stat.valid_blocks, true));
            assert!(!volume.data().has_room(left + 1));
        }
    }

    #[test]
    fn only_blocks_of_the_main_area_are_read() {
        let volume = plain(64);
        let node = segment(&volume, 3);
        let (main, end) = (volume.geometry.main_blkaddr, volume.geometry.main_end());
        let read = |addr, blocks| volume.data().read(node.nid(), addr, &mut AlignedBuf::new(blocks));
        assert!(read(main, 1).is_ok() && read(BlockAddr(end.0 - 2), 2).is_ok() && read(main, 0).is_ok());
        for (addr, blocks) in [(BlockAddr(main.0 - 1), 1), (BlockAddr(end.0 - 1), 2), (end, 1), (BlockAddr::NEW, 1)] {
            assert!(matches!(read(addr, blocks), Err(VolumeError::Corrupt(_))), "{addr}");
        }
        let first = crate::samples::address(&volume, &node, 0);
        assert!(
            volume.data().is_in_use(first.offset(2)).unwrap() && !volume.data().is_in_use(first.offset(3)).unwrap()
        );
    }
}
