#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{AlignedBuf, Claims, DeviceInfo, MemoryDevice, Request, Ticket, ZoneLayout, ZoneLimits, ZonedDevice};
use f2fs_format::LogType;
use f2fs_format::feature::Features;

use super::*;
use crate::format::FormatOptions;
use crate::samples::{self, inode, made, segment, segments, write, zoned};
use crate::{Reason, Volume, VolumeOptions};

/// A device that says of its zones what a test wants.
#[derive(Debug)]
struct Reported {
    info: DeviceInfo,
    claims: Claims,
    zones: Vec<Zone>,
}

impl BlockDevice for Reported {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn submit(&self, _: Vec<Request>) -> Ticket {
        Ticket::ready(Vec::new())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        Ok(self.zones.iter().filter(|zone| zone.start + zone.blocks > start).take(count).copied().collect())
    }
}

/// What a volume finds on zones of which so much is said, where so many may be written to at a time.
fn reported(zones: Vec<Zone>, limit: Option<u32>) -> PlainArc<dyn BlockDevice> {
    let mut info = DeviceInfo::new(1 << 20, "reported");
    let (max_open, max_active) = (limit.unwrap_or(0), 0);
    let mut limits = ZoneLimits::new(512);
    (limits.max_open, limits.max_active) = (max_open, max_active);
    info.zones = (!zones.is_empty()).then_some(limits);
    PlainArc::new(Reported { info, claims: Claims::default(), zones })
}

/// Zones of one segment each, eight of them conventional, and the geometry of a volume on them.
fn alike() -> (Vec<Zone>, Geometry) {
    let volume = zoned(64, 1);
    let geometry = volume.geometry.clone();
    assert_eq!((geometry.main_blkaddr.0, geometry.main_end().0), (8 * 512, 64 * 512));
    let state = |number| if number < 8 { ZoneState::Conventional } else { ZoneState::Empty };
    let zone =
        |number: u32| Zone::new(number, u64::from(number) * 512, 512, 512, state(number), (number >= 8).then_some(0));
    ((0..64).map(zone).collect(), geometry)
}

fn find(zones: Vec<Zone>, geometry: &Geometry) -> Result<Zones, VolumeError> {
    Zones::find(reported(zones, None), geometry)
}

#[test]
fn zones_that_are_the_volumes_are_found() {
    let (zones, geometry) = alike();
    let found = find(zones.clone(), &geometry).unwrap();
    assert_eq!((found.capacity(), found.limit()), (None, None));
    assert_eq!((found.section_of(8 * 512), found.section_of(11 * 512 + 5)), (0, 3));
    let numbers: Vec<u32> = found.sequential().unwrap().iter().map(|zone| zone.number).collect();
    assert!(numbers.into_iter().eq(8..64));

    // All can be written in part; the first one is dead, and has no capacity.
    let mut short = zones.clone();
    short.iter_mut().skip(8).for_each(|zone| zone.capacity = 300);
    (short[8].state, short[8].capacity) = (ZoneState::Offline, 0);
    assert_eq!(find(short, &geometry).unwrap().capacity(), Some(300));

    // Behind the volume there may be anything.
    let mut more = zones.clone();
    more.push(Zone::new(64, 64 * 512, 100, 7, ZoneState::Empty, Some(0)));
    let found = find(more, &geometry).unwrap();
    assert_eq!(found.sequential().unwrap().len(), 56);

    // So may there be in front of it, where zones are written anywhere.
    let mut front = zones.clone();
    (front[2].blocks, front[2].capacity) = (100, 7);
    assert!(find(front, &geometry).is_ok());

    // As many logs as there are.
    assert!(matches!(
        Zones::find(reported(zones.clone(), Some(5)), &geometry),
        Err(VolumeError::ZoneLimit { limit: 5, needed: 6 })
    ));
    assert_eq!(Zones::find(reported(zones, Some(6)), &geometry).unwrap().limit(), Some(6));
    assert!(matches!(find(Vec::new(), &geometry), Err(VolumeError::NoZones)));
}

