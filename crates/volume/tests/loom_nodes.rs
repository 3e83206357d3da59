//! Models of nodes: found, freed and dropped from memory beside each other, on a whole volume of 64 MiB whose tables
//! have two shards each.
//!
//! ```text
//! mutant: node_stays_listed, killed by: a_node_changes_while_others_leave_memory
//! mutant: node_read_and_freed_stays, killed by: a_node_is_read_while_it_is_freed
//! ```
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use f2fs_device::MemoryDevice;
use f2fs_format::Nid;
use f2fs_sync::{Arc, model};
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::models::Image;
use f2fs_volume::{NewNode, Reason, Volume, VolumeOptions};

fn open(device: Arc<MemoryDevice>) -> Arc<Volume> {
    let options = VolumeOptions::new().lanes(1).threads(1).node_cache(NonZeroUsize::MIN);
    Arc::new(Volume::open(device, &options).unwrap())
}

const NODE: NewNode = NewNode { ino: None, offset: 0, directory: false };

/// A volume with nodes beside the root, which are inodes with nothing in them.
fn nodes() -> &'static (Image, Vec<Nid>) {
    static IMAGE: OnceLock<(Image, Vec<Nid>)> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let image = Image::new(move |device| {
            format(&**device, &FormatOptions::default()).unwrap();
            let volume = open(device.clone());
            let made: Vec<Nid> = {
                let op = volume.begin().unwrap();
                (0..2).map(|_| volume.nodes().create(&op, NODE).unwrap().nid()).collect()
            };
            sender.send(made).unwrap();
            volume.close().unwrap();
        });
        (image, receiver.recv().unwrap())
    })
}

fn checkpoint(volume: &Volume) {
    volume.checkpoints().write(Reason::Sync).unwrap();
}

/// Frees a node that is there.
fn free(volume: &Volume, nid: Nid) {
    let op = volume.begin().unwrap();
    let node = volume.nodes().get(nid).unwrap();
    volume.nodes().remove(&op, &node).unwrap();
}

/// A node that was read and is gone is not found by those who ask for it later.
#[test]
fn a_node_is_read_while_it_is_freed() {
    let (image, nids) = nodes();
    model::large(
        "a_node_is_read_while_it_is_freed",
        2,
        || open(image.device()),
        |volume| {
            let nid = nids[0];
            let other = Arc::clone(&volume);
            let thread = model::spawn(move || free(&other, nid));
            if let Ok(node) = volume.nodes().get(nid) {
                assert_eq!(node.nid(), nid);
            }
            thread.join().unwrap();
            model::judge();
            assert!(volume.nodes().get(nid).is_err(), "a node that was freed is found");
        },
    );
}

/// Two who miss the same node have the same page afterwards: what one of them changes the other one sees.
#[test]
fn a_node_is_read_by_two() {
    let (image, nids) = nodes();
    model::large(
        "a_node_is_read_by_two",
        2,
        || open(image.device()),
        |volume| {
            let nid = nids[0];
            let other = Arc::clone(&volume);
            let change = move |volume: &Volume| {
                let op = volume.begin().unwrap();
                let node = volume.nodes().get(nid).unwrap();
                let mut block = node.write(&op);
                let links = block.inode().i_links.get();
                block.inode_mut().i_links = (links + 1).into();
            };
            let thread = model::spawn(move || change(&other));
            change(&volume);
            thread.join().unwrap();
            model::judge();
            assert_eq!(volume.nodes().get(nid).unwrap().read().inode().i_links.get(), 2);
            volume.close().unwrap();
        },
    );
}

/// A node that is changed stays in memory until a checkpoint has it, however crowded its shard is; and so the next
/// time.
#[test]
fn a_node_changes_while_others_leave_memory() {
    let (image, nids) = nodes();
    let nid = nids[0];
    let setup = || {
        let device = image.device();
        (device.clone(), open(device))
    };
    let set = move |volume: &Volume, links: u32| {
        let op = volume.begin().unwrap();
        let node = volume.nodes().get(nid).unwrap();
        node.write(&op).inode_mut().i_links = links.into();
    };
    model::large("a_node_changes_while_others_leave_memory", 2, setup, move |(device, volume)| {
        let other = Arc::clone(&volume);
        let thread = model::spawn(move || set(&other, 7));
        {
            // More than the shard keeps.
            let op = volume.begin().unwrap();
            let made: Vec<_> = (0..8).map(|_| volume.nodes().create(&op, NODE).unwrap()).collect();
            drop(made);
        }
        checkpoint(&volume);
        thread.join().unwrap();
        model::judge();
        assert_eq!(volume.nodes().get(nid).unwrap().read().inode().i_links.get(), 7);
        checkpoint(&volume);
        set(&volume, 8);
        checkpoint(&volume);
        set(&volume, 9);
        volume.close().unwrap();
        drop(volume);
        assert_eq!(open(device).nodes().get(nid).unwrap().read().inode().i_links.get(), 9);
    });
}
