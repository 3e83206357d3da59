//! Volumes on zones: filled, emptied and overwritten, by threads, with zones that are worn out, and found again after a
//! crash. The device judges each write: one that is not at the write pointer of its zone is an error there.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod full;

use std::sync::Arc;
use std::time::Duration;

use f2fs_check::{CheckOptions, check};
use f2fs_device::{BlockDevice, KeptZones, MemoryDevice, Zone, ZoneLayout, ZoneState, ZonedDevice};
use f2fs_device_test::{Random, bytes};
use f2fs_files::{FileSystem, FsError, Options};
use f2fs_format::SegmentNo;
use f2fs_format::feature::Features;
use f2fs_test_kit::volumes::within;
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{VolumeError, VolumeOptions};

const LIMIT: Duration = Duration::from_secs(240);
/// Blocks in a zone: two segments.
const ZONE: u64 = 1024;
const CONVENTIONAL: u32 = 8;

fn layout() -> ZoneLayout {
    ZoneLayout::new(ZONE).with_conventional(CONVENTIONAL)
}

/// So many zones of memory that stay when the device is opened again.
fn kept(zones: u64, layout: ZoneLayout) -> Arc<MemoryDevice> {
    let memory = Arc::new(MemoryDevice::new(KeptZones::<Arc<MemoryDevice>>::blocks_needed(&layout, zones).unwrap()));
    let device = KeptZones::create(memory.clone(), layout).unwrap();
    format(&device, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
    memory
}

fn on(memory: &Arc<MemoryDevice>) -> Arc<KeptZones<Arc<MemoryDevice>>> {
    Arc::new(KeptZones::open(memory.clone()).unwrap())
}

fn open(memory: &Arc<MemoryDevice>, lanes: usize) -> FileSystem {
    FileSystem::open(on(memory), Options::new().volume(VolumeOptions::new().lanes(lanes))).unwrap()
}

/// Our own check, which sees the write pointers too. The volume may be open.
#[track_caller]
fn assert_sound(memory: &Arc<MemoryDevice>) {
    let report = check(&*on(&Arc::new(memory.snapshot())), &CheckOptions::default()).unwrap();
    assert!(report.is_clean() && report.complete, "{report}");
}

/// fsck.f2fs as well, which takes an image for one of zones without a limit.
#[track_caller]
fn assert_clean(memory: &Arc<MemoryDevice>) {
    assert_sound(memory);
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    memory.save(&image).unwrap();
    f2fs_oracle::assert_clean(&image);
}

fn content(file: &str, version: u64, len: usize) -> Vec<u8> {
    let seed = file.bytes().fold(version, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    bytes(len, seed)
}

#[track_caller]
fn assert_content(fs: &FileSystem, path: &str, wanted: &[u8]) {
    let mut read = vec![0; wanted.len() + 1];
    let len = fs.open_file(path).unwrap().read_at(&mut read, 0).unwrap();
    assert!(read[..len] == *wanted, "{path}: {len} bytes, {} wanted", wanted.len());
}

/// Fills a volume with files of this size; gives how many fit.
fn fill(fs: &FileSystem, len: usize, round: u64) -> u64 {
    for number in 0.. {
        let path = format!("/{number}");
        let written = fs.create_file(&path, 0o644).and_then(|file| file.write_at(&content(&path, round, len), 0));
        match written {
            Ok(written) if written == len => {}
            // Some of it fits, or nothing.
            other => {
                assert!(!other.is_err_and(|error| !error.is_no_space()));
                let _ = fs.remove_file(&path);
                return number;
            }
        }
    }
    unreachable!("a volume has an end")
}

fn fill_and_overwrite(layout: ZoneLayout, judge: fn(&Arc<MemoryDevice>)) {
    let memory = kept(64, layout);
    let mut random = Random::new(3);
    let len = 300_000;
    let mut first = 0;
    for round in 0..2 {
        let fs = open(&memory, 2);
        let files = fill(&fs, len, round);
        first = first.max(files);
        assert!(files > 100 && files * 100 >= first * 97, "{files} files fit in round {round}, {first} at first");
        // Blocks here and there: no zone is ever free by itself.
        let mut all: Vec<Vec<u8>> = (0..files).map(|number| content(&format!("/{number}"), round, len)).collect();
        for step in 0..2500 {
            let number = random.below(files as usize);
            let at = random.below(len / 4096) * 4096;
            let data = bytes(4096, random.next());
            let file = fs.open_file(format!("/{number}")).unwrap();
            let written = file.write_at(&data, at as u64).unwrap_or_else(|error| panic!("step {step}: {error}"));
            assert_eq!(written, data.len());
            all[number][at..at + data.len()].copy_from_slice(&data);
        }
        // What was in memory alone is read from the device.
        fs.close().unwrap();
        drop(fs);
        judge(&memory);
        let fs = open(&memory, 2);
        for (number, wanted) in all.iter().enumerate() {
            assert_content(&fs, &format!("/{number}"), wanted);
            fs.remove_file(format!("/{number}")).unwrap();
        }
        fs.close().unwrap();
        drop(fs);
        judge(&memory);
    }
}

#[test]
fn a_full_volume_goes_on() {
    within(LIMIT, || fill_and_overwrite(layout(), assert_clean));
}

#[test]
fn a_full_volume_with_a_capacity_below_the_size_and_few_active_zones_goes_on() {
    within(LIMIT, || fill_and_overwrite(layout().with_capacity(700).with_limits(6, 6), assert_sound));
}

#[test]
fn a_volume_that_is_only_read_says_as_much_as_one_that_is_written() {
    // mkfs.f2fs and the checkpoint count the whole zones.
    let memory = kept(64, layout().with_capacity(700));
    let fs = open(&memory, 2);
    fs.create_file("/file", 0o644).unwrap().write_at(&[1; 100_000], 0).unwrap();
    let written = fs.statfs().user_blocks;
    fs.close().unwrap();
    drop(fs);
    let read_only = || Options::new().volume(VolumeOptions::new().read_only(true));
    let fs = FileSystem::open(on(&memory), read_only()).unwrap();
    assert_eq!(fs.statfs().user_blocks, written);
    drop(fs);
    // A copy that knows nothing of its zones.
    let copy = Arc::new(memory.snapshot());
    let fs = FileSystem::open(copy, read_only()).unwrap();
    assert!(fs.statfs().user_blocks > written);
}

/// Linux (since 6.4) takes the end of any section for a place where no block can be, also where no zone is.
#[test]
fn sections_without_a_zone_are_written_as_far_as_zones_are() {
    // Zones of four segments, of which the last and most of the third cannot be written; a large front of the main area
    // has none.
    let layout = ZoneLayout::new(2048).with_capacity(1100).with_conventional(20);
    let memory = kept(32, layout);
    let fs = open(&memory, 2);
    fill(&fs, 300_000, 0);
    fs.checkpoint().unwrap();
    let geometry = fs.volume().geometry().clone();
    let mut valid = 0;
    for number in 0..geometry.main_segments {
        let segment = fs.volume().segment(SegmentNo(number)).unwrap();
        let usable = 1100_u32.saturating_sub(number % 4 * 512).min(512);
        let behind = (usable..512).find(|offset| segment.valid_map.contains(*offset));
        assert_eq!(behind, None, "segment {number}");
        valid += u64::from(segment.valid);
    }
    assert!(valid > 2 * 1100, "{valid}");
    fs.close().unwrap();
    drop(fs);
    assert_sound(&memory);
}

/// Crash after crash of a full volume: each makes logs leave their zones, and it goes on all the same.
#[test]
fn a_full_volume_goes_on_after_crashes() {
    within(LIMIT, || {
        let mut memory = kept(64, layout());
        let fs = open(&memory, 2);
        let (len, mut random) = (300_000, Random::new(5));
        let files = fill(&fs, len, 0);
        fs.close().unwrap();
        drop(fs);
        let mut all: Vec<Vec<u8>> = (0..files).map(|number| content(&format!("/{number}"), 0, len)).collect();
        for round in 0..12 {
            let fs = open(&memory, 2);
            for step in 0..60 {
                let number = random.below(files as usize);
                let at = random.below(len / 4096) * 4096;
                let data = bytes(4096, random.next());
                let file = fs.open_file(format!("/{number}")).unwrap();
                let written = file.write_durable(&data, at as u64);
                assert_eq!(written.unwrap_or_else(|error| panic!("round {round}, step {step}: {error}")), data.len());
                all[number][at..at + data.len()].copy_from_slice(&data);
            }
            if round % 3 == 2 {
                fs.checkpoint().unwrap();
            }
            let left = Arc::new(memory.snapshot());
            drop(fs);
            memory = left;
        }
        let fs = open(&memory, 2);
        for (number, wanted) in all.iter().enumerate() {
            assert_content(&fs, &format!("/{number}"), wanted);
        }
        fs.close().unwrap();
        drop(fs);
        assert_clean(&memory);
    });
}

fn work(fs: &FileSystem, thread: u64, rounds: u64) {
    let dir = format!("/t{thread}");
    fs.create_dir(&dir, 0o755).unwrap();
    let mut random = Random::new(thread);
    for round in 0..rounds {
        let path = format!("{dir}/{}", round % 7);
        let len = 1 + random.below(400_000);
        let file = fs.create_file(&path, 0o644).or_else(|_| fs.open_file(&path)).unwrap();
        file.set_len(0).unwrap();
        let data = content(&path, round, len);
        match random.below(3) {
            0 => file.write_durable(&data, 0).map(|_| ()).unwrap(),
            1 => {
                file.write_at(&data, 0).unwrap();
                file.sync_all().unwrap();
            }
            _ => drop(file.write_at(&data, 0).unwrap()),
        }
        drop(file);
        assert_content(fs, &path, &data);
        if random.below(5) == 0 {
            fs.remove_file(&path).unwrap();
        }
        if random.below(40) == 0 {
            fs.checkpoint().unwrap();
        }
    }
}

#[test]
fn threads_write_side_by_side() {
    within(LIMIT, || {
        for (lanes, limits) in [(1, 6), (4, 0), (4, 12), (8, 9)] {
            let memory = kept(48, layout().with_limits(limits, limits));
            let fs = open(&memory, lanes);
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let fs = &fs;
                    scope.spawn(move || work(fs, thread, 60));
                }
            });
            fs.close().unwrap();
            drop(fs);
            assert_clean(&memory);
        }
    });
}

