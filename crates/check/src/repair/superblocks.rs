//! The two superblocks: which of them a repair believes, and the fields that follow from others.
//!
//! Linux takes the first copy if it makes sense by itself. A flipped bit may well leave it so: a feature that is on or
//! off, another seed of the checksums, another size of the checkpoint packs. A repair that believed it would mend a
//! whole volume to pieces. So where the copies differ the volume is checked with each of them, and the one with which
//! less is wrong is the right one. If as much is wrong with both, the one with checksums is: they would not all be right
//! by chance. Else the one with fewer features of those that no inode uses is taken, and then the first.

use f2fs_device::BlockDevice;
use f2fs_format::feature::Features;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Geometry, LogType};
use f2fs_sync::PlainArc;

use super::beginning::Beginning;
use super::overlay::Overlay;
use super::state::State;
use super::{Repair, RepairError, UNREPAIRED};
use crate::pack::Pack;
use crate::report::{CheckReport, Collector};
use crate::source::Source;
use crate::superblock::{first_difference, refused};
use crate::{CheckError, CheckOptions, judge, pack};

/// A copy, and how the volume is with it in both places.
struct Candidate {
    copy: u32,
    sb: SuperBlock,
    overlay: Overlay,
    report: CheckReport,
    /// By its checkpoint, if there is one.
    reserved_segments: Option<u32>,
}

impl Candidate {
    fn new(
        device: &PlainArc<dyn BlockDevice>,
        options: &CheckOptions<'_>,
        (copy, sb): (u32, SuperBlock),
    ) -> Result<Option<Candidate>, RepairError> {
        let overlay = Overlay::new(device.clone());
        put(&overlay, &sb)?;
        let report = match judge(&overlay, options) {
            Ok(report) => report,
            Err(CheckError::Device(error)) => return Err(error.into()),
            Err(_) => return Ok(None),
        };
        let pack = pack_in_force(&overlay)?;
        let reserved_segments = pack.map(|(_, pack)| pack.header().rsvd_segment_count.get());
        Ok(Some(Candidate { copy, sb, overlay, report, reserved_segments }))
    }

    /// What speaks against it: the less, the better.
    fn doubt(&self, on_zones: bool) -> (bool, u64, u32, u32) {
        let features = Features(self.sb.feature.get());
        let misses_zones = on_zones != features.contains(Features::BLKZONED);
        // Nothing is kept free on a volume that is never written.
        let is_written = self.reserved_segments.is_some_and(|segments| segments != 0);
        let misses_writes = is_written && features.contains(Features::READONLY);
        let findings = self.report.findings.len() as u64 + self.report.suppressed;
        let unproved = (Features::INODE_CHECKSUM.0 | Features::SB_CHECKSUM.0) & !features.0;
        // A feature that is off and that an inode uses is a finding.
        let unused = features.0 & UNREPAIRED.0;
        (!self.report.complete || misses_zones || misses_writes, findings, unproved.count_ones(), unused.count_ones())
    }
}

/// Chooses between the copies if they differ; says in `repair` when nothing else has to be done.
pub(super) fn begin(
    device: &PlainArc<dyn BlockDevice>,
    options: &CheckOptions<'_>,
    repair: &mut Repair,
) -> Result<Beginning, RepairError> {
    let copies = [0, 1].map(|copy| device.read(copy, 1).map(|block| SuperBlock::read(block.block(0))));
    let [first, second] = copies;
    let copies = [first?, second?];
    let valid = |sb: &SuperBlock| Geometry::from_superblock(sb).is_ok_and(|found| refused(found.features).0 == 0);
    if copies.iter().all(valid) && first_difference(&copies[0], &copies[1]).is_none() {
        return Ok(Beginning::new(device));
    }
    let mut candidates = Vec::new();
    for candidate in (0..).zip(copies).filter(|(_, sb)| valid(sb)) {
        candidates.extend(Candidate::new(device, options, candidate)?);
    }
    let source = Source::new(&**device);
    let on_zones = !source.zones()?.is_empty();
    let Some(best) = candidates.into_iter().min_by_key(|candidate| candidate.doubt(on_zones)) else {
        return Ok(Beginning::new(device));
    };
    let (wrong, right) = (2 - best.copy, best.copy + 1);
    let mut actions = vec![format!("superblock {wrong}: is written anew, as superblock {right} says")];
    if !best.report.needs_repair() && best.report.complete {
        repair.witnesses = witnesses(&best.overlay)?;
        repair.changes = best.overlay.changes()?;
        repair.after = best.report;
        repair.actions.append(&mut actions);
    }
    Ok(Beginning { overlay: best.overlay, actions })
}

