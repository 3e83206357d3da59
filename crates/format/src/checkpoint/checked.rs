//! The checkpoint, checked against the geometry of its volume.

use super::{CHECKSUM_OFFSET, CheckpointHeader, HEADER_SIZE, alloc_type, flags};
use crate::feature::Features;
use crate::summary::compact;
use crate::{BLOCKS_PER_SEGMENT, Corruption, Geometry, LogType, Nid, SegmentNo, nat_bits};

/// Where a log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// The segment that it fills.
    pub segment: SegmentNo,
    /// The next block that it takes of its segment: below 512.
    pub next_offset: u16,
    /// [`alloc_type::LFS`] or [`alloc_type::SSR`].
    pub alloc_type: u8,
}

/// The content of a checkpoint, checked (`f2fs_sanity_check_ckpt` in `fs/f2fs/super.c`, and facts that the kernel takes
/// for granted).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The higher one of two packs is in force.
    pub version: u64,
    /// [`flags`].
    pub flags: u32,
    /// Blocks that users may fill: below the blocks of the main area.
    pub user_blocks: u64,
    /// Blocks in use, reservations included: at most `user_blocks`.
    pub valid_blocks: u64,
    /// Segments kept for the cleaner.
    pub reserved_segments: u32,
    /// Segments that users cannot fill, the reserved ones included.
    pub overprovision_segments: u32,
    /// Free segments, the six current ones not counted.
    pub free_segments: u32,
    /// The six logs, in the order of [`LogType::ALL`], in distinct segments.
    pub logs: [LogPosition; 6],
    /// Blocks of the pack, both checkpoint blocks included and NAT bits not.
    pub pack_blocks: u32,
    /// The pack's block in which the data summaries begin.
    pub start_sum: u32,
    /// Nodes in use.
    pub valid_nodes: u32,
    /// Inodes in use.
    pub valid_inodes: u32,
    /// Where a search for free NIDs begins.
    pub next_free_nid: Nid,
    /// Seconds that the volume has been mounted.
    pub elapsed_time: u64,
    /// A number that tells this opening of the volume from one of a copy of it, which may write the same otherwise, and
    /// then has the same checksum. It stands where the allocation types of logs 8 to 15 would, which do not exist:
    /// Linux keeps it and looks at it no more than fsck.f2fs does. 0: nobody needed it.
    pub opening: u64,
}

