//! What operations do for the volume before they begin.

use f2fs_files::{AllocateFlags, File, FsError, Options, Temperature, WriteSlice};
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::FormatOptions;

use crate::{STRIDE, open};

/// Whatever a program does to files, and that alone: dirty nodes do not grow without end.
#[test]
fn whoever_changes_a_file_writes_the_checkpoint_that_is_due() {
    type Change = fn(&File) -> Result<(), FsError>;
    let changes: [(&str, Change); 10] = [
        ("a write", |file| file.write_at(b"x", 0).map(drop)),
        ("an append", |file| file.append(b"x").map(drop)),
        ("a durable write", |file| file.write_durable(b"x", 0).map(drop)),
        ("many writes", |file| file.write_many(4, &mut [WriteSlice::new(0, b"x"), WriteSlice::new(9000, b"y")])),
        ("a cut", |file| file.set_len(5000)),
        ("an allocation", |file| file.allocate(0, 4096, AllocateFlags::NONE)),
        ("zeros", |file| file.zero_range(0, 10)),
        ("a hole", |file| file.punch_hole(0, 4096)),
        ("a mark", |file| file.set_temperature(Temperature::Cold)),
        ("a sync", File::sync_all),
    ];
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new().volume(VolumeOptions::new().dirty_nodes(10)));
    let checkpoints = || fs.statfs().written.checkpoints;
    let spread = fs.create_file("/spread", 0o644).unwrap();
    for (what, change) in changes {
        let file = fs.create_file(format!("/{what}"), 0o644).unwrap();
        file.write_at(&[1; 20_000], 0).unwrap();
        file.sync_all().unwrap();
        // A thread that goes to another processor meanwhile may see few dirty nodes there.
        let written = (0..20).any(|_| {
            let mut writes: Vec<_> = (0..60).map(|number| WriteSlice::new(number * STRIDE, b"x")).collect();
            spread.write_many(64, &mut writes).unwrap();
            let before = checkpoints();
            change(&file).unwrap();
            checkpoints() > before
        });
        assert!(written, "{what} leaves it to others");
    }
    drop(spread);
    fs.close().unwrap();
    assert_clean(&device);
}
