//! Files that were synced after the last checkpoint: a repair begins at that one.

use super::*;

/// Files that were synced behind a checkpoint, of a volume that nobody closed.
fn sync_and_stop(place: &Place) {
    let device = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
    let fs = FileSystem::open(device, Options::new()).unwrap();
    // The first sync after an opening is a checkpoint.
    fs.checkpoint().unwrap();
    for name in ["/kept", "/new"] {
        let file = fs.create_file(name, 0o600).or_else(|_| fs.open_file(name)).unwrap();
        file.write_at(b"synced", 0).unwrap();
        file.sync_all().unwrap();
    }
}

#[test]
fn a_repair_brings_back_what_was_synced_since_the_checkpoint() {
    let place = Place::new();
    sync_and_stop(&place);
    let synced = place.ok(&["cat"], &["/new"]);
    assert_eq!(synced, "synced");
    // The copy of the superblock that nobody reads.
    let mut bytes = place.bytes();
    bytes[BLOCK + 1024 + 200] ^= 0xff;
    fs::write(&place.image, bytes).unwrap();
    let told: Value = serde_json::from_str(&place.code(&["check", "--repair", "--json"], &[], 1).0).unwrap();
    assert_eq!((&told["brought_back"], &told["clean"]), (&Value::from(2), &Value::from(true)));
    assert_eq!(place.ok(&["cat"], &["/new"]), "synced");
    assert!(place.ok(&["cat"], &["/kept"]).starts_with("synced"));
    place.sound();
}

#[test]
fn a_repair_does_not_give_up_what_was_synced_without_being_told() {
    let place = Place::new();
    sync_and_stop(&place);
    let ino = place.ino("/docs/small");
    place.edit_inode(ino, |node| node.inode_mut().i_links = 7.into());
    let before = place.bytes();
    let (_, err) = place.code(&["check", "--repair"], &[], 8);
    assert!(err.contains("would lose 2 files") && err.contains("--no-recovery"), "{err}");
    assert!(place.bytes() == before, "it was changed");
    let backup = place.path("backup");
    place.code(&["check", "--repair", "--no-recovery", "--backup", backup.to_str().unwrap()], &[], 1);
    place.code(&["cat"], &["/new"], 1);
    assert_eq!(place.ok(&["cat"], &["/kept"]).len(), 5000);
    place.sound();
    // It is all there again in front of the repair.
    place.ok(&["check", "--undo", backup.to_str().unwrap()], &[]);
    assert!(place.bytes() == before);
    assert_eq!(place.ok(&["cat"], &["/new"]), "synced");
}

#[test]
fn what_was_synced_is_given_up_in_a_sound_volume_too() {
    let place = Place::new();
    sync_and_stop(&place);
    let before = place.bytes();
    // Nothing to repair, and nothing was said of giving up.
    place.code(&["check", "--repair"], &[], 0);
    assert!(place.bytes() == before, "it was changed");
    let backup = place.path("backup");
    let give_up = ["check", "--repair", "--no-recovery", "--backup", backup.to_str().unwrap()];
    let (out, _) = place.code(&give_up, &[], 1);
    assert!(out.contains("a new checkpoint, without what was synced after the last one"), "{out}");
    place.code(&["cat"], &["/new"], 1);
    assert_eq!(place.ok(&["cat"], &["/kept"]).len(), 5000);
    place.sound();
    // Once is enough.
    place.code(&["check", "--repair", "--no-recovery"], &[], 0);
    place.ok(&["check", "--undo", backup.to_str().unwrap()], &[]);
    assert!(place.bytes() == before);
    assert_eq!(place.ok(&["cat"], &["/new"]), "synced");
}

#[test]
fn a_repair_is_not_undone_behind_files_that_were_synced_since() {
    let place = Place::new();
    harm(&place);
    place.code(&["check", "--repair"], &[], 1);
    let backup = place.path("image.f2fs-backup");
    let undo = ["check", "--undo", backup.to_str().unwrap()];
    // Nodes of a sync, and no checkpoint.
    let device: Arc<dyn BlockDevice> = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
    let volume = Volume::open(device.clone(), &VolumeOptions::new().read_only(true)).unwrap();
    let log = volume.last_checkpoint().log(LogType::WarmNode);
    let block = u64::from(volume.geometry().block_at(log.segment, log.next_offset.into()).0);
    device.write(block, AlignedBuf::from_bytes(&[1; BLOCK])).unwrap();
    drop((volume, device));
    let after = place.bytes();
    let (_, complaint) = place.code(&undo, &[], 8);
    assert!(complaint.contains(&format!("block {block} was changed since the repair")), "{complaint}");
    assert!(place.bytes() == after);
}
