//! Appends and allocations are whole or nothing.

use f2fs_files::{AllocateFlags, FileSystem};
use f2fs_volume::format::FormatOptions;

use crate::fill::{LIMIT, content, fill, numbers, open};
use f2fs_test_kit::volumes::{assert_clean, formatted, within};

/// An append that does not fit leaves the file as it was: its caller cannot know how much of it there would be.
#[test]
fn an_append_is_whole_or_nothing() {
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device);
        let file = fs.create_file("/log", 0o644).unwrap();
        let line = content(1, 3 << 20);
        let mut size = 0;
        let error = loop {
            match file.append(&line) {
                Ok(offset) => {
                    assert_eq!(offset, size);
                    size += line.len() as u64;
                }
                Err(error) => break error,
            }
        };
        numbers(&error);
        assert_eq!(file.size(), size);
        file.append(b"short").unwrap();
        drop(file);
        fs.close().unwrap();
        assert_clean(&device);
    });
}

/// A name, and what a file holds before.
type Begin<'a> = (&'a str, &'a dyn Fn(&f2fs_files::File));

/// An allocation that does not fit leaves the file, and the room for others, as they were.
#[test]
fn an_allocation_is_whole_or_nothing() {
    const MIB: u64 = 1 << 20;
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device);
        let left = |fs: &FileSystem| {
            let stat = fs.statfs();
            stat.user_blocks - stat.valid_blocks
        };
        // Blocks that the file has, reserved behind its end, and in the middle of what is asked for.
        let begin: [Begin<'_>; 6] = [
            ("empty", &|_| {}),
            ("inline", &|file| assert_eq!(file.write_at(b"inline", 0).unwrap(), 6)),
            ("blocks", &|file| assert_eq!(file.write_at(&content(1, 50_000), 0).unwrap(), 50_000)),
            ("holes", &|file| {
                for at in [0, 3 * MIB, 5 * MIB + 4096, 30 * MIB] {
                    assert_eq!(file.write_at(&content(at, 9000), at).unwrap(), 9000);
                }
            }),
            ("reserved behind the end", &|file| {
                file.write_at(&content(1, 50_000), 0).unwrap();
                file.allocate(4 * MIB, 2 * MIB, AllocateFlags::KEEP_SIZE).unwrap();
            }),
            ("reserved and holes", &|file| {
                file.allocate(MIB, MIB, AllocateFlags::NONE).unwrap();
                file.write_at(&content(8, 9000), 8 * MIB).unwrap();
                file.allocate(20 * MIB, MIB / 2, AllocateFlags::KEEP_SIZE).unwrap();
            }),
        ];
        for room in [0, 1, 3, 700, 3000] {
            for (name, begin) in &begin {
                let what = format!("{name}, room for {room} blocks");
                let file = fs.create_file("/file", 0o644).unwrap();
                begin(&file);
                // All but so much of the volume is in use.
                let filler = fs.create_file("/filler", 0o644).unwrap();
                while left(&fs) > room {
                    let wanted = (left(&fs) - room) * 4096;
                    let len = wanted.clamp(4096, MIB) as usize;
                    filler.append(&vec![7; len]).or_else(|_| filler.append(&[7; 4096])).unwrap();
                }
                fs.checkpoint().unwrap();
                let (before, size) = (file.metadata().unwrap(), file.size());
                let mut whole = vec![0; 40 << 20];
                let len = file.read_at(&mut whole, 0).unwrap();
                whole.truncate(len);
                let free = left(&fs);
                for keep_size in [false, true] {
                    for (offset, len) in [
                        (0, 1 << 30),
                        (4096 * 5 + 17, 1 << 30),
                        (2 * MIB, 1 << 40),
                        // Room for the blocks, and not for the nodes.
                        (100 * MIB, free * 4096),
                        (0, (free + before.blocks) * 4096),
                        (0, (free + 1) * 4096 + 5 * MIB),
                    ] {
                        if len == 0 {
                            continue;
                        }
                        let what = format!("{what}, {len} from {offset}, {keep_size}");
                        let error =
                            file.allocate(offset, len, AllocateFlags::NONE.keep_size(keep_size)).expect_err(&what);
                        numbers(&error);
                        assert_eq!((left(&fs), file.size()), (free, size), "{what}");
                        let after = file.metadata().unwrap();
                        assert_eq!((after.blocks, after.modified), (before.blocks, before.modified), "{what}");
                        let mut again = vec![0; whole.len() + 1];
                        let len = file.read_at(&mut again, 0).unwrap();
                        assert!(again[..len] == whole[..], "{what}");
                    }
                }
                fs.checkpoint().unwrap();
                assert_clean(&device);
                // An allocation that fits is granted.
                drop(filler);
                fs.remove_file("/filler").unwrap();
                file.allocate(0, 10 * MIB, AllocateFlags::NONE).unwrap();
                drop(file);
                fs.remove_file("/file").unwrap();
            }
        }
        fs.close().unwrap();
        assert_clean(&device);
    });
}

/// Data in the inode of a file needs a block if the range begins behind it, and one of the range's if not.
#[test]
fn an_allocation_counts_the_block_of_inline_data() {
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device);
        let file = fs.create_file("/inline", 0o644).unwrap();
        file.write_at(b"inline", 0).unwrap();
        let large = fs.create_file("/large", 0o644).unwrap();
        large.write_at(&content(1, 40_960), 0).unwrap();
        numbers(&fill(&fs, "/full", |_| 1 << 20).1);
        while fs.create_file(format!("/full/last-{}", fs.statfs().valid_inodes), 0o600).is_ok() {}
        large.set_len(4096 * 8).unwrap();
        assert_eq!(numbers(&file.allocate(4096, 2 * 4096, AllocateFlags::NONE).unwrap_err()), (3, 2));
        assert_eq!(numbers(&file.allocate(0, 3 * 4096, AllocateFlags::NONE).unwrap_err()), (3, 2));
        file.allocate(0, 2 * 4096, AllocateFlags::NONE).unwrap();
        drop((file, large));
        fs.close().unwrap();
        assert_clean(&device);
    });
}
