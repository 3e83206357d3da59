//! What was read ahead against changes that come between, and whose bits a list takes.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use f2fs_files::{FileKind, Options};
use f2fs_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use super::*;

const STEP: usize = 256 << 10;
const SIZE: usize = 16 * STEP;
const CALLER: Caller = Caller { uid: 0, gid: 0, pid: 0 };

/// A volume with a file of zeros, and the number of the file.
fn mounted() -> (Mounted, u64) {
    mounted_with(MountOptions::default())
}

fn mounted_with(options: MountOptions) -> (Mounted, u64) {
    let device = Arc::new(f2fs_device::MemoryDevice::new(64 * 1024));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let mounted = Mounted::new(&fs, options).unwrap();
    let mode = 0o644 | u32::from(FileKind::Regular.to_mode());
    let made = mounted.create(CALLER, ROOT, b"f", mode, 0, None).unwrap();
    let number = mounted.number(&made);
    mounted.write(number, &vec![0; SIZE], 0, false, None).unwrap();
    (mounted, number)
}

/// Reads as the kernel does; the bytes, and whether a window had them.
fn read(mounted: &Mounted, number: u64, offset: usize) -> (Vec<u8>, bool) {
    let mut buf = AlignedBuf::default();
    match mounted.read(number, &mut buf, offset as u64, STEP).unwrap() {
        Read::Buffer(read) => (buf.as_bytes()[..read].to_vec(), false),
        Read::Piece(known, piece) => {
            let bytes = piece.as_bytes().to_vec();
            mounted.read_on(&known, &piece).unwrap();
            (bytes, true)
        }
    }
}

/// Two reads in order, behind which the windows have what follows.
fn begin(mounted: &Mounted, number: u64) {
    read(mounted, number, 0);
    assert!(read(mounted, number, STEP).1, "no window");
}

#[test]
fn what_was_read_ahead_is_not_older_than_a_write() {
    let (mounted, number) = mounted();
    begin(&mounted, number);
    mounted.write(number, &vec![1; STEP], 2 * STEP as u64, false, None).unwrap();
    assert_eq!(read(&mounted, number, 2 * STEP).0, vec![1; STEP]);
}

#[test]
fn what_was_read_ahead_is_not_older_than_a_hole() {
    let (mounted, number) = mounted();
    mounted.write(number, &vec![1; SIZE], 0, false, None).unwrap();
    begin(&mounted, number);
    let flags = AllocateFlags::PUNCH_HOLE | AllocateFlags::KEEP_SIZE;
    mounted.allocate(CALLER, number, 2 * STEP as u64, STEP as u64, flags).unwrap();
    assert_eq!(read(&mounted, number, 2 * STEP).0, vec![0; STEP]);
}

#[test]
fn what_was_read_ahead_is_not_older_than_a_cut() {
    let (mounted, number) = mounted();
    mounted.write(number, &vec![1; SIZE], 0, false, None).unwrap();
    begin(&mounted, number);
    for size in [2 * STEP, SIZE] {
        let change = Change { size: Some(size as u64), ..Change::default() };
        mounted.change(CALLER, number, &change).unwrap();
    }
    assert_eq!(read(&mounted, number, 2 * STEP).0, vec![0; STEP]);
}

#[test]
fn reads_in_order_beside_a_writer_are_not_older_than_what_it_was_told_is_written() {
    let (mounted, number) = mounted();
    let written = AtomicU8::new(0);
    let (seen, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=250 {
                if round > 60 {
                    if seen.load(Ordering::SeqCst) {
                        break;
                    }
                    // The reader had no turn in which a window lasted: it gets one.
                    thread::sleep(Duration::from_millis(1));
                }
                for step in 0..SIZE / STEP {
                    mounted.write(number, &[round; 4096], (step * STEP) as u64, false, None).unwrap();
                }
                written.store(round, Ordering::SeqCst);
            }
            ended.store(true, Ordering::SeqCst);
        });
        let mut from_windows = 0;
        while !ended.load(Ordering::SeqCst) {
            for step in 0..SIZE / STEP {
                let least = written.load(Ordering::SeqCst);
                let (bytes, from_window) = read(&mounted, number, step * STEP);
                assert!(bytes[0] >= least, "{} behind {least}", bytes[0]);
                from_windows += u32::from(from_window);
                seen.fetch_or(from_window, Ordering::SeqCst);
            }
        }
        assert!(from_windows > 0);
    });
}

#[test]
fn a_list_that_another_sets_takes_the_bit_of_the_group() {
    let (mounted, number) = mounted();
    let (own, pid) = (rustix::process::getgid().as_raw() + 1000, std::process::id());
    let mut change = Change::default();
    change.attributes.permissions = Some(0o2755);
    change.attributes.uid = Some(1000);
    change.attributes.gid = Some(own);
    // Owner, group and others, by the kernel's layout (`posix_acl_xattr.h`).
    let list =
        [2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 4, 0, 5, 0, 255, 255, 255, 255, 32, 0, 4, 0, 255, 255, 255, 255];
    for (caller, left) in [
        (Caller { uid: 0, gid: 0, pid }, 0o2754),
        (Caller { uid: 1000, gid: own, pid }, 0o2754),
        (Caller { uid: 1000, gid: 1, pid }, 0o754),
        (Caller { uid: 1000, gid: 1, pid: 0 }, 0o754),
    ] {
        mounted.change(CALLER, number, &change).unwrap();
        mounted.set_xattr(caller, number, acl::ACCESS, &list, SetMode::Any).unwrap();
        assert_eq!(mounted.attributes(number).unwrap().permissions, left, "{caller:?}");
    }
}

