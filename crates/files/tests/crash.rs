//! Power cuts: at every flush of a random workload, and between, whatever part of the unflushed writes survives, the
//! volume opens at one of its last two checkpoints, with everything that the model held then.
//!
//! `F2FS_STRESS=20` makes the workload longer and takes more images.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_device_test::Random;
use f2fs_device_test::{Event, RecordingDevice};
use f2fs_files::{FileSystem, Options};
use f2fs_format::feature::Features;
use f2fs_test_kit::model::{Content, Model, ROOT, assert_equal};
use f2fs_test_kit::volumes::{assert_consistent, at, formatted, saved, scale};
use f2fs_test_kit::worker::{SHARED, Worker};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{Allocation, CostModel, VolumeOptions};

/// A checkpoint: how many events the log had when it was durable, and what it holds. One that an operation asked for
/// stands before or behind that operation.
struct Mark {
    position: usize,
    version: u64,
    models: Vec<Model>,
}

fn options() -> Options {
    let small = VolumeOptions::new().node_cache(NonZeroUsize::new(256).unwrap());
    Options::new().volume(small).inode_cache(NonZeroUsize::new(256).unwrap())
}

/// Opens the image twice: as a reader and as a writer, who frees orphans and goes on.
fn judge(image: MemoryDevice, allowed: &[&Mark], fsck: bool) -> u64 {
    assert_consistent(&image);
    if fsck {
        f2fs_oracle::assert_accepted(f2fs_test_kit::volumes::TempPathExt::path(&saved(&image)));
    }
    let image = Arc::new(image);
    let fs = FileSystem::open(image.clone(), options()).unwrap();
    let version = fs.volume().last_checkpoint().version;
    let Some(mark) = allowed.iter().find(|mark| mark.version == version) else {
        let versions: Vec<u64> = allowed.iter().map(|mark| mark.version).collect();
        panic!("version {version:#x}, {versions:x?} would be right");
    };
    let (last, others) = mark.models.split_last().unwrap();
    let equal = |model| catch_unwind(AssertUnwindSafe(|| assert_equal(&fs, model))).is_ok();
    if !others.iter().any(equal) {
        assert_equal(&fs, last);
    }
    if fsck {
        fs.create_file("/after", 0o644).unwrap().write_at(&[1; 10_000], 0).unwrap();
        fs.close().unwrap();
        f2fs_test_kit::volumes::assert_clean(&image);
    }
    version
}

fn run(seed: u64, features: Features) {
    run_with(seed, features, &Allocation::ssr(), 250, 60);
}

/// Fills a volume with two files in turns of some blocks and removes one of them: holes everywhere. Gives the other's
/// bytes.
fn fragment(device: &Arc<MemoryDevice>) -> Vec<u8> {
    let mut options = options();
    options.volume = options.volume.lanes(1);
    let fs = FileSystem::open(device.clone(), options).unwrap();
    let (old, gone) = (fs.create_file("/old", 0o644).unwrap(), fs.create_file("/gone", 0o644).unwrap());
    let mut random = Random::new(5);
    let mut bytes = Vec::new();
    let end = fs.statfs().valid_blocks + 3000;
    while fs.statfs().valid_blocks < end {
        let data = f2fs_device_test::bytes((1 + random.below(4)) * 4096, random.next());
        old.write_at(&data, bytes.len() as u64).unwrap();
        bytes.extend_from_slice(&data);
        gone.append(&f2fs_device_test::bytes((1 + random.below(8)) * 4096, random.next())).unwrap();
    }
    drop((old, gone));
    fs.remove_file("/gone").unwrap();
    fs.close().unwrap();
    bytes
}

