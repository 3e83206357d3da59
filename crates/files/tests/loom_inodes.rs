//! Models of the life of an inode: names come and go while handles are opened and closed, on a whole file system of 64
//! MiB whose tables have two shards each.
//!
//! ```text
//! mutant: life_unlinked_and_not_ended, killed by: a_file_is_opened_while_its_name_goes
//! mutant: life_closed_and_not_ended, killed by: a_file_is_opened_while_its_last_handle_closes
//! mutant: link_without_life, killed by: a_file_gets_a_name_while_its_last_one_goes
//! mutant: inodes_loaded_twice, killed by: two_open_a_file_that_is_not_in_memory
//! mutant: inodes_drop_in_use, killed by: a_file_leaves_memory_while_it_is_opened
//! mutant: open_files_remember_what_went, killed by: a_file_that_is_kept_open_is_opened_while_its_name_goes
//! mutant: inode_by_number_beside_operations, killed by: a_file_is_found_by_its_number_while_its_name_goes
//! mutant: inode_again_without_its_life, killed by: a_file_is_found_again_while_its_name_goes
//! mutant: look_up_without_its_stripe, killed by: a_file_that_is_kept_open_is_opened_while_its_name_goes
//! mutant: path_looked_up_once, killed by: a_file_is_looked_at_while_another_takes_its_name
//! ```
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod loom_common;

use std::sync::OnceLock;

use f2fs_files::{File, FileKind, FileSystem, FsError, InodeRef, NewFile, RenameMode};
use f2fs_format::hash::dentry_hash;
use f2fs_sync::{Arc, model};
use f2fs_volume::models::Image;
use loom_common::{BLOCK, Small, image, names, read};

/// `/a` and `/b` stand in their inodes; `/large` has a block behind those that its inode can name.
fn files() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        image(|fs| {
            for path in ["/a", "/b"] {
                fs.create_file(path, 0o644).unwrap().write_at(path.as_bytes(), 0).unwrap();
            }
            fs.create_file("/large", 0o644).unwrap().write_at(b"/large", 1000 * BLOCK as u64).unwrap();
        })
    })
}

/// A name between `/b` and `/large` whose stripe is not that of `/a`: who holds one does not keep the other out.
fn other_stripe() -> &'static str {
    let stripe = |path: &str| dentry_hash(&path.as_bytes()[1..]) % 2;
    ["/c", "/d", "/e", "/f", "/g"].into_iter().find(|path| stripe(path) != stripe("/a")).unwrap()
}

/// The counts of a volume on which only the root is left.
fn nothing() -> (u64, u64, u64) {
    static NOTHING: OnceLock<(u64, u64, u64)> = OnceLock::new();
    *NOTHING.get_or_init(|| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let empty = image(|_| ());
        model::large("nothing", 0, move || Small::open(&empty), move |small| sender.send(small.used()).unwrap());
        receiver.recv().unwrap()
    })
}

/// These names are there; nothing is left when all are gone, in memory and on the device.
fn assert_left(small: Small, expected: &[&str]) {
    assert_eq!(names(&small.fs, "/"), expected);
    for name in names(&small.fs, "/") {
        small.fs.remove_file(format!("/{name}")).unwrap();
    }
    assert_eq!(small.used(), nothing());
    assert!(small.fs.volume().orphans().is_empty());
    assert_eq!(small.again().used(), nothing());
}

/// Runs `one` beside `other` on the files, and looks at what is left.
fn beside<T: Send + 'static>(
    name: &str,
    preemptions: usize,
    before: fn(&FileSystem) -> T,
    one: fn(&FileSystem, T),
    other: fn(&FileSystem),
    after: fn(Small),
) {
    nothing();
    let setup = move || {
        let small = Small::open(files());
        let made = before(&small.fs);
        (small, made)
    };
    model::large(name, preemptions, setup, move |(small, made)| {
        let fs = Arc::clone(&small.fs);
        let thread = model::spawn(move || one(&fs, made));
        other(&small.fs);
        thread.join().unwrap();
        model::judge();
        after(small);
    });
}

/// Opens a file that may be gone. Who has a handle has a file.
fn try_open(fs: &FileSystem, path: &str) {
    assert_file(fs.open_file(path), path);
}

