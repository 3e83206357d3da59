//! Both superblock copies, and the choice between them.

use f2fs_format::feature::Features;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Geometry};
use zerocopy::IntoBytes;

use super::error::CheckError;
use super::finding::{FindingKind, Place, Problem};
use super::report::Collector;
use super::source::Source;

/// Least number of sections (`F2FS_MIN_SEGMENTS` of fsck.f2fs).
const MIN_SECTIONS: u64 = 9;

/// Reads both copies; the first valid one is in force, as in Linux. If it alone has features that nobody can read, or
/// lies on other devices than these, that is a damage, and the second is.
///
/// # Errors
/// [`CheckError::NoSuperblock`], [`CheckError::BlockSize`], [`CheckError::Unsupported`], [`CheckError::DeviceTooSmall`].
pub(super) fn load(source: &Source<'_>, findings: &Collector) -> Result<(SuperBlock, Geometry), CheckError> {
    let blocks = source.blocks(&[BlockAddr(0), BlockAddr(1)])?;
    let copies = [0, 1].map(|copy| SuperBlock::read(blocks.get(copy)));
    let [first, second] = copies.map(|copy| Geometry::from_superblock(&copy));
    let (sb, geometry) = match (first, second) {
        (Ok(first), Ok(second)) if refused(first.features).0 & !second.features.0 != 0 => {
            let (found, what) = (refused(first.features).0, "features that cannot be read, and the other copy has not");
            findings.add(FindingKind::Superblock, Place::Superblock(0), Problem::Fault { what, found: found.into() });
            (copies[1], second)
        }
        (Ok(first), Ok(second)) if !fits(&copies[0], &first, source) && fits(&copies[1], &second, source) => {
            let what = "the devices do not fit, as they do by the other copy; end of the main area";
            let problem = Problem::Fault { what, found: first.main_end().0.into() };
            findings.add(FindingKind::Superblock, Place::Superblock(0), problem);
            (copies[1], second)
        }
        (Ok(geometry), Ok(second)) => {
            let (kind, place) = (FindingKind::SuperblockCopy, Place::Superblock(1));
            let (bits, others) = (geometry.features.0.into(), second.features.0.into());
            if bits != others {
                findings.expect(kind, &place, "feature bits, by the other copy", bits, others);
            } else if let Some(byte) = first_difference(&copies[0], &copies[1]) {
                let what = "the valid copies differ, first at byte";
                let problem = Problem::Fault { what, found: byte as u64 };
                findings.add(kind, place, problem);
            }
            (copies[0], geometry)
        }
        (Ok(geometry), Err(bad)) => {
            findings.add(FindingKind::SuperblockCopy, Place::Superblock(1), Problem::Corrupt(bad));
            (copies[0], geometry)
        }
        (Err(bad), Ok(geometry)) => {
            findings.add(FindingKind::SuperblockCopy, Place::Superblock(0), Problem::Corrupt(bad));
            (copies[1], geometry)
        }
        (Err(first), Err(second)) => {
            return Err(match copies[0].larger_blocks() {
                Some(bytes) => CheckError::BlockSize { bytes },
                None => CheckError::NoSuperblock { first, second },
            });
        }
    };
    check_features(geometry.features, findings)?;
    check_devices(&sb, source.device_parts(), findings)?;
    let needed = u64::from(geometry.main_end().0);
    if needed > source.device_blocks() {
        return Err(CheckError::DeviceTooSmall { needed, found: source.device_blocks() });
    }
    check_fields(&geometry, &sb, source.device_blocks(), findings);
    Ok((sb, geometry))
}

/// Whether these are the devices that a copy names, and are large enough.
fn fits(sb: &SuperBlock, geometry: &Geometry, source: &Source<'_>) -> bool {
    check_devices(sb, source.device_parts(), &Collector::default()).is_ok()
        && u64::from(geometry.main_end().0) <= source.device_blocks()
}