#[test]
fn zones_that_are_not_the_volumes_are_refused() {
    let (zones, geometry) = alike();
    let blocks_written = "the number of blocks that can be written";
    type Bend = fn(&mut Zone);
    let cases: [(usize, Bend, &str, u64, u64); 8] = [
        (7, |zone| zone.state = ZoneState::Empty, "the first block that is written in its order", 7 * 512, 8 * 512),
        (20, |zone| zone.start += 3, "the distance to a section", 3, 0),
        (20, |zone| zone.blocks = 256, "the number of blocks", 256, 512),
        (63, |zone| zone.blocks = 256, "the number of blocks", 256, 512),
        (63, |zone| zone.blocks = 1024, "the number of blocks", 1024, 512),
        (20, |zone| zone.capacity = 513, blocks_written, 513, 512),
        (20, |zone| zone.capacity = 300, blocks_written, 300, 512),
        (20, |zone| zone.capacity = 0, blocks_written, 0, 512),
    ];
    for (number, bend, wrong, is, should_be) in cases {
        let mut bent = zones.clone();
        bend(&mut bent[number]);
        let error = find(bent, &geometry).unwrap_err();
        let VolumeError::Zone { zone, what, found, expected, .. } = error else { panic!("{number}: {error}") };
        assert_eq!((zone as usize, what, found, expected), (number, wrong, is, should_be));
    }
}

#[test]
fn a_capacity_is_shown_where_there_are_zones() {
    let (mut zones, geometry) = alike();
    let shown = |zones: Vec<Zone>| capacity_to_show(&*reported(zones, None), &geometry).unwrap();
    assert_eq!((shown(zones.clone()), shown(Vec::new())), (None, None));
    zones.iter_mut().skip(8).for_each(|zone| zone.capacity = 511);
    assert_eq!(shown(zones.clone()), Some(511));
    // Of one that says that it has no zones nothing is asked.
    let mut info = DeviceInfo::new(1 << 20, "an image");
    info.zones = None;
    let image = Reported { info, claims: Claims::default(), zones };
    assert_eq!(capacity_to_show(&image, &geometry).unwrap(), None);
}

/// Where so many blocks of the first segments are in use, up to the last one.
fn written(zones: Vec<Zone>, geometry: &Geometry, in_use: &[u32]) -> Result<(), VolumeError> {
    let map = |segment: SegmentNo| {
        let mut map = BlockMap::EMPTY;
        let count = in_use[segment.index()];
        if count != 0 {
            map.insert(count - 1, 1);
        }
        Ok(map)
    };
    check_written(&*reported(zones, None), geometry, (0..in_use.len() as u32).map(SegmentNo), map)
}

#[test]
fn blocks_in_use_lie_in_front_of_the_write_pointer() {
    let (mut zones, geometry) = alike();
    let told = |zones: &[Zone], geometry: &Geometry, in_use: &[u32]| match written(zones.to_vec(), geometry, in_use) {
        Ok(()) => None,
        Err(VolumeError::Zone { zone, found, expected, .. }) => Some((zone, found, expected)),
        Err(error) => panic!("{error}"),
    };
    zones[9].written = Some(10);
    assert_eq!(told(&zones, &geometry, &[0, 10]), None);
    assert_eq!(told(&zones, &geometry, &[0, 11]), Some((9, 10, 11)));
    assert_eq!(told(&zones, &geometry, &[1, 10]), Some((8, 0, 1)));
    // One that is written anywhere, or has no pointer, does not say.
    zones[9].state = ZoneState::Conventional;
    assert_eq!(told(&zones, &geometry, &[0, 500]), None);
    (zones[9].state, zones[9].written) = (ZoneState::Offline, None);
    assert_eq!(told(&zones, &geometry, &[0, 500]), None);
    // Sections without a zone, behind the last one and in front of the first one.
    assert_eq!(told(&zones[..9], &geometry, &[0, 500, 500]), None);
    assert_eq!(told(&zones[10..], &geometry, &[500, 500]), None);

    // The second segment of a zone of two.
    let mut two: Vec<Zone> = zones.iter().step_by(2).copied().collect();
    two.iter_mut().for_each(|zone| (zone.blocks, zone.capacity) = (1024, 1024));
    two[4].written = Some(600);
    assert_eq!(told(&two, &geometry, &[512, 88]), None);
    assert_eq!(told(&two, &geometry, &[512, 89]), Some((8, 600, 601)));
    assert_eq!(told(&two[..5], &geometry, &[512, 88, 500]), None);
}

