//! Volumes and journals that do not belong together, and damaged records.

use f2fs_device::{KeptZones, ZoneLayout};
use f2fs_format::feature::Features;
use f2fs_format::node::{NodeBlock, mark};
use f2fs_format::{BlockAddr, LogType, Nid};
use f2fs_journal::Journal;
use f2fs_volume::format::format;
use f2fs_volume::{FoundJournal, Volume, VolumeOptions};

use super::*;

fn trouble(result: Result<FileSystem, FsError>) -> JournalTrouble {
    match result.unwrap_err() {
        FsError::Volume(VolumeError::Journal(trouble)) => trouble,
        FsError::Recovery(error) => trouble(Err(*error)),
        other => panic!("{other}"),
    }
}

/// Who copies the attributes of a root neither takes the note of the journal away, nor to another volume.
#[test]
fn nobody_sees_or_changes_the_note_of_the_journal() {
    const NOTE: &[u8] = b"trusted.f2fs_journal";
    let (device, journal, fs) = start();
    let root = fs.root().unwrap();
    assert!(fs.xattrs("/").unwrap().is_empty() && root.xattrs().unwrap().is_empty());
    assert!(matches!(fs.xattr("/", NOTE), Err(FsError::NoAttribute)));
    assert!(matches!(root.remove_xattr(NOTE), Err(FsError::NoAttribute)));
    for mode in [SetMode::Any, SetMode::Create, SetMode::Replace] {
        let error = root.set_xattr(NOTE, b"another", mode).unwrap_err();
        assert_eq!(error.raw_os_error(), 1, "{error}");
    }
    fs.set_xattr("/", b"trusted.another", b"value", SetMode::Any).unwrap();
    fs.create_file("/file", 0o600).unwrap().sync_all().unwrap();
    let image = cut(&device);
    assert!(matches!(FileSystem::open(image.clone(), Options::new()), Err(FsError::JournalMissing { .. })));
    assert!(FileSystem::open(image, with(&copy(&journal))).unwrap().exists("/file").unwrap());
}

