//! The areas of a volume: superblock, checkpoint, SIT, NAT, SSA, main. Validated before anything divides by it.
//!
//! ```text
//! | SB | CP pack 1 | CP pack 2 | SIT a | SIT b | NAT (a, b interleaved by segment) | SSA | main area ... |
//! ```

use crate::feature::Features;
use crate::superblock::{MAGIC, SuperBlock};
use crate::{BLOCKS_PER_SEGMENT, BlockAddr, Corruption, LogType, Nid, SegmentNo, nat, sit};

/// Checked geometry of a volume. All addresses lie on the device that `block_count` describes, in the order of the
/// areas, and no area is empty (but the SSA of a read-only volume).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks of the volume.
    pub block_count: u64,
    /// Features of the volume, unchecked against what the library supports.
    pub features: Features,
    /// First block of segment 0, which is also the checkpoint area.
    pub segment0_blkaddr: BlockAddr,
    /// First block of the checkpoint area.
    pub cp_blkaddr: BlockAddr,
    /// First block of the SIT area.
    pub sit_blkaddr: BlockAddr,
    /// First block of the NAT area.
    pub nat_blkaddr: BlockAddr,
    /// First block of the SSA area.
    pub ssa_blkaddr: BlockAddr,
    /// First block of the main area.
    pub main_blkaddr: BlockAddr,
    /// Segments of all areas together.
    pub segment_count: u32,
    /// Segments of the SIT area, both copies.
    pub sit_segments: u32,
    /// Segments of the NAT area, both copies.
    pub nat_segments: u32,
    /// Segments of the SSA area.
    pub ssa_segments: u32,
    /// Segments of the main area.
    pub main_segments: u32,
    /// Sections of the main area.
    pub sections: u32,
    /// Segments in a section.
    pub segs_per_sec: u32,
    /// Sections in a zone.
    pub secs_per_zone: u32,
    /// Extra blocks of the checkpoint pack that hold the SIT version bitmap.
    pub cp_payload: u32,
    /// The root directory.
    pub root_ino: Nid,
}

impl Geometry {
    /// Checks a superblock and takes its geometry (`sanity_check_raw_super` in `fs/f2fs/super.c`).
    ///
    /// # Errors
    /// [`Corruption`] with the field and its numbers.
    pub fn from_superblock(sb: &SuperBlock) -> Result<Geometry, Corruption> {
        check_identity(sb)?;
        check_counts(sb)?;
        check_areas(sb)?;
        Ok(Geometry {
            block_count: sb.block_count.get(),
            features: Features(sb.feature.get()),
            segment0_blkaddr: sb.segment0_blkaddr.into(),
            cp_blkaddr: sb.cp_blkaddr.into(),
            sit_blkaddr: sb.sit_blkaddr.into(),
            nat_blkaddr: sb.nat_blkaddr.into(),
            ssa_blkaddr: sb.ssa_blkaddr.into(),
            main_blkaddr: sb.main_blkaddr.into(),
            segment_count: sb.segment_count.get(),
            sit_segments: sb.segment_count_sit.get(),
            nat_segments: sb.segment_count_nat.get(),
            ssa_segments: sb.segment_count_ssa.get(),
            main_segments: sb.segment_count_main.get(),
            sections: sb.section_count.get(),
            segs_per_sec: sb.segs_per_sec.get(),
            secs_per_zone: sb.secs_per_zone.get(),
            cp_payload: sb.cp_payload.get(),
            root_ino: sb.root_ino.into(),
        })
    }

    /// Whether a log is in use: a read-only volume has two, of hot nodes and of hot data, in which everything stands.
    /// What its checkpoint says of the others means nothing.
    #[must_use]
    pub fn has_log(&self, log: LogType) -> bool {
        !self.features.contains(Features::READONLY) || matches!(log, LogType::HotData | LogType::HotNode)
    }

    /// Blocks of the main area.
    #[must_use]
    pub fn main_blocks(&self) -> u32 {
        self.main_segments * BLOCKS_PER_SEGMENT
    }

    /// The first block behind the main area.
    #[must_use]
    pub fn main_end(&self) -> BlockAddr {
        self.main_blkaddr.offset(self.main_blocks())
    }

