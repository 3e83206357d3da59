//! Models of directories: names that come while their directory goes, dentry blocks that become empty, are read,
//! changed, dropped from memory and written back beside each other. A directory has two stripes and its map of pages
//! two shards.
//!
//! ```text
//! mutant: create_without_its_stripe, killed by: two_make_one_name
//! mutant: look_up_without_its_stripe, killed by: a_name_comes_while_its_stripe_learns
//! mutant: create_in_a_dead_directory, killed by: a_file_is_made_while_its_directory_goes
//! mutant: link_in_a_dead_directory, killed by: a_link_is_made_while_its_directory_goes
//! mutant: rename_into_a_dead_directory, killed by: a_file_moves_while_its_directory_goes
//! mutant: rmdir_moves_stamp, killed by: a_directory_is_looked_up_while_another_takes_its_place
//! mutant: rename_moves_stamp, killed by: a_directory_is_looked_up_while_it_moves
//! mutant: page_dead_and_filled, killed by: the_last_name_of_a_block_goes_while_another_comes
//! mutant: page_freed_and_not_dead, killed by: the_last_name_of_a_block_goes_while_another_comes
//! mutant: page_taken_at_first_sight, killed by: a_block_is_read_while_its_last_name_goes
//! mutant: directory_drops_pages_in_use, killed by: a_name_comes_while_blocks_leave_memory
//! mutant: directory_queued_until_written, killed by: a_name_comes_while_its_directory_is_written_ahead
//! ```
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod loom_common;

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use f2fs_files::{FileKind, FileSystem, FsError, NewFile, RenameMode};
use f2fs_format::hash::dentry_hash;
use f2fs_sync::{Arc, model};
use f2fs_volume::VolumeOptions;
use f2fs_volume::models::Image;
use loom_common::{Small, image, names, options};

/// After so many searches a stripe of a directory of two blocks reads its names.
const SEARCHES: u32 = 10;

/// Names so long that eight of them fill an inode, or with another one a block up to 4 slots.
fn filler(number: u32) -> String {
    format!("{number}-{}", "long".repeat(50))
}

/// A name of 5 slots in a stripe: it does not fit beside eight fillers.
fn of_stripe(stripe: u32) -> String {
    let names = (0..).map(|number| format!("{}{number:04}", "name".repeat(9)));
    names.into_iter().find(|name| dentry_hash(name.as_bytes()) % 2 == stripe).unwrap()
}

/// Makes a file in `/d`.
fn make(fs: &FileSystem, name: &str) {
    drop(fs.create_file(format!("/d/{name}"), 0o644).unwrap());
}

fn remove(fs: &FileSystem, name: &str) {
    fs.remove_file(format!("/d/{name}")).unwrap();
}

/// `/a`, an empty `/e`, and `/d`: so many fillers there are links to `/a`, and beside eight there is a file in stripe 0.
fn filled(fillers: u32) -> Image {
    image(move |fs| {
        fs.create_file("/a", 0o644).unwrap().write_at(b"/a", 0).unwrap();
        for dir in ["/d", "/e"] {
            fs.create_dir(dir, 0o755).unwrap();
        }
        for number in 0..fillers {
            fs.link("/a", format!("/d/{}", filler(number))).unwrap();
        }
        if fillers == 8 {
            make(fs, &of_stripe(0));
            // Two blocks.
            assert_eq!(fs.metadata("/d").unwrap().size, 2 * 4096);
        }
    })
}

/// With a second block in `/d`, in which one name stands alone.
fn two_blocks() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| filled(8))
}

/// With an inode of `/d` that has no room for another name.
fn full_inode() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| filled(7))
}

/// Runs `one` beside `other`, and looks at what is left.
fn beside(
    (name, preemptions): (&str, usize),
    image: fn() -> &'static Image,
    before: fn(&FileSystem),
    one: fn(&FileSystem),
    other: fn(&FileSystem),
    after: fn(Small),
) {
    image();
    let setup = move || {
        let small = Small::open(image());
        before(&small.fs);
        small
    };
    model::large(name, preemptions, setup, move |small| {
        let fs = Arc::clone(&small.fs);
        let thread = model::spawn(move || one(&fs));
        other(&small.fs);
        thread.join().unwrap();
        model::judge();
        after(small);
    });
}

/// In `/d` are so many fillers and the files of these stripes, now and when the volume is opened again.
fn assert_names(small: Small, fillers: u32, stripes: &[u32]) {
    let files: Vec<_> = stripes.iter().map(|stripe| of_stripe(*stripe)).collect();
    let mut wanted: Vec<_> = (0..fillers).map(filler).chain(files.clone()).collect();
    wanted.sort();
    let check = |small: &Small| {
        assert_eq!(names(&small.fs, "/d"), wanted);
        for name in &wanted {
            assert_eq!(small.fs.metadata(format!("/d/{name}")).unwrap().size, if files.contains(name) { 0 } else { 2 });
        }
    };
    check(&small);
    let small = small.again();
    check(&small);
    wanted.iter().for_each(|name| remove(&small.fs, name));
    small.fs.remove_dir("/d").unwrap();
    assert_eq!(small.fs.metadata("/a").unwrap().links, 1);
    assert_eq!(names(&small.again().fs, "/"), ["a", "e"]);
}

