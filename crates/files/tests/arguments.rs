//! Arguments that no inode can hold: refused, by an error that names the fault, and nothing has changed.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::time::SystemTime;

use f2fs_files::{
    BadAttribute, DeviceNumber, FileKind, FileSystem, FsError, Metadata, NewFile, Options, SetMode, SetTimes, Time,
};
use f2fs_format::feature::Features;
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;
use rustix::io::Errno;

fn new_fs() -> (std::sync::Arc<f2fs_device::MemoryDevice>, FileSystem) {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_file("/file", 0o644).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    (device, fs)
}

fn close(fs: &FileSystem, device: &f2fs_device::MemoryDevice) {
    fs.close().unwrap();
    assert_clean(device);
}

#[test]
fn times() {
    let (device, fs) = new_fs();
    let before = fs.metadata("/file").unwrap();
    let whole = Time { seconds: 5, nanoseconds: 999_999_999 };
    for nanoseconds in [1_000_000_000, 1_000_000_001, u32::MAX] {
        let bad = Time { seconds: 5, nanoseconds };
        for times in [
            SetTimes::new().accessed(bad),
            SetTimes::new().modified(bad),
            SetTimes::new().accessed(whole).modified(bad),
            SetTimes::new().accessed(bad).modified(whole),
        ] {
            for path in ["/file", "/dir"] {
                let error = fs.set_times(path, times).unwrap_err();
                assert!(matches!(error, FsError::Time { nanoseconds: found } if found == nanoseconds), "{error}");
            }
        }
        assert_eq!(fs.metadata("/file").unwrap(), before);
    }
    fs.set_times("/file", SetTimes::new().accessed(whole).modified(whole)).unwrap();
    assert_eq!(fs.metadata("/file").unwrap().modified, whole);
    close(&fs, &device);
}

/// A clock cannot be told that it is wrong: what it says is taken as near as it can be.
#[test]
fn a_clock_with_too_many_nanoseconds() {
    let device = formatted(64, &FormatOptions::default());
    let clock = || Time { seconds: 7, nanoseconds: u32::MAX };
    let fs = FileSystem::open(device.clone(), Options::new().clock(clock)).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    fs.create_file("/dir/file", 0o644).unwrap().write_at(&[7; 9000], 0).unwrap();
    fs.set_permissions("/dir", 0o700).unwrap();
    close(&fs, &device);
    let nearest = Time { seconds: 7, nanoseconds: 999_999_999 };
    for path in ["/dir", "/dir/file"] {
        let Metadata { accessed, modified, changed, .. } = fs.metadata(path).unwrap();
        assert_eq!([accessed, modified, changed], [nearest; 3], "{path}");
    }
}

/// Whatever stands on a volume, the times of a file can be turned into the system's.
#[test]
fn times_on_the_volume() {
    for seconds in [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX - 4, i64::MAX] {
        for nanoseconds in [0, 999_999_999, 1_000_000_000, u32::MAX] {
            let time = Time { seconds, nanoseconds };
            let system = SystemTime::from(time);
            let back = Time::from(system);
            assert_eq!(back, Time { seconds, nanoseconds: nanoseconds.min(999_999_999) }, "{time:?}");
        }
    }
}

#[test]
fn device_numbers() {
    let (device, fs) = new_fs();
    for kind in [FileKind::BlockDevice, FileKind::CharDevice] {
        for (major, minor) in [(4096, 0), (0, 1 << 20), (u32::MAX, 0), (0, u32::MAX), (u32::MAX, u32::MAX)] {
            let error = fs.create("/device", &NewFile::new(kind, 0o600).device(major, minor)).unwrap_err();
            let FsError::DeviceNumber { major: found, minor: and } = error else { panic!("{error}") };
            assert_eq!((found, and), (major, minor));
            assert!(!fs.exists("/device").unwrap());
        }
        for (major, minor) in [(0, 0), (0, 1), (1, 0), (255, 255), (256, 0), (0, 256), (4095, (1 << 20) - 1)] {
            let stat = fs.create("/device", &NewFile::new(kind, 0o600).device(major, minor)).unwrap();
            assert_eq!(stat.device, Some(DeviceNumber { major, minor }));
            fs.remove_file("/device").unwrap();
        }
        // Without one it is 0:0, as mknod has it.
        let stat = fs.create("/device", &NewFile::new(kind, 0o600)).unwrap();
        assert_eq!(stat.device, Some(DeviceNumber { major: 0, minor: 0 }));
        fs.remove_file("/device").unwrap();
    }
    close(&fs, &device);
}

