//! Who waits for a range holds nothing meanwhile that others want.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use f2fs_device::Operation;
use f2fs_device_test::{HeldDevice, RecordingDevice};
use f2fs_files::{AllocateFlags, File, FileSystem, Options, ReadSlice, WriteSlice};
use f2fs_test_kit::volumes::{formatted, within};
use f2fs_volume::format::FormatOptions;

use crate::{BLOCK, content};

/// Many reads, or writes, of which one has to wait: what was done before is let go, and others write there.
#[test]
fn ranges_of_what_is_done_are_let_go_before_a_wait() {
    for reads in [true, false] {
        within(Duration::from_secs(60), move || {
            let memory = formatted(64, &FormatOptions::default());
            let recorder = Arc::new(RecordingDevice::new(memory.snapshot()));
            let device = Arc::new(HeldDevice::new(recorder.clone()));
            let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
            let file = Arc::new(fs.create_file("/file", 0o644).unwrap());
            file.write_at(&[1; 16 * BLOCK], 0).unwrap();
            content(&file);
            device.hold_next(Operation::Write);
            let writer = {
                let file = file.clone();
                std::thread::spawn(move || file.write_at(&[2; 2 * BLOCK], 8 * BLOCK as u64).unwrap())
            };
            device.wait_until_held();
            let blocks = || if reads { recorder.counts().blocks_read } else { recorder.counts().blocks_written };
            let before = blocks();
            let many = {
                let file = file.clone();
                std::thread::spawn(move || {
                    let mut bufs = [[3; 2 * BLOCK]; 3];
                    let places = [0, 4, 8].map(|block| block * BLOCK as u64);
                    if reads {
                        let mut reads: Vec<_> =
                            bufs.iter_mut().zip(places).map(|(buf, at)| ReadSlice::new(at, buf)).collect();
                        file.read_many(4, &mut reads).unwrap();
                    } else {
                        let mut writes: Vec<_> =
                            bufs.iter().zip(places).map(|(buf, at)| WriteSlice::new(at, buf)).collect();
                        file.write_many(4, &mut writes).unwrap();
                    }
                    bufs
                })
            };
            // Then it waits for the third one.
            while blocks() < before + 4 {
                std::thread::yield_now();
            }
            for block in [0, 4] {
                file.write_at(&[4; 2 * BLOCK], block * BLOCK as u64).unwrap();
            }
            device.release();
            writer.join().unwrap();
            let found = many.join().unwrap();
            let (last, byte) = if reads { ([[1; 2 * BLOCK], [1; 2 * BLOCK], [2; 2 * BLOCK]], 2) } else { (found, 3) };
            assert!(found == last);
            let all = content(&file);
            assert!(
                all[..2 * BLOCK] == [4; 2 * BLOCK] && all[8 * BLOCK..10 * BLOCK].iter().all(|found| *found == byte)
            );
        });
    }
}

/// What reserves blocks over the end of a file has all behind it for itself: it waits for those who write there.
#[test]
fn who_reserves_over_the_end_waits_for_those_behind_it() {
    type Reserve = fn(&File);
    let ways: [Reserve; 2] = [
        |file| file.allocate(0, 20 * BLOCK as u64, AllocateFlags::NONE).unwrap(),
        |file| file.zero_range(0, 20 * BLOCK as u64).unwrap(),
    ];
    for reserve in ways {
        within(Duration::from_secs(60), move || {
            // A thread may begin late: some of many tries show it.
            let waited = (0..100).any(|_| {
                let device = Arc::new(HeldDevice::new(formatted(64, &FormatOptions::default())));
                let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
                let file = Arc::new(fs.create_file("/file", 0o644).unwrap());
                file.write_at(&[1; 2 * BLOCK], 0).unwrap();
                let begun = Arc::new(AtomicBool::new(false));
                device.hold_next(Operation::Write);
                let writer = {
                    let file = file.clone();
                    std::thread::spawn(move || file.write_at(&[2; BLOCK], 50 * BLOCK as u64).unwrap())
                };
                device.wait_until_held();
                let other = {
                    let (file, begun) = (file.clone(), begun.clone());
                    std::thread::spawn(move || {
                        begun.store(true, Ordering::Release);
                        reserve(&file);
                    })
                };
                while !begun.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                (0..100).for_each(|_| std::thread::yield_now());
                device.release();
                writer.join().unwrap();
                other.join().unwrap();
                assert_eq!(file.size(), 51 * BLOCK as u64);
                file.lock_waits().waits > 0
            });
            assert!(waited, "it never waited");
        });
    }
}
