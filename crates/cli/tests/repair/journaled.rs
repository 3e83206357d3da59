//! Files that were synced into a journal: a repair brings them back, and the damage of one costs that one alone.

use f2fs::format::Nid;
use f2fs::format::inode::mode;
use f2fs::journal::{Create, Journal, RegionMedium, SharedMedium};
use f2fs::pmem::{MappedRegion, OpenOptions as PmemOptions};
use f2fs::{JournalMode, JournalOptions};
use f2fs_test_kit::entries::Tables;

use super::*;

impl Place {
    fn journal(&self) -> PathBuf {
        self.path("journal")
    }

    fn medium(&self) -> SharedMedium {
        let region = MappedRegion::open(self.journal(), PmemOptions::new()).unwrap();
        Arc::new(RegionMedium::new(region))
    }

    /// Runs `check --repair --journal --json`, which must end with this code.
    #[track_caller]
    fn repair(&self, code: i32) -> Value {
        let journal = self.journal();
        let repair = ["check", "--repair", "--json", "--journal", journal.to_str().unwrap()];
        let (out, err) = self.code(&repair, &[], code);
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}\n{err}"))
    }

    /// The same of a repair that is refused with these words: neither the volume nor the journal is changed.
    #[track_caller]
    fn refused(&self, words: &[&str]) {
        let (image, records) = (self.bytes(), fs::read(self.journal()).unwrap());
        let journal = self.journal();
        let (_, err) = self.code(&["check", "--repair", "--journal", journal.to_str().unwrap()], &[], 8);
        assert!(words.iter().all(|words| err.contains(words)), "{err}");
        assert!(self.bytes() == image && fs::read(self.journal()).unwrap() == records, "something was written");
    }
}

/// A volume with a journal that some old files and a new one were synced into, left as by a kill.
fn left() -> Place {
    let place = Place::new();
    let journal = place.journal();
    place.ok(&["journal", "create", "--size", "1M", journal.to_str().unwrap()], &[]);
    // One lane, whichever processor syncs.
    let owner = Journal::open(place.medium(), None).unwrap().owner();
    drop(Journal::create(place.medium(), &Create::new(owner).lanes(1).force(true)).unwrap());
    let device: Arc<dyn BlockDevice> = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
    let options = Options::new().journal(JournalOptions::new(place.medium(), JournalMode::Ordered));
    let fs = FileSystem::open(device, options).unwrap();
    for path in ["/docs/small", "/docs/large", "/docs/new", "/kept"] {
        let file = fs.open_file(path).or_else(|_| fs.create_file(path, 0o600)).unwrap();
        file.write_at(format!("synced {path}").as_bytes(), 0).unwrap();
        file.sync_all().unwrap();
    }
    // Not closed.
    place
}

#[track_caller]
fn assert_synced(place: &Place, paths: &[&str]) {
    for path in paths {
        let read = place.run(&["cat"], &[path]);
        assert!(read.status.success() && read.stdout.starts_with(format!("synced {path}").as_bytes()), "{path}");
    }
}

