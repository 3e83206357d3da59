//! What stands in inodes that a journal brings back.

use std::collections::BTreeSet;

use f2fs_journal::{RegionMedium, SharedMedium};
use f2fs_pmem::MemoryRegion;
use f2fs_volume::FoundJournal;

use super::*;
use crate::{JournalMode, JournalOptions, RenameMode, create_journal};

type Medium = PlainArc<RegionMedium<MemoryRegion>>;

fn with(medium: &Medium) -> Options {
    Options::new().journal(JournalOptions::new(medium.clone() as SharedMedium, JournalMode::Ordered))
}

fn start() -> (PlainArc<MemoryDevice>, Medium, FileSystem) {
    let device = formatted(64, &FormatOptions::default());
    let medium: Medium = PlainArc::new(RegionMedium::new(MemoryRegion::new(1 << 20).unwrap()));
    create_journal(device.clone(), medium.clone(), false).unwrap();
    let fs = FileSystem::open(device.clone(), with(&medium)).unwrap();
    (device, medium, fs)
}

/// The volume after a crash, open again.
fn again(device: &MemoryDevice, medium: &Medium) -> (PlainArc<MemoryDevice>, FileSystem) {
    let device = PlainArc::new(device.snapshot());
    let fs = FileSystem::open(device.clone(), with(medium)).unwrap();
    (device, fs)
}

/// Where an inode says that it belongs, as a later recovery would have it.
fn place(fs: &FileSystem, path: &str) -> (Nid, Vec<u8>) {
    let inode = raw(fs, path);
    (inode.i_pino.into(), inode.i_name[..inode.i_namelen.get() as usize].to_vec())
}

#[test]
fn inodes_know_their_new_names() {
    let (device, medium, fs) = start();
    for path in ["/a", "/b", "/a/moved"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    fs.create_file("/a/renamed", 0o644).unwrap();
    fs.create_file("/a/linked", 0o644).unwrap();
    fs.checkpoint().unwrap();
    fs.rename("/a/renamed", "/b/another", RenameMode::Replace).unwrap();
    fs.rename("/a/moved", "/b/directory", RenameMode::Replace).unwrap();
    fs.create_file("/b/new", 0o644).unwrap();
    fs.link("/a/linked", "/b/link").unwrap();
    fs.remove_file("/a/linked").unwrap();
    fs.root().unwrap().sync_all().unwrap();
    drop(fs);
    let (device, fs) = again(&device, &medium);
    let b = fs.metadata("/b").unwrap().ino;
    for name in ["another", "directory", "new", "link"] {
        let path = format!("/b/{name}");
        assert_eq!(place(&fs, &path), (b, name.as_bytes().to_vec()));
        assert_eq!(raw(&fs, &path).i_advise, 0);
    }
    fs.close().unwrap();
    assert_clean(&device);
}

/// A large directory that became small before it was synced for the first time.
#[test]
fn a_new_directory_comes_back_as_small_as_its_names() {
    let (device, medium, fs) = start();
    fs.create_file("/file", 0o644).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    let name = |number: usize| format!("/dir/{number:0>100}");
    (0..60).for_each(|number| fs.link("/file", name(number)).unwrap());
    assert!(raw(&fs, "/dir").i_inline & inline::DENTRY == 0);
    (3..60).for_each(|number| fs.remove_file(name(number)).unwrap());
    fs.open_dir("/dir").unwrap().sync_all().unwrap();
    drop(fs);
    let (device, fs) = again(&device, &medium);
    let inode = raw(&fs, "/dir");
    assert!(inode.i_inline & inline::DENTRY != 0);
    assert_eq!((inode.i_current_depth.get(), inode.i_links.get(), inode.i_blocks.get()), (1, 2, 1));
    fs.create_dir("/like-it", 0o755).unwrap();
    assert_eq!((inode.i_size, inode.i_addr[0].get()), (raw(&fs, "/like-it").i_size, 0), "as it was made");
    assert_eq!(fs.read_dir("/dir").unwrap().count(), 3);
    assert_eq!(fs.metadata("/file").unwrap().links, 4);
    fs.close().unwrap();
    assert_clean(&device);
}

/// A file that has lost its names is synced in vain: the opening frees it.
#[test]
fn a_file_without_a_name_does_not_come_back() {
    let (device, medium, fs) = start();
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[1; 3 * BLOCK], 0).unwrap();
    fs.remove_file("/file").unwrap();
    let unnamed = fs.root().unwrap().create_unnamed(&NewFile::new(FileKind::Regular, 0o644)).unwrap();
    fs.checkpoint().unwrap();
    file.write_at(&[2; 3 * BLOCK], 0).unwrap();
    file.sync_all().unwrap();
    unnamed.open_file().unwrap().write_at(&[2; 3 * BLOCK], 0).unwrap();
    unnamed.sync_all().unwrap();
    drop((file, unnamed, fs));
    let (device, fs) = again(&device, &medium);
    assert_eq!((fs.recovered().files, fs.recovered().blocks), (0, 0));
    assert!(fs.core.volume.orphans().is_empty());
    fs.close().unwrap();
    assert_clean(&device);
}

/// A name of a record, to be changed.
fn bound() -> BoundName {
    let (device, medium, fs) = start();
    fs.create_file("/file", 0o644).unwrap();
    fs.root().unwrap().sync_all().unwrap();
    drop(fs);
    let volume = Volume::open(PlainArc::new(device.snapshot()), &VolumeOptions::new().read_only(true)).unwrap();
    let found = FoundJournal::open(&volume, medium, JournalMode::Ordered).unwrap();
    found.nodes().names()[0].clone()
}

