//! Attributes that are set are those that are read, now and from the device, and the others stay.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_files::{FileSystem, FsError, Metadata, Options, SetAttributes, SetTimes, Time};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

const fn time(seconds: i64) -> Time {
    Time { seconds, nanoseconds: 999_999_999 }
}

/// The clock stands still.
fn options() -> Options {
    Options::new().clock(|| time(1_000))
}

type Seen = (u16, u32, u32, Time, Time, Time);

fn seen(about: &Metadata) -> Seen {
    (about.permissions, about.uid, about.gid, about.accessed, about.modified, about.changed)
}

#[test]
fn each_attribute_is_set_by_itself() {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), options()).unwrap();
    fs.create_file("/f", 0o4755).unwrap();
    let file = fs.inode_at("/f").unwrap();
    let now = time(1_000);
    let mut last = (0o4755, 0, 0, now, now, now);
    assert_eq!(seen(&file.metadata().unwrap()), last);
    let none = SetAttributes::default();
    type Step = (SetAttributes, fn(&mut Seen));
    let steps: [Step; 7] = [
        (none.permissions(Some(0o2640)), |all| all.0 = 0o2640),
        (none.owner(Some(7), None), |all| all.1 = 7),
        (none.owner(None, Some(8)), |all| all.2 = 8),
        (none.times(Some(time(-5)), None), |all| all.3 = time(-5)),
        (none.times(None, Some(time(3))), |all| all.4 = time(3)),
        (none.changed(Some(time(4))), |all| all.5 = time(4)),
        (none, |all| all.5 = time(1_000)),
    ];
    for (attributes, change) in steps {
        file.set_attributes(&attributes).unwrap();
        change(&mut last);
        // Anything that is set changes the last one.
        last.5 = attributes.changed.unwrap_or(now);
        assert_eq!(seen(&file.metadata().unwrap()), last, "{attributes:?}");
    }
    // Bits that say what kind of file it is are none of its permissions.
    file.set_attributes(&none.permissions(Some(u16::MAX))).unwrap();
    last.0 = 0o7777;
    assert_eq!((seen(&file.metadata().unwrap()), file.metadata().unwrap().kind), (last, file.kind()));
    let bad = none.times(Some(Time { seconds: 0, nanoseconds: 1_000_000_000 }), None);
    assert!(matches!(file.set_attributes(&bad), Err(FsError::Time { .. })));
    drop(file);
    fs.close().unwrap();
    drop(fs);
    let fs = FileSystem::open(device, options()).unwrap();
    assert_eq!(seen(&fs.metadata("/f").unwrap()), last);
}

#[test]
fn by_its_path_as_well() {
    let fs = FileSystem::open(formatted(64, &FormatOptions::default()), options()).unwrap();
    fs.create_file("/f", 0o644).unwrap();
    fs.set_permissions("/f", 0o7077).unwrap();
    fs.set_owner("/f", Some(1), None).unwrap();
    fs.set_owner("/f", None, Some(2)).unwrap();
    fs.set_times("/f", SetTimes::new().accessed(time(1))).unwrap();
    fs.set_times("/f", SetTimes::new().modified(time(2))).unwrap();
    let expected = (0o7077, 1, 2, time(1), time(2), time(1_000));
    assert_eq!(seen(&fs.metadata("/f").unwrap()), expected);
}
