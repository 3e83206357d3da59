//! In which order a rename locks the stripes of its names.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::time::{Duration, Instant};

use f2fs_sync::thread;

use super::*;
use crate::directory::Directory;
use crate::samples::formatted;
use crate::{FileSystem, Options};

/// Longer than any test waits.
const LIMIT: Duration = Duration::from_secs(30);

fn stripe<'a>(place: &Place<'a>) -> &'a RwLock<()> {
    let directory: &Directory = place.parent.directory().unwrap();
    directory.stripe(directory.stripe_of(place.name.hash()))
}

/// Whoever locks both places waits for `second` with `first` locked, whichever of them is which.
fn assert_order(fs: &FileSystem, first: Place<'_>, second: Place<'_>) {
    for (from, to) in [(first, second), (second, first)] {
        let held = stripe(&second).write();
        std::thread::scope(|scope| {
            let locker = scope.spawn(|| fs.namespace().lock_places(from, to).unwrap().len());
            let until = Instant::now() + LIMIT;
            while stripe(&first).try_write().is_some() {
                assert!(Instant::now() < until, "it waits for the second one without the first");
                thread::yield_now();
            }
            drop(held);
            assert_eq!(locker.join().unwrap(), 2);
        });
        assert!(stripe(&first).try_write().is_some() && stripe(&second).try_write().is_some());
    }
}

fn open() -> FileSystem {
    let device = formatted(32 * 1024);
    FileSystem::open(device, Options::new()).unwrap()
}

/// An ancestor comes before its descendants, though its number is higher.
#[test]
fn places_are_locked_in_one_order() {
    let fs = open();
    for path in ["/low", "/high", "/high/below"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    fs.rename("/low", "/high/below/low", RenameMode::Replace).unwrap();
    fs.create_dir("/other", 0o755).unwrap();
    let inode = |path: &str| fs.core.inode(fs.metadata(path).unwrap().ino).unwrap();
    let (low, high, below, other) = (inode("/high/below/low"), inode("/high"), inode("/high/below"), inode("/other"));
    assert!(low.ino < high.ino && high.ino < below.ino && below.ino < other.ino);
    let name = Name::new(b"name").unwrap();
    let place = |inode| Place::new(inode, name);
    for (first, second) in [(&high, &low), (&below, &low), (&high, &below), (&low, &other), (&high, &other)] {
        assert_order(&fs, place(first), place(second));
    }
}

/// In one directory the stripes have numbers; two names of one stripe are one lock.
#[test]
fn stripes_of_a_directory_are_locked_in_their_order() {
    let fs = open();
    let root = fs.namespace().root().unwrap();
    let directory = root.directory().unwrap();
    let names: Vec<String> = (0..100).map(|number| format!("{number}")).collect();
    let mut places: Vec<Place<'_>> =
        names.iter().map(|name| Place::new(&root, Name::new(name.as_bytes()).unwrap())).collect();
    places.sort_by_key(|place| directory.stripe_of(place.name.hash()));
    for pair in places.windows(2) {
        if directory.stripe_of(pair[0].name.hash()) == directory.stripe_of(pair[1].name.hash()) {
            assert_eq!(fs.namespace().lock_places(pair[0], pair[1]).unwrap().len(), 1);
        }
    }
    assert_order(&fs, places[0], places[99]);
}

/// Files need no order: nobody waits with one of the two locked.
#[test]
fn who_renames_files_waits_with_nothing_locked() {
    let fs = open();
    fs.create_dir("/a", 0o755).unwrap();
    fs.create_dir("/b", 0o755).unwrap();
    let inode = |path: &str| fs.core.inode(fs.metadata(path).unwrap().ino).unwrap();
    let (a, b, name) = (inode("/a"), inode("/b"), Name::new(b"name").unwrap());
    for (from, to) in [(&a, &b), (&b, &a)] {
        let (from, to) = (Place::new(from, name), Place::new(to, name));
        let held = stripe(&to).write();
        std::thread::scope(|scope| {
            let locker = scope.spawn(|| fs.namespace().lock_apart(from, to).unwrap().len());
            // Whether it has begun to wait or not.
            for _ in 0..100 {
                drop(stripe(&from).write());
                thread::yield_now();
            }
            drop(held);
            assert_eq!(locker.join().unwrap(), 2);
        });
    }
}

/// A tree may be as deep as there are directories. Only entries `..` that lead round are an error.
#[test]
fn deep_trees_are_climbed_and_circles_are_found_out() {
    const DEPTH: u64 = DEEP + 50;
    let fs = open();
    fs.create_dir("/aside", 0o755).unwrap();
    let mut bottom = fs.root().unwrap();
    let mut all = Vec::new();
    for _ in 0..DEPTH {
        let new = crate::NewFile::new(FileKind::Directory, 0o755);
        bottom = bottom.create("d", &new).unwrap();
        all.push(bottom.inode().clone());
    }
    let namespace = fs.namespace();
    let aside = fs.inode_at("/aside").unwrap();
    assert!(namespace.is_ancestor(&all[0], bottom.inode()).unwrap());
    assert!(namespace.is_ancestor(bottom.inode(), bottom.inode()).unwrap());
    assert!(!namespace.is_ancestor(bottom.inode(), &all[0]).unwrap());
    assert!(!namespace.is_ancestor(aside.inode(), bottom.inode()).unwrap());
    fs.root().unwrap().rename("aside", &bottom, "deep", RenameMode::NoReplace).unwrap();
    assert!(namespace.is_ancestor(&all[0], aside.inode()).unwrap());
    // The way up from the first one leads to one below it.
    fs.core.change(|op| namespace.redirect_entry(op, &all[0], Name::PARENT, all[5].ino, FileKind::Directory)).unwrap();
    let error = namespace.is_ancestor(&namespace.root().unwrap(), bottom.inode()).unwrap_err();
    assert!(error.is_corruption(), "{error}");
}

/// Nothing has changed then, and the volume goes on. In its own directory such a one gets another name.
#[test]
fn a_directory_without_an_entry_for_its_parent_is_not_moved() {
    let fs = open();
    for path in ["/a", "/b", "/b/there"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    fs.create_dir("/a/d", 0o755).unwrap();
    let inode = fs.core.inode(fs.metadata("/a/d").unwrap().ino).unwrap();
    {
        let op = fs.core.volume.begin().unwrap();
        fs.namespace().remove_entry(&op, &inode, Name::PARENT, None).unwrap();
    }
    for (to, mode) in
        [("/b/d", RenameMode::NoReplace), ("/b/there", RenameMode::Replace), ("/b/there", RenameMode::Exchange)]
    {
        let error = fs.rename("/a/d", to, mode).unwrap_err();
        assert!(error.is_corruption(), "{error}");
    }
    assert!(fs.core.volume.stopped().is_none());
    fs.rename("/a/d", "/a/e", RenameMode::NoReplace).unwrap();
    fs.rename("/a/e", "/a/d", RenameMode::Replace).unwrap();
    assert!(fs.metadata("/b/d").is_err() && fs.metadata("/b/there").is_ok());
    fs.checkpoint().unwrap();
}
