//! Volumes without room: errors with their numbers, nothing broken, and room again after deletions.
//!
//! `F2FS_ROUNDS=10` runs ten times as many rounds of filling and emptying.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use f2fs_device::MemoryDevice;
use f2fs_device_test::{Random, bytes};
use f2fs_files::{AllocateFlags, FileSystem, FsError, Options};
use f2fs_test_kit::volumes::{assert_clean, formatted, scale, within};
use f2fs_volume::VolumeError;
use f2fs_volume::format::FormatOptions;

const LIMIT: Duration = Duration::from_secs(240);

fn open(device: &Arc<MemoryDevice>) -> FileSystem {
    FileSystem::open(device.clone(), Options::new()).unwrap()
}

/// The numbers in an error that says that space is missing. What was asked for did not fit.
#[track_caller]
fn numbers(error: &FsError) -> (u64, u64) {
    assert!(error.is_no_space(), "{error}");
    let FsError::NoSpace(cause) = error else { panic!("not an error that a user can act on: {error}") };
    match &**cause {
        VolumeError::NoSpace { wanted, available } => {
            assert!(wanted > available, "{error}");
            assert!(error.to_string().contains(&format!("{wanted} blocks wanted, {available} left")), "{error}");
            (*wanted, *available)
        }
        VolumeError::NoNids { used, limit } => {
            assert!(used <= limit, "{error}");
            (1, 0)
        }
        other => panic!("not an error that a user can act on: {other}"),
    }
}

fn rounds() -> usize {
    2 * scale("F2FS_ROUNDS")
}

fn content(name: u64, len: usize) -> Vec<u8> {
    bytes(len, name ^ 0x5eed)
}

fn assert_content(fs: &FileSystem, path: &str, wanted: &[u8]) {
    let mut read = vec![0; wanted.len() + 1];
    let len = fs.open_file(path).unwrap().read_at(&mut read, 0).unwrap();
    assert!(read[..len] == *wanted, "{path}: {len} bytes, {} wanted", wanted.len());
}

/// Creates files until nothing fits any more. Returns the sizes that they have, with the error.
fn fill(fs: &FileSystem, dir: &str, len: impl Fn(u64) -> usize) -> (Vec<usize>, FsError) {
    fs.create_dir(dir, 0o755).unwrap();
    let mut sizes = Vec::new();
    for name in 0.. {
        let file = match fs.create_file(format!("{dir}/{name}"), 0o644) {
            Ok(file) => file,
            Err(error) => return (sizes, error),
        };
        let wanted = content(name, len(name));
        let mut written = 0;
        while written < wanted.len() {
            match file.write_at(&wanted[written..], written as u64) {
                Ok(more) => written += more,
                Err(error) => {
                    assert_eq!(file.size(), written as u64);
                    sizes.push(written);
                    return (sizes, error);
                }
            }
        }
        assert_eq!(file.size(), written as u64);
        sizes.push(written);
    }
    unreachable!("a volume has an end")
}

fn check_round(fs: &FileSystem, device: &Arc<MemoryDevice>, dir: &str, sizes: &[usize], lens: impl Fn(u64) -> usize) {
    for (name, size) in sizes.iter().enumerate() {
        let wanted = content(name as u64, lens(name as u64));
        assert_content(fs, &format!("{dir}/{name}"), &wanted[..*size]);
    }
    fs.checkpoint().unwrap();
    assert_clean(device);
}