fn opening(header: &CheckpointHeader) -> u64 {
    header.alloc_type[8..].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Checkpoint {
    /// Entries of each of the three data logs that compact summaries hold.
    #[must_use]
    pub fn compact_counts(&self) -> [usize; 3] {
        [LogType::HotData, LogType::WarmData, LogType::ColdData].map(|log| {
            let position = self.log(log);
            compact::entry_count(position.next_offset, position.alloc_type)
        })
    }

    /// Checks a header. The checksum is [`CheckpointBlock::verify`](super::CheckpointBlock::verify)'s business.
    ///
    /// # Errors
    /// [`Corruption`] with the field and its numbers.
    pub fn from_header(header: &CheckpointHeader, geometry: &Geometry) -> Result<Checkpoint, Corruption> {
        let data = |log: usize| (header.cur_data_segno[log].get(), header.cur_data_blkoff[log].get());
        let node = |log: usize| (header.cur_node_segno[log].get(), header.cur_node_blkoff[log].get());
        let logs = LogType::ALL.map(|log| {
            let index = log.index();
            let (segment, next_offset) = if log.is_node() { node(index - 3) } else { data(index) };
            LogPosition { segment: SegmentNo(segment), next_offset, alloc_type: header.alloc_type[index] }
        });
        let checkpoint = Checkpoint {
            version: header.checkpoint_ver.get(),
            flags: header.ckpt_flags.get(),
            user_blocks: header.user_block_count.get(),
            valid_blocks: header.valid_block_count.get(),
            reserved_segments: header.rsvd_segment_count.get(),
            overprovision_segments: header.overprov_segment_count.get(),
            free_segments: header.free_segment_count.get(),
            logs,
            pack_blocks: header.cp_pack_total_block_count.get(),
            start_sum: header.cp_pack_start_sum.get(),
            valid_nodes: header.valid_node_count.get(),
            valid_inodes: header.valid_inode_count.get(),
            next_free_nid: header.next_free_nid.into(),
            elapsed_time: header.elapsed_time.get(),
            opening: opening(header),
        };
        let bytes = |what, expected: usize, found: u32| Corruption::check_equal(what, expected as u64, found.into());
        bytes("checkpoint sit_ver_bitmap_bytesize", geometry.sit_bitmap_size(), header.sit_ver_bitmap_bytesize.get())?;
        bytes("checkpoint nat_ver_bitmap_bytesize", geometry.nat_bitmap_size(), header.nat_ver_bitmap_bytesize.get())?;
        bytes("checkpoint checksum_offset", checkpoint.checksum_offset(), header.checksum_offset.get())?;
        checkpoint.check(geometry)?;
        Ok(checkpoint)
    }

    /// Checks the numbers against each other and against the geometry.
    ///
    /// # Errors
    /// [`Corruption`] with the field and its numbers.
    pub fn check(&self, geometry: &Geometry) -> Result<(), Corruption> {
        self.check_counts(geometry)?;
        self.check_logs(geometry)?;
        self.check_pack(geometry)
    }

    fn check_counts(&self, geometry: &Geometry) -> Result<(), Corruption> {
        let main = u64::from(geometry.main_segments);
        let least = if geometry.features.contains(Features::READONLY) { 0 } else { 1 };
        Corruption::check_range("checkpoint rsvd_segment_count", self.reserved_segments.into(), least, main - 1)?;
        Corruption::check_range(
            "checkpoint overprov_segment_count",
            self.overprovision_segments.into(),
            least,
            main - 1,
        )?;
        Corruption::check_range("checkpoint free_segment_count", self.free_segments.into(), 0, main)?;
        // A read-only volume has no log to spare: mkfs counts all of the main area as the user's.
        let most = u64::from(geometry.main_blocks()) - least;
        Corruption::check_range("checkpoint user_block_count", self.user_blocks, 1, most)?;
        Corruption::check_range("checkpoint valid_block_count", self.valid_blocks, 0, self.user_blocks)?;
        let nids = u64::from(geometry.max_nid()).saturating_sub(3);
        Corruption::check_range(
            "checkpoint valid_node_count",
            self.valid_nodes.into(),
            0,
            nids.min(self.valid_blocks),
        )?;
        Corruption::check_range("checkpoint valid_inode_count", self.valid_inodes.into(), 0, self.valid_nodes.into())?;
        Corruption::check_range("checkpoint next_free_nid", self.next_free_nid.0.into(), 0, geometry.max_nid().into())
    }

    fn check_logs(&self, geometry: &Geometry) -> Result<(), Corruption> {
        let last = u64::from(geometry.main_segments) - 1;
        for (index, log) in LogType::ALL.into_iter().zip(&self.logs).filter(|(log, _)| geometry.has_log(*log)) {
            Corruption::check_range("checkpoint segment of a log", log.segment.0.into(), 0, last)?;
            Corruption::check_range(
                "checkpoint offset of a log",
                log.next_offset.into(),
                0,
                u64::from(BLOCKS_PER_SEGMENT) - 1,
            )?;
            Corruption::check_range(
                "checkpoint alloc_type of a log",
                log.alloc_type.into(),
                0,
                alloc_type::SSR.into(),
            )?;
            let stands_there = |other: &LogType| geometry.has_log(*other) && self.log(*other).segment == log.segment;
            if LogType::ALL[..index.index()].iter().any(stands_there) {
                return Err(Corruption::Segment {
                    segment: log.segment,
                    what: "logs that stand in it",
                    expected: 1,
                    found: LogType::ALL.iter().filter(|other| stands_there(other)).count() as u64,
                });
            }
        }
        Ok(())
    }

    fn check_pack(&self, geometry: &Geometry) -> Result<(), Corruption> {
        let blocks = u64::from(BLOCKS_PER_SEGMENT);
        let first = 1 + u64::from(geometry.cp_payload);
        let start = u64::from(self.start_sum);
        Corruption::check_range("checkpoint cp_pack_start_sum", start, first, blocks - 1 - 6)?;
        if !self.has(flags::ORPHAN_PRESENT) {
            // The kernel leaves the flag out when it writes no orphan blocks.
            Corruption::check_equal("checkpoint cp_pack_start_sum without orphans", first, start)?;
        }
        let node = if self.has_node_summaries() { 3 } else { 0 };
        let (least, most) = if self.has(flags::COMPACT_SUM) { (1, 2) } else { (3, 3) };
        Corruption::check_range(
            "checkpoint cp_pack_total_block_count",
            self.pack_blocks.into(),
            start + least + node + 1,
            blocks.min(start + most + node + 1),
        )?;
        if self.has(flags::NAT_BITS) {
            let found = u64::from(self.pack_blocks) + u64::from(nat_bits::block_count(geometry));
            Corruption::check_range("blocks of a checkpoint pack with NAT bits", found, 0, blocks)?;
        }
        Ok(())
    }

    /// The header that says all this. Unused logs are marked as mkfs.f2fs does.
    #[must_use]
    pub fn to_header(&self, geometry: &Geometry) -> CheckpointHeader {
        let mut header = super::CheckpointBlock::ZERO.header;
        header.checkpoint_ver = self.version.into();
        header.user_block_count = self.user_blocks.into();
        header.valid_block_count = self.valid_blocks.into();
        header.rsvd_segment_count = self.reserved_segments.into();
        header.overprov_segment_count = self.overprovision_segments.into();
        header.free_segment_count = self.free_segments.into();
        header.cur_data_segno.fill(SegmentNo::NULL.into());
        header.cur_node_segno.fill(SegmentNo::NULL.into());
        for (log, position) in LogType::ALL.into_iter().zip(&self.logs) {
            let (segno, blkoff, index) = if log.is_node() {
                (&mut header.cur_node_segno, &mut header.cur_node_blkoff, log.index() - 3)
            } else {
                (&mut header.cur_data_segno, &mut header.cur_data_blkoff, log.index())
            };
            segno[index] = position.segment.into();
            blkoff[index] = position.next_offset.into();
            header.alloc_type[log.index()] = position.alloc_type;
        }
        header.ckpt_flags = self.flags.into();
        header.cp_pack_total_block_count = self.pack_blocks.into();
        header.cp_pack_start_sum = self.start_sum.into();
        header.valid_node_count = self.valid_nodes.into();
        header.valid_inode_count = self.valid_inodes.into();
        header.next_free_nid = self.next_free_nid.into();
        header.sit_ver_bitmap_bytesize = (geometry.sit_bitmap_size() as u32).into();
        header.nat_ver_bitmap_bytesize = (geometry.nat_bitmap_size() as u32).into();
        header.checksum_offset = (self.checksum_offset() as u32).into();
        header.elapsed_time = self.elapsed_time.into();
        header.alloc_type[8..].copy_from_slice(&self.opening.to_le_bytes());
        header
    }

    /// Whether all bits of `flag` ([`flags`]) are set.
    #[must_use]
    pub const fn has(&self, flag: u32) -> bool {
        self.flags & flag == flag
    }

    /// Where the checksum stands: right behind the header with `large_nat_bitmap`, else at the end of the block.
    #[must_use]
    pub const fn checksum_offset(&self) -> usize {
        if self.has(flags::LARGE_NAT_BITMAP) { HEADER_SIZE } else { CHECKSUM_OFFSET }
    }

    /// Where a log stands.
    #[must_use]
    pub const fn log(&self, log: LogType) -> LogPosition {
        self.logs[log.index()]
    }

    /// Orphan blocks of the pack, which follow the payload.
    #[must_use]
    pub const fn orphan_blocks(&self, geometry: &Geometry) -> u32 {
        self.start_sum.saturating_sub(1 + geometry.cp_payload)
    }

    /// Whether the pack holds the summaries of the node logs (`__exist_node_summaries`): three blocks in front of the
    /// second checkpoint block.
    #[must_use]
    pub const fn has_node_summaries(&self) -> bool {
        self.flags & (flags::UMOUNT | flags::FASTBOOT) != 0
    }

    /// Blocks of the data summaries: 1 or 2 compact ones, else 3.
    #[must_use]
    pub const fn data_summary_blocks(&self) -> u32 {
        let node = if self.has_node_summaries() { 3 } else { 0 };
        self.pack_blocks.saturating_sub(self.start_sum + node + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zerocopy::{FromBytes, IntoBytes};

    use super::*;
    use crate::checkpoint::CheckpointBlock;
    use crate::checkpoint::tests::{checkpoint, geometry};

    #[test]
    fn headers_round_trip() {
        let checkpoint = checkpoint();
        let header = checkpoint.to_header(&geometry());
        assert_eq!(Checkpoint::from_header(&header, &geometry()), Ok(checkpoint.clone()));
        assert_eq!((checkpoint.orphan_blocks(&geometry()), checkpoint.data_summary_blocks()), (0, 1));
        assert_eq!((header.cur_node_segno[3].get(), header.cur_data_segno[7].get()), (u32::MAX, u32::MAX));
        assert_eq!(checkpoint.log(LogType::HotNode).segment, SegmentNo(3));
    }

    #[test]
    fn each_field_is_checked() {
        type Change = fn(&mut CheckpointHeader);
        let wrong: [(&str, Change); 22] = [
            ("rsvd_segment_count", |h| h.rsvd_segment_count = 0.into()),
            ("overprov_segment_count", |h| h.overprov_segment_count = 24.into()),
            ("free_segment_count", |h| h.free_segment_count = 25.into()),
            ("user_block_count", |h| h.user_block_count = 0.into()),
            ("user_block_count", |h| h.user_block_count = (24 * 512).into()),
            ("valid_block_count", |h| h.valid_block_count = 8000.into()),
            ("valid_node_count", |h| h.valid_node_count = 101.into()),
            ("valid_inode_count", |h| h.valid_inode_count = 51.into()),
            ("next_free_nid", |h| h.next_free_nid = u32::MAX.into()),
            ("segment of a log", |h| h.cur_data_segno[1] = 24.into()),
            ("segment of a log", |h| h.cur_node_segno[2] = u32::MAX.into()),
            ("logs that stand in it", |h| h.cur_node_segno[2] = 0.into()),
            ("logs that stand in it", |h| h.cur_data_segno[1] = 0.into()),
            ("offset of a log", |h| h.cur_node_blkoff[0] = 512.into()),
            ("alloc_type", |h| h.alloc_type[4] = 2),
            ("cp_pack_start_sum", |h| h.cp_pack_start_sum = 0.into()),
            ("without orphans", |h| h.cp_pack_start_sum = 2.into()),
            ("cp_pack_total_block_count", |h| h.cp_pack_total_block_count = 5.into()),
            ("cp_pack_total_block_count", |h| h.cp_pack_total_block_count = u32::MAX.into()),
            ("sit_ver_bitmap_bytesize", |h| h.sit_ver_bitmap_bytesize = 65.into()),
            ("nat_ver_bitmap_bytesize", |h| h.nat_ver_bitmap_bytesize = 0.into()),
            ("checksum_offset", |h| h.checksum_offset = 192.into()),
        ];
        for (what, change) in wrong {
            let mut header = checkpoint().to_header(&geometry());
            change(&mut header);
            let error = Checkpoint::from_header(&header, &geometry()).unwrap_err();
            assert!(alloc::format!("{error}").contains(what), "{what}: {error}");
        }
    }

    #[test]
    fn a_pack_with_orphans_and_full_summaries() {
        let mut checkpoint = checkpoint();
        checkpoint.flags = flags::ORPHAN_PRESENT | flags::CRC_RECOVERY;
        (checkpoint.start_sum, checkpoint.pack_blocks) = (4, 8);
        checkpoint.check(&geometry()).unwrap();
        assert_eq!((checkpoint.orphan_blocks(&geometry()), checkpoint.data_summary_blocks()), (3, 3));
        checkpoint.flags |= flags::NAT_BITS;
        checkpoint.pack_blocks = 512;
        assert!(checkpoint.check(&geometry()).is_err());
    }

    proptest! {
        #[test]
        fn random_headers_never_panic(bytes in prop::collection::vec(any::<u8>(), 192), keep in prop::collection::vec(any::<bool>(), 192)) {
            let good = checkpoint().to_header(&geometry());
            let mixed: alloc::vec::Vec<u8> =
                good.as_bytes().iter().zip(&bytes).zip(keep).map(|((good, bad), keep)| if keep { *good } else { *bad }).collect();
            for bytes in [bytes, mixed] {
                let header = CheckpointHeader::read_from_bytes(&bytes).unwrap();
                let _ = Checkpoint::from_header(&header, &geometry());
                let block = CheckpointBlock { header, tail: [0; 4096 - HEADER_SIZE] };
                let _ = (block.verify(), block.footer_version());
            }
        }
    }
}
