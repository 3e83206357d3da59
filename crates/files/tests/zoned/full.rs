//! Volumes on zones that are nearly full, under the load of many threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use f2fs_check::{CheckOptions, check};
use f2fs_device::{BlockDevice, MemoryDevice, ZoneLayout, ZonedDevice};
use f2fs_device_test::{Random, SlowDevice};
use f2fs_files::{File, FileSystem, Options, Pace};
use f2fs_format::SegmentNo;
use f2fs_format::feature::Features;
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::{FormatOptions, format};

/// A volume of 256 MiB on zones whose flushes take 5 ms, filled to so many per cent with files of two blocks each:
/// nearly every block that moves dirties a node of its own.
fn full_of_small_files(percent: u64) -> (Arc<dyn BlockDevice>, FileSystem, Vec<File>) {
    let zoned = ZonedDevice::new(Arc::new(MemoryDevice::new(256 << 8)), ZoneLayout::new(512).with_conventional(8));
    let device = Arc::new(SlowDevice::new(zoned.unwrap(), |_| 0.0).with_flushes(Duration::from_millis(5)));
    format(&*device, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new().volume(VolumeOptions::new().lanes(2))).unwrap();
    let mut files = Vec::new();
    while (fs.statfs().valid_blocks + 3) * 100 <= fs.statfs().user_blocks * percent {
        if files.len() % 256 == 0 {
            fs.create_dir(format!("/{}", files.len() / 256), 0o755).unwrap();
        }
        let file = fs.create_file(format!("/{}/{}", files.len() / 256, files.len()), 0o644).unwrap();
        file.write_at(&[1; 8192], 0).unwrap();
        files.push(file);
    }
    fs.checkpoint().unwrap();
    (device, fs, files)
}

/// Overwrites blocks of these files by so many threads, each for as long as it is told by its number of writes.
fn overwrite(files: &[File], threads: u64, go_on: impl Fn(u64) -> bool + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let go_on = &go_on;
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for written in 0.. {
                    if !go_on(written) {
                        break;
                    }
                    let file = &files[random.below(files.len())];
                    file.write_at(&[2; 4096], random.below_u64(2) * 4096).unwrap();
                }
            });
        }
    });
}

fn close_and_check(device: &dyn BlockDevice, fs: FileSystem) {
    fs.close().unwrap();
    drop(fs);
    let report = check(device, &CheckOptions::default()).unwrap();
    assert!(report.is_clean() && report.complete, "{report}");
}

/// Many threads that each empty sections beside the others, on a device whose flushes take long: what they take and
/// dirty at a time leaves room for the checkpoint.
#[test]
fn steps_of_many_threads_leave_a_checkpoint_its_room() {
    let (device, fs, files) = full_of_small_files(90);
    let (begun, emptied) = (Instant::now(), AtomicU64::new(0));
    overwrite(&files, 32, |_| {
        let step = fs.clean_step(Pace::Urgent).unwrap();
        emptied.fetch_add(u64::from(step.is_some()), Ordering::Relaxed);
        begun.elapsed() < Duration::from_secs(2)
    });
    assert!(emptied.into_inner() > 0);
    drop(files);
    close_and_check(&*device, fs);
}

/// Many threads use up room faster than it is made, on a volume that is nearly full: they wait for it, and each finds it.
#[test]
fn many_threads_find_room_on_a_full_volume() {
    let (device, fs, files) = full_of_small_files(96);
    let before = fs.write_stat().victims;
    overwrite(&files, 24, |written| written < 2000);
    // What they wrote was free several times over.
    assert!(fs.write_stat().victims - before > 100, "{:?}", fs.write_stat());
    drop(files);
    close_and_check(&*device, fs);
}