fn fill_and_empty(mib: u64, lens: impl Fn(u64) -> usize) {
    let device = formatted(mib, &FormatOptions::default());
    let mut fs = open(&device);
    let empty = fs.statfs().valid_blocks;
    let mut first = 0;
    for round in 0..rounds() {
        let (sizes, error) = fill(&fs, "/full", &lens);
        numbers(&error);
        check_round(&fs, &device, "/full", &sizes, &lens);
        let stat = fs.statfs();
        // What is left is less than one more file needs.
        assert!(stat.user_blocks - stat.valid_blocks <= 600, "{stat:?}");
        let total: usize = sizes.iter().sum();
        if round == 0 {
            first = total;
        }
        assert!(total * 100 >= first * 98, "round {round}: {total} bytes fit, {first} at first");

        // Overwriting needs no further room, though every block goes to a new place.
        for name in (0..sizes.len()).step_by(7) {
            let file = fs.open_file(format!("/full/{name}")).unwrap();
            let size = sizes[name];
            assert_eq!(file.write_at(&content(name as u64, size)[..size], 0).unwrap(), size);
        }
        check_round(&fs, &device, "/full", &sizes, &lens);

        // Deleting works at once, and what is gone can be used again.
        if round % 2 == 0 {
            for name in (0..sizes.len()).step_by(2) {
                fs.remove_file(format!("/full/{name}")).unwrap();
            }
            let (again, error) = fill(&fs, "/again", &lens);
            numbers(&error);
            assert!(again.iter().sum::<usize>() * 100 >= total * 45, "after deleting every other file");
            for name in (1..sizes.len()).step_by(2) {
                let wanted = content(name as u64, lens(name as u64));
                assert_content(&fs, &format!("/full/{name}"), &wanted[..sizes[name]]);
            }
            check_round(&fs, &device, "/again", &again, &lens);
            fs.remove_all("/again").unwrap();
        }
        fs.remove_all("/full").unwrap();
        fs.close().unwrap();
        drop(fs);
        fs = open(&device);
        assert_eq!(fs.statfs().valid_blocks, empty, "round {round}");
        assert_eq!(fs.read_dir("/").unwrap().count(), 0);
    }
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn many_small_files() {
    within(LIMIT, || fill_and_empty(64, |name| 1 + (name as usize * 37) % 9000));
}

#[test]
fn files_of_some_blocks() {
    within(LIMIT, || fill_and_empty(64, |name| 20_000 + (name as usize * 7919) % 60_000));
}

#[test]
fn few_large_files() {
    within(LIMIT, || fill_and_empty(64, |_| 5 << 20));
}

/// Small overwrites at random places of a full volume: each leaves a hole in an old segment, and only moving blocks together
/// makes segments free again.
#[test]
fn random_overwrites_at_full() {
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device);
        let (sizes, error) = fill(&fs, "/full", |_| 1 << 20);
        numbers(&error);
        let mut all: Vec<Vec<u8>> = (0..sizes.len()).map(|name| content(name as u64, 1 << 20)).collect();
        let mut random = Random::new(7);
        for step in 0..3000 * scale("F2FS_ROUNDS") {
            let name = random.below(sizes.len());
            if sizes[name] < 8192 {
                continue;
            }
            let at = random.below(sizes[name] - 4096);
            let data = bytes(1 + random.below(4096), random.next());
            let file = fs.open_file(format!("/full/{name}")).unwrap();
            let written = file.write_at(&data, at as u64);
            assert_eq!(written.unwrap_or_else(|error| panic!("step {step}: {error}")), data.len());
            all[name][at..at + data.len()].copy_from_slice(&data);
        }
        for (name, size) in sizes.iter().enumerate() {
            assert_content(&fs, &format!("/full/{name}"), &all[name][..*size]);
        }
        fs.close().unwrap();
        assert_clean(&device);
    });
}

