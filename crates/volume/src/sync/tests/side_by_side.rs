//! Syncs of several threads, each of which writes its own nodes.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use f2fs_device::Operation;
use f2fs_device_test::{Fault, FaultRule};

use super::*;
use crate::SyncWriters;

fn bench() -> Bench {
    Bench::open(&VolumeOptions::new().sync_writers(SyncWriters::Each), None, 0)
}

/// The files of which a power cut leaves a synced inode, and what it says of the owner.
fn owners(volume: &Volume) -> Vec<(Nid, u32)> {
    let synced = volume.recovery().synced_nodes().unwrap();
    let of = |node: &crate::ChainNode| volume.recovery().synced_node(node.addr).unwrap().inode().i_uid.get();
    synced.iter().filter(|node| node.fsync).map(|node| (node.ino, of(node))).collect()
}

/// Far more threads than processors: they are often taken off theirs between taking a place and writing it.
#[test]
fn many_threads_sync_and_all_is_durable() {
    const THREADS: u32 = 48;
    const ROUNDS: u32 = 20;
    let bench = bench();
    let files: Vec<Node> = (0..THREADS).map(|_| bench.file()).collect();
    bench.checkpoint();
    thread::scope(|scope| {
        for file in &files {
            let bench = &bench;
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    bench.change(file, |raw| raw.i_uid = round.into());
                    assert_eq!(bench.sync(file), Synced::Logged);
                }
            });
        }
    });
    let found = owners(&bench.cut());
    assert_eq!(found.len(), (THREADS * ROUNDS) as usize, "no node is missing in the chain");
    for file in &files {
        let own: Vec<u32> = found.iter().filter(|(ino, _)| *ino == file.nid()).map(|(_, owner)| *owner).collect();
        assert_eq!(own, (1..=ROUNDS).collect::<Vec<_>>());
    }
}

/// Also one of the same file, for which nothing is left to write.
#[test]
fn a_sync_waits_for_what_stands_in_front_of_it() {
    for same in [false, true] {
        let bench = bench();
        let one = bench.file();
        let other = if same { one.clone() } else { bench.file() };
        bench.checkpoint();
        bench.change(&one, |raw| raw.i_uid = 7.into());
        bench.change(&other, |raw| raw.i_uid = 7.into());
        bench.held.hold_next(Operation::Write);
        thread::scope(|scope| {
            let first = scope.spawn(|| bench.sync(&one));
            bench.held.wait_until_held();
            let second = scope.spawn(|| bench.sync(&other));
            thread::sleep(Duration::from_millis(50));
            let early = second.is_finished();
            bench.held.release();
            assert!(!early, "the same file: {same}");
            assert_eq!((first.join().unwrap(), second.join().unwrap()), (Synced::Logged, Synced::Logged));
        });
        let found = owners(&bench.cut());
        assert!(found.contains(&(one.nid(), 7)) && found.contains(&(other.nid(), 7)), "{found:?}");
    }
}

/// Threads that wait for the one that fails, or panics, get an error; what was promised is there.
#[test]
fn nobody_waits_for_a_sync_that_failed() {
    let faults = [Fault::Error(5), Fault::Panic];
    for (fault, after) in faults.iter().flat_map(|fault| [0, 3, 8, 15].map(|after| (fault, after))) {
        let bench = bench();
        let files: Vec<Node> = (0..16).map(|_| bench.file()).collect();
        bench.checkpoint();
        files.iter().for_each(|file| bench.change(file, |raw| raw.i_uid = 7.into()));
        bench.device.arm(FaultRule::on([Operation::Write]).after(after).fault(*fault));
        let promised = thread::scope(|scope| {
            let threads = files.iter().map(|file| {
                let bench = &bench;
                scope.spawn(move || {
                    let sync = || bench.volume.begin().and_then(|op| bench.volume.syncs().file(&op, file));
                    matches!(catch_unwind(AssertUnwindSafe(sync)), Ok(Ok(Synced::Logged)))
                })
            });
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(promised.contains(&false) && bench.volume.stopped().is_some(), "{fault:?} after {after}");
        let found = owners(&bench.cut());
        for (file, promised) in files.iter().zip(promised) {
            assert!(!promised || found.contains(&(file.nid(), 7)), "{fault:?} after {after}");
        }
    }
}
