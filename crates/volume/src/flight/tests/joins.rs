#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Mutex;

use f2fs_sync::atomic::Ordering;

use super::joined::Joined;
use super::*;
use crate::StopCause;

/// A durable write of block 1, which was there, and block 2, which is new. `told` gets what it does to the inode.
fn joined(bench: &Bench, op: &Op<'_>, next: Next, told: &Arc<Mutex<Vec<bool>>>) -> Joined {
    let (flight, told) = (bench.begin(op, 1, 2, 9, next), told.clone());
    Joined::new(flight, &bench.file, move |_, done| told.lock().unwrap().push(done))
}

/// An error that concerns the sync alone.
fn of_the_sync() -> Result<(), VolumeError> {
    Err(VolumeError::FileTooLarge { size: 1, limit: 0 })
}

fn stopped() -> Result<(), VolumeError> {
    Err(VolumeError::Stopped { reason: StopCause::Panic })
}

fn awaits(bench: &Bench) -> u32 {
    bench.file.page.awaits.load(Ordering::Acquire)
}

/// How far a durable write comes before the sync says what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Sent,
    Named,
    NamedAndLost,
    Landed,
    LandedFirst,
    LandedAndStopped,
}

#[test]
fn a_durable_write_is_kept_or_undone() {
    use Way::*;
    for next in [Next::Sync, Next::Other] {
        for (way, result, is_kept, inode) in [
            (Sent, Ok(()), true, vec![true]),
            (Sent, of_the_sync(), false, vec![]),
            (Named, of_the_sync(), false, vec![true, false]),
            (NamedAndLost, of_the_sync(), false, vec![true, false]),
            (Landed, Ok(()), true, vec![true]),
            (LandedFirst, Ok(()), true, vec![true]),
            (Landed, of_the_sync(), true, vec![true]),
            (LandedAndStopped, stopped(), false, vec![true, false]),
        ] {
            let bench = Bench::new();
            bench.write(1, 1, 1);
            let before = bench.state(0..3);
            let told = Arc::default();
            let op = bench.volume.begin().unwrap();
            if way == NamedAndLost {
                bench.device.arm(FaultRule::on([Operation::Write]).for_good());
            }
            let mut joined = joined(&bench, &op, next, &told);
            if way == LandedFirst {
                joined.land(&*bench.device).unwrap();
            }
            if way != Sent {
                joined.name(&op);
                let (new, features) = (bench.address(1), bench.volume.features());
                assert!(new.is_real() && new != before.0[1]);
                assert!(!bench.file.owns(1, new, features), "a cleaner has to wait");
            }
            match way {
                NamedAndLost => drop(joined.land(&*bench.device)),
                Landed | LandedFirst | LandedAndStopped => joined.land(&*bench.device).unwrap(),
                Sent | Named => {}
            }
            if way == LandedAndStopped {
                bench.volume.stop_for(StopCause::Panic);
            }
            let fails = result.is_err();
            assert_eq!(joined.end(&op, result).is_err(), fails);
            let mut addresses = Vec::new();
            joined.tell(&op, |block, addr| addresses.push((block, addr)));
            assert_eq!(addresses, [(1, bench.address(1)), (2, bench.address(2))]);
            drop((joined, op));
            bench.device.disarm();
            let after = bench.state(0..3);
            if is_kept {
                assert_eq!(bench.fills(0..3), [0, 9, 9], "{way:?}");
                assert_eq!((after.1, after.2, after.3), (before.1 + 1, before.2 + 1, before.3 + 1), "{way:?}");
            } else {
                assert_eq!((after, bench.fills(0..3)), (before, vec![0, 1, 0]), "{way:?}, {next:?}");
            }
            assert_eq!((awaits(&bench), &*told.lock().unwrap()), (0, &inode), "{way:?}, {next:?}");
            let addr = bench.address(1);
            assert!(bench.file.owns(1, addr, bench.volume.features()));
        }
    }
}

/// No group took it along: it is an ordinary write.
#[test]
fn a_durable_write_that_no_sync_took_along_fails_as_any_other() {
    for next in [Next::Sync, Next::Other] {
        let bench = Bench::new();
        bench.write(1, 1, 1);
        let before = bench.state(0..3);
        let told = Arc::default();
        let op = bench.volume.begin().unwrap();
        bench.device.arm(FaultRule::on([Operation::Write]));
        let mut joined = joined(&bench, &op, next, &told);
        assert!(matches!(joined.end(&op, Ok(())), Err(VolumeError::Device(_))));
        assert_eq!((bench.state(0..3), bench.fills(0..3)), (before, vec![0, 1, 0]));
        assert!(told.lock().unwrap().is_empty() && awaits(&bench) == 0);
    }
}

/// What nobody will read is not sent.
#[test]
fn a_request_that_waited_for_a_sync_that_failed_is_never_sent() {
    let bench = Bench::new();
    let told = Arc::default();
    let op = bench.volume.begin().unwrap();
    let writes = bench.recorded.counts().writes;
    let mut joined = joined(&bench, &op, Next::Sync, &told);
    assert!(joined.end(&op, stopped()).is_err());
    assert_eq!(bench.recorded.counts().writes, writes);
}

#[test]
fn the_request_that_waits_for_the_group_is_given_once() {
    let bench = Bench::new();
    let told = Arc::default();
    let op = bench.volume.begin().unwrap();
    let mut joined = joined(&bench, &op, Next::Sync, &told);
    assert_eq!(joined.take_deferred().map(|request| request.blocks()), Some(2));
    assert!(joined.take_deferred().is_none());
    assert!(joined.end(&op, stopped()).is_err());
}