#[test]
fn eight_threads_until_nothing_fits() {
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device);
        for round in 0..rounds() {
            let failures = AtomicU64::new(0);
            let all: Vec<Vec<usize>> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8u64)
                    .map(|thread| {
                        let (fs, failures) = (&fs, &failures);
                        scope.spawn(move || {
                            let dir = format!("/t{thread}");
                            // Another thread may have taken the last block before this one has begun.
                            if let Err(error) = fs.create_dir(&dir, 0o755) {
                                numbers(&error);
                                return Vec::new();
                            }
                            fs.remove_dir(&dir).unwrap();
                            let (sizes, error) = fill(fs, &dir, |name| 1 + (name as usize * 4001) % 70_000);
                            numbers(&error);
                            failures.fetch_add(1, Ordering::Relaxed);
                            sizes
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(failures.load(Ordering::Relaxed) > 0);
            for (thread, sizes) in all.iter().enumerate() {
                check_round(&fs, &device, &format!("/t{thread}"), sizes, |name| 1 + (name as usize * 4001) % 70_000);
            }
            std::thread::scope(|scope| {
                for thread in 0..8 {
                    let fs = &fs;
                    scope.spawn(move || {
                        let dir = format!("/t{thread}");
                        if fs.exists(&dir).unwrap() {
                            fs.remove_all(&dir).unwrap();
                        }
                    });
                }
            });
            fs.checkpoint().unwrap();
            assert_eq!(fs.read_dir("/").unwrap().count(), 0, "round {round}");
        }
        fs.close().unwrap();
        assert_clean(&device);
    });
}

/// An append that does not fit leaves the file as it was: its caller cannot know how much of it there would be.
#[test]
fn an_append_is_whole_or_nothing() {
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device);
        let file = fs.create_file("/log", 0o644).unwrap();
        let line = content(1, 3 << 20);
        let mut size = 0;
        let error = loop {
            match file.append(&line) {
                Ok(offset) => {
                    assert_eq!(offset, size);
                    size += line.len() as u64;
                }
                Err(error) => break error,
            }
        };
        numbers(&error);
        assert_eq!(file.size(), size);
        file.append(b"short").unwrap();
        drop(file);
        fs.close().unwrap();
        assert_clean(&device);
    });
}

/// A name, and what a file holds before.
type Begin<'a> = (&'a str, &'a dyn Fn(&f2fs_files::File));

/// An allocation that does not fit leaves the file, and the room for others, as they were.
#[test]
fn an_allocation_is_whole_or_nothing() {
    const MIB: u64 = 1 << 20;
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device);
        let left = |fs: &FileSystem| {
            let stat = fs.statfs();
            stat.user_blocks - stat.valid_blocks
        };
        // Blocks that the file has, reserved behind its end, and in the middle of what is asked for.
        let begin: [Begin<'_>; 6] = [
            ("empty", &|_| {}),
            ("inline", &|file| assert_eq!(file.write_at(b"inline", 0).unwrap(), 6)),
            ("blocks", &|file| assert_eq!(file.write_at(&content(1, 50_000), 0).unwrap(), 50_000)),
            ("holes", &|file| {
                for at in [0, 3 * MIB, 5 * MIB + 4096, 30 * MIB] {
                    assert_eq!(file.write_at(&content(at, 9000), at).unwrap(), 9000);
                }
            }),
            ("reserved behind the end", &|file| {
                file.write_at(&content(1, 50_000), 0).unwrap();
                file.allocate(4 * MIB, 2 * MIB, AllocateFlags::KEEP_SIZE).unwrap();
            }),
            ("reserved and holes", &|file| {
                file.allocate(MIB, MIB, AllocateFlags::NONE).unwrap();
                file.write_at(&content(8, 9000), 8 * MIB).unwrap();
                file.allocate(20 * MIB, MIB / 2, AllocateFlags::KEEP_SIZE).unwrap();
            }),
        ];
        for room in [0, 1, 3, 700, 3000] {
            for (name, begin) in &begin {
                let what = format!("{name}, room for {room} blocks");
                let file = fs.create_file("/file", 0o644).unwrap();
                begin(&file);
                // All but so much of the volume is in use.
                let filler = fs.create_file("/filler", 0o644).unwrap();
                while left(&fs) > room {
                    let wanted = (left(&fs) - room) * 4096;
                    let len = wanted.clamp(4096, MIB) as usize;
                    filler.append(&vec![7; len]).or_else(|_| filler.append(&[7; 4096])).unwrap();
                }
                fs.checkpoint().unwrap();
                let (before, size) = (file.metadata().unwrap(), file.size());
                let mut whole = vec![0; 40 << 20];
                let len = file.read_at(&mut whole, 0).unwrap();
                whole.truncate(len);
                let free = left(&fs);
                for keep_size in [false, true] {
                    for (offset, len) in [
                        (0, 1 << 30),
                        (4096 * 5 + 17, 1 << 30),
                        (2 * MIB, 1 << 40),
                        // Room for the blocks, and not for the nodes.
                        (100 * MIB, free * 4096),
                        (0, (free + before.blocks) * 4096),
                        (0, (free + 1) * 4096 + 5 * MIB),
                    ] {
                        if len == 0 {
                            continue;
                        }
                        let what = format!("{what}, {len} from {offset}, {keep_size}");
                        let error =
                            file.allocate(offset, len, AllocateFlags::NONE.keep_size(keep_size)).expect_err(&what);
                        numbers(&error);
                        assert_eq!((left(&fs), file.size()), (free, size), "{what}");
                        let after = file.metadata().unwrap();
                        assert_eq!((after.blocks, after.modified), (before.blocks, before.modified), "{what}");
                        let mut again = vec![0; whole.len() + 1];
                        let len = file.read_at(&mut again, 0).unwrap();
                        assert!(again[..len] == whole[..], "{what}");
                    }
                }
                fs.checkpoint().unwrap();
                assert_clean(&device);
                // What fits is given.
                drop(filler);
                fs.remove_file("/filler").unwrap();
                file.allocate(0, 10 * MIB, AllocateFlags::NONE).unwrap();
                drop(file);
                fs.remove_file("/file").unwrap();
            }
        }
        fs.close().unwrap();
        assert_clean(&device);
    });
}