#[test]
fn the_room_for_users_is_what_zones_have_beside_those_that_are_kept() {
    let (_, geometry) = alike();
    assert_eq!(room(&geometry, None, 37), u64::MAX, "the checkpoint says it");
    assert_eq!(room(&geometry, Some(300), 37), (56 - 37) * 300);
    assert_eq!(room(&geometry, None, 10), (56 - 20) * 512, "for floor and logs");
    assert_eq!(room(&geometry, Some(300), 60), 0);
    let geometry = zoned(64, 2).geometry.clone();
    let sections = u64::from(geometry.main_segments / 2);
    assert_eq!(room(&geometry, None, 11), (sections - 20) * 1024);
    assert_eq!(room(&geometry, Some(700), 61), (sections - 31) * 700);
}

/// The zone at the place where a section begins, as the device says.
fn zone_of(device: &dyn BlockDevice, geometry: &Geometry, segment: SegmentNo) -> Zone {
    device.report_zones(geometry.block_at(segment, 0).0.into(), 1).unwrap()[0]
}

#[test]
fn an_emptied_zone_is_reset_and_one_without_a_log_is_finished() {
    let device = samples::zones(64, 1);
    let volume = made(device.clone(), &FormatOptions::default().with_features(Features::BLKZONED));
    let geometry = volume.geometry.clone();
    let state = |segment| zone_of(&*device, &geometry, segment).state;
    let node = segment(&volume, 512);
    let full = geometry.locate(samples::address(&volume, &node, 0)).unwrap().0;
    let file = inode(&volume);
    write(&volume, &file, 0..20, LogType::WarmData);
    let part = geometry.locate(samples::address(&volume, &file, 0)).unwrap().0;
    assert!(state(full) == ZoneState::Full && state(part).is_active());
    // The log goes on elsewhere.
    let off = |addr: f2fs_format::BlockAddr| geometry.locate(addr).is_some_and(|(segment, _)| segment == part);
    assert_eq!(segments(&volume).leave_zones(off).unwrap(), 1);
    volume.slots().clear(&volume.begin().unwrap(), &node, 0..512, |_, _| {}).unwrap();
    volume.checkpoints().write(Reason::Sync).unwrap();
    assert_eq!(state(full), ZoneState::Empty);
    assert_eq!(state(part), ZoneState::Full);
    for log in LogType::ALL {
        let at = volume.last_checkpoint().log(log);
        assert_ne!(state(at.segment), ZoneState::Full, "{log:?}");
    }
    samples::assert_content(&volume, &file, 0..20);
    // Nothing is given back of what is written in its order.
    assert_eq!(volume.stat().prefree_segments, 0);
}

/// A zone that cannot be begun anew is nobody's any more.
#[test]
fn a_zone_that_is_not_reset_is_given_up() {
    let device = samples::zones(64, 1);
    let volume = made(device.clone(), &FormatOptions::default().with_features(Features::BLKZONED));
    let node = segment(&volume, 512);
    write(&volume, &inode(&volume), 0..1, LogType::WarmData);
    let at = samples::address(&volume, &node, 0);
    volume.slots().clear(&volume.begin().unwrap(), &node, 0..512, |_, _| {}).unwrap();
    device.take_offline(at.0 / 512).unwrap();
    let free = segments(&volume).free_sections();
    volume.checkpoints().write(Reason::Sync).unwrap();
    assert_eq!(segments(&volume).free_sections(), free);
    let section = volume.geometry.locate(at).unwrap().0.0;
    assert!(!segments(&volume).is_section_free(section));
}