/// Each thread overwrites and syncs what the last checkpoint has, and the power goes. With several lanes the new blocks
/// lie in zones in which others are valid, and of which the checkpoint names none.
#[test]
fn what_threads_synced_is_found_after_a_crash() {
    const THREADS: u64 = 4;
    const BLOCKS: usize = 40;
    within(LIMIT, || {
        for lanes in [2, 4, 8] {
            let memory = kept(200, layout());
            let fs = open(&memory, lanes);
            let write_and_sync = |fs: &FileSystem, thread: u64, version: u64| {
                let path = format!("/{thread}");
                let file = fs.create_file(&path, 0o644).or_else(|_| fs.open_file(&path)).unwrap();
                for (at, block) in content(&path, version, BLOCKS << 12).chunks(4096).enumerate() {
                    file.write_at(block, (at as u64) << 12).unwrap();
                    std::thread::yield_now();
                }
                file.sync_all().unwrap();
            };
            for round in 0..8 {
                for version in [2 * round, 2 * round + 1] {
                    std::thread::scope(|scope| {
                        for thread in 0..THREADS {
                            let fs = &fs;
                            scope.spawn(move || write_and_sync(fs, thread, version));
                        }
                    });
                    if version == 2 * round {
                        fs.checkpoint().unwrap();
                    }
                }
                let crashed = Arc::new(memory.snapshot());
                let after = open(&crashed, lanes);
                for thread in 0..THREADS {
                    let path = format!("/{thread}");
                    assert_content(&after, &path, &content(&path, 2 * round + 1, BLOCKS << 12));
                }
                after.close().unwrap();
                drop(after);
                assert_sound(&crashed);
            }
        }
    });
}

