//! Volumes on zones: where each structure is written, that the check finds no fault, and the layouts that are refused.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_check::{CheckOptions, FindingKind, check};
use f2fs_device::{
    BlockDevice, Claims, DeviceError, DeviceInfo, MemoryDevice, Request, SpannedDevice, Ticket, Zone, ZoneChange,
    ZoneLayout, ZoneState, ZonedDevice,
};
use f2fs_format::FormatError;
use f2fs_format::feature::Features;
use f2fs_sync::PlainArc;
use f2fs_volume::format::{FormatOptions, FormatReport, FormatVolumeError, format};
use f2fs_volume::{Volume, VolumeError, VolumeOptions};

/// Blocks in a zone: two segments.
const ZONE: u64 = 1024;
const MIB: u64 = 256;

fn zoned() -> FormatOptions {
    FormatOptions::default().with_features(Features::BLKZONED)
}

fn memory(blocks: u64) -> PlainArc<dyn BlockDevice> {
    PlainArc::new(MemoryDevice::new(blocks))
}

fn zones(blocks: u64, layout: ZoneLayout) -> PlainArc<dyn BlockDevice> {
    PlainArc::new(ZonedDevice::new(MemoryDevice::new(blocks), layout).unwrap())
}

fn several(devices: &[PlainArc<dyn BlockDevice>]) -> PlainArc<dyn BlockDevice> {
    PlainArc::new(f2fs_volume::devices::whole(devices.to_vec()).unwrap())
}

/// A conventional device of so many MiB and a zoned one of 256 MiB.
fn pair(first: u64, capacity: u64) -> PlainArc<dyn BlockDevice> {
    several(&[memory(first * MIB), zones(256 * MIB, ZoneLayout::new(ZONE).with_capacity(capacity).with_limits(6, 6))])
}

fn on_pair() -> FormatOptions {
    zoned().with_device_paths(["/dev/a", "/dev/b"])
}

fn findings(device: &dyn BlockDevice) -> Vec<FindingKind> {
    let report = check(device, &CheckOptions::new()).unwrap();
    report.findings.iter().map(|finding| finding.kind).collect()
}

/// It is sound, every log begins a zone, and it opens.
fn is_sound(device: &PlainArc<dyn BlockDevice>, report: &FormatReport) {
    assert_eq!(findings(&**device), []);
    let geometry = &report.geometry;
    assert_eq!((geometry.segs_per_sec, geometry.secs_per_zone), (2, 1));
    // Written are the inode and the dentries of the root: two blocks at the start of two logs.
    let main = u64::from(geometry.main_blkaddr.0);
    let written = |zone: &&Zone| zone.written.is_some_and(|blocks| blocks != 0);
    let all = device.report_zones(0, usize::MAX).unwrap();
    let found: Vec<_> = all.iter().filter(written).map(|zone| (zone.start, zone.written)).collect();
    let is_zone = |start: &u64| all.iter().any(|zone| zone.start == *start && zone.state != ZoneState::Conventional);
    let expected: Vec<_> = [main, main + 3 * ZONE].into_iter().filter(is_zone).map(|start| (start, Some(1))).collect();
    assert_eq!(found, expected);
    drop(Volume::open(device.clone(), &VolumeOptions::new().read_only(true)).unwrap());
    drop(Volume::open(device.clone(), &VolumeOptions::new()).unwrap());
}

/// A device that is put together of one ends with its last whole segment as well.
#[test]
fn a_part_of_a_segment_is_left_out() {
    let one = |device| f2fs_volume::devices::whole(vec![device]).unwrap().info().blocks;
    assert_eq!(one(zones(4 * ZONE + 300, ZoneLayout::new(ZONE))), 4 * ZONE);
    assert_eq!(one(memory(4 * ZONE + 300)), 4 * ZONE);
}

/// What stood in front of a volume is found by others who look for their own: it goes, also where no zone is reset.
#[test]
fn what_was_on_the_conventional_device_goes() {
    let device = pair(65, ZONE);
    let mut block = [0; 4096];
    block[64..72].copy_from_slice(b"_BHRfS_M");
    device.write_slice(16, &block).unwrap();
    assert!(matches!(format(&*device, &on_pair()), Err(FormatVolumeError::Exists { device: 0, .. })));
    let mut options = on_pair().forced();
    options.discard = false;
    format(&*device, &options).unwrap();
    assert!(device.read(16, 1).unwrap().block(0).iter().all(|byte| *byte == 0));
}