/// All NIDs in use: what needs one is refused, everything else goes on, and a deletion makes room for one file more.
#[test]
fn no_nid_is_left() {
    use f2fs_files::{FileKind, NewFile, RenameMode, SetMode};
    within(LIMIT, || {
        for policy in ["sharded", "kernel-scan", "clue"] {
            let device = formatted(64, &FormatOptions::default());
            let volume = f2fs_volume::OpenOptions::new().nid_policy(policy.parse().unwrap());
            let fs = FileSystem::open(device.clone(), Options::new().volume(volume)).unwrap();
            let empty = fs.statfs();
            fs.create_dir("/dir", 0o755).unwrap();
            for name in 0..20 {
                let file = fs.create_file(format!("/dir/{name}"), 0o644).unwrap();
                file.write_at(&content(name, 100 + name as usize * 3000), 0).unwrap();
            }
            let large = fs.create_file("/large", 0o644).unwrap();
            large.write_at(&content(99, 8 << 20), 0).unwrap();
            let held_open = fs.create_file("/held open", 0o644).unwrap();
            held_open.write_at(&content(98, 6 << 20), 0).unwrap();
            fs.link("/large", "/second").unwrap();
            fs.checkpoint().unwrap();
            let held = fs.hold_nids(0).unwrap();
            assert!(held > 1000, "{policy}: {held}");

            let refused = |error: FsError| match error {
                FsError::NoSpace(cause) => assert!(matches!(*cause, VolumeError::NoNids { .. }), "{cause}"),
                other => panic!("{policy}: {other}"),
            };
            for _ in 0..3 {
                refused(fs.create_file("/new", 0o644).unwrap_err());
                refused(fs.create_dir("/new", 0o755).unwrap_err());
                refused(fs.create("/new", &NewFile::new(FileKind::Fifo, 0o600)).unwrap_err());
                refused(fs.symlink(b"x", "/new", &NewFile::new(FileKind::Symlink, 0o777)).unwrap_err());
                refused(fs.set_xattr("/dir/1", "user.large", &[7; 3000], SetMode::Any).unwrap_err());
                refused(large.write_at(b"needs a node", 40 << 20).unwrap_err());
                assert!(large.allocate(40 << 20, 1 << 20, AllocateFlags::NONE).unwrap_err().is_no_space());
                fs.checkpoint().unwrap();
            }
            assert!(!fs.exists("/new").unwrap());
            assert_eq!(large.size(), 8 << 20);
            // What needs no node goes on.
            large.write_at(&content(97, 1 << 20), 1 << 20).unwrap();
            fs.link("/large", "/third").unwrap();
            fs.rename("/dir/0", "/renamed", RenameMode::Replace).unwrap();
            fs.set_xattr("/dir/1", "user.small", b"fits", SetMode::Any).unwrap();
            fs.set_permissions("/dir/1", 0o600).unwrap();
            fs.open_file("/dir/1").unwrap().sync_all().unwrap();
            fs.checkpoint().unwrap();
            assert_clean(&device);
            // And so does what gives nodes back.
            fs.remove_file("/third").unwrap();
            fs.remove_file("/second").unwrap();
            large.set_len(100).unwrap();
            fs.remove_file("/held open").unwrap();
            drop(held_open);
            for name in 1..10 {
                fs.remove_file(format!("/dir/{name}")).unwrap();
            }
            fs.checkpoint().unwrap();
            assert_clean(&device);
            // A NID is free again when the checkpoint has that it is not in use.
            let mut made = 0;
            let error = loop {
                match fs.create_file(format!("/made-{made}"), 0o644) {
                    Ok(_) => made += 1,
                    Err(error) => break error,
                }
            };
            refused(error);
            assert!(made >= 9, "{policy}: {made} files for as many that were deleted");
            drop(large);
            for path in ["/large", "/renamed", "/dir"] {
                fs.remove_all(path).unwrap();
            }
            for number in 0..made {
                fs.remove_file(format!("/made-{number}")).unwrap();
            }
            fs.close().unwrap();
            assert_clean(&device);
            assert_eq!(fs.statfs().valid_blocks, empty.valid_blocks, "{policy}");
        }
    });
}