    /// Whether the address lies in the main area.
    #[must_use]
    pub fn in_main(&self, addr: BlockAddr) -> bool {
        (self.main_blkaddr..self.main_end()).contains(&addr)
    }

    /// The segment and the block offset in it; `None` outside the main area.
    #[must_use]
    pub fn locate(&self, addr: BlockAddr) -> Option<(SegmentNo, u32)> {
        if !self.in_main(addr) {
            return None;
        }
        let index = addr.0 - self.main_blkaddr.0;
        Some((SegmentNo(index / BLOCKS_PER_SEGMENT), index % BLOCKS_PER_SEGMENT))
    }

    /// The block at an offset of a segment of the main area.
    #[must_use]
    pub fn block_at(&self, segment: SegmentNo, offset: u32) -> BlockAddr {
        self.main_blkaddr.offset(segment.0 * BLOCKS_PER_SEGMENT + offset)
    }

    /// Where a segment's summary stands in the SSA.
    #[must_use]
    pub fn summary_block(&self, segment: SegmentNo) -> BlockAddr {
        self.ssa_blkaddr.offset(segment.0)
    }

    /// The first block of checkpoint pack 0 or 1.
    #[must_use]
    pub fn checkpoint_pack(&self, pack: u32) -> BlockAddr {
        self.cp_blkaddr.offset(pack * BLOCKS_PER_SEGMENT)
    }

    /// Block `block` of checkpoint pack 0 or 1: below 512.
    #[must_use]
    pub fn pack_block(&self, pack: u32, block: usize) -> BlockAddr {
        self.checkpoint_pack(pack).offset(block as u32)
    }

    /// SIT blocks in one copy of the table that hold entries of the main area.
    #[must_use]
    pub fn sit_blocks(&self) -> u32 {
        self.main_segments.div_ceil(sit::ENTRIES_PER_BLOCK as u32)
    }

    /// Where one of the two copies of a SIT block stands.
    #[must_use]
    pub fn sit_block(&self, index: u32, second: bool) -> BlockAddr {
        let copy = if second { self.sit_segments / 2 * BLOCKS_PER_SEGMENT } else { 0 };
        self.sit_blkaddr.offset(copy + index)
    }

    /// Bytes of the SIT version bitmap (`sit_ver_bitmap_bytesize`).
    #[must_use]
    pub fn sit_bitmap_size(&self) -> usize {
        (self.sit_segments / 2 * BLOCKS_PER_SEGMENT / 8) as usize
    }

    /// NAT blocks in one copy of the table.
    #[must_use]
    pub fn nat_blocks(&self) -> u32 {
        self.nat_segments / 2 * BLOCKS_PER_SEGMENT
    }

    /// Where one of the two copies of a NAT block stands: the copies alternate by segment.
    #[must_use]
    pub fn nat_block(&self, index: u32, second: bool) -> BlockAddr {
        let segment = index / BLOCKS_PER_SEGMENT;
        let copy = if second { BLOCKS_PER_SEGMENT } else { 0 };
        self.nat_blkaddr.offset(segment * 2 * BLOCKS_PER_SEGMENT + copy + index % BLOCKS_PER_SEGMENT)
    }

    /// Bytes of the NAT version bitmap (`nat_ver_bitmap_bytesize`).
    #[must_use]
    pub fn nat_bitmap_size(&self) -> usize {
        (self.nat_blocks() / 8) as usize
    }

    /// The number of NIDs: every NID lies below it.
    #[must_use]
    pub fn max_nid(&self) -> u32 {
        self.nat_blocks().saturating_mul(nat::ENTRIES_PER_BLOCK as u32)
    }
}