/// The checkpoint by which the rest is read, and where it lies.
fn pack_in_force(overlay: &Overlay) -> Result<Option<(Geometry, Pack)>, CheckError> {
    let (source, ignored) = (Source::new(overlay), Collector::default());
    let (_, geometry) = crate::superblock::load(&source, &ignored)?;
    let pack = pack::load(&source, &geometry, &ignored)?;
    Ok(pack.map(|pack| (geometry, pack)))
}

/// The blocks that change when the volume is written to.
fn witnesses(overlay: &Overlay) -> Result<Vec<u64>, RepairError> {
    let Some((geometry, pack)) = pack_in_force(overlay)? else { return Ok(Vec::new()) };
    let (segment, offset) = pack.log(LogType::WarmNode);
    let chain = geometry.block_at(segment, offset);
    let packs = [0, 1].map(|pack| geometry.checkpoint_pack(pack));
    Ok(packs.into_iter().chain([chain]).map(|addr| addr.0.into()).collect())
}

/// Puts a superblock in both places; returns the copies that change by that.
fn put(overlay: &Overlay, sb: &SuperBlock) -> Result<Vec<u32>, RepairError> {
    let mut changed = Vec::new();
    for copy in [0, 1] {
        let mut block = overlay.block(BlockAddr(copy))?;
        let before = block.clone();
        sb.write(&mut block);
        if block != before {
            overlay.put(BlockAddr(copy), &block);
            changed.push(copy);
        }
    }
    Ok(changed)
}

/// Fields of the superblock that follow from others, and the other copy.
pub(super) fn mend(overlay: &Overlay, sb: &mut SuperBlock, state: &mut State) -> Result<(), RepairError> {
    let seal = |sb: &mut SuperBlock| {
        if Features(sb.feature.get()).contains(Features::SB_CHECKSUM) {
            sb.crc = sb.compute_crc().into();
        }
    };
    let known = Features::NAMES.iter().fold(0, |bits, (feature, _)| bits | feature.0);
    let unknown = sb.feature.get() & !known;
    if unknown != 0 {
        sb.feature = (sb.feature.get() & known).into();
        state.act(|| format!("superblock: the unknown feature bits {unknown:#x} are cleared"));
    }
    let needs_extra = Features::PROJECT_QUOTA.0
        | Features::INODE_CHECKSUM.0
        | Features::FLEXIBLE_INLINE_XATTR.0
        | Features::INODE_CRTIME.0;
    if sb.feature.get() & needs_extra != 0 && sb.feature.get() & Features::EXTRA_ATTR.0 == 0 {
        sb.feature = (sb.feature.get() | Features::EXTRA_ATTR.0).into();
        state.act(|| "superblock: the feature extra_attr is on, which others need".to_owned());
    }
    if sb.feature.get() & Features::QUOTA.0 == 0 && sb.qf_ino.iter().any(|ino| ino.get() != 0) {
        // Files of users may be taken for quota files by a bit that was flipped in one copy.
        for copy in [0, 1] {
            let other = SuperBlock::read(&*overlay.block(BlockAddr(copy))?);
            if other.magic == sb.magic && other.qf_ino.iter().all(|ino| ino.get() == 0) {
                sb.qf_ino = other.qf_ino;
                state.act(|| format!("superblock: names no quota files, as in copy {}", copy + 1));
                break;
            }
        }
    }
    seal(sb);
    let geometry = Geometry::from_superblock(sb)?;
    let device = overlay.info().blocks;
    // On several devices the count has those behind the last segment of each.
    if geometry.block_count > device && sb.devs[1].path[0] == 0 {
        sb.block_count = device.into();
        state.act(|| format!("superblock: block_count is {device}, was {}", geometry.block_count));
    }
    let segments = (geometry.main_end().0 - geometry.segment0_blkaddr.0) / BLOCKS_PER_SEGMENT;
    if segments != geometry.segment_count {
        sb.segment_count = segments.into();
        state.act(|| format!("superblock: segment_count is {segments}, was {}", geometry.segment_count));
    }
    if geometry.secs_per_zone > geometry.sections {
        sb.secs_per_zone = 1.into();
        state.act(|| format!("superblock: secs_per_zone is 1, was {}", geometry.secs_per_zone));
    }
    seal(sb);
    for copy in put(overlay, sb)? {
        state.act(|| format!("superblock {}: is written anew", copy + 1));
    }
    Ok(())
}