/// No block is left at all: everything that gives some back works, in any order, with a checkpoint or without one between.
#[test]
fn what_gives_room_needs_none() {
    use f2fs_files::RenameMode;
    within(LIMIT, || {
        for checkpoints in [true, false] {
            let device = formatted(64, &FormatOptions::default());
            let fs = open(&device);
            let empty = fs.statfs().valid_blocks;
            fs.create_dir("/dir", 0o755).unwrap();
            for name in 0..200 {
                fs.create_file(format!("/dir/{name}"), 0o644).unwrap().write_at(&content(name, 20_000), 0).unwrap();
            }
            let sparse = fs.create_file("/sparse", 0o644).unwrap();
            for at in 0..60 {
                sparse.write_at(b"far apart", at << 24).unwrap();
            }
            fs.create_dir("/empty", 0o755).unwrap();
            let (sizes, error) = fill(&fs, "/full", |_| 1 << 20);
            numbers(&error);
            let mut last = 0;
            while fs.create_file(format!("/full/last-{last}"), 0o600).is_ok() {
                last += 1;
            }
            let stat = fs.statfs();
            assert_eq!(stat.valid_blocks, stat.user_blocks);
            let step = || {
                if checkpoints {
                    fs.checkpoint().unwrap();
                }
            };
            let open_one = fs.open_file("/full/0").unwrap();
            step();
            fs.remove_file("/full/0").unwrap(); // an orphan, with all its blocks
            step();
            sparse.set_len(1 << 24).unwrap(); // rewrites the block of the new end
            step();
            fs.open_file("/dir/0").unwrap().set_len(5000).unwrap();
            step();
            fs.rename("/dir/1", "/dir/2", RenameMode::Replace).unwrap();
            step();
            fs.remove_dir("/empty").unwrap();
            step();
            sparse.set_len(0).unwrap();
            fs.open_file("/dir/3").unwrap().set_len(0).unwrap();
            step();
            drop(open_one);
            fs.remove_all("/dir").unwrap();
            step();
            assert!(!sizes.is_empty());
            fs.remove_all("/full").unwrap();
            drop(sparse);
            fs.remove_file("/sparse").unwrap();
            fs.close().unwrap();
            assert_clean(&device);
            assert_eq!(fs.statfs().valid_blocks, empty);
        }
    });
}