/// It is a superblock, with the checksum that it says, and its blocks and segments have the sizes that are supported.
fn check_identity(sb: &SuperBlock) -> Result<(), Corruption> {
    if sb.magic.get() != MAGIC {
        return Err(Corruption::Magic {
            what: "superblock magic",
            expected: u64::from(MAGIC),
            found: u64::from(sb.magic.get()),
        });
    }
    if Features(sb.feature.get()).contains(Features::SB_CHECKSUM) {
        Corruption::check_equal(
            "superblock checksum_offset",
            crate::superblock::CHECKSUM_OFFSET as u64,
            sb.checksum_offset.get().into(),
        )?;
        let (found, expected) = (sb.crc.get(), sb.compute_crc());
        if found != expected {
            return Err(Corruption::Checksum { what: "superblock", expected, found });
        }
    }
    Corruption::check_equal("superblock log_blocksize", 12, sb.log_blocksize.get().into())?;
    Corruption::check_equal("superblock log_blocks_per_seg", 9, sb.log_blocks_per_seg.get().into())?;
    Corruption::check_range("superblock log_sectorsize", sb.log_sectorsize.get().into(), 9, 12)?;
    Corruption::check_equal(
        "superblock log_sectors_per_block",
        12 - u64::from(sb.log_sectorsize.get()),
        sb.log_sectors_per_block.get().into(),
    )?;
    Ok(())
}

/// Its counts of segments, sections, zones and blocks fit each other, and its own inodes have the numbers that F2FS
/// gives them.
fn check_counts(sb: &SuperBlock) -> Result<(), Corruption> {
    let segment_count = sb.segment_count.get();
    let main_segments = sb.segment_count_main.get();
    let segs_per_sec = sb.segs_per_sec.get();
    let secs_per_zone = sb.secs_per_zone.get();
    let sections = sb.section_count.get();
    Corruption::check_range(
        "superblock segment_count",
        segment_count.into(),
        9,
        u64::from(u32::MAX / BLOCKS_PER_SEGMENT),
    )?;
    Corruption::check_range("superblock segment_count_main", main_segments.into(), 1, segment_count.into())?;
    Corruption::check_range("superblock segs_per_sec", segs_per_sec.into(), 1, segment_count.into())?;
    Corruption::check_range("superblock secs_per_zone", secs_per_zone.into(), 1, segment_count.into())?;
    Corruption::check_range("superblock section_count", sections.into(), 1, main_segments.into())?;
    Corruption::check_equal(
        "superblock segment_count_main",
        u64::from(sections) * u64::from(segs_per_sec),
        main_segments.into(),
    )?;
    let block_count = sb.block_count.get();
    Corruption::check_range(
        "superblock block_count",
        block_count,
        u64::from(segment_count) * u64::from(BLOCKS_PER_SEGMENT),
        1 << 32,
    )?;
    Corruption::check_range(
        "superblock cp_payload",
        sb.cp_payload.get().into(),
        0,
        u64::from(BLOCKS_PER_SEGMENT) - 2 - 8,
    )?;
    Corruption::check_equal("superblock node_ino", 1, sb.node_ino.get().into())?;
    Corruption::check_equal("superblock meta_ino", 2, sb.meta_ino.get().into())?;
    Corruption::check_equal("superblock root_ino", 3, sb.root_ino.get().into())?;
    Corruption::check_range(
        "superblock extension_count",
        u64::from(sb.extension_count.get()) + u64::from(sb.hot_ext_count),
        0,
        64,
    )?;
    Ok(())
}