/// Operations that take sections empty others before they run out: all of them would have to wait then.
#[test]
fn room_is_made_beside_operations() {
    let (device, fs, files) = full_of_small_files(90);
    overwrite(&files, 2, |written| written < 40_000);
    let written = fs.write_stat();
    assert!(written.victims > 200 && written.moved_data_blocks > 10_000, "{written:?}");
    // More than twenty if nobody empties any beforehand.
    assert!(written.cleanings_alone <= 3, "{written:?}");
    drop(files);
    close_and_check(&*device, fs);
}

/// An operation moves a part of a large section at most, and the next ones go on with it.
#[test]
fn large_sections_are_emptied_in_parts() {
    let zoned = ZonedDevice::new(MemoryDevice::new(1024 << 8), ZoneLayout::new(2048).with_conventional(8));
    let device = Arc::new(zoned.unwrap());
    format(&*device, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new().volume(VolumeOptions::new().lanes(1))).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    let blocks = (fs.statfs().user_blocks - fs.statfs().valid_blocks) / 100 * 85;
    for block in (0..blocks).step_by(64) {
        file.write_at(&[1; 64 << 12], block * 4096).unwrap();
    }
    fs.checkpoint().unwrap();
    let (mut random, mut before, mut most) = (Random::new(1), fs.write_stat(), 0);
    for _ in 0..2 * blocks {
        file.write_at(&[2; 4096], random.below_u64(blocks) * 4096).unwrap();
        let now = fs.write_stat();
        assert_eq!(now.cleanings_alone, 0, "{now:?}");
        most = most.max(now.minus(&before).moved_data_blocks);
        before = now;
    }
    assert!(before.victims > 50, "{before:?}");
    // A segment, and up to one more: of four.
    assert!((256..1024).contains(&most), "{most} blocks were moved for one");
    // Whoever empties a section goes on with what was begun, first.
    fs.clean_step(Pace::Urgent).unwrap();
    fs.checkpoint().unwrap();
    let is_marked = |segment| fs.volume().segment(SegmentNo(segment)).unwrap().victim;
    let begun =
        (0..fs.volume().geometry().main_segments / 4).filter(|section| (0..4).all(|at| is_marked(section * 4 + at)));
    assert_eq!(begun.collect::<Vec<_>>(), [], "sections that are nobody's");
    drop(file);
    close_and_check(&*device, fs);
}

/// The emptiest section cannot be read any more: it is left, and room is made of the others.
#[test]
fn a_section_that_cannot_be_read_keeps_nobody_from_cleaning() {
    let memory = MemoryDevice::new(256 << 8);
    let device = Arc::new(ZonedDevice::new(memory, ZoneLayout::new(512).with_conventional(8)).unwrap());
    format(&*device, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new().volume(VolumeOptions::new().lanes(1))).unwrap();
    let lost = fs.create_file("/lost", 0o644).unwrap();
    lost.write_at(&vec![1; 2048 * 4096], 0).unwrap();
    let kept = fs.create_file("/kept", 0o644).unwrap();
    let blocks = fs.statfs().user_blocks * 9 / 10 - fs.statfs().valid_blocks;
    for block in 0..blocks {
        kept.write_at(&[1; 4096], block * 4096).unwrap();
    }
    // One block in sixteen of a section stays in use.
    for block in (0..2048).filter(|block| block % 16 != 0) {
        lost.write_at(&[2; 4096], block * 4096).unwrap();
    }
    fs.checkpoint().unwrap();
    let geometry = fs.volume().geometry().clone();
    let valid = |segment| fs.volume().segment(SegmentNo(segment)).unwrap().valid;
    let emptiest = (0..geometry.main_segments).filter(|segment| (20..40).contains(&valid(*segment))).nth(1).unwrap();
    device.take_offline(geometry.block_at(SegmentNo(emptiest), 0).0 / 512).unwrap();
    let before = fs.write_stat().victims;
    let mut random = Random::new(1);
    for _ in 0..100_000 {
        kept.write_at(&[3; 4096], random.below_u64(blocks) * 4096).unwrap();
    }
    assert!(fs.write_stat().victims - before > 200, "{:?}", fs.write_stat());
    assert!(valid(emptiest) > 0);
    fs.close().unwrap();
}