/// Nothing fits any more, not even an inode, a name or an attribute.
#[test]
fn directories_links_and_attributes_at_full() {
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let small = f2fs_volume::OpenOptions::new().node_cache(NonZeroUsize::new(512).unwrap());
        let fs = FileSystem::open(device.clone(), Options::new().volume(small)).unwrap();
        let (sizes, error) = fill(&fs, "/full", |_| 3 << 20);
        numbers(&error);
        // The rest goes to inodes.
        let mut made = 0;
        let error = loop {
            match fs.create_file(format!("/full/last-{made}"), 0o600) {
                Ok(_) => made += 1,
                Err(error) => break error,
            }
        };
        numbers(&error);
        numbers(&fs.create_dir("/full/dir", 0o700).unwrap_err());
        let link = f2fs_files::NewFile::new(f2fs_files::FileKind::Symlink, 0o777);
        numbers(&fs.symlink(b"target", "/full/link", &link).unwrap_err());
        let value = vec![7; 3000];
        numbers(&fs.set_xattr("/full", "user.large", &value, f2fs_files::SetMode::Any).unwrap_err());
        // What needs no block works.
        fs.set_xattr("/full", "user.small", b"fits", f2fs_files::SetMode::Any).unwrap();
        fs.set_permissions("/full/0", 0o400).unwrap();
        fs.rename("/full/0", "/full/renamed", f2fs_files::RenameMode::Replace).unwrap();
        fs.checkpoint().unwrap();
        assert_clean(&device);
        assert!(!sizes.is_empty());
        fs.open_file("/full/renamed").unwrap().set_len(100).unwrap();
        fs.create_dir("/full/dir", 0o700).unwrap();
        fs.set_xattr("/full", "user.large", &value, f2fs_files::SetMode::Any).unwrap();
        fs.close().unwrap();
        assert_clean(&device);
    });
}

