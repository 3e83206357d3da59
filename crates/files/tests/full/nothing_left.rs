//! No block is left.

use std::num::NonZeroUsize;

use f2fs_files::{FileSystem, Options};
use f2fs_volume::format::FormatOptions;

use crate::fill::{LIMIT, content, fill, numbers, open};
use f2fs_test_kit::volumes::{assert_clean, formatted, within};

/// No block is left at all: everything that gives some back works, in any order, with a checkpoint or without one
/// between.
#[test]
fn what_gives_room_needs_none() {
    use f2fs_files::RenameMode;
    within(LIMIT, || {
        for checkpoints in [true, false] {
            let device = formatted(64, &FormatOptions::default());
            let fs = open(&device);
            let empty = fs.statfs().valid_blocks;
            fs.create_dir("/dir", 0o755).unwrap();
            for name in 0..200 {
                fs.create_file(format!("/dir/{name}"), 0o644).unwrap().write_at(&content(name, 20_000), 0).unwrap();
            }
            let sparse = fs.create_file("/sparse", 0o644).unwrap();
            for at in 0..60 {
                sparse.write_at(b"far apart", at << 24).unwrap();
            }
            fs.create_dir("/empty", 0o755).unwrap();
            let (sizes, error) = fill(&fs, "/full", |_| 1 << 20);
            numbers(&error);
            let mut last = 0;
            while fs.create_file(format!("/full/last-{last}"), 0o600).is_ok() {
                last += 1;
            }
            let stat = fs.statfs();
            assert_eq!(stat.valid_blocks, stat.user_blocks);
            let step = || {
                if checkpoints {
                    fs.checkpoint().unwrap();
                }
            };
            let open_one = fs.open_file("/full/0").unwrap();
            step();
            fs.remove_file("/full/0").unwrap(); // an orphan, with all its blocks
            step();
            sparse.set_len(1 << 24).unwrap(); // rewrites the block of the new end
            step();
            fs.open_file("/dir/0").unwrap().set_len(5000).unwrap();
            step();
            fs.rename("/dir/1", "/dir/2", RenameMode::Replace).unwrap();
            step();
            fs.remove_dir("/empty").unwrap();
            step();
            sparse.set_len(0).unwrap();
            fs.open_file("/dir/3").unwrap().set_len(0).unwrap();
            step();
            drop(open_one);
            fs.remove_all("/dir").unwrap();
            step();
            assert!(!sizes.is_empty());
            fs.remove_all("/full").unwrap();
            drop(sparse);
            fs.remove_file("/sparse").unwrap();
            fs.close().unwrap();
            assert_clean(&device);
            assert_eq!(fs.statfs().valid_blocks, empty);
        }
    });
}

/// Nothing fits any more, not even an inode, a name or an attribute.
#[test]
fn directories_links_and_attributes_at_full() {
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let small = f2fs_volume::VolumeOptions::new().node_cache(NonZeroUsize::new(512).unwrap());
        let fs = FileSystem::open(device.clone(), Options::new().volume(small)).unwrap();
        let (sizes, error) = fill(&fs, "/full", |_| 3 << 20);
        numbers(&error);
        // The rest goes to inodes.
        let mut made = 0;
        let error = loop {
            match fs.create_file(format!("/full/last-{made}"), 0o600) {
                Ok(_) => made += 1,
                Err(error) => break error,
            }
        };
        numbers(&error);
        numbers(&fs.create_dir("/full/dir", 0o700).unwrap_err());
        let link = f2fs_files::NewFile::new(f2fs_files::FileKind::Symlink, 0o777);
        numbers(&fs.symlink(b"target", "/full/link", &link).unwrap_err());
        let value = vec![7; 3000];
        numbers(&fs.set_xattr("/full", "user.large", &value, f2fs_files::SetMode::Any).unwrap_err());
        // Operations that need no block work.
        fs.set_xattr("/full", "user.small", b"fits", f2fs_files::SetMode::Any).unwrap();
        fs.set_permissions("/full/0", 0o400).unwrap();
        fs.rename("/full/0", "/full/renamed", f2fs_files::RenameMode::Replace).unwrap();
        fs.checkpoint().unwrap();
        assert_clean(&device);
        assert!(!sizes.is_empty());
        fs.open_file("/full/renamed").unwrap().set_len(100).unwrap();
        fs.create_dir("/full/dir", 0o700).unwrap();
        fs.set_xattr("/full", "user.large", &value, f2fs_files::SetMode::Any).unwrap();
        fs.close().unwrap();
        assert_clean(&device);
    });
}

/// One block is left: the inode of a symbolic link takes it, and its target finds none. The inode goes as well.
#[test]
fn a_link_whose_target_does_not_fit_leaves_no_inode() {
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device);
        let large = fs.create_file("/large", 0o644).unwrap();
        large.write_at(&content(1, 40_960), 0).unwrap();
        numbers(&fill(&fs, "/full", |_| 1 << 20).1);
        while fs.create_file(format!("/full/last-{}", fs.statfs().valid_inodes), 0o600).is_ok() {}
        large.set_len(40_960 - 4096).unwrap();
        let before = fs.statfs();
        assert_eq!(before.user_blocks - before.valid_blocks, 1);
        let link = f2fs_files::NewFile::new(f2fs_files::FileKind::Symlink, 0o777);
        numbers(&fs.symlink("/t".repeat(2000).as_bytes(), "/link", &link).unwrap_err());
        let after = fs.statfs();
        assert_eq!((after.valid_inodes, after.valid_blocks), (before.valid_inodes, before.valid_blocks));
        fs.symlink(b"/short", "/link", &link).unwrap();
        fs.close().unwrap();
        assert_clean(&device);
    });
}
