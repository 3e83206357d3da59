//! The last name of a file goes while its last handle is closed: whoever is second frees the inode, and only that one.
//!
//! `F2FS_STRESS=20` does 20 times as much.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use f2fs_files::{File, FileSystem, Options};
use f2fs_sync::atomic::{AtomicBool, Ordering};
use f2fs_test_kit::volumes::{assert_clean, formatted, scale, within};
use f2fs_volume::format::FormatOptions;

const FILES: usize = 30_000;
const PAIRS: usize = 2;

/// Files that are closed by one thread and unlinked by another at the same time, with checkpoints that let their
/// numbers be used again. An inode that is freed twice takes another file with it, or leaves an orphan that is none.
#[test]
fn a_name_goes_while_the_handle_is_closed() {
    within(Duration::from_secs(300), || {
        let device = formatted(128, &FormatOptions::default());
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (fs, done) = (&fs, &done);
            let pairs: Vec<_> = (0..PAIRS)
                .map(|pair| {
                    let (send, receive) = sync_channel::<(File, f2fs_sync::Arc<AtomicBool>)>(1);
                    scope.spawn(move || {
                        for (file, go) in receive {
                            while !go.load(Ordering::Acquire) {
                                std::hint::spin_loop();
                            }
                            drop(file);
                        }
                    });
                    scope.spawn(move || {
                        fs.create_dir(format!("/{pair}"), 0o755).unwrap();
                        for number in 0..FILES / PAIRS * scale("F2FS_STRESS") {
                            let path = format!("/{pair}/{}", number % 7);
                            let go = f2fs_sync::Arc::new(AtomicBool::new(false));
                            send.send((fs.create_file(&path, 0o644).unwrap(), go.clone())).unwrap();
                            go.store(true, Ordering::Release);
                            fs.remove_file(&path).unwrap();
                            let kept = format!("/{pair}/kept-{}", number % 50);
                            let _ = fs.remove_file(&kept);
                            fs.create_file(&kept, 0o644).unwrap();
                        }
                    })
                })
                .collect();
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    fs.checkpoint().unwrap();
                    std::thread::yield_now();
                }
            });
            let ended: Vec<_> = pairs.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            done.store(true, Ordering::Relaxed);
            assert!(ended.iter().all(Result::is_ok), "a thread panicked");
        });
        fs.close().unwrap();
        assert_clean(&device);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        for pair in 0..PAIRS {
            for entry in fs.read_dir(format!("/{pair}")).unwrap().map(Result::unwrap) {
                let name = f2fs_files::path_from_bytes(&entry.name).display().to_string();
                assert_eq!(fs.metadata(format!("/{pair}/{name}")).unwrap().links, 1, "{name}");
            }
        }
    });
}