/// The first byte in which two copies differ, other than in fields of which only one copy is written: the kernel's
/// version strings (fsck.f2fs updates one copy alone), the error log, and the checksum over them may differ.
pub(super) fn first_difference(a: &SuperBlock, b: &SuperBlock) -> Option<usize> {
    let comparable = |sb: &SuperBlock| {
        let mut sb = *sb;
        sb.version = [0; 256];
        sb.s_stop_reason = [0; 32];
        sb.s_errors = [0; 16];
        sb.crc = 0.into();
        sb
    };
    let (a, b) = (comparable(a), comparable(b));
    a.as_bytes().iter().zip(b.as_bytes()).position(|(a, b)| a != b)
}

/// Whether these are the devices that the superblock names. Entries that cannot be are a finding.
fn check_devices(sb: &SuperBlock, parts: &[(u64, u64)], findings: &Collector) -> Result<(), CheckError> {
    let expected: Vec<u64> = match sb.devices() {
        Ok(devices) => devices.iter().map(|device| device.blocks).collect(),
        Err(bad) => {
            findings.add(FindingKind::Superblock, Place::Volume, Problem::Corrupt(bad));
            return Ok(());
        }
    };
    let found: Vec<u64> = parts.iter().map(|(used, _)| *used).collect();
    if expected.len().max(found.len()) > 1 && expected != found {
        return Err(CheckError::Devices { expected, found });
    }
    Ok(())
}

/// Those of the features that nobody here can read.
pub(super) fn refused(features: Features) -> Features {
    let known = Features::NAMES.iter().fold(0, |bits, (feature, _)| bits | feature.0);
    Features(features.0 & known & !Features::READ_ONLY.0)
}

fn check_features(features: Features, findings: &Collector) -> Result<(), CheckError> {
    let known = Features::NAMES.iter().fold(0, |bits, (feature, _)| bits | feature.0);
    let unknown = features.0 & !known;
    findings.require(unknown == 0, FindingKind::Features, &Place::Volume, "unknown feature bits", unknown.into());
    let refused = refused(features);
    if refused.0 != 0 {
        return Err(CheckError::Unsupported { bits: refused.0, names: refused.names().join(", ") });
    }
    let needs_extra = Features::PROJECT_QUOTA.0
        | Features::INODE_CHECKSUM.0
        | Features::FLEXIBLE_INLINE_XATTR.0
        | Features::INODE_CRTIME.0;
    if !features.contains(Features::EXTRA_ATTR) {
        let alone = features.0 & needs_extra;
        let what = "feature bits that need extra_attr, which is off";
        findings.require(alone == 0, FindingKind::Features, &Place::Volume, what, alone.into());
    }
    Ok(())
}

/// Checks for faults that the layout check of the format crate lets pass.
fn check_fields(geometry: &Geometry, sb: &SuperBlock, device_blocks: u64, findings: &Collector) {
    let kind = FindingKind::Superblock;
    let place = Place::Volume;
    let end =
        u64::from(geometry.segment0_blkaddr.0) + u64::from(geometry.segment_count) * u64::from(BLOCKS_PER_SEGMENT);
    findings.expect(kind, &place, "end of the main area", end, geometry.main_end().0.into());
    // On several devices the count has those behind the last segment of each.
    if geometry.block_count > device_blocks && sb.devs[1].path[0] == 0 {
        let (what, max) = ("block_count", device_blocks);
        findings.add(kind, place.clone(), Problem::Range { what, found: geometry.block_count, min: end, max });
    }
    if !geometry.features.contains(Features::READONLY) && u64::from(geometry.sections) < MIN_SECTIONS {
        let (found, max) = (geometry.sections.into(), geometry.main_segments.into());
        findings.add(kind, place.clone(), Problem::Range { what: "section_count", found, min: MIN_SECTIONS, max });
    }
    if geometry.secs_per_zone > geometry.sections {
        let (found, max) = (geometry.secs_per_zone.into(), geometry.sections.into());
        findings.add(kind, place.clone(), Problem::Range { what: "secs_per_zone", found, min: 1, max });
    }
    if sb.devs[0].path[0] != 0 {
        let named = sb.devs.iter().take_while(|device| device.path[0] != 0);
        let segments: u64 = named.map(|device| u64::from(device.total_segments.get())).sum();
        let per_zone = u64::from(geometry.segs_per_sec) * u64::from(geometry.secs_per_zone);
        let whole = segments / per_zone * per_zone;
        findings.expect(kind, &place, "segments of all devices", geometry.segment_count.into(), whole);
    }
}