#[test]
fn two_make_one_name() {
    two_blocks();
    model::large(
        "two_make_one_name",
        2,
        || Small::open(two_blocks()),
        |small| {
            let fs = Arc::clone(&small.fs);
            let thread = model::spawn(move || fs.create_file("/e/x", 0o644).map(drop));
            let mine = small.fs.create_file("/e/x", 0o644).map(drop);
            let made = (mine, thread.join().unwrap());
            model::judge();
            assert!(matches!(made, (Ok(()), Err(FsError::Exists)) | (Err(FsError::Exists), Ok(()))), "{made:?}");
            assert_eq!(names(&small.again().fs, "/e"), ["x"]);
        },
    );
}

/// Makes something in `/e` while the directory is removed: one of the two comes too late.
fn in_a_directory_that_goes(name: &str, make: fn(&FileSystem) -> Result<(), FsError>) {
    two_blocks();
    model::large(
        name,
        2,
        || Small::open(two_blocks()),
        move |small| {
            let fs = Arc::clone(&small.fs);
            let thread = model::spawn(move || fs.remove_dir("/e"));
            let made = make(&small.fs);
            let removed = thread.join().unwrap();
            model::judge();
            match (made, removed) {
                (Ok(()), Err(FsError::NotEmpty)) => assert_eq!(names(&small.again().fs, "/e"), ["x"]),
                (Err(FsError::NotFound), Ok(())) => {
                    let small = small.again();
                    assert!(!small.fs.exists("/e").unwrap() && small.fs.exists("/a").unwrap());
                    assert_eq!(small.fs.metadata("/a").unwrap().links, 9);
                }
                other => panic!("{other:?}"),
            }
        },
    );
}

#[test]
fn a_file_is_made_while_its_directory_goes() {
    in_a_directory_that_goes("a_file_is_made_while_its_directory_goes", |fs| fs.create_file("/e/x", 0o644).map(drop));
}

#[test]
fn a_directory_is_made_while_its_directory_goes() {
    in_a_directory_that_goes("a_directory_is_made_while_its_directory_goes", |fs| {
        fs.create_dir("/e/x", 0o755).map(drop)
    });
}

#[test]
fn a_link_is_made_while_its_directory_goes() {
    in_a_directory_that_goes("a_link_is_made_while_its_directory_goes", |fs| fs.link("/a", "/e/x"));
}

#[test]
fn a_file_moves_while_its_directory_goes() {
    in_a_directory_that_goes("a_file_moves_while_its_directory_goes", |fs| {
        fs.rename("/a", "/e/x", RenameMode::NoReplace).inspect_err(|_| assert!(fs.exists("/a").unwrap()))
    });
}

#[test]
fn a_directory_is_looked_up_while_another_takes_its_place() {
    beside(
        ("a_directory_is_looked_up_while_another_takes_its_place", 2),
        two_blocks,
        |fs| assert!(!fs.exists("/e/x").unwrap()),
        |fs| {
            fs.remove_dir("/e").unwrap();
            fs.create_dir("/e", 0o755).unwrap();
        },
        |fs| assert!(!fs.exists("/e/x").unwrap()),
        |small| {
            drop(small.fs.create_file("/e/x", 0o644).unwrap());
            assert_eq!(names(&small.again().fs, "/e"), ["x"]);
        },
    );
}

#[test]
fn a_directory_is_looked_up_while_it_moves() {
    beside(
        ("a_directory_is_looked_up_while_it_moves", 2),
        two_blocks,
        |fs| assert!(!fs.exists("/e/x").unwrap()),
        |fs| {
            fs.rename("/e", "/f", RenameMode::NoReplace).unwrap();
            fs.create_dir("/e", 0o755).unwrap();
        },
        |fs| assert!(!fs.exists("/e/x").unwrap()),
        |small| {
            drop(small.fs.create_file("/e/x", 0o644).unwrap());
            let small = small.again();
            assert_eq!((names(&small.fs, "/e"), names(&small.fs, "/f")), (vec!["x".to_owned()], vec![]));
        },
    );
}

#[test]
fn the_last_name_of_a_block_goes_while_another_comes() {
    beside(
        ("the_last_name_of_a_block_goes_while_another_comes", 1),
        two_blocks,
        |fs| assert!(fs.exists(format!("/d/{}", of_stripe(0))).unwrap()),
        |fs| remove(fs, &of_stripe(0)),
        |fs| make(fs, &of_stripe(1)),
        |small| assert_names(small, 8, &[1]),
    );
}

