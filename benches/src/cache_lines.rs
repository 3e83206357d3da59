//! The operations whose cache lines are counted, in the counting half of f2fs-sync.
//!
//! Each is done by two threads in turns, each with objects of its own, after a warm-up that has the structures in the state
//! that they keep.

use std::sync::Arc;

use f2fs::device::MemoryDevice;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{DirectoryLock, File, FileSystem, Options, RenameMode};
use f2fs_extent::ExtentTable;
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::Summary;
use f2fs_format::{BlockAddr, LogType, Nid};
use f2fs_nat::{EmptySource, Nat, NatConfig, Policy};
use f2fs_segment::{Class, Run};
use f2fs_sync::counting::Footprint;

use crate::segments::manager;

/// Operations of each thread.
const OPERATIONS: usize = 256;
/// NAT blocks of the table: 182 000 NIDs.
const NAT_BLOCKS: u32 = 400;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What is done.
    pub name: &'static str,
    /// Does it.
    pub measure: fn() -> Footprint,
}

/// All rows.
pub const CASES: &[Case] = &[
    Case { name: "kernel-scan: allocate + free", measure: || nid(Policy::KernelScan) },
    Case { name: "clue: allocate + free", measure: || nid(Policy::CLUE) },
    Case { name: "sharded: allocate + free", measure: || nid(Policy::Sharded) },
    Case { name: "extent: lock + unlock one block, shared", measure: || extent_lock(true) },
    Case { name: "extent: lock + unlock one block, exclusive", measure: || extent_lock(false) },
    Case { name: "segment: allocate 512 blocks, one log", measure: || blocks(1, 512) },
    Case { name: "segment: allocate 512 blocks, lanes", measure: || blocks(16, 512) },
    Case { name: "segment: allocate 8 blocks, one log", measure: || blocks(1, 8) },
    Case { name: "segment: allocate 8 blocks, lanes", measure: || blocks(16, 8) },
    Case { name: "lookup, private directories", measure: || names(Name::Lookup, false) },
    Case { name: "create, private directories", measure: || names(Name::Create, false) },
    Case { name: "unlink, private directories", measure: || names(Name::Unlink, false) },
    Case { name: "rename, private directories", measure: || names(Name::Rename, false) },
    Case { name: "lookup, shared directory", measure: || names(Name::Lookup, true) },
    Case { name: "create, shared directory", measure: || names(Name::Create, true) },
    Case { name: "unlink, shared directory", measure: || names(Name::Unlink, true) },
    Case { name: "rename, shared directory", measure: || names(Name::Rename, true) },
    Case { name: "read 4 KiB, private files", measure: || data(Data::Read, false) },
    Case { name: "overwrite 4 KiB, private files", measure: || data(Data::Overwrite, false) },
    Case { name: "read 4 KiB, shared file", measure: || data(Data::Read, true) },
    Case { name: "overwrite 4 KiB, shared file", measure: || data(Data::Overwrite, true) },
];

/// The row with this name.
#[must_use]
pub fn case(name: &str) -> Option<Footprint> {
    CASES.iter().find(|case| case.name == name).map(|case| (case.measure)())
}

/// Allocates a NID and frees it, as a create and an unlink do.
fn nid(policy: Policy) -> Footprint {
    let config = NatConfig::new(NAT_BLOCKS).policy(policy);
    let bitmap = vec![0; NAT_BLOCKS as usize / 8 + 1];
    let nat = Nat::new(config, Arc::new(EmptySource), bitmap, &[]).expect("the table is empty");
    nat.free_nids().expect("nothing is read");
    let operation = |_: usize, _: usize| {
        let nid = nat.allocate().expect("nothing is read").expect("there are many");
        nat.bind(nid, nid, BlockAddr(7)).expect("it is free");
        nat.free(nid).expect("it is bound");
    };
    Footprint::measure(OPERATIONS, operation);
    Footprint::measure(OPERATIONS, operation)
}

