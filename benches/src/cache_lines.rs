//! The operations whose cache lines are counted, in the counting half of f2fs-sync.
//!
//! Each is done by several threads in turns, each with objects of its own, after a warm-up that has the structures in
//! the state that they keep.

use std::sync::Arc;

use f2fs::device::MemoryDevice;
use f2fs::journal::RegionMedium;
use f2fs::pmem::MemoryRegion;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{DirectoryLock, File, FileSystem, JournalMode, JournalOptions, Options, RenameMode, create_journal};
use f2fs_extent::ExtentTable;
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::Summary;
use f2fs_format::{BlockAddr, LogType, Nid};
use f2fs_nat::{EmptySource, Nat, NatConfig, Policy};
use f2fs_segment::{Class, Run};
use f2fs_sync::counting::Footprint;

use crate::segments::manager;

/// Operations of each thread: enough to tell one in a hundred from one in two hundred, and to fill what is kept for a
/// processor (twice the batch of a `Budget`).
const OPERATIONS: usize = 600;
/// The most threads.
pub const MOST_THREADS: usize = 8;
/// NAT blocks of the table: 182 000 NIDs.
const NAT_BLOCKS: u32 = 400;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The operation.
    pub name: &'static str,
    /// Does it, with so many threads.
    pub measure: fn(usize) -> Footprint,
}

/// All rows.
pub const CASES: &[Case] = &[
    Case { name: "kernel-scan: allocate + free", measure: |threads| nid(threads, Policy::KernelScan) },
    Case { name: "clue: allocate + free", measure: |threads| nid(threads, Policy::CLUE) },
    Case { name: "sharded: allocate + free", measure: |threads| nid(threads, Policy::Sharded) },
    Case { name: "extent: lock + unlock one block, shared", measure: |threads| extent_lock(threads, true) },
    Case { name: "extent: lock + unlock one block, exclusive", measure: |threads| extent_lock(threads, false) },
    Case { name: "segment: allocate 512 blocks, one log", measure: |threads| blocks(threads, 1, 512) },
    Case { name: "segment: allocate 512 blocks, lanes", measure: |threads| blocks(threads, 16, 512) },
    Case { name: "segment: allocate 8 blocks, one log", measure: |threads| blocks(threads, 1, 8) },
    Case { name: "segment: allocate 8 blocks, lanes", measure: |threads| blocks(threads, 16, 8) },
    Case { name: "lookup, private directories", measure: |threads| names(threads, Name::Lookup, false) },
    Case { name: "create, private directories", measure: |threads| names(threads, Name::Create, false) },
    Case { name: "unlink, private directories", measure: |threads| names(threads, Name::Unlink, false) },
    Case { name: "rename, private directories", measure: |threads| names(threads, Name::Rename, false) },
    Case { name: "lookup, shared directory", measure: |threads| names(threads, Name::Lookup, true) },
    Case { name: "create, shared directory", measure: |threads| names(threads, Name::Create, true) },
    Case { name: "unlink, shared directory", measure: |threads| names(threads, Name::Unlink, true) },
    Case { name: "rename, shared directory", measure: |threads| names(threads, Name::Rename, true) },
    Case { name: "read 4 KiB, private files", measure: |threads| data(threads, Data::Read, false) },
    Case { name: "overwrite 4 KiB, private files", measure: |threads| data(threads, Data::Overwrite, false) },
    Case { name: "overwrite 4 KiB and sync, private files", measure: |threads| data(threads, Data::Sync, false) },
    Case { name: "overwrite 64 KiB, private files", measure: long_overwrites },
    Case { name: "read 4 KiB, shared file", measure: |threads| data(threads, Data::Read, true) },
    Case { name: "overwrite 4 KiB, shared file", measure: |threads| data(threads, Data::Overwrite, true) },
];

/// The row with this name, measured.
#[must_use]
pub fn case(name: &str, threads: usize) -> Option<Footprint> {
    CASES.iter().find(|case| case.name == name).map(|case| (case.measure)(threads))
}