#[test]
fn a_block_is_read_while_its_last_name_goes() {
    beside(
        ("a_block_is_read_while_its_last_name_goes", 1),
        two_blocks,
        |_| (),
        |fs| remove(fs, &of_stripe(0)),
        |fs| make(fs, &of_stripe(1)),
        |small| assert_names(small, 8, &[1]),
    );
}

#[test]
fn a_name_comes_while_blocks_leave_memory() {
    beside(
        ("a_name_comes_while_blocks_leave_memory", 1),
        two_blocks,
        |_| (),
        |fs| make(fs, &of_stripe(1)),
        |fs| assert!(fs.exists(format!("/d/{}", of_stripe(0))).unwrap()),
        |small| assert_names(small, 8, &[0, 1]),
    );
}

#[test]
fn a_name_comes_and_another_goes_when_the_inode_is_full() {
    beside(
        ("a_name_comes_and_another_goes_when_the_inode_is_full", 1),
        full_inode,
        |fs| assert!(!fs.exists("/d/x").unwrap()),
        |fs| make(fs, &of_stripe(0)),
        |fs| remove(fs, &filler(6)),
        |small| assert_names(small, 6, &[0]),
    );
}

#[test]
fn names_change_beside_a_checkpoint() {
    two_blocks();
    model::large(
        "names_change_beside_a_checkpoint",
        1,
        || Small::open(two_blocks()),
        |small| {
            let fs = Arc::clone(&small.fs);
            let thread = model::spawn(move || {
                make(&fs, &of_stripe(1));
                remove(&fs, &of_stripe(0));
            });
            small.fs.checkpoint().unwrap();
            let image = small.device.snapshot();
            thread.join().unwrap();
            model::judge();
            // Whatever the checkpoint has of that is whole.
            let then = Small::on(Arc::new(image));
            let there = [0, 1].map(|stripe| then.fs.exists(format!("/d/{}", of_stripe(stripe))).unwrap());
            let expected: &[u32] = match there {
                [true, false] => &[0],
                [true, true] => &[0, 1],
                [false, true] => &[1],
                none => panic!("{none:?}"),
            };
            assert_names(then, 8, expected);
            assert_names(small, 8, &[1]);
        },
    );
}

/// The next checkpoint has the name, though its directory's other changes were just written ahead of the one before.
#[test]
fn a_name_comes_while_its_directory_is_written_ahead() {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    // As many names as an inode has no room for.
    let directory = || IMAGE.get_or_init(|| filled(9));
    directory();
    let setup = move || {
        let device = directory().device();
        // Blocks of directories are written ahead however few they are.
        let volume = VolumeOptions::new().lanes(1).threads(1).node_cache(NonZeroUsize::MIN).nodes_left_to_freeze(0);
        let fs = Arc::new(FileSystem::open(device.clone(), options().volume(volume)).unwrap());
        fs.link("/a", "/d/before").unwrap();
        Small { device, fs }
    };
    model::large("a_name_comes_while_its_directory_is_written_ahead", 1, setup, |small| {
        let fs = Arc::clone(&small.fs);
        let thread = model::spawn(move || fs.link("/a", "/d/beside").unwrap());
        small.fs.checkpoint().unwrap();
        thread.join().unwrap();
        model::judge();
        small.fs.checkpoint().unwrap();
        let crashed = Small::on(Arc::new(small.device.snapshot()));
        assert!(names(&crashed.fs, "/d").contains(&"beside".to_owned()), "a name that a checkpoint promised is gone");
    });
}

#[test]
fn a_name_comes_while_its_stripe_learns() {
    let image = two_blocks();
    // Of stripe 0, as the one in the second block: the first becomes known with that, the second comes meanwhile.
    let (there, comes) = (of_stripe(0), "comes".to_owned() + &of_stripe(0));
    let comes =
        (0..).map(|number| format!("{comes}{number}")).find(|name| dentry_hash(name.as_bytes()) % 2 == 0).unwrap();
    let names = (there, comes);
    let setup = move || {
        let small = Small::open(image);
        let dir = small.fs.inode_at("/d").unwrap();
        // So many searches that the next one but one reads the names of the stripe.
        (0..SEARCHES - 1).for_each(|_| assert!(dir.lookup(&names.1).is_err()));
        (small, Arc::new(dir), names.clone())
    };
    model::large("a_name_comes_while_its_stripe_learns", 2, setup, |(small, dir, (there, comes))| {
        let (other, name) = (Arc::clone(&dir), comes.clone());
        let maker =
            model::spawn(move || other.create(name, &NewFile::new(FileKind::Regular, 0o644)).map(drop).unwrap());
        dir.lookup(&there).unwrap();
        maker.join().unwrap();
        model::judge();
        dir.lookup(&there).unwrap();
        dir.lookup(&comes).unwrap();
        dir.remove_file(&there).unwrap();
        assert!(matches!(dir.lookup(&there), Err(FsError::NotFound)));
        dir.lookup(&comes).unwrap();
        drop((dir, small));
    });
}
