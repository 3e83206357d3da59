//! Files that were synced after the last checkpoint: a repair begins at that one.

use f2fs::format::Nid;
use f2fs::format::inode::inline;
use f2fs_test_kit::entries::Tables;

use super::*;

/// Files that were synced behind a checkpoint, of a volume that nobody closed.
fn sync_and_stop(place: &Place) {
    sync_these_and_stop(place, &["/kept", "/new"]);
}

fn sync_these_and_stop(place: &Place, names: &[&str]) {
    let device = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
    let fs = FileSystem::open(device, Options::new()).unwrap();
    // The first sync after an opening is a checkpoint.
    fs.checkpoint().unwrap();
    for name in names {
        let file = fs.create_file(name, 0o600).or_else(|_| fs.open_file(name)).unwrap();
        file.write_at(b"synced", 0).unwrap();
        file.sync_all().unwrap();
    }
}

/// A file loses a block, and no checkpoint counts so many: there has to be another one.
fn lose_block(place: &Place) {
    let ino = place.ino("/docs/large");
    place.edit_inode(ino, |node| _ = node.set_address(5, BlockAddr::NULL, Features::EXTRA_ATTR));
}

/// A repair that nobody told to give up anything: it is refused with these words, and nothing is written.
fn assert_refused(place: &Place, said: [&str; 2]) {
    let before = place.bytes();
    let (_, err) = place.code(&["check", "--repair"], &[], 8);
    assert!(said.iter().all(|said| err.contains(said)), "{err}");
    assert!(place.bytes() == before, "it was changed");
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
    lose_block(&place);
    let before = place.bytes();
    assert_refused(&place, ["would lose 2 files", "--no-recovery"]);
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

/// One bit of the directory that has the names: nothing opens the volume, until it is put back.
#[test]
fn a_repair_keeps_what_damage_keeps_from_coming_back() {
    let place = Place::new();
    sync_these_and_stop(&place, &["/docs/new"]);
    let directory = place.ino("/docs");
    place.edit_inode(directory, |node| node.inode_mut().i_mtime = (node.inode().i_mtime.get() ^ 1).into());
    place.code(&["check"], &[], 4);
    place.code(&["cat"], &["/docs/new"], 1);
    let (out, _) = place.code(&["check", "--repair"], &[], 1);
    assert!(out.contains("\n1 files synced after the last checkpoint are kept"), "{out}");
    place.sound();
    assert_eq!(place.ok(&["cat"], &["/docs/new"]), "synced");
    place.ok(&["mkdir"], &["/more"]);
    assert_eq!(place.ok(&["cat", "--no-recovery"], &["/docs/new"]), "synced");
    place.sound();
}

/// One bit each: of the NAT entry of a file that was synced, and of the SIT's map where it was synced to.
#[test]
fn a_repair_of_flipped_bits_of_tables_keeps_what_was_synced() {
    let place = Place::new();
    sync_and_stop(&place);
    let whole = place.bytes();
    let kept = Nid(place.ino("/kept"));
    let device: Arc<dyn BlockDevice> = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
    let tables = Tables::read(&*device);
    drop(device);
    let (segment, offset) = tables.geometry.locate(tables.log(LogType::WarmNode)).unwrap();
    let of_map = 16 + (offset / 8 * 8 + 7 - offset % 8) as usize;
    // The address of an entry of the NAT begins behind its version and its inode.
    for (at, bit) in [(tables.nat(kept), 40 + 3), (tables.nat(kept), 8), (tables.sit(segment), of_map)] {
        fs::write(&place.image, &whole).unwrap();
        let device: Arc<dyn BlockDevice> = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
        at.flip(&*device, bit);
        drop(device);
        place.code(&["check"], &[], 4);
        let backup = place.path("backup");
        let repair = ["check", "--repair", "--json", "--backup", backup.to_str().unwrap()];
        let told: Value = serde_json::from_str(&place.code(&repair, &[], 1).0).unwrap();
        assert_eq!((&told["kept"], &told["blocks"], &told["clean"]), (&2.into(), &1.into(), &true.into()), "{told}");
        assert!(place.bytes() == whole);
        place.sound();
        assert_eq!(place.ok(&["cat"], &["/new"]), "synced");
        place.ok(&["check", "--undo", backup.to_str().unwrap()], &[]);
        place.code(&["check"], &[], 4);
        fs::remove_file(&backup).unwrap();
        place.code(&repair, &[], 1);
        // It is opened for writing.
        place.ok(&["mkdir"], &["/more"]);
        assert_eq!(place.ok(&["cat", "--no-recovery"], &["/new"]), "synced");
        assert!(place.ok(&["cat"], &["/kept"]).starts_with("synced"));
        place.sound();
        place.code(&["check", "--undo", backup.to_str().unwrap()], &[], 8);
        fs::remove_file(&backup).unwrap();
    }
}

/// The root is nowhere, so that nothing can be opened.
#[test]
fn a_repair_does_not_give_up_what_nobody_knows() {
    let place = Place::new();
    sync_and_stop(&place);
    lose_block(&place);
    let device: Arc<dyn BlockDevice> = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
    let geometry = Volume::open(device.clone(), &VolumeOptions::new().read_only(true)).unwrap().geometry().clone();
    for second in [false, true] {
        device.write(u64::from(geometry.nat_block(0, second).0), AlignedBuf::from_bytes(&[0xff; BLOCK])).unwrap();
    }
    device.flush().unwrap();
    drop(device);
    assert_refused(&place, ["nobody knows how much", "--no-recovery gives it up"]);
    place.code(&["check", "--repair", "--no-recovery"], &[], 1);
    assert_eq!(place.ok(&["cat"], &["/kept"]).len(), 5000);
    place.sound();
}

/// The volume is sound as its checkpoint left it, and nothing opens it.
#[test]
fn what_cannot_be_brought_back_is_found_and_not_given_up() {
    let place = Place::new();
    sync_and_stop(&place);
    let (new, directory) = (place.ino("/new"), place.ino("/docs"));
    place.edit_inode(new, |node| node.inode_mut().i_inline |= inline::DENTRY);
    place.code(&["ls"], &["/"], 1);
    let (out, _) = place.code(&["check"], &[], 4);
    assert!(out.starts_with("synced after the checkpoint: ") && out.contains("cannot be recovered"), "{out}");
    let told: Value = serde_json::from_str(&place.code(&["check", "--json"], &[], 4).0).unwrap();
    assert!(told["synced"]["trouble"].as_str().unwrap().contains("cannot be recovered"), "{told}");
    assert_refused(&place, ["cannot be recovered", "--no-recovery gives up"]);
    // Nor where the rest could be mended in place.
    place.edit_inode(directory, |node| node.inode_mut().i_mtime = (node.inode().i_mtime.get() ^ 1).into());
    assert_refused(&place, ["cannot be recovered", "--no-recovery gives up"]);
    place.code(&["check", "--repair", "--no-recovery"], &[], 1);
    place.sound();
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