/// The states of the zones of the main area.
fn zones(device: &dyn BlockDevice) -> Vec<Zone> {
    device.report_zones(u64::from(CONVENTIONAL) * ZONE, usize::MAX).unwrap()
}

#[test]
fn what_was_synced_is_found_after_a_crash_and_the_zones_are_mended() {
    let mut memory = kept(48, layout());
    for round in 0..6 {
        let fs = open(&memory, 3);
        let path = format!("/synced-{round}");
        let other = format!("/not-synced-{round}");
        fs.create_file(&other, 0o644).unwrap().write_at(&content(&other, 0, 3 << 20), 0).unwrap();
        fs.checkpoint().unwrap();
        let file = fs.create_file(&path, 0o644).unwrap();
        for step in 0..4 {
            file.write_at(&content(&path, step, 100_000), 0).unwrap();
            file.sync_all().unwrap();
            // A zone that holds nothing for the last checkpoint, and is written.
            fs.open_file(&other).unwrap().write_at(&content(&other, step, 2 << 20), 0).unwrap();
        }
        file.sync_all().unwrap();
        // The power is cut: of each zone there is what was flushed.
        let left = Arc::new(memory.snapshot());
        drop(file);
        drop(fs);
        memory = left;
        let fs = open(&memory, 3);
        assert_content(&fs, &path, &content(&path, 3, 100_000));
        for earlier in 0..round {
            assert_content(&fs, &format!("/synced-{earlier}"), &content(&format!("/synced-{earlier}"), 3, 100_000));
        }
        // It can be written to, and fills the zones again.
        fs.create_file("/more", 0o644).unwrap().write_at(&content("/more", round, 5 << 20), 0).unwrap();
        fs.checkpoint().unwrap();
        assert_sound(&memory);
        fs.remove_file("/more").unwrap();
        fs.remove_file(&other).unwrap();
        if round % 2 == 0 {
            fs.close().unwrap();
            drop(fs);
            assert_clean(&memory);
        } else {
            fs.checkpoint().unwrap();
            memory = Arc::new(memory.snapshot());
        }
    }
}