/// Names that a record says there are: a directory by its path, the name, and what it leads to.
pub(super) fn recover(fs: &FileSystem, names: &[(&str, &str, Option<&str>)]) -> Result<BTreeSet<Nid>, FsError> {
    let ino = |path: &str| fs.metadata(path).unwrap().ino;
    let names: Vec<BoundName> = names
        .iter()
        .map(|(directory, name, leads_to)| {
            let mut bound = bound();
            (bound.directory, bound.name, bound.ino) = (ino(directory), name.as_bytes().to_vec(), leads_to.map(ino));
            bound
        })
        .collect();
    RollForward(&fs.core).recover_names(&names, &BTreeSet::new(), |_| Ok(None), &mut Passed::new(false, false))
}

/// A volume with `/dir/file`, `/empty` and `/file`.
fn tree() -> FileSystem {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device, Options::new()).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    fs.create_dir("/empty", 0o755).unwrap();
    fs.create_file("/dir/file", 0o644).unwrap();
    fs.create_file("/file", 0o644).unwrap();
    fs.checkpoint().unwrap();
    fs
}

#[test]
fn names_that_are_as_they_were_change_nothing() {
    let fs = tree();
    let root = fs.inode_at("/").unwrap();
    let names = [("/", "file", Some("/file")), ("/", "dir", Some("/dir")), ("/", "missing", None)];
    assert_eq!(recover(&fs, &names).unwrap(), BTreeSet::new());
    assert!(!root.inode().directory().unwrap().has_changed_blocks(), "a name was taken away and put back");
    assert_eq!((fs.metadata("/").unwrap().links, fs.metadata("/file").unwrap().links), (4, 1));
}

#[test]
fn what_has_no_name_left_goes_and_directories_count_theirs() {
    let fs = tree();
    let gone = BTreeSet::from(["/file", "/empty"].map(|path| fs.metadata(path).unwrap().ino));
    let names = [
        ("/", "file", None),
        ("/", "empty", None),
        ("/", "dir", None),
        ("/", "moved", Some("/dir")),
        ("/dir", "file", None),
    ];
    let file = fs.metadata("/dir/file").unwrap().ino;
    assert_eq!(recover(&fs, &names).unwrap(), gone.into_iter().chain([file]).collect());
    assert_eq!((fs.metadata("/").unwrap().links, fs.metadata("/moved").unwrap().links), (3, 2));
    assert_eq!(fs.read_dir("/").unwrap().count(), 1);
    assert_eq!(fs.read_dir("/moved").unwrap().count(), 0);
    fs.checkpoint().unwrap();
}

/// Records that cannot be true: they do not fit the checkpoint.
#[test]
fn names_that_no_tree_can_have_are_errors() {
    let twice = [("/", "one", Some("/empty")), ("/", "two", Some("/empty"))];
    let error = recover(&tree(), &twice).unwrap_err();
    assert!(error.is_corruption(), "a directory with two names: {error}");
    assert!(matches!(recover(&tree(), &[("/", "dir", None)]), Err(FsError::NotEmpty)));
}

/// Names are put back later than they were made.
#[test]
fn a_directory_has_the_times_of_its_sync() {
    fn early() -> Time {
        Time { seconds: 1000, nanoseconds: 1 }
    }
    fn late() -> Time {
        Time { seconds: 2000, nanoseconds: 2 }
    }
    let device = formatted(64, &FormatOptions::default());
    let medium: Medium = PlainArc::new(RegionMedium::new(MemoryRegion::new(1 << 20).unwrap()));
    create_journal(device.clone(), medium.clone(), false).unwrap();
    let fs = FileSystem::open(device.clone(), with(&medium).clock(early)).unwrap();
    fs.create_file("/file", 0o644).unwrap();
    for (directory, names) in [("/small", 3), ("/large", 300)] {
        fs.create_dir(directory, 0o755).unwrap();
        (0..names).for_each(|number| fs.link("/file", format!("{directory}/{number}")).unwrap());
    }
    fs.checkpoint().unwrap();
    for directory in ["/small", "/large"] {
        fs.link("/file", format!("{directory}/more")).unwrap();
        fs.open_dir(directory).unwrap().sync_all().unwrap();
    }
    drop(fs);
    let device = PlainArc::new(device.snapshot());
    let fs = FileSystem::open(device, with(&medium).clock(late)).unwrap();
    for round in 0..2 {
        for directory in ["/small", "/large"] {
            assert!(fs.exists(format!("{directory}/more")).unwrap());
            let found = fs.metadata(directory).unwrap();
            assert_eq!((found.modified, found.changed), (early(), early()), "{directory}, {round}");
        }
        fs.checkpoint().unwrap();
    }
}

/// The links that were counted must be those that the record has, or the two do not belong together.
#[test]
fn links_that_do_not_add_up_are_an_error() {
    let (device, medium, fs) = start();
    fs.create_file("/file", 0o644).unwrap();
    fs.checkpoint().unwrap();
    let image = PlainArc::new(device.snapshot());
    fs.link("/file", "/other").unwrap();
    fs.open_file("/file").unwrap().sync_all().unwrap();
    let number = fs.metadata("/file").unwrap().ino;
    drop(fs);
    // Nothing is written, so the journal stays as it is.
    let fs = FileSystem::open(PlainArc::new(image.snapshot()), with(&medium).read_only(true)).unwrap();
    assert_eq!(fs.metadata("/other").unwrap().links, 2);
    drop(fs);
    patch_node(&image, number, |node| node.inode_mut().i_links = 3.into());
    let error = FileSystem::open(image, with(&medium).read_only(true)).unwrap_err();
    assert!(matches!(error, FsError::Recovery(_)) && error.to_string().contains("links"), "{error}");
}
