//! Damage of one file, of one directory, of one record: what else was synced is not lost by it.

use f2fs_check::repair::{Journaled, plan, plan_with_journal};
use f2fs_check::{CheckOptions, check};
use f2fs_files::{JournalRescue, RenameMode};
use f2fs_format::feature::Features;
use f2fs_format::inode::mode;
use f2fs_format::{BlockAddr, Nid};
use f2fs_journal::{Create, Journal, Uuid};
use f2fs_test_kit::entries::Tables;
use f2fs_test_kit::harm::patch_node;
use f2fs_volume::{JournalContent, Volume, VolumeOptions};

use super::*;

/// All but the damaged files.
fn rescuing(journal: &Medium, mode: JournalMode) -> Options {
    Options::new().journal(JournalOptions::new(journal.clone() as SharedMedium, mode).passes_over(true))
}

fn assert_untouched(device: &MemoryDevice, before: &MemoryDevice) {
    assert!((0..device.info().blocks).all(|at| device.block(at).0 == before.block(at).0), "something was written");
}

fn bytes(journal: &Medium) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    journal.region().load(0, &mut bytes).unwrap();
    bytes
}

/// What a file is that its journal says is a regular one.
fn make_a_pipe(device: &MemoryDevice, ino: Nid) {
    patch_node(device, ino, |node| node.inode_mut().i_mode = (mode::FIFO | 0o644).into());
}

/// The file that cannot be brought back is named.
fn assert_names(error: &FsError, damaged: Nid) {
    let FsError::Recovery(cause) = error else { panic!("{error}") };
    assert!(matches!(&**cause, FsError::SyncedFile { ino, .. } if *ino == damaged), "{error}");
    assert!(error.to_string().contains(&format!("inode {damaged}: ")), "{error}");
}

fn passed_over(fs: &FileSystem) -> Vec<Nid> {
    fs.passed_over().iter().map(|file| file.ino).collect()
}

/// Repairs what a rescue leaves; both judges find nothing afterwards.
fn repaired(image: &Arc<MemoryDevice>) -> FileSystem {
    let device: Arc<dyn BlockDevice> = image.clone();
    plan(&device, &CheckOptions::default()).unwrap().apply(&*device).unwrap();
    assert_clean(image);
    FileSystem::open(image.clone(), Options::new().read_only(true)).unwrap()
}

#[test]
fn damage_of_one_file_costs_that_file_alone() {
    for mode in [JournalMode::Ordered, JournalMode::Journal] {
        let (device, journal, fs) = start_in(mode);
        for (seed, path) in (0..).zip(["/old", "/damaged", "/another"]) {
            fs.create_file(path, 0o600).unwrap().write_at(&content(seed, 9000), 0).unwrap();
        }
        fs.checkpoint().unwrap();
        for (seed, path) in (10..).zip(["/old", "/damaged", "/another", "/new"]) {
            let file = fs.open_file(path).or_else(|_| fs.create_file(path, 0o600)).unwrap();
            file.write_at(&content(seed, 9000), 0).unwrap();
            file.sync_all().unwrap();
        }
        let damaged = fs.metadata("/damaged").unwrap().ino;
        let (image, left) = (cut(&device), copy(&journal));
        make_a_pipe(&image, damaged);
        // It is refused, with the file's name, and nothing is written: neither to the volume nor to the journal.
        let (before, records) = (image.snapshot(), bytes(&left));
        for read_only in [true, false] {
            let error = FileSystem::open(image.clone(), with_mode(&left, mode).read_only(read_only)).unwrap_err();
            assert_names(&error, damaged);
        }
        assert_untouched(&image, &before);
        assert!(bytes(&left) == records, "the journal was written to");
        for read_only in [true, false] {
            let fs = FileSystem::open(image.clone(), rescuing(&left, mode).read_only(read_only)).unwrap();
            assert_eq!((passed_over(&fs), fs.recovered().files), (vec![damaged], 3));
            for (seed, path) in [(10, "/old"), (12, "/another"), (13, "/new")] {
                assert!(read(&fs, path) == content(seed, 9000), "{path}, read only: {read_only}");
            }
            if !read_only {
                fs.close().unwrap();
            }
        }
        repaired(&image);
    }
}