/// Its areas follow each other without a gap, lie on the device, and have room for the tables of all segments.
fn check_areas(sb: &SuperBlock) -> Result<(), Corruption> {
    let (segment_count, main_segments) = (sb.segment_count.get(), sb.segment_count_main.get());
    let (block_count, features) = (sb.block_count.get(), Features(sb.feature.get()));
    let area = |segments: u32| u64::from(segments) * u64::from(BLOCKS_PER_SEGMENT);
    let cp = u64::from(sb.cp_blkaddr.get());
    let sit = u64::from(sb.sit_blkaddr.get());
    let nat = u64::from(sb.nat_blkaddr.get());
    let ssa = u64::from(sb.ssa_blkaddr.get());
    let main = u64::from(sb.main_blkaddr.get());
    Corruption::check_equal("superblock segment_count_ckpt", 2, sb.segment_count_ckpt.get().into())?;
    Corruption::check_range(
        "superblock segment_count_sit",
        sb.segment_count_sit.get().into(),
        2,
        segment_count.into(),
    )?;
    Corruption::check_range(
        "superblock segment_count_nat",
        sb.segment_count_nat.get().into(),
        2,
        segment_count.into(),
    )?;
    // A volume that is never written has no summaries.
    let read_only = features.contains(Features::READONLY);
    let least_ssa = u64::from(!read_only);
    Corruption::check_range(
        "superblock segment_count_ssa",
        sb.segment_count_ssa.get().into(),
        least_ssa,
        segment_count.into(),
    )?;
    Corruption::check_equal("superblock segment_count_sit (odd)", 0, u64::from(sb.segment_count_sit.get() % 2))?;
    Corruption::check_equal("superblock segment_count_nat (odd)", 0, u64::from(sb.segment_count_nat.get() % 2))?;
    Corruption::check_range("superblock segment0_blkaddr", sb.segment0_blkaddr.get().into(), 2, block_count)?;
    Corruption::check_equal("superblock cp_blkaddr", sb.segment0_blkaddr.get().into(), cp)?;
    Corruption::check_equal("superblock sit_blkaddr", cp + area(2), sit)?;
    Corruption::check_equal("superblock nat_blkaddr", sit + area(sb.segment_count_sit.get()), nat)?;
    Corruption::check_equal("superblock ssa_blkaddr", nat + area(sb.segment_count_nat.get()), ssa)?;
    Corruption::check_equal("superblock main_blkaddr", ssa + area(sb.segment_count_ssa.get()), main)?;
    let end = main + area(main_segments);
    Corruption::check_range("superblock end of the main area", end, main, cp + area(segment_count))?;
    // The two highest addresses mean "reserved" and "compressed".
    Corruption::check_range("superblock end of the main area", end, main, block_count.min(u64::from(u32::MAX) - 1))?;
    Corruption::check_range(
        "superblock segment_count_sit",
        area(sb.segment_count_sit.get()) / 2,
        u64::from(main_segments.div_ceil(sit::ENTRIES_PER_BLOCK as u32)),
        u64::MAX,
    )?;
    if !read_only {
        Corruption::check_range(
            "superblock segment_count_ssa",
            area(sb.segment_count_ssa.get()),
            main_segments.into(),
            u64::MAX,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;
    use zerocopy::{FromBytes, IntoBytes};

    use super::*;
    use crate::mkfs::{FormatOptions, VolumePlan};

    fn superblock(features: Features) -> SuperBlock {
        VolumePlan::new(&FormatOptions::default().with_features(features), 1 << 30).unwrap().superblock
    }

    #[test]
    fn each_field_is_checked() {
        type Change = fn(&mut SuperBlock);
        let wrong: [(&str, Change); 31] = [
            ("magic", |sb| sb.magic = 0.into()),
            ("log_blocksize", |sb| sb.log_blocksize = 14.into()),
            ("log_blocks_per_seg", |sb| sb.log_blocks_per_seg = 10.into()),
            ("log_sectorsize", |sb| sb.log_sectorsize = 13.into()),
            ("log_sectors_per_block", |sb| sb.log_sectors_per_block = 4.into()),
            ("segment_count", |sb| sb.segment_count = 8.into()),
            ("segment_count", |sb| sb.segment_count = u32::MAX.into()),
            ("segment_count_main", |sb| sb.segment_count_main = 0.into()),
            ("segment_count_main", |sb| sb.segment_count_main = 503.into()),
            ("segs_per_sec", |sb| sb.segs_per_sec = 0.into()),
            ("secs_per_zone", |sb| sb.secs_per_zone = 0.into()),
            ("section_count", |sb| sb.section_count = 0.into()),
            ("section_count", |sb| sb.section_count = u32::MAX.into()),
            ("block_count", |sb| sb.block_count = 1000.into()),
            ("block_count", |sb| sb.block_count = u64::MAX.into()),
            ("cp_payload", |sb| sb.cp_payload = 503.into()),
            ("node_ino", |sb| sb.node_ino = 0.into()),
            ("meta_ino", |sb| sb.meta_ino = 3.into()),
            ("root_ino", |sb| sb.root_ino = 4.into()),
            ("extension_count", |sb| sb.extension_count = 61.into()),
            ("segment_count_ckpt", |sb| sb.segment_count_ckpt = 3.into()),
            ("segment_count_sit", |sb| sb.segment_count_sit = 3.into()),
            ("segment_count_nat", |sb| sb.segment_count_nat = 0.into()),
            ("segment_count_ssa", |sb| sb.segment_count_ssa = 0.into()),
            ("segment0_blkaddr", |sb| sb.segment0_blkaddr = 1.into()),
            ("cp_blkaddr", |sb| sb.cp_blkaddr = 513.into()),
            ("sit_blkaddr", |sb| sb.sit_blkaddr = 0.into()),
            ("nat_blkaddr", |sb| sb.nat_blkaddr = 0.into()),
            ("ssa_blkaddr", |sb| sb.ssa_blkaddr = u32::MAX.into()),
            ("main_blkaddr", |sb| sb.main_blkaddr = 5119.into()),
            ("end of the main area", |sb| (sb.section_count, sb.segment_count_main) = (503.into(), 503.into())),
        ];
        for (field, change) in wrong {
            let mut sb = superblock(Features(0));
            change(&mut sb);
            let error = Geometry::from_superblock(&sb).unwrap_err().to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
    }

    #[test]
    fn the_checksum_counts_where_it_is_on() {
        let mut sb = superblock(Features::SB_CHECKSUM);
        assert!(Geometry::from_superblock(&sb).is_ok());
        sb.volume_name[0] = 65.into();
        assert!(matches!(Geometry::from_superblock(&sb), Err(Corruption::Checksum { .. })));
        sb.checksum_offset = 0.into();
        assert!(matches!(Geometry::from_superblock(&sb), Err(Corruption::Mismatch { found: 0, .. })));
    }

    #[test]
    fn addresses_and_segments() {
        let geometry = Geometry::from_superblock(&superblock(Features(0))).unwrap();
        let first = geometry.main_blkaddr;
        assert_eq!(geometry.locate(first), Some((SegmentNo(0), 0)));
        assert_eq!(geometry.locate(BlockAddr(first.0 - 1)), None);
        assert_eq!(geometry.locate(BlockAddr(geometry.main_end().0 - 1)), Some((SegmentNo(501), 511)));
        assert_eq!(geometry.locate(geometry.main_end()), None);
        assert_eq!((geometry.locate(BlockAddr::NEW), geometry.locate(BlockAddr::NULL)), (None, None));
        assert_eq!(geometry.block_at(SegmentNo(501), 511).0, geometry.main_end().0 - 1);
        // The copies of a NAT block lie a segment apart, those of a SIT block half the area.
        assert_eq!((geometry.nat_block(511, false).0, geometry.nat_block(511, true).0), (2560 + 511, 2560 + 1023));
        assert_eq!((geometry.nat_block(512, false).0, geometry.nat_block(1023, true).0), (2560 + 1024, 2560 + 2047));
        assert_eq!((geometry.sit_block(3, false).0, geometry.sit_block(3, true).0), (1539, 1536 + 512 + 3));
        assert_eq!((geometry.sit_blocks(), geometry.nat_blocks(), geometry.max_nid()), (10, 1024, 1024 * 455));
    }

    proptest! {
        #[test]
        fn random_superblocks_never_panic(bytes in prop::collection::vec(any::<u8>(), 124), keep in prop::collection::vec(any::<bool>(), 124)) {
            let mut sb = superblock(Features(0));
            for ((stored, random), keep) in sb.as_mut_bytes().iter_mut().zip(&bytes).zip(keep).skip(4) {
                if !keep {
                    *stored = *random;
                }
            }
            let mut random = SuperBlock::ZERO;
            random.as_mut_bytes()[..124].copy_from_slice(&bytes);
            random.magic = MAGIC.into();
            for sb in [sb, random] {
                if let Ok(geometry) = Geometry::from_superblock(&SuperBlock::read_from_bytes(sb.as_bytes()).unwrap()) {
                    prop_assert!(geometry.main_end() > geometry.main_blkaddr);
                    prop_assert!(geometry.max_nid() > 0);
                }
            }
        }
    }
}
