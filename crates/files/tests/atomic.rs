//! A checkpoint that one thread writes has each operation of another thread whole, or not at all.
//!
//! The contents of the device when a checkpoint has returned are a crash state: nothing that the checkpoint names is
//! overwritten before the next. `F2FS_STRESS=20` does 20 times as much.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use f2fs_device::MemoryDevice;
use f2fs_device_test::bytes;
use f2fs_files::{FileSystem, FsError, Options, RenameMode};
use f2fs_sync::atomic::{AtomicBool, Ordering};
use f2fs_test_kit::volumes::{assert_consistent, formatted, scale, within};
use f2fs_volume::format::FormatOptions;

const CHECKPOINTS: usize = 300;
/// So often that is tried.
const TRIES: usize = 20;
const LIMIT: Duration = Duration::from_secs(300);

/// The contents of the files of a directory, by name.
type Held = BTreeMap<String, Vec<u8>>;

fn read_all(fs: &FileSystem, dir: &str) -> Held {
    let entries = fs.read_dir(dir).unwrap();
    let file = |name: String| {
        let file = fs.open_file(format!("{dir}/{name}")).unwrap();
        let mut held = vec![0; file.metadata().unwrap().size as usize];
        let read = file.read_at(&mut held, 0).unwrap();
        assert_eq!(read, held.len());
        (name, held)
    };
    entries.into_iter().map(|entry| file(String::from_utf8(entry.unwrap().name).unwrap())).collect()
}

/// Does `round` over and over in a directory, while another thread writes checkpoints. Each of them leaves a consistent
/// volume.
fn checkpoints(
    count: usize,
    begin: impl FnOnce(&FileSystem),
    round: impl Fn(&FileSystem) -> Result<(), FsError> + Sync,
) -> Vec<MemoryDevice> {
    let device = formatted(128, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_dir("/d", 0o755).unwrap();
    begin(&fs);
    let done = AtomicBool::new(false);
    let images: Vec<MemoryDevice> = std::thread::scope(|scope| {
        let (fs, round, done) = (&fs, &round, &done);
        let changes = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                round(fs).unwrap();
            }
        });
        let images = (0..count * scale("F2FS_STRESS")).map(|_| {
            loop {
                fs.checkpoint().unwrap();
                let before = fs.statfs().written.checkpoints;
                let image = device.snapshot();
                // An operation that runs short of segments writes one meanwhile.
                if fs.statfs().written.checkpoints == before {
                    return image;
                }
            }
        });
        let images = images.collect();
        done.store(true, Ordering::Relaxed);
        changes.join().unwrap();
        images
    });
    images.iter().for_each(|image| assert_consistent(image));
    images
}

/// The same; each of the checkpoints must hold one of `states`, and not all the same.
fn assert_atomic(
    states: &[Held],
    begin: impl Fn(&FileSystem),
    round: impl Fn(&FileSystem) -> Result<(), FsError> + Sync,
) {
    let mut seen = vec![0; states.len()];
    let changed = |seen: &[u32]| seen.iter().filter(|count| **count > 0).count() > 1;
    // On a busy machine the other thread may have no turn between all these checkpoints.
    for _ in 0..TRIES {
        for image in checkpoints(CHECKPOINTS, &begin, &round) {
            let fs = FileSystem::open(Arc::new(image), Options::new().read_only(true)).unwrap();
            let held = read_all(&fs, "/d");
            let state = states.iter().position(|state| *state == held);
            let sizes = || held.iter().map(|(name, held)| (name, held.len())).collect::<Vec<_>>();
            seen[state.unwrap_or_else(|| panic!("a checkpoint holds what never was: {:?}", sizes()))] += 1;
        }
        if changed(&seen) {
            return;
        }
    }
    panic!("nothing changed between checkpoints: {seen:?}");
}

fn held<const N: usize>(files: [(&str, &[u8]); N]) -> Held {
    files.into_iter().map(|(name, held)| (name.to_owned(), held.to_vec())).collect()
}