/// Allocates a NID and frees it, as a create and an unlink do.
fn nid(threads: usize, policy: Policy) -> Footprint {
    let config = NatConfig::new(NAT_BLOCKS).policy(policy);
    let bitmap = vec![0; NAT_BLOCKS as usize / 8 + 1];
    let nat = Nat::new(config, Arc::new(EmptySource), bitmap, &[]).expect("the table is empty");
    nat.free_nids().expect("nothing is read");
    let operation = |_: usize, _: usize| {
        let nid = nat.allocate().expect("nothing is read").expect("there are many");
        nat.bind(nid, nid, BlockAddr(7)).expect("it is free");
        nat.free(nid).expect("it is bound");
    };
    Footprint::measure(threads, OPERATIONS, operation);
    Footprint::measure(threads, OPERATIONS, operation)
}

/// Locks one block of a file of 2 GiB; the threads' blocks are far apart.
fn extent_lock(threads: usize, shared: bool) -> Footprint {
    let table = ExtentTable::new();
    let operation = |thread: usize, n: usize| {
        let block = thread as u64 * (1 << 16) + n as u64 * 7919 % (1 << 16);
        if shared {
            drop(table.shared(block..=block));
        } else {
            drop(table.exclusive(block..=block));
        }
    };
    Footprint::measure(threads, OPERATIONS, operation);
    Footprint::measure(threads, OPERATIONS, operation)
}

/// Allocates so many blocks at once, each thread from its own lane if there are any.
fn blocks(threads: usize, lanes: usize, batch: usize) -> Footprint {
    let manager = manager(16 * 1024, lanes, |_| RawSitEntry::ZERO);
    let summaries = vec![Summary::new(Nid(9), 0, 1); batch];
    let operation = |thread: usize, _: usize| {
        let mut runs: Vec<Run> = Vec::with_capacity(4);
        manager.allocate_on(thread, Class::User, LogType::WarmData, &summaries, 7, &mut runs).expect("there is room");
    };
    Footprint::measure(threads, 8, operation);
    Footprint::measure(threads, OPERATIONS, operation)
}

/// A volume on the memory device, with a private directory for each thread and a shared one. Their number of files is
/// that of a directory of several levels.
fn volume() -> FileSystem {
    let device = Arc::new(MemoryDevice::new(256 * 1024));
    format(&*device, &FormatOptions::default()).expect("the device is large enough");
    let options = Options::new().directory_lock(DirectoryLock::Bucket);
    let fs = FileSystem::open(device, options).expect("it was just made");
    let private = (0..MOST_THREADS).map(|thread| format!("/private-{thread}"));
    for directory in private.chain(["/shared".to_owned()]) {
        fs.create_dir(&directory, 0o755).expect("there is room");
        for file in 0..2000 {
            fs.create_file(format!("{directory}/there-{file}"), 0o644).expect("there is room");
        }
    }
    fs
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Lookup,
    Create,
    Unlink,
    Rename,
}

/// Changes or looks up names, by full paths.
fn names(threads: usize, what: Name, shared: bool) -> Footprint {
    let fs = volume();
    let path = |thread: usize, kind: &str, n: usize| {
        if shared { format!("/shared/{kind}-{thread}-{n}") } else { format!("/private-{thread}/{kind}-{n}") }
    };
    if what != Name::Create {
        // As FxMark does: what is removed and renamed was there long before.
        for (thread, n) in (0..threads).flat_map(|thread| (0..OPERATIONS).map(move |n| (thread, n))) {
            drop(fs.create_file(path(thread, "file", n), 0o644).expect("there is room"));
            drop(fs.create_file(path(thread, "before", n), 0o644).expect("there is room"));
        }
        fs.checkpoint().expect("there is room");
    }
    if what == Name::Unlink {
        // The processors' stores of freed blocks and node IDs are full after that, and stay so.
        Footprint::measure(threads, OPERATIONS, |thread, n| {
            fs.remove_file(path(thread, "before", n)).expect("it was made")
        });
    }
    let prepare = |thread: usize, n: usize| (path(thread, "file", n), path(thread, "renamed", n));
    Footprint::measure_prepared(threads, OPERATIONS, prepare, |_, _, (old, new)| match what {
        Name::Lookup => drop(fs.metadata(&old).expect("it was made")),
        Name::Create => {
            drop(fs.create_file(&old, 0o644).expect("there is room"));
        }
        Name::Unlink => fs.remove_file(&old).expect("it was made"),
        Name::Rename => fs.rename(&old, &new, RenameMode::Replace).expect("it was made"),
    })
}

