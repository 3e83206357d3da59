//! Models of data on its way: writes that are durable by themselves, the cleaner, syncs, truncations and checkpoints
//! beside each other.
//!
//! ```text
//! mutant: node_owns_what_is_on_its_way, killed by: a_durable_write_beside_the_cleaner
//! mutant: sync_forgets_arrivals, killed by: two_files_are_made_durable
//! mutant: sync_forgets_those_in_front, killed by: two_files_are_made_durable_side_by_side
//! mutant: cleaner_flush_left_out, killed by: a_sync_beside_the_cleaner
//! mutant: moves_land_beside_syncs, killed by: a_sync_beside_the_cleaner
//! mutant: truncate_in_two_operations, killed by: a_file_is_cut_beside_a_checkpoint
//! ```
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod loom_common;

use std::sync::OnceLock;

use f2fs_device_test::{Event, RecordingDevice};
use f2fs_files::{FileSystem, Options, Pace};
use f2fs_format::node::NodeBlock;
use f2fs_sync::{Arc, model};
use f2fs_volume::models::Image;
use f2fs_volume::{SyncWriters, VolumeOptions};
use loom_common::{BLOCK, LateDevice, Small, image, options, read, recorded};

/// `/file` with 4 blocks.
fn file() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        image(|fs| {
            fs.create_file("/file", 0o644).unwrap().write_at(&[1; 4 * BLOCK], 0).unwrap();
        })
    })
}

/// `/file` has a block in a segment of which nothing else is in use and one block is left.
fn nearly_empty_segment() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        image(|fs| {
            fs.create_file("/file", 0o644).unwrap().write_at(&[1; BLOCK], 0).unwrap();
            let free = fs.statfs().free_segments;
            fs.create_file("/filler", 0o644).unwrap().write_at(&vec![0; 510 * BLOCK], 0).unwrap();
            assert_eq!(fs.statfs().free_segments, free);
            fs.checkpoint().unwrap();
            fs.remove_file("/filler").unwrap();
        })
    })
}

/// A write to that block is on its way while the cleaner moves the blocks of the segment.
#[test]
fn a_durable_write_beside_the_cleaner() {
    nearly_empty_segment();
    let setup = || {
        let small = Small::late(nearly_empty_segment());
        // From the first checkpoint on, syncs need none.
        small.fs.checkpoint().unwrap();
        small
    };
    model::large("a_durable_write_beside_the_cleaner", 1, setup, |small| {
        let fs = Arc::clone(&small.fs);
        let thread = model::spawn(move || fs.clean_step(Pace::Urgent).unwrap());
        small.fs.open_file("/file").unwrap().write_durable(&[2; 2 * BLOCK], 0).unwrap();
        thread.join().unwrap();
        model::judge();
        assert!(read(&small.fs, "/file") == [2; 2 * BLOCK]);
        assert!(read(&small.again().fs, "/file") == [2; 2 * BLOCK]);
    });
}

/// What the cleaner moved is durable before a synced node names it: if the power is cut before the flush of a sync, the
/// node may be there, and nothing else that was not flushed.
#[test]
fn a_sync_beside_the_cleaner() {
    nearly_empty_segment();
    let setup = || {
        let device = Arc::new(RecordingDevice::new(nearly_empty_segment().device().snapshot()));
        let fs = Arc::new(FileSystem::open(Arc::new(LateDevice::new(device.clone())), options()).unwrap());
        // The log leaves the segment.
        fs.create_file("/next", 0o644).unwrap().write_at(&[3; 2 * BLOCK], 0).unwrap();
        fs.checkpoint().unwrap();
        let begun = device.position();
        (device, fs, begun)
    };
    model::large("a_sync_beside_the_cleaner", 2, setup, |(device, fs, begun)| {
        let other = Arc::clone(&fs);
        let thread = model::spawn(move || other.clean_step(Pace::Urgent).unwrap());
        fs.set_permissions("/file", 0o600).unwrap();
        fs.open_file("/file").unwrap().sync_all().unwrap();
        let step = thread.join().unwrap();
        model::judge();
        assert!(step.is_some_and(|step| step.data_blocks == 2), "{step:?}");
        let (log, ino) = (device.log(), fs.metadata("/file").unwrap().ino.0);
        let is_its_node = |event: &Event| match event {
            Event::Write { data, .. } => {
                let footer = NodeBlock::read(data.block(0)).footer;
                footer.ino.get() == ino && footer.nid.get() == ino
            }
            _ => false,
        };
        for flush in (begun..log.events().len()).filter(|at| log.events()[*at].is_flush()) {
            let image = log.image_at(flush, |event, _| is_its_node(&log.events()[event]));
            assert!(read(&Small::on(Arc::new(image)).fs, "/file") == [1; BLOCK], "before the flush at {flush}");
        }
    });
}