/// Locks one block of a file of 1 GiB; the threads' blocks are far apart.
fn extent_lock(shared: bool) -> Footprint {
    let table = ExtentTable::new();
    let operation = |thread: usize, n: usize| {
        let block = thread as u64 * (1 << 17) + n as u64 * 7919 % (1 << 17);
        if shared {
            drop(table.shared(block..=block));
        } else {
            drop(table.exclusive(block..=block));
        }
    };
    Footprint::measure(OPERATIONS, operation);
    Footprint::measure(OPERATIONS, operation)
}

/// Allocates so many blocks at once, each thread from its own lane if there are any.
fn blocks(lanes: usize, batch: usize) -> Footprint {
    let manager = manager(4 * 1024, lanes, |_| RawSitEntry::ZERO);
    let summaries = vec![Summary::new(Nid(9), 0, 1); batch];
    let operation = |thread: usize, _: usize| {
        let mut runs: Vec<Run> = Vec::with_capacity(4);
        manager.allocate_on(thread, Class::User, LogType::WarmData, &summaries, 7, &mut runs).expect("there is room");
    };
    Footprint::measure(8, operation);
    Footprint::measure(OPERATIONS, operation)
}

/// A volume on the memory device, with a private directory for each thread and a shared one. Their number of files is that of
/// a directory of several levels.
fn volume() -> FileSystem {
    let device = Arc::new(MemoryDevice::new(128 * 1024));
    format(&*device, &FormatOptions::default()).expect("the device is large enough");
    let options = Options::new().directory_lock(DirectoryLock::Bucket);
    let fs = FileSystem::open(device, options).expect("it was just made");
    for directory in ["/private-0", "/private-1", "/shared"] {
        fs.create_dir(directory, 0o755).expect("there is room");
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
fn names(what: Name, shared: bool) -> Footprint {
    let fs = volume();
    let path = |thread: usize, kind: &str, n: usize| {
        if shared { format!("/shared/{kind}-{thread}-{n}") } else { format!("/private-{thread}/{kind}-{n}") }
    };
    let prepare = |thread: usize, n: usize| {
        let (old, new) = (path(thread, "file", n), path(thread, "renamed", n));
        if what != Name::Create {
            drop(fs.create_file(&old, 0o644).expect("there is room"));
        }
        (old, new)
    };
    Footprint::measure_prepared(OPERATIONS, prepare, |_, _, (old, new)| match what {
        Name::Lookup => drop(fs.stat(&old).expect("it was made")),
        Name::Create => {
            drop(fs.create_file(&old, 0o644).expect("there is room"));
        }
        Name::Unlink => fs.unlink(&old).expect("it was made"),
        Name::Rename => fs.rename(&old, &new, RenameMode::Replace).expect("it was made"),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    Read,
    Overwrite,
}

/// Reads or overwrites blocks of open files; the threads' blocks are far apart.
fn data(what: Data, shared: bool) -> Footprint {
    let fs = volume();
    let content = vec![7; 4096 * OPERATIONS * 2];
    let files: Vec<File> = (0..2)
        .map(|thread| {
            let file = fs.create_file(format!("/private-{thread}/data"), 0o644).expect("there is room");
            file.write_at(0, &content).expect("there is room");
            file
        })
        .collect();
    fs.checkpoint().expect("there is room");
    let operation = |thread: usize, n: usize| {
        let mut block = [7; 4096];
        let (file, at) = if shared { (&files[0], thread * OPERATIONS + n) } else { (&files[thread], n) };
        let done = match what {
            Data::Read => file.read_at(at as u64 * 4096, &mut block),
            Data::Overwrite => file.write_at(at as u64 * 4096, &block),
        };
        assert_eq!(done.expect("there is room"), 4096);
    };
    Footprint::measure(8, operation);
    Footprint::measure(OPERATIONS, operation)
}
