//! Threads on a device whose writes are on their way for a while, and come in any order: what is written in place must
//! not come over what others write there later.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use f2fs_device::MemoryDevice;
use f2fs_device_test::{Random, UnorderedDevice};
use f2fs_files::{FileSystem, Options};
use f2fs_test_kit::volumes::{assert_clean, scale};
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{Allocation, CostModel, VolumeOptions};

/// What block `block` of a thread's file holds after its write number `stamp`.
fn content(thread: u64, block: u64, stamp: u64) -> [u8; 4096] {
    let mut bytes = [0; 4096];
    for (at, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *word = (stamp << 32 | thread << 28 | block << 10 | at as u64).to_le_bytes();
    }
    bytes
}

#[test]
fn rewritten_blocks_come_over_nothing_newer() {
    const THREADS: u64 = 4;
    let device = Arc::new(MemoryDevice::new((64 << 20) >> 12));
    format(&*device, &FormatOptions::default()).unwrap();
    let options = Options::new().volume(VolumeOptions::new().allocation(Allocation::partial(CostModel::nvme())));
    let fs = FileSystem::open(Arc::new(UnorderedDevice::new(device.clone(), 1)), options).unwrap();
    let stat = fs.statfs();
    let blocks = (stat.user_blocks - stat.valid_blocks) * 9 / 10 / THREADS;
    let rounds = 100 * scale("F2FS_STRESS") as u64;
    let work = &|number: u64| {
        let file = fs.create_file(format!("/{number}"), 0o644).unwrap();
        let mut random = Random::new(number + 1);
        let mut stamps = vec![0; blocks as usize];
        for stamp in 1..=rounds {
            let first = random.below(blocks as usize) as u64;
            let len = (1 + random.below(if stamp % 4 == 0 { 400 } else { 12 }) as u64).min(blocks - first);
            let data: Vec<u8> = (first..first + len).flat_map(|block| content(number, block, stamp)).collect();
            assert_eq!(file.write_at(&data, first * 4096).unwrap(), data.len());
            stamps[first as usize..(first + len) as usize].fill(stamp);
        }
        for (block, stamp) in (0..).zip(stamps) {
            let mut found = [0; 4096];
            file.read_at(&mut found, block * 4096).unwrap();
            let wanted = if stamp == 0 { [0; 4096] } else { content(number, block, stamp) };
            let holds = u64::from_le_bytes(*found.first_chunk().unwrap());
            let ends = found.len() == 4096 && stamp == 0 && file.size() <= block * 4096;
            assert!(found == wanted || ends, "older data in block {block} of {number}: {holds:x}, stamp {stamp:x}");
        }
    };
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                fs.checkpoint().unwrap();
            }
        });
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || work(number))).collect();
        let results: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        ended.store(true, Ordering::Relaxed);
        results.into_iter().for_each(Result::unwrap);
    });
    let rewritten = fs.write_stat().rewritten_blocks;
    assert!(rewritten > 0, "nothing was rewritten in its place");
    fs.close().unwrap();
    assert_clean(&device.snapshot());
}
