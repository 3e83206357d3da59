//! The two checkpoint packs, and the fields of the one in force.

use f2fs_format::checkpoint::{self, CheckpointBlock, CheckpointHeader, VersionBitmaps, alloc_type, flags};
use f2fs_format::feature::Features;
use f2fs_format::summary::{COMPACT_FIRST, COMPACT_NEXT, compact};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Corruption, Geometry, LogType, RawBlock, SegmentNo};

use super::error::CheckError;
use super::finding::{FindingKind, Place, Problem};
use super::report::Collector;
use super::source::Source;

/// Logs, each with one summary block in the pack.
const LOGS: u32 = 6;
/// Segments of metadata that fsck.f2fs and the kernel want at least, the reserved ones counted in.
const MIN_META_SEGMENTS: u64 = 8;

/// The pack in force.
#[derive(Debug)]
pub(super) struct Pack {
    /// 0 or 1.
    pub(super) index: u32,
    /// Its first block.
    pub(super) start: BlockAddr,
    /// Its checkpoint block.
    pub(super) block: CheckpointBlock,
    /// Which copy of each SIT and NAT block is valid.
    pub(super) bitmaps: VersionBitmaps,
}

impl Pack {
    pub(super) fn header(&self) -> &CheckpointHeader {
        &self.block.header
    }

    /// Whether a flag of `ckpt_flags` is set.
    pub(super) fn has(&self, flag: u32) -> bool {
        self.header().ckpt_flags.get() & flag != 0
    }

    /// Blocks of the pack, both checkpoint blocks included.
    pub(super) fn total(&self) -> u32 {
        self.header().cp_pack_total_block_count.get()
    }

    /// Where the summaries begin, counted from the start of the pack.
    pub(super) fn start_sum(&self) -> u32 {
        self.header().cp_pack_start_sum.get()
    }

    /// Whether the pack holds the summaries of the node logs.
    pub(super) fn has_node_summaries(&self) -> bool {
        self.has(flags::UMOUNT | flags::FASTBOOT)
    }

    /// The segment of a log, and where it goes on.
    pub(super) fn log(&self, log: LogType) -> (SegmentNo, u32) {
        let header = self.header();
        let index = log.index() % 3;
        if log.is_node() {
            (header.cur_node_segno[index].into(), header.cur_node_blkoff[index].get().into())
        } else {
            (header.cur_data_segno[index].into(), header.cur_data_blkoff[index].get().into())
        }
    }

    /// Whether a log fills the holes of an old segment.
    pub(super) fn is_ssr(&self, log: LogType) -> bool {
        self.header().alloc_type[log.index()] == alloc_type::SSR
    }

    /// Entries that each data log has in a compact summary.
    pub(super) fn data_entries(&self) -> [usize; 3] {
        [LogType::HotData, LogType::WarmData, LogType::ColdData].map(|log| {
            let allocation = self.header().alloc_type[log.index()];
            compact::entry_count(self.log(log).1 as u16, allocation)
        })
    }

    /// Blocks of the data summaries.
    pub(super) fn data_summary_blocks(&self) -> u32 {
        if self.has(flags::COMPACT_SUM) { compact_blocks(self) } else { 3 }
    }
}

/// The checkpoint block of a pack, or why it is none.
type Candidate = Result<CheckpointBlock, Corruption>;

fn read_both(source: &Source<'_>, geometry: &Geometry) -> Result<[Candidate; 2], CheckError> {
    Ok([read(source, geometry.checkpoint_pack(0))?, read(source, geometry.checkpoint_pack(1))?])
}

/// Reads one pack's checkpoint block and the copy that ends it (`validate_checkpoint` in `fs/f2fs/checkpoint.c`).
fn read(source: &Source<'_>, start: BlockAddr) -> Result<Candidate, CheckError> {
    let first = CheckpointBlock::read(source.block(start)?.block(0));
    if let Err(bad) = first.verify() {
        return Ok(Err(bad));
    }
    let total = first.header.cp_pack_total_block_count.get();
    if !(3..=BLOCKS_PER_SEGMENT).contains(&total) {
        let (found, max) = (total.into(), BLOCKS_PER_SEGMENT.into());
        return Ok(Err(Corruption::Range { what: "cp_pack_total_block_count", found, min: 3, max }));
    }
    let last = CheckpointBlock::read(source.block(start.offset(total - 1))?.block(0));
    if let Err(bad) = last.verify() {
        return Ok(Err(bad));
    }
    let (expected, found) = (first.header.checkpoint_ver.get(), last.header.checkpoint_ver.get());
    if expected != found {
        return Ok(Err(Corruption::Mismatch { what: "checkpoint_ver of the last block", expected, found }));
    }
    Ok(Ok(first))
}

/// The blocks that end a pack here, or ended one before: what is left of a checkpoint if its first block is bad.
pub(super) fn ends(source: &Source<'_>, start: BlockAddr) -> Result<Vec<CheckpointBlock>, CheckError> {
    let blocks = source.run(start, BLOCKS_PER_SEGMENT as usize)?;
    let all = (0..BLOCKS_PER_SEGMENT).map(|offset| (offset, CheckpointBlock::read(blocks.block(offset as usize))));
    Ok(all.filter(|(offset, block)| *offset != 0 && block.is_end_at(*offset)).map(|(_, block)| block).collect())
}