/// More blocks than wait for the group: they are sent at once, and the leader waits for them.
const LONG: usize = 17;

/// `/one` and `/two` with so many blocks each.
fn two_files() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        image(|fs| {
            for path in ["/one", "/two"] {
                fs.create_file(path, 0o644).unwrap().write_at(&[1; LONG * BLOCK], 0).unwrap();
            }
        })
    })
}

/// Synced data is there when all that was not flushed is gone, whoever wrote it to the device.
#[test]
fn two_files_are_made_durable() {
    two_durable_writes("two_files_are_made_durable", options());
}

/// The same, and each thread writes its own nodes.
#[test]
fn two_files_are_made_durable_side_by_side() {
    let volume = VolumeOptions::new().lanes(1).threads(1).sync_writers(SyncWriters::Each);
    two_durable_writes("two_files_are_made_durable_side_by_side", options().volume(volume));
}

fn two_durable_writes(name: &str, options: Options) {
    two_files();
    let setup = move || recorded(two_files(), options.clone());
    model::large(name, 1, setup, |(device, fs)| {
        let durable = |fs: &FileSystem, path: &str, blocks: usize, device: &RecordingDevice| {
            fs.open_file(path).unwrap().write_durable(&vec![2; blocks * BLOCK], 0).unwrap();
            device.position()
        };
        let (other, record) = (Arc::clone(&fs), Arc::clone(&device));
        let thread = model::spawn(move || durable(&other, "/one", LONG, &record));
        let two = durable(&fs, "/two", 1, &device);
        let one = thread.join().unwrap();
        model::judge();
        for (path, blocks, then) in [("/one", LONG, one), ("/two", 1, two)] {
            let small = Small::on(Arc::new(device.log().image_at(then, |_, _| false)));
            assert!(read(&small.fs, path)[..blocks * BLOCK].iter().all(|byte| *byte == 2), "{path}");
        }
    });
}

/// A checkpoint has a truncation whole or not at all: what was cut off does not come back when the file grows.
#[test]
fn a_file_is_cut_beside_a_checkpoint() {
    file();
    model::large(
        "a_file_is_cut_beside_a_checkpoint",
        2,
        || Small::open(file()),
        |small| {
            let fs = Arc::clone(&small.fs);
            let thread = model::spawn(move || fs.open_file("/file").unwrap().set_len(BLOCK as u64).unwrap());
            small.fs.checkpoint().unwrap();
            let image = small.device.snapshot();
            thread.join().unwrap();
            model::judge();
            for small in [Small::on(Arc::new(image)), small.again()] {
                let found = read(&small.fs, "/file");
                assert!(found == [1; 4 * BLOCK] || found == [1; BLOCK], "{} bytes", found.len());
                small.fs.open_file("/file").unwrap().set_len(4 * BLOCK as u64).unwrap();
                let grown = read(&small.fs, "/file");
                assert!(grown[found.len()..].iter().all(|byte| *byte == 0), "what was cut off is back");
            }
        },
    );
}

/// A sync brings back no file with more links than names.
#[test]
fn a_file_gets_a_name_while_it_is_synced() {
    two_files();
    let setup = || {
        let device = Arc::new(RecordingDevice::new(two_files().device().snapshot()));
        let fs = Arc::new(FileSystem::open(device.clone(), options()).unwrap());
        fs.checkpoint().unwrap();
        (device, fs)
    };
    model::large("a_file_gets_a_name_while_it_is_synced", 1, setup, |(device, fs)| {
        let other = Arc::clone(&fs);
        let thread = model::spawn(move || other.link("/one", "/three").unwrap());
        let file = fs.open_file("/one").unwrap();
        file.write_at(&[2], 0).unwrap();
        file.sync_all().unwrap();
        let then = device.position();
        thread.join().unwrap();
        model::judge();
        let small = Small::on(Arc::new(device.log().image_at(then, |_, _| false)));
        let names = 1 + u32::from(small.fs.exists("/three").unwrap());
        assert_eq!((read(&small.fs, "/one")[0], small.fs.metadata("/one").unwrap().links), (2, names));
    });
}