/// Fills a volume of few zones to 90 % with files of four blocks, and overwrites some of them by 8 threads.
fn fill_few_zones(mib: u64, layout: ZoneLayout, writes: u64) {
    let zoned = ZonedDevice::new(Arc::new(MemoryDevice::new(mib << 8)), layout);
    let device: Arc<dyn BlockDevice> = Arc::new(zoned.unwrap());
    format(&*device, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new().volume(VolumeOptions::new().lanes(2))).unwrap();
    let mut files = Vec::new();
    while (fs.statfs().valid_blocks + 5) * 100 <= fs.statfs().user_blocks * 90 {
        let file = fs.create_file(format!("/{}", files.len()), 0o644).unwrap();
        file.write_at(&[1; 16384], 0).unwrap();
        files.push(file);
    }
    overwrite(&files, 8, |written| written < writes);
    drop(files);
    close_and_check(&*device, fs);
}

/// Where a cleaning gains nothing, dirty nodes do not hold the room that is kept for them for good: they are written, and
/// it can be used.
#[test]
fn dirty_nodes_give_their_room_back() {
    fill_few_zones(416, ZoneLayout::new(4096).with_conventional(2), 1500);
}

/// What is left of the zones where logs stand is no hole that a cleaning can use: the holes that take its place as they
/// are filled are looked at.
#[test]
fn holes_are_found_while_open_zones_fill() {
    fill_few_zones(192, ZoneLayout::new(2048).with_conventional(4), 500);
}

/// As few zones as a volume can be made of: it is filled, overwritten and emptied, and can be filled again.
#[test]
fn few_zones_are_filled_again_and_again() {
    for blocks in [2048, 4096] {
        let layout = ZoneLayout::new(blocks).with_conventional(5);
        let device = |zones| Arc::new(ZonedDevice::new(MemoryDevice::new(zones * blocks), layout).unwrap());
        let made = |zones| format(&*device(zones), &FormatOptions::default().with_features(Features::BLKZONED));
        let fewest = (12..40).find(|zones| made(*zones).is_ok()).unwrap();
        let said = made(fewest - 1).unwrap_err().to_string();
        assert!(said.contains("the main area has 20 zones, and it takes 21"), "{said}");
        for (zones, lanes) in [(fewest, 1), (fewest, 2), (fewest + 1, 2), (fewest + 3, 1)] {
            let device = device(zones);
            let promised = format(&*device, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
            let options = || Options::new().volume(VolumeOptions::new().lanes(lanes));
            let fs = FileSystem::open(device.clone(), options()).unwrap();
            assert_eq!(fs.statfs().user_blocks, promised.user_blocks);
            let mut random = Random::new(zones);
            for round in 0..3 {
                let file = fs.create_file("/file", 0o644).unwrap();
                let room = fs.statfs().user_blocks - fs.statfs().valid_blocks;
                let written =
                    (0..room).take_while(|at| file.write_at(&[round; 4096], at * 4096).is_ok()).count() as u64;
                // But for the nodes of the file.
                assert!(written >= room - room / 500 - 4, "{written} of {room} blocks, {zones} zones of {blocks}");
                for _ in 0..2 * written {
                    file.write_at(&[round; 4096], random.below_u64(written) * 4096).unwrap();
                }
                drop(file);
                fs.remove_file("/file").unwrap();
            }
            close_and_check(&*device, fs);
        }
    }
}

#[cfg(feature = "mutants")]
#[test]
fn faults_are_found() {
    let test = "full::large_sections_are_emptied_in_parts";
    f2fs_sync::assert_found(test, &["victims_begun_are_left"], "cleanings_alone");
    let test = "what_threads_synced_is_found_after_a_crash";
    f2fs_sync::assert_found(test, &["zones_without_summaries"], "sources of summaries");
}