/// The runs that a checkpoint frees on the device without zones may be discarded.
#[test]
fn runs_in_zones_are_not_discarded() {
    let zoned = ZonedDevice::new(MemoryDevice::new(256 * 256), ZoneLayout::new(1024)).unwrap();
    let devices: [PlainArc<dyn BlockDevice>; 2] = [PlainArc::new(MemoryDevice::new(65 * 256)), PlainArc::new(zoned)];
    let device: PlainArc<dyn BlockDevice> = PlainArc::new(crate::devices::whole(devices.to_vec()).unwrap());
    let options = FormatOptions::default().with_features(Features::BLKZONED).with_device_paths(["/dev/a", "/dev/b"]);
    let volume = made(device.clone(), &options);
    let all = segments(&volume);
    let zones = volume.zoning.0.as_ref().unwrap();
    let border = 65 * 256;
    assert!(volume.geometry.main_blkaddr.0 < border && volume.geometry.main_end().0 > border);
    // What is held is free again with the next checkpoint: the last section in front of the border, and one behind it.
    let section = |block: u32| volume.geometry.locate(f2fs_format::BlockAddr(block)).unwrap().0;
    let (before, behind) = (section(border - 1024), section(border + 8 * 1024));
    for segment in [before, SegmentNo(before.0 + 1), behind, SegmentNo(behind.0 + 1)] {
        all.hold(volume.geometry.block_at(segment, 0)).unwrap();
    }
    all.prepare_checkpoint();
    drop(all.begin_checkpoint(0).unwrap());
    let runs = zones.begin_anew(all);
    let blocks: Vec<u32> = runs.iter().flat_map(|run| run.addr.0..run.addr.0 + run.len).collect();
    let first = volume.geometry.block_at(before, 0).0;
    assert!(blocks.into_iter().eq(first..first + 1024));
    all.end_checkpoint();
    // A run that goes from the one device into the other is none.
    let (before, behind) = (section(border - 512), section(border + 512));
    assert!(behind.0 == before.0 + 2 && volume.geometry.block_at(before, 512).0 == border);
    for segment in before.0..=behind.0 {
        all.hold(volume.geometry.block_at(SegmentNo(segment), 0)).unwrap();
    }
    all.prepare_checkpoint();
    drop(all.begin_checkpoint(0).unwrap());
    assert!(all.freed_by_checkpoint().iter().any(|run| run.addr.0 < border && run.addr.0 + run.len > border));
    assert_eq!(zones.begin_anew(all), []);
    all.end_checkpoint();
}

/// Logs whose zone was written by others move, and what was written to free zones is gone.
#[test]
fn zones_are_settled_when_a_volume_is_opened() {
    let device = samples::zones(64, 1);
    let volume = made(device.clone(), &FormatOptions::default().with_features(Features::BLKZONED));
    let (geometry, last) = (volume.geometry.clone(), volume.last_checkpoint());
    drop(volume);
    let warm = last.log(LogType::WarmData).segment;
    let free = SegmentNo(geometry.main_segments - 3);
    for segment in [warm, free] {
        let start = u64::from(geometry.block_at(segment, 0).0);
        device.write(start, AlignedBuf::new(2)).unwrap();
    }
    let volume = Volume::open(device.clone(), &VolumeOptions::new().lanes(1)).unwrap();
    let state = |segment| zone_of(&*device, &geometry, segment).state;
    let root = last.log(LogType::HotNode).segment;
    let before = state(root);
    volume.recovery().settle_zones().unwrap();
    assert_eq!((state(free), state(warm), state(root)), (ZoneState::Empty, ZoneState::Full, before));
    assert_ne!(segments(&volume).log(LogType::WarmData).segment, warm);
    assert_eq!(segments(&volume).log(LogType::HotNode).segment, root);
    write(&volume, &inode(&volume), 0..3, LogType::WarmData);
    volume.checkpoints().write(Reason::Sync).unwrap();
}

/// A write that waits for others in front of it is told when they never come.
#[test]
fn writes_that_wait_end_with_the_volume() {
    let volume = zoned(64, 1);
    let at = u64::from(volume.geometry.block_at(SegmentNo(volume.geometry.main_segments - 1), 0).0);
    let mut ticket = volume.device().submit(vec![Request::write(at + 4, AlignedBuf::new(1))]);
    assert!(ticket.try_any().is_none());
    volume.stop_after_panic();
    assert!(ticket.try_any().is_some_and(|(_, completion)| completion.result.is_err()));
}
