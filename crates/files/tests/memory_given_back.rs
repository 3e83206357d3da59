//! Memory that caches have freed goes back to the system, though the allocator keeps it. This is the only test here: it
//! looks at the memory of the whole process.
#![allow(clippy::unwrap_used)] // a test fails by panicking
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::num::NonZeroUsize;

use f2fs_files::{FileSystem, Options};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

const FILES: usize = 30_000;
const MIB: u64 = 1 << 20;

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn what_the_caches_freed_goes_back() {
    let device = formatted(512, &FormatOptions::default());
    for all in [false, true] {
        let few = NonZeroUsize::new(256).unwrap();
        let mut options = Options::new();
        if !all {
            options = options.inode_cache(few);
            options.volume = options.volume.node_cache(few);
        }
        let fs = FileSystem::open(device.clone(), options).unwrap();
        let name = |file: usize| format!("/{all}-{file}");
        // On a thread of its own, as most are: the heap of the first one is another kind.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let open: Vec<_> = (0..FILES).map(|file| fs.create_file(name(file), 0o644).unwrap()).collect();
                fs.checkpoint().unwrap();
                drop(open);
                fs.checkpoint().unwrap();
            });
        });
        let before = resident();
        if all {
            // What is within the limits goes as well, the second time.
            assert!(fs.statfs().cached_nodes > FILES as u64);
            fs.drop_unused();
            fs.drop_unused();
        } else {
            fs.shrink_caches();
        }
        assert!(fs.statfs().cached_nodes < FILES as u64 / 4);
        let after = resident();
        assert!(after + 80 * MIB < before, "{} MiB before, {} MiB after", before / MIB, after / MIB);
        for file in (0..FILES).step_by(1000) {
            assert_eq!(fs.metadata(name(file)).unwrap().size, 0);
        }
        fs.close().unwrap();
    }
}