/// What is done to a volume, and its name.
type Damage = (&'static str, fn(&Place));

const SYNCED: [&str; 4] = ["/docs/small", "/docs/large", "/docs/new", "/kept"];

/// Wrong link counts of a file and of a directory, a flipped bit, a lost block, an entry of the NAT that leads nowhere:
/// the first ones are mended beside the checkpoint, the lost block makes another one needed.
#[test]
fn a_repair_of_a_damaged_volume_brings_its_journal_back() {
    let damages: [Damage; 5] = [
        ("links", |place| place.edit_inode(place.ino("/docs/small"), |node| node.inode_mut().i_links = 7.into())),
        ("links of a directory", |place| {
            place.edit_inode(place.ino("/docs"), |node| node.inode_mut().i_links = 9.into());
        }),
        ("a lost block of a synced file", |place| {
            let lose = |node: &mut NodeBlock| _ = node.set_address(5, BlockAddr::NULL, Features::EXTRA_ATTR);
            place.edit_inode(place.ino("/docs/large"), lose);
        }),
        ("a lost block of a directory below", |place| {
            place.edit_inode(place.ino("/docs/below/deep"), |node| {
                node.set_address(1, BlockAddr::NULL, Features::EXTRA_ATTR);
            });
        }),
        ("the root is nowhere", |place| {
            let device: Arc<dyn BlockDevice> = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
            Tables::read(&*device).nat(Nid::ROOT).flip(&*device, 5 * 8 + 6);
        }),
    ];
    for (name, damage) in damages {
        let place = left();
        damage(&place);
        place.code(&["check"], &[], 4);
        let told = place.repair(1);
        assert_eq!((&told["brought_back"], &told["passed_over"]), (&4.into(), &Value::Array(vec![])), "{name}: {told}");
        assert_synced(&place, &SYNCED);
        place.sound();
        place.ok(&["mkdir"], &["/more"]);
        place.sound();
    }
}

/// Nothing is wrong: the journal is brought back, and the volume needs it no more.
#[test]
fn a_repair_of_a_sound_volume_brings_its_journal_back() {
    let place = left();
    let told = place.repair(0);
    assert_eq!((&told["brought_back"], &told["repairs"][0]["blocks"]), (&4.into(), &0.into()), "{told}");
    assert_synced(&place, &SYNCED);
    place.sound();
    // Once more, with nothing in it.
    assert_eq!(place.repair(0)["brought_back"], 0);
    let journal = place.journal();
    let path = journal.to_str().unwrap();
    for give_up in ["--no-recovery", "--without-journal"] {
        let (_, err) = place.code(&["check", "--repair", "--journal", path, give_up], &[], 2);
        assert!(err.contains("give it up"), "{err}");
    }
    place.code(&["check", "--undo", "backup", "--journal", path], &[], 2);
}

/// The inode of `/docs/small` as a pipe, in a record with good checksums.
fn record_of_a_pipe(place: &Place, version: u64) -> Vec<u8> {
    let mut record = version.to_le_bytes().to_vec();
    // Format, nodes, names, blocks; the inode, twice, and its mark; no base; one piece.
    for number in [4, 1, 0, 0, place.ino("/docs/small"), place.ino("/docs/small"), 2] {
        record.extend(number.to_le_bytes());
    }
    for number in [0_u64, 1] {
        record.extend(number.to_le_bytes());
    }
    let mut piece = [0; 64];
    piece[..2].copy_from_slice(&(mode::FIFO | 0o644).to_le_bytes());
    record.extend(piece);
    record
}

/// What was synced of one file makes no sense. All others come back, the file is as it was, and it is named.
#[test]
fn a_synced_file_that_cannot_come_back_is_named_and_costs_no_other() {
    for damaged_too in [false, true] {
        let place = left();
        let ino = place.ino("/docs/small");
        let device: Arc<dyn BlockDevice> = Arc::new(UringDevice::open(&place.image, UringOptions::new()).unwrap());
        let version = Volume::open(device, &VolumeOptions::new().read_only(true)).unwrap().footer_version();
        let journal = Journal::open(place.medium(), None).unwrap().start().unwrap();
        journal.append(u64::MAX >> 8, &[&record_of_a_pipe(&place, version)]).unwrap();
        drop(journal);
        if damaged_too {
            place.edit_inode(place.ino("/kept"), |node| node.inode_mut().i_links = 7.into());
        }
        let path = place.journal();
        let path = path.to_str().unwrap();
        let (_, err) = place.code(&["ls", "--journal", path], &["/"], 1);
        assert!(
            (damaged_too || err.contains(&format!("inode {ino}: "))) && err.contains("check --repair --journal"),
            "{err}"
        );
        let told = place.repair(1);
        assert_eq!((&told["brought_back"], &told["passed_over"][0]["inode"]), (&3.into(), &ino.into()), "{told}");
        assert_synced(&place, &["/docs/large", "/docs/new", "/kept"]);
        assert_eq!(place.ok(&["cat"], &["/docs/small"]).into_bytes(), content("/docs/small", 20));
        place.sound();
    }
}

/// A damaged record is no torn one: the repair says what there is in front of it and behind it, and asks.
#[test]
fn a_damaged_record_is_told_and_what_is_in_front_of_it_comes_back() {
    let place = left();
    let path = place.journal();
    let path = path.to_str().unwrap();
    let mut bytes = fs::read(path).unwrap();
    let needle = b"synced /docs/new";
    let at = bytes.windows(needle.len()).position(|bytes| bytes == needle).unwrap();
    bytes[at] ^= 1;
    fs::write(path, &bytes).unwrap();
    let words = [
        "in the record at position ",
        ": 2 records in front of it are whole, and so are 1 behind it",
        "--up-to-damage",
    ];
    place.refused(&words);
    let (_, err) = place.code(&["mkdir", "--journal", path], &["/no"], 1);
    assert!(words.iter().all(|words| err.contains(words)), "{err}");
    let inspected = Command::new(env!("CARGO_BIN_EXE_f2fs")).args(["journal", "inspect", path]).output().unwrap();
    let shown = String::from_utf8(inspected.stdout).unwrap();
    assert!(inspected.status.code() == Some(1) && shown.contains("and 1 behind it are whole"), "{shown}");
    let told: Value = serde_json::from_str(
        &place.code(&["check", "--repair", "--json", "--up-to-damage", "--journal", path], &[], 0).0,
    )
    .unwrap();
    assert_eq!((&told["brought_back"], &told["given_up"]["records"]), (&2.into(), &1.into()), "{told}");
    assert_synced(&place, &["/docs/small", "/docs/large"]);
    place.code(&["cat"], &["/docs/new"], 1);
    place.sound();
}

/// Another volume's journal, or an older one, is of no use for a repair.
#[test]
fn a_journal_that_does_not_fit_is_refused() {
    let (place, other) = (left(), left());
    fs::copy(other.journal(), place.journal()).unwrap();
    place.refused(&["was left with synced files in the journal"]);
    // The volume went on without it.
    let place = left();
    place.ok(&["mkdir", "--without-journal"], &["/new"]);
    place.refused(&["is not that of this volume as it is"]);
}