/// Overwrites 16 blocks at once, the threads each in a file of their own: buffers of this length are used again.
fn long_overwrites(threads: usize) -> Footprint {
    const LEN: usize = 16 * 4096;
    const PLACES: usize = 32;
    let fs = volume();
    let files: Vec<File> = (0..threads)
        .map(|thread| {
            let file = fs.create_file(format!("/private-{thread}/data"), 0o644).expect("there is room");
            file.write_at(&vec![7; LEN * PLACES], 0).expect("there is room");
            file
        })
        .collect();
    fs.checkpoint().expect("there is room");
    let data = vec![8; LEN];
    let operation = |thread: usize, n: usize| {
        let written = files[thread].write_at(&data, (n % PLACES * LEN) as u64);
        assert_eq!(written.expect("there is room"), LEN);
    };
    Footprint::measure(threads, 8, operation);
    Footprint::measure(threads, OPERATIONS, operation)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    Read,
    Overwrite,
    Sync,
}

/// The files of [`journaled_syncs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// One of each thread, whose blocks are overwritten one after the other.
    OneFile,
    /// Another one each time: its nodes go to the journal for the first time since the checkpoint.
    ManyFiles,
}

/// Overwrites blocks of files and syncs them into a journal in memory, together with their data. `operations`: of each
/// thread.
///
/// # Panics
/// If there is no room.
#[must_use]
pub fn journaled_syncs(threads: usize, operations: usize, synced: Synced) -> Footprint {
    let device = Arc::new(MemoryDevice::new(4 << 30 >> 12));
    format(&*device, &FormatOptions::default()).expect("there is room");
    let medium = Arc::new(RegionMedium::new(MemoryRegion::new(256 << 20).expect("there is room")));
    create_journal(device.clone(), medium.clone(), false).expect("there is room");
    let options = Options::new().journal(JournalOptions::new(medium, JournalMode::Journal));
    let fs = FileSystem::open(device, options).expect("it was just made");
    // Those before are for the caches.
    let (before, many) = (8, synced == Synced::ManyFiles);
    let content = vec![7; if many { 4096 } else { 4096 * (before + operations) }];
    let make = |thread: usize, number: usize| {
        let file = fs.create_file(format!("/{thread}-{number}"), 0o644).expect("there is room");
        file.write_at(&content, 0).expect("there is room");
        file
    };
    let of_thread = |thread| (0..if many { before + operations } else { 1 }).map(move |number| (thread, number));
    let files: Vec<Vec<File>> =
        (0..threads).map(|thread| of_thread(thread).map(|(thread, number)| make(thread, number)).collect()).collect();
    fs.checkpoint().expect("there is room");
    let checkpoints = fs.statfs().written.checkpoints;
    let operation = |thread: usize, n: usize| {
        let (file, block) = if many { (&files[thread][n], 0) } else { (&files[thread][0], n as u64) };
        file.write_at(&[7; 4096], block * 4096).expect("there is room");
        file.sync_data().expect("there is room");
    };
    Footprint::measure(threads, before, operation);
    let footprint = Footprint::measure(threads, operations, |thread, n| operation(thread, before + n));
    assert_eq!(fs.statfs().written.checkpoints, checkpoints, "every sync went to the journal");
    footprint
}

/// Reads or overwrites blocks of open files; the threads' blocks are far apart.
fn data(threads: usize, what: Data, shared: bool) -> Footprint {
    let fs = volume();
    let content = vec![7; 4096 * OPERATIONS * threads];
    let files: Vec<File> = (0..threads)
        .map(|thread| {
            let file = fs.create_file(format!("/private-{thread}/data"), 0o644).expect("there is room");
            file.write_at(&content, 0).expect("there is room");
            file
        })
        .collect();
    fs.checkpoint().expect("there is room");
    let operation = |thread: usize, n: usize| {
        let mut block = [7; 4096];
        let (file, at) = if shared { (&files[0], thread * OPERATIONS + n) } else { (&files[thread], n) };
        let done = match what {
            Data::Read => file.read_at(&mut block, at as u64 * 4096),
            Data::Overwrite => file.write_at(&block, at as u64 * 4096),
            Data::Sync => file.write_durable(&block, at as u64 * 4096),
        };
        assert_eq!(done.expect("there is room"), 4096);
    };
    Footprint::measure(threads, 8, operation);
    Footprint::measure(threads, OPERATIONS, operation)
}
