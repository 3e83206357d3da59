//! Filled and emptied, again and again.

use f2fs_device_test::{Random, bytes};
use f2fs_test_kit::volumes::{assert_clean, formatted, scale, within};
use f2fs_volume::format::FormatOptions;

use crate::fill::{LIMIT, assert_content, check_round, content, fill, numbers, open, rounds};

fn fill_and_empty(mib: u64, lens: impl Fn(u64) -> usize) {
    let device = formatted(mib, &FormatOptions::default());
    let mut fs = open(&device);
    let empty = fs.statfs().valid_blocks;
    let mut first = 0;
    for round in 0..rounds() {
        let (sizes, error) = fill(&fs, "/full", &lens);
        numbers(&error);
        check_round(&fs, &device, "/full", &sizes, &lens);
        let stat = fs.statfs();
        // The room left is less than one more file needs.
        assert!(stat.user_blocks - stat.valid_blocks <= 600, "{stat:?}");
        let total: usize = sizes.iter().sum();
        if round == 0 {
            first = total;
        }
        assert!(total * 100 >= first * 98, "round {round}: {total} bytes fit, {first} at first");

        // Overwriting needs no further room, though every block goes to a new place.
        for name in (0..sizes.len()).step_by(7) {
            let file = fs.open_file(format!("/full/{name}")).unwrap();
            let size = sizes[name];
            assert_eq!(file.write_at(&content(name as u64, size)[..size], 0).unwrap(), size);
        }
        check_round(&fs, &device, "/full", &sizes, &lens);

        // Deleting works at once, and what is gone can be used again.
        if round % 2 == 0 {
            for name in (0..sizes.len()).step_by(2) {
                fs.remove_file(format!("/full/{name}")).unwrap();
            }
            let (again, error) = fill(&fs, "/again", &lens);
            numbers(&error);
            assert!(again.iter().sum::<usize>() * 100 >= total * 45, "after deleting every other file");
            for name in (1..sizes.len()).step_by(2) {
                let wanted = content(name as u64, lens(name as u64));
                assert_content(&fs, &format!("/full/{name}"), &wanted[..sizes[name]]);
            }
            check_round(&fs, &device, "/again", &again, &lens);
            fs.remove_all("/again").unwrap();
        }
        fs.remove_all("/full").unwrap();
        fs.close().unwrap();
        drop(fs);
        fs = open(&device);
        assert_eq!(fs.statfs().valid_blocks, empty, "round {round}");
        assert_eq!(fs.read_dir("/").unwrap().count(), 0);
    }
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn many_small_files() {
    within(LIMIT, || fill_and_empty(64, |name| 1 + (name as usize * 37) % 9000));
}

#[test]
fn files_of_some_blocks() {
    within(LIMIT, || fill_and_empty(64, |name| 20_000 + (name as usize * 7919) % 60_000));
}

#[test]
fn few_large_files() {
    within(LIMIT, || fill_and_empty(64, |_| 5 << 20));
}

/// Small overwrites at random places of a full volume: each leaves a hole in an old segment, and only moving blocks
/// together makes segments free again.
#[test]
fn random_overwrites_at_full() {
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device);
        let (sizes, error) = fill(&fs, "/full", |_| 1 << 20);
        numbers(&error);
        let mut all: Vec<Vec<u8>> = (0..sizes.len()).map(|name| content(name as u64, 1 << 20)).collect();
        let mut random = Random::new(7);
        for step in 0..3000 * scale("F2FS_ROUNDS") {
            let name = random.below(sizes.len());
            if sizes[name] < 8192 {
                continue;
            }
            let at = random.below(sizes[name] - 4096);
            let data = bytes(1 + random.below(4096), random.next());
            let file = fs.open_file(format!("/full/{name}")).unwrap();
            let written = file.write_at(&data, at as u64);
            assert_eq!(written.unwrap_or_else(|error| panic!("step {step}: {error}")), data.len());
            all[name][at..at + data.len()].copy_from_slice(&data);
        }
        for (name, size) in sizes.iter().enumerate() {
            assert_content(&fs, &format!("/full/{name}"), &all[name][..*size]);
        }
        fs.close().unwrap();
        assert_clean(&device);
    });
}
