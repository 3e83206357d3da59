//! Room for what roll-forward brings back.

use super::*;

/// Two syncs of one file, the second of more data, where a file that is in the checkpoint was cut since: after a crash both
/// need their blocks. That there is no room for them is found at the second sync, which writes a checkpoint.
#[test]
fn a_file_that_was_synced_before_is_synced_with_more_than_there_is_room_for() {
    for mode in [JournalMode::Ordered, JournalMode::Journal, JournalMode::Writeback] {
        let (device, journal, fs) = start_in(mode);
        let big = fs.create_file("/big", 0o644).unwrap();
        big.append(&content(1, 14 << 20)).unwrap();
        let file = fs.create_file("/file", 0o644).unwrap();
        file.append(&content(2, 8192)).unwrap();
        fs.checkpoint().unwrap();
        file.write_at(&content(3, 8192), 0).unwrap();
        file.sync_all().unwrap();
        big.set_len(0).unwrap();
        let before = fs.stats().checkpoints;
        file.write_at(&content(4, 3 << 20), 0).unwrap();
        file.sync_all().unwrap();
        assert_eq!(fs.stats().checkpoints - before, 1, "{mode:?}: no room for both");
        drop((big, file, fs));
        let image = cut(&device);
        assert_consistent(&image);
        for read_only in [true, false] {
            let fs = FileSystem::open(image.clone(), with_mode(&copy(&journal), mode).read_only(read_only)).unwrap();
            assert!(read(&fs, "/file") == content(4, 3 << 20), "{mode:?}");
        }
    }
}