#[test]
fn a_conventional_and_a_zoned_device() {
    // The first device has some of the main area, or none.
    for (first, capacity) in [(65, ZONE), (65, 512), (65, 700), (21, ZONE), (21, 700)] {
        let device = pair(first, capacity);
        let report = format(&*device, &on_pair()).unwrap();
        is_sound(&device, &report);
        let geometry = &report.geometry;
        // An odd MiB and zones of 4 MiB: the volume begins an odd MiB later, so that sections end where the device
        // ends.
        assert_eq!(u64::from(geometry.segment0_blkaddr.0), ZONE + MIB);
        let usable = capacity.div_ceil(512);
        let on_first = first * MIB - u64::from(geometry.main_blkaddr.0);
        let segments = on_first / 512 + 64 * usable;
        assert!(report.user_blocks <= (segments - u64::from(report.reserved_segments)) * 512, "{}", report.user_blocks);
        // A second time: what is written is reset.
        format(&*device, &on_pair().forced()).unwrap();
        is_sound(&device, &report);
    }
}

#[test]
fn one_device_with_enough_conventional_zones() {
    let layout = ZoneLayout::new(ZONE).with_conventional(8);
    let device = zones(256 * MIB, layout);
    let report = format(&*device, &zoned()).unwrap();
    is_sound(&device, &report);
    let few = zones(256 * MIB, layout.with_conventional(3));
    let error = format(&*few, &zoned()).unwrap_err();
    let FormatVolumeError::Plan(FormatError::Layout { what, found, min, .. }) = error else { panic!("{error}") };
    assert_eq!((what, found), ("conventional zones at the front of the first device", 3));
    let just_enough = zones(256 * MIB, layout.with_conventional(min as u32));
    format(&*just_enough, &zoned()).unwrap();
}

#[test]
fn devices_that_make_no_zoned_volume_are_refused_and_not_written() {
    let layout = ZoneLayout::new(ZONE);
    let plain = |mib: u64| memory(mib * MIB);
    let paths = |count: usize, features: Features| {
        let paths: Vec<String> = (0..count).map(|index| format!("/dev/{index}")).collect();
        let options = FormatOptions::default().with_features(features);
        if count > 1 { options.with_device_paths(paths) } else { options }
    };
    let none = Features(0);
    for (devices, features, word) in [
        (vec![zones(256 * MIB, layout.with_conventional(8))], none, "only a zoned volume can use"),
        (vec![plain(64), zones(256 * MIB, layout)], none, "only a zoned volume can use"),
        (vec![plain(256)], Features::BLKZONED, "no device has zones"),
        (vec![zones(256 * MIB, layout)], Features::BLKZONED, "conventional zones at the front"),
        (vec![plain(8), zones(256 * MIB, layout)], Features::BLKZONED, "block at which the zones begin"),
        (vec![plain(64), zones(3000 * 80, ZoneLayout::new(3000))], Features::BLKZONED, "a power of two"),
        (vec![plain(64), zones(256 * MIB, ZoneLayout::new(256))], Features::BLKZONED, "blocks in a zone"),
        (
            vec![plain(64), zones(65 * MIB + 512, layout), zones(64 * MIB, layout)],
            Features::BLKZONED,
            "last whole section",
        ),
        (
            vec![zones(66 * MIB, layout.with_conventional(16)), zones(256 * MIB, layout)],
            Features::BLKZONED,
            "in front of the first section",
        ),
    ] {
        let device = if devices.len() == 1 { devices[0].clone() } else { several(&devices) };
        let error = format(&*device, &paths(devices.len(), features)).unwrap_err().to_string();
        assert!(error.contains(word), "{word}: {error}");
        assert!(device.read(0, 2).unwrap().as_bytes().iter().all(|byte| *byte == 0), "{word}");
    }
    for limits in [(5, 0), (0, 5), (5, 5)] {
        let device = zones(256 * MIB, layout.with_conventional(8).with_limits(limits.0, limits.1));
        let error = format(&*device, &zoned()).unwrap_err();
        assert!(matches!(error, FormatVolumeError::ZoneLimit { limit: 5, needed: 6 }), "{error}");
        assert!(device.read(0, 2).unwrap().as_bytes().iter().all(|byte| *byte == 0));
    }
    let dead = ZonedDevice::new(MemoryDevice::new(256 * MIB), layout.with_conventional(8)).unwrap();
    dead.take_offline(20).unwrap();
    let error = format(&dead, &zoned()).unwrap_err();
    assert_eq!(error.to_string(), format!("zone 20, at block {}, is offline", 20 * ZONE));
}

#[test]
fn blocks_behind_the_write_pointer_are_found() {
    let device = pair(21, ZONE);
    let report = format(&*device, &on_pair()).unwrap();
    let geometry = &report.geometry;
    assert_eq!(u64::from(geometry.main_blkaddr.0), 21 * MIB);
    device.change_zone(21 * MIB + 3 * ZONE, ZoneChange::Reset).unwrap();
    let found = findings(&*device);
    assert!(found.contains(&FindingKind::Zone), "{found:?}");
}

