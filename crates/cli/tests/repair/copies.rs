//! Superblocks and checkpoint packs stand twice: one of the two is bad.

use f2fs::format::checkpoint::CheckpointBlock;

use super::*;

/// A crash may leave one of two copies torn: it is told, by whose words nobody takes the volume for broken.
#[test]
fn a_torn_copy_does_no_harm_and_is_said_to_do_none() {
    let place = Place::new();
    let file = fs::File::options().write(true).open(&place.image).unwrap();
    file.write_all_at(&[0; BLOCK], 0).unwrap();
    let (found, said) = place.code(&["check"], &[], 0);
    assert_eq!(lines(&found, "superblock copy: superblock 1"), 1, "{found}");
    assert!(said.contains("the volume is sound: what was found does no harm"), "{said}");
    let (told, said) = place.code(&["check", "--json"], &[], 0);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["clean"], &told["consistent"]), (&false.into(), &true.into()));
    assert_eq!(said, "");
    place.code(&["check", "--repair"], &[], 1);
    place.sound();
    let (_, said) = place.code(&["check"], &[], 0);
    assert_eq!(said, "");
}

impl Place {
    /// Makes `/newest`, and a checkpoint that the volume is not closed behind.
    fn make_newest(&self) {
        let device = UringDevice::open(&self.image, UringOptions::new()).unwrap();
        let fs = FileSystem::open(Arc::new(device), Options::new()).unwrap();
        fs.create_dir("/newest", 0o755).unwrap();
        fs.checkpoint().unwrap();
    }

    /// The first block of the newest pack, and of the other one.
    fn packs(&self) -> [usize; 2] {
        let bytes = self.bytes();
        let version = |block: usize| {
            let raw = bytes[block * BLOCK..][..BLOCK].first_chunk().unwrap();
            CheckpointBlock::read(raw).header.checkpoint_ver.get()
        };
        let [first, second] = [512, 1024];
        if version(first) > version(second) { [first, second] } else { [second, first] }
    }

    fn write(&self, block: usize, bytes: &[u8]) {
        let file = fs::File::options().write(true).open(&self.image).unwrap();
        file.write_all_at(bytes, (block * BLOCK) as u64).unwrap();
    }
}

/// The newest checkpoint lost its first block: the older one is shown, nothing builds on it, and a repair brings the
/// newer one back.
#[test]
fn a_checkpoint_without_its_first_block_is_brought_back() {
    let place = Place::new();
    place.make_newest();
    let whole = place.bytes();
    let [newest, _] = place.packs();
    place.write(newest, &[0; BLOCK]);
    let damaged = place.bytes();
    let (found, _) = place.code(&["check"], &[], 4);
    assert_eq!(lines(&found, "lost checkpoint"), 1, "{found}");
    let (names, said) = place.code(&["ls"], &["/"], 0);
    assert!(!names.contains("newest") && said.contains("`f2fs check --repair` brings it back"), "{names}{said}");
    let (_, said) = place.code(&["rm", "-r"], &["/docs"], 1);
    assert!(said.contains("lost its first block") && said.contains("`f2fs check --repair`"), "{said}");
    assert!(place.bytes() == damaged);

    let (told, _) = place.code(&["check", "--repair"], &[], 1);
    assert_eq!((lines(&told, "pack "), lines(&told, "1 blocks changed")), (1, 1), "{told}");
    assert!(place.bytes() == whole);
    place.sound();
    place.code(&["check", "--undo", place.path("image.f2fs-backup").to_str().unwrap()], &[], 0);
    assert!(place.bytes() == damaged);
}

/// If the volume is damaged at the newer checkpoint, and whole at the older one, that one is repaired.
#[test]
fn a_checkpoint_without_its_first_block_is_given_up_if_more_of_it_is_bad() {
    let place = Place::new();
    let before = place.ok(&["ls", "-R"], &["/"]);
    place.make_newest();
    let [newest, _] = place.packs();
    place.write(newest, &[0; BLOCK]);
    // Its summaries, too: the journals of the tables are in them.
    place.write(newest + 1, &[0xFF; BLOCK]);
    let (told, _) = place.code(&["check", "--repair"], &[], 1);
    assert!(told.contains("is given up: the volume is damaged with it, and whole without"), "{told}");
    place.sound();
    assert_eq!(place.ok(&["ls", "-R"], &["/"]), before);
}
