//! Mounts of damaged volumes: what is whole is shown, and what is not is an error. These tests need root and
//! `/dev/fuse`; elsewhere they say that they were not run.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::collections::BTreeSet;
use std::fs;

use common::mounted::Mounted;
use rustix::io::Errno;

/// Where the name of an inode stands in its block.
const NAME: usize = 92;
const FILES: usize = 300;

/// A bad name among others, and a name whose inode is zeros: all names are listed but the bad one, which is an error at
/// the end.
#[test]
fn names_around_a_bad_one_are_listed() {
    let Some(mounted) = Mounted::new("names_around_a_bad_one_are_listed", &[]) else { return };
    fs::create_dir(mounted.path("d")).unwrap();
    for number in 0..FILES {
        fs::write(mounted.path(&format!("d/{number}")), number.to_string()).unwrap();
        if number == FILES / 3 {
            fs::write(mounted.path("d/no-good-name"), b"").unwrap();
            fs::write(mounted.path("d/no-good-inode"), b"").unwrap();
        }
    }
    mounted.umount();
    let mut image = fs::read(&mounted.image).unwrap();
    let (mut names, mut inodes) = (0, 0);
    for block in image.chunks_exact_mut(4096) {
        if block[NAME..].starts_with(b"no-good-inode") {
            block.fill(0);
            inodes += 1;
        } else if let Some(at) = block.windows(12).position(|bytes| bytes == b"no-good-name")
            && at != NAME
        {
            block[at + 2] = b'/';
            names += 1;
        }
    }
    assert_eq!((names, inodes), (1, 1));
    fs::write(&mounted.image, image).unwrap();

    mounted.mount(&["ro"]);
    for round in 0..2 {
        let (mut names, mut errors) = (BTreeSet::new(), Vec::new());
        for entry in fs::read_dir(mounted.path("d")).unwrap() {
            match entry {
                Ok(entry) => assert!(names.insert(entry.file_name().into_string().unwrap())),
                Err(error) => errors.push(error.raw_os_error()),
            }
        }
        assert_eq!(errors, [Some(Errno::UCLEAN.raw_os_error())], "round {round}");
        assert!(names.remove("no-good-inode"));
        let all: BTreeSet<String> = (0..FILES).map(|number| number.to_string()).collect();
        assert_eq!(names, all, "round {round}");
        let error = fs::metadata(mounted.path("d/no-good-inode")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::UCLEAN.raw_os_error()));
    }
    for number in 0..FILES {
        assert_eq!(fs::read_to_string(mounted.path(&format!("d/{number}"))).unwrap(), number.to_string());
    }
    mounted.umount();
}
