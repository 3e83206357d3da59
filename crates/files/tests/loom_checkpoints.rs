//! Models of checkpoints beside operations: a freeze keeps operations out, and what was synced meanwhile is there
//! whichever checkpoint a crash leads to. And of syncs with their data into a journal, beside writes.
//!
//! ```text
//! mutant: checkpoint_freezes_behind_the_gate, killed by: a_file_is_linked_beside_a_checkpoint
//! mutant: sync_waits_for_a_frozen_checkpoint, killed by: a_file_is_synced_beside_a_checkpoint
//! mutant: journal_data_collected_early, killed by: a_file_is_synced_with_its_data_beside_a_write
//! mutant: journal_data_forgotten_early, killed by: a_file_is_synced_with_its_data_beside_a_write
//! mutant: journal_names_seal_data, killed by: a_file_is_synced_with_its_new_name_beside_a_write
//! ```
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod loom_common;

use std::sync::OnceLock;

use f2fs_device_test::RecordingDevice;
use f2fs_device_test::pmem::SimulatedRegion;
use f2fs_files::{FileSystem, JournalMode, JournalOptions, Options, RenameMode, create_journal};
use f2fs_journal::RegionMedium;
use f2fs_sync::{Arc, model};
use f2fs_volume::models::Image;
use loom_common::{BLOCK, LateDevice, Small, image, names, options, read};

/// `/file` with two blocks.
fn file() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        image(|fs| {
            fs.create_file("/file", 0o644).unwrap().write_at(&[1; 2 * BLOCK], 0).unwrap();
        })
    })
}

/// A checkpoint has a new name of a file with the link that it is, or neither.
#[test]
fn a_file_is_linked_beside_a_checkpoint() {
    file();
    model::large(
        "a_file_is_linked_beside_a_checkpoint",
        1,
        || Small::open(file()),
        |small| {
            let fs = Arc::clone(&small.fs);
            let thread = model::spawn(move || fs.link("/file", "/new").unwrap());
            small.fs.checkpoint().unwrap();
            let image = small.device.snapshot();
            thread.join().unwrap();
            model::judge();
            let crashed = Small::on(Arc::new(image));
            let links = crashed.fs.metadata("/file").unwrap().links as usize;
            assert_eq!(links, names(&crashed.fs, "/").len(), "links and names");
        },
    );
}

/// Whichever checkpoint a crash leads to, a file that was synced meanwhile is as it was synced.
#[test]
fn a_file_is_synced_beside_a_checkpoint() {
    file();
    let setup = || {
        let small = Small::open(file());
        // From the first checkpoint on, syncs need none.
        small.fs.checkpoint().unwrap();
        small
    };
    model::large("a_file_is_synced_beside_a_checkpoint", 1, setup, |small| {
        let fs = Arc::clone(&small.fs);
        let device = Arc::clone(&small.device);
        let thread = model::spawn(move || {
            let file = fs.open_file("/file").unwrap();
            file.write_at(&[2; BLOCK], 0).unwrap();
            file.sync_all().unwrap();
            device.snapshot()
        });
        small.fs.checkpoint().unwrap();
        let then = thread.join().unwrap();
        let now = small.device.snapshot();
        model::judge();
        for image in [then, now] {
            let crashed = Small::on(Arc::new(image));
            assert!(read(&crashed.fs, "/file")[..BLOCK] == [2; BLOCK], "what was synced is not there");
        }
    });
}

type Memory = Arc<RegionMedium<SimulatedRegion>>;

fn with_data_in(journal: &Memory) -> Options {
    options().journal(JournalOptions::new(journal.clone(), JournalMode::Journal))
}

/// A volume whose device loses all unflushed writes, and a journal for its syncs with their data.
struct Journaled {
    device: Arc<RecordingDevice>,
    journal: Memory,
    fs: Arc<FileSystem>,
}

/// A sync beside a write of the same block leaves the bytes from before or those that came, and no bytes of a place
/// that was not written: the record has the data of the places that its nodes name.
#[test]
fn a_file_is_synced_with_its_data_beside_a_write() {
    file();
    let setup = || {
        let device = Arc::new(RecordingDevice::new(file().device().snapshot()));
        let journal = Arc::new(RegionMedium::new(SimulatedRegion::new(1 << 20)));
        create_journal(device.clone(), journal.clone(), false).unwrap();
        let late = Arc::new(LateDevice::new(device.clone()));
        let fs = Arc::new(FileSystem::open(late, with_data_in(&journal)).unwrap());
        fs.checkpoint().unwrap();
        fs.open_file("/file").unwrap().write_at(&[2; BLOCK], 0).unwrap();
        Journaled { device, journal, fs }
    };
    model::large("a_file_is_synced_with_its_data_beside_a_write", 1, setup, |all| {
        let fs = Arc::clone(&all.fs);
        let writer = model::spawn(move || fs.open_file("/file").unwrap().write_at(&[3; BLOCK], 0).unwrap());
        all.fs.open_file("/file").unwrap().sync_data().unwrap();
        let (then, cut) = (all.device.position(), all.journal.region().cut());
        writer.join().unwrap();
        model::judge();
        drop(all.fs);
        let image = Arc::new(all.device.log().image_at(then, |_, _| false));
        let left = Arc::new(RegionMedium::new(SimulatedRegion::on(cut.lost().media())));
        let found = read(&FileSystem::open(image, with_data_in(&left)).unwrap(), "/file");
        let first = found[0];
        assert!(first == 2 || first == 3, "synced, and {first} is there");
        assert!(found[..BLOCK].iter().all(|byte| *byte == first), "of two writes");
    });
}

/// A record of names that flushes the device beside a write of the same block: the flush writes the data that the
/// record's nodes name, though the write displaces it.
#[test]
fn a_file_is_synced_with_its_new_name_beside_a_write() {
    file();
    let setup = || {
        let device = Arc::new(RecordingDevice::new(file().device().snapshot()));
        // So small that a record takes one block of data.
        let journal = Arc::new(RegionMedium::new(SimulatedRegion::new(112 << 10)));
        create_journal(device.clone(), journal.clone(), false).unwrap();
        let fs = Arc::new(FileSystem::open(device.clone(), with_data_in(&journal)).unwrap());
        fs.checkpoint().unwrap();
        let file = fs.open_file("/file").unwrap();
        file.write_at(&[2; BLOCK], 0).unwrap();
        file.write_at(&[2; BLOCK], BLOCK as u64).unwrap();
        fs.rename("/file", "/renamed", RenameMode::Replace).unwrap();
        Journaled { device, journal, fs }
    };
    model::large("a_file_is_synced_with_its_new_name_beside_a_write", 1, setup, |all| {
        let fs = Arc::clone(&all.fs);
        let writer = model::spawn(move || fs.open_file("/renamed").unwrap().write_at(&[3; BLOCK], 0).unwrap());
        all.fs.open_file("/renamed").unwrap().sync_data().unwrap();
        let (then, cut) = (all.device.position(), all.journal.region().cut());
        writer.join().unwrap();
        model::judge();
        assert_eq!(all.fs.statfs().written.name_records, 1);
        drop(all.fs);
        let image = Arc::new(all.device.log().image_at(then, |_, _| false));
        let left = Arc::new(RegionMedium::new(SimulatedRegion::on(cut.lost().media())));
        let found = read(&FileSystem::open(image, with_data_in(&left)).unwrap(), "/renamed");
        assert!(found[0] == 2 || found[0] == 3, "synced, and {} is there", found[0]);
        assert!(found[BLOCK..].iter().all(|byte| *byte == 2));
    });
}