#[test]
fn a_root_whose_attributes_are_full_takes_no_journal() {
    let device = formatted(64, &FormatOptions::default());
    let journal = medium();
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    for len in [200, 20, 1] {
        for number in 0.. {
            match fs.set_xattr("/", format!("user.{len}-{number}"), &vec![1; len], SetMode::Any) {
                Ok(()) => {}
                Err(FsError::Attribute { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    fs.close().unwrap();
    drop(fs);
    let before = device.snapshot();
    let error = FileSystem::open(device.clone(), with(&journal)).unwrap_err();
    assert!(matches!(error, FsError::NoRoomForJournal { needed: 50..60, free: 0..30 }), "{error}");
    assert!((0..device.info().blocks).all(|at| device.block(at).0 == before.block(at).0), "something was written");
    assert_clean(&device);
    FileSystem::open(device, Options::new()).unwrap().close().unwrap();
}

#[test]
fn volumes_and_journals_that_do_not_belong_together_are_refused() {
    let (device, journal, fs) = start();
    fs.create_file("/file", 0o600).unwrap().sync_all().unwrap();
    let (image, left) = (cut(&device), copy(&journal));

    // Without it: for reading, yes; for writing only if its files are given up.
    let before = image.snapshot();
    assert!(!FileSystem::open(image.clone(), Options::new().read_only(true)).unwrap().exists("/file").unwrap());
    let error = FileSystem::open(image.clone(), Options::new()).unwrap_err();
    assert!(matches!(&error, FsError::JournalMissing { journal } if journal.len() == 36), "{error}");
    assert!((0..image.info().blocks).all(|at| image.block(at).0 == before.block(at).0), "nothing was written");
    let other = medium();
    create_journal(image.clone(), other.clone(), false).unwrap();
    let error = FileSystem::open(image.clone(), with(&other)).unwrap_err();
    assert!(matches!(&error, FsError::OtherJournal { .. }), "{error}");
    let foreign = formatted(64, &FormatOptions::default());
    let error = trouble(FileSystem::open(foreign, with(&left)));
    assert!(matches!(error, JournalTrouble::Journal(f2fs_journal::Error::Foreign { .. })), "{error}");
    assert!(create_journal(image.clone(), left.clone(), false).is_err(), "there is one already");

    // Somebody goes on without it; then it is refused, with the numbers.
    let gone_on = Arc::new(image.snapshot());
    let fs = FileSystem::open(gone_on.clone(), Options::new().without_journal(true)).unwrap();
    fs.create_file("/other", 0o600).unwrap();
    drop(fs);
    let error = trouble(FileSystem::open(gone_on.clone(), with(&left)));
    let JournalTrouble::OtherCheckpoint { records: 1, base, found } = error else { panic!("{error}") };
    assert_eq!(base as u32 + 1, found as u32);
    FileSystem::open(gone_on.clone(), Options::new()).unwrap().close().unwrap();

    // The recovery itself may be cut anywhere, and done again.
    let recorder = Arc::new(RecordingDevice::new(image.snapshot()));
    let again = copy(&left);
    drop(FileSystem::open(recorder.clone(), with(&again)).unwrap());
    assert!(FileSystem::open(cut(&recorder), with(&again)).unwrap().exists("/file").unwrap());
    assert!(FileSystem::open(image, with(&again)).is_err(), "the volume is older than its journal");
}

/// Copies of a volume and its journal, both used, write the same but for the content of their files: in the same second
/// even their checkpoints would be the same.
#[test]
fn journals_of_copies_are_told_apart() {
    let (device, journal, fs) = start();
    fs.close().unwrap();
    let used = [b'a', b'b'].map(|content| {
        let (device, journal) = (Arc::new(RecordingDevice::new(device.snapshot())), copy(&journal));
        let fs = FileSystem::open(device.clone(), with(&journal)).unwrap();
        let file = fs.create_file("/file", 0o600).unwrap();
        file.write_at(&[content; 8000], 0).unwrap();
        file.sync_all().unwrap();
        (cut(&device), copy(&journal))
    });
    let [(first, own), (_, of_the_copy)] = used;
    let error = trouble(FileSystem::open(Arc::new(first.snapshot()), with(&of_the_copy)));
    let JournalTrouble::OtherCheckpoint { records: 1, base, found } = error else { panic!("{error}") };
    assert!(base != found && base as u32 == found as u32);
    let fs = FileSystem::open(first, with(&own)).unwrap();
    let mut content = [0; 8000];
    assert_eq!(fs.open_file("/file").unwrap().read_at(&mut content, 0).unwrap(), 8000);
    assert_eq!(content, [b'a'; 8000]);
}

#[test]
fn a_damaged_record_is_no_reason_to_lose_it_in_silence() {
    let (device, journal, fs) = start();
    let file = fs.create_file("/file", 0o600).unwrap();
    for round in 0..20 {
        file.write_at(&[round; 100], 0).unwrap();
        file.sync_all().unwrap();
    }
    let (image, left) = (cut(&device), copy(&journal));
    let mut bytes = vec![0; BYTES];
    left.region().load(0, &mut bytes).unwrap();
    // Somewhere in the records of the lane that has some.
    let used = (8192..BYTES).filter(|at| bytes[*at] != 0).collect::<Vec<_>>();
    left.region().store(used[used.len() / 2], &[!bytes[used[used.len() / 2]]]).unwrap();
    let error = trouble(FileSystem::open(image.clone(), with(&left)));
    assert!(matches!(error, JournalTrouble::Damaged { records: 1..19, .. }), "{error}");
    FileSystem::open(image, Options::new().without_journal(true)).unwrap();
}

/// Writes what a sync leaves that goes to the log at the checkpoint of this image: an inode with a mark. Linux does that
/// where this library has a journal.
fn sync_in_the_log(image: &Arc<MemoryDevice>, ino: Nid) {
    let volume = Volume::open(image.clone(), &VolumeOptions::new().read_only(true)).unwrap();
    let position = volume.last_checkpoint().log(LogType::WarmNode);
    let place = volume.geometry().block_at(position.segment, position.next_offset.into());
    let mut node = *NodeBlock::read(volume.nodes().get(ino).unwrap().read().as_block());
    node.footer.cp_ver = volume.footer_version().into();
    node.footer.next_blkaddr = (place.0 + 1).into();
    node.footer.set_mark(mark::FSYNC, true);
    drop(volume);
    image.write_slice(place.0.into(), node.as_block()).unwrap();
}

/// Nobody can tell which of the two is newer.
#[test]
fn files_that_were_synced_in_the_log_and_in_the_journal_are_refused() {
    let (device, journal, fs) = start();
    let old = fs.create_file("/old", 0o600).unwrap();
    fs.checkpoint().unwrap();
    let (empty, left) = (cut(&device), copy(&journal));
    fs.create_file("/new", 0o600).unwrap().sync_all().unwrap();
    let (image, full) = (cut(&device), copy(&journal));
    let ino = old.metadata().unwrap().ino;
    for image in [&empty, &image] {
        sync_in_the_log(image, ino);
    }
    let before = image.snapshot();
    let error = trouble(FileSystem::open(image.clone(), with(&full)));
    assert!(matches!(error, JournalTrouble::SyncedWithout { records: 1, nodes: 1 }), "{error}");
    assert!((0..image.info().blocks).all(|at| image.block(at).0 == before.block(at).0), "nothing was written");
    // A journal without records has nothing to say of it.
    assert_eq!(FileSystem::open(empty, with(&left)).unwrap().recovered().files, 1);
    let fs = FileSystem::open(image, Options::new().without_journal(true)).unwrap();
    assert_eq!((fs.recovered().files, fs.exists("/new").unwrap()), (1, false));
}

#[test]
fn a_volume_takes_one_journal() {
    let image = formatted(64, &FormatOptions::default());
    let media = [medium(), medium()];
    for medium in &media {
        create_journal(image.clone(), medium.clone(), false).unwrap();
    }
    let volume = Volume::open(image, &VolumeOptions::new()).unwrap();
    let [first, second] = media.map(|medium| FoundJournal::open(&volume, medium, JournalMode::Ordered).unwrap());
    volume.journal().attach(first).unwrap();
    let error = volume.journal().attach(second).unwrap_err();
    assert!(matches!(error, VolumeError::Journal(JournalTrouble::Attached)), "{error}");
    assert!(volume.journal().is_open(), "the first one stays");
}

/// A record with one name that is gone and has never been, and data for one block.
fn record_with_data(version: u64, addr: BlockAddr) -> Vec<u8> {
    let (format, root) = (4_u32, 3_u32);
    let mut bytes = version.to_le_bytes().to_vec();
    for number in [format, 0, 1, 1, root, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(b"\x04none");
    bytes.extend(addr.0.to_le_bytes());
    bytes.extend([7; 4096]);
    bytes
}

/// A record of an inode that nobody has, as it differs from the one in another record.
fn record_upon(version: u64, base: u64) -> Vec<u8> {
    let mut bytes = version.to_le_bytes().to_vec();
    // The format, nodes, names, blocks; a number, its inode's, marks.
    for number in [4_u32, 1, 0, 0, 900, 900, 0] {
        bytes.extend(number.to_le_bytes());
    }
    for number in [base, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

/// Bringing such a record back would overwrite what the checkpoint needs.
#[test]
fn data_for_a_block_that_is_in_use_is_refused() {
    let (device, journal, fs) = start_in(JournalMode::Journal);
    fs.create_file("/file", 0o600).unwrap().write_at(&content(1, 5000), 0).unwrap();
    fs.checkpoint().unwrap();
    let (image, left) = (cut(&device), copy(&journal));
    let volume = Volume::open(image.clone(), &VolumeOptions::new().read_only(true)).unwrap();
    let (version, main) = (volume.footer_version(), volume.geometry().main_blkaddr);
    let (end, ino) = (volume.geometry().main_end(), fs.metadata("/file").unwrap().ino);
    let data = volume.nodes().get(ino).unwrap().read().address(0, Features(0)).unwrap();
    drop(volume);
    let open = |addr| {
        let left = copy(&left);
        let opened = Journal::open(left.clone() as SharedMedium, None).unwrap().start().unwrap();
        opened.append(0, &[&record_with_data(version, addr)]).unwrap();
        drop(opened);
        FileSystem::open(Arc::new(image.snapshot()), with_mode(&left, JournalMode::Journal))
    };
    for wrong in [data, BlockAddr(0), BlockAddr(main.0 - 1), end, BlockAddr(u32::MAX)] {
        let error = trouble(open(wrong));
        assert!(matches!(error, JournalTrouble::Block { addr } if addr == wrong), "{wrong:?}: {error}");
    }
    let fs = open(BlockAddr(end.0 - 1)).unwrap();
    assert!(read(&fs, "/file") == content(1, 5000), "a block that is free is no reason to refuse");
}

/// A record that is no sync, and a header that is not a volume's.
#[test]
fn what_a_volume_did_not_write_is_refused() {
    let (device, journal, fs) = start();
    fs.create_file("/file", 0o600).unwrap().sync_all().unwrap();
    let (image, left) = (cut(&device), copy(&journal));
    let opened = |medium: &Medium| Journal::open(medium.clone() as SharedMedium, None).unwrap().start().unwrap();
    opened(&left).append(0, &[b"no sync"]).unwrap();
    let error = trouble(FileSystem::open(image.clone(), with(&left)));
    assert!(matches!(error, JournalTrouble::Record { .. }), "{error}");
    // What changed in a node of a record that is not there, or is not the last one with the node.
    let volume = Volume::open(image.clone(), &VolumeOptions::new().read_only(true)).unwrap();
    let version = volume.footer_version();
    drop(volume);
    for base in [1, 2, 77, u64::MAX] {
        let left = copy(&journal);
        opened(&left).append(0, &[&record_upon(version, base)]).unwrap();
        let error = trouble(FileSystem::open(image.clone(), with(&left)));
        assert!(matches!(error, JournalTrouble::Record { .. }), "{base}: {error}");
    }
    let left = copy(&journal);
    opened(&left).set_area(&[7; 3]).unwrap();
    let error = trouble(FileSystem::open(image.clone(), with(&left)));
    assert!(matches!(error, JournalTrouble::Area { bytes: 3 }), "{error}");
    assert!(FileSystem::open(image, with(&copy(&journal))).unwrap().exists("/file").unwrap());
}

/// Data cannot be written again to its place on zones.
#[test]
fn data_in_a_journal_of_zones_is_refused() {
    let layout = ZoneLayout::new(1024).with_conventional(8);
    let memory = Arc::new(MemoryDevice::new(KeptZones::<Arc<MemoryDevice>>::blocks_needed(&layout, 40).unwrap()));
    let zones = Arc::new(KeptZones::create(memory, layout).unwrap());
    format(&*zones, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
    let journal = medium();
    create_journal(zones.clone(), journal.clone(), false).unwrap();
    let error = trouble(FileSystem::open(zones.clone(), with_mode(&journal, JournalMode::Journal)));
    assert!(matches!(error, JournalTrouble::Zoned), "{error}");
    FileSystem::open(zones, with_mode(&journal, JournalMode::Ordered)).unwrap().close().unwrap();
}

/// A volume and its copy have one identity: nothing else keeps them apart.
#[test]
fn a_journal_that_is_in_use_is_refused_to_another_volume() {
    let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    let journal = medium();
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let twin = cut(&device);
    let fs = FileSystem::open(device.clone(), with(&journal)).unwrap();
    let file = fs.create_file("/file", 0o600).unwrap();
    file.write_at(&content(1, 5000), 0).unwrap();
    file.sync_all().unwrap();
    let busy = |error: FsError| {
        let error = error.to_string();
        assert!(error.contains("open already"), "{error}");
    };
    busy(FileSystem::open(twin.clone(), with(&journal)).unwrap_err());
    let other = Arc::new(formatted(64, &FormatOptions::default()).snapshot());
    busy(create_journal(other, journal.clone(), true).unwrap_err());
    file.write_at(&content(2, 5000), 0).unwrap();
    file.sync_all().unwrap();
    let image = cut(&device);
    drop((fs, file));
    let fs = FileSystem::open(image, with(&journal)).unwrap();
    assert!(read(&fs, "/file") == content(2, 5000));
    fs.close().unwrap();
}