/// `steps` operations with writes into holes as `allocation` says, cut at each flush and at one event in `cuts`.
fn run_with(seed: u64, features: Features, allocation: &Allocation, steps: usize, cuts: usize) {
    let options = || {
        let mut options = options();
        options.volume = options.volume.allocation(allocation.clone());
        options
    };
    let formatted = formatted(64, &FormatOptions::default().with_features(features));
    let make_directories = |fs: &FileSystem| {
        for name in SHARED.iter().chain([&&b"arena"[..]]) {
            fs.create_dir(at(&[b"/", *name].concat()), 0o755).unwrap();
        }
    };
    let mut worker = Worker::new(0, seed);
    let mut first = Model::new();
    if *allocation != Allocation::ssr() {
        let kept = fragment(&formatted);
        worker.model.create(ROOT, b"old", Content::File(kept), 0o644);
        // Later, one of these would bring a checkpoint, with some of them.
        let fs = FileSystem::open(formatted.clone(), Options::new()).unwrap();
        make_directories(&fs);
        fs.close().unwrap();
        first = worker.model.clone();
    }
    let device = Arc::new(RecordingDevice::new(formatted.snapshot()));
    let mut fs = FileSystem::open(device.clone(), options()).unwrap();
    let empty = fs.volume().last_checkpoint().version;
    if *allocation == Allocation::ssr() {
        make_directories(&fs);
    }
    let mut random = Random::new(seed);
    let mut in_place = 0;
    let mut marks = vec![Mark { position: 0, version: empty, models: vec![first] }];
    // Checkpoints that came since the last one that is marked, when the volume held one of these.
    let note = |marks: &mut Vec<Mark>, fs: &FileSystem, models: &[Model]| {
        let from = marks.last().map_or(0, |mark| mark.version) + 1;
        for version in from..=fs.volume().last_checkpoint().version {
            marks.push(Mark { position: device.position(), version, models: models.to_vec() });
        }
    };
    for step in 0..steps * scale("F2FS_STRESS") {
        let before = worker.model.clone();
        worker.step(&fs);
        note(&mut marks, &fs, &[before, worker.model.clone()]);
        if step % 20 == 19 {
            // An open file without a name: the checkpoint lists an orphan, which the model does not have.
            let name = format!("gone-{step}");
            let file = fs.create_file(format!("/one/{name}"), 0o600).unwrap();
            file.write_at(&[9; 9000], 0).unwrap();
            fs.remove_file(format!("/one/{name}")).unwrap();
            let with = |bytes: &[u8]| {
                let mut model = worker.model.clone();
                let Content::Dir(names) = &model.nodes[&ROOT].content else { unreachable!("the root is a directory") };
                model.create(names[&b"one"[..]], name.as_bytes(), Content::File(bytes.to_vec()), 0o600);
                model
            };
            note(&mut marks, &fs, &[worker.model.clone(), with(&[]), with(&[9; 9000])]);
            if random.chance(3) {
                drop(file);
                let written = fs.write_stat();
                in_place += written.rewritten_blocks + written.precleaned_blocks;
                fs.close().unwrap();
                note(&mut marks, &fs, &[worker.model.clone()]);
                fs = FileSystem::open(device.clone(), options()).unwrap();
            } else {
                fs.checkpoint().unwrap();
            }
            note(&mut marks, &fs, &[worker.model.clone()]);
        }
    }
    let Content::Dir(names) = &worker.model.nodes[&ROOT].content else { unreachable!("the root is a directory") };
    assert!(!names.is_empty() && marks.len() > 10);

    let log = device.log();
    let mut replay = log.replay();
    let mut seen: HashMap<u64, usize> = HashMap::new();
    let mut images = 0;
    loop {
        let position = replay.position();
        let next = log.events().get(position);
        let boundary = next.is_none_or(Event::is_flush);
        if boundary || random.chance(cuts) {
            // The last checkpoint that was durable, and the one that was being written, or those of the same operation.
            let done = marks.iter().rposition(|mark| mark.position <= position).unwrap();
            let next = marks.get(done + 1).map(|mark| mark.position);
            let allowed: Vec<&Mark> = marks[done..]
                .iter()
                .enumerate()
                .take_while(|(at, mark)| *at == 0 || Some(mark.position) == next)
                .map(|(_, mark)| mark)
                .collect();
            let chance = random.below(4) + 2;
            let in_flight = random.below(40);
            let mut subset = random.clone();
            let kinds = [
                replay.image(0, |_, _| false),
                replay.image(0, |_, _| true),
                replay.image(in_flight, |_, _| subset.chance(chance)),
                replay.image(in_flight, |_, block| block % chance as u64 == 0),
            ];
            random.next();
            for (kind, image) in kinds.into_iter().enumerate() {
                images += 1;
                let version = judge(image, &allowed, (images + kind) % 40 == 0);
                *seen.entry(version).or_default() += 1;
            }
        }
        if replay.advance().is_none() {
            break;
        }
    }
    // Each checkpoint was found, so the cuts were where it matters.
    assert_eq!(seen.len(), marks.len(), "{images} images: {seen:?}");
    if *allocation != Allocation::ssr() {
        let written = fs.write_stat();
        assert!(fs.volume().writes_into_holes(), "{:?}", fs.statfs());
        in_place += written.rewritten_blocks + written.precleaned_blocks;
        assert!(in_place > 0, "{written:?}");
        println!("{in_place} blocks rewritten in their places or moved ahead");
    }
    println!("{images} images of {} checkpoints, {} events", marks.len(), log.events().len());
    assert_eq!(device.info().blocks, formatted.info().blocks);
}

#[test]
fn after_a_power_cut_the_last_checkpoint_is_there() {
    run(1, Features(0));
}

/// A volume so small that logs write into holes: runs in between are rewritten in their places and moved ahead of
/// writes, and checkpoints and power cuts come in between.
#[test]
fn while_runs_in_the_way_are_rewritten_and_moved() {
    run_with(3, Features(0), &Allocation::partial(CostModel::sata_ssd()), 250, 200);
    run_with(4, Features(0), &Allocation::selective_optimal(CostModel::sata_ssd()), 250, 200);
}

#[test]
fn with_checksums_as_well() {
    run(2, Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM).union(Features::SB_CHECKSUM));
}
