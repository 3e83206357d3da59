//! The tree scripts through the library: the volume is sound, and a remount shows the same tree as a host directory
//! does.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use f2fs_device::MemoryDevice;
use f2fs_device_test::RecordingDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_sync::Arc;
use f2fs_workload::manifest::{EntryKind, Manifest, walk_host, walk_volume};
use f2fs_workload::tree::{
    HostTree, NodeKind, Op, Scale, VolumeTree, apply_all, changes, everything, random_base, random_syncs,
};

fn open(image: &Path) -> (Arc<MemoryDevice>, FileSystem) {
    let device = Arc::new(MemoryDevice::load(image).unwrap());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    (device, fs)
}

/// Runs a script on an image, which must be clean afterwards, and returns what a remount shows.
fn run(image: &Path, script: &[Op]) -> Manifest {
    let (device, fs) = open(image);
    apply_all(&mut VolumeTree::new(&fs), script).unwrap();
    fs.close().unwrap();
    drop(fs);
    device.save(image).unwrap();
    f2fs_oracle::assert_clean(image);
    walk_volume(&open(image).1, |_| {}).unwrap()
}

#[test]
fn every_kind_of_file_and_every_change_leave_a_clean_volume() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("tree.img");
    f2fs_oracle::mkfs_sized(&image, 192 << 20, &["-O", "extra_attr,inode_checksum,sb_checksum,inode_crtime"]).unwrap();
    let made = run(&image, &everything(Scale::SMALL));
    for kind in [
        EntryKind::Regular,
        EntryKind::Directory,
        EntryKind::Symlink,
        EntryKind::BlockDevice,
        EntryKind::CharDevice,
        EntryKind::Fifo,
        EntryKind::Socket,
    ] {
        assert!(made.entries().iter().any(|entry| entry.kind == kind), "no {kind:?}");
    }
    let changed = run(&image, &changes(Scale::SMALL));
    assert_ne!(made, changed);
}

#[test]
fn a_host_directory_and_a_volume_show_the_same_tree() {
    // Owners, devices and most attributes need privileges on the host.
    let ordinary = |op: &&Op| match op {
        Op::SetXattr { .. } | Op::RemoveXattr { .. } | Op::Chown { .. } => false,
        Op::Mknod { kind, .. } => matches!(kind, NodeKind::Fifo | NodeKind::Socket),
        Op::Unlink { path } => path != b"/special/block",
        _ => true,
    };
    let make: Vec<Op> = everything(Scale::SMALL).iter().filter(ordinary).cloned().collect();
    let change: Vec<Op> = changes(Scale::SMALL).iter().filter(ordinary).cloned().collect();
    let dir = tempfile::tempdir().unwrap();
    let (image, host) = (dir.path().join("tree.img"), dir.path().join("host"));
    f2fs_oracle::mkfs_sized(&image, 192 << 20, &[]).unwrap();
    std::fs::create_dir(&host).unwrap();
    for script in [make, change] {
        let volume = run(&image, &script);
        apply_all(&mut HostTree::new(&host), &script).unwrap();
        assert_eq!(lines(&walk_host(&host).unwrap()), lines(&volume));
    }
}

/// All that does not depend on the host: its umask, its users, its way to count a directory's links.
fn lines(manifest: &Manifest) -> Vec<String> {
    let comparable = manifest.entries().iter().map(|entry| {
        let mut entry = entry.clone();
        (entry.mode, entry.uid, entry.gid) = (0, 0, 0);
        entry.xattrs.clear();
        if entry.kind == EntryKind::Directory {
            entry.nlink = 0;
        }
        entry.to_string()
    });
    comparable.collect()
}

#[test]
fn random_changes_with_syncs_are_recovered_after_the_process_ends() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("random.img");
    f2fs_oracle::mkfs_sized(&image, 128 << 20, &[]).unwrap();
    for seed in 0..3 {
        let volume = MemoryDevice::load(&image).unwrap();
        let base = Arc::new(volume);
        let fs = FileSystem::open(base.clone(), Options::new()).unwrap();
        apply_all(&mut VolumeTree::new(&fs), &random_base(seed)).unwrap();
        fs.close().unwrap();
        drop(fs);
        let device = Arc::new(RecordingDevice::new(base.snapshot()));
        let script = random_syncs(seed, 300);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let before = walk_volume(&fs, |_| {}).unwrap();
        apply_all(&mut VolumeTree::new(&fs), &script).unwrap();
        let syncs = script.iter().filter(|op| matches!(op, Op::Fsync { .. } | Op::WriteDurable { .. })).count();
        assert!((30..150).contains(&syncs), "{syncs} syncs among {}", script.len());
        // Writes that were not flushed are lost.
        let log = device.log();
        let left = Arc::new(log.image_at(log.events().len(), |_, _| false));
        let reader = FileSystem::open(left.clone(), Options::new().read_only(true)).unwrap();
        let shown = walk_volume(&reader, |_| {}).unwrap();
        assert_ne!(before, shown);
        drop(reader);
        let writer = FileSystem::open(left.clone(), Options::new()).unwrap();
        assert_eq!(walk_volume(&writer, |_| {}).unwrap(), shown);
        writer.close().unwrap();
        drop(writer);
        let recovered = dir.path().join("recovered.img");
        left.save(&recovered).unwrap();
        f2fs_oracle::assert_clean(&recovered);
    }
}
