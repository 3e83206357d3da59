//! The locks of files that nobody has open do not fill the memory, whatever their sizes.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_files::{FileSystem, Options};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

const FILES: usize = 200;
const FAR: u64 = 4_200_000_000_000;
const MIB: i64 = 1 << 20;

/// Bytes that `body` leaves allocated.
fn left(body: impl FnOnce()) -> i64 {
    allocation_counter::measure(body).bytes_current
}

fn sparse(limit: u64) -> FileSystem {
    let fs = FileSystem::open(formatted(64, &FormatOptions::default()), Options::new().lock_memory(limit)).unwrap();
    for number in 0..FILES {
        fs.create_file(format!("/{number}"), 0o644).unwrap().set_len(FAR + 4096).unwrap();
    }
    fs
}

fn read_far(fs: &FileSystem, number: usize) {
    let mut bytes = [1; 4096];
    assert_eq!(fs.open_file(format!("/{number}")).unwrap().read_at(&mut bytes, FAR).unwrap(), 4096);
    assert!(bytes == [0; 4096]);
}

#[test]
fn files_that_were_read_far_behind_leave_memory() {
    let few = sparse(1 << 20);
    let kept = left(|| (0..FILES).for_each(|number| read_far(&few, number)));
    assert!(kept < 3 * MIB, "{kept} bytes");
    // Without a limit to speak of, each keeps what one block took: the rest of the terabytes has no place.
    let many = sparse(u64::MAX);
    let kept = left(|| (0..FILES).for_each(|number| read_far(&many, number)));
    assert!((FILES as i64 * 40_000..FILES as i64 * 80_000).contains(&kept), "{kept} bytes");
}

/// Files that processors keep open, after somebody had each of them open twice.
#[test]
fn files_that_are_kept_open_leave_memory() {
    let fs = sparse(1 << 20);
    let kept = left(|| {
        (0..FILES).for_each(|number| {
            let other = fs.open_file(format!("/{number}")).unwrap();
            read_far(&fs, number);
            drop(other);
        });
    });
    assert!(kept < 3 * MIB, "{kept} bytes");
}

#[test]
fn a_file_that_is_open_keeps_its_locks_and_gives_them_back_later() {
    let fs = sparse(0);
    let kept = left(|| {
        let open = fs.open_file("/0").unwrap();
        // Listed by the close of another handle, and asked to go by those that follow, in vain.
        (0..3).for_each(|_| (0..4).for_each(|number| read_far(&fs, number)));
        open.write_at(&[7; 4096], FAR).unwrap();
        drop(open);
        (1..4).for_each(|number| read_far(&fs, number));
    });
    assert!(kept < MIB, "{kept} bytes");
    let mut bytes = [0; 4096];
    fs.open_file("/0").unwrap().read_at(&mut bytes, FAR).unwrap();
    assert!(bytes == [7; 4096]);
}