/// A checkpoint that is newer than the one in force, and has lost its first block.
#[derive(Debug)]
pub(super) struct Lost {
    /// Its pack.
    pub(super) index: u32,
    /// Its last block, which its first one was a copy of.
    pub(super) end: CheckpointBlock,
}

impl Lost {
    pub(super) fn find(source: &Source<'_>, geometry: &Geometry) -> Result<Option<Lost>, CheckError> {
        Lost::beside(source, geometry, &read_both(source, geometry)?)
    }

    /// Looks for it in the pack that is bad, if the other one is good.
    fn beside(source: &Source<'_>, geometry: &Geometry, packs: &[Candidate; 2]) -> Result<Option<Lost>, CheckError> {
        let (index, good) = match packs {
            [Ok(good), Err(_)] => (1, good),
            [Err(_), Ok(good)] => (0, good),
            _ => return Ok(None),
        };
        let ends = ends(source, geometry.checkpoint_pack(index))?;
        Ok(ends.into_iter().find(|end| end.follows(good)).map(|end| Lost { index, end }))
    }

    pub(super) fn version(&self) -> u64 {
        self.end.header.checkpoint_ver.get()
    }
}

/// Finds the pack in force. `None`: the rest cannot be judged by any; the findings say why.
pub(super) fn load(source: &Source<'_>, geometry: &Geometry, findings: &Collector) -> Result<Option<Pack>, CheckError> {
    let packs = read_both(source, geometry)?;
    let kind = if packs.iter().all(Result::is_err) { FindingKind::NoCheckpoint } else { FindingKind::TornPack };
    for (index, pack) in (0..).zip(&packs) {
        if let Err(bad) = pack {
            findings.add(kind, Place::Pack(index), Problem::Corrupt(bad.clone()));
        }
    }
    if let Some(lost) = Lost::beside(source, geometry, &packs)? {
        let what = "the first block of a checkpoint is lost, which is newer than the one in force; its version";
        let problem = Problem::Fault { what, found: lost.version() };
        findings.add(FindingKind::LostCheckpoint, Place::Pack(lost.index), problem);
    }
    let (index, block) = match packs {
        [Ok(first), Ok(second)] => {
            let ahead = second.header.checkpoint_ver.get().wrapping_sub(first.header.checkpoint_ver.get());
            if ahead.cast_signed() > 0 { (1, second) } else { (0, first) }
        }
        [Ok(first), Err(_)] => (0, first),
        [Err(_), Ok(second)] => (1, second),
        [Err(_), Err(_)] => return Ok(None),
    };
    let start = geometry.checkpoint_pack(index);
    let mut pack = Pack { index, start, block, bitmaps: VersionBitmaps::new(geometry) };
    if !check_layout(&pack, geometry, findings) {
        return Ok(None);
    }
    check_counts(&pack, geometry, findings);
    check_flags(&pack, findings);
    check_logs(&pack, geometry, findings);
    let payload = source.run(start.offset(1), geometry.cp_payload as usize)?;
    let payload: Vec<RawBlock> = (0..payload.blocks()).map(|index| *payload.block(index)).collect();
    match VersionBitmaps::read(&pack.block, &payload, geometry) {
        Ok(bitmaps) => pack.bitmaps = bitmaps,
        Err(bad) => {
            findings.add(FindingKind::Checkpoint, Place::Pack(index), Problem::Corrupt(bad));
            return Ok(None);
        }
    }
    Ok(Some(pack))
}

/// Checks the fields by which everything behind the checkpoint is found. False: it is not found.
fn check_layout(pack: &Pack, geometry: &Geometry, findings: &Collector) -> bool {
    let (kind, place) = (FindingKind::Checkpoint, Place::Pack(pack.index));
    let header = pack.header();
    let mut usable = true;
    let mut demand = |what, found: u64, min: u64, max: u64| {
        if !(min..=max).contains(&found) {
            findings.add(kind, place.clone(), Problem::Range { what, found, min, max });
            usable = false;
        }
    };
    let (sit, nat) = (geometry.sit_bitmap_size() as u64, geometry.nat_bitmap_size() as u64);
    demand("sit_ver_bitmap_bytesize", header.sit_ver_bitmap_bytesize.get().into(), sit, sit);
    demand("nat_ver_bitmap_bytesize", header.nat_ver_bitmap_bytesize.get().into(), nat, nat);
    let payload = u64::from(geometry.cp_payload);
    demand("cp_pack_start_sum", pack.start_sum().into(), payload + 1, u64::from(BLOCKS_PER_SEGMENT - 1 - LOGS));
    for log in LogType::ALL.into_iter().filter(|log| geometry.has_log(*log)) {
        let (segment, offset) = pack.log(log);
        demand("segment of a log", segment.0.into(), 0, u64::from(geometry.main_segments) - 1);
        demand("block offset of a log", offset.into(), 0, u64::from(BLOCKS_PER_SEGMENT) - 1);
    }
    if !usable {
        return false;
    }
    let payload_or_orphans = if pack.has(flags::ORPHAN_PRESENT) { pack.start_sum() } else { geometry.cp_payload + 1 };
    findings.expect(kind, &place, "cp_pack_start_sum", payload_or_orphans.into(), pack.start_sum().into());
    let node_summaries = if pack.has_node_summaries() { 3 } else { 0 };
    let total = pack.start_sum() + pack.data_summary_blocks() + node_summaries + 1;
    findings.expect(kind, &place, "cp_pack_total_block_count", total.into(), pack.total().into());
    total <= pack.total()
}