/// The number stands behind the attributes that an inode may have further.
#[test]
fn device_numbers_beside_extra_attributes() {
    let device = formatted(64, &FormatOptions::default().with_features(Features::EXTRA_ATTR));
    for (major, minor) in [(1, 3), (259, 70_000)] {
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let path = format!("/{major}");
        fs.create(&path, &NewFile::new(FileKind::BlockDevice, 0o600).device(major, minor)).unwrap();
        close(&fs, &device);
        drop(fs);
        let fs = FileSystem::open(device.clone(), Options::new().read_only(true)).unwrap();
        assert_eq!(fs.metadata(&path).unwrap().device, Some(DeviceNumber { major, minor }));
    }
}

/// Bits of a mode beside the permissions change nothing, as for chmod and mknod.
#[test]
fn modes() {
    let (device, fs) = new_fs();
    for mode in [0o7777, 0o170_000, 0o177_777, 0o040_755, u16::MAX] {
        for path in ["/file", "/dir"] {
            let kind = fs.metadata(path).unwrap().kind;
            fs.set_permissions(path, mode).unwrap();
            let stat = fs.metadata(path).unwrap();
            assert_eq!((stat.kind, stat.permissions), (kind, mode & 0o7777), "{path}");
        }
        let mut new = NewFile::new(FileKind::Fifo, 0);
        new.permissions = mode;
        let stat = fs.create("/pipe", &new).unwrap();
        assert_eq!((stat.kind, stat.permissions), (FileKind::Fifo, mode & 0o7777));
        fs.remove_file("/pipe").unwrap();
        drop(fs.create_file("/made", mode).unwrap());
        assert_eq!(fs.metadata("/made").unwrap().kind, FileKind::Regular);
        fs.remove_file("/made").unwrap();
    }
    close(&fs, &device);
}

/// Only the owner of what a symbolic link is made by counts, through a path and through a reference.
#[test]
fn a_link_is_a_link_whatever_its_maker_says() {
    let (device, fs) = new_fs();
    let new = NewFile::new(FileKind::BlockDevice, 0o4600).owner(7, 8).device(1, 3);
    fs.symlink(b"target", "/path", &new).unwrap();
    fs.root().unwrap().symlink(b"target", "reference", &new).unwrap();
    for link in ["/path", "/reference"] {
        let found = fs.symlink_metadata(link).unwrap();
        assert_eq!((found.kind, found.permissions), (FileKind::Symlink, 0o777), "{link}");
        assert_eq!((found.uid, found.gid, found.device), (7, 8, None), "{link}");
        assert_eq!(fs.read_link(link).unwrap(), b"target");
    }
    close(&fs, &device);
}

#[test]
fn link_targets() {
    let (device, fs) = new_fs();
    let link = NewFile::new(FileKind::Symlink, 0o777);
    let long = [b'x'; 4096];
    for (target, wrong) in [(&b""[..], "empty"), (&long, "long"), (b"a\0b", "zero"), (b"\0", "zero"), (b"a\0", "zero")]
    {
        let error = fs.symlink(target, "/link", &link).unwrap_err();
        assert!(matches!(error, FsError::LinkTarget { why, len, .. } if why.contains(wrong) && len == target.len()));
        assert!(!fs.exists("/link").unwrap());
    }
    assert!(matches!(fs.create("/link", &link), Err(FsError::WrongKind { .. })));
    fs.symlink(&long[1..], "/link", &link).unwrap();
    assert_eq!(fs.read_link("/link").unwrap(), long[1..]);
    close(&fs, &device);
}