#[test]
fn an_emptied_zone_is_reset_after_the_checkpoint_that_frees_it() {
    let memory = kept(48, layout());
    let device = on(&memory);
    let fs = FileSystem::open(device.clone(), Options::new().volume(VolumeOptions::new().lanes(1))).unwrap();
    let file = fs.create_file("/large", 0o644).unwrap();
    file.write_at(&content("/large", 0, 20 << 20), 0).unwrap();
    fs.checkpoint().unwrap();
    let full = |zone: &&Zone| zone.state == ZoneState::Full;
    let before = zones(&*device).iter().filter(full).count();
    assert!(before >= 4, "{before}");
    drop(file);
    fs.remove_file("/large").unwrap();
    assert_eq!(zones(&*device).iter().filter(full).count(), before, "not before the checkpoint");
    fs.checkpoint().unwrap();
    assert_eq!(zones(&*device).iter().filter(full).count(), 0);
    fs.close().unwrap();
}

#[test]
fn worn_out_and_dead_zones_are_left() {
    let zoned = Arc::new(ZonedDevice::new(MemoryDevice::new(48 * ZONE), layout().with_limits(8, 8)).unwrap());
    format(&*zoned, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
    let fs = FileSystem::open(zoned.clone(), Options::new().volume(VolumeOptions::new().lanes(1))).unwrap();
    fs.create_file("/kept", 0o644).unwrap().write_at(&content("/kept", 0, 100_000), 0).unwrap();
    fs.checkpoint().unwrap();
    // The zone where data goes to.
    let find = |wanted: &[u8]| {
        let path = "/probe";
        fs.create_file(path, 0o644).unwrap().write_at(wanted, 0).unwrap();
        let before: Vec<_> = zones(&*zoned).iter().map(|zone| zone.written).collect();
        fs.open_file(path).unwrap().write_at(wanted, 0).unwrap();
        let after = zones(&*zoned);
        let changed = after.iter().zip(before).find(|(zone, before)| zone.written != *before).unwrap().0;
        fs.remove_file(path).unwrap();
        changed.number
    };
    for dead in [false, true] {
        let zone = find(&[1; 4096]);
        if dead {
            zoned.take_offline(zone).unwrap();
        } else {
            zoned.wear_out(zone).unwrap();
        }
        let path = format!("/after-{dead}");
        let file = fs.create_file(&path, 0o644).unwrap();
        let error = file.write_at(&[2; 8192], 0).unwrap_err();
        assert!(error.to_string().contains(&format!("zone {zone} is")), "{error}");
        // The next one goes elsewhere.
        file.write_at(&content(&path, 0, 8192), 0).unwrap();
        file.sync_all().unwrap();
        assert_content(&fs, &path, &content(&path, 0, 8192));
        fs.checkpoint().unwrap();
    }
    // A free zone that cannot be reset any more goes to no log.
    let free = zones(&*zoned).into_iter().rev().find(|zone| zone.state == ZoneState::Empty).unwrap();
    zoned.take_offline(free.number).unwrap();
    fs.close().unwrap();
    drop(fs);
    let fs = FileSystem::open(zoned.clone(), Options::new()).unwrap();
    assert_content(&fs, "/after-true", &content("/after-true", 0, 8192));
    let files = fill(&fs, 300_000, 0);
    assert!(files > 30, "{files}");
    fs.close().unwrap();
}

#[test]
fn zones_that_are_not_the_volumes_are_refused() {
    let bytes = Arc::new(MemoryDevice::new(48 * ZONE));
    let zoned = |layout: ZoneLayout| Arc::new(ZonedDevice::new(Arc::new(bytes.snapshot()), layout).unwrap());
    format(
        &ZonedDevice::new(bytes.clone(), layout()).unwrap(),
        &FormatOptions::default().with_features(Features::BLKZONED),
    )
    .unwrap();
    let before = bytes.snapshot();
    let refused = |device: Arc<dyn BlockDevice>| match FileSystem::open(device, Options::new()).unwrap_err() {
        FsError::Volume(error) => error,
        other => panic!("{other}"),
    };
    assert!(matches!(refused(bytes.clone()), VolumeError::NoZones));
    let error = refused(zoned(layout().with_limits(5, 0)));
    assert!(matches!(error, VolumeError::ZoneLimit { limit: 5, needed: 6 }), "{error}");
    for wrong in [ZoneLayout::new(ZONE / 2).with_conventional(16), ZoneLayout::new(2 * ZONE).with_conventional(4)] {
        let error = refused(zoned(wrong));
        assert!(matches!(error, VolumeError::Zone { .. }), "{error}");
    }
    let error = refused(zoned(ZoneLayout::new(ZONE).with_conventional(2)));
    assert!(error.to_string().contains("the first block that is written in its order"), "{error}");
    for block in 0..48 * ZONE {
        assert!(before.block(block).0 == bytes.block(block).0, "block {block} was written");
    }
    let fs = FileSystem::open(bytes, Options::new().read_only(true)).unwrap();
    assert!(fs.read_dir("/").unwrap().next().is_none());
}

/// The table of the zones says less than what was written, as where another device stands at the place of one.
#[test]
fn blocks_behind_a_write_pointer_are_told_when_a_volume_is_opened() {
    let bytes = Arc::new(MemoryDevice::new(48 * ZONE));
    let zoned = |bytes: Arc<MemoryDevice>| Arc::new(ZonedDevice::new(bytes, layout()).unwrap());
    let device = zoned(bytes.clone());
    format(&*device, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_file("/file", 0o644).unwrap().write_at(&vec![7; 1 << 20], 0).unwrap();
    fs.close().unwrap();
    let before = bytes.snapshot();
    // All zones are empty by a new table.
    let empty = || zoned(Arc::new(before.snapshot()));
    for read_only in [false, true] {
        let error = FileSystem::open(empty(), Options::new().read_only(read_only)).unwrap_err();
        let FsError::Volume(VolumeError::Zone { what, found: 0, expected, .. }) = error else { panic!("{error}") };
        assert!(what.contains("written") && expected > 0, "{what}, {expected}");
    }
    FileSystem::open(device, Options::new()).unwrap().close().unwrap();
}