/// Of the names that changed, those of the damaged file stay as they were; what took its place has it.
#[test]
fn names_of_a_damaged_file_stay() {
    let (device, journal, fs) = start();
    for path in ["/removed", "/replaced", "/moved", "/kept"] {
        fs.create_file(path, 0o600).unwrap().write_at(path.as_bytes(), 0).unwrap();
    }
    fs.create_dir("/dir", 0o700).unwrap();
    fs.checkpoint().unwrap();
    let number = |path: &str| fs.metadata(path).unwrap().ino;
    let inos = ["/removed", "/replaced", "/moved"].map(number);
    fs.create_file("/new", 0o600).unwrap().write_at(b"new", 0).unwrap();
    fs.rename("/new", "/replaced", RenameMode::Replace).unwrap();
    fs.remove_file("/removed").unwrap();
    fs.rename("/moved", "/dir/there", RenameMode::Replace).unwrap();
    fs.rename("/kept", "/dir/kept", RenameMode::Replace).unwrap();
    fs.root().unwrap().sync_all().unwrap();
    let (image, left) = (cut(&device), copy(&journal));
    // Bytes of a file's inode that are no inode: nothing can load it.
    for ino in &inos[..2] {
        patch_node(&image, *ino, |node| node.inode_mut().i_mode = 0.into());
    }
    // One that can be loaded, and is of another kind than it was synced as.
    patch_node(&image, inos[2], |node| node.inode_mut().i_mode = (mode::SYMLINK | 0o777).into());
    FileSystem::open(image.clone(), with(&left).read_only(true)).unwrap_err();
    let fs = FileSystem::open(image.clone(), rescuing(&left, JournalMode::Ordered)).unwrap();
    assert_eq!(passed_over(&fs), inos);
    let names = |path: &str| {
        let directory = fs.open_dir(path).unwrap();
        let names = directory.entries().map(|entry| String::from_utf8(entry.unwrap().name).unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    assert_eq!(names("/"), ["dir", "moved", "removed", "replaced"]);
    assert_eq!((names("/dir"), read(&fs, "/dir/kept")), (vec!["kept".into()], b"/kept".to_vec()));
    assert_eq!(read(&fs, "/replaced"), b"new");
    fs.close().unwrap();
    drop(fs);
    let fs = repaired(&image);
    assert_eq!((read(&fs, "/replaced"), read(&fs, "/dir/kept")), (b"new".to_vec(), b"/kept".to_vec()));
}

/// A directory that cannot take its names back: what is new in it is without a name until a repair gives it one, and
/// what moved into it stays where it was.
#[test]
fn damage_of_a_directory_costs_no_file() {
    let (device, journal, fs) = start();
    fs.create_dir("/damaged", 0o700).unwrap();
    fs.create_file("/moved", 0o600).unwrap().write_at(b"moved", 0).unwrap();
    fs.checkpoint().unwrap();
    let damaged = fs.metadata("/damaged").unwrap().ino;
    fs.create_file("/damaged/new", 0o600).unwrap().write_at(b"new", 0).unwrap();
    fs.rename("/moved", "/damaged/moved", RenameMode::Replace).unwrap();
    fs.create_file("/beside", 0o600).unwrap().write_at(b"beside", 0).unwrap();
    for path in ["/damaged/new", "/damaged/moved", "/beside"] {
        fs.open_file(path).unwrap().sync_all().unwrap();
    }
    let (image, left) = (cut(&device), copy(&journal));
    make_a_pipe(&image, damaged);
    FileSystem::open(image.clone(), with(&left).read_only(true)).unwrap_err();
    let fs = FileSystem::open(image.clone(), rescuing(&left, JournalMode::Ordered)).unwrap();
    assert_eq!(passed_over(&fs), [damaged]);
    assert_eq!((read(&fs, "/moved"), read(&fs, "/beside")), (b"moved".to_vec(), b"beside".to_vec()));
    fs.close().unwrap();
    drop(fs);
    let fs = repaired(&image);
    assert_eq!(read(&fs, "/damaged/new"), b"new", "a repair makes it a directory again, and gives the file its name");
    assert_eq!((read(&fs, "/moved"), read(&fs, "/beside")), (b"moved".to_vec(), b"beside".to_vec()));
}

/// The checkpoint had the file, and its entry of the NAT is lost: what was synced of it is not passed over in silence.
#[test]
fn a_synced_file_that_is_not_there_is_an_error() {
    let (device, journal, fs) = start();
    let file = fs.create_file("/lost", 0o600).unwrap();
    fs.create_file("/kept", 0o600).unwrap();
    fs.checkpoint().unwrap();
    for path in ["/lost", "/kept"] {
        fs.open_file(path).unwrap().write_at(b"synced", 0).unwrap();
        fs.open_file(path).unwrap().sync_all().unwrap();
    }
    let lost = file.metadata().unwrap().ino;
    // One that was removed while it was open is no such file.
    let gone = fs.create_file("/gone", 0o600).unwrap();
    gone.sync_all().unwrap();
    fs.remove_file("/gone").unwrap();
    gone.sync_all().unwrap();
    let (image, left) = (cut(&device), copy(&journal));
    FileSystem::open(image.clone(), with(&left).read_only(true)).unwrap();
    // The whole entry: version, inode, address.
    let nat = Tables::read(&*image).nat(lost);
    let entry = image.read(nat.block, 1).unwrap().block(0)[nat.byte..nat.byte + 9].to_vec();
    (0..72).filter(|bit| entry[bit / 8] & 1 << (bit % 8) != 0).for_each(|bit| nat.flip(&*image, bit));
    let error = FileSystem::open(image.clone(), with(&left).read_only(true)).unwrap_err();
    assert_names(&error, lost);
    let fs = FileSystem::open(image, rescuing(&left, JournalMode::Ordered).read_only(true)).unwrap();
    assert_eq!((passed_over(&fs), read(&fs, "/kept")), (vec![lost], b"synced".to_vec()));
}

/// Of a journal with a damaged record all that is in front of it can be brought back, if that is asked for; what is
/// behind is counted and named.
#[test]
fn what_is_in_front_of_a_damaged_record_is_brought_back_if_that_is_said() {
    let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    let owner = Volume::open(device.clone(), &VolumeOptions::new().read_only(true)).unwrap().superblock().uuid;
    let journal = medium();
    // One lane, whichever processor syncs.
    drop(Journal::create(journal.clone() as SharedMedium, &Create::new(Uuid(owner)).lanes(1)).unwrap());
    let fs = FileSystem::open(device.clone(), with(&journal)).unwrap();
    let before = bytes(&journal);
    let mut ends = Vec::new();
    for path in ["/a", "/b", "/c", "/d"] {
        let file = fs.create_file(path, 0o600).unwrap();
        file.write_at(path.as_bytes(), 0).unwrap();
        file.sync_all().unwrap();
        let now = bytes(&journal);
        ends.push((0..BYTES).rev().find(|at| now[*at] != before[*at]).unwrap());
    }
    let numbers = ["/c", "/d"].map(|path| fs.metadata(path).unwrap().ino);
    let (image, left) = (cut(&device), copy(&journal));
    assert!(ends.is_sorted(), "{ends:?}");
    left.region().store(ends[1], &[bytes(&left)[ends[1]] ^ 1]).unwrap();
    let (untouched, records) = (image.snapshot(), bytes(&left));
    let FsError::Volume(VolumeError::Journal(trouble)) = FileSystem::open(image.clone(), with(&left)).unwrap_err()
    else {
        panic!("another error")
    };
    assert!(matches!(trouble, JournalTrouble::Damaged { records: 1, behind: 2, .. }), "{trouble}");
    assert_untouched(&image, &untouched);
    assert!(bytes(&left) == records);
    let rescue = JournalRescue::default().up_to_damage(true);
    let found = JournalContent::read(left.clone(), rescue).unwrap();
    assert_eq!((found.nodes.records(), found.checkpoints.len()), (1, 1));
    JournalContent::read(left.clone(), JournalRescue::default()).unwrap_err();
    let options = Options::new().journal(JournalOptions::new(left.clone(), JournalMode::Ordered).rescue(rescue));
    let fs = FileSystem::open(image.clone(), options).unwrap();
    assert_eq!((fs.given_up().records, read(&fs, "/a")), (2, b"/a".to_vec()));
    assert!(fs.given_up().inos.iter().eq(&numbers), "{:?}", fs.given_up());
    assert!(!fs.exists("/b").unwrap() && !fs.exists("/d").unwrap());
    // The lane takes records again.
    let file = fs.create_file("/again", 0o600).unwrap();
    file.write_at(b"again", 0).unwrap();
    file.sync_all().unwrap();
    let (image, left) = (Arc::new(image.snapshot()), copy(&left));
    drop(fs);
    let fs = FileSystem::open(image.clone(), with(&left)).unwrap();
    assert_eq!((read(&fs, "/a"), read(&fs, "/again")), (b"/a".to_vec(), b"again".to_vec()));
    fs.close().unwrap();
    assert!(check(&*image, &CheckOptions::default()).unwrap().is_clean());
}

/// A repair that makes a directory of lost files gives it no number, and no block, of a file in the journal: also where it
/// ends with a checkpoint of its own.
#[test]
fn a_repair_leaves_room_for_what_a_journal_holds() {
    const LARGE: usize = 5 << 20;
    for (mode, needs_checkpoint) in
        [JournalMode::Ordered, JournalMode::Journal].map(|mode| [(mode, false), (mode, true)]).as_flattened()
    {
        let (device, journal, fs) = start_in(*mode);
        fs.create_file("/old", 0o600).unwrap().write_at(&content(1, 9000), 0).unwrap();
        fs.checkpoint().unwrap();
        let old = fs.metadata("/old").unwrap().ino;
        // The large one goes on in segments that are free.
        for (seed, path, len) in [(2, "/new", 9000), (3, "/newer", LARGE)] {
            let file = fs.create_file(path, 0o600).unwrap();
            file.write_at(&content(seed, len), 0).unwrap();
            file.sync_all().unwrap();
        }
        let (image, left) = (cut(&device), copy(&journal));
        // The names in the root are gone, and the file does not know its own.
        let volume = Volume::open(image.clone(), &VolumeOptions::new().read_only(true)).unwrap();
        let names = volume.nodes().get(Nid::ROOT).unwrap().read().address(0, Features(0)).unwrap();
        drop(volume);
        image.write_slice(names.0.into(), &[0; 4096]).unwrap();
        patch_node(&image, old, |node| {
            node.inode_mut().i_namelen = 0.into();
            if *needs_checkpoint {
                node.set_address(1, BlockAddr::NULL, Features(0));
            }
        });
        let found = JournalContent::read(left.clone(), JournalRescue::default()).unwrap();
        let upon = found.checkpoints.first().copied();
        let wanted = Journaled::new(found.volume, found.checkpoints.clone(), found.blocks().collect());
        let device: Arc<dyn BlockDevice> = image.clone();
        let repair = plan_with_journal(&device, &CheckOptions::default(), &wanted).unwrap();
        assert!(repair.after.is_clean() && repair.keeps_journal(), "{}\n{:?}", repair.after, repair.actions);
        repair.apply(&*device).unwrap();
        let journal = JournalOptions::new(left, *mode).rescue(JournalRescue::default().upon(upon));
        let fs = FileSystem::open(image.clone(), Options::new().journal(journal)).unwrap();
        assert!(
            read(&fs, "/new") == content(2, 9000) && read(&fs, "/newer") == content(3, LARGE),
            "{:?}",
            repair.actions
        );
        let lost = fs.open_dir("/lost+found").unwrap().entries().next().unwrap().unwrap();
        let lost = read(&fs, &format!("/lost+found/{}", String::from_utf8(lost.name).unwrap()));
        assert!(lost[..4096] == content(1, 9000)[..4096]);
        fs.close().unwrap();
        drop(fs);
        assert_clean(&image);
    }
}
