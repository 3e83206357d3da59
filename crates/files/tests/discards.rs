//! Segments that a checkpoint frees are discarded, unless the volume was opened without that; and all that are free, when
//! that is asked for.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use f2fs_device::{BlockDevice, MemoryDevice, Operation, ZoneLayout, ZonedDevice};
use f2fs_device_test::{FaultDevice, FaultRule, RecordingDevice};
use f2fs_files::{FileSystem, Options};
use f2fs_format::SegmentNo;
use f2fs_format::feature::Features;
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::{FormatOptions, format};

#[test]
fn freed_segments_are_discarded_if_that_is_asked_for() {
    for discard in [true, false] {
        let device = MemoryDevice::new((64 << 20) >> 12);
        format(&device, &FormatOptions::default()).unwrap();
        let device = Arc::new(RecordingDevice::new(device));
        let options = Options::new().volume(VolumeOptions::new().discard(discard));
        let fs = FileSystem::open(device.clone(), options).unwrap();
        fs.create_file("/large", 0o644).unwrap().write_at(&vec![1; 12 << 20], 0).unwrap();
        fs.checkpoint().unwrap();
        let before = device.counts().discards;
        fs.remove_file("/large").unwrap();
        fs.checkpoint().unwrap();
        fs.checkpoint().unwrap();
        assert_eq!(device.counts().discards > before, discard, "{before}, then {}", device.counts().discards);
    }
}

