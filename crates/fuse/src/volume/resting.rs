//! Inodes that rest: they are found again, and those whose names go stay.

use f2fs_files::{FileKind, Options};

use super::*;

const CALLER: Caller = Caller { uid: 0, gid: 0, pid: 0 };
/// So many others that every inode of before rests.
const OTHERS: u64 = 2000;

/// A mounted volume whose server keeps few inodes in memory.
fn mounted(options: Options) -> Mounted {
    mounted_with(options, 64)
}

fn mounted_with(options: Options, inodes: usize) -> Mounted {
    let device = Arc::new(f2fs_device::MemoryDevice::new(64 * 1024));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    let fs = FileSystem::open(device, options).unwrap();
    Mounted::new(&fs, MountOptions { inodes, ..MountOptions::default() }).unwrap()
}

fn make(mounted: &Mounted, name: &str, kind: FileKind) -> u64 {
    let made = mounted.create(CALLER, ROOT, name.as_bytes(), 0o755 | u32::from(kind.to_mode()), 0, None).unwrap();
    mounted.number(&made)
}

/// A file with its name in it.
fn file(mounted: &Mounted, name: &str) -> u64 {
    let number = make(mounted, name, FileKind::Regular);
    mounted.write(number, name.as_bytes(), 0, false, None).unwrap();
    number
}

/// All that the kernel knew before rests, and nobody uses it: the last of these may still be awake.
fn rest(mounted: &Mounted, round: u64) -> Vec<u64> {
    (0..OTHERS).map(|other| make(mounted, &format!("other{round}.{other}"), FileKind::Fifo)).collect()
}

fn content(mounted: &Mounted, number: u64) -> Vec<u8> {
    let mut buf = AlignedBuf::default();
    match mounted.read(number, &mut buf, 0, 100).unwrap() {
        Read::Buffer(read) => buf.as_bytes()[..read].to_vec(),
        Read::Piece(_, piece) => piece.as_bytes().to_vec(),
    }
}

#[test]
fn what_rests_is_found_again() {
    let mounted = mounted(Options::new());
    let (a, dir) = (file(&mounted, "a"), make(&mounted, "dir", FileKind::Directory));
    let others = rest(&mounted, 0);
    assert!(mounted.table.rests(a) && mounted.table.rests(dir));
    let awake = others.iter().filter(|other| !mounted.table.rests(**other)).count();
    assert!((1..256).contains(&awake), "{awake} are awake");
    assert_eq!(content(&mounted, a), b"a");
    assert!(!mounted.table.rests(a));
    mounted.create(CALLER, dir, b"x", 0o644 | u32::from(FileKind::Regular.to_mode()), 0, None).unwrap();
    assert_eq!(mounted.lookup(ROOT, b"dir").unwrap().ino.0, dir as u32);
    for (at, number) in others.iter().enumerate() {
        assert_eq!(mounted.attributes(*number).unwrap().ino.0, *number as u32, "{at}");
        assert_eq!(mounted.lookup(ROOT, format!("other0.{at}").as_bytes()).unwrap().ino.0, *number as u32);
        mounted.forget(*number, 1);
        assert!(mounted.is_known(*number), "told twice");
        mounted.forget(*number, 1);
        assert!(!mounted.is_known(*number));
        assert!(matches!(mounted.attributes(*number), Err(FsError::NotFound)));
    }
}

#[test]
fn what_is_used_does_not_rest() {
    let mounted = mounted_with(Options::new(), 1000);
    let (a, b) = (file(&mounted, "a"), file(&mounted, "b"));
    for other in 0..4 * OTHERS {
        mounted.attributes(a).unwrap();
        make(&mounted, &format!("other{other}"), FileKind::Fifo);
        assert!(!mounted.table.rests(a), "{other}");
    }
    assert!(mounted.table.rests(b));
}

/// The kernel may have them open. Their numbers are not given to others before they are forgotten.
#[test]
fn what_is_removed_while_it_rests_stays_until_it_is_forgotten() {
    let mounted = mounted(Options::new());
    let (a, b, c) = (file(&mounted, "a"), file(&mounted, "b"), file(&mounted, "c"));
    let dir = make(&mounted, "dir", FileKind::Directory);
    rest(&mounted, 0);
    assert!([a, b, c, dir].iter().all(|number| mounted.table.rests(*number)));
    mounted.remove_file(ROOT, b"a").unwrap();
    mounted.rename((ROOT, b"c"), (ROOT, b"b"), RenameMode::Replace).unwrap();
    mounted.remove_dir(ROOT, b"dir").unwrap();
    mounted.fs.checkpoint().unwrap();
    rest(&mounted, 1);
    mounted.fs.checkpoint().unwrap();
    assert!(![a, b, dir].iter().any(|number| mounted.table.rests(*number)), "they would be gone");
    for (number, name) in [(a, "a"), (b, "b"), (c, "c")] {
        assert_eq!(content(&mounted, number), name.as_bytes());
    }
    assert_eq!(mounted.attributes(dir).unwrap().links, 0);
    let inodes = || mounted.fs.statfs().valid_inodes;
    let before = inodes();
    [a, b, dir].iter().for_each(|number| mounted.forget(*number, 1));
    assert_eq!(inodes(), before - 3);
    assert_eq!(content(&mounted, c), b"c");
}

/// An error of write-back is told to those who had the file open.
#[test]
fn what_is_written_back_later_does_not_rest() {
    for page_cache in [0, 16 << 20] {
        let mounted = mounted(Options::new().page_cache(page_cache));
        let a = file(&mounted, "a");
        rest(&mounted, 0);
        assert_eq!(mounted.table.rests(a), page_cache == 0);
    }
}

/// By who has the file system beside the mount. Another file with its number is not that one.
#[test]
fn what_others_removed_while_it_rested_is_gone() {
    let mounted = mounted(Options::new());
    let a = file(&mounted, "a");
    rest(&mounted, 0);
    mounted.fs.remove_file("/a").unwrap();
    assert!(matches!(mounted.attributes(a), Err(FsError::NotFound)));
    mounted.fs.checkpoint().unwrap();
    for other in 0.. {
        let made = mounted.fs.create_file(format!("/new{other}"), 0o644).unwrap();
        if u64::from(made.metadata().unwrap().ino.0) == a {
            break;
        }
        assert!(other < 20_000, "its number does not come back");
    }
    assert!(matches!(mounted.attributes(a), Err(FsError::NotFound)));
    // Until the kernel is told of that one, which rests and wakes as others do.
    let found =
        (0..).find(|other| mounted.fs.metadata(format!("/new{other}")).is_ok_and(|data| u64::from(data.ino.0) == a));
    mounted.lookup(ROOT, format!("new{}", found.unwrap()).as_bytes()).unwrap();
    rest(&mounted, 1);
    assert!(mounted.table.rests(a) && mounted.attributes(a).is_ok());
    mounted.forget(a, 2);
    assert!(!mounted.is_known(a));
}
