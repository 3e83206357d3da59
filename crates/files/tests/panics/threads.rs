//! Threads beside the one that panics: each gets an answer.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use f2fs_device::Operation;
use f2fs_device_test::{Fault, FaultDevice, FaultRule};
use f2fs_files::{CleanerOptions, FileSystem, FsError, Options, RenameMode, SetMode, Time};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{StopCause, VolumeError};

use crate::judge::{LIMIT, assert_stopped, text};
use f2fs_device_test::bytes;
use f2fs_test_kit::volumes::{assert_consistent, formatted, within};

#[test]
fn threads_that_sync_get_an_answer() {
    for fault in [Operation::Flush, Operation::Write] {
        for after in [0, 3, 20] {
            let inner = formatted(64, &FormatOptions::default());
            let faulty = Arc::new(FaultDevice::new(inner.clone()));
            let fs = FileSystem::open(faulty.clone(), Options::new()).unwrap();
            fs.create_dir("/d", 0o755).unwrap();
            fs.checkpoint().unwrap();
            faulty.arm(FaultRule::on([fault]).after(after).fault(Fault::Panic));
            let start = Arc::new(Barrier::new(8));
            let threads: Vec<_> = (0..8u64)
                .map(|thread| {
                    let (fs, start) = (fs.clone(), start.clone());
                    std::thread::spawn(move || {
                        start.wait();
                        let mut synced = Vec::new();
                        for round in 0..50u64 {
                            let path = format!("/d/{thread}-{round}");
                            let content = bytes(5000, thread * 100 + round);
                            let written = catch_unwind(AssertUnwindSafe(|| {
                                let file = fs.create_file(&path, 0o644)?;
                                file.write_at(&content, 0)?;
                                file.sync_all()
                            }));
                            match written {
                                Ok(Ok(())) => synced.push((path, content)),
                                Ok(Err(FsError::Volume(VolumeError::Stopped { .. }))) => return (synced, false),
                                // The flush of others panicked: the device says so to those who come later.
                                Ok(Err(FsError::Volume(VolumeError::Device(_)))) => return (synced, false),
                                Ok(Err(error)) => panic!("{error}"),
                                Err(panic) => {
                                    assert!(text(&*panic).contains("the device panics"));
                                    return (synced, true);
                                }
                            }
                        }
                        (synced, false)
                    })
                })
                .collect();
            let all: Vec<_> = within(LIMIT, move || threads.into_iter().map(|thread| thread.join().unwrap()).collect());
            assert_eq!(all.iter().filter(|(_, panicked)| *panicked).count(), 1, "{fault} after {after}");
            assert_eq!(fs.volume().stopped(), Some(&StopCause::Panic));
            drop(fs);
            let fs = FileSystem::open(inner, Options::new()).unwrap();
            for (path, content) in all.iter().flat_map(|(synced, _)| synced) {
                let mut found = vec![0; content.len()];
                fs.open_file(path).unwrap().read_at(&mut found, 0).unwrap();
                assert!(found == *content, "{path} was synced");
            }
        }
    }
}

std::thread_local! {
    static CLOCK_PANICS: Cell<bool> = const { Cell::new(false) };
}

fn clock() -> Time {
    assert!(!CLOCK_PANICS.get(), "the clock panics");
    Time { seconds: 1_000_000_000, nanoseconds: 0 }
}

#[test]
fn a_clock_that_panics_stops_the_volume_and_no_other_thread() {
    type Change = fn(&FileSystem) -> Result<(), FsError>;
    let changes: [Change; 7] = [
        |fs| fs.create_file("/new", 0o644).map(drop),
        |fs| fs.open_file("/file")?.write_at(&[1; 9000], 0).map(drop),
        |fs| fs.open_file("/file")?.write_durable(&[1; 9000], 0).map(drop),
        |fs| fs.open_file("/file")?.set_len(10),
        |fs| fs.rename("/file", "/dir/moved", RenameMode::Replace),
        |fs| fs.remove_file("/file"),
        |fs| fs.set_xattr("/file", "user.a", b"x", SetMode::Any),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let device = formatted(64, &FormatOptions::default());
        let fs = FileSystem::open(device.clone(), Options::new().clock(clock)).unwrap();
        fs.create_dir("/dir", 0o755).unwrap();
        fs.create_file("/file", 0o644).unwrap().write_at(&[7; 20_000], 0).unwrap();
        fs.checkpoint().unwrap();
        let start = Arc::new(Barrier::new(4));
        let others: Vec<_> = (0..3)
            .map(|thread| {
                let (fs, start) = (fs.clone(), start.clone());
                std::thread::spawn(move || {
                    start.wait();
                    for round in 0.. {
                        let result = fs.create_file(format!("/dir/{thread}-{round}"), 0o644).and_then(|file| {
                            file.write_at(b"x", 0)?;
                            fs.open_file("/file")?.write_at(b"y", 5000 * (thread + 1))?;
                            if round % 8 == 0 { fs.checkpoint().map(drop) } else { file.sync_all() }
                        });
                        match result {
                            Err(FsError::Volume(VolumeError::Stopped { reason: StopCause::Panic })) => return,
                            // The change may have been made before the panic.
                            Ok(()) | Err(FsError::NotFound) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        start.wait();
        CLOCK_PANICS.set(true);
        let panicked = catch_unwind(AssertUnwindSafe(|| change(&fs)));
        CLOCK_PANICS.set(false);
        assert!(text(&*panicked.unwrap_err()).contains("the clock panics"), "{number}");
        within(LIMIT, move || others.into_iter().for_each(|thread| thread.join().unwrap()));
        assert_stopped(fs.create_file("/never", 0o644));
        assert!(!fs.exists("/never").unwrap());
        drop(fs);
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        assert_eq!(fs.metadata("/file").unwrap().size, 20_000, "{number}");
        fs.close().unwrap();
        assert_consistent(&*device);
    }
}

#[test]
fn a_cleaner_that_panics_says_so() {
    let inner = formatted(128, &FormatOptions::default());
    let faulty = Arc::new(FaultDevice::new(inner.clone()));
    let fs = FileSystem::open(faulty.clone(), Options::new()).unwrap();
    for name in 0..20 {
        fs.create_file(format!("/{name}"), 0o644).unwrap().write_at(&bytes(1 << 20, name), 0).unwrap();
    }
    (0..20).step_by(2).for_each(|name| fs.remove_file(format!("/{name}")).unwrap());
    fs.checkpoint().unwrap();
    faulty.arm(FaultRule::on([Operation::Write]).fault(Fault::Panic));
    let cleaner = fs.start_cleaner(CleanerOptions::default()).unwrap();
    cleaner.urge();
    within(LIMIT, move || {
        while cleaner.failed().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(cleaner.failed().as_deref(), Some("the cleaner panicked"));
        cleaner.urge();
        drop(cleaner);
    });
    assert_stopped(fs.create_file("/never", 0o644));
    assert_stopped(fs.checkpoint());
    drop(fs);
    assert_consistent(&*inner);
    assert!(FileSystem::open(inner, Options::new()).unwrap().exists("/1").unwrap());
}