/// The same by a reference to the inode, which is looked up first, and held when its name may be gone.
fn try_look_up(fs: &FileSystem, path: &str) {
    assert_file(fs.root().unwrap().lookup(&path[1..]).and_then(|inode| inode.open_file()), path);
}

/// It is the file of that name, or was none.
fn assert_file(file: Result<File, FsError>, path: &str) {
    match file {
        Ok(file) => {
            let mut bytes = [0; 16];
            assert_eq!(file.read_at(&mut bytes, 0).unwrap(), path.len());
            assert_eq!(&bytes[..path.len()], path.as_bytes());
            assert!(file.metadata().unwrap().links <= 1);
        }
        Err(FsError::NotFound) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_file_is_opened_while_its_name_goes() {
    beside(
        "a_file_is_opened_while_its_name_goes",
        3,
        |_| (),
        |fs, ()| fs.remove_file("/a").unwrap(),
        |fs| try_open(fs, "/a"),
        |small| assert_left(small, &["b", "large"]),
    );
}

#[test]
fn a_file_is_opened_while_its_last_handle_closes() {
    beside(
        "a_file_is_opened_while_its_last_handle_closes",
        3,
        |fs| fs.open_file("/a").unwrap(),
        |fs, file| {
            fs.remove_file("/a").unwrap();
            drop(file);
        },
        |fs| try_look_up(fs, "/a"),
        |small| assert_left(small, &["b", "large"]),
    );
}

#[test]
fn a_name_goes_while_the_handle_closes() {
    beside(
        "a_name_goes_while_the_handle_closes",
        3,
        |fs| fs.open_file("/a").unwrap(),
        |_, file| drop(file),
        |fs| fs.remove_file("/a").unwrap(),
        |small| assert_left(small, &["b", "large"]),
    );
}

#[test]
fn a_large_file_goes_while_it_is_opened() {
    beside(
        "a_large_file_goes_while_it_is_opened",
        2,
        |_| (),
        |fs, ()| fs.remove_file("/large").unwrap(),
        |fs| match fs.open_file("/large") {
            Ok(file) => assert_eq!(file.metadata().unwrap().size, 1000 * BLOCK as u64 + 6),
            Err(FsError::NotFound) => {}
            Err(error) => panic!("{error}"),
        },
        |small| assert_left(small, &["a", "b"]),
    );
}

#[test]
fn a_file_gets_a_name_while_its_last_one_goes() {
    beside(
        "a_file_gets_a_name_while_its_last_one_goes",
        2,
        |_| (),
        |fs, ()| fs.remove_file("/a").unwrap(),
        |fs| match fs.link("/a", other_stripe()) {
            Ok(()) => {
                let file = fs.open_file(other_stripe()).unwrap();
                assert_eq!(file.size(), 2);
            }
            Err(FsError::NotFound) => {}
            Err(error) => panic!("{error}"),
        },
        |small| {
            if small.fs.exists(other_stripe()).unwrap() {
                let small = small.again();
                assert_eq!(
                    (read(&small.fs, other_stripe()), small.fs.metadata(other_stripe()).unwrap().links),
                    (b"/a".to_vec(), 1)
                );
                assert_left(small, &["b", &other_stripe()[1..], "large"]);
            } else {
                assert_left(small, &["b", "large"]);
            }
        },
    );
}

#[test]
fn a_file_is_opened_while_another_takes_its_name() {
    beside(
        "a_file_is_opened_while_another_takes_its_name",
        2,
        |_| (),
        |fs, ()| fs.rename("/b", "/a", RenameMode::Replace).unwrap(),
        |fs| {
            let file = fs.open_file("/a").unwrap();
            let mut bytes = [0; 2];
            assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 2);
            assert!(bytes == *b"/a" || bytes == *b"/b");
        },
        |small| {
            let small = small.again();
            assert_eq!(read(&small.fs, "/a"), b"/b");
            assert_left(small, &["a", "large"]);
        },
    );
}

#[test]
fn a_file_is_looked_at_while_another_takes_its_name() {
    beside(
        "a_file_is_looked_at_while_another_takes_its_name",
        2,
        |_| (),
        |fs, ()| fs.rename("/b", "/a", RenameMode::Replace).unwrap(),
        |fs| assert_eq!(fs.metadata("/a").unwrap().size, 2),
        |small| assert_left(small, &["a", "large"]),
    );
}

/// A file of four bytes without a name.
fn unnamed(fs: &FileSystem) -> InodeRef {
    let made = fs.root().unwrap().create_unnamed(&NewFile::new(FileKind::Regular, 0o644)).unwrap();
    made.open_file().unwrap().write_at(b"next", 0).unwrap();
    made
}

#[test]
fn a_file_without_a_name_takes_one_that_is_opened() {
    beside(
        "a_file_without_a_name_takes_one_that_is_opened",
        2,
        unnamed,
        |fs, made| fs.root().unwrap().link_over("a", &made).unwrap(),
        |fs| {
            let file = fs.open_file("/a").unwrap();
            let mut bytes = [0; 8];
            let read = file.read_at(&mut bytes, 0).unwrap();
            assert!(&bytes[..read] == b"/a" || &bytes[..read] == b"next", "{read}");
        },
        |small| {
            let small = small.again();
            assert_eq!((read(&small.fs, "/a"), small.fs.metadata("/a").unwrap().links), (b"next".to_vec(), 1));
            assert_left(small, &["a", "b", "large"]);
        },
    );
}

#[test]
fn a_file_gets_its_first_name_beside_a_checkpoint() {
    beside(
        "a_file_gets_its_first_name_beside_a_checkpoint",
        1,
        unnamed,
        |fs, made| fs.root().unwrap().link("c", &made).unwrap(),
        |fs| assert!(fs.checkpoint().unwrap().version != 0),
        |small| {
            let small = small.again();
            assert_eq!((read(&small.fs, "/c"), small.fs.metadata("/c").unwrap().links), (b"next".to_vec(), 1));
            assert_left(small, &["a", "b", "c", "large"]);
        },
    );
}

#[test]
fn two_take_a_name_from_each_other() {
    beside(
        "two_take_a_name_from_each_other",
        2,
        |_| (),
        |fs, ()| fs.rename("/b", "/a", RenameMode::Replace).unwrap(),
        |fs| fs.rename("/large", "/b", RenameMode::Replace).unwrap(),
        |small| {
            // Whoever came first: the other one's source is there under the name that is left.
            let expected: &[&str] = if small.fs.exists("/b").unwrap() { &["a", "b"] } else { &["a"] };
            assert_left(small, expected);
        },
    );
}

/// A processor keeps a file open that is opened a second time. Whoever has a handle has the file; nobody finds it when
/// its name has gone, and it ends with its last handle.
#[test]
fn a_file_that_is_kept_open_is_opened_while_its_name_goes() {
    beside(
        "a_file_that_is_kept_open_is_opened_while_its_name_goes",
        2,
        |fs| fs.open_file("/a").unwrap(),
        |fs, file| {
            fs.remove_file("/a").unwrap();
            assert!(matches!(fs.open_file("/a"), Err(FsError::NotFound)));
            drop(file);
        },
        |fs| {
            try_open(fs, "/a");
            try_open(fs, "/a");
        },
        |small| {
            assert!(matches!(small.fs.open_file("/a"), Err(FsError::NotFound)));
            assert_left(small, &["b", "large"]);
        },
    );
}

/// The same, while another file takes the name: it is the one that the name means from then on.
#[test]
fn a_file_that_is_kept_open_is_opened_while_another_takes_its_name() {
    beside(
        "a_file_that_is_kept_open_is_opened_while_another_takes_its_name",
        2,
        |fs| fs.open_file("/a").unwrap(),
        |fs, file| {
            fs.rename("/b", "/a", RenameMode::Replace).unwrap();
            assert_eq!(read(fs, "/a"), b"/b");
            drop(file);
        },
        |fs| {
            let mut bytes = [0; 2];
            assert_eq!(fs.open_file("/a").unwrap().read_at(&mut bytes, 0).unwrap(), 2);
            assert!(bytes == *b"/a" || bytes == *b"/b");
        },
        |small| {
            let small = small.again();
            assert_eq!(read(&small.fs, "/a"), b"/b");
            assert_left(small, &["a", "large"]);
        },
    );
}

/// Nobody holds the inode when it is asked for by its number: it is there, or it is not.
#[test]
fn a_file_is_found_by_its_number_while_its_name_goes() {
    beside(
        "a_file_is_found_by_its_number_while_its_name_goes",
        2,
        |fs| fs.metadata("/a").unwrap().ino,
        |fs, ino| assert_file(fs.inode(ino).and_then(|inode| inode.open_file()), "/a"),
        |fs| fs.remove_file("/a").unwrap(),
        |small| assert_left(small, &["b", "large"]),
    );
}

/// The same for an inode that is still in memory.
#[test]
fn a_file_is_found_again_while_its_name_goes() {
    beside(
        "a_file_is_found_again_while_its_name_goes",
        2,
        |fs| fs.metadata("/a").unwrap(),
        |fs, known| {
            let again = fs.inode_again(known.ino, known.generation);
            assert_file(again.and_then(|inode| inode.open_file()), "/a");
        },
        |fs| fs.remove_file("/a").unwrap(),
        |small| assert_left(small, &["b", "large"]),
    );
}

/// The same for one that is not.
#[test]
fn a_file_that_left_memory_is_found_again_while_its_name_goes() {
    beside(
        "a_file_that_left_memory_is_found_again_while_its_name_goes",
        2,
        |fs| {
            // A look-up by a path would be remembered.
            let known = fs.root().unwrap().lookup("a").unwrap().metadata().unwrap();
            (0..2).for_each(|_| fs.drop_unused());
            known
        },
        |fs, known| {
            let again = fs.inode_again(known.ino, known.generation);
            assert_file(again.and_then(|inode| inode.open_file()), "/a");
        },
        |fs| fs.remove_file("/a").unwrap(),
        |small| {
            // It is freed once: who comes second would list it as one that could not be.
            assert_eq!(small.fs.volume().orphans().len(), 0);
            assert_left(small, &["b", "large"]);
        },
    );
}

/// Both have the same inode: it lives until the second one closes it.
#[test]
fn two_open_a_file_that_is_not_in_memory() {
    files();
    model::large(
        "two_open_a_file_that_is_not_in_memory",
        2,
        || Small::open(files()),
        |small| {
            let fs = Arc::clone(&small.fs);
            let thread = model::spawn(move || fs.open_file("/a").unwrap());
            let mine = small.fs.open_file("/a").unwrap();
            let theirs = thread.join().unwrap();
            model::judge();
            small.fs.remove_file("/a").unwrap();
            drop(theirs);
            assert_eq!(mine.metadata().unwrap().links, 0);
            drop(mine);
            assert_eq!(small.fs.volume().orphans().len(), 0);
        },
    );
}

/// `/a` leaves memory, because its locks and those of `/b` are too much, while it is opened again. `use_once` is what was
/// done with it before.
fn leaves_memory_while_it_is_opened(name: &str, use_once: fn(&FileSystem)) {
    files();
    let setup = move || {
        let small = Small::open(files());
        use_once(&small.fs);
        small
    };
    model::large(name, 2, setup, |small| {
        let fs = Arc::clone(&small.fs);
        let thread = model::spawn(move || assert_eq!(read(&fs, "/b"), b"/b"));
        let mine = small.fs.open_file("/a").unwrap();
        thread.join().unwrap();
        model::judge();
        let again = small.fs.open_file("/a").unwrap();
        small.fs.remove_file("/a").unwrap();
        drop(again);
        assert_eq!(mine.metadata().unwrap().links, 0);
        drop(mine);
        assert!(small.fs.volume().orphans().is_empty());
    });
}

/// It was closed: its locks are counted then.
#[test]
fn a_file_leaves_memory_while_it_is_opened() {
    leaves_memory_while_it_is_opened("a_file_leaves_memory_while_it_is_opened", |fs| {
        assert_eq!(read(fs, "/a"), b"/a");
    });
}

/// Only a processor keeps it open.
#[test]
fn a_file_that_is_kept_open_leaves_memory_while_it_is_opened() {
    leaves_memory_while_it_is_opened("a_file_that_is_kept_open_leaves_memory_while_it_is_opened", |fs| {
        let other = fs.open_file("/a").unwrap();
        assert_eq!(read(fs, "/a"), b"/a");
        drop(other);
    });
}
