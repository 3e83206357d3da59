//! Many reads at once give what single reads give: across holes, ends, inline files, and in any order,
//! and beside checkpoints.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use f2fs_device::MemoryDevice;
use f2fs_files::{File, FileSystem, Options, ReadSlice};
use f2fs_test_kit::volumes::{formatted, within};
use f2fs_volume::format::FormatOptions;

fn compare(file: &File, depth: usize, wanted: &[(u64, usize)]) {
    let mut many: Vec<Vec<u8>> = wanted.iter().map(|(_, len)| vec![0xee; *len]).collect();
    let mut reads: Vec<_> =
        wanted.iter().zip(&mut many).map(|((offset, _), buf)| ReadSlice::new(*offset, buf)).collect();
    file.read_many(depth, &mut reads).unwrap();
    let counts: Vec<usize> = reads.iter().map(|read| read.read).collect();
    for (((offset, len), many), count) in wanted.iter().zip(&many).zip(counts) {
        let mut one = vec![0xee; *len];
        assert_eq!(file.read_at(&mut one, *offset).unwrap(), count, "{len} bytes at {offset}");
        assert!(one == *many, "{len} bytes at {offset}, depth {depth}");
    }
}

#[test]
fn many_reads_give_what_single_ones_give() {
    let device = Arc::new(MemoryDevice::new(32 * 1024));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    let wanted = [(0, 10), (0, 5000), (4095, 2), (3 << 20, 3 << 20), (5_000_000, 100_000), (1 << 40, 7), (9, 0)];
    compare(&file, 4, &wanted); // empty
    file.write_at(&[1; 300], 0).unwrap();
    compare(&file, 4, &wanted); // inline
    let data: Vec<u8> = (0..3_000_000_u32).map(|i| ((i * 7) >> 5) as u8).collect();
    file.write_at(&data, 0).unwrap();
    file.write_at(&data, 4_500_001).unwrap(); // behind a hole, and not on a block border
    file.write_at(&[9; 4096], 70_000).unwrap(); // out of line with its neighbours
    let scattered: Vec<_> = (0..500_u64).map(|i| (i * 1_234_577 % 7_600_000, (i as usize * 37) % 9000)).collect();
    for depth in [0, 1, 3, 64] {
        compare(&file, depth, &wanted);
        compare(&file, depth, &scattered);
    }
}

/// Pieces with dirty pages beside others that are on the device alone, and checkpoints that close the gate meanwhile.
#[test]
fn many_reads_at_once_go_on_beside_checkpoints() {
    within(Duration::from_secs(120), reads_beside_checkpoints);
}

fn reads_beside_checkpoints() {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device, Options::new().page_cache(1 << 20)).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&vec![1; 8 << 20], 0).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs.create_file("/x", 0o644).map(drop).or_else(|_| fs.remove_file("/x")).unwrap();
                fs.checkpoint().unwrap();
            }
        });
        let reads = scope.spawn(|| {
            for round in 0..2000_u64 {
                let at = 4096 * (round * 37 % 2000);
                file.write_at(&[round as u8; 100], at).unwrap();
                let (mut one, mut other) = (vec![0; 200_000], vec![0; 200_000]);
                let mut wanted =
                    [ReadSlice::new(at.saturating_sub(50_000), &mut one), ReadSlice::new(7_000_000, &mut other)];
                file.read_many(4, &mut wanted).unwrap();
                let within = (at - at.saturating_sub(50_000)) as usize;
                assert!(one[within..within + 100].iter().all(|byte| *byte == round as u8));
            }
        });
        let ended = reads.join();
        done.store(true, Ordering::Relaxed);
        beside.join().unwrap();
        ended.unwrap();
    });
}

#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    let test = "many_reads_at_once_go_on_beside_checkpoints";
    f2fs_sync::assert_found(test, &["read_many_inside_two_gates"], "panicked");
}