/// Blocks of a compact summary: one, unless the entries of the data logs do not fit behind the journals.
fn compact_blocks(pack: &Pack) -> u32 {
    let rest = pack.data_entries().iter().sum::<usize>().saturating_sub(COMPACT_FIRST);
    1 + rest.div_ceil(COMPACT_NEXT) as u32
}

/// Segments that are the users' and do not exist: mkfs.f2fs counts those of an incomplete last zone, and with zones on
/// one device those of the zone in front of the first segment. Nothing ever corrects that.
pub(crate) fn slack_segments(geometry: &Geometry) -> u64 {
    let zone = u64::from(geometry.segs_per_sec) * u64::from(geometry.secs_per_zone);
    let in_front = if geometry.features.contains(Features::BLKZONED) { zone } else { 0 };
    zone - 1 + in_front
}

fn check_counts(pack: &Pack, geometry: &Geometry, findings: &Collector) {
    let (kind, place) = (FindingKind::Checkpoint, Place::Pack(pack.index));
    let header = pack.header();
    let range = |what, found: u64, min: u64, max: u64| {
        if !(min..=max).contains(&found) {
            findings.add(kind, place.clone(), Problem::Range { what, found, min, max });
        }
    };
    let readonly = geometry.features.contains(Features::READONLY);
    let (main, least) = (u64::from(geometry.main_segments), u64::from(!readonly));
    let reserved = u64::from(header.rsvd_segment_count.get());
    let overprovision = u64::from(header.overprov_segment_count.get());
    let meta = 2 + u64::from(geometry.sit_segments) + u64::from(geometry.nat_segments);
    let meta = meta + u64::from(geometry.ssa_segments);
    range("rsvd_segment_count", reserved, least, main - 1);
    range("overprov_segment_count", overprovision, least, main - 1);
    let min = if readonly { 0 } else { MIN_META_SEGMENTS };
    range("segments of metadata and reserve", meta + reserved, min, u64::from(geometry.segment_count) - 1);
    let segment = u64::from(BLOCKS_PER_SEGMENT);
    let user_max = (main + slack_segments(geometry)).saturating_sub(overprovision) * segment;
    range("user_block_count", header.user_block_count.get(), 1, user_max);
    range("valid_block_count", header.valid_block_count.get(), 0, header.user_block_count.get());
    let nids = u64::from(geometry.max_nid());
    range("valid_node_count", header.valid_node_count.get().into(), 0, nids - 3);
    range("valid_inode_count", header.valid_inode_count.get().into(), 0, header.valid_node_count.get().into());
    range("next_free_nid", header.next_free_nid.get().into(), 0, nids - 1);
}

fn check_flags(pack: &Pack, findings: &Collector) {
    let marks = [(FindingKind::Marked, flags::ERROR | flags::FSCK), (FindingKind::Quotas, flags::QUOTA_NEED_FSCK)];
    for (kind, bits) in marks {
        let marked = pack.header().ckpt_flags.get() & bits;
        if marked != 0 {
            let problem = Problem::Bits { what: "ckpt_flags", expected: 0, found: marked.into() };
            findings.add(kind, Place::Pack(pack.index), problem);
        }
    }
    let large = pack.has(flags::LARGE_NAT_BITMAP);
    let expected = if large { checkpoint::HEADER_SIZE } else { checkpoint::CHECKSUM_OFFSET };
    let (place, found) = (Place::Pack(pack.index), pack.header().checksum_offset.get());
    findings.expect(FindingKind::Checkpoint, &place, "checksum_offset", expected as u64, found.into());
}

/// Six distinct segments, and a known way to fill each.
fn check_logs(pack: &Pack, geometry: &Geometry, findings: &Collector) {
    if geometry.features.contains(Features::READONLY) {
        return;
    }
    for (index, log) in LogType::ALL.into_iter().enumerate() {
        let segment = pack.log(log).0;
        if LogType::ALL[..index].iter().any(|other| pack.log(*other).0 == segment) {
            let what = "the segment is another log's too";
            findings.add(FindingKind::Log, Place::Log(log), Problem::Fault { what, found: segment.0.into() });
        }
        let found = u64::from(pack.header().alloc_type[log.index()]);
        let max = u64::from(alloc_type::SSR);
        if found > max {
            let problem = Problem::Range { what: "alloc_type", found, min: 0, max };
            findings.add(FindingKind::Log, Place::Log(log), problem);
        }
    }
}
