//! A volume that is full of holes: the cleaner makes room, and nothing is lost.

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_volume::format::{FormatOptions, format};

fn pattern(file: u32, round: u32) -> Vec<u8> {
    let mut state = u64::from(file) << 32 | u64::from(round) | 1;
    (0..4096)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

#[test]
fn scattered_overwrites_at_ninety_per_cent() {
    let device = Arc::new(MemoryDevice::new((96 << 20) >> 12));
    format(&*device, &FormatOptions::default()).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let stat = fs.statfs();
    // One large file that takes nine tenths of what there is, so that blocks and not inodes are what counts.
    let blocks = ((stat.user_blocks - stat.valid_blocks) * 9 / 10) as u32;
    let file = fs.create_file("/large", 0o644).unwrap();
    let mut rounds = vec![0u32; blocks as usize];
    for block in 0..blocks {
        assert_eq!(file.write_at(u64::from(block) * 4096, &pattern(block, 0)).unwrap(), 4096);
    }
    // Every block is overwritten about three times, here and there: no segment is ever wholly free by itself.
    let mut state = 1u64;
    for step in 0..3 * blocks {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let block = (state >> 33) as u32 % blocks;
        rounds[block as usize] += 1;
        let data = pattern(block, rounds[block as usize]);
        let written = file.write_at(u64::from(block) * 4096, &data);
        assert!(matches!(written, Ok(4096)), "step {step}: {written:?}, {:?}", fs.statfs());
    }
    drop(file);
    fs.close().unwrap();

    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    device.save(&image).unwrap();
    f2fs_oracle::assert_clean(&image);
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    let file = fs.open_file("/large").unwrap();
    let mut data = vec![0; 4096];
    for block in 0..blocks {
        file.read_at(u64::from(block) * 4096, &mut data).unwrap();
        assert!(data == pattern(block, rounds[block as usize]), "block {block}");
    }
}

#[test]
fn small_files_fill_the_volume_again_and_again() {
    let device = Arc::new(MemoryDevice::new((80 << 20) >> 12));
    format(&*device, &FormatOptions::default()).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_dir("/d", 0o755).unwrap();
    let mut counts = Vec::new();
    for round in 0..6u32 {
        let mut made = 0;
        loop {
            let result = fs
                .create_file(format!("/d/{round}-{made}"), 0o644)
                .and_then(|file| file.write_at(0, &pattern(made, round)).map(|_| ()));
            match result {
                Ok(()) => made += 1,
                Err(error) if error.is_no_space() => break,
                Err(error) => panic!("round {round}, file {made}: {error}"),
            }
        }
        counts.push(made);
        // The half-made file that hit the end may or may not be there.
        for entry in fs.read_dir("/d").unwrap() {
            let name = String::from_utf8(entry.name).unwrap();
            let number: u32 = name.split('-').next_back().unwrap().parse().unwrap();
            if !number.is_multiple_of(3) || round % 2 == 1 {
                fs.unlink(format!("/d/{name}")).unwrap();
            }
        }
        fs.checkpoint().unwrap();
    }
    // All is deleted after every second round: as much fits again.
    assert!(counts[2] + 64 >= counts[0] && counts[4] + 64 >= counts[0], "{counts:?}");
    fs.close().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    device.save(&image).unwrap();
    f2fs_oracle::assert_clean(&image);
}
