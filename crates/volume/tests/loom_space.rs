//! Models of the counts of a volume: what a checkpoint writes of them while somebody asks for room, and what syncs
//! promise side by side.
//!
//! ```text
//! mutant: room_taken_to_look, killed by: a_checkpoint_counts_no_block_that_somebody_asks_for
//! mutant: room_counted_without_fence, killed by: two_syncs_do_not_get_the_last_room
//! ```
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::OnceLock;

use f2fs_device::MemoryDevice;
use f2fs_sync::{Arc, model};
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::models::{Image, Promises};
use f2fs_volume::{Reason, Volume, VolumeOptions};

fn open(device: Arc<MemoryDevice>) -> Arc<Volume> {
    Arc::new(Volume::open(device, &VolumeOptions::new().lanes(1).threads(1)).unwrap())
}

/// A volume with nothing on it but the root.
fn empty() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        Image::new(|device| {
            format(&**device, &FormatOptions::default()).unwrap();
        })
    })
}

/// Whoever asks for room is in no operation, so that a checkpoint does not wait for the answer.
#[test]
fn a_checkpoint_counts_no_block_that_somebody_asks_for() {
    let image = empty();
    let setup = || {
        let device = image.device();
        (device.clone(), open(device))
    };
    model::large("a_checkpoint_counts_no_block_that_somebody_asks_for", 2, setup, |(device, volume)| {
        let other = Arc::clone(&volume);
        let thread = model::spawn(move || assert!(other.data().has_room(1000)));
        volume.checkpoints().write(Reason::Sync).unwrap();
        thread.join().unwrap();
        model::judge();
        let used = volume.stat().valid_blocks;
        drop(volume);
        assert_eq!(open(device).stat().valid_blocks, used, "a checkpoint counts blocks that nobody has");
    });
}

/// Each may find that there is none because of the other, and counts nothing then.
#[test]
fn two_syncs_do_not_get_the_last_room() {
    let setup = || Arc::new(Promises::new(3));
    model::large("two_syncs_do_not_get_the_last_room", 3, setup, |promises| {
        let other = Arc::clone(&promises);
        let thread = model::spawn(move || other.sync(2));
        let here = promises.sync(2);
        let there = thread.join().unwrap();
        model::judge();
        assert!(!(here && there), "there is room for three blocks, and four were promised");
        assert_eq!(promises.sync(2), !here && !there, "what was refused is not counted");
        assert!(promises.sync(1), "two of three blocks are promised");
    });
}
