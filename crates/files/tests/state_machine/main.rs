//! Random sequences of operations against a naive model; after each sequence the volume must be what the model is, and
//! clean to fsck.f2fs.
//!
//! `F2FS_CASES=5000` runs more sequences than the usual 24.
#![allow(clippy::unwrap_used)] // what fails here is a failed test

mod action;
mod world;

use std::collections::HashMap;
use std::sync::Arc;

use f2fs_device::{KeptZones, MemoryDevice, ZoneLayout};
use f2fs_files::{DirectoryLock, FileSystem, Options};
use f2fs_format::feature::Features;
use f2fs_test_kit::model::{Model, assert_equal};
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{Allocation, VolumeOptions};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use action::{Action, action};
use world::{World, on};

/// Volumes of different features take turns.
fn format_options(case: u32) -> FormatOptions {
    let family = Features::EXTRA_ATTR
        .union(Features::INODE_CHECKSUM)
        .union(Features::INODE_CRTIME)
        .union(Features::FLEXIBLE_INLINE_XATTR)
        .union(Features::SB_CHECKSUM);
    match case % 3 {
        0 => FormatOptions::default(),
        1 => FormatOptions::default().with_features(family),
        _ => FormatOptions::default()
            .with_features(Features::EXTRA_ATTR.union(Features::PROJECT_QUOTA))
            .with_sections(2, 1),
    }
}

fn run(case: u32, actions: &[Action]) {
    let device = Arc::new(MemoryDevice::new((128 << 20) >> 12));
    // Every fifth volume lies on zones, which the device keeps across openings; of what was not flushed nothing is
    // there afterwards.
    let zoned = case % 5 == 4;
    if zoned {
        let layout = ZoneLayout::new(512).with_conventional(9 + case % 3).with_limits(case / 5 % 2 * 9, 0);
        drop(KeptZones::create(device.clone(), layout).unwrap());
    }
    let features = if zoned { Features::BLKZONED } else { Features(0) };
    let mut how = format_options(case);
    how.features = how.features.union(features);
    format(&*on(&device, zoned), &how).unwrap();
    let lock = if case.is_multiple_of(2) { DirectoryLock::Bucket } else { DirectoryLock::Whole };
    let names = ["ssr", "partial", "selective-greedy", "selective-optimal"];
    let allocation: Allocation = names[case as usize / 4 % 4].parse().unwrap();
    let volume = VolumeOptions::new().allocation(allocation).lanes(1 + case as usize / 16 % 3);
    // Without a cache, with one that is always full, and with one that takes all.
    let cache = [0, 256 << 10, 64 << 20][case as usize / 48 % 3];
    let options = Options::new().directory_lock(lock).volume(volume).page_cache(cache);
    let fs = FileSystem::open(on(&device, zoned), options.clone()).unwrap();
    let model = Model::new();
    let mut world =
        World { device, zoned, fs, options, durable: model.clone(), model, held: Vec::new(), gone: HashMap::new() };
    for action in actions {
        world.apply(action);
    }
    assert_equal(&world.fs, &world.model);
    world.release();
    world.fs.close().unwrap();

    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    world.device.save(&image).unwrap();
    f2fs_oracle::assert_clean(&image);
    let again = FileSystem::open(on(&world.device, zoned), Options::new().read_only(true)).unwrap();
    assert_equal(&again, &world.model);
}

/// Half of the sequences; the other half runs beside it.
fn sequences(half: u32) {
    let cases: u32 = std::env::var("F2FS_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(24);
    let cases = cases.div_ceil(2);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let result = runner.run(&(any::<u32>(), prop::collection::vec(action(), 100..160)), |(case, actions)| {
        run(case.wrapping_add(half), &actions);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    println!("{cases} sequences of 100 to 160 operations");
}

#[test]
fn the_volume_is_what_the_model_is() {
    sequences(0);
}

#[test]
fn the_volume_is_what_the_model_is_other_half() {
    sequences(1);
}