/// A file is cut and written again.
fn assert_truncations_are_atomic(data: &[u8], size: usize) {
    let states = [held([("f", data)]), held([("f", &data[..size])])];
    let begin = |fs: &FileSystem| {
        fs.create_file("/d/f", 0o644).unwrap().write_at(data, 0).unwrap();
    };
    assert_atomic(&states, begin, |fs| {
        let file = fs.open_file("/d/f")?;
        file.set_len(size as u64)?;
        file.write_at(&data[size..], size as u64).map(drop)
    });
}

/// The new end lies within a block: what is behind it is overwritten with zeros, and the size changes.
#[test]
fn truncations_within_a_block() {
    within(LIMIT, || assert_truncations_are_atomic(&bytes(10_096, 1), 9000));
}

/// The blocks behind the new end go together with the size.
#[test]
fn truncations_by_blocks() {
    within(LIMIT, || assert_truncations_are_atomic(&bytes(100_000, 1), 100));
}

/// More nodes than one operation empties: the file becomes shorter in between, and what was cut off does not come back.
#[test]
fn truncations_in_many_steps() {
    const NODES: u64 = 150;
    const APART: u64 = 1018 * 4096;
    within(LIMIT, || {
        let begin = |fs: &FileSystem| drop(fs.create_file("/d/f", 0o644).unwrap());
        let images = checkpoints(60, begin, |fs| {
            let file = fs.open_file("/d/f")?;
            (0..NODES).try_for_each(|node| file.write_at(&[7; 4096], node * APART).map(drop))?;
            file.set_len(100)
        });
        let mut between = 0;
        for image in images {
            let fs = FileSystem::open(Arc::new(image), Options::new()).unwrap();
            let file = fs.open_file("/d/f").unwrap();
            let size = file.metadata().unwrap().size;
            between += usize::from(size > 100 && !(size - 4096).is_multiple_of(APART));
            file.set_len(NODES * APART).unwrap();
            for node in 0..NODES {
                let mut found = [1; 4096];
                file.read_at(&mut found, node * APART).unwrap();
                let kept = size.saturating_sub(node * APART).min(4096) as usize;
                assert!(
                    found[..kept] == [7; 4096][..kept] && found[kept..].iter().all(|byte| *byte == 0),
                    "node {node}"
                );
            }
        }
        println!("{between} checkpoints in the middle of a truncation");
    });
}

/// Data leaves the inode for a block when it grows.
#[test]
fn growth_out_of_the_inode() {
    within(LIMIT, || {
        let data = bytes(10_000, 2);
        let states = [held([]), held([("f", &[])]), held([("f", &data[..100])]), held([("f", &data)])];
        assert_atomic(
            &states,
            |_| {},
            |fs| {
                let file = fs.create_file("/d/f", 0o644)?;
                file.write_at(&data[..100], 0)?;
                file.write_at(&data[100..], 100)?;
                fs.remove_file("/d/f")
            },
        );
    });
}

/// A name changes what it means, and two names change places.
#[test]
fn renames_over_files() {
    within(LIMIT, || {
        let [one, two] = [bytes(5000, 3), bytes(100, 4)];
        let states = [held([("a", &one), ("b", &two)]), held([("a", &two), ("b", &one)]), held([("a", &one)])];
        let begin = |fs: &FileSystem| {
            fs.create_file("/d/a", 0o644).unwrap().write_at(&one, 0).unwrap();
        };
        let states = [&states[..], &[held([("a", &one), ("b", &[])]), held([("b", &one)])]].concat();
        assert_atomic(&states, begin, |fs| {
            fs.create_file("/d/b", 0o644)?.write_at(&two, 0)?;
            fs.rename("/d/a", "/d/b", RenameMode::Exchange)?;
            fs.rename("/d/b", "/d/a", RenameMode::Replace)?;
            fs.rename("/d/a", "/d/b", RenameMode::Replace)?;
            fs.rename("/d/b", "/d/a", RenameMode::Replace)
        });
    });
}
