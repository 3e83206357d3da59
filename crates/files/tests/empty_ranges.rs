//! Ranges of no bytes are refused, whatever is to be done with them.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_files::{AllocateFlags, FileSystem, FsError, Options};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

#[test]
fn an_empty_range_is_invalid_and_changes_nothing() {
    let fs = FileSystem::open(formatted(64, &FormatOptions::default()), Options::new()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    for content in [&b"inline"[..], &[7; 10_000]] {
        file.write_at(content, 0).unwrap();
        let before = file.metadata().unwrap();
        for offset in [0, 5, 4096, 1 << 20, u64::MAX] {
            for flags in [
                AllocateFlags::NONE,
                AllocateFlags::KEEP_SIZE,
                AllocateFlags::PUNCH_HOLE | AllocateFlags::KEEP_SIZE,
                AllocateFlags::ZERO_RANGE,
                AllocateFlags::ZERO_RANGE | AllocateFlags::KEEP_SIZE,
            ] {
                let error = file.allocate(offset, 0, flags).unwrap_err();
                assert!(matches!(error, FsError::Invalid(_)), "{flags:?} at {offset}: {error}");
            }
        }
        assert_eq!(file.metadata().unwrap(), before);
    }
}