/// Counts what the kernel is told.
#[derive(Debug)]
struct Told(Arc<AtomicU64>);

impl Kernel for Told {
    fn forget_attributes(&self, _number: u64) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_write_of_another_takes_set_id_bits_and_the_kernel_hears_of_it() {
    let (mounted, number) = mounted();
    let told = Arc::new(AtomicU64::new(0));
    mounted.kernel().set(Box::new(Told(told.clone()))).unwrap();
    let own = rustix::process::getgid().as_raw() + 1000;
    let in_group = Caller { uid: 1, gid: own, pid: 0 };
    let stranger = Caller { uid: 1, gid: own + 1, pid: 0 };
    for (caller, before, after) in [
        (in_group, 0o6755, 0o755),
        (in_group, 0o6745, 0o2745),
        (stranger, 0o6745, 0o745),
        (stranger, 0o2666, 0o666),
        (stranger, 0o755, 0o755),
    ] {
        for punches in [false, true] {
            let mut change = Change::default();
            change.attributes.permissions = Some(before);
            change.attributes.gid = Some(own);
            mounted.change(CALLER, number, &change).unwrap();
            let heard = told.load(Ordering::SeqCst);
            if punches {
                let flags = AllocateFlags::PUNCH_HOLE | AllocateFlags::KEEP_SIZE;
                mounted.allocate(caller, number, 0, 4096, flags).unwrap();
            } else {
                mounted.write(number, b"x", 0, false, Some(caller)).unwrap();
            }
            assert_eq!(mounted.attributes(number).unwrap().permissions, after, "{before:o} {caller:?}");
            assert_eq!(told.load(Ordering::SeqCst) - heard, u64::from(before != after));
        }
    }
}

/// Where the kernel caches, it asks for that by itself.
#[test]
fn a_write_past_the_cache_takes_capabilities_whoever_writes() {
    let options = MountOptions { cache: Cache::None, ..MountOptions::default() };
    let (mounted, number) = mounted_with(options);
    let set = || mounted.set_xattr(CALLER, number, b"security.capability", &[1; 20], SetMode::Any).unwrap();
    let is_set = || mounted.xattr(number, b"security.capability").is_ok();
    for by in [None, Some(Caller { uid: 1, ..CALLER })] {
        set();
        assert!(is_set());
        mounted.write(number, b"x", 0, false, by).unwrap();
        assert!(!is_set(), "{by:?}");
    }
}

#[test]
fn only_root_knows_of_trusted_attributes() {
    let (mounted, number) = mounted();
    for name in [&b"trusted.secret"[..], b"user.known"] {
        mounted.set_xattr(CALLER, number, name, b"1", SetMode::Any).unwrap();
    }
    let names = |uid| mounted.xattr_names(Caller { uid, ..CALLER }, number).unwrap();
    assert_eq!(names(1), b"user.known\0");
    assert_eq!(names(0), b"trusted.secret\0user.known\0");
}

#[test]
fn an_inode_that_the_kernel_gave_back_is_found_by_its_number() {
    let (mounted, number) = mounted();
    let generation = mounted.attributes(number).unwrap().generation;
    // Known: counted once more.
    assert_eq!(mounted.lookup(number, b".").unwrap().generation, generation);
    mounted.forget(number, 2);
    assert!(mounted.attributes(number).is_err());
    let found = mounted.lookup(number, b".").unwrap();
    assert_eq!((mounted.number(&found), found.generation), (number, generation));
    assert_eq!(mounted.attributes(number).unwrap().size, SIZE as u64);
    assert_eq!(mounted.lookup(ROOT, b".").unwrap().kind, FileKind::Directory);
    // Without a name it is nobody's, known or not.
    mounted.remove_file(ROOT, b"f").unwrap();
    assert!(matches!(mounted.lookup(number, b"."), Err(FsError::NotFound)));
    mounted.forget(number, 1);
    for gone in [number, 2, u64::MAX, u64::from(u32::MAX)] {
        assert!(matches!(mounted.lookup(gone, b"."), Err(FsError::NotFound)), "{gone}");
    }
}

/// The caches below grow with what the kernel knows. Nothing is written here, so no checkpoint brings them back; and all
/// fits into their limits, which are for a machine that has memory.
#[test]
fn memory_of_inodes_that_the_kernel_gave_back_goes() {
    const FILES: u64 = 20_000;
    let device = Arc::new(f2fs_device::MemoryDevice::new(64 * 1024));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    let few = NonZeroUsize::new(1000).unwrap();
    for limited in [true, false] {
        let mut options = Options::new();
        if limited {
            options = options.inode_cache(few);
            options.volume = options.volume.node_cache(few);
        }
        if limited {
            let fs = FileSystem::open(device.clone(), options.clone()).unwrap();
            for number in 0..FILES {
                fs.create_file(format!("/{number}"), 0o644).unwrap();
            }
            fs.close().unwrap();
        }
        let fs = FileSystem::open(device.clone(), options.read_only(true)).unwrap();
        let mounted = Mounted::new(&fs, MountOptions::default()).unwrap();
        let nodes = || fs.statfs().cached_nodes;
        let told: Vec<u64> = (0..FILES)
            .map(|number| mounted.number(&mounted.lookup(ROOT, number.to_string().as_bytes()).unwrap()))
            .collect();
        assert!(nodes() >= FILES);
        let (kept, gone) = told.split_at(1000);
        gone.iter().for_each(|number| mounted.forget(*number, 1));
        // Those that were given back since the last steps, and what the kernel knows.
        assert!((1000..FILES / 2).contains(&nodes()), "{} nodes stay", nodes());
        for number in kept {
            assert!(mounted.attributes(*number).is_ok());
        }
    }
}
