//! No NID is left.

use f2fs_files::{AllocateFlags, FileSystem, FsError, Options};
use f2fs_volume::VolumeError;
use f2fs_volume::format::FormatOptions;

use crate::fill::{LIMIT, content};
use f2fs_test_kit::volumes::{assert_clean, formatted, within};

/// All NIDs in use: what needs one is refused, everything else goes on, and a deletion makes room for one file more.
#[test]
fn no_nid_is_left() {
    use f2fs_files::{FileKind, NewFile, RenameMode, SetMode};
    within(LIMIT, || {
        for policy in ["sharded", "kernel-scan", "clue"] {
            let device = formatted(64, &FormatOptions::default());
            let volume = f2fs_volume::VolumeOptions::new().nid_policy(policy.parse().unwrap());
            let fs = FileSystem::open(device.clone(), Options::new().volume(volume)).unwrap();
            let empty = fs.statfs();
            fs.create_dir("/dir", 0o755).unwrap();
            for name in 0..20 {
                let file = fs.create_file(format!("/dir/{name}"), 0o644).unwrap();
                file.write_at(&content(name, 100 + name as usize * 3000), 0).unwrap();
            }
            let large = fs.create_file("/large", 0o644).unwrap();
            large.write_at(&content(99, 8 << 20), 0).unwrap();
            let held_open = fs.create_file("/held open", 0o644).unwrap();
            held_open.write_at(&content(98, 6 << 20), 0).unwrap();
            fs.link("/large", "/second").unwrap();
            fs.checkpoint().unwrap();
            let held = fs.hold_nids(0).unwrap();
            assert!(held > 1000, "{policy}: {held}");

            let refused = |error: FsError| match error {
                FsError::NoSpace(cause) => assert!(matches!(*cause, VolumeError::NoNids { .. }), "{cause}"),
                other => panic!("{policy}: {other}"),
            };
            for _ in 0..3 {
                refused(fs.create_file("/new", 0o644).unwrap_err());
                refused(fs.create_dir("/new", 0o755).unwrap_err());
                refused(fs.create("/new", &NewFile::new(FileKind::Fifo, 0o600)).unwrap_err());
                refused(fs.symlink(b"x", "/new", &NewFile::new(FileKind::Symlink, 0o777)).unwrap_err());
                refused(fs.set_xattr("/dir/1", "user.large", &[7; 3000], SetMode::Any).unwrap_err());
                refused(large.write_at(b"needs a node", 40 << 20).unwrap_err());
                assert!(large.allocate(40 << 20, 1 << 20, AllocateFlags::NONE).unwrap_err().is_no_space());
                fs.checkpoint().unwrap();
            }
            assert!(!fs.exists("/new").unwrap());
            assert_eq!(large.size(), 8 << 20);
            // Operations that need no node go on.
            large.write_at(&content(97, 1 << 20), 1 << 20).unwrap();
            fs.link("/large", "/third").unwrap();
            fs.rename("/dir/0", "/renamed", RenameMode::Replace).unwrap();
            fs.set_xattr("/dir/1", "user.small", b"fits", SetMode::Any).unwrap();
            fs.set_permissions("/dir/1", 0o600).unwrap();
            fs.open_file("/dir/1").unwrap().sync_all().unwrap();
            fs.checkpoint().unwrap();
            assert_clean(&device);
            // And so does what gives nodes back.
            fs.remove_file("/third").unwrap();
            fs.remove_file("/second").unwrap();
            large.set_len(100).unwrap();
            fs.remove_file("/held open").unwrap();
            drop(held_open);
            for name in 1..10 {
                fs.remove_file(format!("/dir/{name}")).unwrap();
            }
            fs.checkpoint().unwrap();
            assert_clean(&device);
            // A NID is free again when the checkpoint has that it is not in use.
            let mut made = 0;
            let error = loop {
                match fs.create_file(format!("/made-{made}"), 0o644) {
                    Ok(_) => made += 1,
                    Err(error) => break error,
                }
            };
            refused(error);
            assert!(made >= 9, "{policy}: {made} files for as many that were deleted");
            drop(large);
            for path in ["/large", "/renamed", "/dir"] {
                fs.remove_all(path).unwrap();
            }
            for number in 0..made {
                fs.remove_file(format!("/made-{number}")).unwrap();
            }
            fs.close().unwrap();
            assert_clean(&device);
            assert_eq!(fs.statfs().valid_blocks, empty.valid_blocks, "{policy}");
        }
    });
}
