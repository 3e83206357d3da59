//! Records that hold what changed in a node: how few lines they are, and that the nodes come back whole.

use f2fs_device_test::Random;
use f2fs_files::RenameMode;

use super::*;

const KIB: u64 = 1 << 10;

/// A block in a large file: its inode is full of addresses, or one of its nodes is.
#[test]
fn a_block_of_a_large_file_is_few_lines() {
    let device = formatted(256, &FormatOptions::default());
    let device = Arc::new(RecordingDevice::new(device.snapshot()));
    let journal = Arc::new(RegionMedium::new(CountedRegion::new(MemoryRegion::new(8 << 20).unwrap())));
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let with = || Options::new().journal(JournalOptions::new(journal.clone(), JournalMode::Journal));
    let fs = FileSystem::open(device.clone(), with()).unwrap();
    for (name, kib) in [("/3M", 3 * KIB), ("/100M", 100 * KIB)] {
        let file = fs.create_file(name, 0o600).unwrap();
        (0..kib / 256).for_each(|at| file.write_at(&content(at as u8, 256 << 10), at * 256 * KIB).map(drop).unwrap());
        fs.checkpoint().unwrap();
        for round in 0..8 {
            file.write_at(&content(round, 4096), (kib / 2 + u64::from(round) * 4) * KIB).unwrap();
            let before = journal.region().counts();
            let allocations = allocation_counter::measure(|| file.sync_data().unwrap()).count_total;
            let cost = journal.region().counts().since(before);
            println!("{name}: {} lines, {allocations} allocations", cost.stored_past_cache);
            assert_eq!(cost.fences, 1, "{name}");
            // The first record of a node after a checkpoint has all of it.
            assert!(round == 0 || (65..=80).contains(&cost.stored_past_cache), "{name}, {round}: {cost:?}");
            assert!(round < 4 || allocations == 0, "{name}, {round}: {allocations} allocations");
        }
    }
    let image = cut(&device);
    drop(fs);
    let fs = FileSystem::open(image, with()).unwrap();
    for (name, kib) in [("/3M", 3 * KIB), ("/100M", 100 * KIB)] {
        let mut bytes = [0; 4096];
        for round in 0..8 {
            fs.open_file(name).unwrap().read_at(&mut bytes, (kib / 2 + u64::from(round) * 4) * KIB).unwrap();
            assert!(bytes[..] == content(round, 4096), "{name}, {round}");
        }
    }
    fs.close().unwrap();
}

/// Synced, renamed and changed by chance: large files, and more small ones than a stripe keeps, whose data is in their
/// inodes.
#[test]
fn changes_by_chance_are_as_they_were_synced() {
    for mode in [JournalMode::Ordered, JournalMode::Journal] {
        for seed in 0..3 {
            changes_by_chance(mode, seed);
        }
    }
}

fn changes_by_chance(mode: JournalMode, seed: u64) {
    let mut random = Random::new(seed);
    let device = Arc::new(RecordingDevice::new(formatted(128, &FormatOptions::default()).snapshot()));
    let journal = medium();
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let fs = FileSystem::open(device.clone(), with_mode(&journal, mode)).unwrap();
    let mut synced: Vec<(String, Vec<u8>)> = Vec::new();
    for number in 0..320 {
        let len = if number < 3 { 5 << 20 } else { 3000 };
        let (name, bytes) = (format!("/f{number}"), content(number as u8, len));
        fs.create_file(&name, 0o600).unwrap().write_at(&bytes, 0).unwrap();
        synced.push((name, bytes));
    }
    fs.checkpoint().unwrap();
    for round in 0..120_u8 {
        let number = if random.below(2) == 0 { random.below(3) } else { 3 + random.below(317) };
        let (name, bytes) = &mut synced[number];
        let file = fs.open_file(&*name).unwrap();
        let at = random.below(bytes.len() - 100);
        // Near the last places, so that the same node is often changed again.
        let at = if random.below(3) == 0 { at } else { at % 9000 % (bytes.len() - 100) };
        bytes[at..at + 100].fill(round);
        file.write_at(&[round; 100], at as u64).unwrap();
        match random.below(6) {
            0 => {
                let to = format!("/moved{round}");
                fs.rename(&*name, &to, RenameMode::default()).unwrap();
                *name = to;
                fs.root().unwrap().sync_all().unwrap();
            }
            1 => {
                bytes.truncate(bytes.len() - 4096.min(bytes.len() / 10));
                file.set_len(bytes.len() as u64).unwrap();
                file.sync_all().unwrap();
            }
            _ => file.sync_data().unwrap(),
        }
        if random.below(16) == 0 {
            assert_left(&device, &journal, mode, &synced);
        }
    }
    assert_left(&device, &journal, mode, &synced);
}

/// After a power cut each file is as it was last synced.
fn assert_left(device: &RecordingDevice, journal: &Medium, mode: JournalMode, synced: &[(String, Vec<u8>)]) {
    let image = cut(device);
    let fs = FileSystem::open(image.clone(), with_mode(&copy(journal), mode)).unwrap();
    for (name, bytes) in synced {
        assert!(read(&fs, name) == *bytes, "{name} is not as it was synced");
    }
    fs.close().unwrap();
    assert_clean(&image);
}