#[test]
fn zones_of_another_size_than_the_sections_are_found() {
    let (first, bytes) = (PlainArc::new(MemoryDevice::new(65 * MIB)), PlainArc::new(MemoryDevice::new(256 * MIB)));
    let with = |zone: u64, conventional: u32| {
        let layout = ZoneLayout::new(zone).with_conventional(conventional);
        several(&[first.clone(), PlainArc::new(ZonedDevice::new(bytes.clone(), layout).unwrap())])
    };
    format(&*with(ZONE, 0), &on_pair()).unwrap();
    let found = findings(&*with(2 * ZONE, 0));
    assert!(found.contains(&FindingKind::Zone), "{found:?}");
    // An image of it: nothing is known of zones, and nothing contradicts.
    let parts = [first.clone(), bytes.clone()]
        .map(|device| (device.clone() as PlainArc<dyn BlockDevice>, device.info().blocks));
    assert_eq!(findings(&SpannedDevice::new(parts.to_vec()).unwrap()), []);
}

/// A device that says something else of some of its zones.
#[derive(Debug)]
struct Crooked {
    device: PlainArc<dyn BlockDevice>,
    bend: fn(&mut Zone),
    /// The first zone of which it says so, and the one behind the last.
    of: std::ops::Range<u32>,
}

impl BlockDevice for Crooked {
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn claims(&self) -> &Claims {
        self.device.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        self.device.submit(requests)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.device.flush()
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        let mut zones = self.device.report_zones(start, count)?;
        zones.iter_mut().filter(|zone| self.of.contains(&zone.number)).for_each(self.bend);
        Ok(zones)
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        self.device.change_zone(start, change)
    }
}

/// Zones that are not alike, at a format and at an opening.
#[test]
fn zones_that_are_not_alike_are_refused_and_nothing_is_written() {
    let layout = ZoneLayout::new(ZONE).with_conventional(8).with_capacity(768);
    // As far as a new volume is written.
    let all = |device: &dyn BlockDevice| device.read(0, 12 * ZONE as usize).unwrap();
    for (bend, what, found, expected) in [
        ((|zone: &mut Zone| zone.blocks = 512) as fn(&mut Zone), "the number of blocks", 512, ZONE),
        (|zone| zone.blocks = 2 * ZONE, "the number of blocks", 2 * ZONE, ZONE),
        (|zone| zone.start += 512, "the first block", 20 * ZONE + 512, 20 * ZONE),
        (|zone| zone.capacity = 700, "the number of blocks that can be written", 700, 768),
        (|zone| zone.capacity = 0, "the number of blocks that can be written", 0, 768),
        (|zone| zone.capacity = 2 * ZONE, "the number of blocks that can be written", 2 * ZONE, 768),
    ] {
        let device = zones(32 * ZONE, layout);
        let crooked = PlainArc::new(Crooked { device: device.clone(), bend, of: 20..21 });
        let error = format(&*crooked, &zoned()).unwrap_err();
        let FormatVolumeError::ZoneUnlike { zone: 20, what: w, found: f, expected: e, .. } = error else {
            panic!("{error}")
        };
        assert_eq!((w, f, e), (what, found, expected));
        assert!(all(&*device).as_bytes().iter().all(|byte| *byte == 0), "{what}");

        format(&*device, &zoned()).unwrap();
        let before = all(&*device);
        let error = Volume::open(crooked, &VolumeOptions::new()).unwrap_err();
        assert!(matches!(error, VolumeError::Zone { zone: 20, .. }), "{what}, {found}: {error}");
        assert!(all(&*device).as_bytes() == before.as_bytes(), "{what}, {found}");
    }
    // All of them beyond their size: there is none that the others could be compared with.
    let device = zones(32 * ZONE, ZoneLayout::new(ZONE).with_conventional(8));
    let bend = |zone: &mut Zone| zone.capacity = zone.blocks + 1;
    let beyond = PlainArc::new(Crooked { device: device.clone(), bend, of: 8..u32::MAX });
    let error = format(&*beyond, &zoned()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("zone 8, at block {}: the number of blocks that can be written is {}, not {ZONE}", 8 * ZONE, ZONE + 1)
    );
    format(&*device, &zoned()).unwrap();
    let error = Volume::open(beyond, &VolumeOptions::new()).unwrap_err();
    assert!(matches!(error, VolumeError::Zone { expected: ZONE, .. }), "{error}");
}

#[test]
fn fewer_zones_than_a_volume_needs_are_refused() {
    let layout = ZoneLayout::new(ZONE);
    for count in [1, 4, 5, 9] {
        let device = zones(count * ZONE, layout.with_conventional(4.min(count as u32)));
        let error = format(&*device, &zoned()).unwrap_err();
        let FormatVolumeError::Plan(FormatError::Layout { what, found, min, .. }) = error else { panic!("{error}") };
        assert!(found < min, "{count}: {what}, {found}, {min}");
        let bytes = device.read(0, (count * ZONE) as usize).unwrap();
        assert!(bytes.as_bytes().iter().all(|byte| *byte == 0), "{count}");
    }
}