/// Thirty-two threads fill the volume, overwrite what they have when nothing more fits, delete every other file, clean beside
/// each other, and fill it again; in the end everything is deleted, and every block is free again. Ten rounds, each on the
/// volume as the one before left it, with the ways of writing into holes in turn, every other one beside a background cleaner.
#[test]
fn thirty_two_threads_at_the_limit() {
    const THREADS: u64 = 32;
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device);
        for thread in 0..THREADS {
            fs.create_dir(format!("/{thread}"), 0o755).unwrap();
        }
        fs.close().unwrap();
        let empty = fs.statfs().valid_blocks;
        drop(fs);
        let length = |seed: u64| 4096 + (seed as usize).wrapping_mul(977) % 60_000;
        let path = |thread: u64, name: u64| format!("/{thread}/{name}");
        for round in 0..5 * rounds() as u64 {
            let ways = ["selective-optimal", "ssr", "selective-optimal+27", "partial", "selective-greedy"];
            let allocation = ways[round as usize % ways.len()].parse::<f2fs_volume::Allocation>().unwrap();
            let volume = f2fs_volume::OpenOptions::new().allocation(allocation);
            let fs = FileSystem::open(device.clone(), Options::new().volume(volume)).unwrap();
            assert_eq!(fs.statfs().valid_blocks, empty, "round {round}");
            let pace = f2fs_files::CleanerOptions::default().urgent_interval(Duration::from_millis(5));
            let cleaner = (round % 2 == 0).then(|| fs.start_cleaner(pace));
            let everybody = |work: &(dyn Fn(&FileSystem, u64) + Sync)| {
                std::thread::scope(|scope| {
                    for thread in 0..THREADS {
                        let fs = &fs;
                        scope.spawn(move || work(fs, thread));
                    }
                });
            };
            // What each file must hold: its seed and its length, by thread and name.
            let held: Vec<std::sync::Mutex<Vec<(u64, u64, usize)>>> =
                (0..THREADS).map(|_| Default::default()).collect();
            let fill = |again: bool| {
                everybody(&|fs, thread| {
                    let mut mine = held[thread as usize].lock().unwrap();
                    for name in 0.. {
                        let name = name + if again { 10_000 } else { 0 };
                        let seed = round << 40 | thread << 20 | name;
                        let wanted = content(seed, length(seed));
                        let file = match fs.create_file(path(thread, name), 0o644) {
                            Ok(file) => file,
                            Err(error) => {
                                numbers(&error);
                                return;
                            }
                        };
                        let mut written = 0;
                        while written < wanted.len() {
                            match file.write_at(&wanted[written..], written as u64) {
                                Ok(more) => written += more,
                                Err(error) => {
                                    numbers(&error);
                                    break;
                                }
                            }
                        }
                        mine.push((name, seed, written));
                        if written < wanted.len() {
                            return;
                        }
                    }
                });
            };
            let verify = || {
                everybody(&|fs, thread| {
                    for (name, seed, size) in held[thread as usize].lock().unwrap().iter() {
                        let wanted = content(*seed, length(*seed));
                        assert_content(fs, &path(thread, *name), &wanted[..*size]);
                    }
                });
            };
            fill(false);
            verify();
            // Every block goes to a new place, though there is no room for one more.
            everybody(&|fs, thread| {
                for (name, seed, size) in held[thread as usize].lock().unwrap().iter() {
                    let file = fs.open_file(path(thread, *name)).unwrap();
                    let wanted = content(*seed, length(*seed));
                    if *size > 4096 {
                        assert_eq!(file.write_at(&wanted[4096..*size], 4096).unwrap(), *size - 4096);
                    }
                    // And a block here and there, which leaves single holes.
                    for block in (0..*size / 4096).step_by(3) {
                        let start = block * 4096;
                        let part = &wanted[start..start + 4096];
                        assert_eq!(file.write_at(part, start as u64).unwrap(), 4096);
                    }
                }
            });
            verify();
            everybody(&|fs, thread| {
                held[thread as usize].lock().unwrap().retain(|(name, ..)| {
                    let keep = name % 2 == 0;
                    if !keep {
                        fs.remove_file(path(thread, *name)).unwrap();
                    }
                    keep
                });
                while thread % 8 == 0
                    && fs.clean_step(f2fs_files::Pace::Urgent).unwrap().is_some_and(|step| step.segments > 0)
                {
                }
            });
            fs.clean().unwrap();
            fill(true);
            verify();
            if let Some(cleaner) = cleaner {
                assert_eq!(cleaner.failed(), None);
            }
            fs.checkpoint().unwrap();
            assert_clean(&device);
            everybody(&|fs, thread| {
                for (name, ..) in held[thread as usize].lock().unwrap().iter() {
                    fs.remove_file(path(thread, *name)).unwrap();
                }
            });
            everybody(&|fs, thread| {
                for entry in fs.read_dir(format!("/{thread}")).unwrap().map(Result::unwrap) {
                    // Made, but without room for a single byte.
                    let name = String::from_utf8(entry.name).unwrap();
                    fs.remove_file(format!("/{thread}/{name}")).unwrap();
                }
                fs.remove_dir(format!("/{thread}")).unwrap();
                fs.create_dir(format!("/{thread}"), 0o755).unwrap();
            });
            fs.checkpoint().unwrap();
            assert_eq!(fs.statfs().valid_blocks, empty, "round {round}");
            fs.close().unwrap();
            assert_clean(&device);
        }
    });
}