#[test]
fn names_of_attributes() {
    let (device, fs) = new_fs();
    let long = ["user.", &"n".repeat(251)].concat();
    let longer = ["user.", &"n".repeat(100_000)].concat();
    for (name, wrong) in [
        (&b""[..], "prefix"),
        (b"user", "prefix"),
        (b"user.", "behind"),
        (b"security.", "behind"),
        (b".x", "prefix"),
        (b"unknown.x", "prefix"),
        (b"system.x", "prefix"),
        (b"system.posix_acl_access.x", "prefix"),
        (b"USER.x", "prefix"),
        (b"user.a\0b", "zero"),
        (b"user.a\0", "zero"),
        (b"trusted.\0", "zero"),
        (b"user\0.x", "zero"),
        (long.as_bytes(), "long"),
        (longer.as_bytes(), "long"),
    ] {
        let refused = |what: &str, result: Result<(), FsError>| match result {
            Err(FsError::Attribute { why, size, .. }) => {
                assert!(why.to_string().contains(wrong), "{what} {name:?}: {why}");
                assert_eq!(size, name.len(), "{what} {name:?}");
            }
            other => panic!("{what} {name:?}: {other:?}"),
        };
        for mode in [SetMode::Any, SetMode::Create, SetMode::Replace] {
            refused("set", fs.set_xattr("/file", name, b"value", mode));
        }
        refused("get", fs.xattr("/file", name).map(drop));
        refused("remove", fs.remove_xattr("/file", name));
    }
    assert_eq!(fs.xattrs("/file").unwrap(), []);
    let longest = ["user.", &"n".repeat(250)].concat();
    for name in [longest.as_bytes(), b"user.x", b"user.\xff\n", b"trusted.x", b"security.x", b"lustre.x"] {
        fs.set_xattr("/file", name, b"value", SetMode::Create).unwrap();
        assert_eq!(fs.xattr("/file", name).unwrap(), b"value");
    }
    assert_eq!(fs.xattrs("/file").unwrap().len(), 6);
    close(&fs, &device);
}

#[test]
fn values_of_attributes() {
    let (device, fs) = new_fs();
    fs.set_xattr("/file", "user.kept", b"value", SetMode::Any).unwrap();
    for len in [4300, 65_535, 65_536, 65_537, 1 << 20] {
        let error = fs.set_xattr("/file", "user.large", &vec![7; len], SetMode::Any).unwrap_err();
        let too_large = |error: &FsError| {
            assert_eq!(error.raw_os_error(), Errno::TOOBIG.raw_os_error(), "{error}");
            matches!(error, FsError::Attribute { why: BadAttribute::TooLarge, size, limit } if *size == len && *limit < len)
        };
        assert!(too_large(&error), "{error}");
        let error = fs.set_xattr("/file", "user.kept", &vec![7; len], SetMode::Any).unwrap_err();
        assert!(too_large(&error), "{error}");
    }
    // It would fit if the other one were not there.
    let error = fs.set_xattr("/file", "user.large", &[7; 4230], SetMode::Any).unwrap_err();
    assert_eq!(error.raw_os_error(), Errno::NOSPC.raw_os_error(), "{error}");
    fs.remove_xattr("/file", "user.kept").unwrap();
    fs.set_xattr("/file", "user.large", &[7; 4230], SetMode::Any).unwrap();
    fs.remove_xattr("/file", "user.large").unwrap();
    fs.set_xattr("/file", "user.kept", b"value", SetMode::Any).unwrap();
    fs.set_xattr("/file", "user.empty", b"", SetMode::Any).unwrap();
    assert_eq!(fs.xattr("/file", "user.empty").unwrap(), b"");
    assert_eq!(fs.xattr("/file", "user.kept").unwrap(), b"value");
    close(&fs, &device);
}

