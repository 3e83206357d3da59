//! Syncs on a full volume, and a crash: what unsynced deletions gave back is taken again when the volume is opened.

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{AllocateFlags, FileSystem, Options, SetMode};
use f2fs_volume::format::FormatOptions;

use crate::fill::{LIMIT, assert_content, content, fill, numbers, open};
use f2fs_test_kit::volumes::{assert_clean, formatted, within};

/// Files that are small at the checkpoint.
const FILES: usize = 24;

/// Names of one of them.
const NAMES: u64 = 1000;

/// A volume with so many blocks left, all others in use at its last checkpoint; `/full` has most of them.
fn filled(left: u64) -> (Arc<MemoryDevice>, FileSystem) {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device);
    for dir in ["/dir", "/deep"] {
        fs.create_dir(dir, 0o755).unwrap();
    }
    for name in 0..FILES {
        fs.create_file(format!("/dir/{name}"), 0o644).unwrap().write_at(&content(name as u64, 5000), 0).unwrap();
    }
    // Six of these fill a block of a directory: a new name takes the place of one that went, or another block.
    for name in 0..NAMES {
        fs.link("/dir/0", format!("/deep/{name:0255}")).unwrap();
    }
    let ballast = fs.create_file("/ballast", 0o644).unwrap();
    ballast.write_at(&vec![7; left as usize * 4096], 0).unwrap();
    numbers(&fill(&fs, "/full", |_| 1 << 20).1);
    let mut last = 0;
    while fs.create_file(format!("/full/last-{last}"), 0o600).is_ok() {
        last += 1;
    }
    assert_eq!(fs.statfs().valid_blocks, fs.statfs().user_blocks);
    ballast.set_len(0).unwrap();
    fs.checkpoint().unwrap();
    (device, fs)
}

/// Makes room that a crash takes back.
fn delete(fs: &FileSystem) {
    for name in 0..40 {
        let _ = fs.remove_file(format!("/full/{name}"));
    }
    for name in 0..NAMES {
        fs.remove_file(format!("/deep/{name:0255}")).unwrap();
    }
}

/// Opens what a crash leaves, for reading and for writing.
#[track_caller]
fn recover(device: &Arc<MemoryDevice>, fs: FileSystem, judge: impl Fn(&FileSystem)) {
    drop(fs);
    let image = Arc::new(device.snapshot());
    let fs = FileSystem::open(image.clone(), Options::new().read_only(true)).unwrap();
    judge(&fs);
    drop(fs);
    let fs = open(&image);
    judge(&fs);
    fs.close().unwrap();
    assert_clean(&image);
}

/// A file gets blocks of its own without a write.
#[test]
fn blocks_are_reserved() {
    within(LIMIT, || {
        for (left, flags) in
            [(0, AllocateFlags::NONE), (300, AllocateFlags::KEEP_SIZE), (499, AllocateFlags::ZERO_RANGE)]
        {
            let (device, fs) = filled(left);
            delete(&fs);
            let file = fs.open_file("/dir/1").unwrap();
            file.allocate(0, 500 * 4096, flags).unwrap();
            file.sync_all().unwrap();
            drop(file);
            recover(&device, fs, |fs| assert!(fs.metadata("/dir/1").unwrap().blocks > 500));
        }
    });
}

/// New files, in directories where names went that a crash brings back; each with a node for its attributes, and blocks
/// far apart, which need nodes that lead to nodes.
#[test]
fn names_and_nodes_are_new() {
    within(LIMIT, || {
        for left in [0, 1, 2, 3, 5, 8, 13, 40] {
            for kind in 0..3 {
                let (device, fs) = filled(left);
                delete(&fs);
                let mut synced = Vec::new();
                for name in 0..40_u64 {
                    let path = match kind {
                        0 => format!("/deep/{:0255}", NAMES + name),
                        _ => format!("/dir/{}", name % (FILES as u64 - 1) + 1),
                    };
                    let file = match kind {
                        0 => fs.create_file(&path, 0o600).unwrap(),
                        _ => fs.open_file(&path).unwrap(),
                    };
                    match kind {
                        0 => {}
                        1 => file.write_at(b"far", (9 << 30) + (name << 23)).map(drop).unwrap(),
                        _ => fs.set_xattr(&path, "user.large", &[name as u8; 3000], SetMode::Any).unwrap(),
                    }
                    let before = fs.stats().checkpoints;
                    file.sync_all().unwrap();
                    synced.push(path);
                    if fs.stats().checkpoints != before {
                        break;
                    }
                    // A crash here, and on with the next.
                    let image = Arc::new(device.snapshot());
                    let there = open(&image);
                    synced.iter().for_each(|path| assert!(there.metadata(path).is_ok(), "{path}, {left} left"));
                }
                recover(&device, fs, |fs| {
                    synced.iter().for_each(|path| assert!(fs.metadata(path).is_ok(), "{path}, {left} left"));
                    if kind != 1 {
                        assert_content(fs, "/dir/9", &content(9, 5000));
                    }
                });
            }
        }
    });
}

/// `cargo test -p f2fs-files --features mutants --test full` runs this.
#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    f2fs_sync::assert_found("recovered::blocks_are_reserved", &["room_forgets_reservations"], "NoSpace { wanted");
    let mutants = ["room_forgets_names", "room_forgets_nodes"];
    f2fs_sync::assert_found("recovered::names_and_nodes_are_new", &mutants, "NoSpace { wanted");
}
