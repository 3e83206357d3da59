//! Listings in parts.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use super::*;
use crate::inode::Inode;
use crate::samples::formatted;
use crate::{FileSystem, Options};

/// A directory with so many names of all lengths.
fn directory(names: usize) -> (FileSystem, Arc<Inode>) {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    fs.create_file("/f", 0o644).unwrap();
    fs.create_dir("/d", 0o755).unwrap();
    (0..names).for_each(|n| fs.link("/f", format!("/d/{n:0>len$}", len = 1 + n * 7 % 200)).unwrap());
    let inode = fs.core.inode(fs.metadata("/d").unwrap().ino).unwrap();
    (fs, inode)
}

/// A part of a listing is what the whole has there: from each entry on, and from within one, however few are asked for.
#[test]
fn parts_of_a_listing_make_the_whole() {
    for names in [0, 3, 20, 400] {
        let (fs, inode) = directory(names);
        let list = |from, limit| inode.directory().unwrap().list(&fs.core.volume, from, limit).unwrap();
        let whole = list(0, usize::MAX);
        assert!(whole.bad.is_none() && whole.entries.len() == names + 2);
        assert_eq!((&whole.entries[0].name[..], &whole.entries[1].name[..]), (&b"."[..], &b".."[..]));
        assert!(whole.entries.is_sorted_by_key(|entry| entry.next));
        let starts = std::iter::once(0).chain(whole.entries.iter().map(|entry| entry.next));
        for (number, start) in starts.enumerate().step_by(1 + names / 40) {
            for limit in [1, 2, 3, 50] {
                let expected = whole.entries.iter().skip(number).take(limit).cloned().collect::<Vec<_>>();
                assert_eq!(list(start, limit).entries, expected, "{names} names, {number}, {limit}");
            }
            // A name that begins in front is not part of it.
            let Some(entry) = whole.entries.get(number) else { continue };
            assert_eq!(
                list(entry.next - 1, 1).entries.first(),
                match slots_of(entry) {
                    1 => Some(entry),
                    _ => whole.entries.get(number + 1),
                }
            );
        }
        assert_eq!(list(whole.entries[names + 1].next, 5).entries, []);
        assert_eq!(list(u64::MAX, 5).entries, []);
    }
}

fn slots_of(entry: &RawEntry) -> usize {
    entry.name.len().div_ceil(8)
}

#[test]
fn a_directory_is_empty_when_its_last_name_went() {
    for names in [1, 2, 400] {
        let (fs, inode) = directory(names);
        let is_empty = || inode.directory().unwrap().is_empty(&fs.core.volume).unwrap();
        for n in 0..names {
            assert!(!is_empty(), "{n} of {names} went");
            fs.remove_file(format!("/d/{n:0>len$}", len = 1 + n * 7 % 200)).unwrap();
        }
        assert!(is_empty());
        fs.remove_dir("/d").unwrap();
    }
}

/// Two names with one hash are two names, and so is one that is there and one that is not.
#[test]
fn names_with_the_same_hash_are_told_apart() {
    let mut seen = std::collections::HashMap::new();
    let (one, two) = (0..)
        .find_map(|number: u32| {
            let name = format!("{number:x}");
            let other = seen.insert(f2fs_format::hash::dentry_hash(name.as_bytes()), name.clone())?;
            Some((other, name))
        })
        .unwrap();
    for names in [0, 400] {
        let (fs, _inode) = directory(names);
        let (one, two) = (format!("/d/{one}"), format!("/d/{two}"));
        let is_there = |path: &str| fs.exists(path).unwrap();
        for (first, second) in [(&one, &two), (&two, &one)] {
            fs.create_file(first, 0o644).unwrap();
            assert!(is_there(first) && !is_there(second));
            assert!(fs.remove_file(second).is_err());
            fs.create_file(second, 0o644).unwrap();
            assert_ne!(fs.metadata(first).unwrap().ino, fs.metadata(second).unwrap().ino);
            fs.remove_file(first).unwrap();
            assert!(!is_there(first) && is_there(second));
            fs.remove_file(second).unwrap();
            assert!(!is_there(first) && !is_there(second));
        }
    }
}