/// Access control lists are judged as the kernel does (`posix_acl_valid`).
#[test]
fn access_control_lists() {
    let (device, fs) = new_fs();
    const NONE: u32 = u32::MAX;
    let blob = |version: u32, entries: &[(u16, u16, u32)]| {
        let mut blob = version.to_le_bytes().to_vec();
        for (tag, permissions, id) in entries {
            blob.extend_from_slice(&tag.to_le_bytes());
            blob.extend_from_slice(&permissions.to_le_bytes());
            blob.extend_from_slice(&id.to_le_bytes());
        }
        blob
    };
    let (owner, user, group, named, mask, other) = (1, 2, 4, 8, 16, 32);
    let least = [(owner, 7, NONE), (group, 5, NONE), (other, 0, NONE)];
    let full = [
        (owner, 7, NONE),
        (user, 6, 1000),
        (user, 4, 1001),
        (group, 5, NONE),
        (named, 5, 50),
        (mask, 7, NONE),
        (other, 0, NONE),
    ];
    let without = |index: usize| {
        let mut part = full.to_vec();
        part.remove(index);
        part
    };
    let bad = [
        ("no entry", blob(2, &[])),
        ("nothing", Vec::new()),
        ("half a version", vec![2, 0]),
        ("another version", blob(1, &least)),
        ("a version to come", blob(3, &least)),
        ("half an entry", blob(2, &least)[..21].to_vec()),
        ("no owner", blob(2, &without(0))),
        ("no group", blob(2, &without(3))),
        ("no other", blob(2, &without(6))),
        ("no mask beside named ones", blob(2, &without(5))),
        ("two owners", blob(2, &[least[0], least[0], least[1], least[2]])),
        ("two masks", blob(2, &[least[0], least[1], (mask, 7, NONE), (mask, 7, NONE), least[2]])),
        ("two others", blob(2, &[least[0], least[1], least[2], least[2]])),
        ("out of order", blob(2, &[least[1], least[0], least[2]])),
        ("a user behind the group", blob(2, &[least[0], least[1], (user, 7, 5), (mask, 7, NONE), least[2]])),
        ("an unknown tag", blob(2, &[least[0], least[1], (64, 7, NONE), least[2]])),
        ("tag 0", blob(2, &[(0, 7, NONE), least[0], least[1], least[2]])),
        ("permissions above 7", blob(2, &[(owner, 8, NONE), least[1], least[2]])),
        ("all permissions", blob(2, &[least[0], least[1], (other, u16::MAX, NONE)])),
        ("a user without an id", blob(2, &[least[0], (user, 7, NONE), least[1], (mask, 7, NONE), least[2]])),
    ];
    for name in ["system.posix_acl_access", "system.posix_acl_default"] {
        for (what, value) in &bad {
            let error = fs.set_xattr("/dir", name, value, SetMode::Any).expect_err(what);
            assert!(matches!(error, FsError::Attribute { size, .. } if size == value.len()), "{what}: {error}");
        }
        for good in [&least[..], &full, &[least[0], least[1], (mask, 7, NONE), least[2]]] {
            fs.set_xattr("/dir", name, &blob(2, good), SetMode::Any).unwrap();
            assert_eq!(fs.xattr("/dir", name).unwrap(), blob(2, good));
        }
    }
    // Inherited attributes belong to directories, and a link has none of either.
    let link = NewFile::new(FileKind::Symlink, 0o777);
    fs.symlink(b"target", "/link", &link).unwrap();
    for (path, name) in [
        ("/file", "system.posix_acl_default"),
        ("/link", "system.posix_acl_default"),
        ("/link", "system.posix_acl_access"),
        ("/link", "user.x"),
    ] {
        let error = fs.set_xattr(path, name, &blob(2, &least), SetMode::Any).unwrap_err();
        assert!(matches!(error, FsError::WrongKind { .. }), "{path} {name}: {error}");
    }
    close(&fs, &device);
}

/// Labels and other texts of the superblock.
#[test]
fn texts_of_a_format() {
    let try_format = |options: &FormatOptions| {
        let device = f2fs_device::MemoryDevice::new(16 * 1024);
        f2fs_volume::format::format(&device, options).map(drop)
    };
    for label in ["a\0b", "\0", &"x".repeat(513), &"x".repeat(1 << 20)] {
        let error = try_format(&FormatOptions::default().with_label(label)).unwrap_err();
        assert!(error.to_string().contains("label"), "{error}");
    }
    try_format(&FormatOptions::default().with_label("x".repeat(512))).unwrap();
    for extension in ["", "a\0b", "12345678", &"x".repeat(1 << 20)] {
        for hot in [false, true] {
            let mut options = FormatOptions::default();
            let list = if hot { &mut options.hot_extensions } else { &mut options.cold_extensions };
            list.push(extension.into());
            assert!(try_format(&options).is_err(), "{extension:?}");
        }
    }
    for time in [1 << 63, u64::MAX] {
        let mut options = FormatOptions::default();
        options.time = Some(time);
        assert!(try_format(&options).is_err(), "{time}");
    }
}