/// A volume of 128 MiB with a durable file, and one of 40 MiB that was there when its program was killed.
fn killed() -> Arc<MemoryDevice> {
    let device: Arc<MemoryDevice> = formatted(128, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_file("/kept", 0o644).unwrap().write_at(&[7; KEPT], 0).unwrap();
    fs.checkpoint().unwrap();
    fs.create_file("/lost", 0o644).unwrap().write_at(&vec![1; 40 << 20], 0).unwrap();
    device
}

const KEPT: usize = 6 << 20;

fn assert_kept(fs: &FileSystem) {
    let mut bytes = vec![0; KEPT];
    assert_eq!(fs.open_file("/kept").unwrap().read_at(&mut bytes, 0).unwrap(), KEPT);
    assert!(bytes.iter().all(|byte| *byte == 7));
}

/// Blocks of the main area that hold something.
fn held(device: &MemoryDevice, fs: &FileSystem) -> u64 {
    let main = u64::from(fs.volume().geometry().block_at(SegmentNo(0), 0).0)..device.info().blocks;
    main.filter(|at| device.block(*at).0.iter().any(|byte| *byte != 0)).count() as u64
}

#[test]
fn what_a_killed_program_wrote_is_given_back() {
    let device = killed();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    assert!(held(&device, &fs) > (46 << 20) >> 12);
    let mut steps = Vec::new();
    let given = fs.trim(|done, all| steps.push((done, all))).unwrap();
    let segments = fs.volume().geometry().main_segments;
    assert_eq!(given, u64::from(fs.statfs().free_segments) * 512);
    assert_eq!(steps, [(segments, segments)]);
    let left = held(&device, &fs);
    assert!((KEPT as u64 >> 12..(16 << 20) >> 12).contains(&left), "{left} blocks");
    assert_kept(&fs);
    // What is removed now is free behind the checkpoint with which it begins.
    fs.create_file("/more", 0o644).unwrap().write_at(&vec![1; 10 << 20], 0).unwrap();
    fs.checkpoint().unwrap();
    fs.remove_file("/more").unwrap();
    assert!(fs.trim(|_, _| {}).unwrap() > given - 4 * 512);
    assert_eq!(fs.statfs().prefree_segments, 0);
    fs.close().unwrap();
    assert_clean(&device);
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    assert_kept(&fs);
    assert_eq!(fs.trim(|_, _| {}).unwrap_err().raw_os_error(), 30, "EROFS");
}

/// Segments that lie in the range as a whole, and no short runs of them.
#[test]
fn a_part_of_the_volume_can_be_given_back() {
    const SEGMENT: u64 = 2 << 20;
    let device = killed();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let geometry = fs.volume().geometry();
    let main = u64::from(geometry.main_blkaddr.0) * 4096;
    let all = u64::from(geometry.main_segments) * SEGMENT;
    let trim = |range: Range<u64>, least| fs.trim_within(range, least, |_, _| {});
    let free = || u64::from(fs.statfs().free_segments) * 512;
    // A block less at each side of eleven segments at the end, where nothing is.
    let end = main + all;
    assert_eq!(trim(end - 11 * SEGMENT + 4096..end - 4096, 0).unwrap(), 9 * 512);
    assert_eq!(trim(end - 11 * SEGMENT..u64::MAX, 11 * SEGMENT).unwrap(), 11 * 512);
    assert_eq!(trim(end - 11 * SEGMENT..u64::MAX, 11 * SEGMENT + 1).unwrap(), 0);
    assert_eq!(trim(0..main + 1, 0).unwrap(), 0);
    assert_eq!(trim(main..main + SEGMENT - 1, 0).unwrap(), 0);
    // Both halves together are all.
    let half = main + all / 2 / SEGMENT * SEGMENT;
    assert_eq!(trim(0..half, 0).unwrap() + trim(half..end, 0).unwrap(), free());
    for range in
        [geometry.block_count * 4096..u64::MAX, 0..4095, u64::MAX..u64::MAX, Range { start: 5 * SEGMENT, end: SEGMENT }]
    {
        assert_eq!(trim(range, 0).unwrap_err().raw_os_error(), 22, "EINVAL");
    }
    assert_kept(&fs);
    fs.close().unwrap();
    assert_clean(&device);
}

/// It is done in steps of 1 GiB; what is short is so as a whole.
#[test]
fn a_run_that_two_steps_see_is_no_shorter_for_that() {
    let device = formatted(2600, &FormatOptions::default());
    let fs = FileSystem::open(device, Options::new()).unwrap();
    fs.checkpoint().unwrap();
    let (mut steps, free) = (0, u64::from(fs.statfs().free_segments) * 512);
    // Logs stand at the beginning, and in two places farther on.
    for (least, given_at_least) in
        [(0, free - 32 * 512), (500 << 20, free - 32 * 512), (1 << 30, ((1 << 30) + (256 << 20)) / 4096)]
    {
        let given = fs.trim_within(0..u64::MAX, least, |_, _| steps += 1).unwrap();
        assert!(given > given_at_least, "{least}: {given} of {free}");
        assert_eq!(least == 1 << 30, given < free / 2 + 32 * 512);
    }
    assert!(steps >= 3 * 3, "{steps}");
}

/// Nobody takes a segment while it is given back.
#[test]
fn writers_beside_it_lose_nothing() {
    let device: Arc<MemoryDevice> = formatted(128, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (1..4u8)
            .map(|thread| {
                let fs = &fs;
                scope.spawn(move || {
                    for round in 0..40u8 {
                        let file = fs.create_file(format!("/{thread}"), 0o644).unwrap();
                        let bytes = vec![thread * 50 + round; 5 << 20];
                        assert_eq!(file.write_at(&bytes, 0).unwrap(), bytes.len());
                        let mut found = vec![0; bytes.len()];
                        file.read_at(&mut found, 0).unwrap();
                        assert!(found == bytes, "{thread}, {round}");
                        fs.remove_file(format!("/{thread}")).unwrap();
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                fs.trim(|_, _| {}).unwrap();
            }
        });
        let results: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        ended.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.unwrap());
    });
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn a_device_that_fails_to_take_room_back_says_so() {
    let device = Arc::new(FaultDevice::new(killed()));
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    device.arm(FaultRule::on([Operation::Discard]));
    let error = fs.trim(|_, _| {}).unwrap_err();
    assert_eq!(error.raw_os_error(), 5, "EIO: {error}");
    assert_kept(&fs);
    assert!(fs.trim(|_, _| {}).unwrap() > 0);
    fs.close().unwrap();
}

/// Zones are begun anew when they are empty. What can be written anywhere is tables, or small.
#[test]
fn a_volume_on_zones_gives_nothing_back() {
    let memory = MemoryDevice::new((128 << 20) >> 12);
    let device = Arc::new(ZonedDevice::new(memory, ZoneLayout::new(512).with_conventional(8)).unwrap());
    format(&*device, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
    let fs = FileSystem::open(device, Options::new()).unwrap();
    assert_eq!(fs.trim(|_, _| {}).unwrap(), 0);
    fs.close().unwrap();
}
